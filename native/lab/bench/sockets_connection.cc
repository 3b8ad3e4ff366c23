#include "lab/bench/sockets_connection.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace faro::bench {

void Failure::set(Code code, const std::string& message) {
  if (status_.ok()) status_ = Status(code, "worker " + std::to_string(worker_) + ": " + message);
}

// ------------------------------------------------------------------------------------- connection

SocketsConnection::SocketsConnection(MeshSocket mesh, size_t capacity_bytes, uint32_t frame_bytes,
                                     Failure& failure)
    : fd_(std::move(mesh.fd)),
      peer_(mesh.peer),
      frame_bytes_(frame_bytes),
      failure_(&failure),
      capacity_(capacity_bytes),
      memory_(std::make_unique<char[]>(capacity_bytes)) {}

void SocketsConnection::note(uint32_t events) noexcept {
  if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) readable_ = true;
  if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) writable_ = true;
}

bool SocketsConnection::send(Output& output) {
  const size_t waiting = output.waiting_bytes();
  if (waiting == 0 || !writable_) return false;
  const ssize_t sent = ::send(fd_.get(), output.begin, waiting, MSG_NOSIGNAL);
  if (sent < 0) {
    writable_ = errno == EINTR;
    if (errno != EAGAIN && errno != EINTR) {
      failure_->set(Code::peer_lost, "the connection to worker " + std::to_string(peer_) +
                                         " broke while sending: " + std::strerror(errno));
    }
    return false;
  }
  output.take(static_cast<size_t>(sent));
  // Less than there was: the edge comes when there is room again.
  writable_ = output.is_empty();
  return true;
}

bool SocketsConnection::receive_more() {
  if (!suspended_ || !readable_) return false;
  if (end_ - begin_ == capacity_) {
    auto larger = std::make_unique<char[]>(2 * capacity_);
    std::memcpy(larger.get(), memory_.get(), capacity_);
    memory_ = std::move(larger);
    capacity_ *= 2;
  }
  return read();
}

bool SocketsConnection::read() {
  if (begin_ > 0) {
    std::memmove(memory_.get(), memory_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const size_t room = capacity_ - end_;
  if (room == 0) return false;
  const ssize_t got = recv(fd_.get(), memory_.get() + end_, room, 0);
  if (got > 0) {
    end_ += static_cast<size_t>(got);
    // Less than asked for: the socket is empty, and more will be an edge.
    readable_ = static_cast<size_t>(got) == room;
    return true;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    readable_ = errno == EINTR;
    return false;
  }
  readable_ = false;
  failure_->set(Code::peer_lost, "worker " + std::to_string(peer_) + " closed its connection" +
                                     (got < 0 ? std::string(": ") + std::strerror(errno) : ""));
  return false;
}

// --------------------------------------------------------------------------------------- event set

EventSet::EventSet() : epoll_(epoll_create1(EPOLL_CLOEXEC)) { check(epoll_.valid()); }

void EventSet::watch(int fd, uint32_t events, uint32_t index) {
  epoll_event event{};
  event.events = events | EPOLLET;
  event.data.u32 = index;
  check(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0);
  events_.emplace_back();
}

void EventSet::check(bool done) {
  if (!done && status_.ok())
    status_ = Status(Code::system_error, std::string("epoll: ") + std::strerror(errno));
}

}  // namespace faro::bench
