package io.faro.bench;

import io.faro.Partition;
import io.faro.Shuffle;
import java.util.function.BiFunction;

/** The level of Faro's API by which rows are sent and received. */
public enum RowsLevel {
  /** Arrays of longs: {@code LongSender.sendAll}, {@code Batch.getLongs}. */
  MANY(ManyRowsPort::new),
  /** One long at a time, in place: {@code LongSender.put} and {@code send}, {@code Batch.getLong}. */
  ONE(OneRowPort::new),
  /** Objects: {@code ObjectSender.sendAll}, {@code ObjectReceiver.drain} with {@code RowCodecs.LONG}. */
  CODEC(CodecPort::new);

  private final BiFunction<Shuffle, Partition, RowPort> ports;

  RowsLevel(BiFunction<Shuffle, Partition, RowPort> ports) {
    this.ports = ports;
  }

  /** A worker's end of a shuffle at this level. */
  RowPort open(Shuffle shuffle, Partition partition) {
    return ports.apply(shuffle, partition);
  }
}
