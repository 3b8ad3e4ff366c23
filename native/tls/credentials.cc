#include "tls/credentials.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/private_file.h"
#include "tls/openssl.h"

namespace faro::tls {
namespace {

// Some times what four certificates with large keys take.
constexpr size_t kFileBytes = 64 * 1024;

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
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509_STORE_CTX* check) const { X509_STORE_CTX_free(check); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

// Never ask for a pass phrase.
int no_pass_phrase(char*, int, int, void*) { return -1; }

Status use_key(SSL_CTX* context, const std::string& file) {
  FARO_ASSIGN_OR_RETURN(auto text, base::read_private_file(file, "security.key", kFileBytes));
  const Owned<BIO> bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_pass_phrase, nullptr));
  base::overwrite(text);
  if (key == nullptr) {
    return invalid("security.key", file,
                   fmt::format("no private key without a pass phrase, in PEM ({})", reason()));
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) == 1) return {};
  return invalid("security.key", file, fmt::format("not of this certificate ({})", reason()));
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
  if (settings.tls == "off") return std::shared_ptr<Credentials>();
  Files files{settings.certificate, settings.key, settings.authority};
  for (const auto& [setting, file] :
       {std::pair("security.certificate", &files.certificate),
        std::pair("security.key", &files.key), std::pair("security.authority", &files.authority)}) {
    if (!file->empty()) continue;
    return base::error(Code::config_invalid, "security.tls = {} needs {}: a file in PEM",
                       settings.tls, setting);
  }
  std::string state = state_of(files);
  FARO_ASSIGN_OR_RETURN(auto context, read(files));
  return std::shared_ptr<Credentials>(
      new Credentials(std::move(files), std::move(state), std::move(context)));
}

// Differs whenever one of the files was written or exchanged, or its owner or mode.
std::string Credentials::state_of(const Files& files) {
  std::string state;
  for (const std::string* file : {&files.certificate, &files.key, &files.authority}) {
    struct stat now {};
    (void)::stat(file->c_str(), &now);
    state += fmt::format("{}.{}.{}.{}.{} ", now.st_dev, now.st_ino, now.st_size, now.st_ctim.tv_sec,
                         now.st_ctim.tv_nsec);
  }
  return state;
}

Result<Credentials::Context> Credentials::read(const Files& files) {
  ERR_clear_error();
  const Context context(SSL_CTX_new(TLS_method()), SSL_CTX_free);
  if (context == nullptr) return base::error(Code::system_error, "libssl: {}", reason());
  SSL_CTX* const raw = context.get();
  SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION);
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(raw, 0);
  // A send that is tried again comes with the same bytes, perhaps from elsewhere.
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_use_certificate_chain_file(raw, files.certificate.c_str()) != 1) {
    return invalid("security.certificate", files.certificate,
                   fmt::format("no certificate in PEM ({})", reason()));
  }
  FARO_RETURN_IF_ERROR(use_key(raw, files.key));
  if (SSL_CTX_load_verify_file(raw, files.authority.c_str()) != 1) {
    return invalid("security.authority", files.authority,
                   fmt::format("no certificate in PEM ({})", reason()));
  }
  FARO_RETURN_IF_ERROR(check_own(raw, files.certificate));
  return context;
}

Credentials::Context Credentials::current() {
  const std::lock_guard lock(mutex_);
  std::string state = state_of(files_);
  if (state == state_) return context_;
  state_ = std::move(state);
  auto context = read(files_);
  if (context.ok()) {
    context_ = std::move(*context);
    base::log(LogLevel::info, "TLS: {} was read again", files_.certificate);
  } else {
    base::log(LogLevel::warning, "TLS keeps using its current certificate: {}",
              context.status().message());
  }
  return context_;
}

std::shared_ptr<Stream> Credentials::make_stream(int fd, const std::string* dialled_host) {
  const Context context = current();
  std::unique_ptr<ssl_st, Stream::Free> session(SSL_new(context.get()));
  BIO* const bio = session == nullptr ? nullptr : make_socket_bio(fd);
  if (bio == nullptr) return nullptr;
  SSL_set_bio(session.get(), bio, bio);
  if (dialled_host == nullptr) {
    SSL_set_accept_state(session.get());
  } else {
    X509_VERIFY_PARAM* const expected = SSL_get0_param(session.get());
    X509_VERIFY_PARAM_set_hostflags(expected, kHostFlags);
    if (X509_VERIFY_PARAM_set1_ip_asc(expected, dialled_host->c_str()) != 1 &&
        X509_VERIFY_PARAM_set1_host(expected, dialled_host->data(), dialled_host->size()) != 1) {
      return nullptr;
    }
    SSL_set_connect_state(session.get());
  }
  return std::make_shared<Stream>(std::move(session));
}

std::shared_ptr<Stream> Credentials::dial(int fd, const std::string& host) {
  return make_stream(fd, &host);
}

std::shared_ptr<Stream> Credentials::accept(int fd) { return make_stream(fd, nullptr); }

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
