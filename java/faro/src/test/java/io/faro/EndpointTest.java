package io.faro;

import static io.faro.Checks.codeOf;
import static io.faro.Checks.failure;
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

import com.sun.management.ThreadMXBean;
import io.faro.ChannelEvents.Kind;
import io.faro.EndpointSide.Event;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.ref.WeakReference;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.logging.LogRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Endpoints and their channels, in one JVM: frames both ways, how channels end, and what is refused. */
@Timeout(60)
class EndpointTest {
  private static final ChannelSpec SMALL = new ChannelSpec().withRings(4096, 4096);
  private static final int HEADER_BYTES = 16; // of a frame in a ring

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

  /** Two endpoints with an open channel. */
  private static final class Pair implements AutoCloseable {
    final EndpointSide server;
    final EndpointSide client;
    final long atServer;
    final long atClient;

    Pair(String transport, ChannelSpec spec) throws InterruptedException {
      server = new EndpointSide(transport, new EndpointSpec().withName("server"));
      client = new EndpointSide(transport, new EndpointSpec().withName("client"));
      atClient = client.connect(server, spec);
      assertEquals(atClient, client.expectOpened());
      atServer = server.expectOpened();
    }

    /** Sends until there is no room. Returns how many frames. */
    int fill(String text) {
      int sent = 0;
      while (client.send(atClient, text)) {
        sent++;
      }
      return sent;
    }

    @Override
    public void close() {
      client.close();
      server.close();
    }
  }

  /** Runs it on a thread of its own. */
  private static <T> FutureTask<T> start(Callable<T> body) {
    FutureTask<T> task = new FutureTask<>(body);
    new Thread(task, "test").start();
    return task;
  }

