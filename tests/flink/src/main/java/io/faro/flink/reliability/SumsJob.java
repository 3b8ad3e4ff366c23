package io.faro.flink.reliability;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.BasePathBucketAssigner;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;
import org.apache.flink.util.Collector;

/**
 * A job whose result is known beforehand: the numbers from 0, each with a text, through three keyed exchanges. The first two
 * number what they see per key, so that a record that is lost or comes twice is seen, the third checks the texts and adds up. What the sink commits are lines
 * {@code key count numbers first second}: their sums are what is compared.
 *
 * <p>Arguments: the number of records; records per second and subtask, until the file that follows is there; that file; where the
 * sink writes; then settings of Flink, {@code key=value}. Prints the job's id when it is submitted, and ends.
 */
public final class SumsJob {
  static final int FIRST_KEYS = 101;
  static final int SECOND_KEYS = 97;
  static final int LAST_KEYS = 50;
  static final long RECORDS_PER_LINE = 500; // as a rule; the last line of a key has fewer

  private SumsJob() {}

  /** Submits the job. */
  public static void main(String[] arguments) throws Exception {
    long records = Long.parseLong(arguments[0]);
    int rate = Integer.parseInt(arguments[1]);
    Map<String, String> settings = new HashMap<>(Map.of("execution.target", "remote", "execution.attached", "false"));
    for (int i = 4; i < arguments.length; i++) {
      String[] parts = arguments[i].split("=", 2);
      settings.put(parts[0], parts[1]);
    }
    StreamExecutionEnvironment environment = new StreamExecutionEnvironment(Configuration.fromMap(settings));
    environment
        .fromSource(new NumberSequenceSource(0, records - 1), WatermarkStrategy.noWatermarks(), "numbers")
        .map(new Paced(rate, arguments[2]))
        .keyBy(record -> record.f0 % FIRST_KEYS)
        .process(new Numbered(true))
        .keyBy(record -> record.f0 % SECOND_KEYS)
        .process(new Numbered(false))
        .keyBy(record -> record.f0 % LAST_KEYS)
        .process(new Sums())
        .sinkTo(
            FileSink.forRowFormat(
                    new org.apache.flink.core.fs.Path(arguments[3]), new SimpleStringEncoder<String>())
                .withBucketAssigner(new BasePathBucketAssigner<>())
                .withRollingPolicy(OnCheckpointRollingPolicy.build())
                .build());
    JobClient job = environment.executeAsync("sums");
    System.out.println("job " + job.getJobID());
  }

  /** What goes with a number. It has a part that is the same in all, and is nowhere in the program as it stands. */
  static String text(long number) {
    return new StringBuilder("raelc-ni-levart-ton-od-I").reverse().append(' ').append(number).toString();
  }

  /** Not faster than at a rate, until a file is there. */
  private static final class Paced extends RichMapFunction<Long, Tuple4<Long, Long, Long, String>> {
    private static final long serialVersionUID = 1;
    private static final int LOOK = 64; // records between looks at the clock

    private final int rate;
    private final String hurry;
    private transient long begun;
    private transient long done;
    private transient boolean hurries;

    Paced(int rate, String hurry) {
      this.rate = rate;
      this.hurry = hurry;
    }

    @Override
    public void open(OpenContext context) {
      begun = System.nanoTime();
    }

    @Override
    public Tuple4<Long, Long, Long, String> map(Long number) throws InterruptedException {
      if (++done % LOOK == 0 && !hurries) {
        long early = begun + done * 1_000_000_000 / rate - System.nanoTime();
        if (early > 0) {
          Thread.sleep(early / 1_000_000);
        }
        hurries = Files.exists(Path.of(hurry));
      }
      return Tuple4.of(number, 0L, 0L, text(number));
    }
  }

  /** Gives each record the number of those of its key that came before it. */
  private static final class Numbered
      extends KeyedProcessFunction<Long, Tuple4<Long, Long, Long, String>, Tuple4<Long, Long, Long, String>> {
    private static final long serialVersionUID = 1;

    private final boolean isFirst;
    private transient ValueState<Long> before;

    Numbered(boolean isFirst) {
      this.isFirst = isFirst;
    }

    @Override
    public void open(OpenContext context) {
      before = getRuntimeContext().getState(new ValueStateDescriptor<>("before", Long.class));
    }

    @Override
    public void processElement(
        Tuple4<Long, Long, Long, String> record, Context context, Collector<Tuple4<Long, Long, Long, String>> out)
        throws Exception {
      Long number = before.value();
      long next = number == null ? 0 : number;
      before.update(next + 1);
      out.collect(
          Tuple4.of(record.f0, isFirst ? (Long) next : record.f1, isFirst ? record.f2 : (Long) next, record.f3));
    }
  }

  /** Adds up, and gives a line per 500 records of a key, and at the end. */
  private static final class Sums extends KeyedProcessFunction<Long, Tuple4<Long, Long, Long, String>, String> {
    private static final long serialVersionUID = 1;

    private transient ValueState<long[]> sums;

    @Override
    public void open(OpenContext context) {
      sums = getRuntimeContext().getState(new ValueStateDescriptor<>("sums", long[].class));
    }

    @Override
    public void processElement(Tuple4<Long, Long, Long, String> record, Context context, Collector<String> out)
        throws Exception {
      if (!record.f3.equals(text(record.f0))) {
        throw new IllegalStateException("With " + record.f0 + " came '" + record.f3 + "'.");
      }
      long[] now = sums.value();
      if (now == null) {
        now = new long[4];
        context.timerService().registerEventTimeTimer(Long.MAX_VALUE); // when all has come
      }
      now[0]++;
      now[1] += record.f0;
      now[2] += record.f1;
      now[3] += record.f2;
      sums.update(now);
      if (now[0] == RECORDS_PER_LINE) {
        give(context.getCurrentKey(), now, out);
      }
    }

    @Override
    public void onTimer(long timestamp, OnTimerContext context, Collector<String> out) throws Exception {
      long[] now = sums.value();
      if (now != null) {
        give(context.getCurrentKey(), now, out);
      }
    }

    private void give(long key, long[] now, Collector<String> out) {
      out.collect(key + " " + now[0] + " " + now[1] + " " + now[2] + " " + now[3]);
      sums.clear();
    }
  }
}
