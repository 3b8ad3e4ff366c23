package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.InputStream;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Finds, checks and loads the native library, once: the file that the property {@code
 * faro.native.library} names, or else the one inside the jar, unpacked to the folder that {@code
 * faro.native.folder} names (default: {@code java.io.tmpdir}). An unpacked file is deleted as soon
 * as it is loaded, or by the next JVM if this one is killed before.
 */
final class NativeLibrary {
  static final String FILE_PROPERTY = "faro.native.library";
  static final String FOLDER_PROPERTY = "faro.native.folder";

  /** The platforms that libraries exist for; a jar has those that it was built with. */
  private static final String[] PLATFORMS = {"linux-x86_64", "linux-aarch64"};

  private static final String LIBRARY = "libfaro_jni.so";

  /** Why the library cannot be used; null if it can. */
  static final FaroException CAUSE = load();

  private NativeLibrary() {}

  static void ensureLoaded() {
    if (CAUSE != null) {
      // A new exception each time, with the stack of the caller.
      throw new FaroException(CAUSE.code(), CAUSE.getMessage(), CAUSE);
    }
  }

  static String lastErrorText() {
    return new String(lastError(), UTF_8);
  }

  /** {@code linux-x86_64}: the folder of this platform inside the jar. */
  static String platform() {
    String processor = System.getProperty("os.arch");
    return System.getProperty("os.name").toLowerCase(Locale.ROOT)
        + "-"
        + ("amd64".equals(processor) ? "x86_64" : processor);
  }

  // The result must not depend on who asks first: if an interrupt closes the files that the thread
  // reads and writes, it begins again.
  private static FaroException load() {
    boolean interrupted = false;
    try {
      for (; ; ) {
        interrupted |= Thread.interrupted();
        try {
          return tryLoad();
        } catch (ClosedByInterruptException again) {
          // The thread is interrupted again.
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static FaroException tryLoad() throws ClosedByInterruptException {
    String tried = "nothing";
    try {
      String file = System.getProperty(FILE_PROPERTY);
      if (file != null) {
        tried = file + " (property " + FILE_PROPERTY + ")";
        try (FileChannel channel = FileChannel.open(Path.of(file))) {
          load(Path.of(file), channel);
        }
      } else {
        tried = "io/faro/native/" + platform() + "/" + LIBRARY + " of the jar";
        try (InputStream library = resource(LIBRARY)) {
          if (library == null) {
            return unavailable(tried, absent(platform(), platformsOfJar()));
          }
          tried += ", unpacked to " + folder() + " (property " + FOLDER_PROPERTY + ")";
          try (UnpackedFile unpacked = UnpackedFile.of(library, folder())) {
            tried += " as " + unpacked.path().getFileName();
            load(unpacked.path(), unpacked.channel());
          }
        }
      }
      String wanted = jarBuildId();
      String found = new String(buildId(), UTF_8);
      if (!found.equals(wanted)) {
        return unavailable(
            tried, "the library is of build " + found + ", the jar of build " + wanted);
      }
      bind();
      return null;
    } catch (ClosedByInterruptException interrupted) {
      throw interrupted;
    } catch (IOException | LinkageError | SecurityException problem) {
      FaroException unavailable = unavailable(tried, problem.toString());
      unavailable.initCause(problem);
      return unavailable;
    }
  }

  /**
   * What is said of a jar that has no library of that platform, but of these, which may be none.
   */
  static String absent(String platform, String platforms) {
    return "this jar has no library for the platform "
        + platform
        + (platforms.isEmpty()
            ? ", and none for any other: it was packed without libraries"
            : ", only for " + platforms);
  }

  private static void load(Path file, FileChannel channel) throws IOException {
    ElfFile.check(file, channel);
    System.load(file.toAbsolutePath().toString());
  }

  /** A file of this platform inside the jar; null if there is none. */
  static InputStream resource(String name) {
    return NativeLibrary.class.getResourceAsStream("native/" + platform() + "/" + name);
  }

  /** Where libraries of the jar are unpacked. */
  static Path folder() {
    return Path.of(System.getProperty(FOLDER_PROPERTY, System.getProperty("java.io.tmpdir")));
  }

  private static String platformsOfJar() {
    return Stream.of(PLATFORMS)
        .filter(one -> NativeLibrary.class.getResource("native/" + one + "/" + LIBRARY) != null)
        .collect(Collectors.joining(", "));
  }

  private static String jarBuildId() throws IOException {
    try (InputStream id = Objects.requireNonNull(resource("build-id"), "build-id")) {
      return new String(id.readAllBytes(), UTF_8);
    }
  }

  private static FaroException unavailable(String tried, String why) {
    return new FaroException(
        Code.SYSTEM_ERROR, "Faro's native library cannot be used: " + why + ". Tried: " + tried);
  }

  private static native byte[] buildId();

  private static native byte[] lastError();

  static native void lastErrorPlace(long[] to);

  /**
   * Whether native code has loaded a transport from this path, which need not be there any more.
   */
  static native boolean hasLoaded(byte[] path);

  /** Registers the natives of all other classes. */
  private static native boolean bind();
}
