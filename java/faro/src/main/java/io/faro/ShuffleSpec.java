package io.faro;

import java.util.Arrays;
import java.util.Objects;

/**
 * What to open. Every worker that takes part opens an equal spec, in any order, at any time.
 *
 * <pre>{@code
 * ShuffleSpec.repartition(query, 0).withRowsOf(codec)      // all workers to all workers
 * ShuffleSpec.broadcast(query, 1, sender).withRowBytes(8)  // one worker to all
 * ShuffleSpec.gather(query, 2, receiver)                   // all to one; rows have a length each
 * ShuffleSpec.repartition(query, 3).withSenders(0, 1).withReceivers(2, 3)
 * }</pre>
 *
 * @param query the query
 * @param stage number of the shuffle operator in its query's plan, from 0
 * @param rowBytes width of every row; 0: rows have a length each
 * @param senders worker numbers; empty: all workers; with {@code cluster.node_limit}, those
 *     declared. All of the shuffle names a sender by its index here
 * @param receivers worker numbers; empty: all workers; with {@code cluster.node_limit}, those
 *     declared. All of the shuffle names a receiver by its index here
 * @param groups to whom this worker sends, as {@link #withGroups} says; none: each receiver by
 *     itself
 * @param delivery who gets the rows that are sent to a receiver
 */
