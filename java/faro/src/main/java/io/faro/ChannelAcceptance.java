package io.faro;

import java.util.Objects;

/**
 * The answer to a {@link ChannelRequest}.
 *
 * <pre>{@code
 * // Poller 0 serves it, with the rings that the peer asks for, or less.
 * ChannelAcceptance.by(0)
 * // Poller 1 serves it, with smaller rings.
 * ChannelAcceptance.by(1).withRings(64 << 10, 64 << 10)
 * ChannelAcceptance.refused("no more guests today")
 * }</pre>
 *
 * <p>Threads: any; immutable.
 *
 * @param poller {@link Poller#index} of the one that serves the channel
 * @param sendBytes of the ring towards the peer, which never has more than that asks for. 0: as
 *     many as it asks for, or less if with these {@code channel.expected} channels did not fit
 *     {@code memory.limit_bytes}
 * @param receiveBytes of the ring from the peer; chosen as {@code sendBytes} is
 * @param refusal not null: there is no channel, for this reason, which the peer is told
 * @param endsWhenBroken see {@link ChannelSpec#endsWhenBroken}
 */
public record ChannelAcceptance(
    int poller, int sendBytes, int receiveBytes, String refusal, boolean endsWhenBroken) {
  /**
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if a number is negative, or the reason
   *     empty
   */
  public ChannelAcceptance {
    if ((poller | sendBytes | receiveBytes) < 0) {
      throw new FaroException(
          Code.INVALID_ARGUMENT,
          "poller " + poller + ", rings of " + sendBytes + " and " + receiveBytes
              + " bytes: none may be negative");
    }
    if (refusal != null && refusal.isEmpty()) {
      throw new FaroException(Code.INVALID_ARGUMENT, "a refusal without a reason");
    }
  }

  /**
   * That poller serves the channel, with the rings that the peer asks for, or as large as the
   * budget allows.
   */
  public static ChannelAcceptance by(int poller) {
    return new ChannelAcceptance(poller, 0, 0, null, false);
  }

  /** There is no channel, for this reason, which the peer is told: at most 1024 bytes of it. */
  public static ChannelAcceptance refused(String reason) {
    return new ChannelAcceptance(0, 0, 0, Objects.requireNonNull(reason, "reason"), false);
  }

  /**
   * This acceptance, but with rings that are no larger than this, rounded down to powers of two,
   * and of at least 4 KiB.
   */
  public ChannelAcceptance withRings(int sendBytes, int receiveBytes) {
    return new ChannelAcceptance(poller, sendBytes, receiveBytes, refusal, endsWhenBroken);
  }

  /** This acceptance, but of a channel that ends at once when its connection breaks. */
  public ChannelAcceptance endingWhenBroken() {
    return new ChannelAcceptance(poller, sendBytes, receiveBytes, refusal, true);
  }
}
