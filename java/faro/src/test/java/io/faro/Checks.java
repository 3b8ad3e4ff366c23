package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import org.junit.jupiter.api.function.Executable;

/** Assertions, and what leads to them, that many tests use. */
final class Checks {
  private Checks() {}

  static void check(Outcome outcome) {
    assertEquals(Outcome.DONE, outcome);
  }

  static FaroException failure(Executable call) {
    return assertThrows(FaroException.class, call);
  }

  static Code codeOf(Executable call) {
    return failure(call).code();
  }

  static String messageOf(Executable call) {
    return failure(call).getMessage();
  }

  /** That the call fails by this code, and says these parts. */
  static FaroException failsBy(Code code, Executable call, String... parts) {
    FaroException failure = failure(call);
    assertSays(failure, code, parts);
    return failure;
  }

  static void assertSays(FaroException failure, Code code, String... parts) {
    assertEquals(code, failure.code(), failure::toString);
    for (String part : parts) {
      assertTrue(failure.getMessage().contains(part), failure::toString);
    }
  }

  /** A batch of what the worker has been sent. */
  static Batch received(Shuffle shuffle) {
    Batch batch = shuffle.receiver().newBatch();
    check(shuffle.receiver().receive(batch, Wait.NONE));
    return batch;
  }

  /** Receives until the end of the stream. */
  static void drain(Shuffle shuffle, Consumer<Batch> reader) throws InterruptedException {
    Batch batch = shuffle.receiver().newBatch();
    while (shuffle.receiver().receive(batch) == Outcome.DONE) {
      reader.accept(batch);
    }
  }

  /** Drains a shuffle of rows that are longs. */
  static void drainLongs(Shuffle shuffle, LongConsumer reader) throws InterruptedException {
    drain(shuffle, batch -> {
      for (int i = 0; i < batch.rowCount(); i++) {
        reader.accept(batch.getLong(i * Long.BYTES));
      }
    });
  }

  /** Starts the call in another thread. */
  static <T> FutureTask<T> start(Callable<T> call) {
    FutureTask<T> task = new FutureTask<>(call);
    new Thread(task, "test").start();
    return task;
  }

  /** What the call gives in another thread, which has ended when this returns. */
  static <T> T inThread(Callable<T> call) throws Exception {
    FutureTask<T> task = new FutureTask<>(call);
    Thread thread = new Thread(task);
    thread.start();
    thread.join();
    return task.get();
  }
}
