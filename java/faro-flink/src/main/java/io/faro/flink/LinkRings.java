package io.faro.flink;

import org.apache.flink.configuration.IllegalConfigurationException;

/**
 * How large the rings of a link are, so that as many links as are expected fit the memory there is.
 *
 * @param requestBytes of the ring from consumer to producer
 * @param dataBytes of the ring from producer to consumer
 */
record LinkRings(int requestBytes, int dataBytes) {
  private static final int LEAST_REQUEST_BYTES = 8 << 10;
  private static final int LEAST_DATA_BYTES = 16 << 10;
  private static final int MOST_REQUEST_BYTES = 64 << 10;
  private static final int MOST_DATA_BYTES = 256 << 20;

  /**
   * @throws IllegalConfigurationException with the figures, if that is too little memory
   */
  static LinkRings fitting(long limitBytes, int links, long mostDataBytes) {
    if (Long.bitCount(mostDataBytes) != 1 || mostDataBytes < LEAST_DATA_BYTES || mostDataBytes > MOST_DATA_BYTES) {
      throw new IllegalConfigurationException(
          FaroOptions.RING_SIZE.key() + " is " + mostDataBytes + " bytes; it has to be a power of two, 16 kb to 256 mb.");
    }
    long share = limitBytes / links;
    for (long data = mostDataBytes; data >= LEAST_DATA_BYTES; data /= 2) {
      long request = Math.max(LEAST_REQUEST_BYTES, Math.min(MOST_REQUEST_BYTES, data / 8));
      LinkRings rings = new LinkRings((int) request, (int) data);
      if (rings.memoryBytes() <= share) {
        return rings;
      }
    }
    long least = new LinkRings(LEAST_REQUEST_BYTES, LEAST_DATA_BYTES).memoryBytes();
    throw new IllegalConfigurationException(
        FaroOptions.MEMORY_LIMIT.key() + " is " + limitBytes + " bytes, too little for "
            + FaroOptions.LINKS_EXPECTED.key() + " = " + links + ": a link takes at least " + least
            + " bytes, so they take " + least * links + ".");
  }

  /** What a link takes, over the transport that takes most. */
  long memoryBytes() {
    return (long) requestBytes + dataBytes + OVERHEAD_BYTES;
  }

  /** Beside the rings: their headers, and what the transports have for themselves. */
  private static final int OVERHEAD_BYTES = 16 << 10;
}
