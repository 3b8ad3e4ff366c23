package io.faro;

import static io.faro.Checks.codeOf;
import static io.faro.Checks.failure;
import static io.faro.Checks.start;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.ChannelEvents.Kind;
import io.faro.EndpointSide.Event;
import java.io.IOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.logging.LogRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Endpoints and their channels, in one JVM: how channels end, and who and what is refused. */
@Timeout(60)
class EndpointTest {
  private static final ChannelSpec SMALL = new ChannelSpec().withRings(4096, 4096);
  private static final ChannelSpec RINGS = new ChannelSpec().withRings(1 << 18, 1 << 18);

  @Test
  void whoeverBeginsWithAnotherProtocolIsAnswered() throws IOException {
    byte[] answer = "this is Faro".getBytes(UTF_8);
    try (EndpointSide server = new EndpointSide("tcp", new EndpointSpec().withAnswerToOthers(answer));
        Socket other = new Socket("127.0.0.1", portOf(server))) {
      other.getOutputStream().write("GET".getBytes(UTF_8));
      assertArrayEquals(answer, other.getInputStream().readAllBytes());
    }
  }

  @Test
  void whatAChannelTakesIsKnownBefore() throws InterruptedException {
    for (String transport : List.of("shm", "tcp")) {
      SessionConfig config = SessionConfig.builder().set(Setting.TRANSPORT, transport).build();
      ChannelSpec spec = new ChannelSpec().withRings(64 << 10, 8 << 10);
      long[] memory = Endpoint.channelMemory(config, List.of(spec, spec.withRings(8 << 10, 64 << 10)));
      try (EndpointSide server = new EndpointSide(transport, new EndpointSpec());
          EndpointSide client = new EndpointSide(transport, new EndpointSpec())) {
        client.connect(server, spec);
        client.expectOpened();
        server.expectOpened();
        assertEquals(memory[0], client.endpoint.metrics().memoryBytes(), transport);
        assertEquals(memory[1], server.endpoint.metrics().memoryBytes(), transport);
      }
    }
  }

  @Test
  void whatAChannelTakesIsNotKnownWithoutItsRings() {
    assertEquals(
        Code.INVALID_ARGUMENT,
        codeOf(() -> Endpoint.channelMemory(SessionConfig.builder().build(), List.of(new ChannelSpec()))));
  }

  private static int portOf(EndpointSide side) {
    String address = side.endpoint.address();
    return Integer.parseInt(address.substring(address.lastIndexOf(':') + 1));
  }

  @Test
  void everyCounterStandsUnderItsName() throws InterruptedException {
    try (EndpointSide server = new EndpointSide("tcp", new EndpointSpec().withName("server"));
        EndpointSide client = new EndpointSide("tcp", new EndpointSpec().withName("client"))) {
      long channel = client.connect(server, SMALL);
      client.expectOpened();
      long atServer = server.expectOpened();
      for (int i = 0; i < 3; i++) {
        client.send(channel, "frame");
        server.expectFrame("frame");
      }
      EndpointMetrics out = client.endpoint.metrics();
      EndpointMetrics in = server.endpoint.metrics();
      ChannelMetrics sent = out.channels().get(0);
      ChannelMetrics received = in.channels().get(0);
      assertEquals(channel, sent.channel());
      assertEquals(atServer, received.channel());
      assertEquals("server", sent.peer());
      assertEquals("client", received.peer());
      assertEquals(server.endpoint.address(), sent.address());
      assertEquals("tcp", received.transport());
      assertEquals(0, sent.poller());
      assertEquals(3, sent.traffic().framesSent());
      assertEquals(3, received.traffic().framesReceived());
      assertEquals(sent.traffic().bytesSent(), received.traffic().bytesReceived());
      assertEquals(sent.traffic(), out.all());
      assertEquals(1, in.channelsOpened());
      assertEquals(0, in.channelsLost() + in.channelsRefused() + in.channelsClosed());
      assertTrue(in.memoryBytes() > 2 * 4096 && in.events() >= 4 && in.polls() > 0);
      server.endpoint.close();
      EndpointMetrics after = server.endpoint.metrics();
      assertEquals(List.of(), after.channels());
      assertEquals(1, after.channelsClosed());
      assertEquals(3, after.all().framesReceived());
    }
  }

