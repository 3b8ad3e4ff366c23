package io.faro;

import java.io.Serializable;
import java.util.Objects;

/**
 * Names a query over the life of a cluster; never recurs. {@link Session#beginQuery} makes it on
 * one node, and the engine carries it to the others together with the plan.
 *
 * @param counter counted by the coordinator, from 1
 * @param incarnation of the coordinator, drawn when its process joined
 * @param issuer node number of the coordinator
 */
public record QueryId(long counter, long incarnation, int issuer) implements Serializable {
  /** The id as text, for a plan; {@link #parse} reads it. */
  public String encoded() {
    return issuer + ":" + counter + ":" + Long.toUnsignedString(incarnation, 16);
  }

  /**
   * Reads what {@link #encoded} has written.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if it is something else
   */
  public static QueryId parse(String encoded) {
    Objects.requireNonNull(encoded, "encoded");
    String[] parts = encoded.split(":", -1);
    try {
      if (parts.length == 3) {
        return new QueryId(
            Long.parseLong(parts[1]),
            Long.parseUnsignedLong(parts[2], 16),
            Integer.parseInt(parts[0]));
      }
    } catch (NumberFormatException malformed) {
      // Reported below.
    }
    throw new FaroException(Code.INVALID_ARGUMENT, "no query id: " + encoded);
  }

  /** {@code "0:17"}: coordinator and counter. */
  @Override
  public String toString() {
    return issuer + ":" + counter;
  }
}
