package io.faro.flink;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * What a TaskManager with Flink's own (Netty) shuffle service is told that connects to a port of
 * Faro: an error, as that service's own protocol has it.
 *
 * <pre>
 *   0  length of all, 4 bytes
 *   4  a certain number, 4 bytes
 *   8  kind: 1, an error
 *   9  the exception, as Java serialises it
 *      0: it concerns all that was requested over the connection
 * </pre>
 */
final class NettyError {
  private static final int HEADER_BYTES = 9;
  private static final byte ERROR = 1;
  private static final String WHO = "This TaskManager uses Faro";

  private NettyError() {}

  /** Whether that is a part of what {@link #ofMixture} gives, of whichever release. */
  static boolean isOfFaro(byte[] answer) {
    return new String(answer, ISO_8859_1).contains(WHO);
  }

  /** It names both sides, since it is the other one that reads it. */
  static byte[] ofMixture() {
    IOException mixture =
        new IOException(
            WHO + ", and the one that has connected Flink's own (Netty) shuffle service: "
                + PeerProbe.REMEDY);
    mixture.setStackTrace(new StackTraceElement[0]);
    byte[] exception = Errors.of(mixture);
    int length = HEADER_BYTES + exception.length + 1;
    return ByteBuffer.allocate(length)
        .putInt(length)
        .putInt(PeerProbe.NETTY_MAGIC)
        .put(ERROR)
        .put(exception)
        .array();
  }
}
