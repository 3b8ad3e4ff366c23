package io.faro.bench;

import io.faro.Outcome;
import io.faro.sockets.SocketsQuery;
import io.faro.sockets.SocketsWorker;
import io.faro.sockets.StageRows;

/**
 * One worker of the two-stage job over Java NIO sockets. The order of polling is the paper's: rows of the own process,
 * then sockets, then rows of the child.
 */
final class NioWorker extends PlanWorker implements SocketsQuery {
  private final SocketsWorker sockets;
  private final NioPort[] ports;
  private int round;

  NioWorker(TwoStageJob job, SocketsWorker sockets) {
    super(job, sockets.number());
    this.sockets = sockets;
    ports = new NioPort[] {new NioPort(job, 0, sockets), new NioPort(job, 1, sockets)};
  }

  @Override
  public void run(Round round) {
    this.round = round.number();
    for (NioPort port : ports) {
      port.begin();
    }
    begin(ports[0], ports[1]);
    sockets.begin(this);
    do {
      sockets.turn();
      sockets.await(this::step);
    } while (!over() || !sockets.flush());
    sockets.end();
  }

  private boolean step() {
    return over() ? sockets.flush() : turn();
  }

  @Override
  protected Outcome tryFinish(int stage) {
    return ports[stage - 1].tryFinish();
  }

  @Override
  public long number() {
    return round;
  }

  @Override
  public int stages() {
    return ports.length;
  }

  @Override
  public StageRows rowsOf(int stage) {
    return ports[stage];
  }

  @Override
  public void check() {}

  @Override
  public RuntimeException ended(String what) {
    return new IllegalStateException("a node of the benchmark has died: " + what);
  }
}
