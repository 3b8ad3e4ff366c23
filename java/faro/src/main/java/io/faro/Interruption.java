package io.faro;

import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.spi.AbstractInterruptibleChannel;

/**
 * Ends the native waits of one worker or poller at once when their thread is interrupted. An
 * interruptible channel is the only way that the JDK offers to be told of an interrupt. Each
 * interrupt closes the channel, and the next wait makes a new one.
 *
 * <p>Threads: its owner's.
 */
final class Interruption {
  private final String waiting; // what waits, for messages
  private final Runnable interruptWait;
  private final Runnable clearInterrupt;
  private Channel channel;

  /**
   * @param waiting for instance {@code "worker 3"}
   * @param interruptWait ends the native wait under way, and the next one, from any thread
   * @param clearInterrupt ends that
   */
  Interruption(String waiting, Runnable interruptWait, Runnable clearInterrupt) {
    this.waiting = waiting;
    this.interruptWait = interruptWait;
    this.clearInterrupt = clearInterrupt;
  }

  /** Before a native wait; {@link #end} must follow. */
  void begin() {
    if (channel == null) {
      channel = new Channel(interruptWait);
    }
    channel.enter();
  }

  /**
   * After a native wait.
   *
   * @param result what it returned. Only a wait that did nothing is reported as interrupted;
   *     otherwise the thread stays interrupted, and its next wait ends at once.
   */
  void end(int result) throws InterruptedException {
    if (channel.leave()) {
      return;
    }
    channel = null;
    clearInterrupt.run();
    if (result == Outcome.WOULD_WAIT.number() && Thread.interrupted()) {
      throw new InterruptedException(waiting + " was interrupted");
    }
  }

  private static final class Channel extends AbstractInterruptibleChannel {
    private final Runnable interruptWait;

    Channel(Runnable interruptWait) {
      this.interruptWait = interruptWait;
    }

    void enter() {
      begin();
    }

    /** False if the thread was interrupted since {@link #enter}. */
    boolean leave() {
      try {
        end(true);
        return isOpen();
      } catch (ClosedByInterruptException interrupted) {
        return false;
      } catch (AsynchronousCloseException impossible) {
        throw new AssertionError(impossible);
      }
    }

    /** Called by the interrupting thread, once. */
    @Override
    protected void implCloseChannel() {
      interruptWait.run();
    }
  }
}
