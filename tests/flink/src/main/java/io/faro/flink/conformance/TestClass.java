package io.faro.flink.conformance;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs the tests of one class, and writes what each came to into a file, a line per test: {@code passed}, {@code failed} or
 * {@code skipped}, its identifier, the error's first line, apart by tabs. {@code end} is the last line.
 */
public final class TestClass implements TestExecutionListener {
  private final PrintWriter results;
  private final Map<String, Integer> seen = new HashMap<>();

  private TestClass(PrintWriter results) {
    this.results = results;
  }

  /** Called with the name of the class, and the file. Ends the JVM, whatever threads the tests have left. */
  public static void main(String[] arguments) throws IOException {
    try (PrintWriter results = new PrintWriter(Files.newBufferedWriter(Path.of(arguments[1]), UTF_8), true)) {
      Class.forName(arguments[0], false, TestClass.class.getClassLoader());
      LauncherDiscoveryRequest request =
          LauncherDiscoveryRequestBuilder.request().selectors(DiscoverySelectors.selectClass(arguments[0])).build();
      LauncherFactory.create().execute(request, new TestClass(results));
      results.println("end");
    } catch (ClassNotFoundException missing) {
      System.err.println("There is no class " + arguments[0]);
      System.exit(2);
    } catch (Throwable unexpected) {
      unexpected.printStackTrace();
      System.exit(3);
    }
    System.exit(0);
  }

  @Override
  public void executionStarted(TestIdentifier test) {
    if (test.isTest()) {
      System.err.println("==> " + test.getUniqueId());
    }
  }

  @Override
  public void executionSkipped(TestIdentifier test, String reason) {
    write("skipped", test, reason);
  }

  @Override
  public void executionFinished(TestIdentifier test, TestExecutionResult result) {
    result.getThrowable().ifPresent(Throwable::printStackTrace);
    String error = result.getThrowable().map(String::valueOf).orElse("");
    switch (result.getStatus()) {
      case SUCCESSFUL -> {
        if (test.isTest()) {
          write("passed", test, "");
        }
      }
      case ABORTED -> write("skipped", test, error);
      case FAILED -> write("failed", test, error);
    }
  }

  private synchronized void write(String outcome, TestIdentifier test, String text) {
    // Names of parameters may have hash codes and names of lambdas in them.
    String name =
        test.getUniqueId()
            .replaceAll("@[0-9a-f]{4,16}\\b", "@")
            .replaceAll("\\$\\$Lambda[^,;%\\])]*", "lambda")
            .replaceAll("\\s+", " ");
    int times = seen.merge(name, 1, Integer::sum);
    String line = text.strip().lines().findFirst().orElse("").replace('\t', ' ');
    results.println(outcome + "\t" + name + (times > 1 ? " #" + times : "") + "\t" + line);
  }
}
