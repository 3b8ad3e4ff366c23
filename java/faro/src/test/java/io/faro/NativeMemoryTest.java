package io.faro;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class NativeMemoryTest {
  private final ByteBuffer memory = ByteBuffer.allocateDirect(64).order(ByteOrder.LITTLE_ENDIAN);
  private final long address = NativeMemory.address(memory.duplicate().position(5));

  @Test
  void numbersAreLittleEndianAndNeedNoAlignment() {
    NativeMemory.putByte(address + 1, (byte) 0xfe);
    NativeMemory.putShort(address + 3, (short) 0xfedc);
    NativeMemory.putInt(address + 7, 0xfedcba98);
    NativeMemory.putLong(address + 13, 0xfedcba9876543210L);
    assertEquals((byte) 0xfe, memory.get(1));
    assertEquals((short) 0xfedc, memory.getShort(3));
    assertEquals(0xfedcba98, memory.getInt(7));
    assertEquals(0xfedcba9876543210L, memory.getLong(13));
    assertEquals((byte) 0xfe, NativeMemory.getByte(address + 1));
    assertEquals((short) 0xfedc, NativeMemory.getShort(address + 3));
    assertEquals(0xfedcba98, NativeMemory.getInt(address + 7));
    assertEquals(0xfedcba9876543210L, NativeMemory.getLong(address + 13));
  }

  @Test
  void arraysAreCopiedFromTheirIndexOn() {
    byte[] bytes = {1, 2, 3, 4, 5};
    NativeMemory.put(address + 3, bytes, 1, 3);
    byte[] copied = new byte[5];
    NativeMemory.get(address + 3, copied, 2, 3);
    assertArrayEquals(new byte[] {0, 0, 2, 3, 4}, copied);
    assertEquals(0, memory.get(6));

    long[] longs = {10, 20, 30};
    NativeMemory.put(address + 17, longs, 1, 2);
    long[] read = new long[4];
    NativeMemory.get(address + 17, read, 1, 2);
    assertArrayEquals(new long[] {0, 20, 30, 0}, read);

    NativeMemory.copy(address + 17, address + 40, 16);
    assertEquals(20, memory.getLong(40));
    assertEquals(30, memory.getLong(48));
  }

  @Test
  void guardedMemoryTellsWhoReadsBeyondIt() {
    long end = new GuardedMemory(1 << 16).put(new byte[] {7}) + 1;
    assertEquals(7, NativeMemory.getByte(end - 1));
    assertThrows(
        InternalError.class,
        () -> {
          while (NativeMemory.getByte(end) == 0) {
            Thread.yield(); // the JVM may throw it only when the thread comes by
          }
        });
  }
}
