package io.faro.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.ChannelSpec;
import io.faro.Endpoint;
import io.faro.SessionConfig;
import io.faro.Setting;
import java.io.IOException;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.IllegalConfigurationException;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.NettyShuffleEnvironmentOptions;
import org.apache.flink.configuration.SecurityOptions;
import org.apache.flink.runtime.io.network.netty.NettyConfig;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What Flink's configuration says for Faro, and what is refused, with which words. */
class SettingsTest {
  private final Configuration configuration = new Configuration();

  private FlinkSettings settings() {
    InetAddress host = InetAddress.getLoopbackAddress();
    return new FlinkSettings(
        configuration, new NettyConfig(host, 0, 32 << 10, 1, configuration), host, 4, true);
  }

  private void areRefused(String... words) {
    String text = assertThrows(IllegalConfigurationException.class, () -> settings().endpointConfig(0)).getMessage();
    for (String word : words) {
      assertTrue(text.contains(word), text);
    }
  }

  @Test
  void theDefaultsAreThoseOfTheTable() {
    FlinkSettings settings = settings();
    assertEquals(2, settings.ioThreads());
    assertEquals(64 << 10, settings.rings().requestBytes());
    assertEquals(512 << 10, settings.rings().dataBytes());
    assertEquals("60000", settings.endpointConfig(0).get(Setting.LIVENESS_TIMEOUT_MS));
    assertEquals("30000", settings.endpointConfig(0).get(Setting.CONNECT_TIMEOUT_MS));
    assertEquals("1", settings.endpointConfig(0).get(Setting.SECURITY_OPEN));
  }

  @Test
  void theLogSaysHowExchangesGo() {
    configuration.set(FaroOptions.TRANSPORT, "tcp");
    String text = settings().summary();
    assertTrue(text.startsWith("version "), text);
    assertTrue(text.endsWith(", transport tcp, rings of 524288 bytes for data and 65536 for requests, no secret"), text);
  }

  @Test
  void flinksConnectTimeoutCountsIfItIsSet() {
    configuration.set(NettyShuffleEnvironmentOptions.CLIENT_CONNECT_TIMEOUT_SECONDS, 7);
    assertEquals("7000", settings().endpointConfig(0).get(Setting.CONNECT_TIMEOUT_MS));
  }

  @Test
  void settingsOfFaroCanBeMade() {
    configuration.setString("faro.setting.wait.yields", "5");
    assertEquals("5", settings().endpointConfig(0).get(Setting.WAIT_YIELDS));
  }

  @Test
  void aSettingThatFaroHasNotIsRefused() {
    configuration.setString("faro.setting.wait.yield", "5");
    areRefused("faro.setting.wait.yield: Faro has no setting wait.yield; the nearest is faro.setting.wait.yields.");
  }

  @ParameterizedTest
  @CsvSource({
    "faro.transprot, faro.transport",
    "faro.secrt, faro.secret",
    "faro.secret-file, faro.secret.file",
    "faro.memory_limit, faro.memory.limit",
    "faro.io.threads, faro.io-threads",
    "faro.linksexpected, faro.links.expected",
    "faro.Transport, faro.transport",
    "FARO.transport, faro.transport",
    "faro-transport, faro.transport",
    "faro.verbs.device, faro.setting.verbs.device",
    "faro.settings.verbs.device, faro.setting.verbs.device",
    "faro.setting.VERBS.device, faro.setting.verbs.device",
    "faro.setting.link.mend-ms, faro.setting.link.mend_ms",
    "faro.wait.yield, faro.setting.wait.yields",
  })
  void whatIsNoKeyOfFaroIsRefusedWithTheNearest(String key, String nearest) {
    configuration.setString(key, "tcp");
    areRefused(key + ": ", "; the nearest is " + nearest + ".");
  }

