package io.faro.bench;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.faro.sockets.HeldAddresses;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/** The two-stage job on nodes in processes of their own, whose output goes to a folder. */
final class Nodes implements AutoCloseable {
  /** What -Xcheck:jni finds in native methods: the JVM says it at its standard output, and goes on. */
  private static final Pattern JNI_COMPLAINT =
      Pattern.compile("(WARNING|FATAL ERROR) in native method|JNI local refs: ");

  private final Path folder;
  private final HeldAddresses held;
  private final List<Process> started = new ArrayList<>();

  /** Node i runs in C++ where languages has a c at i, in Java where it has a j. */
  Nodes(Path folder, String languages, Map<String, String> environment, List<String> flags) throws IOException {
    this.folder = folder;
    held = new HeldAddresses(languages.length(), Main.PORTS, List.of("127.0.0.1"));
    for (int node = 0; node < languages.length(); node++) {
      List<String> command = new ArrayList<>();
      if (languages.charAt(node) == 'c') {
        command.addAll(List.of(System.getProperty("faro.laboratory"), "bench"));
      } else {
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("-Xcheck:jni", "-Xmx128m", "-XX:TieredStopAtLevel=1"));
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), Main.class.getName()));
      }
      command.add("two-stage");
      command.addAll(flags);
      command.addAll(List.of("--node", Integer.toString(node), "--nodes", String.join(",", held.all())));
      ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
      builder.environment().putAll(environment);
      started.add(builder.redirectOutput(output(node).toFile()).start());
    }
  }

  List<Process> processes() {
    return started;
  }

  String address(int node) {
    return held.all().get(node);
  }

  private Path output(int node) {
    return folder.resolve("node" + node);
  }

  /** What a node has printed. */
  String text(int node) throws IOException {
    return checked(output(node));
  }

  /** What all have printed. */
  String texts() throws IOException {
    StringBuilder all = new StringBuilder();
    for (int node = 0; node < started.size(); node++) all.append("node ").append(node).append(":\n").append(text(node));
    return all.toString();
  }

  /** The output of JVMs, in which -Xcheck:jni must have found nothing. */
  static String checked(Path output) throws IOException {
    String text = Files.readString(output, UTF_8);
    assertFalse(JNI_COMPLAINT.matcher(text).find(), text);
    return text;
  }

  @Override
  public void close() {
    started.forEach(Process::destroyForcibly);
    held.close();
  }
}
