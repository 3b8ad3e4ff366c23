package io.faro.flink;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.buffer.Buffer.DataType;
import org.apache.flink.runtime.io.network.partition.BufferAvailabilityListener;
import org.apache.flink.runtime.io.network.partition.ResultSubpartition.BufferAndBacklog;
import org.apache.flink.runtime.io.network.partition.ResultSubpartitionView;

/** A subpartition that a test fills by hand, and that notes what is asked of it. Threads: any. */
final class ScriptedView implements ResultSubpartitionView {
  private final ArrayDeque<Buffer> queue = new ArrayDeque<>();
  private final List<String> calls = new ArrayList<>();
  private final CountDownLatch released = new CountDownLatch(1);
  private BufferAvailabilityListener listener;
  private Throwable failure;
  private boolean blocked; // by a barrier, until consumption is resumed
  private int sequence;
  private int taken;

  void listen(BufferAvailabilityListener listener) {
    synchronized (this) {
      this.listener = listener;
    }
    listener.notifyDataAvailable(this);
  }

  void add(Buffer... buffers) {
    BufferAvailabilityListener told;
    synchronized (this) {
      for (Buffer buffer : buffers) {
        if (buffer.getDataType().hasPriority()) {
          queue.addFirst(buffer);
        } else {
          queue.addLast(buffer);
        }
      }
      told = listener;
    }
    if (told != null) {
      told.notifyDataAvailable(this);
    }
  }

  void fail(Throwable cause) {
    synchronized (this) {
      failure = cause;
    }
    listener.notifyDataAvailable(this);
  }

  synchronized int taken() {
    return taken;
  }

  /** What was asked so far; waits until it is that many things. */
  synchronized List<String> calls(int count) throws InterruptedException {
    while (calls.size() < count) {
      wait();
    }
    return List.copyOf(calls);
  }

  private synchronized void note(String call) {
    calls.add(call);
    notifyAll();
  }

  void awaitRelease() throws InterruptedException {
    released.await();
  }

  @Override
  public synchronized BufferAndBacklog getNextBuffer() {
    if (failure != null || blocked || queue.isEmpty()) {
      return null;
    }
    Buffer next = queue.poll();
    taken++;
    blocked = next.getDataType().isBlockingUpstream();
    int number = sequence;
    sequence += PartialBuffers.isOf(next) ? PartialBuffers.lengths(next).length / Integer.BYTES : 1;
    DataType following = blocked || queue.isEmpty() ? DataType.NONE : queue.peek().getDataType();
    return new BufferAndBacklog(next, backlog(), following, number);
  }

  private int backlog() {
    return blocked ? 0 : (int) queue.stream().filter(Buffer::isBuffer).count();
  }

  @Override
  public synchronized AvailabilityWithBacklog getAvailabilityAndBacklog(boolean isCreditAvailable) {
    boolean available =
        failure != null
            || !blocked && !queue.isEmpty() && (isCreditAvailable || !queue.peek().isBuffer());
    return new AvailabilityWithBacklog(available, backlog());
  }

  @Override
  public void notifyDataAvailable() {}

  @Override
  public synchronized void releaseAllResources() {
    queue.forEach(Buffer::recycleBuffer);
    queue.clear();
    released.countDown();
  }

  @Override
  public synchronized boolean isReleased() {
    return failure != null || released.getCount() == 0;
  }

  @Override
  public void resumeConsumption() {
    synchronized (this) {
      blocked = false;
    }
    note("resumed");
  }

  @Override
  public void acknowledgeAllDataProcessed() {
    note("acknowledged");
  }

  @Override
  public synchronized Throwable getFailureCause() {
    return failure;
  }

  @Override
  public synchronized int unsynchronizedGetNumberOfQueuedBuffers() {
    return queue.size();
  }

  @Override
  public synchronized int getNumberOfQueuedBuffers() {
    return queue.size();
  }

  @Override
  public void notifyNewBufferSize(int bytes) {
    note("size " + bytes);
  }

  @Override
  public void notifyRequiredSegmentId(int subpartition, int segment) {
    note("segment " + subpartition + " " + segment);
  }

  @Override
  public int peekNextBufferSubpartitionId() {
    return 0;
  }
}
