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
import java.security.cert.Certificate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.IllegalConfigurationException;
import org.apache.flink.configuration.SecurityOptions;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What {@code security.ssl.internal.*} says, as Faro takes it: the certificate, its key and the
 * trusted certificates as PEM in memory. Faro speaks TLS 1.3 only, with the ciphers of its own.
 *
 * <p>Threads: any; immutable, except {@link #close}.
 */
final class TlsMaterial implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(TlsMaterial.class);
  private static final int SHA1_DIGITS = 40; // Flink's
  private static final int SHA256_DIGITS = 64;

  private final byte[] certificate;
  private final byte[] key;
  private final byte[] authority; // null: certificates are admitted by their fingerprints
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
        required(
                configuration,
                SecurityOptions.SSL_INTERNAL_KEY_PASSWORD,
                SecurityOptions.SSL_KEY_PASSWORD)
            .toCharArray();
    Optional<String> named = fingerprints(configuration);
    try {
      String alias = keyAlias(keys);
      return new TlsMaterial(
          pem(Arrays.asList(keys.getCertificateChain(alias))),
          pem(keys.getKey(alias, password)),
          named.isPresent() ? null : pem(certificates(trusted)),
          named.orElse("authority"));
    } catch (GeneralSecurityException | IOException unusable) {
      throw new IllegalConfigurationException(
          "The stores of security.ssl.internal cannot be used.", unusable);
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

  private static IllegalConfigurationException forbidden(
      ConfigOption<String> option, String value, String remedy) {
    return new IllegalConfigurationException(
        option.key() + " is " + value + ", which forbids TLS 1.3, and Faro speaks nothing else: "
            + remedy
            + ", or remove the setting.");
  }

  private static List<String> list(String value) {
    return Arrays.stream(value.split(","))
        .map(item -> item.trim().toUpperCase(Locale.ROOT))
        .toList();
  }

  private static String required(
      Configuration configuration, ConfigOption<String> option, ConfigOption<String> general) {
    return configuration
        .getOptional(option)
        .or(() -> configuration.getOptional(general))
        .orElseThrow(
            () ->
                new IllegalConfigurationException(
                    "security.ssl.internal.enabled is set, but neither " + option.key() + " nor "
                        + general.key()
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
      KeyStore store =
          KeyStore.getInstance(configuration.getOptional(type).orElseGet(KeyStore::getDefaultType));
      store.load(in, secret);
      return store;
    } catch (IOException | GeneralSecurityException unreadable) {
      throw new IllegalConfigurationException(
          file.key() + ": " + path + " cannot be read.", unreadable);
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
    throw new IllegalConfigurationException(
        SecurityOptions.SSL_INTERNAL_KEYSTORE.key() + " has no private key.");
  }

  // The certificates of a truststore, and the one that a key in it is for, as Java's own trust
  // managers take them.
  private static List<Certificate> certificates(KeyStore trusted) throws GeneralSecurityException {
    List<Certificate> all = new ArrayList<>();
    for (String alias : Collections.list(trusted.aliases())) {
      Certificate certificate = trusted.getCertificate(alias);
      if (certificate != null) {
        all.add(certificate);
      }
    }
    if (all.isEmpty()) {
      throw new IllegalConfigurationException(
          SecurityOptions.SSL_INTERNAL_TRUSTSTORE.key() + " has no certificate.");
    }
    return all;
  }

  /**
   * The certificates that are admitted. As with Flink's own trust manager for fingerprints the
   * truststore does not count then, nor who has signed a certificate, nor until when it is valid.
   * Flink takes SHA-1 only. Empty: the truststore counts.
   */
  private static Optional<String> fingerprints(Configuration configuration) {
    Optional<String> set =
        configuration
            .getOptional(SecurityOptions.SSL_INTERNAL_CERT_FINGERPRINT)
            .filter(text -> !text.isBlank());
    return set.map(
        text ->
            Arrays.stream(text.split(","))
                .map(each -> fingerprint(each, text))
                .collect(Collectors.joining(",")));
  }

  private static String fingerprint(String each, String all) {
    String digits = each.strip().replace(":", "");
    boolean isOne = digits.length() == SHA1_DIGITS || digits.length() == SHA256_DIGITS;
    if (!isOne || !digits.chars().allMatch(HexFormat::isHexDigit)) {
      throw new IllegalConfigurationException(
          SecurityOptions.SSL_INTERNAL_CERT_FINGERPRINT.key() + " is " + all + ": '" + each.strip()
              + "' is not the fingerprint of a certificate, SHA-1 (" + SHA1_DIGITS
              + " hexadecimal digits) or SHA-256 (" + SHA256_DIGITS + "), with or without colons.");
    }
    return digits;
  }

  private static byte[] pem(List<Certificate> certificates)
      throws GeneralSecurityException, IOException {
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
        .setBytes(Setting.SECURITY_KEY, key);
    if (authority != null) {
      config.setBytes(Setting.SECURITY_AUTHORITY, authority);
    }
  }

  /** Overwrites the key. */
  @Override
  public void close() {
    Arrays.fill(key, (byte) 0);
  }
}
