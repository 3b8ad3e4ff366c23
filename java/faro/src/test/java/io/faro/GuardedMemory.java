package io.faro;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Memory outside the heap that ends at a place where nothing can be read: whoever reads or writes beyond it gets an
 * {@link InternalError}.
 *
 * <pre>
 *   mapped file:   |            bytes |  beyond the end of the file: SIGBUS  |
 * </pre>
 */
final class GuardedMemory {
  private static final int GUARD = 1 << 16;

  private final int capacity;
  private final MappedByteBuffer mapped;

  /** {@code capacity}: a multiple of the page size. */
  GuardedMemory(int capacity) {
    this.capacity = capacity;
    try {
      Path file = Files.createTempFile("faro-guarded", null);
      try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
        mapped = channel.map(FileChannel.MapMode.READ_WRITE, 0, capacity + GUARD);
        channel.truncate(capacity);
      } finally {
        Files.delete(file);
      }
    } catch (IOException problem) {
      throw new UncheckedIOException(problem);
    }
  }

  /** Copies the bytes to the end, and returns their address. */
  long put(byte[] bytes) {
    mapped.put(capacity - bytes.length, bytes);
    return NativeMemory.address(mapped) + capacity - bytes.length;
  }
}
