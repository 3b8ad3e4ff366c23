package io.faro.bench;

import java.io.IOException;

/** The way from one worker of the sockets middleware to another. */
interface NioPeer {
  /** Takes one row; false if there is no room now. */
  boolean put(int stage, long n);

  /** Whether one row, or an end, can be put. */
  boolean hasRoom();

  /** This worker sends no more rows of the stage. Only after hasRoom. */
  void putEnd(int stage);

  /** Sends what was put; whether all of it has gone. */
  boolean flush();

  /** Before sleeping: what could not be written must wake the worker. */
  void watchWritable();

  void close() throws IOException;
}
