package io.faro;

import java.lang.ref.Reference;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.util.Objects;

/**
 * Sends rows that lie in memory outside the Java heap, many by one native call; for engines with
 * rows of types that are known at run time, and with hashes of their own.
 *
 * <p>Rows, their offsets and their receivers lie in direct buffers, each from its position on up to
 * its limit, which stay as they are; or they are named by addresses, for a {@code MemorySegment}
 * {@code segment.address()} and {@code segment.byteSize()}. Integers are in the processor's byte
 * order, and aligned. Rows are numbered from 0 on. A call sends rows from … to-1 in order, the
 * first ones or all, and answers how many; if fewer than all, {@link #stoppedBy} says why:
 *
 * <pre>{@code
 * int at = 0;
 * while (at < count && sender.stoppedBy() != Outcome.STOPPED) {
 *   at += sender.sendRows(rows, at, count, receivers, Wait.NONE);
 *   … // receive
 * }
 * }</pre>
 *
 * <p>{@link #sendParts} sends one row, which lies in several places: a batch of columns, for
 * instance, as its buffers are.
 *
 * <p>Waiting, answers and threads are those of {@link ShuffleSender}; a time limit is for all rows
 * of a call together. A row for a receiver that has stopped counts as sent, unless all have
 * stopped. If a row is refused, the query fails, or the thread is interrupted, the exception is
 * thrown when some rows may have been sent: {@link #taken} says how many. Memory must stay valid
 * until the call returns. If another thread changes offsets or receivers meanwhile, no byte outside
 * of the rows is read all the same.
 *
 * <p>Errors: {@link Code#INVALID_ARGUMENT} if a receiver does not exist, or if offsets fall or lie
 * outside of the rows: the message names the row by its number, and those before were sent.
 * {@link Code#ROW_TOO_LARGE} likewise. {@link Code#INVALID_ARGUMENT}, and nothing was sent, if rows
 * by offsets are sent where the shuffle's have a fixed width, or the other way round, if rows of a
 * fixed width end behind the memory, and for a buffer of another kind.
 */
public final class MemorySender {
  private final ShuffleSender sender;
  private int taken;
  private Outcome stoppedBy = Outcome.DONE;

  MemorySender(ShuffleSender sender) {
    this.sender = sender;
  }

  /** Sends rows of the fixed width, which lie one behind the other: row i to receivers[i]. */
  @CheckReturnValue
  public int sendRows(ByteBuffer rows, int from, int to, IntBuffer receivers)
      throws InterruptedException {
    return sendRows(rows, from, to, receivers, Wait.FOREVER);
  }

  /**
   * Sends rows of the fixed width, which lie one behind the other: row i to receivers[i]. It waits
   * for room as long as {@code wait} says.
   */
  @CheckReturnValue
  public <X extends Exception> int sendRows(
      ByteBuffer rows, int from, int to, IntBuffer receivers, Wait<X> wait) throws X {
    begin();
    long first = addressOf(rows);
    long targets = addressOf(receivers, from, to);
    int sent = sendRows(first, rows.remaining(), from, to, targets, wait);
    Reference.reachabilityFence(rows);
    Reference.reachabilityFence(receivers);
    return sent;
  }

  /**
   * Sends rows of the fixed width by the addresses of all rows, of {@code bytes} bytes, and of the
   * receivers, of which there are at least {@code to}.
   */
  @CheckReturnValue
  public <X extends Exception> int sendRows(
      long rows, long bytes, int from, int to, long receivers, Wait<X> wait) throws X {
    begin();
    checkRows(bytes, from, to);
    checkAligned(receivers, Integer.BYTES, "receivers");
    return send(
        from,
        (handle, next, timeout) ->
            sendRows(handle, rows, bytes, next, to, receivers, timeout),
        wait);
  }

  /**
   * Sends rows with a length each to receivers[i]: row i lies from offsets[i] up to offsets[i + 1],
   * counted from the position of {@code rows}.
   */
  @CheckReturnValue
  public int sendRows(ByteBuffer rows, IntBuffer offsets, int from, int to, IntBuffer receivers)
      throws InterruptedException {
    return sendRows(rows, offsets, from, to, receivers, Wait.FOREVER);
  }