  @Test
  void allThatWasMisspeltIsNamedAtOnce() {
    configuration.setString("faro.secrt", "x");
    configuration.setString("faro.ringsize", "1 mb");
    areRefused("faro.secrt", "faro.ringsize");
  }

  @Test
  void keysOfOthersAreNotLookedAt() {
    configuration.setString("faroese.transprot", "boat");
    configuration.setString("taskmanager.faro.transprot", "boat");
    assertEquals("auto", settings().endpointConfig(0).get(Setting.TRANSPORT));
  }

  @Test
  void everyOptionIsKnown() throws IllegalAccessException {
    for (Field field : FaroOptions.class.getFields()) {
      if (field.get(null) instanceof ConfigOption<?> option) {
        assertTrue(OptionNames.known().contains(option.key()), option.key());
      }
    }
  }

  @Test
  void whatFaroSaysIsToldInTheKeysOfFlinksConfiguration() {
    assertEquals(
        "4 MiB of faro.memory.limit = 5; see faro.setting.link.mend_ms, faro.setting.wait.yields.",
        OptionNames.inFlinksKeys("4 MiB of memory.limit_bytes = 5; see link.mend_ms, wait.yields."));
    assertEquals("faro.memory.limit, x.memory.limit_bytes", OptionNames.inFlinksKeys("faro.memory.limit, x.memory.limit_bytes"));
  }

  @Test
  void ringsGetSmallerWhenMoreLinksAreExpected() {
    configuration.set(FaroOptions.LINKS_EXPECTED, 512);
    configuration.set(FaroOptions.TRANSPORT, "tcp");
    LinkRings rings = settings().rings();
    assertEquals(8 << 10, rings.requestBytes());
    assertEquals(64 << 10, rings.dataBytes());
  }

  @Test
  void aLinkTakesWhatFaroCountsForIt() {
    for (String transport : List.of("tcp", "shm", "auto")) {
      configuration.set(FaroOptions.TRANSPORT, transport);
      FlinkSettings settings = settings();
      LinkRings rings = settings.rings();
      long[] sides =
          Endpoint.channelMemory(
              settings.endpointConfig(0),
              List.of(
                  new ChannelSpec().withRings(rings.requestBytes(), rings.dataBytes()),
                  new ChannelSpec().withRings(rings.dataBytes(), rings.requestBytes())));
      assertEquals(Math.max(sides[0], sides[1]), rings.memoryBytes(), transport);
      assertTrue(rings.memoryBytes() >= rings.dataBytes(), transport);
      assertTrue(rings.memoryBytes() * 64 <= 64 << 20, transport);
    }
  }

  @Test
  void ringsLeaveRoomForWhatATransportHasBesideThem() {
    // Verbs has beside both rings messages for 64 receives and 256 requests, of 512 bytes, in whole
    // pages.
    LinkRings.Memory verbs = besideRings(8192 + 163840);
    assertEquals(new LinkRings(64 << 10, 512 << 10, 761856), LinkRings.fitting(64 << 20, 64, 1 << 20, verbs).get(0));
    assertEquals(new LinkRings(8 << 10, 64 << 10, 245760), LinkRings.fitting(16 << 20, 64, 1 << 20, verbs).get(0));
    String text =
        assertThrows(IllegalConfigurationException.class, () -> LinkRings.fitting(64 << 20, 512, 1 << 20, verbs))
            .getMessage();
    assertTrue(text.contains("faro.memory.limit is 67108864 bytes"), text);
    assertTrue(text.contains("a link takes at least 196608 bytes over the transport that takes most"), text);
    assertTrue(text.contains("so they take 100663296"), text);
  }

  private static LinkRings.Memory besideRings(long bytes) {
    return channels -> channels.stream().mapToLong(each -> each.sendBytes() + each.receiveBytes() + bytes).toArray();
  }

