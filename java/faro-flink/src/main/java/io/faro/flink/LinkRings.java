package io.faro.flink;

import io.faro.ChannelSpec;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.configuration.IllegalConfigurationException;

/**
 * How large the rings of a link are, so that as many links as are expected fit the memory there is.
 *
 * @param requestBytes of the ring from consumer to producer
 * @param dataBytes of the ring from producer to consumer
 * @param memoryBytes what a link takes of the limit, on the side and over the transport that take
 *     most: the rings and what the transport has beside them
 */
record LinkRings(int requestBytes, int dataBytes, long memoryBytes) {
  private static final int LEAST_REQUEST_BYTES = 8 << 10;
  private static final int LEAST_DATA_BYTES = 16 << 10;
  private static final int MOST_REQUEST_BYTES = 64 << 10;
  private static final int MOST_DATA_BYTES = 256 << 20;

  /** What channels take of the limit, as Faro counts it: {@link io.faro.Endpoint#channelMemory}. */
  interface Memory {
    long[] of(List<ChannelSpec> channels);
  }

  /**
   * The largest with which {@code links} fit, and all smaller ones behind it.
   *
   * @throws IllegalConfigurationException with the figures, if that is too little memory
   */
  static List<LinkRings> fitting(long limitBytes, int links, long mostDataBytes, Memory memory) {
    if (Long.bitCount(mostDataBytes) != 1
        || mostDataBytes < LEAST_DATA_BYTES
        || mostDataBytes > MOST_DATA_BYTES) {
      throw new IllegalConfigurationException(
          FaroOptions.RING_SIZE.key() + " is " + mostDataBytes
              + " bytes; it has to be a power of two, 16 kb to 256 mb.");
    }
    List<LinkRings> sizes = largestFirst((int) mostDataBytes, memory);
    for (int i = 0; i < sizes.size(); i++) {
      if (sizes.get(i).memoryBytes <= limitBytes / links) {
        return List.copyOf(sizes.subList(i, sizes.size()));
      }
    }
    long least = sizes.get(sizes.size() - 1).memoryBytes;
    throw new IllegalConfigurationException(
        FaroOptions.MEMORY_LIMIT.key() + " is " + limitBytes + " bytes, too little for "
            + FaroOptions.LINKS_EXPECTED.key() + " = " + links + ": a link takes at least " + least
            + " bytes over the transport that takes most, so they take " + least * links + ".");
  }

  private static List<LinkRings> largestFirst(int mostDataBytes, Memory memory) {
    List<ChannelSpec> sides = new ArrayList<>(); // of each size the consumer's, and the producer's
    for (int data = mostDataBytes; data >= LEAST_DATA_BYTES; data /= 2) {
      int request = Math.max(LEAST_REQUEST_BYTES, Math.min(MOST_REQUEST_BYTES, data / 8));
      sides.add(new ChannelSpec().withRings(request, data));
      sides.add(new ChannelSpec().withRings(data, request));
    }
    long[] bytes = memory.of(sides);
    List<LinkRings> sizes = new ArrayList<>();
    for (int i = 0; i < bytes.length; i += 2) {
      ChannelSpec consumer = sides.get(i);
      sizes.add(
          new LinkRings(
              consumer.sendBytes(), consumer.receiveBytes(), Math.max(bytes[i], bytes[i + 1])));
    }
    return sizes;
  }
}
