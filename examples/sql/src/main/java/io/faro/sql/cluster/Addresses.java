package io.faro.sql.cluster;

import io.faro.sockets.HeldAddresses;
import io.faro.sql.SqlException;
import java.io.IOException;
import java.util.List;

/** Where nodes on this machine can listen. */
public final class Addresses {
  /** Where they listen unless somebody says otherwise. */
  static final String HOST = "127.0.0.1";

  private Addresses() {}

  /** As many addresses as asked for; the hosts, numeric addresses of this machine, take turns. */
  public static HeldAddresses hold(int count, List<String> hosts) {
    try {
      return new HeldAddresses(count, 1, hosts);
    } catch (IOException e) {
      throw new SqlException(e.getMessage(), e);
    }
  }
}
