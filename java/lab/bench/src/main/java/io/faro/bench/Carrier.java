package io.faro.bench;

/** What carries the rows; numbers below 100 are those of {@code native/lab/bench/carrier.h}. */
public enum Carrier {
  AUTO(0),
  SHM(1),
  TCP(2),
  VERBS(3),
  /** Java NIO sockets, rows gathered in outgoing buffers of 16 KiB. */
  NIO(100),
  /** Java NIO sockets as in the paper: every row is written at once. */
  NIO_PAPER(101),
  /** What a {@link BackendProvider} in the class path knows. */
  PROVIDED(200);

  private final int number;

  Carrier(int number) {
    this.number = number;
  }

  int number() {
    return number;
  }

  boolean isFaro() {
    return number < 100;
  }

  static Carrier of(String name) {
    for (Carrier carrier : values()) {
      if (carrier.toString().equals(name)) {
        return carrier;
      }
    }
    return PROVIDED;
  }

  @Override
  public String toString() {
    return name().toLowerCase(java.util.Locale.ROOT).replace('_', '-');
  }
}
