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
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * A library of the jar as a file, from {@link #of} to {@link #close}, which deletes it.
 *
 * <p>A JVM that is killed in between leaves the file behind. So it holds a lock on it, which ends with the process:
 * whoever unpacks next deletes the files on which there is no lock. A new file might be taken for such a one before
 * its lock is there; it then exists no more when the lock is, and another one is made.
 *
 * <p>A lock of this kind ends when this process closes the file, by whatever descriptor: nothing else opens it but
 * the loader, which has mapped it when it closes it.
 *
 * <p>Threads: one at a time; any number of files.
 */
final class UnpackedFile implements AutoCloseable {
  private static final String PREFIX = "libfaro-unpacked-";
  private static final String OF_THIS_PROCESS = PREFIX + ProcessHandle.current().pid() + "-";

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

  /** To read it; nobody else may close it. */
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
    for (; ; ) {
      Path path = Files.createTempFile(folder, OF_THIS_PROCESS, ".so");
      FileChannel channel = open(path);
      boolean mine;
      try {
        mine = channel.tryLock() != null && Files.exists(path); // else somebody is about to delete it, or has
      } catch (IOException noLocksHere) {
        mine = true; // nobody else gets one, and deletes it
      }
      if (mine) {
        return new UnpackedFile(path, channel);
      }
      channel.close();
    }
  }

  private static FileChannel open(Path path) throws IOException {
    // For reading, too: a pipe of that name would make a mere writer wait.
    return FileChannel.open(
        path, StandardOpenOption.READ, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);
  }

  /** What JVMs have left that were killed. Never fails: these files are in nobody's way. */
  private static void deleteForgotten(Path folder) {
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, PREFIX + "*.so")) {
      for (Path file : files) {
        // To open and close one of this process's own would end its lock.
        if (!file.getFileName().toString().startsWith(OF_THIS_PROCESS)
            && Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
          deleteIfForgotten(file);
        }
      }
    } catch (IOException | RuntimeException unreadable) {
      // Told by whoever cannot make a file there.
    }
  }

  private static void deleteIfForgotten(Path file) {
    try (FileChannel channel = open(file);
        FileLock lock = channel.tryLock()) {
      if (lock != null) {
        Files.deleteIfExists(file);
      }
    } catch (IOException | OverlappingFileLockException notOurs) {
      // Another user's, or gone by now.
    }
  }
}
