package io.faro;

import java.util.Arrays;
import java.util.Objects;

/**
 * A peer that asks for a channel.
 *
 * <p>Threads: any; immutable.
 *
 * @param peer {@link EndpointSpec#name} of the peer
 * @param address where it connects from
 * @param greeting {@link ChannelSpec#greeting} of the peer
 * @param sendBytes of the ring towards the peer, as it asks
 * @param receiveBytes of the ring from the peer, as it asks
 */
public record ChannelRequest(
    String peer, String address, byte[] greeting, int sendBytes, int receiveBytes) {
  /** Copies the greeting. */
  public ChannelRequest {
    Objects.requireNonNull(peer, "peer");
    Objects.requireNonNull(address, "address");
    greeting = Objects.requireNonNull(greeting, "greeting").clone();
  }

  /** A copy. */
  @Override
  public byte[] greeting() {
    return greeting.clone();
  }

  /** Whether the other object is a request with the same values. */
  @Override
  public boolean equals(Object other) {
    return other instanceof ChannelRequest request
        && peer.equals(request.peer)
        && address.equals(request.address)
        && sendBytes == request.sendBytes
        && receiveBytes == request.receiveBytes
        && Arrays.equals(greeting, request.greeting);
  }

  @Override
  public int hashCode() {
    return Objects.hash(peer, address, sendBytes, receiveBytes, Arrays.hashCode(greeting));
  }
}
