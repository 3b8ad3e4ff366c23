#include "links/control_stream.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"
#include "wire/control.h"

namespace faro::links {
namespace {

// How much one connection may read in its turn. Level triggering brings the rest in the next round, after the others.
// Almost always it is one short message.
constexpr size_t kFirstReadBytes = 1024;
constexpr size_t kReadBytes = 16 * 1024;
constexpr int kReadsPerTurn = 4;

// Idle connections keep no memory of what went through them.
void empty(std::vector<std::byte>& bytes) { std::vector<std::byte>().swap(bytes); }

}  // namespace

Status ControlStream::start() {
  watched_ = 0;
  // Bytes that came in one TLS record with the preamble.
  if (const size_t pending = socket_.pending(); pending != 0) {
    incoming_.resize(pending);
    if (socket_.receive(incoming_) < 0) incoming_.clear();
  }
  // A weak reference: when the last owner drops the stream its descriptor is closed as well.
  return owner_.epoll().add(socket_.get(), 0, [weak = weak_from_this()](uint32_t events) {
    if (const auto self = weak.lock()) self->on_events(events);
  });
}

void ControlStream::mark_unsettled() {
  if (unsettled_) return;
  owner_.mark_unsettled(shared_from_this());
  unsettled_ = true;
}

void ControlStream::set_handler(Handler* handler) {
  handler_ = handler;
  watch();
  if (!incoming_.empty() || !failure_.ok()) mark_unsettled();
}

void ControlStream::send_raw(std::span<const std::byte> bytes) {
  outgoing_.insert(outgoing_.end(), bytes.begin(), bytes.end());
  mark_unsettled();
}

void ControlStream::send(std::span<const std::byte> message) {
  if (ended() || !failure_.ok()) return;
  if (outgoing_.size() - sent_ + message.size() > kOutgoingLimit) {
    failure_ =
        base::error(Code::peer_lost, "the peer does not take control messages: {} bytes are queued",
                    outgoing_.size() - sent_);
    mark_unsettled();
    return;
  }
  const auto length = static_cast<uint32_t>(message.size());
  std::array<std::byte, wire::kControlLengthBytes> prefix;
  std::memcpy(prefix.data(), &length, sizeof length);
  // A length without its message would corrupt everything that follows.
  const size_t needed = outgoing_.size() + prefix.size() + message.size();
  if (needed > outgoing_.capacity()) outgoing_.reserve(std::max(needed, 2 * outgoing_.capacity()));
  outgoing_.insert(outgoing_.end(), prefix.begin(), prefix.end());
  send_raw(message);
}

void ControlStream::detach() noexcept {
  handler_ = nullptr;
  if (ended()) return;
  lingering_ = true;
  try {
    flush();
    if (!ended()) owner_.keep_lingering(shared_from_this());
  } catch (const std::bad_alloc&) {
    close();
  }
}

void ControlStream::close() noexcept {
  if (ended()) return;
  owner_.epoll().remove(socket_.get());
  socket_.close();
  turn_.end();
}

Status ControlStream::check_peer(const std::string& host) const {
  return socket_.tls() == nullptr ? Status::Ok() : socket_.tls()->check_peer(host);
}

Status ControlStream::broken(int error) const {
  if (error == EPROTO && socket_.tls() != nullptr) return socket_.tls()->failure();
  if (error == ECONNRESET || error == EPIPE) {
    return Status(Code::peer_lost,
                  "the connection was closed by the peer: its process has probably died");
  }
  return base::error(Code::peer_lost, "the connection is broken: {}", std::strerror(error));
}

void ControlStream::settle() {
  const auto self = shared_from_this();  // a handler may drop the last reference
  unsettled_ = false;
  if (!ended()) flush();
  if (handler_ != nullptr && !incoming_.empty() && !deliver()) return;
  if (handler_ != nullptr && !failure_.ok()) fail(failure_);
}

void ControlStream::on_events(uint32_t events) {
  const auto self = shared_from_this();
  if ((events & EPOLLOUT) != 0) flush();
  if (ended() || (events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) == 0) return;
  const bool waited = socket_.send_waits_for_input();
  receive();
  if (waited && !ended()) flush();
}

void ControlStream::receive() {
  for (int i = 0;; ++i) {
    const size_t most = i == 0              ? kFirstReadBytes
                        : i < kReadsPerTurn ? kReadBytes
                                            : socket_.pending();
    if (most == 0) return;
    const size_t before = incoming_.size();
    incoming_.resize(before + most);
    const ssize_t got = socket_.receive(std::span(incoming_).subspan(before));
    const int error = errno;
    incoming_.resize(before + (got > 0 ? static_cast<size_t>(got) : 0));
    if (got < 0 && (error == EAGAIN || error == EINTR)) {
      if (before == 0) empty(incoming_);
      return;
    }
    if (lingering_) {
      incoming_.clear();
      if (got <= 0) return close();  // the peer has taken everything and closed
      continue;
    }
    if (got <= 0)
      return fail(broken(send_error_ != 0 ? send_error_ : got == 0 ? ECONNRESET : error));
    if (!deliver() || static_cast<size_t>(got) < most) return;
  }
}

// Hands out whole messages. False when the stream was closed, detached or has failed meanwhile.
bool ControlStream::deliver() {
  size_t at = 0;
  const Handler* const receiver = handler_;
  bool goes_on = receiver != nullptr;
  while (goes_on && incoming_.size() - at >= wire::kControlLengthBytes) {
    uint32_t length = 0;
    std::memcpy(&length, incoming_.data() + at, sizeof length);
    if (length == 0 || length > wire::kControlMessageLimit) {
      fail(base::error(Code::protocol_error, "a control message of {} bytes (limit {})", length,
                       wire::kControlMessageLimit));
      return false;
    }
    if (incoming_.size() - at - wire::kControlLengthBytes < length) break;
    const std::byte* message = incoming_.data() + at + wire::kControlLengthBytes;
    at += wire::kControlLengthBytes + length;
    handler_->on_message({message, length});  // may exchange the handler, or drop the handle
    goes_on = handler_ != nullptr && !ended();
  }
  if (lingering_ || at == incoming_.size()) {
    empty(incoming_);
  } else {
    incoming_.erase(incoming_.begin(), incoming_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return goes_on;
}

void ControlStream::flush() {
  while (sent_ < outgoing_.size()) {
    const ssize_t put = socket_.send(std::span(outgoing_).subspan(sent_));
    if (put < 0) {
      if (errno == EINTR) continue;
      if (errno == EPROTO && failure_.ok()) {
        failure_ = broken(EPROTO);  // TLS ends in both directions
        mark_unsettled();
      }
      if (errno != EAGAIN) {
        // Not reported here: first read what the peer sent before it closed (a REFUSE). Reading then reaches
        // the end of the connection: the peer's, or ours if the peer has not closed.
        if (send_error_ == 0) send_error_ = errno;
        sent_ = outgoing_.size();
        if (lingering_) return close();
        shutdown(socket_.get(), SHUT_RDWR);
      }
      break;
    }
    sent_ += static_cast<size_t>(put);
    turn_.end();
  }
  if (sent_ == outgoing_.size()) {
    empty(outgoing_);
    sent_ = 0;
    if (lingering_ && !shut_) {
      shut_ = true;
      shutdown(socket_.get(), SHUT_WR);
    }
  }
  watch();
}

void ControlStream::watch() {
  if (ended()) return;
  const uint32_t wanted =
      (handler_ != nullptr || lingering_ ? uint32_t{EPOLLIN} : 0u) |
      (sent_ < outgoing_.size() && !socket_.send_waits_for_input() ? uint32_t{EPOLLOUT} : 0u);
  if (wanted == watched_) return;
  watched_ = wanted;
  owner_.epoll().change(socket_.get(), wanted);
}

void ControlStream::fail(Status cause) {
  const auto self = shared_from_this();
  close();
  failure_ = std::move(cause);
  if (handler_ == nullptr) return;  // reported when there is one
  Handler* const handler = std::exchange(handler_, nullptr);
  const Status told = std::exchange(failure_, Status::Ok());
  handler->on_closed(told);
}

}  // namespace faro::links
