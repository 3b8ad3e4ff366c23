package io.faro.flink;

import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gives what Faro itself logs to Flink's log. Faro writes to the {@code System.Logger} named
 * {@code io.faro}, which is one of java.util.logging unless the JVM was told otherwise; then
 * nothing comes here.
 *
 * <p>Threads: any.
 */
final class LogBridge extends Handler {
  private static final String NAME = "io.faro";

  // java.util.logging forgets loggers that nobody refers to, and their handlers.
  private static final Logger SOURCE = Logger.getLogger(NAME);
  private static boolean installed;

  private final org.slf4j.Logger target = LoggerFactory.getLogger(NAME);

  private LogBridge() {}

  static synchronized void install() {
    if (!installed) {
      installed = true;
      SOURCE.addHandler(new LogBridge());
      SOURCE.setUseParentHandlers(false);
    }
  }

  @Override
  public void publish(LogRecord line) {
    int level = line.getLevel().intValue();
    String text = explained(line.getMessage());
    if (level >= Level.SEVERE.intValue()) {
      target.error(text);
    } else if (level >= Level.WARNING.intValue()) {
      target.warn(text);
    } else {
      target.info(text);
    }
  }

  /** With what it means for Flink, if that is something else than for others. */
  static String explained(String line) {
    return line.contains("not a Faro connection")
        ? line + ". If that was a TaskManager, it uses Flink's own (Netty) shuffle service: "
            + PeerProbe.REMEDY
        : OptionNames.inFlinksKeys(line);
  }

  @Override
  public void flush() {}

  @Override
  public void close() {}
}
