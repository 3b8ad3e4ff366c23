package io.faro.flink;

import java.util.ArrayDeque;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * Says how large the rings of the next link are. Those that are expected get the rings that were
 * reckoned for them. Further ones get a small part of what is left, so that many more fit before a
 * link has to be refused.
 *
 * <p>Faro counts what a link takes when it is set up. Until then a link that was dialled or
 * accepted has a reservation here.
 *
 * <p>Threads: any.
 */
final class LinkMemory {
  /** A link that was not expected takes at most this part of what is left: one in that number. */
  private static final int PARTS = 16;

  // The largest sizes come first; the first is that of the links that are expected.
  private final List<LinkRings> sizes;
  private final long limit;
  private final int expected;
  private final long openingNanos; // a link opens within that, or never
  private final LongSupplier taken;
  private final LongSupplier clock;
  private final Consumer<String> warning;
  // Those that have not opened; the oldest comes first.
  private final ArrayDeque<Reservation> accepted = new ArrayDeque<>();
  private int links;
  private long reserved;
  private boolean hasWarned;

  /**
   * @param sizes largest first; the first is what each of {@code expected} links gets
   * @param taken what Faro counts now
   * @param clock nanoseconds
   * @param warning told once when three quarters are taken
   */
  LinkMemory(
      List<LinkRings> sizes,
      long limit,
      int expected,
      long openingNanos,
      LongSupplier taken,
      LongSupplier clock,
      Consumer<String> warning) {
    this.sizes = sizes;
    this.limit = limit;
    this.expected = expected;
    this.openingNanos = openingNanos;
    this.taken = taken;
    this.clock = clock;
    this.warning = warning;
  }

  /** What a link may take, until it is closed. */
  final class Reservation implements AutoCloseable {
    private final LinkRings rings;
    private final long madeAt = clock.getAsLong();
    private boolean isClosed;

    private Reservation(LinkRings rings) {
      this.rings = rings;
    }

    LinkRings rings() {
      return rings;
    }

    /** The link has ended, or will never open. Idempotent. */
    @Override
    public void close() {
      giveBack(this);
    }
  }

  /** For a link that is being dialled. */
  synchronized Reservation dial() {
    return reserve(Integer.MAX_VALUE);
  }

  /**
   * A peer dials, with a ring for data of at most that size: the rings that it gets.
   * {@link #accepted} may follow.
   */
  synchronized LinkRings accept(int mostDataBytes) {
    Reservation made = reserve(mostDataBytes);
    accepted.add(made);
    return made.rings;
  }

  /** A link that was accepted has opened. */
  synchronized Reservation accepted() {
    // All links are served soon: that it is another one's makes no difference.
    Reservation oldest = accepted.poll();
    return oldest == null ? reserve(Integer.MAX_VALUE) : oldest;
  }

  /** What links have that are open or being opened, as it was reckoned. */
  synchronized long reserved() {
    return reserved;
  }

  private Reservation reserve(int mostDataBytes) {
    while (!accepted.isEmpty() && clock.getAsLong() - accepted.peek().madeAt > openingNanos) {
      giveBack(accepted.poll());
    }
    long left = Math.max(0, limit - Math.max(taken.getAsLong(), reserved));
    Reservation made =
        new Reservation(largest(mostDataBytes, links < expected ? left : left / PARTS));
    links++;
    reserved += made.rings.memoryBytes();
    warn();
    return made;
  }

  private LinkRings largest(int mostDataBytes, long mostMemory) {
    for (LinkRings each : sizes) {
      if (each.dataBytes() <= mostDataBytes && each.memoryBytes() <= mostMemory) {
        return each;
      }
    }
    // Faro refuses the link, with its figures, if it does not fit
    return sizes.get(sizes.size() - 1);
  }

  private synchronized void giveBack(Reservation of) {
    if (!of.isClosed) {
      of.isClosed = true;
      links--;
      reserved -= of.rings.memoryBytes();
      warn();
    }
  }

  // Once, until half of the memory is free again.
  private void warn() {
    long now = Math.max(taken.getAsLong(), reserved);
    if (now < limit / 2) {
      hasWarned = false;
    } else if (now >= limit / 4 * 3 && !hasWarned) {
      hasWarned = true;
      warning.accept(
          links + " links take " + now + " of the " + limit + " bytes that "
              + FaroOptions.MEMORY_LIMIT.key() + " allows; " + FaroOptions.LINKS_EXPECTED.key()
              + " is " + expected + ". Further links get smaller rings, down to "
              + sizes.get(sizes.size() - 1).dataBytes()
              + " bytes, and are refused when nothing is left: raise "
              + FaroOptions.MEMORY_LIMIT.key()
              + ", with room for it in taskmanager.memory.jvm-overhead.");
    }
  }
}
