package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.InputStream;

/**
 * The jar's libfaro_verbs.so, unpacked while a session opens. Native code loads it then, if a link
 * could use RDMA and libibverbs is present, and keeps it loaded under that path, for those that
 * open later. It is not unpacked if the configuration names another file.
 *
 * <p>Threads: one at a time.
 */
final class VerbsModule implements AutoCloseable {
  private static final String ENVIRONMENT = "FARO_VERBS_MODULE";

  private static volatile String loaded; // the path that it was loaded from; null: it was not

  private final UnpackedFile file; // null: not unpacked
  private final String path; // null: the configuration's

  private VerbsModule(UnpackedFile file, String path) {
    this.file = file;
    this.path = path;
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
      return new VerbsModule(null, null);
    }
    String before = loaded;
    if (before != null) {
      return new VerbsModule(null, before);
    }
    try (InputStream library = NativeLibrary.resource("libfaro_verbs.so")) {
      if (library == null) {
        return new VerbsModule(null, null);
      }
      UnpackedFile file = UnpackedFile.of(library, NativeLibrary.folder());
      return new VerbsModule(file, file.path().toString());
    } catch (IOException unusable) {
      return new VerbsModule(null, null);
    }
  }

  /** The configuration, with this module. */
  SessionConfig in(SessionConfig config) {
    return path == null ? config : config.with(Setting.VERBS_MODULE, path);
  }

  /** Deletes the file. */
  @Override
  public void close() {
    try {
      if (file != null) {
        if (NativeLibrary.hasLoaded(path.getBytes(UTF_8))) {
          loaded = path;
        }
        file.close();
      }
    } catch (IOException stays) {
      // A file left in the temporary folder is no reason to fail.
    }
  }
}
