package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Objects;

/**
 * How native code asks a {@link ChannelAcceptor}.
 *
 * <p>Threads: the network thread of the endpoint.
 */
final class AcceptCall {
  private final ChannelAcceptor acceptor;

  AcceptCall(ChannelAcceptor acceptor) {
    this.acceptor = acceptor;
  }

  /**
   * Called by jni/callbacks.cc. Stores poller, sendBytes, receiveBytes and endsWhenBroken in
   * {@code to}.
   *
   * @return why there is no channel; null: there is one
   */
  byte[] accept(
      byte[] peer, byte[] address, byte[] greeting, int sendBytes, int receiveBytes, int[] to) {
    try {
      ChannelRequest request =
          new ChannelRequest(
              new String(peer, UTF_8),
              new String(address, UTF_8),
              greeting,
              sendBytes,
              receiveBytes);
      ChannelAcceptance answer =
          Objects.requireNonNull(acceptor.accept(request), "the answer of the acceptor");
      to[0] = answer.poller();
      to[1] = answer.sendBytes();
      to[2] = answer.receiveBytes();
      to[3] = answer.endsWhenBroken() ? 1 : 0;
      return answer.refusal() == null ? null : answer.refusal().getBytes(UTF_8);
    } catch (Throwable problem) { // the network thread goes on
      NativeLog.warn("an acceptor of channels has thrown; the peer is refused", problem);
      return ("the acceptor has thrown " + problem).getBytes(UTF_8);
    }
  }
}
