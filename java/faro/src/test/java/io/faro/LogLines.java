package io.faro;

import java.util.function.Consumer;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Sees every line that is logged as io.faro, until it is closed. */
final class LogLines extends Handler {
  private static final Logger LOGGER = Logger.getLogger("io.faro"); // kept: loggers are held weakly
  private final Consumer<LogRecord> reader;

  LogLines(Consumer<LogRecord> reader) {
    this.reader = reader;
    LOGGER.addHandler(this);
  }

  @Override
  public void publish(LogRecord line) {
    reader.accept(line);
  }

  @Override
  public void flush() {}

  @Override
  public void close() {
    LOGGER.removeHandler(this);
  }
}
