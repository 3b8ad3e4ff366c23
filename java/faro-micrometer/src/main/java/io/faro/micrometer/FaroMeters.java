package io.faro.micrometer;

import io.faro.Counters;
import io.faro.FaroException;
import io.faro.LinkMetrics;
import io.faro.OperatorTotals;
import io.faro.Session;
import io.faro.SessionMetrics;
import io.faro.WorkerMetrics;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;

/**
 * The counters of a session, its workers, their operators and its links as meters:
 * {@code faro.session.queries.failed}, {@code faro.worker.rows.sent},
 * {@code faro.operator.rows.in}, {@code faro.link.bytes.sent} and so on, named as in C++ with dots.
 * Tags: {@code node} (this node); {@code worker}, with {@code kind} of operators; {@code peer} and
 * {@code transport}. What can also fall is a gauge, all else a counter.
 *
 * <pre>{@code new FaroMeters(session).bindTo(registry);}</pre>
 *
 * <p>Those of a link are NaN once its node is removed. Meters go on with their last values once the
 * session is closed; they keep this object, and with it the session, from being collected.
 * Threads: any. Blocks: never.
 */
public final class FaroMeters implements MeterBinder {
  private static final Set<String> GAUGES =
      Set.of(
          "overflow_memory_bytes",
          "overflow_memory_peak_bytes",
          "overflow_file_bytes",
          "overflow_file_peak_bytes",
          "queries_running",
          "untaken_frames",
          "untaken_streams",
          "open_shuffles",
          "held_frames",
          "unreleased_bytes",
          "table_states",
          "held_bytes",
          "peak_bytes");

  // A registry reads all meters in a row: one snapshot serves them, which costs more than a
  // counter.
  private static final long SNAPSHOT_NS = 100_000_000;

  private final Session session;
  private SessionMetrics last; // guarded by this
  private long takenAt; // guarded by this

  /** For a session that is open. */
  public FaroMeters(Session session) {
    this.session = Objects.requireNonNull(session);
    last = session.metrics();
    takenAt = System.nanoTime();
  }

  @Override
  public void bindTo(MeterRegistry registry) {
    Tags node = Tags.of("node", Integer.toString(session.node()));
    SessionMetrics now = snapshot();
    bind(registry, "faro.session.", node, Counters::counters);
    for (int i = 0; i < now.workers().size(); i++) {
      int index = i;
      WorkerMetrics worker = now.workers().get(i);
      Tags tags = node.and("worker", Integer.toString(worker.worker()));
      bind(registry, "faro.worker.", tags, metrics -> metrics.workers().get(index).counters());
    }
    for (int i = 0; i < now.operatorTotals().size(); i++) {
      int index = i;
      OperatorTotals all = now.operatorTotals().get(i);
      String kind = all.kind().name().toLowerCase(Locale.ROOT);
      Tags tags = node.and("worker", Integer.toString(all.worker()), "kind", kind);
      bind(
          registry,
          "faro.operator.",
          tags,
          metrics -> metrics.operatorTotals().get(index).counters());
    }
    for (LinkMetrics link : now.links()) {
      Tags tags = node.and("peer", Integer.toString(link.node()), "transport", link.transport());
      bind(registry, "faro.link.", tags, metrics -> linkTo(link.node(), metrics));
    }
  }

  // Where nodes change not every number has a link, and one may have none any more.
  private static Map<String, Long> linkTo(int node, SessionMetrics metrics) {
    return metrics.links().stream()
        .filter(link -> link.node() == node)
        .findFirst()
        .map(Counters::counters)
        .orElse(Map.of());
  }

  private void bind(
      MeterRegistry registry,
      String prefix,
      Tags tags,
      Function<SessionMetrics, Map<String, Long>> of) {
    for (String counter : of.apply(snapshot()).keySet()) {
      String name = prefix + counter.replace('_', '.');
      ToDoubleFunction<FaroMeters> value =
          self -> {
            Long counted = of.apply(self.snapshot()).get(counter);
            return counted == null ? Double.NaN : counted;
          };
      if (GAUGES.contains(counter)) {
        Gauge.builder(name, this, value).tags(tags).strongReference(true).register(registry);
      } else {
        FunctionCounter.builder(name, this, value).tags(tags).register(registry);
      }
    }
  }

  private synchronized SessionMetrics snapshot() {
    long now = System.nanoTime();
    if (now - takenAt > SNAPSHOT_NS) {
      try {
        last = session.metrics();
        takenAt = now;
      } catch (FaroException closed) {
        // The last values stay.
      }
    }
    return last;
  }
}
