package io.faro.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import io.faro.flink.MessageHeader.Kind;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.buffer.Buffer.DataType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a peer announces is bounded by the kind of its message, and takes memory only as it comes. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
class MessageReaderTest {
  private static final int MEGABYTE = 1 << 20;

  /** One side, which keeps what it gets. */
  private record Side(boolean isProducer, List<byte[]> payloads) implements MessageReader.Receiver {
    @Override
    public int payloadLimit(byte kind) {
      return isProducer ? Kind.mostFromConsumer(kind) : Kind.mostFromProducer(kind);
    }

    @Override
    public Buffer openBuffer(MessageHeader header) {
      return null;
    }

    @Override
    public void onBuffer(MessageHeader header, Buffer buffer) {
      payloads.add(buffer == null ? null : TestBuffers.bytes(buffer));
    }

    @Override
    public void onMessage(MessageHeader header, byte[] payload) {
      payloads.add(payload);
    }
  }

  private final List<byte[]> payloads = new ArrayList<>();

  private MessageReader reader(boolean isProducer) {
    return new MessageReader(new Side(isProducer, payloads));
  }

  private static ByteBuffer piece(byte kind, DataType type, int total, byte[] here) {
    ByteBuffer frame = ByteBuffer.allocateDirect(MessageHeader.BYTES + here.length).order(ByteOrder.LITTLE_ENDIAN);
    MessageHeader header = new MessageHeader().of(kind, 0, 1);
    header.type = (byte) type.ordinal();
    header.total = total;
    header.here = here.length;
    header.write(frame, 0);
    return frame.put(MessageHeader.BYTES, here);
  }

  private static void read(MessageReader reader, ByteBuffer frame) throws IOException {
    reader.read(frame, 0, frame.capacity());
  }

  private static void areRefused(boolean isProducer, byte kind, int total) {
    MessageReader reader = new MessageReader(new Side(isProducer, new ArrayList<>()));
    String text =
        assertThrows(
                IOException.class, () -> read(reader, piece(kind, DataType.EVENT_BUFFER, total, new byte[0])))
            .getMessage();
    assertTrue(text.contains("The peer breaks Faro's protocol for Flink"), text);
  }

  @ParameterizedTest
  @ValueSource(
      bytes = {
        Kind.REQUEST, Kind.CREDIT, Kind.RESUME, Kind.ACKNOWLEDGE_ALL, Kind.BUFFER_SIZE, Kind.SEGMENT, Kind.CANCEL
      })
  void aConsumerAnnouncesNothingLongButATaskEvent(byte kind) {
    for (int total : new int[] {1 << 10, MEGABYTE, 1 << 30, Integer.MAX_VALUE, -1}) {
      areRefused(true, kind, total);
    }
  }

  @Test
  void nobodyAnnouncesMoreThanTheLongLimit() {
    areRefused(true, Kind.TASK_EVENT, MessageHeader.LONG_LIMIT + 1);
    for (byte kind : new byte[] {Kind.BUFFER, Kind.PARTS, Kind.ERROR, Kind.FATAL}) {
      areRefused(false, kind, MessageHeader.LONG_LIMIT + 1);
    }
    areRefused(false, Kind.BACKLOG, 1);
  }

  @Test
  void aSideTakesNoMessagesThatItSends() {
    for (byte kind : new byte[] {Kind.BUFFER, Kind.PARTS, Kind.BACKLOG, Kind.ERROR, Kind.FATAL, 0, 99, -1}) {
      areRefused(true, kind, 0);
    }
    for (byte kind : new byte[] {Kind.REQUEST, Kind.CREDIT, Kind.TASK_EVENT, Kind.CANCEL, 0, 99, -1}) {
      areRefused(false, kind, 0);
    }
  }

  // Allocated by this thread while it reads these messages, which announce much and send little.
  private static long allocatedFor(boolean isProducer, byte kind, int announcements) throws IOException {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    ByteBuffer frame = piece(kind, DataType.EVENT_BUFFER, MessageHeader.LONG_LIMIT, new byte[10]);
    long before = threads.getCurrentThreadAllocatedBytes();
    for (int i = 0; i < announcements; i++) {
      read(new MessageReader(new Side(isProducer, List.of())), frame);
    }
    return threads.getCurrentThreadAllocatedBytes() - before;
  }

  @Test
  void whatIsOnlyAnnouncedTakesNoMemory() throws Exception {
    assertTrue(allocatedFor(true, Kind.TASK_EVENT, 10) < MEGABYTE);
    for (byte kind : new byte[] {Kind.BUFFER, Kind.PARTS, Kind.ERROR, Kind.FATAL}) {
      assertTrue(allocatedFor(false, kind, 10) < MEGABYTE, kind + "");
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 4095, 4096, 4097, 100_000, 3_000_001})
  void whatComesInPiecesIsPutTogether(int bytes) throws Exception {
    byte[] contents = TestBuffers.contents(5, bytes);
    MessageReader reader = reader(false);
    for (byte kind : new byte[] {Kind.ERROR, Kind.BUFFER}) {
      int at = 0;
      for (int here = Math.min(bytes, 1000); at == 0 || at < bytes; at += Math.max(1, here), here = Math.min(bytes - at, 3 * here)) {
        byte[] part = Arrays.copyOfRange(contents, at, at + here);
        read(reader, piece(at == 0 ? kind : Kind.MORE, DataType.EVENT_BUFFER, bytes, part));
      }
    }
    assertEquals(2, payloads.size());
    assertArrayEquals(contents, payloads.get(0));
    assertArrayEquals(contents, payloads.get(1));
  }
}
