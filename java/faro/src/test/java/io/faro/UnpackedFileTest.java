package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Files of a library beside other JVMs that unpack one at the same time. */
class UnpackedFileTest {
  @TempDir Path folder;

  @Test
  void oneThatAnotherJvmHasTakenForForgottenIsMadeAgain() throws IOException {
    List<Path> made = new ArrayList<>();
    UnpackedFile file =
        UnpackedFile.create(
            folder,
            path -> {
              made.add(path);
              if (made.size() == 1) {
                delete(path);
              }
            });
    assertEquals(2, made.size());
    assertEquals(made.get(1), file.path());
    assertTrue(Files.exists(file.path()));
    file.close();
    assertFalse(Files.exists(file.path()));
  }

  // In containers each JVM has number 1.
  @Test
  void whatAKilledJvmOfTheSameNumberHasLeftIsDeleted() throws IOException {
    long number = ProcessHandle.current().pid();
    List<Path> forgotten = new ArrayList<>();
    for (String owner : List.of(number + "-42", number + ".0.4026531836-42", "1-7")) {
      forgotten.add(Files.createFile(folder.resolve("libfaro-unpacked-" + owner + ".so")));
    }
    try (UnpackedFile own = UnpackedFile.of(InputStream.nullInputStream(), folder);
        UnpackedFile other = UnpackedFile.of(InputStream.nullInputStream(), folder)) {
      for (Path file : forgotten) {
        assertFalse(Files.exists(file), file::toString);
      }
      assertTrue(Files.exists(own.path()) && Files.exists(other.path()));
    }
  }

  // Also one that has the number of this one, as in a container beside this one.
  @Test
  void whatALivingJvmHasLockedStays() throws Exception {
    Path locked = folder.resolve("libfaro-unpacked-" + ProcessHandle.current().pid() + "-42.so");
    Files.createFile(locked);
    try (ChildJvm holder = new ChildJvm(LockHolder.class, locked.toString())) {
      assertEquals("locked", holder.line());
      UnpackedFile.of(InputStream.nullInputStream(), folder).close();
      assertTrue(Files.exists(locked));
      holder.kill();
    }
    UnpackedFile.of(InputStream.nullInputStream(), folder).close();
    assertFalse(Files.exists(locked));
  }

  /** Holds the lock of a file until it is killed. */
  static final class LockHolder {
    private LockHolder() {}

    public static void main(String[] arguments) throws Exception {
      Path file = Path.of(arguments[0]);
      try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
        System.out.println(channel.tryLock() == null ? "not locked" : "locked");
        new CountDownLatch(1).await();
      }
    }
  }

  private static void delete(Path path) {
    try {
      Files.delete(path);
    } catch (IOException unexpected) {
      throw new UncheckedIOException(unexpected);
    }
  }
}
