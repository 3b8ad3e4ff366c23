package io.faro;

import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/**
 * Where log lines go: the {@link System.Logger} named {@code io.faro}.
 *
 * <p>Where that is one of {@code java.util.logging}, which names the class that calls it as a
 * line's source, records are made here, without one: a line comes from native code, and the name of
 * the logger says all that is known.
 *
 * <p>Threads: any.
 */
interface LogOutput {
  String NAME = "io.faro";

  /** {@code thrown}: null if there is none. */
  void log(System.Logger.Level level, String line, Throwable thrown);

  /** What this JVM uses. */
  static LogOutput find() {
    String finder = System.LoggerFinder.getLoggerFinder().getClass().getName();
    return finder.equals("sun.util.logging.internal.LoggingProviderImpl")
        ? new OfJavaLogging()
        : new OfSystem();
  }

  /** Any logger. */
  final class OfSystem implements LogOutput {
    private final System.Logger logger = System.getLogger(NAME);

    @Override
    public void log(System.Logger.Level level, String line, Throwable thrown) {
      logger.log(level, line, thrown);
    }
  }

  /** {@code java.util.logging}, which need not be there. */
  final class OfJavaLogging implements LogOutput {
    private final Logger logger = Logger.getLogger(NAME);

    @Override
    public void log(System.Logger.Level level, String line, Throwable thrown) {
      Level its = levelOf(level);
      if (!logger.isLoggable(its)) {
        return;
      }
      LogRecord record = new LogRecord(its, line);
      record.setLoggerName(NAME);
      record.setSourceClassName(null);
      record.setSourceMethodName(null);
      record.setThrown(thrown);
      logger.log(record);
    }

    // The level that stands for it, as System.Logger.Level says.
    private static Level levelOf(System.Logger.Level level) {
      return switch (level) {
        case DEBUG -> Level.FINE;
        case WARNING -> Level.WARNING;
        case ERROR -> Level.SEVERE;
        default -> Level.INFO;
      };
    }
  }
}