  @Test
  void theSideOfALinkCountsThatTakesMost() {
    LinkRings.Memory shm = channels -> channels.stream().mapToLong(each -> each.receiveBytes()).toArray();
    assertEquals(new LinkRings(64 << 10, 1 << 20, 1 << 20), LinkRings.fitting(64 << 20, 64, 1 << 20, shm).get(0));
    LinkRings.Memory mirrored = channels -> channels.stream().mapToLong(each -> each.sendBytes()).toArray();
    assertEquals(new LinkRings(64 << 10, 1 << 20, 1 << 20), LinkRings.fitting(64 << 20, 64, 1 << 20, mirrored).get(0));
  }

  @Test
  void tooLittleMemoryIsRefusedWithTheFigures() {
    configuration.set(FaroOptions.TRANSPORT, "tcp");
    configuration.set(FaroOptions.MEMORY_LIMIT, MemorySize.ofMebiBytes(1));
    long least = linkOf(8 << 10, 16 << 10);
    areRefused(
        "faro.memory.limit is 1048576 bytes",
        "faro.links.expected = 64",
        "at least " + least,
        "so they take " + 64 * least + ".");
  }

  // What Faro counts for one, over tcp.
  private static long linkOf(int requestBytes, int dataBytes) {
    SessionConfig tcp = SessionConfig.builder().set(Setting.TRANSPORT, "tcp").set(Setting.SECURITY_OPEN, 1).build();
    long[] sides =
        Endpoint.channelMemory(
            tcp,
            List.of(
                new ChannelSpec().withRings(requestBytes, dataBytes), new ChannelSpec().withRings(dataBytes, requestBytes)));
    return Math.max(sides[0], sides[1]);
  }

  @ParameterizedTest
  @CsvSource({
    "8, 14, 9, 2, 1",
    "16, 30, 18, 3, 2",
    "33, 64, 38, 6, 3",
    "64, 126, 74, 12, 6",
    "128, 254, 150, 24, 12",
    "256, 510, 300, 48, 24",
  })
  void theTableOfTheReadmeHolds(int taskManagers, int links, int large, int middle, int small) throws Exception {
    String row =
        "| " + taskManagers + " | " + links + " | " + large + " mb / " + middle + " mb / " + small + " mb |";
    assertTrue(Files.readString(Path.of("README.md")).contains(row), row);
    assertEquals(2 * (taskManagers - 1), links);
    int[] megabytes = {large, middle, small};
    int[] rings = {512 << 10, 64 << 10, 16 << 10};
    for (String transport : List.of("tcp", "shm")) {
      for (int i = 0; i < rings.length; i++) {
        configuration.set(FaroOptions.TRANSPORT, transport);
        configuration.set(FaroOptions.LINKS_EXPECTED, links);
        configuration.set(FaroOptions.MEMORY_LIMIT, MemorySize.ofMebiBytes(megabytes[i]));
        assertTrue(settings().rings().dataBytes() >= rings[i], transport + " " + row);
      }
    }
  }

  @Test
  void aTransportThatThereIsNotIsRefused() {
    configuration.set(FaroOptions.TRANSPORT, "pigeon");
    areRefused("Faro cannot be started: CONFIG_INVALID", "pigeon");
  }

  @Test
  void aRingOfAnotherSizeIsRefused() {
    configuration.set(FaroOptions.RING_SIZE, new MemorySize(100_000));
    areRefused("faro.ring.size", "power of two");
  }

  @Test
  void noThreadsAreRefused() {
    configuration.set(FaroOptions.IO_THREADS, 0);
    areRefused("faro.io-threads is 0");
  }

  @Test
  void twoSecretsAreRefused() {
    configuration.set(FaroOptions.SECRET, "x");
    configuration.set(FaroOptions.SECRET_FILE, "y");
    areRefused("faro.secret and faro.secret.file are both set");
  }

  @Test
  void aSecretThatIsTooShortIsRefused() {
    configuration.set(FaroOptions.SECRET, "x");
    String text =
        assertThrows(
                IOException.class,
                () -> new TestTaskManager("tm", new ScriptedPartitions(), (to, event) -> false, configuration))
            .getMessage();
    assertTrue(text.contains("32"), text);
  }

