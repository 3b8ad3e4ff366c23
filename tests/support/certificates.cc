#include "support/certificates.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cstdio>
#include <functional>

#include "faro/config.h"

namespace faro::test {
namespace {

using Key = std::shared_ptr<EVP_PKEY>;
using Certificate = std::shared_ptr<X509>;

Key make_key() { return {EVP_EC_gen("P-256"), EVP_PKEY_free}; }

void extend(X509* certificate, int kind, const std::string& value) {
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
  EXPECT_NE(extension, nullptr) << value;
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

/// Unsigned. Each has a number of its own.
Certificate make_certificate(const std::string& name, const Key& key, const Subject& subject) {
  static long number = 0;
  const Certificate certificate(X509_new(), X509_free);
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), ++number);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), subject.from_s);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), subject.until_s);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_pubkey(certificate.get(), key.get());
  return certificate;
}

std::string alternative_names(const std::vector<std::string>& hosts) {
  std::string text;
  for (const std::string& host : hosts) {
    in_addr unused;
    const bool numeric = inet_pton(AF_INET, host.c_str(), &unused) == 1;
    text += (text.empty() ? "" : ",") + std::string(numeric ? "IP:" : "DNS:") + host;
  }
  return text;
}

/// The file changes at once, as a tool that renews certificates would do it.
void write_file(const std::string& path, const std::function<int(FILE*)>& write) {
  const std::string fresh = path + ".new";
  FILE* const file = std::fopen(fresh.c_str(), "we");
  ASSERT_NE(file, nullptr) << fresh;
  EXPECT_EQ(fchmod(fileno(file), 0600), 0);
  EXPECT_EQ(write(file), 1);
  std::fclose(file);
  EXPECT_EQ(std::rename(fresh.c_str(), path.c_str()), 0);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> NodeFiles::settings(const std::string& tls) const {
  return {{"security.tls", tls},
          {"security.certificate", certificate()},
          {"security.key", key()},
          {"security.authority", authority()}};
}

base::Settings NodeFiles::resolved() const {
  base::Settings settings;
  settings.tls = "on";
  settings.certificate = certificate();
  settings.key = key();
  settings.authority = authority();
  return settings;
}

Authority::Authority()
    : key_(make_key()), certificate_(make_certificate("an authority", key_, {})) {
  X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
  extend(certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
  X509_sign(certificate_.get(), key_.get(), EVP_sha256());
}

NodeFiles Authority::issue(const Subject& subject) const {
  NodeFiles files;
  renew(files, subject);
  return files;
}

void Authority::renew(const NodeFiles& files, const Subject& subject) const {
  const Key key = make_key();
  const Certificate certificate = make_certificate("a node", key, subject);
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate_.get()));
  extend(certificate.get(), NID_subject_alt_name, alternative_names(subject.hosts));
  X509_sign(certificate.get(), key_.get(), EVP_sha256());
  write_file(files.certificate(),
             [&](FILE* file) { return PEM_write_X509(file, certificate.get()); });
  write_file(files.key(), [&](FILE* file) {
    return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  write_file(files.authority(),
             [&](FILE* file) { return PEM_write_X509(file, certificate_.get()); });
}

std::vector<std::pair<std::string, std::string>> transport_settings(const std::string& name) {
  if (name != "tls") return {{"transport", name}};
  static const NodeFiles files = Authority().issue();
  auto settings = files.settings();
  settings.emplace_back("transport", "tcp");
  return settings;
}

}  // namespace faro::test
