package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The target over its corpus, as ctest does with those in C++. */
@Timeout(30)
class RowCodecFuzzTest {
  private static final Path CORPUS = Path.of("../../tests/fuzz/corpus/row_codec"); // from java/faro

  @BeforeAll
  static void initialize() {
    RowCodecFuzz.fuzzerInitialize();
  }

  static Stream<String> corpus() throws IOException {
    try (Stream<Path> files = Files.list(CORPUS)) {
      return files.map(file -> file.getFileName().toString()).sorted().toList().stream();
    }
  }

  /** Twice, as nothing may be kept; the seeds that are not called broken have rows. */
  @ParameterizedTest
  @MethodSource("corpus")
  void holds(String name) throws IOException {
    byte[] input = Files.readAllBytes(CORPUS.resolve(name));
    long before = RowCodecFuzz.rowsRead();
    RowCodecFuzz.fuzzerTestOneInput(input);
    long rows = RowCodecFuzz.rowsRead() - before;
    RowCodecFuzz.fuzzerTestOneInput(input);
    assertEquals(rows, RowCodecFuzz.rowsRead() - before - rows);
    assertTrue(rows > 0 || name.startsWith("broken_") || name.startsWith("found_"), name);
  }
}
