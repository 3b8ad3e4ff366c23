package io.faro.flink;

/**
 * What one I/O thread has moved. Each number has one writer, so reading them together may give a state that never was.
 *
 * <p>Threads: the I/O thread writes; any reads.
 */
final class LinkCounts {
  private volatile long requests;
  private volatile long buffersReceived;
  private volatile long bytesReceived;
  private volatile long buffersSent;
  private volatile long bytesSent;

  void requested() {
    requests = requests + 1;
    ExchangeTotals.REQUESTS.increment();
  }

  void received(int bytes) {
    buffersReceived = buffersReceived + 1;
    bytesReceived = bytesReceived + bytes;
    ExchangeTotals.BUFFERS.increment();
    ExchangeTotals.BYTES.add(bytes);
  }

  void sent(int bytes) {
    buffersSent = buffersSent + 1;
    bytesSent = bytesSent + bytes;
  }

  /** Subpartitions that were requested. */
  long requests() {
    return requests;
  }

  /** Buffers and events. */
  long buffersReceived() {
    return buffersReceived;
  }

  long bytesReceived() {
    return bytesReceived;
  }

  long buffersSent() {
    return buffersSent;
  }

  long bytesSent() {
    return bytesSent;
  }
}
