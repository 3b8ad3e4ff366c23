package io.faro;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/**
 * Tells whether a thread is virtual. A virtual thread must not wait inside a native call: it would
 * hold its carrier.
 */
final class VirtualThreads {
  private static final MethodHandle IS_VIRTUAL = find(); // null: this JDK has none

  // Threads of this class are treated as virtual; null: none.
  private static volatile Class<? extends Thread> alsoForTest;

  private VirtualThreads() {}

  static boolean isCurrent() {
    Thread current = Thread.currentThread();
    Class<? extends Thread> also = alsoForTest;
    if (also != null && also.isInstance(current)) {
      return true;
    }
    try {
      return IS_VIRTUAL != null && (boolean) IS_VIRTUAL.invokeExact(current);
    } catch (Throwable impossible) {
      throw new AssertionError(impossible); // it is a getter of the JDK, which does not throw
    }
  }

  /** From now on threads of this class wait as virtual threads do, even if the JDK has none. */
  static void alsoForTest(Class<? extends Thread> threads) {
    alsoForTest = threads;
  }

  private static MethodHandle find() {
    try {
      return MethodHandles.publicLookup()
          .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
    } catch (ReflectiveOperationException before21) {
      return null;
    }
  }
}
