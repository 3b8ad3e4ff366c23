package io.faro;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.Base64;

/** A certificate for 127.0.0.1 that is its own authority, made by keytool, and its key: both as PEM. */
record SelfSigned(byte[] certificate, byte[] key) {
  private static final String PASSWORD = "password";

  static SelfSigned make(Path folder, String name)
      throws IOException, InterruptedException, GeneralSecurityException {
    Path store = folder.resolve(name + ".p12");
    Process keytool =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                "-genkeypair", "-alias", name, "-keystore", store.toString(), "-storetype", "PKCS12",
                "-storepass", PASSWORD, "-dname", "CN=" + name, "-keyalg", "EC", "-groupname", "secp256r1",
                "-ext", "bc:c=ca:true", "-ext", "san=ip:127.0.0.1")
            .inheritIO()
            .start();
    if (keytool.waitFor() != 0) {
      throw new IOException("keytool has failed");
    }
    KeyStore keys = KeyStore.getInstance("PKCS12");
    try (InputStream in = Files.newInputStream(store)) {
      keys.load(in, PASSWORD.toCharArray());
    }
    return new SelfSigned(
        pem("CERTIFICATE", keys.getCertificate(name).getEncoded()),
        pem("PRIVATE KEY", keys.getKey(name, PASSWORD.toCharArray()).getEncoded()));
  }

  /** TLS with it, admitting itself and {@code others}. */
  void give(SessionConfig.Builder to, SelfSigned... others) {
    StringBuilder authority = new StringBuilder(new String(certificate, US_ASCII));
    for (SelfSigned other : others) {
      authority.append(new String(other.certificate, US_ASCII));
    }
    to.set(Setting.SECURITY_TLS, "on");
    to.setBytes(Setting.SECURITY_CERTIFICATE, certificate);
    to.setBytes(Setting.SECURITY_KEY, key);
    to.setBytes(Setting.SECURITY_AUTHORITY, authority.toString().getBytes(US_ASCII));
  }

  private static byte[] pem(String what, byte[] bytes) {
    String text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(bytes);
    return ("-----BEGIN " + what + "-----\n" + text + "\n-----END " + what + "-----\n").getBytes(US_ASCII);
  }
}
