package io.faro.sql.exec;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.faro.QueryId;
import java.util.Base64;

/**
 * A query as all nodes get it; each makes the same plan of it.
 *
 * @param id given out by node 0
 * @param startMs when it began there: what CURRENT_TIMESTAMP is everywhere
 * @param sql its text
 */
public record Query(QueryId id, long startMs, String sql) {
  /** In one line; {@link #parse} reads it. */
  public String encoded() {
    return id.encoded() + " " + startMs + " " + Base64.getEncoder().encodeToString(sql.getBytes(UTF_8));
  }

  public static Query parse(String line) {
    String[] parts = line.split(" ");
    return new Query(
        QueryId.parse(parts[0]),
        Long.parseLong(parts[1]),
        new String(Base64.getDecoder().decode(parts[2]), UTF_8));
  }
}
