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
      ObjectShuffleSpec<String> spec = ShuffleSpec.repartition(query, 1).withRowsOf(RowCodecs.STRING);
      try (ObjectShuffle<String> shuffle = worker.openShuffle(spec)) {
        for (String word : WORDS) check(shuffle.sender().send(word.charAt(0) % 2, word));
        check(shuffle.sender().finish());
        for (String word : shuffle.receiver()) received.add(word);
      }
      worker.endQuery(query); // throws if it failed anywhere
      System.out.println("node " + node + ": " + received);
    }
  }

  /** Each receiver reads to the end, and nothing is held: every row is sent, or the query has failed. */
  static void check(Outcome outcome) {
    if (outcome != Outcome.DONE) throw new IllegalStateException("not sent: " + outcome);
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
