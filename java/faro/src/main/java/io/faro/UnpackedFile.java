package io.faro;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.util.function.Consumer;

/**
 * A library of the jar as a file, from {@link #of} to {@link #close}, which deletes it.
 *
 * <p>A JVM that is killed in between leaves the file behind. So it holds a lock on the file, which
 * ends with the process, and the next JVM that unpacks deletes all files without a lock. A new file
 * could be deleted before it is locked; if it no longer exists once the lock is held, another one
 * is made.
 *
 * <p>A lock of this kind ends when this process closes the file through any descriptor. Only the
 * loader opens it as well, and has mapped it by the time it closes it. So this process leaves its
 * own files alone, and knows them by their names: the number of the process alone would not tell,
 * since in containers each JVM has number 1.
 *
 * <p>Threads: one at a time; any number of files.
 */
final class UnpackedFile implements AutoCloseable {
  private static final String PREFIX = "libfaro-unpacked-";
  private static final String OF_THIS_PROCESS = PREFIX + thisProcess() + "-";

  private final Path path;
  private final FileChannel channel;

  private UnpackedFile(Path path, FileChannel channel) {
    this.path = path;
    this.channel = channel;
  }

  /**
   * A new file in this folder with this content.
   *
   * @throws ClosedByInterruptException if the thread is interrupted
   */
  static UnpackedFile of(InputStream content, Path folder) throws IOException {
    deleteForgotten(folder);
    UnpackedFile file = create(folder);
    try {
      OutputStream to = Channels.newOutputStream(file.channel);
      content.transferTo(to);
      return file;
    } catch (IOException | RuntimeException | Error problem) {
      file.close();
      throw problem;
    }
  }

  Path path() {
    return path;
  }

  // Its number, when it has started, and among which processes it has that number: for all class
  // loaders of this JVM alike.
  private static String thisProcess() {
    ProcessHandle process = ProcessHandle.current();
    long started = process.info().startInstant().map(Instant::toEpochMilli).orElse(0L);
    return process.pid() + "." + Long.toString(started, Character.MAX_RADIX) + "." + numbering();
  }

  // The PID namespace; "" if nothing tells.
  private static String numbering() {
    try {
      return Files.readSymbolicLink(Path.of("/proc/self/ns/pid"))
          .toString()
          .replaceAll("[^0-9]", "");
    } catch (IOException | RuntimeException unknown) {
      return "";
    }
  }

  /** For reading; nobody else may close it. */
  FileChannel channel() {
    return channel;
  }

  /** Deletes the file. Idempotent. */
  @Override
  public void close() throws IOException {
    try (channel) {
      Files.deleteIfExists(path);
    }
  }

  private static UnpackedFile create(Path folder) throws IOException {
    return create(folder, made -> {});
  }

  /**
   * {@code made}: what happens when the file is there and not locked yet. Another JVM that looks
   * for forgotten ones may take it for one.
   */
  static UnpackedFile create(Path folder, Consumer<Path> made) throws IOException {
    for (; ; ) {
      Path path = Files.createTempFile(folder, OF_THIS_PROCESS, ".so");
      made.accept(path);
      FileChannel channel;
      try {
        channel = open(path);
      } catch (NoSuchFileException deleted) {
        continue;
      }
      boolean mine;
      try {
        // If this does not hold somebody has deleted it, or is about to.
        mine = channel.tryLock() != null && Files.exists(path);
      } catch (IOException noLocksHere) {
        mine = true; // nobody else can lock it, and delete it
      }
      if (mine) {
        return new UnpackedFile(path, channel);
      }
      channel.close();
    }
  }

  private static FileChannel open(Path path) throws IOException {
    // Open for reading, too: opening a pipe of that name only for writing would wait.
    return FileChannel.open(
        path, StandardOpenOption.READ, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);
  }

  /** Deletes the files that killed JVMs have left. Never fails: these files do no harm. */
  private static void deleteForgotten(Path folder) {
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, PREFIX + "*.so")) {
      for (Path file : files) {
        // Opening and closing one of this process's own files would end its lock.
        if (!file.getFileName().toString().startsWith(OF_THIS_PROCESS)
            && Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
          deleteIfForgotten(file);
        }
      }
    } catch (IOException | RuntimeException unreadable) {
      // Reported when a file cannot be made there.
    }
  }

  private static void deleteIfForgotten(Path file) {
    try (FileChannel channel = open(file);
        FileLock lock = channel.tryLock()) {
      if (lock != null) {
        Files.deleteIfExists(file);
      }
    } catch (IOException | OverlappingFileLockException notOurs) {
      // It belongs to another user, or no longer exists.
    }
  }
}
