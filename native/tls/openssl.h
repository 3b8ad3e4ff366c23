// What the files of this module share of OpenSSL.
#pragma once

#include <openssl/bio.h>
#include <openssl/x509v3.h>

namespace faro::tls {

/// Names are those of subjectAltName alone: a subject is for people.
inline constexpr unsigned kHostFlags =
    X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS;

/// A BIO over a non-blocking socket that it does not own. OpenSSL's own raises SIGPIPE when the
/// peer has closed. Null if there is no memory.
BIO* make_socket_bio(int fd);

}  // namespace faro::tls
