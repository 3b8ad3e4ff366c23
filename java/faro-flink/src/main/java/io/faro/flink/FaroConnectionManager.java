package io.faro.flink;

import io.faro.ChannelAcceptance;
import io.faro.ChannelRequest;
import io.faro.ChannelSpec;
import io.faro.Code;
import io.faro.Endpoint;
import io.faro.EndpointMetrics;
import io.faro.EndpointSpec;
import io.faro.FaroException;
import java.io.IOException;
import java.net.BindException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.runtime.io.network.ConnectionID;
import org.apache.flink.runtime.io.network.ConnectionManager;
import org.apache.flink.runtime.io.network.PartitionRequestClient;
import org.apache.flink.runtime.io.network.TaskEventPublisher;
import org.apache.flink.runtime.io.network.netty.exception.LocalTransportException;
import org.apache.flink.runtime.io.network.partition.ResultPartitionProvider;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The exchanges of a TaskManager with others, over an endpoint of Faro. The consuming TaskManager
 * dials the producing one.
 *
 * <p>Threads: any. {@link #createPartitionRequestClient} blocks until the link is open, and
 * {@link #shutdown} until the I/O threads have ended; nothing else does.
 */
final class FaroConnectionManager implements ConnectionManager {
  private static final Logger LOG = LoggerFactory.getLogger(FaroConnectionManager.class);
  private static final long SHUTDOWN_MS = 10_000;
  private static final int CHANNEL_LIMIT = 65536;

  private final ResultPartitionProvider partitions;
  private final TaskEventPublisher events;
  private final FlinkSettings settings;
  private final String name;
  private final Clients clients;
  private final LinkMemory memory;
  private final AtomicInteger nextAccepted = new AtomicInteger();
  private final AtomicInteger nextDialled = new AtomicInteger();
  private final List<IoThread> threads = new CopyOnWriteArrayList<>();
  private final List<Map<String, LinkCounts>> counts = new ArrayList<>();
  private volatile Endpoint endpoint; // null: not started

  /** {@code name}: told to peers. */
  FaroConnectionManager(
      ResultPartitionProvider partitions,
      TaskEventPublisher events,
      FlinkSettings settings,
      String name) {
    this.partitions = partitions;
    this.events = events;
    this.settings = settings;
    this.name = name;
    clients =
        new Clients(
            this::dial, settings.linksPerPeer(), settings.retries(), settings.linksAreReused());
    memory = settings.linkMemory(this::memoryTaken);
    for (int i = 0; i < settings.ioThreads(); i++) {
      counts.add(LinkCounts.ofAllTransports());
    }
  }

  @Override
  public int start() throws IOException {
    LogBridge.install();
    try (settings) {
      endpoint = listen();
    }
    for (int i = 0; i < settings.ioThreads(); i++) {
      Map<String, LinkCounts> mine = counts.get(i);
      threads.add(
          IoThread.start(
              endpoint.poller(i),
              "Faro I/O " + i + " (" + endpoint.address() + ")",
              (io, channel) ->
                  new ProducerLink(io, channel, partitions, events, memory.accepted(), mine)));
    }
    LOG.info("Exchanges go over Faro, at {}: {}", endpoint.address(), settings.summary());
    return Integer.parseInt(endpoint.address().substring(endpoint.address().lastIndexOf(':') + 1));
  }

  private Endpoint listen() throws IOException {
    EndpointSpec spec =
        new EndpointSpec()
            .withName(name)
            .withPollers(settings.ioThreads())
            .withChannelLimit(CHANNEL_LIMIT)
            .withAcceptor(this::accept)
            .withAnswerToOthers(NettyError.ofMixture());
    for (Iterator<Integer> ports = settings.ports(); ports.hasNext(); ) {
      try {
        return Endpoint.open(settings.endpointConfig(ports.next()), spec);
      } catch (FaroException failed) {
        if (failed.code() != Code.ADDRESS_IN_USE) {
          throw new IOException(
              "Faro cannot be started: " + failed.code() + ", "
                  + OptionNames.inFlinksKeys(failed.getMessage()),
              failed);
        }
        LOG.debug("A port of {} is taken", settings.portRange(), failed);
      }
    }
    String ports = settings.portRange();
    boolean isOne = ports.chars().allMatch(Character::isDigit);
    throw new BindException((isOne ? "Port " + ports : "Every port of " + ports) + " is taken.");
  }

  private ChannelAcceptance accept(ChannelRequest request) {
    String refusal = Greeting.refusal(request.greeting());
    if (refusal != null) {
      return ChannelAcceptance.refused(refusal);
    }
    LinkRings rings = memory.accept(request.sendBytes());
    return ChannelAcceptance.by(next(nextAccepted))
        .withRings(rings.dataBytes(), rings.requestBytes());
  }

  private int next(AtomicInteger of) {
    return Math.floorMod(of.getAndIncrement(), settings.ioThreads());
  }

  private CompletableFuture<ConsumerLink> dial(Peer peer) {
    CompletableFuture<ConsumerLink> opened = new CompletableFuture<>();
    if (threads.isEmpty()) {
      opened.completeExceptionally(closed(peer));
      return opened;
    }
    int at = next(nextDialled);
    IoThread io = threads.get(at);
    io.execute(
        new IoThread.Command() {
          @Override
          public void run() {
            LinkMemory.Reservation reservation = memory.dial();
            LinkRings rings = reservation.rings();
            ChannelSpec spec =
                new ChannelSpec()
                    .withRings(rings.requestBytes(), rings.dataBytes())
                    .withGreeting(Greeting.bytes());
            try {
              long channel = io.poller().connect(peer.dialled(), spec);
              io.register(new ConsumerLink(io, channel, peer, reservation, counts.get(at), opened));
            } catch (FaroException refused) {
              reservation.close();
              opened.completeExceptionally(peer.unreachable(refused));
            }
          }

          @Override
          public void abandon() {
            opened.completeExceptionally(closed(peer));
          }
        });
    return opened;
  }

  private static IOException closed(Peer peer) {
    return new LocalTransportException("Faro was shut down, or not started.", peer.address());
  }

  @Override
  public PartitionRequestClient createPartitionRequestClient(ConnectionID connection)
      throws IOException, InterruptedException {
    return clients.get(connection);
  }

  @Override
  public void closeOpenChannelConnections(ConnectionID connection) {
    clients.closeUnused(connection);
  }

  @Override
  public int getNumberOfActiveConnections() {
    return clients.count();
  }

  /** What Faro has counted; null before {@link #start}. */
  EndpointMetrics metrics() {
    Endpoint started = endpoint;
    return started == null ? null : started.metrics();
  }

  private long memoryTaken() {
    EndpointMetrics counted = metrics();
    return counted == null ? 0 : counted.memoryBytes();
  }

  /** What links have reserved. */
  LinkMemory memory() {
    return memory;
  }

  /** What each I/O thread has moved over a transport. */
  List<LinkCounts> counts(String transport) {
    return counts.stream().map(each -> each.get(transport)).toList();
  }

  /**
   * Bytes that Faro counts beyond what is reckoned for links that are open or being opened: of
   * links that have ended.
   */
  long memoryOfEndedLinks() {
    return Math.max(0, memoryTaken() - memory.reserved());
  }

  /** How often the I/O threads have been woken. */
  long wakeUps() {
    return threads.stream().mapToLong(IoThread::wakeUps).sum();
  }

  @Override
  public void shutdown() {
    Endpoint started = endpoint;
    if (started == null) {
      return;
    }
    started.close();
    long end = System.nanoTime() + SHUTDOWN_MS * 1_000_000;
    try {
      for (IoThread io : threads) {
        io.join(Math.max(1, (end - System.nanoTime()) / 1_000_000));
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
