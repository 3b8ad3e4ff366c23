#include <sys/socket.h>

#include <cerrno>

#include "tls/openssl.h"

namespace faro::tls {
namespace {

int fd_of(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

bool moved(ssize_t result, size_t* bytes) {
  *bytes = result > 0 ? static_cast<size_t>(result) : 0;
  return result > 0;
}

bool retried() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

int write_socket(BIO* bio, const char* data, size_t size, size_t* written) {
  BIO_clear_retry_flags(bio);
  errno = 0;
  if (moved(::send(fd_of(bio), data, size, MSG_NOSIGNAL | MSG_DONTWAIT), written)) return 1;
  // Also for a broken connection: what the peer sent before it closed can still be received, but libssl allows
  // that only as long as it knows of no error. The sender sees errno.
  BIO_set_retry_write(bio);
  return 0;
}

int read_socket(BIO* bio, char* data, size_t size, size_t* read) {
  BIO_clear_retry_flags(bio);
  errno = 0;
  const ssize_t got = ::recv(fd_of(bio), data, size, MSG_DONTWAIT);
  if (moved(got, read)) return 1;
  if (got == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  if (got < 0 && retried()) BIO_set_retry_read(bio);
  return 0;
}

long control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
  return 0;
}

// For the life of the process.
const BIO_METHOD* socket_method() {
  static const BIO_METHOD* const kMethod = [] {
    BIO_METHOD* const method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "faro");
    BIO_meth_set_write_ex(method, write_socket);
    BIO_meth_set_read_ex(method, read_socket);
    BIO_meth_set_ctrl(method, control);
    return method;
  }();
  return kMethod;
}

}  // namespace

BIO* make_socket_bio(int fd) {
  BIO* const bio = BIO_new(socket_method());
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  BIO_set_init(bio, 1);
  return bio;
}

}  // namespace faro::tls
