package io.faro.flink;

import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Something that other threads offer to the I/O thread again and again, of which one offer at a
 * time has to be under way: credits, a subpartition with data.
 *
 * <p>The I/O thread resets the flag before it looks. A thread that offers changes what there is to
 * see first, and then sets the flag. So if an offer finds the flag set, it has come before the
 * reset, and the look that follows sees what it is about. If it comes later, it finds the flag
 * reset, and is handed over by itself. A look before the reset would lose the offers between the
 * two.
 *
 * <p>Threads: any, where nothing else is said.
 */
abstract class Coalesced implements IoThread.Command {
  private final AtomicBoolean offered = new AtomicBoolean();

  /** Has {@link #look} called after this. Never blocks. */
  final void offerTo(IoThread io) {
    if (!offered.get() && offered.compareAndSet(false, true)) {
      giveTo(io);
    }
  }

  /** Has it run, soon or now. */
  void giveTo(IoThread io) {
    io.execute(this);
  }

  @Override
  public final void run() {
    offered.getAndSet(false);
    look();
  }

  /** Looks at what was offered. Threads: the I/O thread, or whoever is in its place. */
  abstract void look();
}
