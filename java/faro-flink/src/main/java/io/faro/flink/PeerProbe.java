package io.faro.flink;

import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.channels.UnresolvedAddressException;

/**
 * Looks what listens at an address that Faro does not get an answer from.
 *
 * <p>A data port of Flink's own shuffle service takes what Faro says for the beginning of a long
 * message, and waits. It does answer to a whole message that it does not know, with one that begins
 * by a certain number. Faro knows that message as a probe (native/wire/preamble.h), and warns of
 * nobody.
 */
final class PeerProbe {
  /** With which every message of Flink's own shuffle service begins, behind its length. */
  static final int NETTY_MAGIC = 0xBADC0FFE;

  /** What an operator does about a mixture of the two. */
  static final String REMEDY =
      "set shuffle-service-factory.class to the same on all TaskManagers and the JobManager.";

  private static final int BYTES = 24;
  // "FARO", where a message of Flink's own has its magic number
  private static final int FARO_MAGIC = 0x4641524F;
  private static final int ANSWER_MS = 400;
  private static final int ANSWER_LIMIT = 4096;

  private PeerProbe() {}

  /** What is sent: the length, who asks, and zeros. */
  static byte[] bytes() {
    return ByteBuffer.allocate(BYTES).putInt(BYTES).putInt(FARO_MAGIC).array();
  }

  private static byte[] rest(InputStream in, int bytes) throws IOException {
    return in.readNBytes(Math.max(0, Math.min(bytes, ANSWER_LIMIT)));
  }

  /**
   * Why Faro can not be spoken there; null: nothing is known. Blocks for less than a second; an
   * interrupt ends that.
   */
  static String obstacle(InetSocketAddress address) {
    try (SocketChannel channel = SocketChannel.open()) {
      channel.socket().connect(address, ANSWER_MS);
      channel.socket().setSoTimeout(ANSWER_MS);
      channel.write(ByteBuffer.wrap(bytes()));
      InputStream in = channel.socket().getInputStream();
      ByteBuffer head = ByteBuffer.wrap(in.readNBytes(8));
      if (head.limit() == 8
          && head.getInt(4) == NETTY_MAGIC
          && !NettyError.isOfFaro(rest(in, head.getInt(0) - 8))) {
        return "There is a TaskManager with Flink's own (Netty) shuffle service, and this one uses"
            + " Faro: " + REMEDY;
      }
      return null;
    } catch (ConnectException refused) {
      return "Nobody listens there (" + refused.getMessage() + ").";
    } catch (IOException | UnresolvedAddressException unknown) {
      return null;
    }
  }
}
