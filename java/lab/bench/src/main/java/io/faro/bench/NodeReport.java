package io.faro.bench;

import java.io.IOException;
import java.util.List;
import java.util.ArrayList;

/**
 * What a node brings back, in the words of {@code native/lab/bench/node_report.cc}. A Java node reports
 * its rounds and no counters; of a C++ node only the rounds are read.
 */
record NodeReport(long connectNanos, List<RoundReport> rounds) {
  private static final long VERSION = 2;
  private static final int HEAD_WORDS = 5;
  private static final int ROUND_WORDS = 4;
  private static final int EMPTY_METRICS_WORDS = 3 + 6; // no workers, links, lanes; the session's

  /** One round of one node. */
  record RoundReport(long elapsedNanos, long cpuNanos, long count, long checksum) {}

  long[] encode() {
    long[] words = new long[HEAD_WORDS + ROUND_WORDS * rounds.size() + EMPTY_METRICS_WORDS];
    int at = 0;
    words[at++] = words.length;
    words[at++] = VERSION;
    words[at++] = connectNanos;
    words[at++] = 0; // idle CPU, not measured
    words[at++] = rounds.size();
    for (RoundReport round : rounds) {
      words[at++] = round.elapsedNanos();
      words[at++] = round.cpuNanos();
      words[at++] = round.count();
      words[at++] = round.checksum();
    }
    return words;
  }

  static NodeReport decode(long[] words) throws IOException {
    if (words.length < HEAD_WORDS || words[0] != words.length || words[1] != VERSION
        || words[4] < 0 || words[4] > (words.length - HEAD_WORDS) / ROUND_WORDS) {
      throw new IOException("a benchmark report that cannot be read");
    }
    List<RoundReport> rounds = new ArrayList<>();
    for (int i = 0; i < words[4]; i++) {
      int at = HEAD_WORDS + i * ROUND_WORDS;
      rounds.add(new RoundReport(words[at], words[at + 1], words[at + 2], words[at + 3]));
    }
    return new NodeReport(words[2], rounds);
  }
}
