package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
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

  private static void delete(Path path) {
    try {
      Files.delete(path);
    } catch (IOException unexpected) {
      throw new UncheckedIOException(unexpected);
    }
  }
}
