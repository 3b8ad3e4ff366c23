package io.faro.flink;

import io.faro.EndpointMetrics;
import java.util.function.ToLongFunction;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.metrics.MetricGroup;

/**
 * Shows what an endpoint counts, in the group {@code Shuffle.Faro} of a TaskManager.
 *
 * <p>Threads: any.
 */
final class FaroMetrics {
  /** One snapshot serves all gauges of a report. */
  private static final long FRESH_NANOS = 500_000_000;

  private final FaroConnectionManager manager;
  private EndpointMetrics snapshot;
  private long takenAt;

  private FaroMetrics(FaroConnectionManager manager) {
    this.manager = manager;
  }

  static void register(FaroConnectionManager manager, MetricGroup taskManager) {
    MetricGroup group = taskManager.addGroup("Shuffle").addGroup("Faro");
    FaroMetrics metrics = new FaroMetrics(manager);
    metrics.gauge(group, "linksShm", all -> links(all, "shm"));
    metrics.gauge(group, "linksTcp", all -> links(all, "tcp"));
    metrics.gauge(group, "linksVerbs", all -> links(all, "verbs"));
    metrics.gauge(group, "linksOpened", EndpointMetrics::channelsOpened);
    metrics.gauge(group, "linksLost", EndpointMetrics::channelsLost);
    metrics.gauge(group, "linksRefused", EndpointMetrics::channelsRefused);
    metrics.gauge(group, "linksMended", all -> all.all().mended());
    metrics.gauge(group, "bytesSent", all -> all.all().bytesSent());
    metrics.gauge(group, "bytesReceived", all -> all.all().bytesReceived());
    metrics.gauge(group, "framesSent", all -> all.all().framesSent());
    metrics.gauge(group, "framesReceived", all -> all.all().framesReceived());
    metrics.gauge(group, "noRoom", all -> all.all().noRoom());
    metrics.gauge(group, "waits", EndpointMetrics::waits);
    metrics.gauge(group, "sleeps", EndpointMetrics::sleeps);
    metrics.gauge(group, "memoryUsed", EndpointMetrics::memoryBytes);
    metrics.gauge(group, "memoryLimit", EndpointMetrics::memoryLimitBytes);
    group.gauge("wakeUps", (Gauge<Long>) manager::wakeUps);
    group.gauge("subpartitionsRequested", (Gauge<Long>) () -> metrics.sum(LinkCounts::requests));
    group.gauge("buffersSent", (Gauge<Long>) () -> metrics.sum(LinkCounts::buffersSent));
    group.gauge("buffersReceived", (Gauge<Long>) () -> metrics.sum(LinkCounts::buffersReceived));
  }

  private void gauge(MetricGroup group, String name, ToLongFunction<EndpointMetrics> value) {
    group.gauge(
        name,
        (Gauge<Long>)
            () -> {
              EndpointMetrics all = current();
              return all == null ? 0L : value.applyAsLong(all);
            });
  }

  private synchronized EndpointMetrics current() {
    long now = System.nanoTime();
    if (snapshot == null || now - takenAt > FRESH_NANOS) {
      snapshot = manager.metrics();
      takenAt = now;
    }
    return snapshot;
  }

  private static long links(EndpointMetrics all, String transport) {
    return all.channels().stream().filter(link -> link.transport().equals(transport)).count();
  }

  private long sum(ToLongFunction<LinkCounts> of) {
    return manager.counts().stream().mapToLong(of).sum();
  }
}
