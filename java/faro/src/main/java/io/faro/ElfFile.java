package io.faro;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;

/**
 * Checks by its header whether a shared library is complete: a truncated file crashes the system's
 * loader, and with it the JVM.
 */
final class ElfFile {
  private static final int HEADER_BYTES = 64;
  private static final int MAGIC = 0x464c457f; // 0x7f E L F
  // Offsets in the header of a 64-bit file: where the section headers begin, the size of each, and
  // their number.
  private static final int SECTIONS_OFFSET = 0x28;
  private static final int SECTION_BYTES = 0x3a;
  private static final int SECTION_COUNT = 0x3c;

  private ElfFile() {}

  /** Throws an IOException that says what is wrong with the file that the channel reads. */
  static void check(Path file, FileChannel channel) throws IOException {
    ByteBuffer header = ByteBuffer.allocate(HEADER_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    while (header.hasRemaining() && channel.read(header, header.position()) >= 0) {}
    if (header.hasRemaining() || header.getInt(0) != MAGIC) {
      throw new IOException(file + " is no shared library");
    }
    // Section headers stand at the end of the file.
    long end =
        header.getLong(SECTIONS_OFFSET)
            + (long) header.getShort(SECTION_BYTES) * header.getShort(SECTION_COUNT);
    if (channel.size() < end) {
      throw new IOException(file + " was cut short: " + channel.size() + " bytes of " + end);
    }
  }
}
