package io.faro.bench;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicReference;

/** One node of a run: joins the others, runs every round, reports. */
final class Node {
  private final Options options;
  private final List<NodeReport.RoundReport> rounds = new ArrayList<>();
  private final AtomicReference<Exception> failure = new AtomicReference<>();
  private final CyclicBarrier together;
  private volatile Round round;

  Node(Options options) {
    this.options = options;
    together = new CyclicBarrier(options.job().workersPerProcess());
  }

  /** On node 0 the result as one JSON line, elsewhere null. Blocks until all rounds are over. */
  String run() throws Exception {
    try (Backend backend = open();
        Control control = new Control(options)) {
      control.join();
      long start = System.nanoTime();
      backend.open();
      long connectNanos = System.nanoTime() - start;
      runRounds(backend, control);
      NodeReport[] reports = control.collect(new NodeReport(connectNanos, rounds));
      return reports == null ? null : Result.json(options, reports, backend.transports());
    }
  }

  private Backend open() throws IOException {
    if (options.carrier() == Carrier.PROVIDED) {
      return BackendProvider.find(options);
    }
    return options.carrier().isFaro() ? Backend.faro(options) : new NioBackend(options);
  }

  private void runRounds(Backend backend, Control control) throws Exception {
    int count = options.job().workersPerProcess();
    RoundWorker[] workers = new RoundWorker[count];
    for (int i = 0; i < count; i++) {
      workers[i] = backend.worker(i);
    }
    List<Thread> threads = new ArrayList<>();
    for (int i = 1; i < count; i++) {
      RoundWorker worker = workers[i];
      Thread thread = new Thread(() -> rounds(worker, () -> {}, () -> {}), "worker " + i);
      thread.start();
      threads.add(thread);
    }
    CpuClock cpu = new CpuClock();
    long[] began = new long[2];
    rounds(
        workers[0],
        () -> {
          round = control.start(rounds.size(), backend::newQuery);
          began[0] = System.nanoTime();
          began[1] = cpu.nanos();
        },
        () -> {
          long rows = 0;
          long checksum = 0;
          for (RoundWorker worker : workers) {
            rows += worker.count();
            checksum += worker.checksum();
          }
          rounds.add(
              new NodeReport.RoundReport(
                  System.nanoTime() - began[0], cpu.nanos() - began[1], rows, checksum));
        });
    for (Thread thread : threads) {
      thread.join();
    }
    if (failure.get() != null) {
      throw failure.get();
    }
  }

  private interface Step {
    void run() throws Exception;
  }

  // Whoever fails breaks the barrier, and so ends the rounds of its siblings.
  private void rounds(RoundWorker worker, Step before, Step after) {
    try {
      for (int i = 0; i < options.rounds(); i++) {
        before.run();
        together.await();
        worker.run(round);
        together.await();
        after.run();
      }
    } catch (Exception problem) {
      failure.compareAndSet(null, problem);
      together.reset();
    }
  }
}
