package io.faro.jmh;

import io.faro.Outcome;
import io.faro.QueryId;
import io.faro.Session;
import io.faro.SessionConfig;
import io.faro.Setting;
import io.faro.Shuffle;
import io.faro.ShuffleSpec;
import io.faro.Worker;
import io.faro.sockets.HeldAddresses;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** Two nodes in this JVM, one worker each, and a shuffle from the first to the second. */
@State(Scope.Thread)
public abstract class Lane {
  private final HeldAddresses held = hold();
  private final CompletableFuture<Session> opening = open(1);
  private final Session session0 = open(0).join();
  private final Session session1 = opening.join();
  private final QueryId query = session0.beginQuery();
  private final List<Shuffle> shuffles = new ArrayList<>();

  private static HeldAddresses hold() {
    try {
      return new HeldAddresses(2, 1, List.of("127.0.0.1"));
    } catch (IOException problem) {
      throw new UncheckedIOException(problem);
    }
  }

  private CompletableFuture<Session> open(int node) {
    return Session.openAsync(
            SessionConfig.builder().cluster(node, held.all()).set(Setting.TRANSPORT, "shm").build())
        .toCompletableFuture();
  }

  final Shuffle sender(int rowBytes) {
    return open(session0.workers().get(0), rowBytes);
  }

  final Shuffle receiver(int rowBytes) {
    return open(session1.workers().get(0), rowBytes);
  }

  private Shuffle open(Worker worker, int rowBytes) {
    Shuffle shuffle =
        worker.openShuffle(new ShuffleSpec(query, 1, rowBytes, new int[] {0}, new int[] {1}));
    shuffles.add(shuffle);
    return shuffle;
  }

  static void check(Outcome outcome) {
    if (outcome != Outcome.DONE) {
      throw new IllegalStateException(outcome.toString());
    }
  }

  /** The query ends with its sessions. */
  @TearDown(Level.Trial)
  public final void close() {
    shuffles.forEach(Shuffle::close);
    session1.close();
    session0.close();
    held.close();
  }
}
