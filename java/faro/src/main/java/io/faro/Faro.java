package io.faro;

/** Whether Faro can be used in this JVM. Threads: any. */
public final class Faro {
  private Faro() {}

  /** Whether the native library is loaded; loads it at the first call. */
  public static boolean isAvailable() {
    return NativeLibrary.CAUSE == null;
  }

  /**
   * Why {@link #isAvailable} is false: the loader's reason, and every path that was tried. Null if
   * Faro is available.
   */
  public static Throwable unavailabilityCause() {
    return NativeLibrary.CAUSE;
  }

  /** Returns if Faro is available, and otherwise throws a {@link FaroException} with the cause. */
  public static void ensureAvailable() {
    NativeLibrary.ensureLoaded();
  }
}
