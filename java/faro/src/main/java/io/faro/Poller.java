package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * Serves channels on one thread: polls their frames, writes into their rings, and waits for all of
 * them at once.
 *
 * <pre>{@code
 * ChannelEvents events = new ChannelEvents(64);
 * long channel = poller.connect("10.0.0.2:7000", new ChannelSpec());
 * while (poller.await() == Outcome.DONE) {
 *   for (int i = 0, count = poller.poll(events); i < count; i++) {
 *     … events.kind(i)                                   // OPENED, FRAME, ROOM, CLOSED
 *   }
 *   poller.release(events);                              // its frames
 * }
 * }</pre>
 *
 * <p>A channel is named by a number that its endpoint never gives twice. Frames are read and
 * written in place: {@link ChannelEvents#buffer} and {@link #outgoing} are direct buffers over the
 * rings of a channel, made once for each. There is one native call to poll a batch of events and
 * one to release all its frames, and one each to claim and to commit a frame; nothing is allocated.
 *
 * <p>The memory of a channel is given back when CLOSED was polled and no frame of it is held: at
 * that poll, or by the release of the last one. The collector has no part in that. Buffers that
 * still point there answer by an error.
 *
 * <p>Threads: one at a time. The first thread that uses it owns it until {@link #releaseOwnership}
 * or its end; another thread's calls throw {@link Code#WRONG_STATE}, except those of {@link #wake},
 * {@link #tryEnter} and, when it has entered, all that it may do then.
 *
 * <p>After {@link Endpoint#close}, {@link #connect} throws {@link Code#CLOSED}. So do
 * {@link #await} when all events were polled, and claims and commits when CLOSED of their channel
 * was polled. Blocks: {@link #await} only.
 */
public final class Poller {
  private final int index;
  private final NativePoller natives;
  private final long handle;
  private final Owner owner;
  private final PollerWait waiting;
  private RingBuffers[] rings = new RingBuffers[8]; // by the index of the channel
  // The rings of channels that have closed, and whose frames are held.
  private final List<RingBuffers> ending = new ArrayList<>();
  private int claimOffset;
  private int claimLength;
  private Object displaced; // in whose place a thread has entered; null: none has

  Poller(Endpoint endpoint, int index, long handle) {
    this.index = index;
    this.handle = handle;
    natives = new NativePoller(endpoint, handle);
    String name = "poller " + index + " of " + endpoint.address();
    owner = new Owner(name);
    waiting = new PollerWait(natives, name);
  }

  /** Whose poller it is. Threads: any. */
  public Endpoint endpoint() {
    return natives.endpoint();
  }

  /** Its number, as {@link ChannelAcceptance#poller} means it. Threads: any. */
  public int index() {
    return index;
  }

  /**
   * A small number of a channel, below {@link EndpointSpec#channelLimit}, for arrays; given again
   * when the channel is gone. Threads: any.
   */
  public static int indexOf(long channel) {
    return (int) channel;
  }

  /**
   * Asks the endpoint at {@code address} (host:port) for a channel, which this poller serves. An
   * event tells how that ended, OPENED or CLOSED, within {@code connect.timeout_ms}. Never blocks.
   *
   * @return the channel
   * @throws FaroException {@link Code#INVALID_ARGUMENT} (address, ring sizes, greeting),
   *     {@link Code#LIMIT_EXCEEDED} ({@link EndpointSpec#channelLimit}), {@link Code#CLOSED}
   */
  public long connect(String address, ChannelSpec spec) {
    Objects.requireNonNull(address, "address");
    Objects.requireNonNull(spec, "spec");
    owner.enter();
    long[] channel = new long[1];
    check(
        natives.connect(
            handle,
            Utf8.whole("the address of a peer", address),
            spec.sendBytes(),
            spec.receiveBytes(),
            spec.greeting(),
            spec.endsWhenBroken(),
            channel));
    return channel[0];
  }

  /**
   * Takes the next events, as many as there are and {@code events} has room for; what it held
   * before is gone. For each channel they come in order: OPENED, FRAME and ROOM, CLOSED. Frames
   * stay in place until they are released, over any number of polls. Never blocks.
   *
   * @return how many there are
   */
  public int poll(ChannelEvents events) {
    owner.enter();
    Objects.requireNonNull(events, "events").empty();
    int count = natives.poll(handle, events.address(), events.capacity());
    Reference.reachabilityFence(events);
    check(count);
    events.filled(this, count);
    return count;
  }

  /**
   * Gives the space of a frame back, in any order: the peer writes there again. A frame that was
   * released before, or a channel that is gone, is no error. With the last frame of a channel that
   * has closed its memory is given back. Never blocks.
   */
  public void release(long channel, int token) {
    owner.enter();
    check(natives.release(handle, channel, token));
    endRings();
  }

  /**
   * Gives the space of all frames of a batch back, by one native call: of those that the last poll
   * with {@code events} has found, and that were not released yet. Whoever keeps some for longer
   * releases the others one by one. The events can still be read, {@link ChannelEvents#buffer},
   * offset and length of frames excepted. Never blocks.
   *
   * @throws FaroException {@link Code#WRONG_STATE} if another poller has filled {@code events}
   */
  public void release(ChannelEvents events) {
    owner.enter();
    Objects.requireNonNull(events, "events").expectFilledBy(this);
    int released = natives.releaseAll(handle, events.address(), events.count());
    Reference.reachabilityFence(events);
    check(released);
    endRings();
  }

  /**
   * Claims space for a frame of at least {@code least} and up to {@code most} bytes:
   * {@link #claimLength} bytes from {@link #claimOffset} on in {@link #outgoing}, where the caller
   * writes the frame. Then {@link #commit} must follow; without it the next claim gives the same
   * space again. Never blocks.
   *
   * @return {@link Outcome#DONE}; or {@link Outcome#WOULD_WAIT}: there is no space, and a ROOM
   *     event will come, or OPENED if the channel is not open yet
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if {@code least} is above
   *     {@link ChannelInfo#leastFrameBytes}, or one is negative; or why the channel is not open, as
   *     {@link #failure} says, {@link Code#CLOSED} if it was drained
   */
  @CheckReturnValue
  public Outcome claim(long channel, int least, int most) {
    owner.enter();
    checkBytes("claim", least);
    checkBytes("claim", most);
    return claimed(channel, natives.claim(handle, channel, least, most));
  }

  private static void checkBytes(String call, int bytes) {
    if (bytes < 0) {
      throw new FaroException(
          Code.INVALID_ARGUMENT, "a " + call + " of " + bytes + " bytes is negative");
    }
  }

  private Outcome claimed(long channel, int result) {
    claimLength = natives.claimedBytes();
    Outcome outcome = Outcome.of(result);
    if (outcome == Outcome.DONE) {
      claimOffset = rings(channel).outgoingOffset(natives.claimed());
    }
    return outcome;
  }

  /** Where the last claim that was DONE begins in its channel's {@link #outgoing}. */
  public int claimOffset() {
    return claimOffset;
  }

  /** Length of the last claim in bytes; 0 if it was not DONE. */
  public int claimLength() {
    return claimLength;
  }

  /**
   * The ring towards the peer, as one direct buffer: always the same object for a channel. Write
   * only what was claimed, by absolute methods or a duplicate. When the channel has closed and no
   * frame of it is held there is no memory behind it any more: an access then throws an
   * {@link IndexOutOfBoundsException}. An access by a slice or a duplicate is answered as behind
   * the end of a mapped file: an {@link InternalError}, at once or soon after.
   *
   * @throws FaroException {@link Code#CLOSED} if the channel has not opened, or has closed
   */
  public ByteBuffer outgoing(long channel) {
    return rings(channel).outgoing();
  }

  /**
   * The claimed space now holds a frame of that many bytes. It travels with the next {@link #post}.
   * Never blocks.
   *
   * @param bytes 0 … {@link #claimLength}
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if that is more than was claimed, or
   *     negative; the claim stays. {@link Code#WRONG_STATE} if nothing was claimed; or why the
   *     channel is not open
   */
  public void commit(long channel, int bytes) {
    commit(channel, bytes, false);
  }

  /**
   * Commits the claimed space, as {@link #commit} does, for a frame that the peer need not know
   * yet, such as credits while it has others left: its poller is not woken for it. On one host the
   * peer sees it when it looks next, for whatever reason; over a network it is not sent before a
   * frame of {@link #commit} of the same channel. Both see it at the latest when such a frame
   * follows, a claim of this side finds no space, or the channel is drained. So what it says must
   * not be counted as known: when the peer comes to need it, a frame of {@link #commit} has to
   * follow, which may be empty. It throws what {@link #commit} throws.
   */
  public void commitQuietly(long channel, int bytes) {
    commit(channel, bytes, true);
  }

  private void commit(long channel, int bytes, boolean quiet) {
    owner.enter();
    checkBytes("commit", bytes);
    check(natives.commit(handle, channel, bytes, quiet));
  }

  /**
   * Does what {@link #commit}, {@link #post} and {@link #claim} do, one after the other, by one
   * native call: for a frame behind which another one is to be written at once. Never blocks.
   *
   * @return what {@link #claim} returns: the frame was committed
   * @throws FaroException what {@link #commit} throws, then the claim of before stays; or what
   *     {@link #claim} throws, then the frame was committed, and {@link #claimLength} is 0
   */
  @CheckReturnValue
  public Outcome commitAndClaim(long channel, int bytes, int least, int most) {
    owner.enter();
    checkBytes("commit", bytes);
    checkBytes("claim", least);
    checkBytes("claim", most);
    return claimed(channel, natives.commitAndClaim(handle, channel, bytes, least, most));
  }

  /**
   * Starts the transfer of all frames committed. {@link #await} and {@link #arm} do so, too. Over
   * tcp that is a system call: a poller that has much to send calls it when there is no more room
   * rather than after each frame. Never blocks.
   */
  public void post() {
    owner.enter();
    check(natives.post(handle));
  }

  /**
   * Waits until {@link #poll} has something to tell, or for {@link #wake}.
   *
   * @return {@link Outcome#DONE}
   * @throws InterruptedException if the thread is interrupted meanwhile
   * @throws FaroException {@link Code#CLOSED} if the endpoint was closed, and all events were
   *     polled
   */
  public Outcome await() throws InterruptedException {
    return await(Wait.FOREVER);
  }

  /**
   * Waits until {@link #poll} has something to tell, or for {@link #wake}, as long as {@code wait}
   * says. An interrupt ends the wait at once, by an {@link InterruptedException}. Events and
   * wake-ups are not lost by that: they end the next wait, which may also end without any. On a
   * platform thread it is one native call. A virtual thread holds no carrier meanwhile, but each
   * wait that sleeps takes a platform thread of its own: pollers are better served by platform
   * threads. A virtual thread that is interrupted before it has to wait returns, and stays
   * interrupted.
   *
   * @return DONE; or WOULD_WAIT or DEADLINE, if there was nothing by then
   */
  public <X extends Exception> Outcome await(Wait<X> wait) throws X {
    return await(wait, WakeFor.FRAMES_AND_ROOM);
  }

  /**
   * Waits as {@link #await(Wait)} does, but only until {@link #poll} has something to tell of what
   * {@code wakeFor} says, or for {@link #wake}.
   */
  public <X extends Exception> Outcome await(Wait<X> wait, WakeFor wakeFor) throws X {
    Objects.requireNonNull(wait, "wait");
    Objects.requireNonNull(wakeFor, "wakeFor");
    enterToWait();
    return waiting.await(wait, wakeFor);
  }

  private void enterToWait() {
    owner.enter();
    if (displaced != null) {
      throw new FaroException(Code.WRONG_STATE, "a thread that has entered a poller must not wait");
    }
  }

  /**
   * For engines with an event loop of native code: a descriptor for {@code epoll} or {@code poll}
   * that is readable when the poller should look again, so that the loop waits for it together with
   * its sockets. Java's own {@code Selector} takes none; those of engines with natives of their own
   * do. It is an eventfd of the endpoint's: nobody else closes it, and nobody needs to read it. The
   * loop calls {@link #arm} and {@link #poll} until there is nothing, and then waits for its
   * descriptors. Never blocks.
   *
   * @throws FaroException {@link Code#SYSTEM_ERROR}, {@link Code#CLOSED}
   */
  public int descriptor() {
    owner.enter();
    int found = natives.descriptor(handle);
    check(found);
    return found;
  }

  /**
   * Looks as {@link #await} does, and arms the poller if there is nothing to tell. It makes no
   * system call as long as there is something. Never blocks.
   *
   * @return {@link Outcome#DONE}: {@link #poll} has something to tell, and the poller is not armed;
   *     or {@link Outcome#WOULD_WAIT}: it is armed, and the descriptor becomes readable once, when
   *     there is something to tell of what {@code wakeFor} says, after {@link #wake}, when the
   *     endpoint is closed, and after {@code wait.sleep_ms} in any case. Then call this again; or
   *     earlier, which takes the event back. No other thread can enter meanwhile.
   * @throws FaroException {@link Code#CLOSED} if the endpoint was closed, and all events were
   *     polled; {@link Code#WRONG_STATE} if {@link #descriptor} was not called
   */
  @CheckReturnValue
  public Outcome arm(WakeFor wakeFor) {
    Objects.requireNonNull(wakeFor, "wakeFor");
    enterToWait();
    return waiting.arm(wakeFor);
  }

  /**
   * Ends a wait, or else the next one; makes the descriptor of an armed poller readable. Makes no
   * native call while another wake-up is pending. Threads: any. Never blocks. Does nothing once the
   * endpoint is closed.
   */
  public void wake() {
    waiting.wake();
  }

  /**
   * For other threads: takes the place of the poller's own thread while that waits in
   * {@link #await}, to claim, commit and post. Soon after true {@link #leave} must follow, in a
   * finally block: the poller's thread cannot go on before. It goes on waiting for what its wait
   * has named: if there is something else to wait for now, {@link #wake} it. Threads: any. Never
   * blocks.
   *
   * @return false if it does not wait now, is looking between two pauses, or another thread is
   *     inside: then hand the work over, and {@link #wake} it
   */
  @CheckReturnValue
  public boolean tryEnter() {
    if (!natives.tryEnter(handle)) {
      return false;
    }
    displaced = owner.takeOver();
    return true;
  }

  /**
   * Ends what {@link #tryEnter} began. Threads: the one that has entered. Never blocks.
   *
   * @throws FaroException {@link Code#WRONG_STATE} if this thread has not entered
   */
  public void leave() {
    owner.enter();
    if (displaced == null) {
      throw new FaroException(Code.WRONG_STATE, "no thread has entered the poller");
    }
    Object sleeper = displaced;
    displaced = null;
    owner.giveBackTo(sleeper);
    natives.leave(handle);
  }

  /**
   * Ends a channel: what both sides have committed arrives first; then both get CLOSED behind the
   * last frame, this side within {@code close.timeout_ms}. Until then frames still come. A channel
   * that is gone is no error. Never blocks.
   */
  public void drain(long channel) {
    close(channel, true);
  }

  /**
   * Ends a channel at once: frames that were not taken are lost. CLOSED follows. A channel that is
   * gone is no error. Never blocks.
   */
  public void closeNow(long channel) {
    close(channel, false);
  }

  private void close(long channel, boolean drain) {
    owner.enter();
    check(natives.close(handle, channel, drain));
  }

  /**
   * What is known of a channel, from OPENED on until the first poll or wait after the batch that
   * had CLOSED. Never blocks.
   *
   * @throws FaroException {@link Code#CLOSED} if there is no such open channel
   */
  public ChannelInfo info(long channel) {
    owner.enter();
    byte[][] texts = new byte[4][];
    int[] numbers = new int[5];
    check(natives.info(handle, channel, texts, numbers));
    return new ChannelInfo(
        new String(texts[0], UTF_8),
        new String(texts[1], UTF_8),
        new String(texts[2], UTF_8),
        numbers[3] != 0,
        texts[3],
        numbers[0],
        numbers[1],
        numbers[2],
        numbers[4] != 0);
  }

  /**
   * Why the last claim or commit of a channel was refused, or why the channel is not open. Kept
   * until CLOSED was polled and 1024 other channels were closed after it. Never blocks.
   *
   * @return null while it is open, or if both sides have drained it; {@link Code#CANCELLED} if the
   *     peer's acceptor has refused it, with its reason; {@link Code#CLOSED} if one side has closed
   *     it at once; {@link Code#PEER_LOST}, {@link Code#CONNECT_FAILED},
   *     {@link Code#CONFIGURATION_MISMATCH}, {@link Code#AUTHENTICATION_FAILED},
   *     {@link Code#TRANSPORT_UNAVAILABLE}, {@link Code#RESOURCE_LIMIT},
   *     {@link Code#LIMIT_EXCEEDED}, {@link Code#PROTOCOL_ERROR}; {@link Code#DEADLINE_EXCEEDED} if
   *     it was not drained in time
   */
  public FaroException failure(long channel) {
    owner.enter();
    int result = natives.status(handle, channel);
    return result < 0 ? FaroException.of(result) : null;
  }

  /**
   * Releases the calling thread's ownership. The next thread that uses the poller takes it.
   *
   * @throws FaroException {@link Code#WRONG_STATE} if this thread has entered it: it has to
   *     {@link #leave}
   */
  public void releaseOwnership() {
    owner.enter();
    if (displaced != null) {
      throw new FaroException(
          Code.WRONG_STATE, "a thread that has entered a poller has to leave it");
    }
    owner.releaseOwnership();
  }

  /** The rings of a channel, mapped when they are first asked for. */
  RingBuffers rings(long channel) {
    owner.enter();
    int at = indexOf(channel);
    if (at >= 0 && at < rings.length && rings[at] != null && rings[at].channel() == channel) {
      return rings[at];
    }
    // There is such a channel, and its index is below the limit.
    RingBuffers mapped = RingBuffers.of(natives, channel);
    if (at >= rings.length) {
      rings = Arrays.copyOf(rings, Math.max(at + 1, 2 * rings.length));
    }
    rings[at] = mapped;
    return mapped;
  }

  /** The channel has closed: its rings go, now or with the last of its frames that are held. */
  void closed(long channel) {
    int at = indexOf(channel);
    if (at < rings.length && rings[at] != null && rings[at].channel() == channel) {
      ending.add(rings[at]);
      endRings();
    }
  }

  private void endRings() {
    if (!ending.isEmpty()) {
      ending.removeIf(this::hasEnded);
    }
  }

  private boolean hasEnded(RingBuffers of) {
    if (natives.hasRings(handle, of.channel())) {
      return false;
    }
    of.end();
    int at = indexOf(of.channel());
    if (rings[at] == of) {
      rings[at] = null;
    }
    return true;
  }

  private static void check(int result) {
    if (result < 0) {
      throw FaroException.of(result);
    }
  }

  @Override
  public String toString() {
    return "poller " + index + " of " + endpoint();
  }
}
