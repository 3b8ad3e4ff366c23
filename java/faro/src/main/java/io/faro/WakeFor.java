package io.faro;

/**
 * What ends a wait of a {@link Poller}, beside a channel that opens or has ended, and
 * {@link Poller#wake}. What is not waited for is not lost: {@link Poller#poll} tells it, and the
 * next wait for it ends at once.
 */
public enum WakeFor {
  /** Nothing else. */
  NOTHING,
  /**
   * Frames; also the end of a channel that either side drains, which comes behind the last frame:
   * wait for these until it has closed.
   */
  FRAMES,
  /** Room for a claim that found none. */
  ROOM,
  /** Both. */
  FRAMES_AND_ROOM;

  /** The number that native code knows; a test compares the two. */
  int number() {
    return ordinal();
  }
}
