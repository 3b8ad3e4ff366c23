package io.faro.flink;

import org.apache.flink.runtime.io.network.partition.consumer.RemoteInputChannel;

/**
 * A request of an input channel, from when it was made until it is cancelled. On the link it is
 * known by an index and a generation. It is offered to the I/O thread when the input channel has
 * credits that were not told.
 *
 * <p>Threads: the I/O thread's, except {@link #offerTo} and {@link #input}.
 */
final class Subscription extends Coalesced {
  private final ConsumerLink link;
  private final RemoteInputChannel input;
  private int index = -1;
  private int generation;
  private boolean credited; // among those whose credits the link has to tell
  private boolean cancelled;
  private int[] parts; // lengths of the buffers in the next one; null: it is one

  Subscription(ConsumerLink link, RemoteInputChannel input) {
    this.link = link;
    this.input = input;
  }

  RemoteInputChannel input() {
    return input;
  }

  int index() {
    return index;
  }

  int generation() {
    return generation;
  }

  /** By what the link knows it. */
  void name(int index, int generation) {
    this.index = index;
    this.generation = generation;
  }

  boolean isNamed() {
    return index >= 0;
  }

  boolean isCancelled() {
    return cancelled;
  }

  void cancelled() {
    cancelled = true;
  }

  @Override
  void look() {
    if (isNamed() && !cancelled && !credited) {
      credited = true;
      link.credited(this);
    }
  }

  /** How many credits to tell. From now on the link can be told of others. */
  int takeCredits() {
    credited = false;
    return cancelled ? 0 : input.getAndResetUnannouncedCredit();
  }

  void expectParts(int[] lengths) {
    parts = lengths;
  }

  int[] takeParts() {
    int[] taken = parts;
    parts = null;
    return taken;
  }
}