  /**
   * Sends rows with a length each to receivers[i]: row i lies from offsets[i] up to offsets[i + 1],
   * counted from the position of {@code rows}. It waits for room as long as {@code wait} says.
   */
  @CheckReturnValue
  public <X extends Exception> int sendRows(
      ByteBuffer rows, IntBuffer offsets, int from, int to, IntBuffer receivers, Wait<X> wait)
      throws X {
    begin();
    Objects.requireNonNull(offsets, "offsets");
    return sendByOffsets(rows, offsets, offsets.order(), Integer.BYTES, from, to, receivers, wait);
  }

  /**
   * Sends rows with a length each to receivers[i]: row i lies from offsets[i] up to offsets[i + 1],
   * counted from the position of {@code rows}.
   */
  @CheckReturnValue
  public int sendRows(ByteBuffer rows, LongBuffer offsets, int from, int to, IntBuffer receivers)
      throws InterruptedException {
    return sendRows(rows, offsets, from, to, receivers, Wait.FOREVER);
  }

  /**
   * Sends rows with a length each to receivers[i]: row i lies from offsets[i] up to offsets[i + 1],
   * counted from the position of {@code rows}. It waits for room as long as {@code wait} says.
   */
  @CheckReturnValue
  public <X extends Exception> int sendRows(
      ByteBuffer rows, LongBuffer offsets, int from, int to, IntBuffer receivers, Wait<X> wait)
      throws X {
    begin();
    Objects.requireNonNull(offsets, "offsets");
    return sendByOffsets(rows, offsets, offsets.order(), Long.BYTES, from, to, receivers, wait);
  }

  private <X extends Exception> int sendByOffsets(
      ByteBuffer rows,
      Buffer offsets,
      ByteOrder order,
      int offsetBytes,
      int from,
      int to,
      IntBuffer receivers,
      Wait<X> wait)
      throws X {
    long first = addressOf(rows);
    long ends = addressOf(offsets, order, offsetBytes, "offsets");
    long targets = addressOf(receivers, from, to);
    Objects.checkFromIndexSize(from, to - from + 1, offsets.remaining());
    int sent =
        sendRows(first, rows.remaining(), ends, offsetBytes, from, to, targets, wait);
    Reference.reachabilityFence(rows);
    Reference.reachabilityFence(offsets);
    Reference.reachabilityFence(receivers);
    return sent;
  }

  /**
   * Sends rows with a length each by the addresses of all rows, of {@code bytes} bytes, of the
   * offsets, which have {@code offsetBytes} bytes each, 4 or 8, and of the receivers. There are at
   * least {@code to + 1} offsets and {@code to} receivers.
   */
  @CheckReturnValue
  public <X extends Exception> int sendRows(
      long rows,
      long bytes,
      long offsets,
      int offsetBytes,
      int from,
      int to,
      long receivers,
      Wait<X> wait)
      throws X {
    begin();
    checkRows(bytes, from, to);
    checkAligned(receivers, Integer.BYTES, "receivers");
    if (offsetBytes != Integer.BYTES && offsetBytes != Long.BYTES) {
      throw new FaroException(
          Code.INVALID_ARGUMENT, "offsets of " + offsetBytes + " bytes: 4 or 8");
    }
    checkAligned(offsets, offsetBytes, "offsets");
    return send(
        from,
        (handle, next, timeout) ->
            sendRowsAt(handle, rows, bytes, offsets, offsetBytes, next, to, receivers, timeout),
        wait);
  }

  /**
   * Sends rows of the fixed width, which lie one behind the other, each to the receiver of its key:
   * of its {@code keyBytes} bytes from {@code keyOffset} on. Keys of 8 and 4 bytes are integers, of
   * which {@code partition} says where they belong, those of 4 bytes without a sign
   * ({@link Integer#toUnsignedLong}). Other keys belong where {@code faro::hash_bytes} of
   * {@code faro/hash.h} says, whatever the partition.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if the key does not lie within the row:
   *     nothing was sent
   */
  @CheckReturnValue
  public int sendAll(
      ByteBuffer rows, int from, int to, int keyOffset, int keyBytes, Partition partition)
      throws InterruptedException {
    return sendAll(rows, from, to, keyOffset, keyBytes, partition, Wait.FOREVER);
  }

