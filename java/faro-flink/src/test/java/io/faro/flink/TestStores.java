package io.faro.flink;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.util.HexFormat;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.SecurityOptions;

/** Keystores as Flink's documentation makes them: one self-signed certificate for all, by keytool. */
final class TestStores {
  private static final String PASSWORD = "internal_store_password";

  private TestStores() {}

  static Path store(Path folder, String name) throws IOException, InterruptedException {
    Path store = folder.resolve(name + ".p12");
    if (!Files.exists(store)) {
      Process keytool =
          new ProcessBuilder(
                  Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                  "-genkeypair", "-alias", "flink.internal", "-keystore", store.toString(),
                  "-dname", "CN=flink.internal " + name, "-storepass", PASSWORD,
                  "-keyalg", "RSA", "-keysize", "2048", "-storetype", "PKCS12")
              .inheritIO()
              .start();
      if (keytool.waitFor() != 0) {
        throw new IOException("keytool has failed");
      }
    }
    return store;
  }

  static Configuration internalSsl(Path folder, String name) throws IOException, InterruptedException {
    String store = store(folder, name).toString();
    Configuration configuration = new Configuration();
    configuration.set(SecurityOptions.SSL_INTERNAL_ENABLED, true);
    configuration.set(SecurityOptions.SSL_INTERNAL_KEYSTORE, store);
    configuration.set(SecurityOptions.SSL_INTERNAL_TRUSTSTORE, store);
    configuration.set(SecurityOptions.SSL_INTERNAL_KEYSTORE_PASSWORD, PASSWORD);
    configuration.set(SecurityOptions.SSL_INTERNAL_TRUSTSTORE_PASSWORD, PASSWORD);
    configuration.set(SecurityOptions.SSL_INTERNAL_KEY_PASSWORD, PASSWORD);
    return configuration;
  }

  /** The fingerprint that Flink's setting has: SHA-1. */
  static String fingerprint(Path folder, String name)
      throws IOException, InterruptedException, GeneralSecurityException {
    KeyStore keys = KeyStore.getInstance("PKCS12");
    try (InputStream in = Files.newInputStream(store(folder, name))) {
      keys.load(in, PASSWORD.toCharArray());
    }
    byte[] digest =
        MessageDigest.getInstance("SHA-1").digest(keys.getCertificate("flink.internal").getEncoded());
    return HexFormat.ofDelimiter(":").withUpperCase().formatHex(digest);
  }
}
