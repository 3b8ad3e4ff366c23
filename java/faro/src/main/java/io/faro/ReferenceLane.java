package io.faro;

import java.util.Queue;
import org.jctools.queues.atomic.SpscAtomicArrayQueue;

/**
 * Objects that one worker hands to another one of its JVM, for one shuffle. For each of them a mark
 * stands in the ring between the two, among the rows that are bytes: the ring alone tells their order,
 * wakes the receiver and ends the stream.
 *
 * <pre>
 *   length word of a row in the ring:   &gt;= 0   that many bytes follow
 *                                       &lt;  0   a mark: its lower 31 bits are the number of the object
 *                                              in this lane, counted from 0, modulo 2^31
 * </pre>
 *
 * Numbers make up for marks that nobody has read, since their frame was dropped or released early:
 * their objects are passed over.
 *
 * <p>Threads: {@link #offer}: the sender's; {@link #take} and {@link #clear}: the receiver's. An
 * object is offered before its mark is written, and the ring publishes the mark, so that whoever reads
 * the mark finds the object.
 */
final class ReferenceLane {
  private static final int NUMBER_MASK = Integer.MAX_VALUE;

  private final Queue<Object> objects;
  private final int limit;
  private int offered; // the sender's
  private int taken; // the receiver's

  /** For at most {@code limit} objects under way, rounded up to a power of two, at least 4. */
  ReferenceLane(int limit) {
    SpscAtomicArrayQueue<Object> queue = new SpscAtomicArrayQueue<>(limit);
    objects = queue;
    this.limit = queue.capacity();
  }

  /** Hands an object over and returns its mark, which is negative; 0 if the lane is full. */
  int offer(Object object) {
    return objects.offer(object) ? offered++ | Integer.MIN_VALUE : 0;
  }

  /**
   * The object of a mark.
   *
   * @throws FaroException {@link Code#WRONG_STATE} if that of a later mark was taken before; {@link
   *     Code#QUERY_ENDED} if objects are kept no longer
   */
  Object take(int mark) {
    int passedOver = (mark - taken) & NUMBER_MASK;
    if (passedOver >= limit) {
      throw new FaroException(
          Code.WRONG_STATE, "the object was passed over: a later row of its sender was read before");
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

  /** Lets all objects go. */
  void clear() {
    while (objects.poll() != null) {
      taken++;
    }
  }
}
