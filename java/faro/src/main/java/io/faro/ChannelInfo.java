package io.faro;

import java.util.Arrays;
import java.util.Objects;

/**
 * What is known of an open channel.
 *
 * <p>Threads: any; immutable.
 *
 * @param peer {@link EndpointSpec#name} of the peer
 * @param address where it listens, or connects from
 * @param transport {@code "shm"}, {@code "tcp"}, {@code "verbs"}
 * @param dialled whether this side has connected
 * @param greeting of the dialling side
 * @param sendBytes of the ring towards the peer
 * @param receiveBytes of the ring from the peer
 * @param leastFrameBytes a claim of this many bytes always finds space once the peer has released
 *     enough
 * @param endsWhenBroken {@link ChannelSpec#endsWhenBroken}: a side wants it so, or the transport
 *     cannot mend it
 */
public record ChannelInfo(
    String peer,
    String address,
    String transport,
    boolean dialled,
    byte[] greeting,
    int sendBytes,
    int receiveBytes,
    int leastFrameBytes,
    boolean endsWhenBroken) {
  /** Copies the greeting. */
  public ChannelInfo {
    greeting = greeting.clone();
  }

  /** A copy. */
  @Override
  public byte[] greeting() {
    return greeting.clone();
  }

  /** Whether the other object has the same values. */
  @Override
  public boolean equals(Object other) {
    return other instanceof ChannelInfo info
        && peer.equals(info.peer)
        && address.equals(info.address)
        && transport.equals(info.transport)
        && dialled == info.dialled
        && sendBytes == info.sendBytes
        && receiveBytes == info.receiveBytes
        && leastFrameBytes == info.leastFrameBytes
        && endsWhenBroken == info.endsWhenBroken
        && Arrays.equals(greeting, info.greeting);
  }

  @Override
  public int hashCode() {
    return Objects.hash(
        peer,
        address,
        transport,
        dialled,
        sendBytes,
        receiveBytes,
        leastFrameBytes,
        endsWhenBroken,
        Arrays.hashCode(greeting));
  }
}
