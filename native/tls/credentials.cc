#include "tls/credentials.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/private_file.h"
#include "base/return_if_error.h"
#include "base/whole_file.h"
#include "tls/openssl.h"

namespace faro::tls {
namespace {

// Some times what four certificates with large keys take.
constexpr size_t kKeyBytes = 64 * 1024;
// Some times what all authorities take that a system trusts.
constexpr size_t kCertificatesBytes = 4 * 1024 * 1024;

Status invalid(std::string_view setting, const std::string& file, std::string_view why) {
  return base::error(Code::config_invalid, "{} = {}: {}", setting, file, why);
}

// The first thing that libssl found wrong.
std::string reason() {
  const unsigned long error = ERR_peek_error();
  ERR_clear_error();
  const char* const text = ERR_SYSTEM_ERROR(error) ? std::strerror(ERR_GET_REASON(error))
                                                   : ERR_reason_error_string(error);
  return text == nullptr ? "libssl does not say why" : text;
}

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509_STORE_CTX* check) const { X509_STORE_CTX_free(check); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

// Never ask for a pass phrase.
int no_pass_phrase(char*, int, int, void*) { return -1; }

// All certificates of a PEM, in order. Empty: there is none, or one of them is none; reason() says why.
std::vector<Owned<X509>> read_certificates(BIO* bio) {
  std::vector<Owned<X509>> certificates;
  if (bio == nullptr) return certificates;
  while (Owned<X509> each{PEM_read_bio_X509(bio, nullptr, no_pass_phrase, nullptr)})
    certificates.push_back(std::move(each));
  if (certificates.empty()) return certificates;
  const bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (!is_end) return {};
  ERR_clear_error();
  return certificates;
}

Owned<BIO> memory_of(std::span<const std::byte> bytes) {
  return Owned<BIO>(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

// False: there is no memory.
bool expect_host(SSL* session, const std::string& host) {
  X509_VERIFY_PARAM* const expected = SSL_get0_param(session);
  X509_VERIFY_PARAM_set_hostflags(expected, kHostFlags);
  return X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str()) == 1 ||
         X509_VERIFY_PARAM_set1_host(expected, host.data(), host.size()) == 1;
}

// What the others would find wrong about our own certificate is better known before they do.
Status check_own(SSL_CTX* context, const std::string& file) {
  const Owned<X509_STORE_CTX> check(X509_STORE_CTX_new());
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context, &chain);
  if (check == nullptr || X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(context),
                                              SSL_CTX_get0_certificate(context), chain) != 1) {
    return base::error(Code::system_error, "libssl: {}", reason());
  }
  if (X509_verify_cert(check.get()) == 1) return {};
  return invalid("security.certificate", file,
                 fmt::format("not valid by security.authority: {}",
                             X509_verify_cert_error_string(X509_STORE_CTX_get_error(check.get()))));
}

}  // namespace

Result<std::shared_ptr<Credentials>> Credentials::load(const base::Settings& settings) {
  FARO_ASSIGN_OR_RETURN(auto policy, PeerPolicy::parse(settings.peers));
  if (settings.tls == "off") {
    if (policy.is_by_host()) return std::shared_ptr<Credentials>();
    return base::error(Code::config_invalid, "security.peers = {} with security.tls = off",
                       settings.peers);
  }
  const auto source = [&settings](std::string_view setting, const std::string& file) {
    return Source{setting, file, settings.given_for(setting)};
  };
  Sources sources{source("security.certificate", settings.certificate),
                  source("security.key", settings.key),
                  source("security.authority", settings.authority)};
  for (const Source* each : {&sources.certificate, &sources.key, &sources.authority}) {
    if (each->is_given()) continue;
    if (each == &sources.authority && policy.names_certificates()) continue;
    return base::error(Code::config_invalid, "security.tls = {} needs {}: a file in PEM",
                       settings.tls, each->setting);
  }
  std::string state = state_of(sources);
  FARO_ASSIGN_OR_RETURN(auto context, read(sources, policy));
  return std::shared_ptr<Credentials>(
      new Credentials(std::move(sources), std::make_shared<const PeerPolicy>(std::move(policy)),
                      std::move(state), std::move(context)));
}

// Differs whenever one of the files was written or exchanged, or its owner or mode.
std::string Credentials::state_of(const Sources& sources) {
  std::string state;
  for (const Source* source : {&sources.certificate, &sources.key, &sources.authority}) {
    if (source->bytes != nullptr || !source->is_given()) continue;
    struct stat now {};
    (void)::stat(source->file.c_str(), &now);
    state += fmt::format("{}.{}.{}.{}.{} ", now.st_dev, now.st_ino, now.st_size, now.st_ctim.tv_sec,
                         now.st_ctim.tv_nsec);
  }
  return state;
}

// Leaves `text` empty if the bytes were given.
Status Credentials::read_public(const Source& source, std::vector<std::byte>& text) {
  if (source.bytes != nullptr) return {};
  auto read = base::read_whole_file(source.file, base::FileKind::plain, kCertificatesBytes);
  if (!read.ok()) return invalid(source.setting, source.file, read.status().message());
  text = std::move(*read);
  if (text.size() <= kCertificatesBytes) return {};
  return invalid(source.setting, source.file,
                 fmt::format("more than {} bytes", kCertificatesBytes));
}

