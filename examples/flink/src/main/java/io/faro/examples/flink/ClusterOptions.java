package io.faro.examples.flink;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;
import picocli.CommandLine.TypeConversionException;

/** What the cluster is to be, from the command line. */
final class ClusterOptions {
  /** A number of a range, so that picocli says what is wrong. */
  static final class TaskManagers implements ITypeConverter<Integer> {
    @Override
    public Integer convert(String text) {
      int number = Integer.parseInt(text);
      if (number < 1 || number > 4) {
        throw new TypeConversionException("1 to 4 TaskManagers, not " + number);
      }
      return number;
    }
  }

  @Option(
      names = "--taskmanagers",
      paramLabel = "N",
      defaultValue = "2",
      converter = TaskManagers.class,
      description = "TaskManagers, a process each, 1 to 4 (${DEFAULT-VALUE})")
  int taskManagers;

  @Option(names = "--slots", paramLabel = "N", defaultValue = "2", description = "slots of each (${DEFAULT-VALUE})")
  int slots;

  @Option(names = "--netty", description = "over Flink's own shuffle service, to compare")
  boolean isNetty;

  @Option(
      names = "-D",
      paramLabel = "KEY=VALUE",
      description = "a setting of Flink, for all processes and the statements, such as -Dfaro.transport=tcp")
  Map<String, String> settings = new LinkedHashMap<>();

  @Option(names = "--home", hidden = true, required = true)
  Path home;

  /** Where logs, tables and temporary files are. */
  Path folder() {
    return home.resolve("build/flink");
  }

  /** Of Flink: config.yaml. */
  Path conf() {
    return home.resolve("examples/flink/conf");
  }

  int parallelism() {
    return taskManagers * slots;
  }
}
