package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Consumer;

/** An endpoint of a test, and what its poller 0 tells the test's thread, one event after the other. */
final class EndpointSide implements AutoCloseable {
  /** Far longer than anything here takes: what hangs fails with a text. */
  static final Wait<InterruptedException> AT_MOST = Wait.atMost(Duration.ofSeconds(30));

  /** A copy of what an event says; of a frame, where it lies. */
  record Event(ChannelEvents.Kind kind, long channel, int token, ByteBuffer buffer, int offset, int length) {
    String text() {
      byte[] bytes = new byte[length];
      buffer.get(offset, bytes);
      return new String(bytes, UTF_8);
    }
  }

  final Endpoint endpoint;
  final Poller poller;
  private final ChannelEvents events = new ChannelEvents(3); // few, so that it takes several turns
  private final Deque<Event> waiting = new ArrayDeque<>();

  EndpointSide(String transport) {
    this(transport, new EndpointSpec());
  }

  EndpointSide(String transport, EndpointSpec spec) {
    this(spec, config -> config.set(Setting.TRANSPORT, transport));
  }

  EndpointSide(EndpointSpec spec, Consumer<SessionConfig.Builder> settings) {
    SessionConfig.Builder config = SessionConfig.builder();
    settings.accept(config);
    endpoint = Endpoint.open(config.build(), spec);
    poller = endpoint.poller(0);
  }

  long connect(EndpointSide to, ChannelSpec spec) {
    return poller.connect(to.endpoint.address(), spec);
  }

  /** The next event. */
  Event next() throws InterruptedException {
    while (waiting.isEmpty()) {
      assertEquals(Outcome.DONE, poller.await(AT_MOST), "no event");
      int count = poller.poll(events);
      for (int i = 0; i < count; i++) {
        boolean isFrame = events.kind(i) == ChannelEvents.Kind.FRAME;
        waiting.add(
            new Event(
                events.kind(i),
                events.channel(i),
                events.token(i),
                isFrame ? events.buffer(i) : null,
                isFrame ? events.offset(i) : 0,
                events.length(i)));
      }
    }
    return waiting.remove();
  }

  /** The next event, which is of that kind. */
  Event expect(ChannelEvents.Kind kind) throws InterruptedException {
    Event event = next();
    assertEquals(kind, event.kind(), () -> String.valueOf(poller.failure(event.channel())));
    return event;
  }

  long expectOpened() throws InterruptedException {
    return expect(ChannelEvents.Kind.OPENED).channel();
  }

  /** The next event is that frame, which is released. */
  void expectFrame(String text) throws InterruptedException {
    Event frame = expect(ChannelEvents.Kind.FRAME);
    assertEquals(text, frame.text());
    poller.release(frame.channel(), frame.token());
  }

  /** The next event says that the channel has closed. Returns why; null: it was drained. */
  FaroException expectClosed(long channel) throws InterruptedException {
    assertEquals(channel, expect(ChannelEvents.Kind.CLOSED).channel());
    return poller.failure(channel);
  }

  /** False: there is no room. */
  boolean send(long channel, String text) {
    byte[] bytes = text.getBytes(UTF_8);
    if (poller.claim(channel, bytes.length, bytes.length) != Outcome.DONE) {
      return false;
    }
    poller.outgoing(channel).put(poller.claimOffset(), bytes);
    poller.commit(channel, bytes.length);
    poller.post();
    return true;
  }

  @Override
  public void close() {
    endpoint.close();
  }

  /** Waits until the poller has something to tell, and takes it. */
  static void pollSome(Poller poller, ChannelEvents events) throws InterruptedException {
    do {
      assertEquals(Outcome.DONE, poller.await(AT_MOST));
    } while (poller.poll(events) == 0);
  }
}
