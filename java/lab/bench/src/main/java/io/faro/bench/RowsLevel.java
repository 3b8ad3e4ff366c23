package io.faro.bench;

import io.faro.Partition;
import io.faro.Shuffle;

/** The level of Faro's API by which rows are sent and received. */
public enum RowsLevel {
  /** Arrays of longs: {@code LongSender.sendAll}, {@code Batch.getLongs}. */
  MANY {
    @Override
    RowPort open(Shuffle shuffle, Partition partition) {
      return new ManyRowsPort(shuffle, partition);
    }
  },
  /** One long at a time, in place: {@code LongSender.put} and {@code send}, {@code Batch.getLong}. */
  ONE {
    @Override
    RowPort open(Shuffle shuffle, Partition partition) {
      return new OneRowPort(shuffle, partition);
    }
  },
  /** Objects: {@code ObjectSender.sendAll}, {@code ObjectReceiver.drain} with {@code RowCodecs.LONG}. */
  CODEC {
    @Override
    RowPort open(Shuffle shuffle, Partition partition) {
      return new CodecPort(shuffle, partition);
    }
  };

  /** A worker's end of a shuffle at this level. */
  abstract RowPort open(Shuffle shuffle, Partition partition);
}
