package io.faro.flink.conformance;

import net.bytebuddy.asm.Advice;
import org.apache.flink.configuration.Configuration;

/** In {@code ShuffleServiceLoader.loadShuffleServiceFactory}: another default. */
final class DefaultServiceAdvice {
  private DefaultServiceAdvice() {}

  @Advice.OnMethodEnter
  static void enter(@Advice.Argument(value = 0, readOnly = false) Configuration configuration) {
    configuration = Replacements.withFaroAsDefault(configuration);
  }
}
