package io.faro;

import java.util.Objects;

/**
 * A shuffle of objects to open, and the codec of both its sides. Made by
 * {@link ShuffleSpec#withRowsOf}, or from a spec whose rows have a length each: that takes any
 * codec.
 *
 * @param spec what to open
 * @param codec turns its rows into objects
 * @param <T> the type of the objects
 */
public record ObjectShuffleSpec<T>(ShuffleSpec spec, RowCodec<T> codec) {
  /**
   * Checks that the rows of the codec fit.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if the rows of the spec have a width, but
   *     not the codec's
   */
  public ObjectShuffleSpec {
    Objects.requireNonNull(spec, "spec");
    spec.checkCodec(Objects.requireNonNull(codec, "codec"));
  }
}
