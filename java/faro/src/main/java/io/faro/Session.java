package io.faro;

import static io.faro.FaroException.checked;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.lang.ref.Cleaner;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * A node's membership in a cluster; owns the memory that all queries use, the rings to other nodes
 * among it. Its log lines go to the {@link System.Logger} {@code io.faro}.
 *
 * <p>A session that nobody refers to any more, by a worker or shuffle either, was forgotten: it is
 * closed some time after, and a warning in the log tells where it was opened.
 *
 * <p>Threads: any. Use after {@link #close} throws {@link Code#SESSION_CLOSED}.
 */
public final class Session implements AutoCloseable {
  /** Closes what was forgotten, of endpoints too. */
  static final Cleaner CLEANER = Cleaner.create();

  private final long handle;
  private final OpenSession open;
  private final SessionEvents events;
  private final Cleaner.Cleanable forgotten;
  private final int node;
  private final int nodeCount;
  private final int workerCount;
  private final int firstWorker;
  private final List<Worker> workers;

  private Session(long handle, Throwable opened) {
    this.handle = handle;
    int[] shape = new int[5];
    shape(handle, shape);
    node = shape[0];
    nodeCount = shape[1];
    workerCount = shape[2];
    firstWorker = shape[3];
    ReadyWatch readyWatch = new ReadyWatch(shape[4]);
    checked(completeReady(handle, readyWatch));
    List<Worker> mine = new ArrayList<>();
    for (int i = 0; i < shape[4]; i++) {
      mine.add(new Worker(this, handle, i, firstWorker + i, readyWatch));
    }
    workers = List.copyOf(mine);
    open = new OpenSession(handle, node, opened);
    forgotten = CLEANER.register(this, open);
    events = new SessionEvents(node, handle);
  }

  /**
   * Connects to every node of {@code cluster.nodes}, and allocates the rings to them. Blocks until
   * these are connected, at most {@code connect.timeout_ms}. With {@code connect.wait_for = none}
   * it waits for nobody: nodes are linked, and rings to them allocated, as they come; with
   * {@code cluster.node_limit}, when a query needs them.
   *
   * @throws InterruptedException if the thread is interrupted meanwhile: nothing is open then, and
   *     it can be called again
   * @throws FaroException {@link Code#CONFIG_INVALID}, {@link Code#RESOURCE_LIMIT}, {@link
   *     Code#ADDRESS_IN_USE}, {@link Code#TRANSPORT_UNAVAILABLE}, {@link
   *     Code#CONFIGURATION_MISMATCH}, {@link Code#AUTHENTICATION_FAILED}, {@link
   *     Code#CONNECT_FAILED}
   */
  public static Session open(SessionConfig config) throws InterruptedException {
    return opening(config).await();
  }

  /**
   * Opens a session as {@link #open} does, without waiting. To cancel the stage's future ends that:
   * the others then go on waiting for this node, as if it had not started. The thread that has
   * opened completes the stage.
   */
  public static CompletionStage<Session> openAsync(SessionConfig config) {
    return opening(config).stage(Session::close);
  }

  private static Background<Session> opening(SessionConfig config) {
    Objects.requireNonNull(config, "config");
    NativeLibrary.ensureLoaded();
    Throwable opened = new Throwable("opened here"); // on the caller's thread
    return new Background<>(
        "faro-open-" + config.get(Setting.CLUSTER_NODE),
        cancellation -> NativeLog.opening(() -> open(config, opened, cancellation)));
  }

  private static Session open(SessionConfig config, Throwable opened, Cancellation cancellation) {
    try (VerbsModule verbs = VerbsModule.unpackFor(config)) {
      byte[] settings = verbs.in(config).encoded();
      try {
        long handle = open(settings, config.usesEnvironment(), cancellation.handle());
        return new Session(checked(handle), opened);
      } finally {
        Arrays.fill(settings, (byte) 0);
      }
    }
  }

  /** This node's number. */
  public int node() {
    return node;
  }

  /** Nodes of the cluster. */
  public int nodeCount() {
    return nodeCount;
  }

  /** Workers of the whole cluster. */
  public int workerCount() {
    return workerCount;
  }

  /** Number of this node's first worker. */
  public int firstWorker() {
    return firstWorker;
  }

  /** The workers of this node. */
  public List<Worker> workers() {
    return workers;
  }

  /** A new query of which this node is the issuer. */
  public QueryId beginQuery() {
    long[] words = new long[3];
    checked(beginQuery(handle, words));
    return new QueryId(words[0], words[1], (int) words[2]);
  }

  /**
   * Says which workers take part in a query, if not all of the cluster. On every node that takes
   * part and on the issuer, before any of its workers uses the query.
   *
   * <p>Once this has returned each worker of this node that is named has to end the query
   * ({@link Worker#endQuery}), also one that never uses it, and also if the query has failed. With
   * {@code cluster.node_limit} the query, and the links that it needs, stay until then, and on its
   * issuer it keeps the drain of a node that takes part from being done.
   */
  public void declareQuery(QueryId query, int... participants) {
    Objects.requireNonNull(query, "query");
    Objects.requireNonNull(participants, "participants");
    checked(
        declareQuery(handle, query.counter(), query.incarnation(), query.issuer(), participants));
  }

  /**
   * Fails a query on every participant with {@link Code#QUERY_CANCELLED} and this reason. To be
   * called on a node that takes part, or on the issuer: others are not believed. A query that has
   * failed already keeps its first cause. Never blocks.
   *
   * @throws FaroException {@link Code#QUERY_ENDED} if the query has ended by then, or was never
   *     begun; {@link Code#PEER_LOST} if its issuer was lost; {@link Code#SESSION_CLOSED},
   *     {@link Code#LIMIT_EXCEEDED}
   */
  public void cancelQuery(QueryId query, String reason) {
    Objects.requireNonNull(query, "query");
    Objects.requireNonNull(reason, "reason");
    checked(
        cancelQuery(
            handle, query.counter(), query.incarnation(), query.issuer(), reason.getBytes(UTF_8)));
  }

  /**
   * Whether queries may contain a node: it is there, and linked with every node that is.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if the cluster has no such node,
   *     {@link Code#SESSION_CLOSED}
   */
  public boolean hasNode(int node) {
    NodeChanges.check(node, nodeCount);
    return checked(hasNode(handle, node)) != 0;
  }

  /**
   * Waits until {@link #hasNode}: for a node that was lost, has left, or was missing when this
   * session opened, to start again. A query that contains it must be begun after that, or after the
   * returning node's own {@link #open} has returned; one begun before fails with
   * {@link Code#PEER_LOST}.
   *
   * @throws InterruptedException if the thread is interrupted meanwhile
   * @throws FaroException {@link Code#SESSION_CLOSED}, also while waiting;
   *     {@link Code#INVALID_ARGUMENT} if the cluster has no such node
   */
  public void awaitNode(int node) throws InterruptedException {
    if (!hasNode(node)) {
      awaiting(node, Wait.UNLIMITED).await();
    }
  }

  /**
   * Waits until {@link #hasNode} as long as {@code wait} says: false if the node is not there by
   * then.
   */
  @CheckReturnValue
  public <X extends Exception> boolean awaitNode(int node, Wait<X> wait) throws X {
    Objects.requireNonNull(wait, "wait");
    if (hasNode(node) || wait.nanos() == 0) {
      return hasNode(node);
    }
    try {
      return awaiting(node, wait.nanos()).await();
    } catch (InterruptedException interrupted) {
      throw wait.interrupted(interrupted);
    }
  }

  /**
   * Waits as {@link #awaitNode} does, but this call never blocks: the stage completes, by false
   * when the limit has passed. To cancel the stage's future ends the wait. A thread of Faro
   * completes it.
   */
  public CompletionStage<Boolean> awaitNodeAsync(int node, Wait<?> wait) {
    long nanos = Objects.requireNonNull(wait, "wait").nanos();
    if (hasNode(node) || nanos == 0) {
      return CompletableFuture.completedFuture(hasNode(node));
    }
    return awaiting(node, nanos).stage(there -> {});
  }

  private Background<Boolean> awaiting(int peer, long nanos) {
    return new Background<>(
        "faro-await-node-" + peer, cancellation -> await(peer, nanos, cancellation));
  }

  private boolean await(int peer, long nanos, Cancellation cancellation) {
    if (Outcome.of(awaitNode(handle, peer, nanos, cancellation.handle())) == Outcome.DONE) {
      return true;
    }
    if (cancellation.isCancelled()) {
      throw new FaroException(Code.CANCELLED, "waiting for node " + peer + " was cancelled");
    }
    return false;
  }

  /**
   * Adds a node that listens at {@code address} (host:port), if {@code cluster.node_limit} allows
   * nodes to change. From now on queries that are declared here may contain it. It is linked when
   * the first of them does, or for {@link #awaitNode}; of the two, the one with the higher number
   * dials, and the other one asks it to. Each session is told separately, in any order. Never
   * blocks.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} (no such number, the own one, no address,
   *     or port 0 where this node has to dial), {@link Code#WRONG_STATE} (the number is in use:
   *     remove that node first, and wait for {@link SessionListener#nodeRemoved}; no
   *     {@code cluster.node_limit}), {@link Code#SESSION_CLOSED}
   */
  public void addNode(int node, String address) {
    Objects.requireNonNull(address, "address");
    NodeChanges.check(node, nodeCount);
    NodeChanges.add(handle, node, address);
  }

  /**
   * Takes a node out of use. A query that is begun here cannot contain it any more; those that run
   * go on. When no such query still runs that this node has begun or, as they say, any node that
   * it is linked with, the drained one included, the link is closed, its memory is given back, and
   * {@link SessionListener#nodeDrained} is called. So tell every node of the drain. One that
   * is not linked here at the time, because no query needed that yet or its link was let go
   * ({@code link.idle_ms}), is not asked: a query that it has begun, and that is declared here only
   * after the drain is done, fails with {@link Code#PEER_LOST}. Repeatable; {@link #removeNode}
   * ends it early. Never blocks.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} (no such node), {@link Code#WRONG_STATE}
   *     (no {@code cluster.node_limit}), {@link Code#SESSION_CLOSED}
   */
  public void drainNode(int node) {
    NodeChanges.check(node, nodeCount);
    checked(NodeChanges.drain(handle, node));
  }

  /**
   * Forgets a node for good: closes its link, by which queries that contain it fail, and refuses
   * its process from now on. After {@link SessionListener#nodeRemoved} its number can be used
   * again. Never blocks.
   *
   * @throws FaroException as {@link #drainNode}; {@link Code#INVALID_ARGUMENT} also for the own
   *     node
   */
  public void removeNode(int node) {
    NodeChanges.check(node, nodeCount);
    checked(NodeChanges.remove(handle, node));
  }

  /**
   * Tells this listener of nodes that come and go and of queries that fail, from now on; it
   * replaces the one before, of which a call may still be under way. Never blocks.
   *
   * @throws FaroException {@link Code#SESSION_CLOSED}
   */
  public void listen(SessionListener listener) {
    events.listen(Objects.requireNonNull(listener, "listener"));
  }

  /** All counters, as they are about now. */
  public SessionMetrics metrics() {
    return NativeMetrics.of(handle);
  }

  /**
   * What the shuffles of a query have counted, closed or not, that the workers of this node have
   * opened, in that order; for EXPLAIN ANALYZE. Kept until the query has ended everywhere, and at
   * least as long as one of these workers has not called {@link Worker#endQuery}; on the issuer
   * until every node has confirmed the end. Later, and of a query that this node does not know,
   * there are none.
   *
   * @throws FaroException {@link Code#SESSION_CLOSED}
   */
  public List<ShuffleMetrics> shuffleMetrics(QueryId query) {
    Objects.requireNonNull(query, "query");
    return NativeMetrics.ofQuery(handle, query);
  }

  /**
   * Shows the counters of the session, its workers and its links in the platform's MBean server,
   * under {@code io.faro:type=Session,…}, {@code type=Worker,…} and {@code type=Link,…},
   * until it is closed. Idempotent.
   *
   * @throws FaroException {@link Code#SESSION_CLOSED}
   */
  public void registerBeans() {
    open.registerBeans();
  }

  /**
   * Ends every wait and every query with {@link Code#SESSION_CLOSED} and tells the peers. The
   * memory of shuffles that are still open stays mapped until they are closed: frames that are held
   * can be read until then, and everything else that they are used for throws. Closing twice is
   * fine. Blocks at most {@code close.timeout_ms}; no interrupt ends it.
   *
   * @throws FaroException {@link Code#DEADLINE_EXCEEDED} if calls were still inside
   */
  @Override
  public void close() {
    if (VirtualThreads.isCurrent()) {
      closing().awaitUninterruptibly();
    } else {
      closeHere();
    }
  }

  /**
   * Closes the session as {@link #close} does, without waiting. A thread of Faro completes the
   * stage.
   */
  public CompletionStage<Void> closeAsync() {
    return closing().stage(nothing -> {});
  }

  private Background<Void> closing() {
    return new Background<>(
        "faro-close-" + node,
        neverCancelled -> {
          closeHere();
          return null;
        });
  }

  private void closeHere() {
    open.close();
    forgotten.clean();
  }

  /** {@code cancellation}: {@link Cancellation#handle}, or 0 for none. */
  private static native long open(byte[] settings, boolean environment, long cancellation);

  private static native void shape(long handle, int[] to);

  private static native int beginQuery(long handle, long[] to);

  private static native int declareQuery(
      long handle, long counter, long incarnation, int issuer, int[] participants);

  private static native int cancelQuery(
      long handle, long counter, long incarnation, int issuer, byte[] reason);

  private static native int awaitNode(
      long handle, int node, long timeout, long cancellation);

  private static native int hasNode(long handle, int node);

  /** Whenever a worker that was armed is ready, {@link ReadyWatch#complete} is called. */
  private static native int completeReady(long handle, ReadyWatch watch);

  static native int close(long handle);

  @Override
  public String toString() {
    return "session of node " + node + ", of " + nodeCount + " nodes";
  }
}
