package io.faro;

import static io.faro.Checks.codeOf;
import static io.faro.Checks.failure;
import static io.faro.Checks.inThread;
import static io.faro.Checks.start;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import io.faro.ChannelEvents.Kind;
import io.faro.EndpointSide.Event;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Frames over a channel, in one JVM: both ways, by copies and in the rings, given back in any order. */
@Timeout(60)
class ChannelFramesTest {
  private static final ChannelSpec SMALL = new ChannelSpec().withRings(4096, 4096);
  private static final int HEADER_BYTES = 16; // of a frame in a ring

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void carriesFramesBothWays(String transport) throws Exception {
    try (ChannelPair pair = new ChannelPair(transport, new ChannelSpec())) {
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
    try (ChannelPair pair = new ChannelPair(transport, new ChannelSpec().withRings(16384, 8192).withGreeting((byte) 7, (byte) 8))) {
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
    try (ChannelPair pair = new ChannelPair(transport, SMALL)) {
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
    try (ChannelPair pair = new ChannelPair(transport, new ChannelSpec())) {
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
    try (ChannelPair pair = new ChannelPair(transport, SMALL)) {
      Poller poller = pair.server.poller;
      ChannelEvents events = new ChannelEvents(4);
      for (int round = 0; round < 3; round++) {
        int sent = pair.fill("0123456789");
        assertTrue(sent > events.capacity());
        for (int taken = 0; taken < sent; ) {
          EndpointSide.pollSome(poller, events);
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
    try (ChannelPair pair = new ChannelPair(transport, new ChannelSpec())) {
      Poller poller = pair.server.poller;
      ChannelEvents held = new ChannelEvents(1);
      assertTrue(pair.client.send(pair.atClient, "held"));
      EndpointSide.pollSome(poller, held);
      List<ChannelEvents> batches = new ArrayList<>();
      for (int i = 0; i < 5; i++) {
        batches.add(new ChannelEvents(1));
        assertTrue(pair.client.send(pair.atClient, "frame " + i));
        EndpointSide.pollSome(poller, batches.get(i));
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
    try (ChannelPair pair = new ChannelPair(transport, SMALL)) {
      Poller poller = pair.server.poller;
      ChannelEvents events = new ChannelEvents(16);
      poller.release(events); // nothing was polled
      assertTrue(pair.client.send(pair.atClient, "last"));
      pair.client.poller.drain(pair.atClient);
      EndpointSide.pollSome(poller, events);
      assertEquals(Kind.FRAME, events.kind(0));
      assertEquals(Code.WRONG_STATE, codeOf(() -> pair.client.poller.release(events)));
      assertEquals(Code.WRONG_STATE, inThread(() -> codeOf(() -> poller.release(events))));
      assertEquals("last", textOf(events, 0));
      assertThrows(NullPointerException.class, () -> poller.release(null));
      poller.releaseOwnership();
      FutureTask<Kind> server =
          start(
              () -> {
                poller.release(events);
                do {
                  EndpointSide.pollSome(poller, events);
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
    try (ChannelPair pair = new ChannelPair(transport, SMALL)) {
      ChannelEvents events = new ChannelEvents(1);
      assertTrue(pair.client.send(pair.atClient, "kept"));
      EndpointSide.pollSome(pair.server.poller, events);
      pair.client.poller.closeNow(pair.atClient);
      assertEquals(Code.CLOSED, pair.server.expectClosed(pair.atServer).code());
      assertEquals("kept", textOf(events, 0));
      pair.server.close();
      pair.server.poller.release(events);
      pair.server.poller.release(events);
    }
  }

  private static String textOf(ChannelEvents events, int i) {
    byte[] bytes = new byte[events.length(i)];
    events.buffer(i).get(events.offset(i), bytes);
    return new String(bytes, UTF_8);
  }

  /** The unreleased bytes of the server's only channel; what was released is told to the client. */
  private static long unreleasedBytes(ChannelPair pair) {
    pair.server.poller.await(Wait.NONE);
    return pair.server.endpoint.metrics().channels().get(0).traffic().unreleasedBytes();
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void takesNoMoreFramesThanItCanTrackUntilSomeAreReleased(String transport) throws Exception {
    try (ChannelPair pair = new ChannelPair(transport, new ChannelSpec())) {
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
    try (ChannelPair pair = new ChannelPair(transport, new ChannelSpec().withRings(16384, 8192))) {
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
    try (ChannelPair pair = new ChannelPair(transport, SMALL)) {
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
  void oneCallSendsAFrameAndClaimsTheNext(String transport) throws Exception {
    try (ChannelPair pair = new ChannelPair(transport, SMALL)) {
      Poller poller = pair.client.poller;
      long channel = pair.atClient;
      assertEquals(Code.WRONG_STATE, codeOf(() -> commitAndClaim(poller, channel, 0, 1)));
      assertEquals(Outcome.DONE, poller.claim(channel, 1, 2000));
      int frames = 0;
      Outcome outcome;
      do {
        String text = "frame " + frames++;
        poller.outgoing(channel).put(poller.claimOffset(), text.getBytes(UTF_8));
        outcome = commitAndClaim(poller, channel, text.length(), 1000);
      } while (outcome == Outcome.DONE && frames < 1000);
      assertEquals(Outcome.WOULD_WAIT, outcome); // the frame has left all the same
      for (int frame = 0; frame < frames; frame++) {
        pair.server.expectFrame("frame " + frame); // nothing else has posted them
      }
      assertEquals(Code.WRONG_STATE, codeOf(() -> commitAndClaim(poller, channel, 0, 1)));
      assertEquals(Outcome.WOULD_WAIT, pair.server.poller.await(Wait.NONE)); // tells what was released
      pair.client.expect(Kind.ROOM);
      assertEquals(Outcome.DONE, poller.claim(channel, 5, 5));
      for (int bytes : new int[] {-1, 6, Integer.MAX_VALUE}) {
        assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> commitAndClaim(poller, channel, bytes, 1)));
      }
      assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> commitAndClaim(poller, channel, 5, -1)));
      assertEquals(5, poller.claimLength()); // the claim stays
      poller.outgoing(channel).put(poller.claimOffset(), "again".getBytes(UTF_8));
      assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> commitAndClaim(poller, channel, 5, 1009)));
      assertEquals(0, poller.claimLength()); // what was refused is the claim
      pair.server.expectFrame("again");
    }
  }

  private static Outcome commitAndClaim(Poller poller, long channel, int bytes, int least) {
    return poller.commitAndClaim(channel, bytes, least, least);
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void aQuietFrameIsSeenAtTheLatestWithTheNextLoudOne(String transport) throws Exception {
    try (ChannelPair pair = new ChannelPair(transport, SMALL)) {
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
    try (ChannelPair pair = new ChannelPair(transport, SMALL)) {
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
    try (ChannelPair pair = new ChannelPair(transport, SMALL)) {
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
    try (ChannelPair pair = new ChannelPair(transport, new ChannelSpec())) {
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
  private static void move(ChannelPair pair, int number, ChannelEvents events, boolean asABatch) throws InterruptedException {
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
}
