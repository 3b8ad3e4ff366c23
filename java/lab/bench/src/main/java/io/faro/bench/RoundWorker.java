package io.faro.bench;

/** What one worker does in each round. */
public interface RoundWorker {
  /** Carries the job once. */
  void run(Round round) throws Exception;

  /** Rows that its sink saw in the last round. */
  long count();

  /** Their checksum. */
  long checksum();
}
