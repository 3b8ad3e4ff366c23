// The twin of session.cc: a node of one worker in a JVM.
//
//   java -cp … Pod <port of the harness> <node> <addresses>
import io.faro.*;
import java.io.*;
import java.net.Socket;
import java.util.*;
import java.util.concurrent.CountDownLatch;

public final class Pod {
  private final BufferedReader told;
  private final PrintStream driver;

  private Pod(Socket socket) throws IOException {
    told = new BufferedReader(new InputStreamReader(socket.getInputStream()));
    driver = new PrintStream(socket.getOutputStream(), true);
  }

  public static void main(String[] args) throws Exception {
    Pod pod = new Pod(new Socket("127.0.0.1", Integer.parseInt(args[0])));
    try {
      pod.serve(Integer.parseInt(args[1]), List.of(args[2].split(",")));
    } catch (FaroException failure) {
      pod.driver.println("failed " + failure.getMessage());
      System.exit(1);
    }
  }

  private void serve(int node, List<String> nodes) throws Exception {
    CountDownLatch closed = new CountDownLatch(1);
    SessionConfig config = SessionConfig.builder().environment().cluster(node, nodes).build();
    try (Session session = Session.open(config)) {
      session.listen(
          new SessionListener() {
            @Override
            public void nodeLeft(int left) {
              driver.println("peer left");
            }

            @Override
            public void nodeLost(int lost, FaroException cause) {
              driver.println("peer lost " + cause.getMessage());
            }
          });
      // SIGTERM: the JVM ends when this does.
      Thread termination = new Thread(() -> terminate(closed));
      Runtime.getRuntime().addShutdownHook(termination);
      driver.println("open");
      for (String[] line = hear(); !line[0].equals("close"); line = hear()) {
        if (line[0].equals("begin")) driver.println("query " + session.beginQuery().encoded());
        if (line[0].equals("run")) {
          runOrFail(session, QueryId.parse(line[1]), Integer.parseInt(line[2]), line.length > 3);
        }
      }
    }
    driver.println("closed");
    closed.countDown();
  }

  private void terminate(CountDownLatch closed) {
    if (closed.getCount() == 0) return;
    driver.println("terminate");
    try {
      closed.await();
    } catch (InterruptedException end) {
      // The JVM ends in any case.
    }
  }

  /** The words of the next line. */
  private String[] hear() throws IOException {
    String line = told.readLine();
    return line == null ? new String[] {"close"} : line.split(" ");
  }

  /** If it fails all are told why, and the node stays. */
  private void runOrFail(Session session, QueryId query, int rows, boolean pauses) throws Exception {
    try {
      run(session, query, rows, pauses);
    } catch (FaroException failure) {
      try {
        session.workers().get(0).endQuery(query, failure);
      } catch (FaroException same) {
        // Told below.
      }
      driver.println("failed " + failure.getMessage());
    }
  }

  private void run(Session session, QueryId query, int rows, boolean pauses) throws Exception {
    long[] found = {0, 0};
    try (Shuffle first = open(session, query, 0);
        Shuffle second = open(session, query, 1)) {
      LongSender out = first.sender().longs();
      for (long i = 0; i < rows; i++) {
        if (pauses && i == rows / 2) {
          driver.println("halfway");
          hear();
        }
        send(out, mix((long) session.node() * rows + i));
      }
      check(first.sender().finish());
      LongSender onward = second.sender().longs();
      receive(first, session.node(), row -> send(onward, mix(row)));
      check(second.sender().finish());
      receive(second, session.node(), row -> add(found, row));
    }
    session.workers().get(0).endQuery(query); // throws if it has failed anywhere
    long[] right = {0, 0};
    for (long i = 0; i < 2L * rows; i++) {
      long row = mix(mix(i));
      if ((row & 1) == session.node()) add(right, row);
    }
    driver.println(
        (Arrays.equals(found, right) ? "verified " : "wrong ") + found[0] + " " + Long.toUnsignedString(found[1]));
  }

  private static void add(long[] tally, long row) {
    tally[0]++;
    tally[1] += row;
  }

  private interface Take {
    void row(long row) throws InterruptedException;
  }

  private static Shuffle open(Session session, QueryId query, int stage) {
    ShuffleSpec spec = ShuffleSpec.repartition(query, stage).withRowBytes(Long.BYTES);
    return session.workers().get(0).openShuffle(spec);
  }

  private static void send(LongSender sender, long row) throws InterruptedException {
    check(sender.send((int) (row & 1), row));
  }

  private void receive(Shuffle shuffle, int node, Take take) throws InterruptedException {
    long[] rows = new long[0];
    try (Batch batch = shuffle.receiver().newBatch()) {
      while (shuffle.receiver().receive(batch) == Outcome.DONE) {
        int count = batch.rowCount();
        if (rows.length < count) rows = new long[count];
        batch.getLongs(0, rows, 0, count);
        batch.release(); // nothing is held while it sends
        for (int i = 0; i < count; i++) {
          if ((rows[i] & 1) != node) driver.println("wrong worker");
          take.row(rows[i]);
        }
      }
    }
  }

  private static void check(Outcome outcome) {
    if (outcome != Outcome.DONE) throw new IllegalStateException("not sent: " + outcome);
  }

  private static long mix(long value) {
    value = (value ^ (value >>> 30)) * 0xbf58476d1ce4e5b9L;
    value = (value ^ (value >>> 27)) * 0x94d049bb133111ebL;
    return value ^ (value >>> 31);
  }
}