  /**
   * Sends rows of the fixed width, each to the receiver of its key, as
   * {@link #sendAll(ByteBuffer, int, int, int, int, Partition)} does, waiting for room as long as
   * {@code wait} says.
   */
  @CheckReturnValue
  public <X extends Exception> int sendAll(
      ByteBuffer rows,
      int from,
      int to,
      int keyOffset,
      int keyBytes,
      Partition partition,
      Wait<X> wait)
      throws X {
    begin();
    long first = addressOf(rows);
    int sent = sendAll(first, rows.remaining(), from, to, keyOffset, keyBytes, partition, wait);
    Reference.reachabilityFence(rows);
    return sent;
  }

  /**
   * Sends rows of the fixed width, each to the receiver of its key, as
   * {@link #sendAll(ByteBuffer, int, int, int, int, Partition)} does, by the address of all rows,
   * of {@code bytes} bytes.
   */
  @CheckReturnValue
  public <X extends Exception> int sendAll(
      long rows,
      long bytes,
      int from,
      int to,
      int keyOffset,
      int keyBytes,
      Partition partition,
      Wait<X> wait)
      throws X {
    begin();
    Objects.requireNonNull(partition, "partition");
    checkRows(bytes, from, to);
    if (keyOffset < 0 || keyBytes < 0) {
      throw new FaroException(
          Code.INVALID_ARGUMENT, "a key of " + keyBytes + " bytes at " + keyOffset);
    }
    int hash = partition.number();
    return send(
        from,
        (handle, next, timeout) ->
            sendAll(handle, rows, bytes, next, to, keyOffset, keyBytes, hash, timeout),
        wait);
  }

  /** Sends one row that lies in several pieces, one behind the other. */
  @CheckReturnValue
  public Outcome sendParts(int receiver, ByteBuffer... pieces) throws InterruptedException {
    return sendParts(receiver, pieces, Wait.FOREVER);
  }

  /**
   * Sends one row that lies in several pieces, one behind the other. It waits for room as long as
   * {@code wait} says.
   */
  @CheckReturnValue
  public <X extends Exception> Outcome sendParts(int receiver, ByteBuffer[] pieces, Wait<X> wait)
      throws X {
    return sendParts(new int[] {receiver}, pieces, wait);
  }

  /**
   * Sends one row that lies in several pieces, one behind the other, to several receivers, each
   * named once: to all of them or to none. It waits for room as long as {@code wait} says. The
   * pieces are gathered where the row is sent from; one that is larger than a frame is copied to
   * overflow for that.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} for more than 65 536 pieces, for one that
   *     is not direct, or if all of them are not the fixed width; {@link Code#ROW_TOO_LARGE}. Then
   *     nothing was sent
   */
  @CheckReturnValue
  public <X extends Exception> Outcome sendParts(
      int[] receivers, ByteBuffer[] pieces, Wait<X> wait) throws X {
    begin();
    long[] addresses = new long[Objects.requireNonNull(pieces, "pieces").length];
    long[] bytes = new long[addresses.length];
    for (int i = 0; i < addresses.length; i++) {
      ByteBuffer piece = pieces[i];
      if (piece == null) {
        throw new NullPointerException("pieces[" + i + "]");
      }
      if (!piece.isDirect()) {
        throw notDirect("pieces[" + i + "]");
      }
      addresses[i] = NativeMemory.address(piece) + piece.position();
      bytes[i] = piece.remaining();
    }
    Outcome outcome = sendParts(receivers, addresses, bytes, wait);
    Reference.reachabilityFence(pieces);
    return outcome;
  }

  /**
   * Sends one row that lies in several pieces to several receivers, as
   * {@link #sendParts(int[], ByteBuffer[], Wait)} does: {@code bytes[i]} bytes at
   * {@code addresses[i]}, one behind the other.
   */
  @CheckReturnValue
  public <X extends Exception> Outcome sendParts(
      int[] receivers, long[] addresses, long[] bytes, Wait<X> wait) throws X {
    begin();
    Objects.requireNonNull(wait, "wait");
    sender.checkReceivers(receivers);
    Objects.requireNonNull(addresses, "addresses");
    if (Objects.requireNonNull(bytes, "bytes").length != addresses.length) {
      throw new FaroException(
          Code.INVALID_ARGUMENT,
          addresses.length + " addresses of pieces, and " + bytes.length + " lengths");
    }
    for (long each : bytes) {
      if (each < 0) {
        throw new FaroException(Code.INVALID_ARGUMENT, "a piece of " + each + " bytes");
      }
    }
    long handle = sender.shuffle().call();
    Worker.Attempt attempt =
        timeout -> sendParts(handle, receivers, addresses, bytes, timeout);
    Outcome outcome = Outcome.of(attempt.call(0));
    Worker worker = sender.shuffle().worker();
    stoppedBy = worker.goesOn(outcome, wait) ? worker.await(attempt, wait) : outcome;
    taken = stoppedBy == Outcome.DONE ? 1 : 0;
    return stoppedBy;
  }