public record ShuffleSpec(
    QueryId query,
    int stage,
    int rowBytes,
    int[] senders,
    int[] receivers,
    int[][] groups,
    Delivery delivery) {
  private static final int[] ALL = {};
  private static final int[][] NO_GROUPS = {};

  /**
   * Copies the arrays and checks the numbers. Whether the workers exist, and the groups are groups
   * of its receivers, is checked when the shuffle is opened.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} naming what is negative or too large
   */
  public ShuffleSpec {
    Objects.requireNonNull(query, "query");
    checkNotNegative("stage", stage);
    checkNotNegative("rowBytes", rowBytes);
    senders = copyOf("senders", senders);
    receivers = copyOf("receivers", receivers);
    groups = copyOf(groups);
    Objects.requireNonNull(delivery, "delivery");
  }

  /** A shuffle without groups, to workers. */
  public ShuffleSpec(QueryId query, int stage, int rowBytes, int[] senders, int[] receivers) {
    this(query, stage, rowBytes, senders, receivers, NO_GROUPS, Delivery.WORKER);
  }

  /** A shuffle from all workers to all workers. */
  public ShuffleSpec(QueryId query, int stage, int rowBytes) {
    this(query, stage, rowBytes, ALL, ALL);
  }

  /** A shuffle from all workers to all workers; rows have a length each. */
  public static ShuffleSpec repartition(QueryId query, int stage) {
    return new ShuffleSpec(query, stage, 0);
  }

  /**
   * A shuffle from one worker to all workers, by {@link ShuffleSender#broadcast}; rows have a
   * length each. With {@link Delivery#REPLICATE} they travel once to each node.
   */
  public static ShuffleSpec broadcast(QueryId query, int stage, int sender) {
    return repartition(query, stage).withSenders(sender);
  }

  /** A shuffle from all workers to one; rows have a length each. */
  public static ShuffleSpec gather(QueryId query, int stage, int receiver) {
    return repartition(query, stage).withReceivers(receiver);
  }

  /** This spec, but with rows of this width; 0: rows have a length each. */
  public ShuffleSpec withRowBytes(int width) {
    return new ShuffleSpec(query, stage, width, senders, receivers, groups, delivery);
  }

  /**
   * This spec, of objects, with rows as wide as the codec's: the codec need not be named again.
   */
  public <T> ObjectShuffleSpec<T> withRowsOf(RowCodec<T> codec) {
    Objects.requireNonNull(codec, "codec");
    return new ObjectShuffleSpec<>(withRowBytes(codec.rowBytes()), codec);
  }

  /** This spec, but with these workers as senders; none: all workers. */
  public ShuffleSpec withSenders(int... workers) {
    return new ShuffleSpec(query, stage, rowBytes, workers, receivers, groups, delivery);
  }

  /** This spec, but with these workers as receivers, in this order; none: all workers. */
  public ShuffleSpec withReceivers(int... workers) {
    return new ShuffleSpec(query, stage, rowBytes, senders, workers, groups, delivery);
  }

  /**
   * This spec, but with these groups, as lists of receivers by their index; none: each receiver by
   * itself. With groups, whatever sends names a group, by its index, where it names a receiver
   * otherwise, and a row for it goes to each of its members. Groups may overlap: a receiver that is
   * in two of them gets what is sent to either. Each sender has its own groups; receivers need not
   * know them.
   *
   * <p>Rows are written once, and copied once for each member, a frame of them at a time. Of one
   * sender, rows to one group arrive in order, and rows to two groups in any order. A group of one
   * is that receiver. Any other has a block of a quarter of {@code ring.bytes}, charged to {@code
   * overflow.memory_bytes} while the shuffle is open. A member that stops gets no more; a group has
   * stopped when all its members have.
   */
  public ShuffleSpec withGroups(int[]... groups) {
    return new ShuffleSpec(query, stage, rowBytes, senders, receivers, groups, delivery);
  }

  /** This spec, but with this delivery. */
  public ShuffleSpec withDelivery(Delivery delivery) {
    return new ShuffleSpec(query, stage, rowBytes, senders, receivers, groups, delivery);
  }

  /** Worker numbers, a copy; empty: all workers. */
  @Override
  public int[] senders() {
    return senders.clone();
  }

  /** Worker numbers, a copy; empty: all workers. */
  @Override
  public int[] receivers() {
    return receivers.clone();
  }

  /** The groups of this sender, a copy; empty: each receiver by itself. */
  @Override
  public int[][] groups() {
    return copyOf(groups);
  }

  /** Whether the other object is a spec with the same values, including the same workers. */
  @Override
  public boolean equals(Object other) {
    return other instanceof ShuffleSpec spec
        && query.equals(spec.query)
        && stage == spec.stage
        && rowBytes == spec.rowBytes
        && Arrays.equals(senders, spec.senders)
        && Arrays.equals(receivers, spec.receivers)
        && Arrays.deepEquals(groups, spec.groups)
        && delivery == spec.delivery;
  }

  @Override
  public int hashCode() {
    return Objects.hash(
        query,
        stage,
        rowBytes,
        Arrays.hashCode(senders),
        Arrays.hashCode(receivers),
        Arrays.deepHashCode(groups),
        delivery);
  }

  /** For instance "stage 2 of query 0:17, rowBytes 8, senders [0, 1], receivers all". */
  @Override
  public String toString() {
    return "stage %s of query %s, rowBytes %s, senders %s, receivers %s%s%s"
        .formatted(
            stage,
            query,
            rowBytes,
            workers(senders),
            workers(receivers),
            groups.length == 0 ? "" : ", groups " + Arrays.deepToString(groups),
            delivery == Delivery.WORKER ? "" : ", delivery " + delivery);
  }

  private static String workers(int[] numbers) {
    return numbers.length == 0 ? "all" : Arrays.toString(numbers);
  }

  /** Checks that the rows of a codec fit. */
  void checkCodec(RowCodec<?> codec) {
    if (codec.rowBytes() != rowBytes && rowBytes != 0) {
      throw new FaroException(
          Code.INVALID_ARGUMENT,
          "stage " + stage + ": rowBytes = " + rowBytes + ", of the codec " + codec.rowBytes());
    }
  }

  private static void checkNotNegative(String name, int value) {
    if (value < 0) {
      throw new FaroException(Code.INVALID_ARGUMENT, name + " = " + value + " is negative");
    }
  }

  private static int[][] copyOf(int[][] groups) {
    int[][] copy = Objects.requireNonNull(groups, "groups").clone();
    for (int g = 0; g < copy.length; g++) {
      copy[g] = Objects.requireNonNull(copy[g], "a group").clone();
      for (int member : copy[g]) {
        checkNotNegative("a member of group " + g, member);
      }
    }
    return copy;
  }

  private static int[] copyOf(String name, int[] workers) {
    int[] copy = Objects.requireNonNull(workers, name).clone();
    for (int worker : copy) {
      checkNotNegative("a worker of " + name, worker);
    }
    return copy;
  }
}
