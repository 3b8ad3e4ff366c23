package io.faro;

import java.util.regex.Pattern;

/** What -Xcheck:jni finds in native methods: the JVM says it at its standard output, and goes on. */
final class JniCheck {
  private static final Pattern COMPLAINT =
      Pattern.compile("(WARNING|FATAL ERROR) in native method|JNI local refs: ");

  private JniCheck() {}

  /** Whether the output of a JVM, or a line of it, is or has one. */
  static boolean isComplaint(String output) {
    return output != null && COMPLAINT.matcher(output).find();
  }
}
