// Two JVMs join orders with customers: rows of both go to the node that owns the customer's number; each
// node builds a hash table of its customers and probes it with its orders.
//   java -cp 'faro-0.1.0.jar:lib/*' examples/java/HashJoin.java
// The first JVM is node 0; it starts the second one and tells it the query, as an engine would by its RPC.
import io.faro.*;
import java.io.*;
import java.net.*;
import java.util.*;

public class HashJoin {
  static final List<Socket> HELD = new ArrayList<>();
  static final Column KEY = Column.of(ColumnType.LONG);
  static final SchemaCodec CUSTOMERS = new SchemaCodec(List.of(KEY, Column.of(ColumnType.STRING)));
  static final SchemaCodec ORDERS = new SchemaCodec(List.of(KEY, Column.nullable(ColumnType.DOUBLE)));

  public static void main(String[] args) throws Exception {
    boolean first = args.length == 0;
    List<String> nodes = first ? List.of(heldAddress(), heldAddress()) : List.of(args);
    Process other = first ? startOther(nodes) : null;
    SessionConfig config = SessionConfig.builder().cluster(first ? 0 : 1, nodes).build();
    try (Session session = Session.open(config)) {
      QueryId query = first ? session.beginQuery() : QueryId.parse(new Scanner(System.in).next());
      if (first) new PrintStream(other.getOutputStream(), true).println(query.encoded());
      join(session, query);
    }
    System.exit(first ? other.waitFor() : 0);
  }

  static void join(Session session, QueryId query) throws InterruptedException {
    Worker worker = session.workers().get(0);
    int[] pairs = {0};
    Map<Object, Object> names = new HashMap<>();
    try (QueryScope part = new QueryScope(worker, query)) { // left early, the query fails on both nodes
      try (ObjectShuffle<Object[]> customers = worker.openShuffle(ShuffleSpec.repartition(query, 1).withRowsOf(CUSTOMERS));
          ObjectShuffle<Object[]> orders = worker.openShuffle(ShuffleSpec.repartition(query, 2).withRowsOf(ORDERS))) {
        long[] at = {session.node(), session.node()}; // the next row of this node's half of both tables
        check(worker.exchange(customers, sender -> send(sender, at, 0), row -> names.put(row[0], row[1])));
        check(worker.exchange(orders, sender -> send(sender, at, 1), row -> pairs[0] += names.containsKey(row[0]) ? 1 : 0));
      }
      part.end(); // throws if it failed anywhere
    }
    System.out.println("node " + session.node() + ": " + names.size() + " customers, " + pairs[0] + " orders");
  }

  /** Sends rows of a table while there is room. What others have sent is received between two calls. */
  static Outcome send(ObjectSender<Object[]> sender, long[] at, int table) {
    for (; at[table] < 1000; at[table] += 2) {
      long i = at[table], key = table == 0 ? i : i / 3;
      Object value = table == 0 ? "customer " + i : i % 10 == 0 ? null : (Object) (0.5 * i);
      Outcome sent = sender.send(owner(key), new Object[] {key, value}, Wait.NONE);
      if (sent != Outcome.DONE) return sent; // the row is made again
    }
    return Outcome.END_OF_STREAM;
  }

  /** Nothing is held: all is received, or the query has failed. */
  static void check(Outcome outcome) {
    if (outcome != Outcome.END_OF_STREAM) throw new IllegalStateException("not all was received: " + outcome);
  }

  static int owner(long key) { return Partition.FINALIZER.receiverOf(key, 2); }

  static Process startOther(List<String> nodes) throws IOException {
    String java = System.getProperty("java.home") + "/bin/java", path = System.getProperty("java.class.path");
    return new ProcessBuilder(java, "-cp", path, "examples/java/HashJoin.java", nodes.get(0), nodes.get(1))
        .redirectOutput(ProcessBuilder.Redirect.INHERIT).redirectError(ProcessBuilder.Redirect.INHERIT).start();
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
