package io.faro.flink;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import org.apache.flink.util.SerializedThrowable;

/**
 * How an error travels: as the very exception, since failover looks for some classes among the
 * causes; or, if it cannot be serialised, as what it has said.
 */
final class Errors {
  private Errors() {}

  static byte[] of(Throwable error) {
    try {
      return serialised(error);
    } catch (IOException | RuntimeException | StackOverflowError unserialisable) {
      try {
        return serialised(new SerializedThrowable(error));
      } catch (IOException | RuntimeException | StackOverflowError again) {
        return new byte[0];
      }
    }
  }

  private static byte[] serialised(Throwable error) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream objects = new ObjectOutputStream(bytes)) {
      objects.writeObject(error);
    }
    if (bytes.size() > MessageHeader.LONG_LIMIT) {
      throw new IOException("An error of " + bytes.size() + " bytes.");
    }
    return bytes.toByteArray();
  }

  static Throwable error(byte[] payload) {
    try (ObjectInputStream objects = new ObjectInputStream(new ByteArrayInputStream(payload))) {
      return (Throwable) objects.readObject();
    } catch (IOException
        | ReflectiveOperationException
        | RuntimeException
        | LinkageError unreadable) {
      return new IOException(
          "The error of the remote TaskManager cannot be read here; its log has it (" + unreadable
              + ").");
    }
  }
}
