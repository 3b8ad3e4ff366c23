// Sending: from what is committed or released to the socket. tcp_receive.cc has the other
// direction, tcp_link.h the picture and the arguments.
#include <fmt/format.h>
#include <sched.h>

#include <cerrno>
#include <utility>

#include "base/return_if_error.h"
#include "transport/tcp/tcp_link.h"

namespace faro::transport::tcp {
namespace {

// A holder of the right hands over to the network thread after that many bytes: else one worker could
// be kept busy with sending what all the others post. Large, for it costs a wake-up of that thread.
constexpr size_t kSendTurnBytes = size_t{1} << 20;

}  // namespace

// ----------------------------------------------------------------------------------- ends of rings

TcpOutgoing::TcpOutgoing(TcpLink& link, uint32_t ring, std::byte* base, uint32_t ring_bytes)
    : MessagedOutgoing(link, ring, base, ring_bytes), link_(link) {}

void TcpOutgoing::on_broken() {
  link_.guarded([&] {
    link_.fail(Code::protocol_error, fmt::format("impossible read position for ring {}", number_));
  });
}

TcpIncoming::TcpIncoming(TcpLink& link, uint32_t ring, std::byte* base, uint32_t ring_bytes,
                         ring::ReadySet& ready, uint32_t ready_ring)
    : MessagedIncoming(link, ring, base, ring_bytes, ready, ready_ring), link_(link), base_(base) {}

void TcpIncoming::on_invalid(const char* why) {
  link_.guarded(
      [&] { link_.fail(Code::protocol_error, fmt::format("{} in ring {}", why, number_)); });
}

// ------------------------------------------------------------------------------------------- batch

void TcpLink::Gather::add_piece(const void* data, size_t bytes) {
  if (piece_count != 0) {
    iovec& last = pieces[piece_count - 1];
    if (static_cast<const std::byte*>(last.iov_base) + last.iov_len ==
        data) {  // READs that follow each other
      last.iov_len += bytes;
      return;
    }
  }
  pieces[piece_count++] = {const_cast<void*>(data), bytes};
}

void TcpLink::Gather::add(const wire::DataMessage& message) {
  messages[message_count] = message;
  add_piece(&messages[message_count], sizeof message);
  ++message_count;
}

void TcpLink::Gather::advance(size_t bytes) {
  while (bytes != 0) {
    iovec& piece = pieces[first_piece];
    if (bytes < piece.iov_len) {
      piece.iov_base = static_cast<std::byte*>(piece.iov_base) + bytes;
      piece.iov_len -= bytes;
      return;
    }
    bytes -= piece.iov_len;
    ++first_piece;
  }
}

// ----------------------------------------------------------------------------------------- sending

// W2 to W4 (native/DESIGN.md#memory-orders). Threads: any.
void TcpLink::send_pending() {
  guarded([&] {
    do {
      if (!right_.try_take()) return;
      if (!send_while_held()) return;
      right_.give_back();
    } while (anything_due());
  });
  turns_.send_what_is_due();
}

// Sends everything pending. True: nothing is left, and the right is still held. False: another thread has the
// right now, or the link has halted, and then it is parked.
bool TcpLink::send_while_held() {
  size_t turn = 0;
  for (;;) {
    if (halted()) {
      right_.park();
      return false;
    }
    if (gather_.empty()) {
      if (!anything_due()) return true;
      gather();
      if (gather_.empty()) continue;
    }
    const ssize_t sent = stream_->send(gather_.rest());
    if (sent >= 0) {
      // A short write is tried again: only a send that is refused makes the kernel report when
      // there is space.
      gather_.advance(static_cast<size_t>(sent));
      if (turns_) [[unlikely]]
        turns_.note_sent(static_cast<size_t>(sent));
      turn += static_cast<size_t>(sent);
      if (turn < kSendTurnBytes) continue;
      if (gather_.empty() && !anything_due()) return true;
      send_later();
      return false;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (right_.block()) return false;
      continue;
    }
    fail(Code::peer_lost,
         fmt::format("data connection broken while sending: {}", stream_->failure(errno)));
    right_.park();
    return false;
  }
}

// The turn is over, but the socket is not full, so no edge will come.
void TcpLink::send_later() {
  right_.block_until_called();
  context_.reactor->defer([weak = std::weak_ptr<TcpLink*>(self_)] {
    if (const auto self = weak.lock()) (*self)->on_writable();
  });
}

// Threads: network thread.
void TcpLink::on_writable() {
  if (!right_.take_blocked()) return;
  guarded([&] {
    if (!send_while_held()) return;
    right_.give_back();
    if (anything_due()) send_pending();
  });
  turns_.send_what_is_due();
}

// Fills the batch with what is pending.
void TcpLink::gather() {
  gather_.clear();
  take_due();
  if (resumption_.told != incoming_.size()) [[unlikely]]
    return gather_resumes();
  if (sign_due_.load(std::memory_order_relaxed)) [[unlikely]] {
    sign_due_.store(false, std::memory_order_relaxed);
    gather_.add(wire::sign_message());
  }
  if (turns_) [[unlikely]]
    turns_.gather_message();
  reads_.take([this](uint32_t number) {
    if (gather_.message_count == gather_.read_limit()) {
      note_due();
      return false;
    }
    wire::Position read = 0;
    if (incoming_[number].take_told(read)) gather_.add(wire::read_message(number, read));
    return true;
  });
  // Until then what is marked stays so; accept_resume makes it due.
  if (!resumption_.may_write.load(std::memory_order_acquire)) [[unlikely]]
    return;
  if (turns_) [[unlikely]]
    return turns_.gather_rows();
  writes_.take([this](uint32_t number) {
    if (gather_.message_count == gather_.message_limit) {
      note_due();
      return false;
    }
    gather_ring(number);
    return true;
  });
}

// What is committed there. Returns how much that is.
uint32_t TcpLink::gather_ring(uint32_t number) {
  TcpOutgoing& ring = outgoing_[number];
  const wire::Position from = ring.sent_.load(std::memory_order_relaxed);
  const wire::Position end = ring.producer_.committed();  // acquire: the frames' bytes
  if (end == from) return 0;
  ring.sent_.store(end, std::memory_order_relaxed);
  const uint32_t bytes = static_cast<uint32_t>(end - from);  // at most the ring
  gather_.add(wire::written_message(number, bytes, from));
  const uint32_t ring_bytes = ring.producer_.ring_bytes();
  const uint32_t to_end = ring_bytes - static_cast<uint32_t>(from & (ring_bytes - 1));
  gather_.add_piece(ring.producer_.at(from), bytes < to_end ? bytes : to_end);
  if (bytes > to_end) gather_.add_piece(ring.producer_.at(0), bytes - to_end);
  return bytes;
}

// What has arrived cannot change meanwhile: the peer writes when it has the last of these.
void TcpLink::gather_resumes() {
  uint32_t& ring = resumption_.told;
  for (; ring != incoming_.size() && gather_.message_count != gather_.message_limit; ++ring) {
    TcpIncoming& from = incoming_[ring];
    const wire::Position read = from.take_told_again();
    const wire::Position arrived = from.written();
    gather_.add(wire::resume_message(ring, static_cast<uint32_t>(arrived - read), arrived));
  }
  note_due();
}

// -------------------------------------------------------------------------------------------- ends

void TcpLink::stop() noexcept { halt(kStopped); }

// The sign goes with what else is due, when the socket takes it. The sockets are read by workers, or by none while all of
// these compute. So before the peer's silence counts, what is in the socket is read here.
Pulse TcpLink::take_pulse() noexcept {
  if (!stream_.has_value()) {
    life_.tally.beat(false);
    return life_.tally.is_stuck() ? Pulse::stuck : Pulse::none;
  }
  if (context_.agreed.signs) {
    sign_due_.store(true, std::memory_order_relaxed);
    send_now();
  } else {
    kernel_watch_.look(stream_->fd());
  }
  receiver_->take();
  on_readable(false);
  const bool heard = life_.beat();
  const bool is_stuck = life_.tally.is_stuck();
  receiver_->give();
  turns_.send_what_is_due();
  if (is_stuck) return Pulse::stuck;
  return heard ? Pulse::heard : context_.agreed.signs ? Pulse::none : Pulse::unknown;
}

// After stop() a broken connection is no failure, and of two failures the first counts.
void TcpLink::fail(Code code, std::string message) {
  const Status why(code, std::move(message));
  if (halt(code == Code::peer_lost ? kBroken : kStopped, why)) context_.events->on_link_failed(why);
}

bool TcpLink::halt(State to, const Status& why) noexcept {
  const std::lock_guard lock(resumption_.mutex);
  const State was = state_.load(std::memory_order_relaxed);
  if (was >= to) return false;
  state_.store(to, std::memory_order_release);
  if (to == kStopped) resumption_.failure = why;
  if (was != kRunning) return false;
  turns_.leave();
  receiver_->remove(stream_->fd());
  // The network thread gets an event, finds the link halted, and removes the socket.
  stream_->shutdown();
  return true;
}

bool TcpLink::close_connections() noexcept {
  stop();
  return close_socket();
}

void TcpLink::give_up_connection() noexcept {
  halt(kBroken);
  if (stream_.has_value()) {
    receiver_->take();
    life_.tally.broke();
    receiver_->give();
  }
  // An exception may have left the right of one that has stopped held.
  while (!close_socket() && state_.load(std::memory_order_acquire) != kStopped) sched_yield();
}

bool TcpLink::close_socket() noexcept {
  if (!stream_.has_value()) return true;
  receiver_->take();  // whoever was inside has left; the socket is not polled any more
  arrival_.forget();
  receiver_->give();
  if (!right_.try_park()) return false;
  gather_.clear();
  if (registered_) context_.reactor->remove(stream_->fd());
  registered_ = false;
  const std::lock_guard lock(resumption_.mutex);
  stream_.reset();
  return true;
}

Status TcpLink::take_connection(int fd, std::shared_ptr<tls::Stream> tls) {
  const base::Nanoseconds now = context_.reactor->clock().now_ns();
  {
    const std::lock_guard lock(resumption_.mutex);
    if (state_.load(std::memory_order_relaxed) == kStopped || stream_.has_value()) {
      ::close(fd);
      return resumption_.failure.ok() ? Status(Code::internal_error, "the link has stopped")
                                      : resumption_.failure;
    }
    stream_.emplace(fd, std::move(tls));
    resumption_.told = 0;
    resumption_.may_write.store(false, std::memory_order_relaxed);
    state_.store(kRunning, std::memory_order_release);
    turns_.enter(now);  // before anybody halts it, who leaves
  }
  receiver_->take();
  resumption_.heard = 0;
  resumption_.owes = false;
  receiver_->give();
  FARO_RETURN_IF_ERROR(watch());
  {
    // A worker that reads what had come before may have stopped the link meanwhile: halt() found nothing to remove.
    const std::lock_guard lock(resumption_.mutex);
    if (halted()) receiver_->remove(stream_->fd());
  }
  note_due();
  right_.give_back();
  send_pending();
  return Status::Ok();
}

}  // namespace faro::transport::tcp
