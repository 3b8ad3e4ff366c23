package io.faro.flink;

import io.faro.ChannelEvents;
import io.faro.ChannelInfo;
import io.faro.Code;
import io.faro.FaroException;
import io.faro.Poller;
import io.faro.Wait;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.BiFunction;
import org.apache.flink.util.FatalExitExceptionHandler;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves the links of one poller: takes what other threads have handed over, reads frames, writes
 * what there is to send, and sleeps when there is nothing. It never waits for anything else.
 *
 * <p>Other threads hand over by {@link #execute}, which loses nothing, for this reason. The thread
 * says that it will sleep ({@code asleep}), and then looks at the queue once more. A thread that
 * hands over work adds to the queue, and then looks whether the thread sleeps. These are four
 * volatile accesses, which happen in one order for all: either the thread finds what was added, or
 * the other finds it asleep, and wakes it. A wake-up that comes before the sleep ends it at once. A
 * look at the queue before {@code asleep} is set would not be enough: what is added between the two
 * would wait for the next event, perhaps forever.
 *
 * <p>The same holds one level up for what is not handed over as such, but told lazily: credits, and
 * subpartitions with data. They stand behind a flag ({@link Coalesced}) that is reset before the
 * look.
 */
final class IoThread implements Runnable {
  private static final Logger LOG = LoggerFactory.getLogger(IoThread.class);
  private static final int EVENTS = 64;

  /** Work for the I/O thread. */
  interface Command extends Runnable {
    /** The thread has ended, and will not run it. Threads: any. */
    default void abandon() {}
  }

  private final Poller poller;
  private final BiFunction<IoThread, Long, Link> acceptance; // makes the links of accepted channels
  private final Queue<Command> commands;
  private final ArrayDeque<Link> listed = new ArrayDeque<>(); // links that have something to write
  private final Thread thread;
  private Link[] links = new Link[16]; // by the index of the channel
  private volatile boolean asleep;
  private volatile boolean ended;
  private volatile long wakeUps;

  /** Starts the thread. */
  static IoThread start(Poller poller, String name, BiFunction<IoThread, Long, Link> acceptance) {
    return start(poller, name, acceptance, new ConcurrentLinkedQueue<>());
  }

  /**
   * Starts the thread with this queue of commands, to which any thread adds, and of which any
   * takes.
   */
  static IoThread start(
      Poller poller,
      String name,
      BiFunction<IoThread, Long, Link> acceptance,
      Queue<Command> commands) {
    IoThread io = new IoThread(poller, name, acceptance, commands);
    io.thread.start();
    return io;
  }

  private IoThread(
      Poller poller,
      String name,
      BiFunction<IoThread, Long, Link> acceptance,
      Queue<Command> commands) {
    this.poller = poller;
    this.commands = commands;
    this.acceptance = acceptance;
    thread = new Thread(this, name);
    thread.setDaemon(true);
    thread.setUncaughtExceptionHandler(FatalExitExceptionHandler.INSTANCE);
  }

  Poller poller() {
    return poller;
  }

  /** How often it has slept, or was about to, and something has ended that. Threads: any. */
  long wakeUps() {
    return wakeUps;
  }

  /** Threads: any. Never blocks. */
  void execute(Command command) {
    commands.add(command);
    if (asleep) {
      poller.wake();
    } else if (ended) {
      abandonAll();
    }
  }

  /**
   * Runs it at once in place of the thread if that waits, and writes what there is to write then:
   * that spares a switch to the thread. The command must not need what the caller has locked.
   *
   * @return false if the thread does not wait, or another one is in its place
   */
  boolean tryRun(Command command) {
    if (!asleep || !poller.tryEnter()) {
      return false;
    }
    boolean left;
    try {
      run(command);
      write();
      left = !listed.isEmpty();
    } finally {
      poller.leave();
    }
    if (left) {
      poller.wake();
    }
    return true;
  }

  /** Waits until it has ended, which it does when its endpoint is closed, for at most that long. */
  void join(long milliseconds) throws InterruptedException {
    thread.join(milliseconds);
  }

  /** {@link Link#write} is called before it sleeps. */
  void list(Link link) {
    listed.add(link);
  }

  /** The link of a channel that was just dialled. */
  void register(Link link) {
    int at = Poller.indexOf(link.channel);
    if (at >= links.length) {
      links = Arrays.copyOf(links, Math.max(at + 1, 2 * links.length));
    }
    links[at] = link;
  }

  @Override
  public void run() {
    ChannelEvents events = new ChannelEvents(EVENTS);
    try {
      boolean open = true;
      while (open) {
        boolean active = runCommands();
        int count = poller.poll(events);
        for (int i = 0; i < count; i++) {
          handle(events, i);
        }
        active |= count > 0 | runCommands();
        active |= write();
        open = await(active);
      }
    } finally {
      for (Link link : links) {
        if (link != null) {
          link.onClosed(null);
        }
      }
      ended = true;
      asleep = false;
      abandonAll();
    }
  }

  private boolean runCommands() {
    boolean any = false;
    for (Command next; (next = commands.poll()) != null; any = true) {
      run(next);
    }
    return any;
  }

  private void run(Command command) {
    try {
      command.run();
    } catch (RuntimeException unexpected) {
      LOG.error("A command of {} has failed", thread.getName(), unexpected);
    }
  }

  private boolean write() {
    boolean any = false;
    for (int left = listed.size(); left > 0; left--) {
      listed.poll().write();
      any = true;
    }
    return any;
  }

  // False: the endpoint was closed. After the thread has done something the poller only reads its
  // sockets, and it looks again.
  private boolean await(boolean active) {
    boolean sleeps = !active && listed.isEmpty();
    try {
      if (sleeps) {
        asleep = true;
        sleeps = commands.isEmpty();
      }
      if (sleeps) {
        poller.await();
        wakeUps = wakeUps + 1;
      } else {
        poller.await(Wait.NONE);
      }
      return true;
    } catch (FaroException closed) {
      if (closed.code() == Code.CLOSED) {
        return false;
      }
      throw closed;
    } catch (InterruptedException nobodyDoes) {
      return true;
    } finally {
      asleep = false;
    }
  }

  private void handle(ChannelEvents events, int i) {
    long channel = events.channel(i);
    try {
      switch (events.kind(i)) {
        case OPENED -> opened(channel);
        case FRAME -> frame(events, i, channel);
        case ROOM -> room(channel);
        case CLOSED -> closed(channel);
      }
    } catch (RuntimeException unexpected) {
      LOG.error("An event of a link has failed", unexpected);
      Link link = link(channel);
      if (link != null) {
        link.fail(unexpected);
      }
    }
  }

  private void frame(ChannelEvents events, int i, long channel) {
    Link link = link(channel);
    try {
      if (link != null) {
        link.onFrame(events.buffer(i), events.offset(i), events.length(i));
      }
    } finally {
      poller.release(channel, events.token(i));
    }
  }

  private void room(long channel) {
    Link link = link(channel);
    if (link != null) {
      link.onRoom();
    }
  }

  private void opened(long channel) {
    ChannelInfo info = poller.info(channel);
    Link link = link(channel);
    if (link == null) {
      link = acceptance.apply(this, channel);
      register(link);
    }
    link.onOpened(info);
  }

  private void closed(long channel) {
    Link link = link(channel);
    if (link != null) {
      links[Poller.indexOf(channel)] = null;
      link.onClosed(poller.failure(channel));
    }
  }

  private Link link(long channel) {
    int at = Poller.indexOf(channel);
    Link link = at < links.length ? links[at] : null;
    return link != null && link.channel == channel ? link : null;
  }

  private void abandonAll() {
    for (Command next; (next = commands.poll()) != null; ) {
      next.abandon();
    }
  }
}
