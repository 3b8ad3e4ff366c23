package io.faro.examples.flink;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;
import picocli.CommandLine.TypeConversionException;

/** What the cluster is to be, from the command line. */
final class ClusterOptions {
  /** A number of a range, so that picocli says what is wrong. */
  private abstract static class UpTo implements ITypeConverter<Integer> {
    private final int most;

    UpTo(int most) {
      this.most = most;
    }

    @Override
    public Integer convert(String text) {
      int number = Integer.parseInt(text);
      if (number < 1 || number > most) {
        throw new TypeConversionException("1 to " + most + ", not " + number);
      }
      return number;
    }
  }

  static final class TaskManagers extends UpTo {
    TaskManagers() {
      super(4);
    }
  }

  static final class Slots extends UpTo {
    Slots() {
      super(16);
    }
  }

  @Option(
      names = "--taskmanagers",
      paramLabel = "N",
      defaultValue = "2",
      converter = TaskManagers.class,
      description = "TaskManagers, a process each, 1 to 4 (${DEFAULT-VALUE})")
  int taskManagers;

  @Option(
      names = "--slots",
      paramLabel = "N",
      defaultValue = "2",
      converter = Slots.class,
      description = "slots of each, 1 to 16 (${DEFAULT-VALUE})")
  int slots;

  @Option(
      names = "--hosts",
      paramLabel = "ADDRESS",
      split = ",",
      description = "addresses of this machine that the TaskManagers have, by turns, such as those of RDMA devices (localhost)")
  List<String> hosts = List.of("localhost");

  @Option(
      names = "--start-limit",
      paramLabel = "SECONDS",
      defaultValue = "120",
      description = "in which all TaskManagers have to register (${DEFAULT-VALUE})")
  int startSeconds;

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

  /** The folder of Flink's configuration: config.yaml. */
  Path conf() {
    return home.resolve("examples/flink/conf");
  }

  /** That of a TaskManager, the first of which is 0. */
  String host(int taskManager) {
    return hosts.get(taskManager % hosts.size());
  }

  int parallelism() {
    return taskManagers * slots;
  }
}
