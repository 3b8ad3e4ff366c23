package io.faro.flink;

import io.faro.EndpointMetrics;
import java.util.List;
import java.util.function.LongSupplier;
import java.util.function.ToLongFunction;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.metrics.MeterView;
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
    metrics.gauge(group, "memoryUsed", EndpointMetrics::memoryBytes);
    metrics.gauge(group, "memoryLimit", EndpointMetrics::memoryLimitBytes);
    group.gauge("memoryOfEndedLinks", (Gauge<Long>) manager::memoryOfEndedLinks);
    metrics.counter(group, "linksOpened", EndpointMetrics::channelsOpened);
    metrics.counter(group, "linksLost", EndpointMetrics::channelsLost);
    metrics.counter(group, "linksRefused", EndpointMetrics::channelsRefused);
    metrics.counter(group, "linksMended", all -> all.all().mended());
    metrics.counter(group, "framesSent", all -> all.all().framesSent());
    metrics.counter(group, "framesReceived", all -> all.all().framesReceived());
    metrics.counter(group, "noRoom", all -> all.all().noRoom());
    metrics.counter(group, "waits", EndpointMetrics::waits);
    metrics.counter(group, "sleeps", EndpointMetrics::sleeps);
    rated(group, "bytesSent", () -> metrics.value(all -> all.all().bytesSent()));
    rated(group, "bytesReceived", () -> metrics.value(all -> all.all().bytesReceived()));
    group.counter("wakeUps", new Count(manager::wakeUps));
    group.counter(
        "subpartitionsRequested",
        new Count(() -> sum(manager, LinkCounts.TRANSPORTS, LinkCounts::requests)));
    moved(group, manager, LinkCounts.TRANSPORTS);
    for (String transport : LinkCounts.TRANSPORTS) {
      MetricGroup of = group.addGroup(transport);
      metrics.gauge(of, "links", all -> links(all, transport));
      moved(of, manager, List.of(transport));
      LongSupplier sent = () -> sum(manager, List.of(transport), LinkCounts::bytesSent);
      LongSupplier received = () -> sum(manager, List.of(transport), LinkCounts::bytesReceived);
      rated(of, "bytesSent", sent);
      rated(of, "bytesReceived", received);
    }
  }

  // Buffers and events, over these transports.
  private static void moved(
      MetricGroup group, FaroConnectionManager manager, List<String> transports) {
    rated(group, "buffersSent", () -> sum(manager, transports, LinkCounts::buffersSent));
    rated(group, "buffersReceived", () -> sum(manager, transports, LinkCounts::buffersReceived));
  }

  // With its rate, as Flink's own counters of bytes have one.
  private static void rated(MetricGroup group, String name, LongSupplier value) {
    Count count = new Count(value);
    group.counter(name, count);
    group.meter(name + "PerSecond", new MeterView(count));
  }

  private void gauge(MetricGroup group, String name, ToLongFunction<EndpointMetrics> value) {
    group.gauge(name, (Gauge<Long>) () -> value(value));
  }

  private void counter(MetricGroup group, String name, ToLongFunction<EndpointMetrics> value) {
    group.counter(name, new Count(() -> value(value)));
  }

  private long value(ToLongFunction<EndpointMetrics> of) {
    EndpointMetrics all = current();
    return all == null ? 0L : of.applyAsLong(all);
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

  private static long sum(
      FaroConnectionManager manager, List<String> transports, ToLongFunction<LinkCounts> of) {
    return transports.stream().flatMap(each -> manager.counts(each).stream()).mapToLong(of).sum();
  }

  /** What Faro counts by itself. */
  private record Count(LongSupplier value) implements Counter {
    @Override
    public long getCount() {
      return value.getAsLong();
    }

    @Override
    public void inc() {
      throw new UnsupportedOperationException();
    }

    @Override
    public void inc(long more) {
      throw new UnsupportedOperationException();
    }

    @Override
    public void dec() {
      throw new UnsupportedOperationException();
    }

    @Override
    public void dec(long less) {
      throw new UnsupportedOperationException();
    }
  }
}
