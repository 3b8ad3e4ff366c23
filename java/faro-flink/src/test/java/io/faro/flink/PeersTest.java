package io.faro.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.ChannelEvents;
import io.faro.ChannelSpec;
import io.faro.Endpoint;
import io.faro.EndpointSpec;
import io.faro.Outcome;
import io.faro.Poller;
import io.faro.SessionConfig;
import io.faro.Setting;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.SecurityOptions;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.clusterframework.types.ResourceID;
import org.apache.flink.runtime.io.network.ConnectionID;
import org.apache.flink.runtime.io.network.NettyShuffleEnvironment;
import org.apache.flink.runtime.io.network.NettyShuffleServiceFactory;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.ResultSubpartitionIndexSet;
import org.apache.flink.runtime.io.network.partition.consumer.InputChannelID;
import org.apache.flink.runtime.io.network.partition.consumer.SingleInputGate;
import org.apache.flink.runtime.io.network.partition.consumer.SingleInputGateBuilder;
import org.apache.flink.runtime.shuffle.ShuffleEnvironment;
import org.apache.flink.runtime.shuffle.ShuffleEnvironmentContext;
import org.apache.flink.util.ExceptionUtils;
import org.apache.flink.util.concurrent.ScheduledExecutorServiceAdapter;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Which peers a TaskManager exchanges with, and what it says of the others. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
@SuppressWarnings("try") // ShuffleEnvironment.close
class PeersTest {
  private static final String SECRET = "a secret of more than thirty-two bytes";

  private final ScriptedPartitions partitions = new ScriptedPartitions();
  private final ResultPartitionID partition = new ResultPartitionID();
  private TestTaskManager producer;
  private TestTaskManager consumer;

  private TestTaskManager taskManager(String name, Configuration configuration) throws IOException {
    return new TestTaskManager(name, partitions, (to, event) -> false, configuration);
  }

  @AfterEach
  void close() throws Exception {
    if (consumer != null) {
      consumer.close();
    }
    if (producer != null) {
      producer.close();
    }
  }

