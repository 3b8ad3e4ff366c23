package io.faro.examples.flink;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.client.ClientUtils;
import org.apache.flink.client.program.PackagedProgram;
import org.apache.flink.client.program.ProgramInvocationException;
import org.apache.flink.configuration.ConfigUtils;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.core.execution.DefaultExecutorServiceLoader;

/**
 * A program of PyFlink. Python runs it in a process of its own and asks this one for everything of Flink. Functions in Python run beside the
 * TaskManagers, with the same Python. Flink finds its jar for that by the environment's {@code FLINK_OPT_DIR}, and sends it along.
 */
final class PythonProgram {
  private final Path environment;
  private final Path file;
  private final List<String> arguments;

  /**
   * @param environment a virtual environment of Python with PyPI's apache-flink
   */
  PythonProgram(Path environment, Path file, List<String> arguments) {
    this.environment = environment;
    this.file = file;
    this.arguments = arguments;
  }

  /**
   * Blocks until it has ended; what it prints is printed.
   *
   * @throws org.apache.flink.client.program.ProgramAbortException if it ends with anything but 0
   */
  void run(Configuration configuration) throws ProgramInvocationException {
    String python = environment.resolve("bin/python").toString();
    configuration.setString("python.executable", python);
    configuration.setString("python.client.executable", python);
    List<String> all = new ArrayList<>(List.of("-py", file.toAbsolutePath().toString()));
    all.addAll(arguments);
    try (PackagedProgram program =
        PackagedProgram.newBuilder()
            .setEntryPointClassName("org.apache.flink.client.python.PythonDriver")
            .setConfiguration(configuration)
            .setArguments(all.toArray(String[]::new))
            .build()) {
      ConfigUtils.encodeCollectionToConfig(
          configuration, PipelineOptions.JARS, program.getJobJarAndDependencies(), Object::toString);
      ClientUtils.executeProgram(new DefaultExecutorServiceLoader(), configuration, program, false, true);
    }
  }
}
