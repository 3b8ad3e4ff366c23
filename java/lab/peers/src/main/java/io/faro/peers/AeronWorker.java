package io.faro.peers;

import io.aeron.Aeron;
import io.faro.Outcome;
import io.faro.bench.PlanWorker;
import io.faro.bench.Round;
import io.faro.bench.TwoStageJob;

/** One worker of the two-stage job over Aeron. */
final class AeronWorker extends PlanWorker {
  private final AeronPort[] ports = new AeronPort[AeronBackend.STAGES];

  AeronWorker(TwoStageJob job, int number, Aeron aeron, AeronChannels channels) {
    super(job, number);
    for (int stage = 0; stage < ports.length; stage++) {
      ports[stage] = new AeronPort(job, stage, number, aeron, channels);
    }
  }

  void connect() {
    for (AeronPort port : ports) {
      port.connect();
    }
  }

  boolean isConnected() {
    return ports[0].isConnected() && ports[1].isConnected();
  }

  @Override
  public void run(Round round) {
    for (AeronPort port : ports) {
      port.begin();
    }
    begin(ports[0], ports[1]);
    while (!over()) {
      if (!turn()) {
        Thread.yield();
      }
    }
  }

  @Override
  protected Outcome tryFinish(int stage) {
    return ports[stage - 1].tryFinish();
  }
}
