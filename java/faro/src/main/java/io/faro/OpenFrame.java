package io.faro;

import java.nio.ByteBuffer;
import java.nio.LongBuffer;

/**
 * Where the next row for one receiver goes. {@link OpenFrames} tells when this holds.
 *
 * <p>Threads: the worker's.
 */
final class OpenFrame {
  final int receiver;

  ByteBuffer memory; // the ring, or a frame in the outgoing overflow; may be null while there is no room
  LongBuffer longs; // the same memory
  long base; // the address where it begins
  int at; // in memory: of the next row
  int end; // in memory: of the frame; 0: Java has no cursor
  int newRows; // rows with a length each, written in this epoch

  OpenFrame(int receiver) {
    this.receiver = receiver;
  }

  int room() {
    return end - at;
  }
}
