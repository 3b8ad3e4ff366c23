package io.faro.flink;

import static java.nio.charset.StandardCharsets.US_ASCII;

import io.faro.SessionConfig;
import io.faro.Setting;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.Key;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.Certificate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.IllegalConfigurationException;
import org.apache.flink.configuration.SecurityOptions;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What {@code security.ssl.internal.*} says, as Faro takes it: the certificate, its key and the trusted certificates as PEM in
 * memory. Faro speaks TLS 1.3 only, with the ciphers of its own.
 *
 * <p>Threads: any; immutable, except {@link #close}.
 */
final class TlsMaterial implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(TlsMaterial.class);
  private static final int SHA1_DIGITS = 40;

  private final byte[] certificate;
  private final byte[] key;
  private final byte[] authority;
  private final String peers;

  private TlsMaterial(byte[] certificate, byte[] key, byte[] authority, String peers) {
    this.certificate = certificate;
    this.key = key;
    this.authority = authority;
    this.peers = peers;
  }

  /**
   * @throws IllegalConfigurationException if something is missing, or forbids what Faro does
   */
  static TlsMaterial of(Configuration configuration) {
    checkAllowed(configuration);
    KeyStore keys =
        load(
            configuration,
            SecurityOptions.SSL_INTERNAL_KEYSTORE,
            SecurityOptions.SSL_KEYSTORE,
            SecurityOptions.SSL_INTERNAL_KEYSTORE_PASSWORD,
            SecurityOptions.SSL_KEYSTORE_PASSWORD,
            SecurityOptions.SSL_INTERNAL_KEYSTORE_TYPE);
    KeyStore trusted =
        load(
            configuration,
            SecurityOptions.SSL_INTERNAL_TRUSTSTORE,
            SecurityOptions.SSL_TRUSTSTORE,
            SecurityOptions.SSL_INTERNAL_TRUSTSTORE_PASSWORD,
            SecurityOptions.SSL_TRUSTSTORE_PASSWORD,
            SecurityOptions.SSL_INTERNAL_TRUSTSTORE_TYPE);
    char[] password =
        required(configuration, SecurityOptions.SSL_INTERNAL_KEY_PASSWORD, SecurityOptions.SSL_KEY_PASSWORD)
            .toCharArray();
    try {
      String alias = keyAlias(keys);
      Certificate[] chain = keys.getCertificateChain(alias);
      List<Certificate> authorities = certificates(trusted);
      List<Certificate> known = new ArrayList<>(authorities);
      known.addAll(Arrays.asList(chain));
      return new TlsMaterial(
          pem(Arrays.asList(chain)),
          pem(keys.getKey(alias, password)),
          pem(authorities),
          peers(configuration, known));
    } catch (GeneralSecurityException | IOException unusable) {
      throw new IllegalConfigurationException("The stores of security.ssl.internal cannot be used.", unusable);
    } finally {
      Arrays.fill(password, '\0');
    }
  }

  // What is not set is a default of Flink's, which does not count here.
  private static void checkAllowed(Configuration configuration) {
    Optional<String> protocol = configuration.getOptional(SecurityOptions.SSL_PROTOCOL);
    if (protocol.isPresent() && !list(protocol.get()).contains("TLSV1.3")) {
      throw forbidden(SecurityOptions.SSL_PROTOCOL, protocol.get(), "add TLSv1.3");
    }
    Optional<String> ciphers = configuration.getOptional(SecurityOptions.SSL_ALGORITHMS);
    if (ciphers.isPresent()
        && list(ciphers.get()).stream()
            .noneMatch(name -> name.startsWith("TLS_AES_") || name.startsWith("TLS_CHACHA20_"))) {
      throw forbidden(SecurityOptions.SSL_ALGORITHMS, ciphers.get(), "add TLS_AES_256_GCM_SHA384");
    }
    LOG.info(
        "Faro speaks TLS 1.3, with TLS 1.3's ciphers; {} and {} do not choose among them.",
        SecurityOptions.SSL_PROTOCOL.key(),
        SecurityOptions.SSL_ALGORITHMS.key());
  }

  private static IllegalConfigurationException forbidden(ConfigOption<String> option, String value, String remedy) {
    return new IllegalConfigurationException(
        option.key() + " is " + value + ", which forbids TLS 1.3, and Faro speaks nothing else: " + remedy
            + ", or remove the setting.");
  }

  private static List<String> list(String value) {
    return Arrays.stream(value.split(",")).map(item -> item.trim().toUpperCase(Locale.ROOT)).toList();
  }

  private static String required(Configuration configuration, ConfigOption<String> option, ConfigOption<String> general) {
    return configuration
        .getOptional(option)
        .or(() -> configuration.getOptional(general))
        .orElseThrow(
            () ->
                new IllegalConfigurationException(
                    "security.ssl.internal.enabled is set, but neither " + option.key() + " nor " + general.key()
                        + "."));
  }

  private static KeyStore load(
      Configuration configuration,
      ConfigOption<String> file,
      ConfigOption<String> generalFile,
      ConfigOption<String> password,
      ConfigOption<String> generalPassword,
      ConfigOption<String> type) {
    String path = required(configuration, file, generalFile);
    char[] secret = required(configuration, password, generalPassword).toCharArray();
    try (InputStream in = Files.newInputStream(Path.of(path))) {
      KeyStore store = KeyStore.getInstance(configuration.getOptional(type).orElseGet(KeyStore::getDefaultType));
      store.load(in, secret);
      return store;
    } catch (IOException | GeneralSecurityException unreadable) {
      throw new IllegalConfigurationException(file.key() + ": " + path + " cannot be read.", unreadable);
    } finally {
      Arrays.fill(secret, '\0');
    }
  }

  private static String keyAlias(KeyStore keys) throws GeneralSecurityException {
    for (String alias : Collections.list(keys.aliases())) {
      if (keys.isKeyEntry(alias)) {
        return alias;
      }
    }
    throw new IllegalConfigurationException(SecurityOptions.SSL_INTERNAL_KEYSTORE.key() + " has no private key.");
  }

  // As Java's own trust managers: also the certificate that a key in the truststore is for.
  private static List<Certificate> certificates(KeyStore trusted) throws GeneralSecurityException {
    List<Certificate> all = new ArrayList<>();
    for (String alias : Collections.list(trusted.aliases())) {
      Certificate certificate = trusted.getCertificate(alias);
      if (certificate != null) {
        all.add(certificate);
      }
    }
    if (all.isEmpty()) {
      throw new IllegalConfigurationException(SecurityOptions.SSL_INTERNAL_TRUSTSTORE.key() + " has no certificate.");
    }
    return all;
  }

  /**
   * Whom Faro admits. Flink names certificates by their SHA-1, Faro by their SHA-256: so the certificate has to be known
   * here. It is in the usual set-up, where all TaskManagers have the same one.
   */
  private static String peers(Configuration configuration, List<Certificate> known) throws GeneralSecurityException {
    Optional<String> fingerprint = configuration.getOptional(SecurityOptions.SSL_INTERNAL_CERT_FINGERPRINT);
    if (fingerprint.isEmpty()) {
      return "authority";
    }
    List<String> admitted = new ArrayList<>();
    for (String given : fingerprint.get().split(",")) {
      admitted.add(sha256(given.trim().replace(":", "").toUpperCase(Locale.ROOT), known));
    }
    return String.join(",", admitted);
  }

  private static String sha256(String fingerprint, List<Certificate> known) throws GeneralSecurityException {
    if (fingerprint.length() != SHA1_DIGITS) {
      throw new IllegalConfigurationException(
          SecurityOptions.SSL_INTERNAL_CERT_FINGERPRINT.key() + " is no SHA-1 fingerprint: " + fingerprint);
    }
    for (Certificate certificate : known) {
      if (digest("SHA-1", certificate).equals(fingerprint)) {
        return digest("SHA-256", certificate);
      }
    }
    throw new IllegalConfigurationException(
        SecurityOptions.SSL_INTERNAL_CERT_FINGERPRINT.key() + " is " + fingerprint
            + ", which is neither in the keystore nor in the truststore: Faro needs the certificate itself.");
  }

  private static String digest(String algorithm, Certificate certificate) throws GeneralSecurityException {
    byte[] digest = MessageDigest.getInstance(algorithm).digest(certificate.getEncoded());
    return HexFormat.of().withUpperCase().formatHex(digest);
  }

  private static byte[] pem(List<Certificate> certificates) throws GeneralSecurityException, IOException {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (Certificate certificate : certificates) {
      all.write(pem("CERTIFICATE", certificate.getEncoded()));
    }
    return all.toByteArray();
  }

  private static byte[] pem(Key key) {
    if (key == null || !"PKCS#8".equals(key.getFormat())) {
      throw new IllegalConfigurationException(
          SecurityOptions.SSL_INTERNAL_KEYSTORE.key() + " has a key that does not leave it.");
    }
    byte[] encoded = key.getEncoded();
    byte[] pem = pem("PRIVATE KEY", encoded);
    Arrays.fill(encoded, (byte) 0);
    return pem;
  }

  // No string: it could not be overwritten.
  private static byte[] pem(String what, byte[] encoded) {
    byte[] head = ("-----BEGIN " + what + "-----\n").getBytes(US_ASCII);
    byte[] text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encode(encoded);
    byte[] tail = ("\n-----END " + what + "-----\n").getBytes(US_ASCII);
    byte[] pem = Arrays.copyOf(head, head.length + text.length + tail.length);
    System.arraycopy(text, 0, pem, head.length, text.length);
    System.arraycopy(tail, 0, pem, head.length + text.length, tail.length);
    Arrays.fill(text, (byte) 0);
    return pem;
  }

  void addTo(SessionConfig.Builder config) {
    config
        .set(Setting.SECURITY_TLS, "on")
        .set(Setting.SECURITY_PEERS, peers)
        .setBytes(Setting.SECURITY_CERTIFICATE, certificate)
        .setBytes(Setting.SECURITY_KEY, key)
        .setBytes(Setting.SECURITY_AUTHORITY, authority);
  }

  /** Overwrites the key. */
  @Override
  public void close() {
    Arrays.fill(key, (byte) 0);
  }
}
