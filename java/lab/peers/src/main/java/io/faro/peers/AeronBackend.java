package io.faro.peers;

import io.aeron.Aeron;
import io.aeron.CommonContext;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.faro.QueryId;
import io.faro.bench.Backend;
import io.faro.bench.Options;
import io.faro.bench.RoundWorker;
import io.faro.bench.TwoStageJob;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Frames over Aeron: for each stage and pair of workers a stream with a publication of its own. All
 * nodes share the media driver of node 0, one thread that sleeps when there is nothing to do.
 */
final class AeronBackend implements Backend {
  static final int STAGES = 2;

  private final Options options;
  private final MediaDriver driver; // of node 0, elsewhere null
  private final Aeron aeron;
  private final AeronWorker[] workers;
  private long queries;

  AeronBackend(Options options, AeronChannels channels) {
    this.options = options;
    // The port tells clusters of one host apart.
    String folder = Path.of("/dev/shm", "faro-aeron-" + options.address(0).getPort()).toString();
    driver = options.node() == 0 ? MediaDriver.launch(driverContext(folder)) : null;
    aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(folder));
    TwoStageJob job = options.job();
    workers = new AeronWorker[job.workersPerProcess()];
    for (int i = 0; i < workers.length; i++) {
      workers[i] = new AeronWorker(job, options.node() * workers.length + i, aeron, channels);
    }
  }

  private static MediaDriver.Context driverContext(String folder) {
    return new MediaDriver.Context()
        .aeronDirectoryName(folder)
        .threadingMode(ThreadingMode.SHARED)
        .socketRcvbufLength(2 * 1024 * 1024)
        .socketSndbufLength(2 * 1024 * 1024)
        .dirDeleteOnStart(true)
        .dirDeleteOnShutdown(true);
  }

  @Override
  public void open() throws IOException {
    long limit = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    for (AeronWorker worker : workers) {
      worker.connect();
    }
    for (AeronWorker worker : workers) {
      while (!worker.isConnected()) {
        if (System.nanoTime() > limit) {
          throw new IOException("Aeron did not connect in 30 s");
        }
        Thread.yield();
      }
    }
  }

  @Override
  public RoundWorker worker(int localIndex) {
    return workers[localIndex];
  }

  @Override
  public QueryId newQuery() {
    return new QueryId(++queries, 0, 0);
  }

  @Override
  public List<String> transports() {
    return List.of("Aeron " + CommonContext.class.getPackage().getImplementationVersion());
  }

  @Override
  public void close() {
    aeron.close();
    if (driver != null) {
      driver.close();
    }
  }
}