  @Test
  void takesASecretAsBytes() throws InterruptedException {
    byte[] secret = "0123456789abcdef0123456789abcdef".getBytes(UTF_8);
    EndpointSpec spec = new EndpointSpec();
    try (EndpointSide server = new EndpointSide(spec, to -> to.setBytes(Setting.SECURITY_SECRET_FILE, secret));
        EndpointSide client = new EndpointSide(spec, to -> to.setBytes(Setting.SECURITY_SECRET_FILE, secret));
        EndpointSide outsider = new EndpointSide(spec, to -> to.set(Setting.CONNECT_TIMEOUT_MS, 100))) {
      assertEquals(client.connect(server, SMALL), client.expectOpened());
      outsider.connect(server, SMALL);
      assertEquals(ChannelEvents.Kind.CLOSED, outsider.next().kind());
    }
  }

  @Test
  void takesCertificatesAsBytes(@TempDir Path folder) throws Exception {
    SelfSigned right = SelfSigned.make(folder, "right");
    SelfSigned wrong = SelfSigned.make(folder, "wrong");
    EndpointSpec spec = new EndpointSpec();
    try (EndpointSide server = new EndpointSide(spec, right::give);
        EndpointSide client = new EndpointSide(spec, right::give);
        EndpointSide outsider = new EndpointSide(spec, to -> wrong.give(to, right))) {
      assertEquals(client.connect(server, SMALL), client.expectOpened());
      long refused = outsider.connect(server, SMALL);
      assertEquals(ChannelEvents.Kind.CLOSED, outsider.next().kind());
      assertEquals(Code.AUTHENTICATION_FAILED, outsider.poller.failure(refused).code());
    }
  }

  @Test
  void refusesBytesForSettingsThatNameNoFile() {
    FaroException refused =
        failure(() -> new EndpointSide(new EndpointSpec(), to -> to.setBytes(Setting.RING_BYTES, new byte[] {'1'})));
    assertEquals(Code.CONFIG_INVALID, refused.code());
    assertTrue(refused.getMessage().contains("ring.bytes"), refused.getMessage());
  }

