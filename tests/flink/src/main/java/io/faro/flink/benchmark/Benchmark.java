package io.faro.flink.benchmark;

import java.lang.reflect.Field;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.metrics.Counter;

/** One of Flink's benchmarks, with what it keeps to itself: how many bytes have arrived, and when it can go on. */
abstract class Benchmark {
  /** A LongValue: its length and itself. */
  static final int RECORD_BYTES = 12;

  private Counter bytesIn;

  abstract void setUp(int channels, int flushMs, boolean local, Configuration configuration) throws Exception;

  /** Returns when {@link #round} may be called. The benchmark's last record arrives before its threads have noticed that. */
  abstract void awaitReady() throws Exception;

  /** Sends about that many records, and waits until all have arrived. Returns how many there were. */
  abstract long round(long records) throws Exception;

  /** What else there is to say of the last round: members of a JSON object, with a comma before each. */
  String more() {
    return "";
  }

  /** Bytes that the receiver has taken out of its input gate. */
  final long bytesIn() {
    return bytesIn.getCount();
  }

  /** Finds the counter, once the benchmark is set up. */
  final void findCounter(Object benchmark) throws ReflectiveOperationException {
    Object gate = field(field(field(benchmark, "receiver"), "reader"), "inputGate");
    bytesIn = (Counter) field(gate, "numBytesIn");
  }

  /** The value of a field, whoever may read it. */
  static Object field(Object of, String name) throws ReflectiveOperationException {
    for (Class<?> type = of.getClass(); type != null; type = type.getSuperclass()) {
      try {
        Field field = type.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(of);
      } catch (NoSuchFieldException inherited) {
        // looked for in the next
      }
    }
    throw new NoSuchFieldException(of.getClass() + "." + name);
  }
}
