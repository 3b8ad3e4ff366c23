package io.faro;

import java.io.IOException;
import java.io.InputStream;

/**
 * The jar's libfaro_verbs.so, unpacked while a session opens. Native code loads it then, if a link could use RDMA and
 * libibverbs is present, and keeps it loaded. It is not unpacked if the configuration names another file.
 *
 * <p>Threads: one at a time.
 */
final class VerbsModule implements AutoCloseable {
  private static final String ENVIRONMENT = "FARO_VERBS_MODULE";

  private final UnpackedFile file; // null: not unpacked

  private VerbsModule(UnpackedFile file) {
    this.file = file;
  }

  /** Never fails: without the file, native code reports what it has tried. */
  static VerbsModule unpackFor(SessionConfig config) {
    String transport = config.get(Setting.TRANSPORT);
    boolean wanted = transport.equals("auto") || transport.equals("verbs");
    boolean named =
        !config.get(Setting.VERBS_MODULE).isEmpty()
            || (config.usesEnvironment() && System.getenv(ENVIRONMENT) != null)
            || System.getProperty(NativeLibrary.FILE_PROPERTY) != null;
    if (!wanted || named) {
      return new VerbsModule(null);
    }
    try (InputStream library = NativeLibrary.resource("libfaro_verbs.so")) {
      return new VerbsModule(library == null ? null : UnpackedFile.of(library, NativeLibrary.folder()));
    } catch (IOException unusable) {
      return new VerbsModule(null);
    }
  }

  /** The configuration, with this module. */
  SessionConfig in(SessionConfig config) {
    return file == null ? config : config.with(Setting.VERBS_MODULE, file.path().toString());
  }

  /** Deletes the file. */
  @Override
  public void close() {
    try {
      if (file != null) {
        file.close();
      }
    } catch (IOException stays) {
      // A file left in the temporary folder is no reason to fail.
    }
  }
}