  // --- how channels end

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void isDrainedBeforeItCloses(String transport) throws Exception {
    try (ChannelPair pair = new ChannelPair(transport, SMALL)) {
      int sent = pair.fill("last");
      assertTrue(pair.server.send(pair.atServer, "on its way"));
      pair.client.poller.drain(pair.atClient);
      for (int i = 0; i < sent; i++) {
        pair.server.expectFrame("last");
      }
      pair.server.poller.releaseOwnership();
      FutureTask<FaroException> server = start(() -> pair.server.expectClosed(pair.atServer));
      pair.client.expectFrame("on its way");
      assertNull(pair.client.expectClosed(pair.atClient));
      assertNull(server.get());
      assertEquals(Code.CLOSED, codeOf(() -> pair.client.send(pair.atClient, "late")));
      assertEquals(Code.CLOSED, codeOf(() -> pair.client.poller.commit(pair.atClient, 0)));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void isDrainedByBothSidesAtOnce(String transport) throws Exception {
    try (ChannelPair pair = new ChannelPair(transport, new ChannelSpec())) {
      assertTrue(pair.client.send(pair.atClient, "to the server"));
      assertTrue(pair.server.send(pair.atServer, "to the client"));
      pair.client.poller.drain(pair.atClient);
      pair.server.poller.drain(pair.atServer);
      pair.server.poller.releaseOwnership();
      FutureTask<FaroException> server =
          start(
              () -> {
                pair.server.expectFrame("to the server");
                return pair.server.expectClosed(pair.atServer);
              });
      pair.client.expectFrame("to the client");
      assertNull(pair.client.expectClosed(pair.atClient));
      assertNull(server.get());
    }
  }

  @Test
  void takesNoFramesWhileItIsDrainedAndEndsAfterATime() throws Exception {
    try (EndpointSide server = new EndpointSide("shm");
        EndpointSide client =
            new EndpointSide(new EndpointSpec(), config -> config.set(Setting.CLOSE_TIMEOUT_MS, 50))) {
      long channel = client.connect(server, SMALL);
      client.expectOpened();
      client.poller.drain(channel); // the server does not poll
      assertEquals(Code.CLOSED, codeOf(() -> client.send(channel, "late")));
      FaroException cause = client.expectClosed(channel);
      assertEquals(Code.DEADLINE_EXCEEDED, cause.code());
      assertTrue(cause.getMessage().contains("close.timeout_ms = 50"), cause.getMessage());
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void closesAtOnce(String transport) throws Exception {
    try (ChannelPair pair = new ChannelPair(transport, new ChannelSpec())) {
      assertTrue(pair.client.send(pair.atClient, "kept"));
      Event frame = pair.server.expect(Kind.FRAME);
      pair.client.poller.closeNow(pair.atClient);
      assertEquals(Code.CLOSED, pair.client.expectClosed(pair.atClient).code());
      FaroException cause = pair.server.expectClosed(pair.atServer);
      assertEquals(Code.CLOSED, cause.code());
      assertTrue(cause.getMessage().contains("client"), cause.getMessage());
      assertEquals("kept", frame.text());
      pair.server.poller.release(frame.channel(), frame.token());
      assertThrows(IndexOutOfBoundsException.class, frame::text);
      assertEquals(Code.CLOSED, codeOf(() -> pair.server.send(pair.atServer, "late")));
      assertTrue(pair.server.poller.info(pair.atServer).peer().contains("client"));
      assertEquals(0, pair.server.poller.poll(new ChannelEvents(1)));
      assertEquals(Code.CLOSED, codeOf(() -> pair.server.poller.info(pair.atServer)));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void endsWithTheEndpointOfItsPeer(String transport) throws Exception {
    try (ChannelPair pair = new ChannelPair(transport, new ChannelSpec())) {
      pair.client.close();
      assertEquals(Code.CLOSED, pair.server.expectClosed(pair.atServer).code());
      assertEquals(Code.CLOSED, pair.client.expectClosed(pair.atClient).code());
      for (int each = 0; each < 2; each++) {
        assertEquals(Code.CLOSED, codeOf(pair.client.poller::await));
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void whatIsUsedAfterItsEndThrows(String transport) throws Exception {
    ChannelPair pair = new ChannelPair(transport, new ChannelSpec());
    ByteBuffer outgoing = pair.client.poller.outgoing(pair.atClient).slice();
    assertTrue(pair.client.send(pair.atClient, "held"));
    Event frame = pair.server.expect(Kind.FRAME);
    pair.close();
    pair.close();
    Poller poller = pair.client.poller;
    long gone = pair.atClient;
    assertEquals(Code.CLOSED, pair.client.expectClosed(gone).code());
    assertEquals(0, poller.poll(new ChannelEvents(1))); // what closed is known until then
    for (long channel : new long[] {gone, -1, 0, Long.MIN_VALUE, 5L << 32 | 1023}) {
      assertEquals(Code.CLOSED, codeOf(() -> poller.claim(channel, 1, 1)));
      assertEquals(Code.CLOSED, codeOf(() -> poller.commit(channel, 1)));
      assertEquals(Code.CLOSED, codeOf(() -> poller.info(channel)));
      assertEquals(Code.CLOSED, poller.failure(channel).code());
      poller.release(channel, 0);
      poller.drain(channel);
      poller.closeNow(channel);
    }
    assertEquals(Code.CLOSED, codeOf(() -> poller.outgoing(-1)));
    assertEquals(Code.CLOSED, codeOf(() -> poller.connect(pair.server.endpoint.address(), SMALL)));
    assertEquals(Code.CLOSED, codeOf(poller::await));
    assertEquals(0, poller.poll(new ChannelEvents(4)));
    poller.post();
    poller.wake();
    assertFalse(poller.tryEnter());
    assertEquals("held", frame.text());
    assertEquals(0, pair.client.endpoint.metrics().memoryBytes());
    assertNoMemory(outgoing);
  }

  // What is kept of each channel would keep its memory, if the collector were what gives it back.
  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  @Timeout(180)
  void aThousandPeersOneAfterTheOtherFitWhereTwoDo(String transport) throws Exception {
    List<ByteBuffer> kept = new ArrayList<>();
    try (EndpointSide server = new EndpointSide(new EndpointSpec(), limitedTo(transport, 2))) {
      for (int peer = 0; peer < 1000; peer++) {
        try (EndpointSide client = new EndpointSide(transport)) {
          kept.add(comeAndGo(client, server, peer % 2 == 0));
        }
      }
      assertTrue(server.endpoint.metrics().memoryLimitBytes() > 0);
      awaitNoMemory(server);
    }
    for (ByteBuffer slice : kept) {
      assertNoMemory(slice);
    }
  }

  // By a system call: the JVM tells of an access some time after it, by an InternalError.
  private static void assertNoMemory(ByteBuffer slice) throws IOException {
    Pipe pipe = Pipe.open();
    try {
      IOException why = assertThrows(IOException.class, () -> pipe.sink().write(slice.duplicate().limit(1)));
      assertEquals("Bad address", why.getMessage());
    } finally {
      pipe.sink().close();
      pipe.source().close();
    }
  }

  private static Consumer<SessionConfig.Builder> limitedTo(String transport, int channels) {
    SessionConfig config = SessionConfig.builder().set(Setting.TRANSPORT, transport).build();
    long each = Endpoint.channelMemory(config, List.of(RINGS))[0];
    return builder -> builder.set(Setting.TRANSPORT, transport).set(Setting.MEMORY_LIMIT_BYTES, channels * each);
  }

  // Returns a slice of what the server sends from.
  private static ByteBuffer comeAndGo(EndpointSide client, EndpointSide server, boolean closesOne)
      throws InterruptedException {
    long channel = client.connect(server, RINGS);
    assertEquals(Kind.OPENED, client.next().kind(), () -> String.valueOf(client.poller.failure(channel)));
    long atServer = server.expectOpened();
    ByteBuffer kept = server.poller.outgoing(atServer).slice();
    assertTrue(client.send(channel, "8 bytes."));
    Event frame = server.expect(Kind.FRAME);
    if (closesOne) {
      client.poller.closeNow(channel);
    } else {
      client.close();
    }
    assertEquals("8 bytes.", frame.text());
    server.poller.release(atServer, frame.token());
    server.expectClosed(atServer);
    assertThrows(IndexOutOfBoundsException.class, () -> frame.buffer().get(frame.offset()));
    return kept;
  }

  // The limit has room for all peers, and for none more.
  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void halfOfThePeersAreReplacedAtOnceWithTheLimitFull(String transport) throws Exception {
    int peers = 8;
    try (EndpointSide server = new EndpointSide(new EndpointSpec(), limitedTo(transport, peers))) {
      List<EndpointSide> clients = new ArrayList<>();
      List<ByteBuffer> kept = new ArrayList<>();
      for (int i = 0; i < peers; i++) {
        clients.add(openTo(server, transport, kept));
      }
      for (int round = 0; round < 5; round++) {
        List<EndpointSide> gone = clients.subList(0, peers / 2);
        gone.forEach(EndpointSide::close);
        for (EndpointSide each : gone) {
          server.expect(Kind.CLOSED);
        }
        gone.clear();
        for (int i = 0; i < peers / 2; i++) {
          clients.add(openTo(server, transport, kept));
        }
        EndpointMetrics metrics = server.endpoint.metrics();
        assertTrue(metrics.memoryBytes() <= metrics.memoryLimitBytes(), metrics::toString);
      }
      clients.forEach(EndpointSide::close);
      for (EndpointSide each : clients) {
        server.expect(Kind.CLOSED);
      }
      awaitNoMemory(server);
      for (ByteBuffer slice : kept) {
        assertNoMemory(slice);
      }
    }
  }

  private static EndpointSide openTo(EndpointSide server, String transport, List<ByteBuffer> kept)
      throws InterruptedException {
    EndpointSide client = new EndpointSide(transport);
    long channel = client.connect(server, RINGS);
    assertEquals(Kind.OPENED, client.next().kind(), () -> String.valueOf(client.poller.failure(channel)));
    kept.add(server.poller.outgoing(server.expectOpened()).slice());
    return client;
  }

  private static void awaitNoMemory(EndpointSide side) {
    for (long end = System.nanoTime() + 20_000_000_000L; side.endpoint.metrics().memoryBytes() > 0; ) {
      assertTrue(System.nanoTime() < end, "memory was not given back");
      Thread.onSpinWait();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void theRingsOfAChannelThatHasClosedGoWithTheLastFrameThatIsHeld(String transport) throws Exception {
    try (EndpointSide server = new EndpointSide(new EndpointSpec(), limitedTo(transport, 1));
        EndpointSide client = new EndpointSide(transport)) {
      long channel = client.connect(server, RINGS);
      client.expectOpened();
      long atServer = server.expectOpened();
      assertTrue(client.send(channel, "one") && client.send(channel, "two"));
      Event one = server.expect(Kind.FRAME);
      Event two = server.expect(Kind.FRAME);
      client.poller.closeNow(channel);
      client.expectClosed(channel);
      server.expectClosed(atServer);
      server.poller.release(atServer, one.token());
      assertEquals("two", two.text());
      FaroException refused = client.expectClosed(client.connect(server, RINGS));
      assertEquals(Code.RESOURCE_LIMIT, refused.code());
      assertTrue(refused.getMessage().contains("have ended"), refused.getMessage());
      server.poller.release(atServer, two.token());
      assertThrows(IndexOutOfBoundsException.class, two::text);
      client.connect(server, RINGS);
      client.expectOpened();
    }
  }

  // --- who is accepted

  @Test
  void aPeerIsRefusedWithTheReasonOfTheAcceptor() throws Exception {
    AtomicReference<ChannelRequest> asked = new AtomicReference<>();
    EndpointSpec spec =
        new EndpointSpec()
            .withAcceptor(
                request -> {
                  asked.set(request);
                  return ChannelAcceptance.refused("no more guests today");
                });
    try (EndpointSide server = new EndpointSide("shm", spec);
        EndpointSide client = new EndpointSide("shm", new EndpointSpec().withName("unwanted"))) {
      FaroException cause =
          client.expectClosed(client.connect(server, new ChannelSpec().withRings(8192, 65536).withGreeting((byte) 9)));
      assertEquals(Code.CANCELLED, cause.code());
      assertTrue(cause.getMessage().contains("no more guests today"), cause.getMessage());
      assertEquals("unwanted", asked.get().peer());
      assertTrue(asked.get().address().startsWith("127.0.0.1"), asked.get().address());
      assertArrayEquals(new byte[] {9}, asked.get().greeting());
      assertEquals(65536, asked.get().sendBytes());
      assertEquals(8192, asked.get().receiveBytes());
    }
  }

  @Test
  void eitherSideSaysThatAChannelEndsWhenItsConnectionBreaks() throws Exception {
    for (boolean dials : new boolean[] {true, false}) {
      ChannelAcceptance answer = dials ? ChannelAcceptance.by(0) : ChannelAcceptance.by(0).endingWhenBroken();
      try (EndpointSide server = new EndpointSide("tcp", new EndpointSpec().withAcceptor(request -> answer));
          EndpointSide client = new EndpointSide("tcp", new EndpointSpec())) {
        long channel = client.connect(server, dials ? SMALL.endingWhenBroken() : SMALL);
        client.expect(Kind.OPENED);
        assertTrue(client.poller.info(channel).endsWhenBroken());
      }
    }
  }

  @Test
  void anAcceptorThatThrowsRefuses() throws Exception {
    BlockingQueue<LogRecord> lines = new LinkedBlockingQueue<>();
    AtomicInteger asked = new AtomicInteger();
    EndpointSpec spec =
        new EndpointSpec()
            .withAcceptor(
                request -> {
                  if (asked.getAndIncrement() == 0) {
                    throw new IllegalStateException("not today");
                  }
                  return null;
                });
    LogLines reader = new LogLines(lines::add);
    try (EndpointSide server = new EndpointSide("shm", spec);
        EndpointSide client = new EndpointSide("shm")) {
      FaroException cause = client.expectClosed(client.connect(server, SMALL));
      assertTrue(cause.getMessage().contains("not today"), cause.getMessage());
      cause = client.expectClosed(client.connect(server, SMALL));
      assertTrue(cause.getMessage().contains("the answer of the acceptor"), cause.getMessage());
      LogRecord line;
      do { // others may log meanwhile
        line = lines.poll(20, TimeUnit.SECONDS);
        assertNotNull(line, "nothing was logged");
      } while (!line.getMessage().contains("acceptor"));
      assertTrue(line.getThrown() instanceof RuntimeException);
    } finally {
      reader.close();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void channelsGetTheLesserOfBothRings(String transport) throws Exception {
    EndpointSpec spec = new EndpointSpec().withAcceptor(request -> ChannelAcceptance.by(0).withRings(20000, 1 << 20));
    try (EndpointSide server = new EndpointSide(transport, spec);
        EndpointSide client = new EndpointSide(transport)) {
      long channel = client.connect(server, new ChannelSpec().withRings(8192, 65536));
      client.expectOpened();
      assertEquals(8192, client.poller.info(channel).sendBytes());
      assertEquals(16384, client.poller.info(channel).receiveBytes()); // the power of two below 20000
    }
  }

  @Test
  void channelsForWhichNobodyNamesASizeFollowTheBudget() throws Exception {
    Consumer<SessionConfig.Builder> tenInAMebibyte =
        config -> config.set(Setting.MEMORY_LIMIT_BYTES, 1 << 20).set(Setting.CHANNEL_EXPECTED, 10);
    try (EndpointSide server = new EndpointSide(new EndpointSpec(), tenInAMebibyte);
        EndpointSide client = new EndpointSide("tcp")) {
      long usual = client.connect(server, new ChannelSpec());
      client.expectOpened();
      assertEquals(32768, client.poller.info(usual).sendBytes());
      long small = client.connect(server, new ChannelSpec().withRings(4096, 0));
      client.expectOpened();
      assertEquals(4096, client.poller.info(small).sendBytes());
      assertEquals(32768, client.poller.info(small).receiveBytes());
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void channelsAreServedByThePollerThatTheAcceptorNames(String transport) throws Exception {
    EndpointSpec spec = new EndpointSpec().withPollers(2).withAcceptor(request -> ChannelAcceptance.by(1));
    try (EndpointSide server = new EndpointSide(transport, spec);
        EndpointSide client = new EndpointSide(transport)) {
      long channel = client.connect(server, SMALL);
      client.expectOpened();
      assertEquals(2, server.endpoint.pollers().size());
      Poller poller = server.endpoint.poller(1);
      assertEquals(1, poller.index());
      assertSame(server.endpoint, poller.endpoint());
      ChannelEvents events = new ChannelEvents(1);
      EndpointSide.pollSome(poller, events);
      assertEquals(Kind.OPENED, events.kind(0));
      assertEquals(Code.WRONG_STATE, codeOf(() -> events.buffer(0)));
      assertThrows(IndexOutOfBoundsException.class, () -> events.kind(1));
      assertTrue(client.send(channel, "hello"));
      EndpointSide.pollSome(poller, events);
      assertEquals(Kind.FRAME, events.kind(0));
      assertEquals(5, events.length(0));
    }
  }

  @Test
  void channelsBeyondTheMemoryLimitAreRefusedWithTheFiguresAndOthersStand() throws Exception {
    try (EndpointSide server =
            new EndpointSide(new EndpointSpec(), config -> config.set(Setting.MEMORY_LIMIT_BYTES, 1572864));
        EndpointSide client = new EndpointSide("shm")) {
      ChannelSpec megabyte = new ChannelSpec().withRings(1 << 20, 1 << 20);
      long first = client.connect(server, megabyte);
      client.expectOpened();
      FaroException cause = client.expectClosed(client.connect(server, megabyte));
      assertEquals(Code.RESOURCE_LIMIT, cause.code());
      assertTrue(cause.getMessage().contains("memory.limit_bytes = 1572864"), cause.getMessage());
      assertTrue(client.send(first, "still there"));
      server.expectOpened();
      server.expectFrame("still there");
    }
  }

  @Test
  void channelsBeyondTheLimitAreRefused() throws Exception {
    try (EndpointSide server = new EndpointSide("shm", new EndpointSpec().withChannelLimit(1));
        EndpointSide client = new EndpointSide("shm");
        EndpointSide one = new EndpointSide("shm", new EndpointSpec().withChannelLimit(1))) {
      client.connect(server, SMALL);
      client.expectOpened();
      FaroException cause = client.expectClosed(client.connect(server, SMALL));
      assertEquals(Code.LIMIT_EXCEEDED, cause.code());
      assertTrue(cause.getMessage().contains("channel_limit"), cause.getMessage());
      one.connect(server, SMALL);
      assertEquals(Code.LIMIT_EXCEEDED, codeOf(() -> one.connect(server, SMALL)));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void channelsThatComeAndGoLeaveNothingBehind(String transport) throws Exception {
    EndpointSpec few = new EndpointSpec().withChannelLimit(4);
    try (EndpointSide server = new EndpointSide(transport, few);
        EndpointSide client = new EndpointSide(transport, few)) {
      for (int round = 0; round < 100; round++) {
        long channel = client.connect(server, SMALL);
        assertEquals(channel, client.expectOpened());
        long atServer = server.expectOpened();
        assertTrue(client.send(channel, "once"));
        server.expectFrame("once");
        client.poller.drain(channel);
        server.poller.releaseOwnership();
        FutureTask<FaroException> other =
            start(
                () -> {
                  FaroException why = server.expectClosed(atServer);
                  server.poller.releaseOwnership();
                  return why;
                });
        assertNull(client.expectClosed(channel));
        assertNull(other.get());
        assertEquals(Code.CLOSED, codeOf(() -> client.poller.outgoing(channel + (1L << 32))));
      }
    }
  }

  @Test
  void channelsCrossWhenBothSidesDial() throws Exception {
    try (EndpointSide a = new EndpointSide("shm");
        EndpointSide b = new EndpointSide("shm")) {
      long fromA = a.connect(b, SMALL);
      long fromB = b.connect(a, SMALL);
      assertNotEquals(a.expectOpened(), a.expectOpened());
      assertNotEquals(b.expectOpened(), b.expectOpened());
      assertTrue(a.send(fromA, "from a"));
      assertTrue(b.send(fromB, "from b"));
      b.expectFrame("from a");
      a.expectFrame("from b");
    }
  }

  @Test
  void saysWhenNobodyListens() throws Exception {
    String address = Cluster.heldAddresses(1).get(0);
    try (EndpointSide client =
        new EndpointSide(new EndpointSpec(), config -> config.set(Setting.CONNECT_TIMEOUT_MS, 50))) {
      FaroException cause = client.expectClosed(client.poller.connect(address, new ChannelSpec()));
      assertEquals(Code.CONNECT_FAILED, cause.code());
      assertTrue(cause.getMessage().contains(address), cause.getMessage());
    }
    try (EndpointSide client = new EndpointSide("shm")) {
      long given = client.poller.connect(address, new ChannelSpec());
      client.poller.drain(given); // gives up
      assertEquals(Code.CLOSED, client.expectClosed(given).code());
    }
  }

  @Test
  void anEndpointOfAnotherClusterIsRefused() throws Exception {
    try (EndpointSide server = new EndpointSide("shm");
        EndpointSide client =
            new EndpointSide(new EndpointSpec(), config -> config.set(Setting.CLUSTER_ID, "another"))) {
      FaroException cause = client.expectClosed(client.connect(server, SMALL));
      assertEquals(Code.CONFIGURATION_MISMATCH, cause.code());
    }
  }

  @Test
  void argumentsThatMakeNoSenseAreRefused() {
    SessionConfig config = SessionConfig.builder().build();
    for (EndpointSpec spec :
        List.of(
            new EndpointSpec().withPollers(0),
            new EndpointSpec().withPollers(-1),
            new EndpointSpec().withChannelLimit(70000),
            new EndpointSpec().withName("x".repeat(300)))) {
      assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> Endpoint.open(config, spec)));
    }
    SessionConfig wrong = SessionConfig.builder().set(Setting.TRANSPORT, "pigeon").build();
    assertEquals(Code.CONFIG_INVALID, codeOf(() -> Endpoint.open(wrong)));
    assertThrows(NullPointerException.class, () -> new EndpointSpec().withName(null));
    assertThrows(NullPointerException.class, () -> new EndpointSpec().withAcceptor(null));
    assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> new ChannelEvents(0)));
    assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> ChannelAcceptance.refused("")));
    assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> ChannelAcceptance.by(-1)));
    try (Endpoint endpoint = Endpoint.open(config)) {
      Poller poller = endpoint.poller(0);
      assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> poller.connect("127.0.0.1", SMALL)));
      for (ChannelSpec spec :
          List.of(
              new ChannelSpec().withRings(5000, 4096),
              new ChannelSpec().withRings(4096, 2048),
              new ChannelSpec().withRings(-1, 4096),
              new ChannelSpec().withGreeting(new byte[4097]))) {
        assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> poller.connect("127.0.0.1:1", spec)));
      }
      assertThrows(IndexOutOfBoundsException.class, () -> endpoint.poller(1));
      assertEquals("endpoint " + endpoint.address(), endpoint.toString());
    }
  }

  // --- forgotten

  @Test
  void oneThatWasForgottenIsClosed() throws Exception {
    BlockingQueue<LogRecord> lines = new LinkedBlockingQueue<>();
    LogLines reader = new LogLines(lines::add);
    try {
      String address = openAndForget();
      for (long end = System.nanoTime() + 20_000_000_000L; ; ) {
        System.gc();
        LogRecord line = lines.poll(10, TimeUnit.MILLISECONDS);
        if (line != null && line.getMessage().contains(address)) {
          assertTrue(line.getMessage().contains("was forgotten"), line.getMessage());
          assertNotNull(line.getThrown());
          return;
        }
        assertTrue(System.nanoTime() < end, "no report");
      }
    } finally {
      reader.close();
    }
  }

  private static String openAndForget() {
    return Endpoint.open(SessionConfig.builder().build()).address();
  }
}
