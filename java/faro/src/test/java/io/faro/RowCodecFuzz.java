package io.faro;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/**
 * The target {@code row_codec} of tests/fuzz: a hostile peer has written the bytes of a batch, which is read as rows of any
 * schema, in each way that there is. Each row is one, or a {@link FaroException} says why not; what was read can be sent
 * again, and arrives equal.
 *
 * <pre>
 *   | columns - 1 | type, 16 if nullable, 32 * scale: for each | way, 8 if again | rows - 1 | batch … |
 * </pre>
 *
 * One byte each, except the batch; numbers of columns, types, ways and rows modulo how many there are. Behind the end there
 * are zeros. Jazzer runs it (./run fuzz), and {@link RowCodecFuzzTest} over its corpus.
 */
public final class RowCodecFuzz {
  static final int COLUMNS = 10;
  static final int NULLABLE = 16;
  static final int SCALE = 32;
  static final int WAYS = 4; // of reading, as the flags have them
  static final int AGAIN = 8;
  static final int ROWS = 20;

  /** How a batch is read. */
  enum Way {
    ROW_BY_ROW,
    NEXT,
    DRAIN
  }

  /** INVALID_ARGUMENT: a row of another width than the codec's. */
  private static final Set<Code> REFUSED = Set.of(Code.PROTOCOL_ERROR, Code.INVALID_ARGUMENT);

  private static final int SELF = 0;

  private static Cluster cluster; // for as long as the process lives
  private static QueryId query;
  private static Shuffle shuffle; // from SELF to itself
  private static Batch polled;
  private static ObjectReceiver<Object> receiver;
  private static RowCodec<?> codec = RowCodecs.BYTES; // of the receiver, at present
  private static GuardedMemory memory; // of the batch
  private static RowBuffer again; // large enough for any row
  private static long rowsRead;

  private RowCodecFuzz() {}

  /** Once, before all inputs. */
  public static void fuzzerInitialize() {
    cluster = new Cluster("auto", 2, 1);
    memory = new GuardedMemory(1 << 22);
    again = RowBuffer.over(ByteBuffer.allocateDirect(1 << 22));
    query = cluster.beginQuery();
    cluster.session(0).declareQuery(query, SELF);
    ShuffleSpec spec = new ShuffleSpec(query, 0, 0, new int[] {SELF}, new int[] {SELF});
    shuffle = cluster.worker(SELF).openShuffle(spec);
    polled = shuffle.receiver().newBatch();
    receiver = shuffle.receiver().objects(new PresentCodec());
  }

  /** Throws what is a finding. */
  public static void fuzzerTestOneInput(byte[] data) {
    ByteBuffer input = ByteBuffer.wrap(data);
    List<Column> schema = new ArrayList<>();
    for (int left = next(input) % COLUMNS; left >= 0; left--) {
      schema.add(column(next(input)));
    }
    int flags = next(input);
    int rows = 1 + next(input) % ROWS;
    byte[] bytes = Arrays.copyOfRange(data, input.position(), data.length);
    for (RowCodec<?> each :
        List.of(new SchemaCodec(schema), RowCodecs.BYTES, RowCodecs.STRING, RowCodecs.LONG)) {
      codec = each;
      read(bytes, rows, 0, flags);
      if (codec.rowBytes() != 0 && bytes.length >= codec.rowBytes()) {
        // What native code has checked of a batch of rows of one width.
        int whole = bytes.length / codec.rowBytes();
        read(Arrays.copyOf(bytes, whole * codec.rowBytes()), whole, codec.rowBytes(), flags);
      }
    }
  }

  /** The number of rows that were read of all inputs. */
  static long rowsRead() {
    return rowsRead;
  }

  private static int next(ByteBuffer input) {
    return input.hasRemaining() ? input.get() & 0xff : 0;
  }

  private static Column column(int described) {
    ColumnType type = ColumnType.values()[described % NULLABLE % ColumnType.values().length];
    boolean isDecimal = type == ColumnType.DECIMAL_18 || type == ColumnType.DECIMAL_38;
    return new Column(type, (described & NULLABLE) != 0, isDecimal ? described / SCALE : 0);
  }

  private static void read(byte[] bytes, int rows, int rowBytes, int flags) {
    Batch batch = receiver.frameForTest();
    batch.place(memory.put(bytes), null, bytes.length, rows, rowBytes, 0);
    Way way = Way.values()[flags % WAYS % Way.values().length];
    List<Object> objects = new ArrayList<>();
    Code refused = null;
    try {
      switch (way) {
        case ROW_BY_ROW -> readRowByRow(batch, objects);
        case NEXT -> {
          while (batch.rowsLeft() > 0 && receiver.next(Wait.NONE) == Outcome.DONE) {
            objects.add(receiver.get());
          }
        }
        case DRAIN -> receiver.drain(objects::add, Wait.NONE);
      }
    } catch (FaroException problem) {
      refused = problem.code();
    } finally {
      batch.forget();
    }
    rowsRead += objects.size();
    objects.forEach(object -> writeAgain(codec, object));
    require(refused == null || REFUSED.contains(refused), "refused by " + refused);
    if ((flags & AGAIN) != 0 && codec instanceof SchemaCodec schema && !objects.isEmpty()) {
      sendAgain(schema, (Object[]) objects.get(0));
    }
  }

  private static void readRowByRow(Batch batch, List<Object> objects) {
    while (batch.nextRow()) {
      if (codec.rowBytes() == 0 || codec.rowBytes() == batch.rowLength()) {
        objects.add(codec.read(batch, batch.rowOffset(), batch.rowLength()));
      }
    }
  }

  private static void sendAgain(SchemaCodec schema, Object[] row) {
    try {
      require(shuffle.sender().objects(new CodecAround<>(schema)).send(SELF, row, Wait.NONE) == Outcome.DONE, "there is room for a row");
    } catch (FaroException problem) { // 8 and 16 bytes hold more digits than 18 and 38
      boolean mayBe = schema.schema().stream().anyMatch(c -> c.type() == ColumnType.DECIMAL_38);
      require(mayBe && problem.code() == Code.INVALID_ARGUMENT, problem.toString());
      return;
    }
    shuffle.sender().flush();
    require(shuffle.receiver().receive(polled, Wait.NONE) == Outcome.DONE && polled.nextRow(), "the row arrives");
    Object[] arrived = schema.read(polled, polled.rowOffset(), polled.rowLength());
    require(Objects.deepEquals(row, arrived), "the row arrives equal");
    polled.release();
  }

  private static <T> void writeAgain(RowCodec<T> codec, Object object) {
    @SuppressWarnings("unchecked") // it has read it
    T its = (T) object;
    try {
      require(again.tryWrite(codec, its, 0) >= 0, "there is room for a row that was read");
    } catch (FaroException problem) {
      require(problem.getMessage().contains("too many digits"), problem.toString());
    }
  }

  private static void require(boolean holds, String what) {
    if (!holds) {
      throw new AssertionError("does not hold: " + what);
    }
  }

  private static final class PresentCodec implements RowCodec<Object> {
    @Override
    public int rowBytes() {
      return codec.rowBytes();
    }

    @Override
    public int maxBytes(Object object) {
      throw new AssertionError("a receiver sends nothing");
    }

    @Override
    public int write(Object object, RowWriter to) {
      throw new AssertionError("a receiver sends nothing");
    }

    @Override
    public Object read(Batch from, int at, int bytes) {
      return codec.read(from, at, bytes);
    }
  }
}
