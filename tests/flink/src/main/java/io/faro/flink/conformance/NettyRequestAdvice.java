package io.faro.flink.conformance;

import net.bytebuddy.asm.Advice;

/** In {@code NettyPartitionRequestClient.requestSubpartition}: counts the request. */
final class NettyRequestAdvice {
  private NettyRequestAdvice() {}

  @Advice.OnMethodEnter
  static void enter() {
    RemoteExchanges.requestedOverNetty();
  }
}
