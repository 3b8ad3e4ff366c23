package io.faro;

import static io.faro.FaroException.checked;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * Groups the rows of all workers by key: each worker adds its rows, and each group comes out once,
 * at one worker. Opened by {@link Worker#openAggregation}.
 *
 * <pre>{@code
 * try (Aggregation sums = worker.openAggregation(spec)) {
 *   for (Object[] row : rows) {
 *     if (sums.add(row) != Outcome.DONE) { … }
 *   }
 *   sums.finish();
 *   while (sums.next() == Outcome.DONE) {
 *     use(sums.get());
 *   }
 * }
 * }</pre>
 *
 * <p>Rows and groups lie in memory outside the Java heap, in the bytes of {@link SchemaCodec}, and
 * cross into native code many at a time. Rows meet a table in which they are aggregated before they
 * are sent, or pass it, whichever takes less as measured; what does not fit
 * {@code operator.memory_bytes} is spilled through overflow.
 *
 * <p>What calls answer: DONE; WOULD_WAIT, with {@link Wait#NONE}, or DEADLINE: the same call goes
 * on; HOLDING: it would have to wait, but the worker holds batches; STOPPED: every receiver has
 * stopped: add no more, and finish all the same; END_OF_STREAM. A failure of the query is thrown.
 *
 * <p>Threads: those of its worker. Closed before all groups were handed out, and without
 * {@link #stop}, it fails the query. One that is forgotten with its session is closed by a cleaner.
 */
public final class Aggregation implements AutoCloseable {
  private static final int LENGTH = Integer.BYTES; // before a row of variable width
  private static final int ADDED_AT_ONCE = 64 * 1024;

  /** What ends the native object; it refers to nothing of the aggregation. */
  private record Ended(long handle) implements Runnable {
    @Override
    public void run() {
      destroy(handle);
    }
  }

  /** The groups that native code has handed out last, one after the other. */
  private static final class Cursor {
    private final Owner owner;
    private final SchemaCodec codec;
    // Where native code says which groups have come.
    private final long address;
    private final long bytes;
    private final long count;

    private Batch batch;
    private int left; // after the current one
    private int at; // the current one
    private int length = -1; // of it; -1: there is none
    private int behind;

    Cursor(Owner owner, SchemaCodec codec, long[] addresses) {
      this.owner = owner;
      this.codec = codec;
      address = addresses[2];
      bytes = addresses[3];
      count = addresses[4];
    }

    /** Stands before the groups that have come. */
    void take() {
      int all = Math.toIntExact(NativeMemory.getLong(bytes));
      batch = new Batch(owner, NativeMemory.getLong(address), all);
      left = NativeMemory.getInt(count);
      behind = 0;
    }

    /** Stands on no group, and before none. */
    void drop() {
      left = 0;
      length = -1;
    }

    /** Steps to the next one; false: there is none. */
    boolean step() {
      length = -1;
      if (left == 0) {
        return false;
      }
      length = codec.rowBytes();
      at = behind;
      if (length == 0) {
        length = batch.getInt(at);
        at += LENGTH;
      }
      behind = at + length;
      left--;
      return true;
    }

    Object[] get() {
      return length < 0 ? null : codec.read(batch, at, length);
    }
  }

  private final Worker worker;
  private final Owner owner; // of the worker
  private final List<Aggregation> open; // those of the worker
  private final AggregationSpec spec;
  private final SchemaCodec rows;
  private final SchemaCodec groups;
  private final long handle;
  private final Cleaner.Cleanable ending;
  private boolean isClosed;
  private AggregationMetrics last; // since it is closed

  private final Cursor cursor;
  private final long addedBytes; // where native code says how many

  // Rows that were written here, and not added yet: from `begin` up to `end`.
  private ByteBuffer memory = ByteBuffer.allocateDirect(ADDED_AT_ONCE);
  private RowWriter writer;
  private int begin;
  private int end;

  /** Makes one, which is in the list of open ones as long as it is. */
  Aggregation(
      Worker worker,
      AggregationSpec spec,
      long session,
      int localIndex,
      List<Aggregation> open) {
    this.worker = worker;
    this.open = open;
    owner = worker.owner();
    this.spec = spec;
    rows = new SchemaCodec(spec.rows());
    QueryId query = spec.query();
    handle =
        checked(
            make(
                session,
                localIndex,
                query.counter(),
                query.incarnation(),
                query.issuer(),
                spec.stage(),
                numbers(spec.senders()),
                numbers(spec.receivers()),
                numbers(columnNumbers(spec.rows())),
                numbers(spec.keys()),
                numbers(aggregateNumbers(spec.aggregates()))));
    ending = Session.CLEANER.register(this, new Ended(handle));
    groups = new SchemaCodec(columnsOf(columns(handle)));
    long[] addresses = new long[5];
    addresses(handle, addresses);
    addedBytes = addresses[1];
    cursor = new Cursor(owner, groups, addresses);
    writer = new RowWriter(owner, NativeMemory.address(memory));
    open.add(this);
  }

  /** What it was opened with. */
  public AggregationSpec spec() {
    return spec;
  }

  /** The columns of groups: the keys, then the functions. */
  public List<Column> schema() {
    return groups.schema();
  }

  /** Adds a row, waiting for room. */
  @CheckReturnValue
  public Outcome add(Object[] row) throws InterruptedException {
    return add(row, Wait.FOREVER);
  }

  /**
   * Adds a row: writes it to memory, which is added when it is full, or by {@link #finish}. It
   * waits for room as long as {@code wait} says. After any other answer than DONE the row was not
   * added.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if the row does not fit the schema, which
   *     names the column; {@link Code#WRONG_STATE} after {@link #finish}
   */
  @CheckReturnValue
  public <X extends Exception> Outcome add(Object[] row, Wait<X> wait) throws X {
    Objects.requireNonNull(row, "row");
    Objects.requireNonNull(wait, "wait");
    enter();
    int width = rows.rowBytes();
    int most = width == 0 ? Math.addExact(LENGTH, rows.maxBytes(row)) : width;
    if (most > memory.capacity() - end) {
      Outcome outcome = flush(wait);
      if (outcome != Outcome.DONE) {
        return outcome;
      }
      makeRoom(most);
    }
    int header = width == 0 ? LENGTH : 0;
    writer.claimAt(end + header, most - header);
    int written = rows.write(row, writer);
    if (width == 0) {
      NativeMemory.putInt(NativeMemory.address(memory) + end, written);
    }
    end += header + written;
    return Outcome.DONE;
  }

  private void makeRoom(int most) {
    if (most <= memory.capacity()) {
      return;
    }
    memory = ByteBuffer.allocateDirect(most);
    writer = new RowWriter(owner, NativeMemory.address(memory));
  }

  /** Adds rows that lie in memory, waiting for room. */
  @CheckReturnValue
  public Outcome addRows(ByteBuffer packed) throws InterruptedException {
    return addRows(packed, Wait.FOREVER);
  }

  /**
   * Adds rows that lie in a direct buffer from its position up to its limit, in the bytes of
   * {@link SchemaCodec}: one behind the other, of the width of the schema, or each with its length
   * of 4 bytes in front. Its position moves behind the rows that were added, also if it throws.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if the buffer is not direct, or has bytes
   *     that are no row: those before were added
   */
  @CheckReturnValue
  public <X extends Exception> Outcome addRows(ByteBuffer packed, Wait<X> wait) throws X {
    Objects.requireNonNull(packed, "packed");
    if (!packed.isDirect()) {
      throw new FaroException(
          Code.INVALID_ARGUMENT, "packed: the buffer lies in the Java heap, and is not direct");
    }
    enter();
    Outcome outcome = flush(wait); // in the order in which they were added
    if (outcome != Outcome.DONE || !packed.hasRemaining()) {
      return outcome;
    }
    int first = packed.position();
    long address = NativeMemory.address(packed) + first;
    try {
      return add(address, packed.remaining(), wait);
    } finally {
      packed.position(first + added());
      Reference.reachabilityFence(packed);
    }
  }

  private <X extends Exception> Outcome flush(Wait<X> wait) throws X {
    if (begin < end) {
      Outcome outcome;
      try {
        outcome = add(NativeMemory.address(memory) + begin, end - begin, wait);
      } finally {
        begin += added();
        Reference.reachabilityFence(memory);
      }
      if (outcome != Outcome.DONE) {
        return outcome;
      }
    }
    begin = 0;
    end = 0;
    return Outcome.DONE;
  }

  private int added() {
    return (int) NativeMemory.getLong(addedBytes);
  }

  // Each attempt adds on from where the one before has ended.
  private <X extends Exception> Outcome add(long address, int count, Wait<X> wait) throws X {
    int[] done = {0};
    Worker.Attempt attempt =
        timeout -> {
          int result = add(handle, address + done[0], count - done[0], timeout);
          done[0] += added();
          NativeMemory.putLong(addedBytes, done[0]);
          return result;
        };
    NativeMemory.putLong(addedBytes, 0);
    return call(attempt, wait);
  }

  /** Says that this worker adds no more rows. */
  @CheckReturnValue
  public Outcome finish() throws InterruptedException {
    return finish(Wait.FOREVER);
  }

  /** Says that this worker adds no more rows. Repeat it until it is DONE, or STOPPED. */
  @CheckReturnValue
  public <X extends Exception> Outcome finish(Wait<X> wait) throws X {
    enter();
    Outcome outcome = flush(wait);
    if (outcome != Outcome.DONE && outcome != Outcome.STOPPED) {
      return outcome;
    }
    begin = 0;
    end = 0;
    return call(timeout -> finish(handle, timeout), wait);
  }

  /** Steps to the next group, waiting for it. */
  @CheckReturnValue
  public Outcome next() throws InterruptedException {
    return next(Wait.FOREVER);
  }

  /**
   * Steps to the next group, waiting as long as {@code wait} says: groups come when every sender
   * has finished.
   *
   * @return DONE: {@link #get} makes it; END_OF_STREAM: there are no more, or none for this worker
   * @throws FaroException {@link Code#WRONG_STATE} before {@link #finish} is done
   */
  @CheckReturnValue
  public <X extends Exception> Outcome next(Wait<X> wait) throws X {
    enter();
    while (!cursor.step()) {
      Outcome outcome = call(timeout -> next(handle, timeout), wait);
      if (outcome != Outcome.DONE) {
        return outcome;
      }
      cursor.take();
    }
    return Outcome.DONE;
  }

  /** The group that the last {@link #next} has stepped to; null if there is none. */
  public Object[] get() {
    enter();
    return cursor.get();
  }

  /** Says that this worker needs no more groups; what it has to add it still adds. */
  public void stop() {
    enter();
    owner.nextEpoch();
    cursor.drop();
    checked(stop(handle));
  }

  /** What it has done at this worker until now; also after {@link #close}. */
  public AggregationMetrics metrics() {
    owner.enter();
    return isClosed ? last : read();
  }

  private AggregationMetrics read() {
    long[] values = new long[10];
    checked(metrics(handle, values));
    return new AggregationMetrics(
        values[0],
        values[1],
        values[2],
        values[3],
        values[4],
        values[5],
        values[6],
        values[7],
        values[8],
        values[9]);
  }

  /**
   * Closes, and gives back what it has taken. Before all groups were handed out, and without
   * {@link #stop}, the query fails on every participant. Closing twice is allowed.
   *
   * @throws FaroException {@link Code#WRONG_STATE} if another thread owns the worker
   */
  @Override
  public void close() {
    if (isClosed) {
      return;
    }
    owner.enter();
    owner.nextEpoch();
    last = read();
    isClosed = true;
    cursor.drop();
    open.remove(this);
    ending.clean();
  }

  private void enter() {
    owner.enter();
    if (isClosed) {
      throw new FaroException(
          Code.CLOSED, "the aggregation of stage " + spec.stage() + " was closed");
    }
  }

  private <X extends Exception> Outcome call(Worker.Attempt attempt, Wait<X> wait) throws X {
    Objects.requireNonNull(wait, "wait");
    owner.nextEpoch();
    Outcome outcome = Outcome.of(attempt.call(0));
    return worker.goesOn(outcome, wait) ? worker.await(attempt, wait) : outcome;
  }

  private static int[] numbers(List<Integer> of) {
    return of.stream().mapToInt(Integer::intValue).toArray();
  }

  private static List<Integer> columnNumbers(List<Column> columns) {
    List<Integer> numbers = new ArrayList<>();
    for (Column column : columns) {
      numbers.add(column.type().number());
      numbers.add(column.nullable() ? 1 : 0);
      numbers.add(column.scale());
      numbers.add(column.precision());
    }
    return numbers;
  }

  private static List<Integer> aggregateNumbers(List<Aggregate> aggregates) {
    List<Integer> numbers = new ArrayList<>();
    for (Aggregate aggregate : aggregates) {
      numbers.add(aggregate.function().number());
      numbers.add(aggregate.column());
      numbers.add(aggregate.result() == null ? 0 : 1);
      numbers.addAll(
          aggregate.result() == null
              ? List.of(0, 0, 0, 0)
              : columnNumbers(List.of(aggregate.result())));
    }
    return numbers;
  }

  private static List<Column> columnsOf(int[] numbers) {
    List<Column> columns = new ArrayList<>();
    for (int i = 0; i < numbers.length; i += 4) {
      ColumnType type = ColumnType.values()[numbers[i]];
      columns.add(new Column(type, numbers[i + 1] != 0, numbers[i + 2], numbers[i + 3]));
    }
    return columns;
  }

  // A column is four numbers: type, whether it may be null, scale, precision; an aggregate its
  // function, its column, whether its result is named, and that.
  private static native long make(
      long session,
      int worker,
      long counter,
      long incarnation,
      int issuer,
      int stage,
      int[] senders,
      int[] receivers,
      int[] columns,
      int[] keys,
      int[] aggregates);

  private static native int[] columns(long handle);

  // Stores where it is told how many rows and bytes were added last, and the address, the bytes and
  // the number of the groups that have come last.
  private static native void addresses(long handle, long[] to);

  private static native int add(long handle, long rows, long bytes, long timeout);

  private static native int finish(long handle, long timeout);

  private static native int next(long handle, long timeout);

  private static native int stop(long handle);

  private static native int metrics(long handle, long[] to);

  private static native void destroy(long handle);

  @Override
  public String toString() {
    return "aggregation of " + worker + ", stage " + spec.stage();
  }
}
