package io.faro.flink;

import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * What one I/O thread has moved over one transport. Each number has one writer, so reading them
 * together may give a state that never was.
 *
 * <p>Threads: the I/O thread writes; any reads.
 */
final class LinkCounts {
  /** Over which links go. */
  static final List<String> TRANSPORTS = List.of("shm", "tcp", "verbs");

  private volatile long requests;
  private volatile long buffersReceived;
  private volatile long bytesReceived;
  private volatile long buffersSent;
  private volatile long bytesSent;

  /** Those of an I/O thread, by transport. */
  static Map<String, LinkCounts> ofAllTransports() {
    return TRANSPORTS.stream()
        .collect(Collectors.toUnmodifiableMap(Function.identity(), each -> new LinkCounts()));
  }

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
