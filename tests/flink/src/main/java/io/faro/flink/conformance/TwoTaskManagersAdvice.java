package io.faro.flink.conformance;

import net.bytebuddy.asm.Advice;
import org.apache.flink.configuration.Configuration;

/** In the constructor of {@code MiniClusterConfiguration}: the slots of one TaskManager become those of two. */
final class TwoTaskManagersAdvice {
  private TwoTaskManagersAdvice() {}

  @Advice.OnMethodEnter
  static void enter(
      @Advice.Argument(value = 0, readOnly = false) Configuration configuration,
      @Advice.Argument(value = 1, readOnly = false) int taskManagers) {
    if (Replacements.canBeTwo(configuration, taskManagers)) {
      configuration = Replacements.withHalfTheSlots(configuration);
      taskManagers = 2;
    }
  }
}
