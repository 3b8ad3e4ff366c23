package io.faro;

import java.util.Arrays;
import java.util.Objects;

/**
 * What the dialling side asks for.
 *
 * <pre>{@code
 * new ChannelSpec().withRings(1 << 20, 64 << 10).withGreeting(partition)
 * }</pre>
 *
 * <p>Threads: any; immutable.
 *
 * @param sendBytes of the ring towards the peer: a power of two, 4 KiB … 256 MiB. The accepting
 *     side may make it smaller. 0: the endpoint chooses 256 KiB, or less if with these
 *     {@code channel.expected} channels did not fit {@code memory.limit_bytes}
 * @param receiveBytes of the ring from the peer; with the limits of {@code sendBytes}
 * @param greeting what the accepting side sees before it accepts; at most 4096 bytes
 * @param endsWhenBroken false: if its connection breaks while both processes live, the channel gets
 *     another one within {@code link.mend_ms}, and notices nothing but time. True: it ends at once,
 *     with {@link Code#PEER_LOST}, as it does if either side says so
 */
public record ChannelSpec(
    int sendBytes, int receiveBytes, byte[] greeting, boolean endsWhenBroken) {
  /** Copies the greeting. The numbers are checked by {@link Poller#connect}. */
  public ChannelSpec {
    greeting = Objects.requireNonNull(greeting, "greeting").clone();
  }

  /**
   * A spec whose rings the endpoint chooses, without a greeting; a connection that breaks is
   * mended.
   */
  public ChannelSpec() {
    this(0, 0, new byte[0], false);
  }

  /** This spec, but with rings of these sizes. */
  public ChannelSpec withRings(int sendBytes, int receiveBytes) {
    return new ChannelSpec(sendBytes, receiveBytes, greeting, endsWhenBroken);
  }

  /** This spec, but with this greeting. */
  public ChannelSpec withGreeting(byte... greeting) {
    return new ChannelSpec(sendBytes, receiveBytes, greeting, endsWhenBroken);
  }

  /** This spec, but of a channel that ends at once when its connection breaks. */
  public ChannelSpec endingWhenBroken() {
    return new ChannelSpec(sendBytes, receiveBytes, greeting, true);
  }

  /** A copy. */
  @Override
  public byte[] greeting() {
    return greeting.clone();
  }

  /** Whether the other object is a spec with the same values. */
  @Override
  public boolean equals(Object other) {
    return other instanceof ChannelSpec spec
        && sendBytes == spec.sendBytes
        && receiveBytes == spec.receiveBytes
        && endsWhenBroken == spec.endsWhenBroken
        && Arrays.equals(greeting, spec.greeting);
  }

  @Override
  public int hashCode() {
    return Objects.hash(sendBytes, receiveBytes, Arrays.hashCode(greeting), endsWhenBroken);
  }
}
