// A server that answers requests in upper case, and clients that come and go, over the channels of endpoints: for engines
// that do not want a cluster. Twin of ../request_response.cc: either server answers either client.
//
//   java -cp 'faro-0.1.0.jar:lib/*' examples/java/RequestResponse.java                     all in one JVM
//   java -cp 'faro-0.1.0.jar:lib/*' examples/java/RequestResponse.java server HOST:PORT    until it is killed
//   java -cp 'faro-0.1.0.jar:lib/*' examples/java/RequestResponse.java client HOST:PORT
import io.faro.*;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;

public class RequestResponse {
  static final int CLIENTS = 4;
  static final int REQUESTS = 1000; // of each client, one after the other

  public static void main(String[] args) throws Exception {
    String role = args.length == 2 ? args[0] : "";
    if (role.equals("client")) {
      runClient(args[1]);
      return;
    }
    SessionConfig.Builder config = SessionConfig.builder();
    if (role.equals("server")) config.set(Setting.CLUSTER_LISTEN, args[1]);
    try (Endpoint server = Endpoint.open(config.build(), new EndpointSpec().withName("server"))) {
      System.out.println("listens at " + server.address());
      if (role.equals("server")) serve(server, Integer.MAX_VALUE);
      ExecutorService threads = Executors.newFixedThreadPool(CLIENTS);
      Callable<Void> client = () -> runClient(server.address());
      List<Future<Void>> clients = new ArrayList<>();
      for (int c = 0; c < CLIENTS; c++) clients.add(threads.submit(client));
      int answers = serve(server, CLIENTS);
      for (Future<Void> each : clients) each.get();
      threads.shutdown();
      System.out.println(answers + " requests answered");
      if (answers != CLIENTS * REQUESTS) System.exit(1);
    }
  }

  /** Serves all channels, until that many have closed. Returns how many requests it has answered. */
  static int serve(Endpoint endpoint, int channels) throws InterruptedException {
    Poller poller = endpoint.poller(0);
    ChannelEvents events = new ChannelEvents(64);
    int answers = 0;
    while (channels > 0) {
      poller.await(); // which sends the answers, too
      int count = poller.poll(events);
      for (int i = 0; i < count; i++) {
        switch (events.kind(i)) {
          case FRAME -> answers += answerIfThere(poller, events, i);
          case CLOSED -> channels--;
          default -> {}
        }
      }
    }
    return answers;
  }

  static int answerIfThere(Poller poller, ChannelEvents events, int i) {
    try {
      return answer(poller, events, i);
    } catch (FaroException gone) { // the client: CLOSED follows
      poller.release(events.channel(i), events.token(i));
      return 0;
    }
  }

  static int answer(Poller poller, ChannelEvents events, int i) {
    long channel = events.channel(i);
    ByteBuffer request = events.buffer(i);
    ByteBuffer answer = claim(poller, channel, events.length(i));
    for (int at = 0; at < events.length(i); at++) {
      answer.put(poller.claimOffset() + at, (byte) Character.toUpperCase(request.get(events.offset(i) + at)));
    }
    poller.commit(channel, events.length(i));
    poller.release(channel, events.token(i));
    return 1;
  }

  /** A channel has one request or answer under way: there is always room. */
  static ByteBuffer claim(Poller poller, long channel, int bytes) {
    if (poller.claim(channel, bytes, bytes) != Outcome.DONE) throw new IllegalStateException("no room");
    return poller.outgoing(channel);
  }

  static Void runClient(String address) throws InterruptedException {
    SessionConfig config = SessionConfig.builder().build();
    try (Endpoint endpoint = Endpoint.open(config, new EndpointSpec().withName("client"))) {
      Poller poller = endpoint.poller(0);
      long channel = poller.connect(address, new ChannelSpec());
      ChannelEvents events = new ChannelEvents(4);
      for (int answered = 0; ; ) {
        poller.await();
        int count = poller.poll(events);
        for (int i = 0; i < count; i++) {
          if (events.kind(i) == ChannelEvents.Kind.CLOSED) {
            if (poller.failure(channel) != null) throw poller.failure(channel);
            return null;
          }
          if (events.kind(i) == ChannelEvents.Kind.FRAME) {
            check(text(events, i), "REQUEST " + answered++);
            poller.release(channel, events.token(i));
          }
          if (answered == REQUESTS) {
            poller.drain(channel); // CLOSED follows
            continue;
          }
          byte[] request = ("request " + answered).getBytes(StandardCharsets.UTF_8);
          claim(poller, channel, request.length).put(poller.claimOffset(), request);
          poller.commit(channel, request.length);
        }
      }
    }
  }

  static String text(ChannelEvents events, int i) {
    byte[] bytes = new byte[events.length(i)];
    events.buffer(i).get(events.offset(i), bytes);
    return new String(bytes, StandardCharsets.UTF_8);
  }

  static void check(String answer, String expected) {
    if (!answer.equals(expected)) throw new IllegalStateException(answer + ", not " + expected);
  }
}