  private static ConnectionID at(int port) {
    return new ConnectionID(
        new ResourceID("tm-2"), new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
  }

  private String refusalBy(ConnectionID peer) {
    IOException refused =
        assertThrows(IOException.class, () -> consumer.connections.createPartitionRequestClient(peer));
    String text = ExceptionUtils.stringifyException(refused);
    assertTrue(text.contains("Connecting to remote task manager"), text);
    return text;
  }

  private void exchanges() throws Exception {
    partitions.add(partition).add(TestBuffers.data(1, 100));
    SingleInputGate gate = consumer.gate(producer.connection(), partition, 2);
    assertArrayEquals(TestBuffers.contents(1, 100), TestBuffers.bytes(gate.getNext().orElseThrow().getBuffer()));
  }

  private void areRefused(String because) {
    String text = refusalBy(producer.connection());
    assertTrue(text.contains(because), text);
  }

  @Test
  void aPortWhereNobodyListensFailsSoon() throws Exception {
    consumer = taskManager("consumer", new Configuration());
    int port;
    try (ServerSocket closed = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      port = closed.getLocalPort();
    }
    long begin = System.nanoTime();
    String text = refusalBy(at(port));
    assertTrue(text.contains("Nobody listens there"), text);
    assertTrue(System.nanoTime() - begin < TimeUnit.SECONDS.toNanos(10), "long before faro.connect-timeout");
  }

  @Test
  void aWaitForAPeerThatDoesNotAnswerEndsByAnInterrupt() throws Exception {
    consumer = taskManager("consumer", new Configuration());
    try (ServerSocket silent = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      CompletableFuture<Throwable> thrown = new CompletableFuture<>();
      Thread task =
          new Thread(
              () ->
                  thrown.complete(
                      assertThrows(
                          InterruptedException.class,
                          () -> consumer.connections.createPartitionRequestClient(at(silent.getLocalPort())))));
      task.start();
      Socket asked = silent.accept();
      task.interrupt();
      thrown.get();
      asked.close();
    }
  }

  @Test
  void aPeerWithFlinksOwnShuffleServiceIsNamed() throws Exception {
    consumer = taskManager("consumer", new Configuration());
    withFlinksOwn(
        netty -> {
          String text = refusalBy(at(netty.start()));
          assertTrue(text.contains("Flink's own (Netty) shuffle service"), text);
        });
  }

  @Test
  void aConsumerWithFlinksOwnShuffleServiceIsToldWhatItHasMet() throws Exception {
    producer = taskManager("producer", new Configuration());
    consumer = taskManager("consumer", new Configuration()); // of its buffers
    withFlinksOwn(
        netty -> {
          netty.start();
          SingleInputGate gate =
              consumer.gate(
                  netty.getConnectionManager(),
                  producer.connection(),
                  partition,
                  2,
                  SingleInputGateBuilder.NO_OP_PRODUCER_CHECKER);
          IOException refused = assertThrows(IOException.class, gate::getNext);
          String text = ExceptionUtils.stringifyException(refused);
          assertTrue(text.contains("This TaskManager uses Faro"), text);
          assertTrue(text.contains("shuffle-service-factory.class"), text);
        });
  }

  private interface UseOfFlinksOwn {
    void accept(NettyShuffleEnvironment netty) throws Exception;
  }

  private static void withFlinksOwn(UseOfFlinksOwn use) throws Exception {
    ScheduledExecutorService executor = Executors.newSingleThreadScheduledExecutor();
    ShuffleEnvironmentContext context =
        new ShuffleEnvironmentContext(
            new Configuration(),
            new ResourceID("tm-2"),
            MemorySize.ofMebiBytes(8),
            false,
            InetAddress.getLoopbackAddress(),
            1,
            new String[0],
            (to, event) -> false,
            new UnregisteredMetricsGroup(),
            executor,
            new ScheduledExecutorServiceAdapter(executor));
    try (NettyShuffleEnvironment netty = new NettyShuffleServiceFactory().createShuffleEnvironment(context)) {
      use.accept(netty);
    } finally {
      executor.shutdownNow();
    }
  }

  /** The lines of Faro's log meanwhile. */
  private static final class Lines extends Handler implements AutoCloseable {
    private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();
    private final Logger logger = Logger.getLogger("io.faro");

    Lines() {
      logger.addHandler(this);
    }

    /** The next line with these words. */
    String next(String words) throws InterruptedException {
      String line = lines.take();
      while (!line.contains(words)) {
        line = lines.take();
      }
      return line;
    }

    @Override
    public void publish(LogRecord line) {
      lines.add(line.getMessage());
    }

    @Override
    public void flush() {}

    @Override
    public void close() {
      logger.removeHandler(this);
    }
  }

  /** Begins as a TaskManager over Netty does. Answers the port that it has dialled from. */
  private int dialAsNetty() throws IOException {
    try (Socket netty = new Socket()) {
      netty.connect(producer.connection().getAddress());
      netty.getOutputStream().write(ByteBuffer.allocate(64).putInt(64).putInt(0xBADC0FFE).array());
      netty.getInputStream().readAllBytes();
      return netty.getLocalPort();
    }
  }

  @Test
  void aConsumerWithFlinksOwnShuffleServiceIsNamedInTheLog() throws Exception {
    producer = taskManager("producer", new Configuration());
    try (Lines lines = new Lines()) {
      dialAsNetty();
      String line = lines.next("not a Faro connection");
      assertTrue(LogBridge.explained(line).contains("Flink's own (Netty) shuffle service"), line);
    }
  }

  @Test
  void aTaskManagerThatOnlyLooksWhatListensIsNoneWithFlinksOwnShuffleService() throws Exception {
    producer = taskManager("producer", new Configuration());
    try (Lines lines = new Lines()) {
      assertEquals(null, PeerProbe.obstacle(producer.connection().getAddress()));
      int port = dialAsNetty(); // the first that the log has anything to say of
      String line = lines.next("not a Faro connection");
      assertTrue(line.contains(":" + port + ": "), line);
    }
  }

  /** What a peer is told that says what it may, and then sends this message. */
  private Throwable answerTo(MessageHeader header, byte[] payload) throws Exception {
    producer = taskManager("producer", new Configuration());
    SessionConfig config =
        SessionConfig.builder()
            .set(Setting.CLUSTER_ID, "flink")
            .set(Setting.SECURITY_OPEN, 1)
            .set(Setting.LIVENESS_TIMEOUT_MS, 60_000)
            .build();
    try (Endpoint unknown = Endpoint.open(config, new EndpointSpec())) {
      Poller poller = unknown.poller(0);
      InetSocketAddress to = producer.connection().getAddress();
      long channel = poller.connect("127.0.0.1:" + to.getPort(), new ChannelSpec().withGreeting(Greeting.bytes()));
      BlockingQueue<byte[]> told = new LinkedBlockingQueue<>();
      MessageReader reader = new MessageReader(new Told(told));
      ChannelEvents events = new ChannelEvents(16);
      while (told.isEmpty() && poller.await() == Outcome.DONE) {
        for (int i = 0, count = poller.poll(events); i < count; i++) {
          if (events.kind(i) == ChannelEvents.Kind.OPENED) {
            int bytes = MessageHeader.BYTES + payload.length;
            assertEquals(Outcome.DONE, poller.claim(channel, bytes, bytes));
            ByteBuffer ring = poller.outgoing(channel).duplicate().order(ByteOrder.LITTLE_ENDIAN);
            header.here = payload.length;
            header.write(ring, poller.claimOffset());
            ring.put(poller.claimOffset() + MessageHeader.BYTES, payload);
            poller.commit(channel, bytes);
          } else if (events.kind(i) == ChannelEvents.Kind.FRAME) {
            reader.read(events.buffer(i), events.offset(i), events.length(i));
          } else if (events.kind(i) == ChannelEvents.Kind.CLOSED) {
            throw new IOException("It has closed.", poller.failure(channel));
          }
        }
        poller.release(events);
      }
      return Errors.error(told.remove());
    }
  }

  /** Keeps the fatal error of a producer. */
  private record Told(BlockingQueue<byte[]> told) implements MessageReader.Receiver {
    @Override
    public int payloadLimit(byte kind) {
      return MessageHeader.Kind.mostFromProducer(kind);
    }

    @Override
    public Buffer openBuffer(MessageHeader header) {
      return null;
    }

    @Override
    public void onBuffer(MessageHeader header, Buffer buffer) {}

    @Override
    public void onMessage(MessageHeader header, byte[] payload) {
      assertEquals(MessageHeader.Kind.FATAL, header.kind);
      told.add(payload);
    }
  }

  @Test
  void aPeerThatAnnouncesAGigabyteIsToldThatItBreaksTheProtocol() throws Exception {
    MessageHeader header = new MessageHeader().of(MessageHeader.Kind.REQUEST, 0, 1);
    header.total = 1 << 30;
    String text = answerTo(header, new byte[0]).getMessage();
    assertTrue(text.contains("a payload of 1073741824 bytes"), text);
  }

  @Test
  void aPeerThatNumbersItsRequestsFarAheadIsToldThatItBreaksTheProtocol() throws Exception {
    byte[] request =
        Identities.of(
            new Identities.Request(partition, new ResultSubpartitionIndexSet(0), new InputChannelID()));
    MessageHeader header = new MessageHeader().of(MessageHeader.Kind.REQUEST, 1 << 21, 1);
    header.total = request.length;
    String text = answerTo(header, request).getMessage();
    assertTrue(text.contains("breaks Faro's protocol") && text.contains("request 2097152.1"), text);
  }

  @Test
  void peersWithTheSameSecretExchange() throws Exception {
    Configuration configuration = new Configuration();
    configuration.set(FaroOptions.SECRET, SECRET);
    producer = taskManager("producer", configuration);
    consumer = taskManager("consumer", configuration);
    exchanges();
  }

  @Test
  void aPeerWithoutTheSecretIsRefused() throws Exception {
    Configuration configuration = new Configuration();
    configuration.set(FaroOptions.SECRET, SECRET);
    producer = taskManager("producer", configuration);
    consumer = taskManager("consumer", new Configuration());
    areRefused("secret");
  }

  @Test
  void aPeerOfAnotherClusterIsRefused() throws Exception {
    Configuration configuration = new Configuration();
    configuration.set(FaroOptions.CLUSTER_ID, "another");
    producer = taskManager("producer", configuration);
    consumer = taskManager("consumer", new Configuration());
    areRefused("another");
  }

  @Test
  void peersWithFlinksInternalSslExchange(@TempDir Path folder) throws Exception {
    Configuration configuration = TestStores.internalSsl(folder, "one");
    producer = taskManager("producer", configuration);
    consumer = taskManager("consumer", configuration);
    exchanges();
  }

  @Test
  void peersWithAFingerprintExchange(@TempDir Path folder) throws Exception {
    Configuration configuration = TestStores.internalSsl(folder, "one");
    configuration.set(
        SecurityOptions.SSL_INTERNAL_CERT_FINGERPRINT, TestStores.fingerprint(folder, "one"));
    producer = taskManager("producer", configuration);
    consumer = taskManager("consumer", configuration);
    exchanges();
  }

  private static Configuration admitting(Path folder, String own, String peer) throws Exception {
    Configuration configuration = TestStores.internalSsl(folder, own);
    configuration.set(SecurityOptions.SSL_INTERNAL_CERT_FINGERPRINT, TestStores.fingerprint(folder, peer));
    configuration.set(FaroOptions.CONNECT_TIMEOUT, Duration.ofSeconds(2));
    return configuration;
  }

  @Test
  void peersExchangeThatNameCertificatesWhichAreInNoStoreOfTheirs(@TempDir Path folder) throws Exception {
    producer = taskManager("producer", admitting(folder, "one", "two"));
    consumer = taskManager("consumer", admitting(folder, "two", "one"));
    exchanges();
  }

  @Test
  void aPeerWhoseFingerprintIsAnotherOneIsRefusedAndItsFingerprintIsNamed(@TempDir Path folder) throws Exception {
    producer = taskManager("producer", admitting(folder, "one", "two"));
    consumer = taskManager("consumer", admitting(folder, "two", "two"));
    areRefused(
        "(SHA-1 " + TestStores.fingerprint(folder, "one").replace(":", "").toLowerCase(Locale.ROOT)
            + ") is none of the 1 that");
  }

  @Test
  void aPeerWithAnotherCertificateIsRefused(@TempDir Path folder) throws Exception {
    producer = taskManager("producer", TestStores.internalSsl(folder, "one"));
    Configuration other = TestStores.internalSsl(folder, "two");
    other.set(FaroOptions.CONNECT_TIMEOUT, Duration.ofSeconds(2));
    consumer = taskManager("consumer", other);
    areRefused("certificate");
  }

  @Test
  void aPeerWithoutSslIsRefused(@TempDir Path folder) throws Exception {
    producer = taskManager("producer", TestStores.internalSsl(folder, "one"));
    Configuration plain = new Configuration();
    plain.set(FaroOptions.CONNECT_TIMEOUT, Duration.ofSeconds(2));
    consumer = taskManager("consumer", plain);
    areRefused("TLS");
  }

  @Test
  void aProducerThatIsKilledFailsItsConsumers() throws Exception {
    consumer = taskManager("consumer", new Configuration());
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                ProducerProcess.class.getName())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    try {
      BufferedReader out = new BufferedReader(new InputStreamReader(process.getInputStream()));
      String line = out.readLine();
      while (!line.startsWith("port ")) {
        line = out.readLine();
      }
      SingleInputGate gate =
          consumer.gate(at(Integer.parseInt(line.substring(5))), ProducerProcess.PARTITION, 2);
      assertArrayEquals(TestBuffers.contents(1, 100), TestBuffers.bytes(gate.getNext().orElseThrow().getBuffer()));
      process.destroyForcibly();
      IOException lost = assertThrows(IOException.class, () -> gate.getNext());
      String text = ExceptionUtils.stringifyException(lost);
      assertTrue(text.contains("might indicate that the remote task manager was lost"), text);
      assertEquals(137, process.waitFor());
    } finally {
      process.destroyForcibly();
    }
  }
}
