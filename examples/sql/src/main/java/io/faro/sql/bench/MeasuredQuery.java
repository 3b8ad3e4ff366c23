package io.faro.sql.bench;

import io.faro.sql.exec.Query;

/** A query of {@link QueryBench}. {@code isSampled}: where its CPU time goes is looked at, and not how much it is. */
record MeasuredQuery(Query query, boolean isSampled) {
  private static final String SAMPLED = "sampled";
  private static final String TIMED = "timed";

  /** In one line; {@link #parse} reads it. */
  String encoded() {
    return (isSampled ? SAMPLED : TIMED) + " " + query.encoded();
  }

  static MeasuredQuery parse(String line) {
    int space = line.indexOf(' ');
    return new MeasuredQuery(Query.parse(line.substring(space + 1)), line.substring(0, space).equals(SAMPLED));
  }
}
