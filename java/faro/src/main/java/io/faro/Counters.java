package io.faro;

import java.lang.reflect.RecordComponent;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * Counters of Faro, which are always on. Each value is exact; together they are of about the same
 * moment.
 */
public sealed interface Counters
    permits SessionMetrics,
        WorkerMetrics,
        LinkMetrics,
        LaneMetrics,
        OperatorMetrics,
        OperatorTotals,
        ShuffleMetrics,
        SentMetrics,
        ReceivedMetrics,
        EndpointMetrics,
        ChannelTraffic {
  /** All counters by their C++ names, such as {@code rows_sent}. */
  default Map<String, Long> counters() {
    Map<String, Long> all = new LinkedHashMap<>();
    for (RecordComponent component : getClass().getRecordComponents()) {
      if (component.getType() == long.class) {
        all.put(nativeName(component.getName()), value(component));
      }
    }
    return all;
  }

  private long value(RecordComponent component) {
    try {
      return (long) component.getAccessor().invoke(this);
    } catch (ReflectiveOperationException impossible) {
      throw new AssertionError(impossible); // an accessor of our own, public and without a body
    }
  }

  private static String nativeName(String name) {
    return name.replaceAll("[A-Z]", "_$0").toLowerCase(Locale.ROOT);
  }
}
