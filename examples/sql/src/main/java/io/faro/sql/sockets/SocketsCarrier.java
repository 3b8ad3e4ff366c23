package io.faro.sql.sockets;

import io.faro.ObjectShuffleSpec;
import io.faro.QueryId;
import io.faro.Session;
import io.faro.Worker;
import io.faro.sockets.SocketsMesh;
import io.faro.sockets.SocketsWorker;
import io.faro.sql.exec.Carrier;
import io.faro.sql.exec.Shuffles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;

/** The sockets of a node, beside its session. */
public final class SocketsCarrier implements Carrier {
  private final CarrierSettings settings;
  private final SocketsMesh mesh;
  private final int first; // of the workers here

  private SocketsCarrier(Session session, CarrierSettings settings) throws IOException {
    this.settings = settings;
    mesh = SocketsMesh.open(settings.of(session));
    first = session.firstWorker();
  }

  /**
   * Connects to all other nodes.
   *
   * @throws UncheckedIOException if it cannot be done; nothing is left open then
   */
  public static SocketsCarrier open(Session session, CarrierSettings settings) {
    try {
      return new SocketsCarrier(session, settings);
    } catch (IOException problem) {
      throw new UncheckedIOException(problem.getMessage(), problem);
    }
  }

  /** The workers of this node, from 0 on. */
  SocketsWorker worker(int index) {
    return mesh.worker(index);
  }

  @Override
  public Shuffles open(Worker worker, QueryId query, List<ObjectShuffleSpec<Object[]>> stages) {
    SocketsWorker own = mesh.worker(worker.number() - first);
    SocketShuffles shuffles = new SocketShuffles(own, settings.causeLimit(), worker, query, stages);
    try {
      own.begin(shuffles);
    } catch (RuntimeException problem) {
      shuffles.close();
      throw problem;
    }
    return shuffles;
  }

  @Override
  public void close() {
    mesh.close();
  }
}
