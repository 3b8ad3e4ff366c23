package io.faro;

import java.util.List;

/**
 * One call of {@link Worker#exchange}. It remembers nothing from one call to the next: how far each
 * part is its shuffle knows. Threads: the worker's.
 */
final class Exchange {
  private final Worker worker;
  private final List<ExchangePart> parts;
  private final long[] handles; // of their shuffles
  private ExchangePart inFunction; // of which a function is called; null: none is
  private boolean isDone;
  private boolean hasKept; // a function has kept the batch that it was given

  /** Checks all parts before anything is done. */
  Exchange(Worker worker, List<ExchangePart> parts) {
    this.worker = worker;
    this.parts = parts;
    if (parts.isEmpty()) {
      throw new FaroException(Code.INVALID_ARGUMENT, "exchange without a shuffle");
    }
    for (int i = 0; i < parts.size(); i++) {
      Shuffle shuffle = parts.get(i).shuffle();
      if (parts.subList(0, i).stream().anyMatch(before -> before.shuffle() == shuffle)) {
        throw new FaroException(
            Code.INVALID_ARGUMENT,
            "exchange has the shuffle of stage " + shuffle.spec().stage() + " twice");
      }
      parts.get(i).check(worker);
    }
    handles = parts.stream().mapToLong(part -> part.shuffle().call()).toArray();
  }

  /** Called where a call of the worker would have to wait. */
  void checkMayWait() {
    if (inFunction != null) {
      throw new FaroException(
          Code.WRONG_STATE,
          "worker " + worker.number() + " would wait in a function of exchange, in which nothing "
              + "may wait: use Wait.NONE");
    }
  }

  void enterFunctionOf(ExchangePart part) {
    inFunction = part;
  }

  void leaveFunction() {
    inFunction = null;
  }

  /** Makes turns, of which each is a condition, so that nothing in it waits. */
  <X extends Exception> Outcome run(Wait<X> wait) throws X {
    long begin = System.nanoTime();
    try {
      for (Wait<X> rest = wait; ; rest = wait.since(begin)) {
        Outcome outcome = worker.waitTaking(handles, this::turn, rest);
        if (outcome != Outcome.DONE || isDone) {
          return isDone ? Outcome.END_OF_STREAM : outcome;
        }
        if (hasKept) {
          return Outcome.HOLDING;
        }
        if (rest.nanos() == 0) {
          return wait.isNone() ? Outcome.DONE : Outcome.DEADLINE;
        }
        if (Thread.interrupted()) {
          String why = "worker " + worker.number() + " was interrupted";
          throw wait.interrupted(new InterruptedException(why));
        }
      }
    } catch (Throwable thrown) {
      if (inFunction != null) {
        worker.parts().fail(inFunction.shuffle().spec().query(), thrown);
      }
      throw thrown;
    }
  }

  void keeps() {
    hasKept = true;
  }

  boolean hasKept() {
    return hasKept;
  }

  /**
   * Takes what has come, and sends what there is room for; but nothing while batches are kept: it
   * would go to overflow, without bound. Whether it has done anything.
   */
  private boolean turn() {
    boolean any = false;
    for (ExchangePart part : parts) {
      any |= part.take(this);
      if (hasKept) {
        return true;
      }
    }
    if (parts.stream().anyMatch(ExchangePart::holds)) {
      return any;
    }
    for (ExchangePart part : parts) {
      any |= part.send(this);
    }
    isDone = parts.stream().allMatch(ExchangePart::isDone);
    return any || isDone;
  }
}
