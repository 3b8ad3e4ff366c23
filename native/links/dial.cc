#include "links/dial.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace faro::links {
namespace {

using transport::tcp::SocketAddress;

// A connection to a free port of this machine can connect to itself: the system may choose that very port for
// the dialling end (TCP's simultaneous open). Then no one listens at that address.
bool met_itself(int fd) {
  SocketAddress local;
  SocketAddress remote;
  local.length = remote.length = sizeof local.storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&local.storage), &local.length) != 0 ||
      getpeername(fd, reinterpret_cast<sockaddr*>(&remote.storage), &remote.length) != 0) {
    return false;
  }
  return local.length == remote.length &&
         std::memcmp(&local.storage, &remote.storage, local.length) == 0;
}

}  // namespace

Dial::~Dial() {
  if (socket_.valid()) reactor_.remove(socket_.get());
}

void Dial::on_resolved(Resolution::Addresses found) {
  if (!found.ok()) {
    const Done done = std::move(done_);
    return done(found.status());
  }
  candidates_ = std::move(found.value());
  try_next();
}

void Dial::try_next() {
  while (next_ < candidates_.size()) {
    const SocketAddress& candidate = candidates_[next_++];
    socket_.reset(::socket(candidate.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket_.valid() && source_) {
      transport::tcp::leave_from(socket_.get(), *source_, candidate);
    }
    int error = 0;
    if (!socket_.valid() || (::connect(socket_.get(), candidate.get(), candidate.length) != 0 &&
                             errno != EINPROGRESS)) {
      error = errno;
    } else {
      const Status added =
          reactor_.add(socket_.get(), EPOLLOUT, [this](uint32_t) { on_connected(); });
      if (added.ok()) return;
      error = EMFILE;
    }
    note_failure(error);
  }
  const Done done = std::move(done_);
  const Status last = last_;
  done(last);
}

void Dial::on_connected() {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  reactor_.remove(socket_.get());
  if (error == 0 && met_itself(socket_.get())) error = ECONNREFUSED;
  if (error == 0) {
    const Done done = std::move(done_);
    return done(std::move(socket_));
  }
  note_failure(error);
  try_next();
}

void Dial::note_failure(int error) {
  socket_.reset();
  refused_ = refused_ && error == ECONNREFUSED;
  last_ = base::error(refused_ ? Code::peer_lost : Code::connect_failed, "connect to {}: {}",
                      transport::tcp::to_string(candidates_[next_ - 1]), std::strerror(error));
}

}  // namespace faro::links
