package io.faro.flink;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.nio.file.Path;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.IllegalConfigurationException;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.clusterframework.types.ResourceID;
import org.apache.flink.runtime.shuffle.ShuffleEnvironment;
import org.apache.flink.runtime.shuffle.ShuffleEnvironmentContext;
import org.apache.flink.runtime.shuffle.ShuffleMasterContextImpl;
import org.apache.flink.util.concurrent.ScheduledExecutorServiceAdapter;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the factory makes, with a native library and without. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
@SuppressWarnings("try") // ShuffleEnvironment.close
class FactoryTest {
  private static int portOf(Configuration configuration, boolean localOnly) throws Exception {
    ScheduledExecutorService executor = Executors.newSingleThreadScheduledExecutor();
    ShuffleEnvironmentContext context =
        new ShuffleEnvironmentContext(
            configuration,
            new ResourceID("tm-1"),
            MemorySize.ofMebiBytes(8),
            localOnly,
            InetAddress.getLoopbackAddress(),
            1,
            new String[0],
            (to, event) -> false,
            new UnregisteredMetricsGroup(),
            executor,
            new ScheduledExecutorServiceAdapter(executor));
    try (ShuffleEnvironment<?, ?> made = new FaroShuffleServiceFactory().createShuffleEnvironment(context)) {
      return made.start();
    } finally {
      executor.shutdownNow();
    }
  }

  /** In a process whose native library does not load. */
  static final class WithoutNatives {
    private WithoutNatives() {}

    public static void main(String[] arguments) throws Exception {
      Configuration configuration = new Configuration();
      System.out.println("local: " + portOf(configuration, true));
      try {
        portOf(configuration, false);
      } catch (IllegalConfigurationException refused) {
        System.out.println("refused: " + refused.getMessage() + " " + refused.getCause().getMessage());
      }
      configuration.set(FaroOptions.FALLBACK, "netty");
      System.out.println("falls back: " + (portOf(configuration, false) > 0));
    }
  }

  @Test
  void withoutNativesItDoesNotStartUnlessItMayFallBack() throws Exception {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Dfaro.native.library=/nowhere/libfaro_jni.so",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
                "-cp",
                System.getProperty("java.class.path"),
                WithoutNatives.class.getName())
            .redirectErrorStream(true)
            .start();
    String said = new String(process.getInputStream().readAllBytes(), UTF_8);
    assertEquals(0, process.waitFor(), said);
    assertTrue(said.contains("local: -1"), said);
    assertTrue(said.contains("refused: Faro's native library does not load here"), said);
    assertTrue(said.contains("/nowhere/libfaro_jni.so"), said);
    assertTrue(said.contains("falls back: true"), said);
  }

  @Test
  void aFallbackThatThereIsNotIsRefused() {
    Configuration configuration = new Configuration();
    configuration.set(FaroOptions.FALLBACK, "nio");
    String text = assertThrows(IllegalConfigurationException.class, () -> portOf(configuration, false)).getMessage();
    assertEquals("faro.fallback is nio; it has to be none or netty.", text);
  }

  @Test
  void aMisspeltOptionIsRefusedByTheJobManagerAndByTaskManagersThatExchangeNothing() {
    Configuration configuration = new Configuration();
    configuration.setString("faro.transprot", "tcp");
    String text =
        assertThrows(
                IllegalConfigurationException.class,
                () -> new FaroShuffleServiceFactory().createShuffleMaster(new ShuffleMasterContextImpl(configuration, thrown -> {})))
            .getMessage();
    assertEquals("faro.transprot: Faro has no such option; the nearest is faro.transport.", text);
    assertEquals(
        text, assertThrows(IllegalConfigurationException.class, () -> portOf(configuration, true)).getMessage());
  }

  @Test
  void environmentsComeAndGo() throws Exception {
    for (int i = 0; i < 30; i++) {
      assertTrue(portOf(new Configuration(), false) > 0);
    }
  }
}
