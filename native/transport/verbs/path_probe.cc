#include "transport/verbs/path_probe.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/return_if_error.h"

namespace faro::transport::verbs {
namespace {

Status unreachable(const tcp::SocketAddress& peer, int error) {
  return base::error(Code::connect_failed, "the peer's RDMA device at {} cannot be reached: {}",
                     tcp::to_string(peer), std::strerror(error));
}

}  // namespace

PathProbe::~PathProbe() {
  if (socket_.valid()) reactor_.remove(socket_.get());
}

Status PathProbe::start(const tcp::SocketAddress& local, const tcp::SocketAddress& peer,
                        Done done) {
  base::UniqueFd socket(::socket(peer.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return base::error(Code::system_error, "socket: {}", std::strerror(errno));
  tcp::leave_from(socket.get(), local, peer);
  if (::connect(socket.get(), peer.get(), peer.length) != 0 && errno != EINPROGRESS &&
      errno != ECONNREFUSED)
    return unreachable(peer, errno);
  FARO_RETURN_IF_ERROR(reactor_.add(socket.get(), EPOLLOUT, [this](uint32_t) { on_answer(); }));
  socket_ = std::move(socket);
  peer_ = peer;
  done_ = std::move(done);
  return {};
}

void PathProbe::on_answer() {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  reactor_.remove(socket_.get());
  socket_.reset();
  const Done done = std::move(done_);
  done(error == 0 || error == ECONNREFUSED ? Status() : unreachable(peer_, error));
}

}  // namespace faro::transport::verbs