  @Test
  void sslWithoutAKeystoreIsRefused() {
    configuration.set(SecurityOptions.SSL_INTERNAL_ENABLED, true);
    areRefused("security.ssl.internal.keystore", "security.ssl.keystore");
  }

  @Test
  void aProtocolThatForbidsTls13IsRefusedIfItWasSet(@TempDir Path folder) throws Exception {
    configuration.addAll(TestStores.internalSsl(folder, "one"));
    assertNotEquals(null, settings()); // Flink's default is TLSv1.2
    configuration.set(SecurityOptions.SSL_PROTOCOL, "TLSv1.2");
    areRefused("security.ssl.protocol is TLSv1.2", "TLS 1.3");
    configuration.set(SecurityOptions.SSL_PROTOCOL, "TLSv1.2,TLSv1.3");
    assertNotEquals(null, settings());
    configuration.set(SecurityOptions.SSL_ALGORITHMS, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384");
    areRefused("security.ssl.algorithms", "TLS 1.3");
  }

  @Test
  void fingerprintsGoToFaroAsTheyAre(@TempDir Path folder) throws Exception {
    configuration.addAll(TestStores.internalSsl(folder, "one"));
    String unknown = TestStores.fingerprint(folder, "two");
    String sha256 = "ab".repeat(32);
    configuration.set(SecurityOptions.SSL_INTERNAL_CERT_FINGERPRINT, unknown + ", " + sha256);
    SessionConfig config = settings().endpointConfig(0);
    assertEquals(unknown.replace(":", "") + "," + sha256, config.get(Setting.SECURITY_PEERS));
    assertEquals("", config.get(Setting.SECURITY_AUTHORITY)); // as with Flink's own: the truststore does not count
    configuration.set(SecurityOptions.SSL_INTERNAL_CERT_FINGERPRINT, " "); // as with Flink's own: none
    assertEquals("authority", settings().endpointConfig(0).get(Setting.SECURITY_PEERS));
  }

  @Test
  void whatIsNoFingerprintIsRefused(@TempDir Path folder) throws Exception {
    configuration.addAll(TestStores.internalSsl(folder, "one"));
    String good = TestStores.fingerprint(folder, "one");
    for (String bad : List.of("AB:CD", "x".repeat(40), good + ":AB", "")) {
      configuration.set(SecurityOptions.SSL_INTERNAL_CERT_FINGERPRINT, good + "," + bad + "," + good);
      areRefused(
          "security.ssl.internal.cert.fingerprint is " + good + "," + bad,
          "'" + bad + "' is not the fingerprint of a certificate",
          "SHA-1 (40 hexadecimal digits) or SHA-256 (64)");
    }
  }

  @Test
  void securityIsNotWeakenedBeside(@TempDir Path folder) throws Exception {
    configuration.addAll(TestStores.internalSsl(folder, "one"));
    configuration.setString("faro.setting.security.tls", "off");
    areRefused("faro.setting.security.tls", "security.ssl.internal.enabled");
  }

  @Test
  void aPortThatIsTakenIsPassedOver() throws Exception {
    try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      int port = taken.getLocalPort();
      configuration.set(NettyShuffleEnvironmentOptions.DATA_BIND_PORT, port + "");
      String text =
          assertThrows(
                  IOException.class,
                  () -> new TestTaskManager("tm", new ScriptedPartitions(), (to, event) -> false, configuration))
              .getMessage();
      assertEquals("Port " + port + " is taken.", text);
      configuration.set(NettyShuffleEnvironmentOptions.DATA_BIND_PORT, port + "," + 0);
      TestTaskManager started =
          new TestTaskManager("tm", new ScriptedPartitions(), (to, event) -> false, configuration);
      started.close();
    }
  }
}
