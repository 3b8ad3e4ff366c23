// Two JVMs repartition words by their first letter: every word arrives at the one node that owns it.
//
//   java -cp 'faro-0.1.0.jar:lib/*' examples/java/Repartition.java
//
// The first JVM is node 0; it starts the second one, and tells it the query over its standard input, as
// an engine would over its RPC.
import io.faro.*;
import java.io.*;
import java.net.*;
import java.util.*;

public class Repartition {
  static final List<Socket> HELD = new ArrayList<>();
  static final String[] WORDS = "a shuffle sends each row where it belongs while others still run".split(" ");

  public static void main(String[] args) throws Exception {
    if (args.length == 2) {
      run(Integer.parseInt(args[0]), args[1], null);
      return;
    }
    String nodes = heldAddress() + "," + heldAddress();
    Process other =
        new ProcessBuilder(
                System.getProperty("java.home") + "/bin/java", "-cp", System.getProperty("java.class.path"),
                "examples/java/Repartition.java", "1", nodes)
            .redirectOutput(ProcessBuilder.Redirect.INHERIT).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    run(0, nodes, other.getOutputStream());
    System.exit(other.waitFor());
  }

  static void run(int node, String nodes, OutputStream other) throws Exception {
    SessionConfig config = SessionConfig.builder().cluster(node, List.of(nodes.split(","))).build();
    try (Session session = Session.open(config)) {
      QueryId query = node == 0 ? begin(session, new PrintStream(other)) : QueryId.parse(new Scanner(System.in).next());
      Worker worker = session.workers().get(0);
      Set<String> received = new TreeSet<>();
      try (QueryScope part = new QueryScope(worker, query)) { // left early, the query fails on both nodes
        ObjectShuffleSpec<String> spec = ShuffleSpec.repartition(query, 1).withRowsOf(RowCodecs.STRING);
        Deque<String> words = new ArrayDeque<>(List.of(WORDS));
        try (ObjectShuffle<String> shuffle = worker.openShuffle(spec)) {
          Outcome outcome = worker.exchange(shuffle, sender -> send(sender, words), received::add);
          if (outcome != Outcome.END_OF_STREAM) throw new IllegalStateException("not all was received: " + outcome);
        }
        part.end(); // throws if it failed anywhere
      }
      System.out.println("node " + node + ": " + received);
    }
  }

  /** Sends words while there is room. What others have sent is received between two calls. */
  static Outcome send(ObjectSender<String> sender, Deque<String> words) {
    for (; !words.isEmpty(); words.remove()) {
      String word = words.element();
      Outcome sent = sender.send(word.charAt(0) % 2, word, Wait.NONE);
      if (sent != Outcome.DONE) return sent; // the word stays the first one
    }
    return Outcome.END_OF_STREAM;
  }

  static QueryId begin(Session session, PrintStream other) {
    QueryId query = session.beginQuery();
    other.println(query.encoded());
    other.flush();
    return query;
  }

  /**
   * An address of this machine. A socket is bound to it, and does not listen: nobody else is given
   * the port.
   */
  static String heldAddress() throws IOException {
    Socket socket = new Socket();
    HELD.add(socket);
    socket.setReuseAddress(true);
    socket.bind(new InetSocketAddress("127.0.0.1", 0));
    return "127.0.0.1:" + socket.getLocalPort();
  }
}
