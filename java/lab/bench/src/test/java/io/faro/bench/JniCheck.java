package io.faro.bench;

import static org.junit.jupiter.api.Assertions.assertFalse;

import java.util.regex.Pattern;

/** What -Xcheck:jni finds in native methods: the JVM says it at its standard output, and goes on. */
final class JniCheck {
  private static final Pattern COMPLAINT =
      Pattern.compile("(WARNING|FATAL ERROR) in native method|JNI local refs: ");

  private JniCheck() {}

  /** The output of a JVM, which must have no such line. */
  static String checked(String output) {
    assertFalse(COMPLAINT.matcher(output).find(), output);
    return output;
  }
}