  // --- frames

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void carriesFramesBothWays(String transport) throws Exception {
    try (Pair pair = new Pair(transport, new ChannelSpec())) {
      assertTrue(pair.client.send(pair.atClient, "question"));
      pair.server.expectFrame("question");
      assertTrue(pair.server.send(pair.atServer, "answer"));
      assertTrue(pair.server.send(pair.atServer, ""));
      pair.client.expectFrame("answer");
      pair.client.expectFrame("");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void saysWhoIsAtTheOtherEnd(String transport) throws Exception {
    try (Pair pair = new Pair(transport, new ChannelSpec().withRings(16384, 8192).withGreeting((byte) 7, (byte) 8))) {
      byte[] greeting = {7, 8};
      assertEquals(
          new ChannelInfo("server", pair.server.endpoint.address(), transport, true, greeting, 16384, 8192, 4080, false),
          pair.client.poller.info(pair.atClient));
      assertEquals(
          new ChannelInfo("client", pair.client.endpoint.address(), transport, false, greeting, 8192, 16384, 2032, false),
          pair.server.poller.info(pair.atServer));
      assertTrue(Poller.indexOf(pair.atClient) >= 0 && Poller.indexOf(pair.atClient) < 1024);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void aChannelThatIsFullTellsWhenThereIsRoom(String transport) throws Exception {
    try (Pair pair = new Pair(transport, SMALL)) {
      int sent = pair.fill("0123456789");
      assertTrue(sent > 0);
      for (int i = 0; i < sent; i++) {
        pair.server.expectFrame("0123456789");
      }
      pair.server.poller.await(Wait.NONE); // tells what was released
      assertEquals(pair.atClient, pair.client.expect(Kind.ROOM).channel());
      assertTrue(pair.client.send(pair.atClient, "more"));
      pair.server.expectFrame("more");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void givesFramesBackInAnyOrder(String transport) throws Exception {
    try (Pair pair = new Pair(transport, new ChannelSpec())) {
      List<Event> held = new ArrayList<>();
      for (String text : List.of("one", "two", "three")) {
        assertTrue(pair.client.send(pair.atClient, text));
        held.add(pair.server.expect(Kind.FRAME));
      }
      assertEquals("two", held.get(1).text());
      for (int i : new int[] {1, 2, 0}) {
        pair.server.poller.release(held.get(i).channel(), held.get(i).token());
      }
      assertTrue(pair.client.send(pair.atClient, "four"));
      pair.server.expectFrame("four");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void givesTheFramesOfABatchBackAtOnce(String transport) throws Exception {
    try (Pair pair = new Pair(transport, SMALL)) {
      Poller poller = pair.server.poller;
      ChannelEvents events = new ChannelEvents(4);
      for (int round = 0; round < 3; round++) {
        int sent = pair.fill("0123456789");
        assertTrue(sent > events.capacity());
        for (int taken = 0; taken < sent; ) {
          pollSome(poller, events);
          taken += events.count();
          for (int i = 0; i < events.count(); i++) {
            assertEquals("0123456789", textOf(events, i));
          }
          poller.release(events);
          assertEquals(Kind.FRAME, events.kind(0)); // can still be read
        }
        assertEquals(0, unreleasedBytes(pair));
        assertEquals(pair.atClient, pair.client.expect(Kind.ROOM).channel());
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void givesTheFramesOfABatchBackThatWereNotReleasedYet(String transport) throws Exception {
    try (Pair pair = new Pair(transport, new ChannelSpec())) {
      Poller poller = pair.server.poller;
      ChannelEvents held = new ChannelEvents(1);
      assertTrue(pair.client.send(pair.atClient, "held"));
      pollSome(poller, held);
      List<ChannelEvents> batches = new ArrayList<>();
      for (int i = 0; i < 5; i++) {
        batches.add(new ChannelEvents(1));
        assertTrue(pair.client.send(pair.atClient, "frame " + i));
        pollSome(poller, batches.get(i));
      }
      ChannelEvents first = batches.get(0);
      poller.release(first.channel(0), first.token(0));
      poller.release(first.channel(0), first.token(0)); // once more
      for (ChannelEvents batch : batches) {
        poller.release(batch);
        poller.release(batch);
      }
      assertTrue(unreleasedBytes(pair) > 0);
      assertEquals("held", textOf(held, 0));
      poller.release(held);
      assertEquals(0, unreleasedBytes(pair));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void givesBackOnlyTheFramesOfABatch(String transport) throws Exception {
    try (Pair pair = new Pair(transport, SMALL)) {
      Poller poller = pair.server.poller;
      ChannelEvents events = new ChannelEvents(16);
      poller.release(events); // nothing was polled
      assertTrue(pair.client.send(pair.atClient, "last"));
      pair.client.poller.drain(pair.atClient);
      pollSome(poller, events);
      assertEquals(Kind.FRAME, events.kind(0));
      assertEquals(Code.WRONG_STATE, codeOf(() -> pair.client.poller.release(events)));
      assertEquals(Code.WRONG_STATE, start(() -> codeOf(() -> poller.release(events))).get());
      assertEquals("last", textOf(events, 0));
      assertThrows(NullPointerException.class, () -> poller.release(null));
      poller.releaseOwnership();
      FutureTask<Kind> server =
          start(
              () -> {
                poller.release(events);
                do {
                  pollSome(poller, events);
                  poller.release(events);
                } while (events.kind(events.count() - 1) != Kind.CLOSED);
                return events.kind(events.count() - 1);
              });
      assertNull(pair.client.expectClosed(pair.atClient));
      assertEquals(Kind.CLOSED, server.get());
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void aBatchThatOutlivesItsChannelAndEndpointIsGivenBackWithoutHarm(String transport) throws Exception {
    try (Pair pair = new Pair(transport, SMALL)) {
      ChannelEvents events = new ChannelEvents(1);
      assertTrue(pair.client.send(pair.atClient, "kept"));
      pollSome(pair.server.poller, events);
      pair.client.poller.closeNow(pair.atClient);
      assertEquals(Code.CLOSED, pair.server.expectClosed(pair.atServer).code());
      assertEquals("kept", textOf(events, 0));
      pair.server.close();
      pair.server.poller.release(events);
      pair.server.poller.release(events);
    }
  }

  private static void pollSome(Poller poller, ChannelEvents events) throws InterruptedException {
    do {
      assertEquals(Outcome.DONE, poller.await(EndpointSide.AT_MOST));
    } while (poller.poll(events) == 0);
  }

  private static String textOf(ChannelEvents events, int i) {
    byte[] bytes = new byte[events.length(i)];
    events.buffer(i).get(events.offset(i), bytes);
    return new String(bytes, UTF_8);
  }

  /** Of the server's only channel; what was released is told to the client. */
  private static long unreleasedBytes(Pair pair) {
    pair.server.poller.await(Wait.NONE);
    return pair.server.endpoint.metrics().channels().get(0).traffic().unreleasedBytes();
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void takesNoMoreFramesThanItCanTrackUntilSomeAreReleased(String transport) throws Exception {
    try (Pair pair = new Pair(transport, new ChannelSpec())) {
      int most = 64; // ring/consumer.h
      for (int i = 0; i < 2 * most; i++) {
        assertTrue(pair.client.send(pair.atClient, "frame " + i));
      }
      List<Event> held = new ArrayList<>();
      for (int i = 0; i < most; i++) {
        held.add(pair.server.expect(Kind.FRAME));
      }
      assertEquals(0, pair.server.poller.poll(new ChannelEvents(1)));
      held.forEach(frame -> pair.server.poller.release(frame.channel(), frame.token()));
      for (int i = most; i < 2 * most; i++) {
        pair.server.expectFrame("frame " + i);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void eachRingIsOneBufferInWhichFramesLie(String transport) throws Exception {
    try (Pair pair = new Pair(transport, new ChannelSpec().withRings(16384, 8192))) {
      ByteBuffer outgoing = pair.client.poller.outgoing(pair.atClient);
      assertTrue(outgoing.isDirect() && outgoing.capacity() == 16384);
      assertEquals(8192, pair.server.poller.outgoing(pair.atServer).capacity());
      assertTrue(pair.client.send(pair.atClient, "one"));
      assertTrue(pair.client.send(pair.atClient, "two"));
      assertSame(outgoing, pair.client.poller.outgoing(pair.atClient));
      Event one = pair.server.expect(Kind.FRAME);
      Event two = pair.server.expect(Kind.FRAME);
      assertSame(one.buffer(), two.buffer());
      assertEquals(HEADER_BYTES, one.offset());
      assertTrue(one.buffer().isDirect() && one.buffer().capacity() == 16384);
      assertThrows(ReadOnlyBufferException.class, () -> one.buffer().put(0, (byte) 1));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void refusesFramesThatItCannotTake(String transport) throws Exception {
    try (Pair pair = new Pair(transport, SMALL)) {
      Poller poller = pair.client.poller;
      FaroException refused = failure(() -> poller.claim(pair.atClient, 1009, 1009));
      assertEquals(Code.INVALID_ARGUMENT, refused.code());
      assertTrue(refused.getMessage().contains("1008"), refused.getMessage());
      assertEquals(Code.INVALID_ARGUMENT, poller.failure(pair.atClient).code());
      assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> poller.claim(pair.atClient, -1, 10)));
      assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> poller.claim(pair.atClient, 1, -10)));
      assertEquals(Code.WRONG_STATE, codeOf(() -> poller.commit(pair.atClient, 0)));
      assertEquals(Outcome.DONE, poller.claim(pair.atClient, 1008, Integer.MAX_VALUE));
      assertEquals(2048 - HEADER_BYTES, poller.claimLength()); // half the ring
      assertNull(poller.failure(pair.atClient));
      for (int bytes : new int[] {-1, 2048, Integer.MAX_VALUE}) {
        assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> poller.commit(pair.atClient, bytes)));
      }
      poller.commit(pair.atClient, 10);
      assertEquals(Code.WRONG_STATE, codeOf(() -> poller.commit(pair.atClient, 0)));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void aQuietFrameIsSeenAtTheLatestWithTheNextLoudOne(String transport) throws Exception {
    try (Pair pair = new Pair(transport, SMALL)) {
      Poller poller = pair.client.poller;
      assertEquals(Outcome.DONE, poller.claim(pair.atClient, 5, 5));
      poller.outgoing(pair.atClient).put(poller.claimOffset(), "quiet".getBytes(UTF_8));
      assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> poller.commitQuietly(pair.atClient, 4096)));
      poller.commitQuietly(pair.atClient, 5);
      poller.post();
      assertEquals(Outcome.WOULD_WAIT, poller.await(Wait.NONE)); // which posts no more than that
      if (transport.equals("tcp")) {
        assertEquals(Outcome.WOULD_WAIT, pair.server.poller.await(Wait.NONE));
        assertTrue(pair.client.send(pair.atClient, "loud"));
      }
      pair.server.expectFrame("quiet"); // on one host when its receiver looks
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void waitsForWhatItIsTold(String transport) throws Exception {
    try (Pair pair = new Pair(transport, SMALL)) {
      int sent = pair.fill("0123456789");
      for (int frame = 0; frame < sent; frame++) {
        pair.server.expectFrame("0123456789");
      }
      Poller poller = pair.client.poller;
      assertEquals(Outcome.WOULD_WAIT, pair.server.poller.await(Wait.NONE)); // tells what was released
      assertEquals(Outcome.DEADLINE, poller.await(Wait.atMost(Duration.ofMillis(20)), WakeFor.FRAMES));
      assertEquals(Outcome.DONE, poller.await(EndpointSide.AT_MOST, WakeFor.ROOM));
      assertEquals(pair.atClient, pair.client.expect(Kind.ROOM).channel());
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void isArmedForAnEventLoopIfThereIsNothingToTell(String transport) throws Exception {
    try (Pair pair = new Pair(transport, SMALL)) {
      Poller poller = pair.server.poller;
      assertEquals(Code.WRONG_STATE, codeOf(() -> poller.arm(WakeFor.FRAMES_AND_ROOM)));
      int descriptor = poller.descriptor();
      assertTrue(descriptor >= 0);
      assertEquals(descriptor, poller.descriptor());
      assertEquals(Outcome.WOULD_WAIT, poller.arm(WakeFor.FRAMES_AND_ROOM));
      assertFalse(poller.tryEnter());
      assertTrue(pair.client.send(pair.atClient, "frame"));
      while (poller.arm(WakeFor.FRAMES) != Outcome.DONE) {
        Thread.onSpinWait();
      }
      pair.server.expectFrame("frame");
      poller.wake();
      assertEquals(Outcome.DONE, poller.arm(WakeFor.NOTHING));
      pair.server.close();
      assertEquals(Code.CLOSED, pair.server.expectClosed(pair.atServer).code());
      assertEquals(Code.CLOSED, codeOf(() -> poller.arm(WakeFor.FRAMES_AND_ROOM)));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void allocatesNothingPerFrame(String transport) throws Exception {
    int warmup = 4_000;
    int frames = 4_000;
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long thread = Thread.currentThread().getId();
    try (Pair pair = new Pair(transport, new ChannelSpec())) {
      ChannelEvents events = new ChannelEvents(16);
      long before = 0;
      for (int i = 0; i < warmup + frames; i++) {
        if (i == warmup) {
          before = threads.getThreadAllocatedBytes(thread);
        }
        move(pair, i, events, i % 2 == 0);
      }
      long allocated = threads.getThreadAllocatedBytes(thread) - before;
      assertTrue(allocated < 16 * 1024, allocated + " bytes for " + frames + " frames"); // an object each would be more
    }
  }

  /** One frame, to the server, and every call that it takes. */
  private static void move(Pair pair, int number, ChannelEvents events, boolean asABatch) throws InterruptedException {
    Poller from = pair.client.poller;
    while (from.claim(pair.atClient, Long.BYTES, Long.BYTES) != Outcome.DONE) {
      assertSame(Outcome.DONE, from.await()); // for a ROOM event
      from.poll(events);
    }
    from.outgoing(pair.atClient).putLong(from.claimOffset(), number);
    from.commit(pair.atClient, Long.BYTES);
    from.post();
    Poller to = pair.server.poller;
    for (int count = 0; count == 0; ) {
      assertSame(Outcome.DONE, to.await());
      count = to.poll(events);
    }
    if (events.kind(0) != Kind.FRAME || events.length(0) != Long.BYTES) {
      throw new AssertionError("not the frame");
    }
    if (events.buffer(0).getLong(events.offset(0)) != number) {
      throw new AssertionError("another number");
    }
    if (asABatch) {
      to.release(events);
    } else {
      to.release(events.channel(0), events.token(0));
    }
    to.wake(); // the next wait
    assertSame(Outcome.DONE, to.await(Wait.NONE)); // tells what was released
  }

  // --- how channels end

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void isDrainedBeforeItCloses(String transport) throws Exception {
    try (Pair pair = new Pair(transport, SMALL)) {
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
    try (Pair pair = new Pair(transport, new ChannelSpec())) {
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
    try (Pair pair = new Pair(transport, new ChannelSpec())) {
      assertTrue(pair.client.send(pair.atClient, "kept"));
      Event frame = pair.server.expect(Kind.FRAME);
      pair.client.poller.closeNow(pair.atClient);
      assertEquals(Code.CLOSED, pair.client.expectClosed(pair.atClient).code());
      FaroException cause = pair.server.expectClosed(pair.atServer);
      assertEquals(Code.CLOSED, cause.code());
      assertTrue(cause.getMessage().contains("client"), cause.getMessage());
      assertEquals("kept", frame.text());
      pair.server.poller.release(frame.channel(), frame.token());
      assertEquals("kept", frame.text()); // what was mapped stays mapped
      assertEquals(Code.CLOSED, codeOf(() -> pair.server.send(pair.atServer, "late")));
      assertTrue(pair.server.poller.info(pair.atServer).peer().contains("client"));
      assertEquals(0, pair.server.poller.poll(new ChannelEvents(1)));
      assertEquals(Code.CLOSED, codeOf(() -> pair.server.poller.info(pair.atServer)));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void endsWithTheEndpointOfItsPeer(String transport) throws Exception {
    try (Pair pair = new Pair(transport, new ChannelSpec())) {
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
    Pair pair = new Pair(transport, new ChannelSpec());
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
    outgoing.put(0, (byte) 1);
  }

  @Test
  void theRingsOfAChannelThatIsGoneAreGivenBackWithTheirBuffers() throws Exception {
    try (EndpointSide server =
            new EndpointSide(new EndpointSpec(), config -> config.set(Setting.MEMORY_LIMIT_BYTES, 1572864));
        EndpointSide client = new EndpointSide("shm")) {
      ChannelSpec megabyte = new ChannelSpec().withRings(1 << 20, 1 << 20);
      WeakReference<ByteBuffer> buffer = openAndClose(client, server, megabyte);
      // The server's memory is enough for one such channel.
      for (long end = System.nanoTime() + 20_000_000_000L; ; ) {
        System.gc();
        long channel = client.connect(server, megabyte);
        Event event = client.next();
        if (event.kind() == Kind.OPENED) {
          break;
        }
        assertEquals(Code.RESOURCE_LIMIT, client.poller.failure(channel).code());
        assertTrue(System.nanoTime() < end, "the memory was not given back");
      }
      assertNull(buffer.get());
    }
  }

  private static WeakReference<ByteBuffer> openAndClose(EndpointSide client, EndpointSide server, ChannelSpec spec)
      throws InterruptedException {
    long channel = client.connect(server, spec);
    client.expectOpened();
    long atServer = server.expectOpened();
    assertTrue(client.send(channel, "once"));
    Event frame = server.expect(Kind.FRAME);
    assertEquals("once", frame.text());
    server.poller.release(atServer, frame.token());
    client.poller.closeNow(channel);
    client.expectClosed(channel);
    server.expectClosed(atServer);
    server.poller.poll(new ChannelEvents(1));
    WeakReference<ByteBuffer> buffer = new WeakReference<>(frame.buffer());
    server.poller.forgetRings(atServer); // as the next poll with its events does
    return buffer;
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
      pollSome(poller, events);
      assertEquals(Kind.OPENED, events.kind(0));
      assertEquals(Code.WRONG_STATE, codeOf(() -> events.buffer(0)));
      assertThrows(IndexOutOfBoundsException.class, () -> events.kind(1));
      assertTrue(client.send(channel, "hello"));
      pollSome(poller, events);
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

  // --- waiting

  @Test
  void waitsNoLongerThanItIsTold() throws Exception {
    try (EndpointSide side = new EndpointSide("shm")) {
      Poller poller = side.poller;
      assertEquals(Outcome.WOULD_WAIT, poller.await(Wait.NONE));
      assertEquals(Outcome.DEADLINE, poller.await(Wait.atMost(Duration.ZERO)));
      assertEquals(Outcome.DEADLINE, poller.await(Wait.atMost(Duration.ofMillis(1))));
      poller.wake();
      poller.wake();
      assertEquals(Outcome.DONE, poller.await());
      assertEquals(Outcome.WOULD_WAIT, poller.await(Wait.NONE));
      poller.wake();
      assertEquals(Outcome.DONE, poller.await(Wait.NONE));
    }
  }

  /** Each wake-up comes before the poller has looked at what it is for, or ends a later wait. */
  @Test
  void noWakeUpOfManyThreadsIsLost() throws Exception {
    int wakers = 3;
    int each = 20_000;
    try (EndpointSide side = new EndpointSide("shm")) {
      AtomicInteger work = new AtomicInteger();
      List<FutureTask<Void>> threads = new ArrayList<>();
      for (int w = 0; w < wakers; w++) {
        threads.add(
            start(
                () -> {
                  for (int i = 0; i < each; i++) {
                    work.incrementAndGet();
                    side.poller.wake();
                  }
                  return null;
                }));
      }
      for (int done = 0; done < wakers * each; done += work.getAndSet(0)) {
        assertEquals(Outcome.DONE, side.poller.await(EndpointSide.AT_MOST));
      }
      for (FutureTask<Void> thread : threads) {
        thread.get();
      }
    }
  }

  @Test
  void anInterruptEndsAWaitAndLosesNothing() throws Exception {
    try (Pair pair = new Pair("shm", SMALL)) {
      Poller poller = pair.client.poller;
      Thread.currentThread().interrupt();
      assertThrows(InterruptedException.class, poller::await);
      assertFalse(Thread.interrupted());
      for (int i = 0; i < 200; i++) { // before, while or after it begins to wait
        Thread self = Thread.currentThread();
        FutureTask<Void> other =
            start(
                () -> {
                  self.interrupt();
                  return null;
                });
        assertThrows(InterruptedException.class, () -> awaitForever(poller));
        other.get();
        assertFalse(Thread.interrupted());
      }
      poller.wake();
      Thread.currentThread().interrupt();
      assertThrows(InterruptedException.class, poller::await);
      assertEquals(Outcome.DONE, poller.await()); // the wake-up was not lost
      assertTrue(pair.server.send(pair.atServer, "there"));
      Thread.currentThread().interrupt();
      assertThrows(InterruptedException.class, poller::await);
      pair.client.expectFrame("there");
      // Without waiting an interrupt changes nothing.
      poller.await(Wait.NONE);
      Thread.currentThread().interrupt();
      poller.await(Wait.NONE);
      assertTrue(Thread.interrupted());
    }
  }

  private static void awaitForever(Poller poller) throws InterruptedException {
    while (poller.await() == Outcome.DONE) {
      poller.poll(new ChannelEvents(1));
    }
  }

  @Test
  void closingEndsAWait() throws Exception {
    EndpointSide side = new EndpointSide("shm");
    FutureTask<Code> waiting = start(() -> codeOf(side.poller::await));
    side.close();
    assertEquals(Code.CLOSED, waiting.get());
  }

  @Test
  void anotherThreadSendsWhileThePollerSleeps() throws Exception {
    try (Pair pair = new Pair("shm", SMALL)) {
      Poller poller = pair.client.poller;
      assertFalse(poller.tryEnter()); // it does not sleep
      assertEquals(Code.WRONG_STATE, codeOf(poller::leave));
      AtomicBoolean sent = new AtomicBoolean();
      FutureTask<Void> other =
          start(
              () -> {
                assertEquals(Code.WRONG_STATE, codeOf(() -> poller.claim(pair.atClient, 1, 1)));
                while (!poller.tryEnter()) {
                  Thread.onSpinWait();
                }
                try {
                  assertFalse(poller.tryEnter());
                  assertEquals(Code.WRONG_STATE, codeOf(() -> poller.await(Wait.NONE)));
                  assertTrue(pair.client.send(pair.atClient, "by another thread"));
                } finally {
                  poller.leave();
                }
                assertEquals(Code.WRONG_STATE, codeOf(poller::leave));
                sent.set(true);
                poller.wake();
                return null;
              });
      while (!sent.get()) {
        assertEquals(Outcome.DONE, poller.await(EndpointSide.AT_MOST));
      }
      other.get();
      pair.server.expectFrame("by another thread");
      assertTrue(pair.client.send(pair.atClient, "by its own"));
      pair.server.expectFrame("by its own");
    }
  }

  @Test
  void aPollerBelongsToOneThreadUntilThatReleasesIt() throws Exception {
    try (EndpointSide side = new EndpointSide("shm")) {
      assertEquals(Outcome.WOULD_WAIT, side.poller.await(Wait.NONE));
      assertEquals(Code.WRONG_STATE, start(() -> codeOf(side.poller::post)).get());
      side.poller.releaseOwnership();
      Thread other = new Thread(side.poller::post);
      other.start();
      other.join();
      side.poller.post(); // that thread has ended
    }
  }

  /** Taken for a virtual thread. */
  private static final class Virtual extends Thread {
    Virtual(Runnable body) {
      super(body);
    }
  }

  @Test
  void aVirtualThreadWaitsWithoutANativeCallOfItsOwn() throws Exception {
    VirtualThreads.alsoForTest(Virtual.class);
    try (Pair pair = new Pair("shm", SMALL)) {
      Poller poller = pair.server.poller;
      poller.releaseOwnership();
      AtomicInteger step = new AtomicInteger();
      FutureTask<Code> task =
          new FutureTask<>(
              () -> {
                assertEquals(Outcome.DEADLINE, poller.await(Wait.atMost(Duration.ofMillis(1))));
                step.set(1);
                pair.server.expectFrame("hello");
                step.set(2);
                assertThrows(InterruptedException.class, () -> awaitForever(poller));
                step.set(3);
                return codeOf(() -> awaitForever(poller));
              });
      Virtual thread = new Virtual(task);
      thread.start();
      awaitApart(thread, step, 1);
      assertTrue(pair.client.send(pair.atClient, "hello"));
      awaitApart(thread, step, 2);
      thread.interrupt();
      awaitApart(thread, step, 3);
      pair.server.close();
      assertEquals(Code.CLOSED, task.get());
    } finally {
      VirtualThreads.alsoForTest(null);
    }
  }

  /** Until the thread waits in Java, in that step. */
  private static void awaitApart(Virtual thread, AtomicInteger step, int wanted) {
    while (step.get() != wanted
        || Arrays.stream(thread.getStackTrace()).noneMatch(frame -> frame.getMethodName().equals("awaitApart"))) {
      assertTrue(thread.isAlive());
      Thread.onSpinWait();
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
