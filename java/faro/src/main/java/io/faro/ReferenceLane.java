package io.faro;

import java.util.Queue;
import org.jctools.queues.atomic.SpscAtomicArrayQueue;

/**
 * The objects that one worker passes to another one in its JVM, for one shuffle. Each of them has a
 * mark in the ring between the two, among the rows that are bytes: the ring alone determines their
 * order, wakes the receiver and ends the stream.
 *
 * <pre>
 *   length word of a row in the ring:   &gt;= 0   that many bytes follow
 *                                       &lt;  0   a mark: its lower 31 bits are the number of
 *                                              the object in this lane, counted from 0, modulo 2^31
 * </pre>
 *
 * The numbers allow for marks that were never read, because their frame was dropped or released
 * early: their objects are skipped.
 *
 * <p>Threads: {@link #offer}: the sender's; {@link #take} and {@link #clear}: the receiver's. An
 * object is offered before its mark is written, and the ring publishes the mark, so that whoever
 * reads the mark finds the object.
 */
final class ReferenceLane {
  private static final int NUMBER_MASK = Integer.MAX_VALUE;

  private final Queue<Object> objects;
  private final int limit;
  private int offered; // the sender's
  private int taken; // the receiver's

  /** For at most {@code limit} objects in flight, rounded up to a power of two, at least 4. */
  ReferenceLane(int limit) {
    SpscAtomicArrayQueue<Object> queue = new SpscAtomicArrayQueue<>(limit);
    objects = queue;
    this.limit = queue.capacity();
  }

  /** Passes an object and returns its mark, which is negative; 0 if the lane is full. */
  int offer(Object object) {
    return objects.offer(object) ? offered++ | Integer.MIN_VALUE : 0;
  }

  /**
   * The object of a mark.
   *
   * @throws FaroException {@link Code#WRONG_STATE} if the object of a later mark was taken before;
   *     {@link Code#QUERY_ENDED} if objects are no longer kept
   */
  Object take(int mark) {
    int passedOver = (mark - taken) & NUMBER_MASK;
    if (passedOver >= limit) {
      throw new FaroException(
          Code.WRONG_STATE,
          "the object was passed over: a later row of its sender was read before");
    }
    for (; passedOver > 0; passedOver--) {
      objects.poll();
      taken++;
    }
    Object object = objects.poll();
    taken++;
    if (object == null) {
      throw new FaroException(Code.QUERY_ENDED, "the query of this object has ended");
    }
    return object;
  }

  /** Drops all objects. */
  void clear() {
    while (objects.poll() != null) {
      taken++;
    }
  }
}
