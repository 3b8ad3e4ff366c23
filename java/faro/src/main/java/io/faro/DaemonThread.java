package io.faro;

/**
 * Threads of Faro. They take nothing over from the thread that happens to start them: neither
 * inheritable thread locals nor the context class loader, which would keep an application in memory
 * for as long as the thread runs.
 *
 * <p>Threads: any.
 */
final class DaemonThread {
  private DaemonThread() {}

  /** Starts a daemon thread whose context class loader is Faro's own. */
  static void start(String name, Runnable task) {
    start(name, task, DaemonThread.class);
  }

  /** Starts a daemon thread whose context class loader is that of the class whose code it calls. */
  static void start(String name, Runnable task, Class<?> calls) {
    Thread thread = new Thread(null, task, name, 0, false);
    thread.setDaemon(true);
    thread.setContextClassLoader(calls.getClassLoader());
    thread.start();
  }
}
