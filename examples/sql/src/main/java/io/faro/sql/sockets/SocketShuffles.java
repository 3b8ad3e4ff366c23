package io.faro.sql.sockets;

import io.faro.Outcome;
import io.faro.QueryId;
import io.faro.RowCodec;
import io.faro.Shuffle;
import io.faro.ShuffleSpec;
import io.faro.Wait;
import io.faro.Worker;
import io.faro.sql.exec.RowShuffle;
import io.faro.sql.exec.Shuffles;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * One query at one worker. That it has failed, and why, is known by Faro: the worker opens a shuffle of its own,
 * from itself to itself, through which no row goes, and asks it.
 */
final class SocketShuffles implements Shuffles {
  private static final long LOOK_NANOS = Duration.ofMillis(2).toNanos();

  private final SocketWorker worker;
  private final long number;
  private final Shuffle watch;
  private final List<SocketShuffle> stages = new ArrayList<>();

  SocketShuffles(SocketWorker worker, Worker session, QueryId query, List<RowCodec<Object[]>> codecs) {
    this.worker = worker;
    number = query.counter(); // all of one issuer, node 0
    int[] itself = {session.number()};
    for (RowCodec<Object[]> codec : codecs) {
      stages.add(new SocketShuffle(this, worker, stages.size(), codec));
    }
    watch = session.openShuffle(new ShuffleSpec(query, session.number(), 0, itself, itself));
  }

  /** Those of later queries are larger. */
  long number() {
    return number;
  }

  int stages() {
    return stages.size();
  }

  SocketShuffle stageOf(int stage) {
    return stages.get(stage);
  }

  @Override
  public RowShuffle stage(int stage) {
    return stages.get(stage);
  }

  @Override
  public void check() {
    watch.checkQuery();
  }

  /** Others may still have rows for this worker, which is the only one to take them off its sockets. */
  @Override
  public void complete() {
    stages.forEach(SocketShuffle::stop);
    worker.await(() -> stages.stream().allMatch(SocketShuffle::hasEnded) && worker.flush());
    watch.receiver().stop(); // closing it otherwise would fail the query
    if (watch.sender().finish(Wait.NONE) != Outcome.DONE) {
      throw new IllegalStateException("an empty shuffle cannot be finished");
    }
  }

  /**
   * Waits for the cause of what was heard at a socket.
   *
   * @return the exception if there comes none; else it is thrown
   */
  RuntimeException ended(String what) {
    long deadline = System.nanoTime() + worker.settings().causeLimit().toNanos();
    while (System.nanoTime() < deadline) {
      check();
      LockSupport.parkNanos(LOOK_NANOS);
    }
    return new CarrierEndedException(what);
  }

  @Override
  public void close() {
    try {
      worker.end();
    } finally {
      watch.close();
    }
  }
}
