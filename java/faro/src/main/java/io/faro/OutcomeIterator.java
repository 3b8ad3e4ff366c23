package io.faro;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.Supplier;

/** An iterator over objects that are received by a call that waits. Threads: the worker's. */
final class OutcomeIterator<T> implements Iterator<T> {
  /** Waits for the next object. */
  interface Step {
    Outcome next() throws InterruptedException;
  }

  private final Step step;
  private final Supplier<T> object; // found by the last step
  private Outcome found = Outcome.WOULD_WAIT; // not looked yet

  OutcomeIterator(Step step, Supplier<T> object) {
    this.step = step;
    this.object = object;
  }

  @Override
  public boolean hasNext() {
    if (found == Outcome.WOULD_WAIT) {
      found = nextOrThrow();
    }
    return found == Outcome.DONE;
  }

  @Override
  public T next() {
    if (!hasNext()) {
      throw new NoSuchElementException("the end of the stream");
    }
    found = Outcome.WOULD_WAIT;
    return object.get();
  }

  private Outcome nextOrThrow() {
    try {
      Outcome outcome = step.next();
      if (outcome == Outcome.HOLDING) {
        throw new FaroException(
            Code.HOLDING, "the worker holds other batches: release or detach them first");
      }
      return outcome;
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new FaroException(Code.CANCELLED, interrupted.getMessage(), interrupted);
    }
  }
}