Status Credentials::use_certificate(SSL_CTX* context, const Source& source) {
  std::vector<std::byte> text;
  FARO_RETURN_IF_ERROR(read_public(source, text));
  const Owned<BIO> bio = memory_of(source.bytes != nullptr ? *source.bytes : text);
  const auto chain = read_certificates(bio.get());
  bool is_used = !chain.empty() && SSL_CTX_use_certificate(context, chain.front().get()) == 1;
  for (size_t each = 1; is_used && each < chain.size(); ++each)
    is_used = SSL_CTX_add1_chain_cert(context, chain[each].get()) == 1;
  if (is_used) return {};
  return invalid(source.setting, source.file, fmt::format("no certificate in PEM ({})", reason()));
}

Status Credentials::use_key(SSL_CTX* context, const Source& source) {
  std::vector<std::byte> text;
  if (source.bytes == nullptr) {
    FARO_ASSIGN_OR_RETURN(text, base::read_private_file(source.file, source.setting, kKeyBytes));
  }
  const Owned<BIO> bio = memory_of(source.bytes != nullptr ? *source.bytes : text);
  const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_pass_phrase, nullptr));
  base::overwrite(text);
  if (key == nullptr) {
    return invalid(source.setting, source.file,
                   fmt::format("no private key without a pass phrase, in PEM ({})", reason()));
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) == 1) return {};
  return invalid(source.setting, source.file,
                 fmt::format("not of this certificate ({})", reason()));
}

Status Credentials::use_authority(SSL_CTX* context, const Source& source) {
  std::vector<std::byte> text;
  FARO_RETURN_IF_ERROR(read_public(source, text));
  const Owned<BIO> bio = memory_of(source.bytes != nullptr ? *source.bytes : text);
  const auto certificates = read_certificates(bio.get());
  bool is_used = !certificates.empty();
  for (const auto& each : certificates)
    is_used = is_used && X509_STORE_add_cert(SSL_CTX_get_cert_store(context), each.get()) == 1;
  if (is_used) return {};
  return invalid(source.setting, source.file, fmt::format("no certificate in PEM ({})", reason()));
}

Result<Credentials::Context> Credentials::read(const Sources& sources, const PeerPolicy& policy) {
  ERR_clear_error();
  const Context context(SSL_CTX_new(TLS_method()), SSL_CTX_free);
  if (context == nullptr) return base::error(Code::system_error, "libssl: {}", reason());
  SSL_CTX* const raw = context.get();
  SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION);
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(raw, Stream::verify, nullptr);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(raw, 0);
  // A send that is tried again comes with the same bytes, perhaps from elsewhere. An idle connection keeps no buffers.
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                            SSL_MODE_RELEASE_BUFFERS);
  FARO_RETURN_IF_ERROR(use_certificate(raw, sources.certificate));
  FARO_RETURN_IF_ERROR(use_key(raw, sources.key));
  if (sources.authority.is_given()) FARO_RETURN_IF_ERROR(use_authority(raw, sources.authority));
  if (!policy.names_certificates()) FARO_RETURN_IF_ERROR(check_own(raw, sources.certificate.file));
  return context;
}

Credentials::Context Credentials::current() {
  const std::lock_guard lock(mutex_);
  std::string state = state_of(sources_);
  if (state == state_) return context_;
  state_ = std::move(state);
  auto context = read(sources_, *policy_);
  if (context.ok()) {
    context_ = std::move(*context);
    base::log(LogLevel::info, "TLS: {} was read again", sources_.certificate.file);
  } else {
    base::log(LogLevel::warning, "TLS keeps using its current certificate: {}",
              context.status().message());
  }
  return context_;
}

std::shared_ptr<Stream> Credentials::make_stream(int fd, const std::string* dialled_host,
                                                 bool asks_for_certificate) {
  const Context context = current();
  std::unique_ptr<ssl_st, Stream::Free> session(SSL_new(context.get()));
  BIO* const bio = session == nullptr ? nullptr : make_socket_bio(fd);
  if (bio == nullptr) return nullptr;
  SSL_set_bio(session.get(), bio, bio);
  if (dialled_host == nullptr) {
    SSL_set_accept_state(session.get());
    if (!asks_for_certificate) SSL_set_verify(session.get(), SSL_VERIFY_NONE, nullptr);
  } else {
    if (policy_->is_by_host() && !expect_host(session.get(), *dialled_host)) return nullptr;
    SSL_set_connect_state(session.get());
  }
  return std::make_shared<Stream>(std::move(session), policy_);
}

std::shared_ptr<Stream> Credentials::dial(int fd, const std::string& host) {
  return make_stream(fd, &host);
}

std::shared_ptr<Stream> Credentials::accept(int fd) { return make_stream(fd, nullptr); }

std::shared_ptr<Stream> Credentials::accept_anyone(int fd) {
  return make_stream(fd, nullptr, false);
}

int64_t Credentials::seconds_left() {
  const Context context = current();
  const X509* const shown = SSL_CTX_get0_certificate(context.get());
  constexpr int64_t kSecondsPerDay = 86'400;
  int days = 0;
  int seconds = 0;
  ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(shown));
  return days * kSecondsPerDay + seconds;
}

}  // namespace faro::tls