  /** Why the last call took fewer rows than all; DONE if it took all, or has thrown. */
  public Outcome stoppedBy() {
    return stoppedBy;
  }

  /** How many rows the last call took, also if it has thrown an exception. */
  public int taken() {
    return taken;
  }

  /** Called first by every call: none of its rows is sent yet. */
  private void begin() {
    sender.shuffle().owner().enter();
    taken = 0;
    stoppedBy = Outcome.DONE;
    sender.shuffle().enter();
  }

  /** One native call, which sends rows from {@code next} on. */
  private interface Call {
    long send(long handle, int next, long timeout);
  }

  private <X extends Exception> int send(int from, Call call, Wait<X> wait) throws X {
    Objects.requireNonNull(wait, "wait");
    long handle = sender.shuffle().call();
    Worker.Attempt attempt =
        timeout -> {
          long result = call.send(handle, from + taken, timeout);
          taken = (int) result - from;
          return (int) (result >> 32);
        };
    Outcome outcome = Outcome.of(attempt.call(0));
    Worker worker = sender.shuffle().worker();
    stoppedBy = worker.goesOn(outcome, wait) ? worker.await(attempt, wait) : outcome;
    return taken;
  }

  private static void checkRows(long bytes, int from, int to) {
    Objects.checkFromToIndex(from, to, Integer.MAX_VALUE);
    if (bytes < 0) {
      throw new FaroException(Code.INVALID_ARGUMENT, "rows of " + bytes + " bytes in all");
    }
  }

  private static void checkAligned(long address, int bytes, String name) {
    if (address % bytes != 0) {
      throw new FaroException(
          Code.INVALID_ARGUMENT,
          name + ": their address is no multiple of their " + bytes + " bytes");
    }
  }

  private static long addressOf(ByteBuffer rows) {
    Objects.requireNonNull(rows, "rows");
    return addressOf(rows, ByteOrder.nativeOrder(), Byte.BYTES, "rows");
  }

  private static long addressOf(IntBuffer receivers, int from, int to) {
    Objects.requireNonNull(receivers, "receivers");
    Objects.checkFromToIndex(from, to, receivers.remaining());
    return addressOf(receivers, receivers.order(), Integer.BYTES, "receivers");
  }

  /** The address of what is at the position of a buffer. */
  private static long addressOf(Buffer buffer, ByteOrder order, int elementBytes, String name) {
    if (!buffer.isDirect()) {
      throw notDirect(name);
    }
    if (order != ByteOrder.nativeOrder()) {
      throw new FaroException(
          Code.INVALID_ARGUMENT,
          name + ": the buffer is " + order + ", and the processor " + ByteOrder.nativeOrder());
    }
    return NativeMemory.address(buffer) + (long) buffer.position() * elementBytes;
  }

  private static FaroException notDirect(String name) {
    return new FaroException(
        Code.INVALID_ARGUMENT, name + ": the buffer lies in the Java heap, and is not direct");
  }

  private static native int sendParts(
      long handle, int[] receivers, long[] addresses, long[] bytes, long timeout);

  private static native long sendRows(
      long handle, long rows, long bytes, int from, int to, long receivers, long timeout);

  private static native long sendRowsAt(
      long handle,
      long rows,
      long bytes,
      long offsets,
      int offsetBytes,
      int from,
      int to,
      long receivers,
      long timeout);

  private static native long sendAll(
      long handle,
      long rows,
      long bytes,
      int from,
      int to,
      int keyOffset,
      int keyBytes,
      int partition,
      long timeout);

  @Override
  public String toString() {
    return "rows in memory by the " + sender;
  }
}
