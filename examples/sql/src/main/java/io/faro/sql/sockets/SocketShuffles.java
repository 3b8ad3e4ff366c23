package io.faro.sql.sockets;

import io.faro.ObjectShuffleSpec;
import io.faro.Outcome;
import io.faro.QueryId;
import io.faro.Shuffle;
import io.faro.ShuffleSpec;
import io.faro.Wait;
import io.faro.Worker;
import io.faro.sockets.SocketsQuery;
import io.faro.sockets.SocketsWorker;
import io.faro.sockets.StageRows;
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
final class SocketShuffles implements Shuffles, SocketsQuery {
  private static final long LOOK_NANOS = Duration.ofMillis(2).toNanos();

  private final SocketsWorker worker;
  private final Duration causeLimit;
  private final long number;
  private final Shuffle watch;
  private final List<SocketShuffle> stages = new ArrayList<>();

  SocketShuffles(
      SocketsWorker worker,
      Duration causeLimit,
      Worker session,
      QueryId query,
      List<ObjectShuffleSpec<Object[]>> specs) {
    this.worker = worker;
    this.causeLimit = causeLimit;
    number = query.counter(); // all of one issuer, node 0
    int[] itself = {session.number()};
    for (ObjectShuffleSpec<Object[]> spec : specs) {
      stages.add(new SocketShuffle(worker, spec));
    }
    watch = session.openShuffle(new ShuffleSpec(query, session.number(), 0, itself, itself));
  }

  @Override
  public long number() {
    return number;
  }

  @Override
  public int stages() {
    return stages.size();
  }

  @Override
  public StageRows rowsOf(int stage) {
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

  /** Waits for the cause of what was heard at a socket; throws that, if it comes. */
  @Override
  public RuntimeException ended(String what) {
    long deadline = System.nanoTime() + causeLimit.toNanos();
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
