// Three servers that answer requests in upper case, and clients that come and go, over the channels of endpoints: for
// engines that do not want a cluster. A client whose server leaves is told why, and goes on with the next one. Twin of
// ../request_response.cc: either's servers answer either's clients. Three servers and four clients in one JVM; or a server
// that says where it listens, until it is killed; or a client of the servers there, until it has a million answers:
//
//   java -cp 'faro-0.1.0.jar:lib/*' examples/java/RequestResponse.java [server | client HOST:PORT...]
import static java.nio.charset.StandardCharsets.US_ASCII;

import io.faro.*;
import io.faro.ChannelEvents.Kind;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;

public class RequestResponse {
  static final AtomicInteger ANSWERS = new AtomicInteger(), LOST = new AtomicInteger(); // servers that left clients

  public static void main(String[] args) throws Exception {
    if (args.length == 1) serve(open("server"), Integer.MAX_VALUE);
    if (args.length > 1) ask("client", List.of(args).subList(1, args.length), 0, 1_000_000);
    if (args.length > 0) return;
    List<Endpoint> servers = List.of(open("server"), open("server"), open("server"));
    List<String> at = servers.stream().map(Endpoint::address).toList();
    ForkJoinPool threads = new ForkJoinPool(7); // which do not keep the JVM from its end
    for (Endpoint each : servers) threads.submit(() -> serve(each, each == servers.get(2) ? 500 : Integer.MAX_VALUE));
    List<Future<?>> clients = new ArrayList<>();
    for (int c : List.of(0, 1, 2, 3)) // of which some are done long before others
      clients.add(threads.submit(() -> ask("client " + c, at, c % 3, 500 * (c + 1))));
    clients.get(0).get();
    clients.add(threads.submit(() -> ask("client 0", at, 1, 500))); // comes back, to another server
    for (Future<?> client : clients) client.get();
    servers.forEach(Endpoint::close);
    System.out.println(ANSWERS + " of 5500 answers, lost " + LOST + " of 1 server");
    if (ANSWERS.get() != 5500 || LOST.get() != 1) System.exit(1);
  }

  static Endpoint open(String name) { // where it listens is up to the system
    return Endpoint.open(SessionConfig.builder().build(), new EndpointSpec().withName(name));
  }

  /** Answers whoever comes, until the endpoint is closed, or leaves after that many answers. */
  static Void serve(Endpoint endpoint, int left) throws InterruptedException {
    System.out.println("a server listens at " + endpoint.address());
    Poller poller = endpoint.poller(0);
    ChannelEvents events = new ChannelEvents(64);
    for (; left > 0 && poller.await() == Outcome.DONE; poller.release(events)) { // all frames of the batch
      for (int i = 0, count = poller.poll(events); i < count; i++) { // of all channels
        if (events.kind(i) == Kind.OPENED) System.out.println(poller.info(events.channel(i)).peer() + " comes");
        if (events.kind(i) != Kind.FRAME) continue;
        send(poller, events.channel(i), text(events, i).toUpperCase(Locale.ROOT));
        left--;
      }
    }
    endpoint.close(); // at once: a client that has no answer yet asks another server
    return null;
  }

  /** Makes requests, one after the other: to servers[at], or if that goes to the next one. */
  static int ask(String name, List<String> servers, int at, int requests) throws InterruptedException {
    try (Endpoint endpoint = open(name)) {
      Poller poller = endpoint.poller(0);
      long channel = poller.connect(servers.get(at), new ChannelSpec());
      ChannelEvents events = new ChannelEvents(4);
      for (int answered = 0; ; poller.release(events)) {
        poller.await();
        for (int i = 0, count = poller.poll(events); i < count; i++) {
          if (events.kind(i) == Kind.FRAME && !text(events, i).equals("REQUEST " + answered++))
            throw new IllegalStateException("another answer");
          if (events.kind(i) == Kind.CLOSED) {
            if (answered == requests) return ANSWERS.addAndGet(answered);
            System.out.println(name + " has lost its server: " + poller.failure(channel));
            if (LOST.incrementAndGet() == 3) throw poller.failure(channel); // none is left
            channel = poller.connect(servers.get(++at % servers.size()), new ChannelSpec());
          } else if (answered < requests) send(poller, channel, "request " + answered);
          else poller.drain(channel); // nothing is lost; then comes CLOSED
        }
      }
    }
  }

  /** Writes a frame where it is sent from, by the next await(). There is room: one request or answer is under way. */
  static void send(Poller poller, long channel, String text) {
    byte[] frame = text.getBytes(US_ASCII);
    try {
      if (poller.claim(channel, frame.length, frame.length) != Outcome.DONE) throw new IllegalStateException("no room");
      poller.outgoing(channel).put(poller.claimOffset(), frame);
      poller.commit(channel, frame.length);
    } catch (FaroException gone) { // the peer has, as CLOSED will tell
    }
  }

  static String text(ChannelEvents events, int i) {
    byte[] bytes = new byte[events.length(i)];
    events.buffer(i).get(events.offset(i), bytes);
    return new String(bytes, US_ASCII);
  }
}
