// Sending: from what is committed or released to the socket. tcp_receive.cc has the other
// direction, tcp_link.h the picture and the arguments.
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "transport/tcp/send_pieces.h"
#include "transport/tcp/tcp_link.h"

namespace faro::transport::tcp {
namespace {

// A holder of the right hands over to the network thread after so many bytes: else one worker could
// be kept busy with sending what all the others post. Large, for it costs a wake-up of that thread.
constexpr size_t kSendTurnBytes = size_t{1} << 20;

// What may wait for more to go along: beyond it one call gains little (two packets of the
// loopback's size), and the peer could be idle meanwhile.
constexpr uint64_t kGatherBytes = uint64_t{128} << 10;

}  // namespace

// ---------------------------------------------------------------------------------- outgoing rings

Claim TcpOutgoing::claim(uint32_t least_bytes, uint32_t most_bytes) {
  Claim claimed = MirroredOutgoing::claim(least_bytes, most_bytes);
  if (claimed.bytes != 0) [[likely]] {
    if (starved_.load(std::memory_order_relaxed) != 0) starved_.store(0, std::memory_order_relaxed);
    return claimed;
  }
  // See starved_: say so, then look again. The peer can only make room by reading what it has.
  starved_.store(1, std::memory_order_seq_cst);
  link_.send_deferred();
  claimed = MirroredOutgoing::claim(least_bytes, most_bytes);
  if (claimed.bytes != 0) starved_.store(0, std::memory_order_relaxed);
  return claimed;
}

void TcpOutgoing::post() {
  const wire::Position end = producer_.committed();
  if (end == posted_) return link_.send_deferred();
  mark_posted(end);
  count(counters_.transfers);
  link_.writes_.mark(ring_);
  link_.send_now();
}

void TcpOutgoing::post_soon() {
  const wire::Position end = producer_.committed();
  if (end == posted_) return;
  const uint64_t bytes = end - posted_;
  mark_posted(end);
  count(counters_.transfers);
  link_.writes_.mark(ring_);
  link_.defer(bytes);
}

void TcpOutgoing::on_broken() {
  link_.fail(Code::protocol_error, fmt::format("impossible read position for ring {}", ring_));
}

// ---------------------------------------------------------------------------------- incoming rings

// A read position by itself costs two system calls and perhaps a wake-up at the peer, as much as a
// transfer: it goes along with the next thing to that peer, whatever that is. It is only deferred,
// and so sent in time, when the peer may be waiting for it. A sender that finds no space (at most
// half a ring is ever needed, ring/producer.h) has used more than half the ring since the last
// position that it knows. So that is
//   - when more than half a ring was released since then. A worker that goes on polling comes to
//   this, or
//   - before the worker waits (flush_releases): when more than half a ring has arrived since then.
//   What has not arrived
//     yet wakes the worker, which flushes again before it waits.

void TcpIncoming::tell_read(wire::Position read) {
  told_.store(read, std::memory_order_release);
  link_.reads_.mark(ring_);
  if (read - told_sent_.load(std::memory_order_relaxed) > consumer_.ring_bytes() / 2)
    link_.defer(sizeof(wire::DataMessage));
}

void TcpIncoming::flush_releases() {
  MirroredIncoming::flush_releases();
  const wire::Position sent = told_sent_.load(std::memory_order_relaxed);
  if (told_.load(std::memory_order_relaxed) == sent) return;
  const wire::Position arrived = written_.load(std::memory_order_seq_cst);
  if (arrived - sent > consumer_.ring_bytes() / 2) link_.defer(sizeof(wire::DataMessage));
}

void TcpIncoming::on_invalid(const char* why) {
  link_.fail(Code::protocol_error, fmt::format("{} in ring {}", why, ring_));
}

// ------------------------------------------------------------------------------------------- batch

void TcpLink::Batch::add_piece(const void* data, size_t bytes) {
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

void TcpLink::Batch::add(const wire::DataMessage& message) {
  messages[message_count] = message;
  add_piece(&messages[message_count], sizeof message);
  ++message_count;
}

void TcpLink::Batch::advance(size_t bytes) {
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

// Everything that is marked.
void TcpLink::send_now() {
  due_.store(true, std::memory_order_seq_cst);  // W1
  send_pending();
}

// What was marked may wait. Threads: any.
void TcpLink::defer(uint64_t bytes) {
  if (deferred_bytes_.fetch_add(bytes, std::memory_order_seq_cst) + bytes >= kGatherBytes)
    return send_now();  // D1
  deferred_->note(context_.reactor->clock().now_ns());
}

// W2 to W4. Threads: any.
void TcpLink::send_pending() {
  do {
    uint32_t right = kFree;
    if (!right_.compare_exchange_strong(right, kHeld, std::memory_order_seq_cst)) return;
    if (!send_while_held()) return;
    right_.store(kFree, std::memory_order_seq_cst);
  } while (anything_due());
}

// Sends all that is pending. True: nothing is left and the right is still held. False: the right is
// somebody else's now, or the link has stopped, and then nobody gets it any more.
bool TcpLink::send_while_held() {
  size_t turn = 0;
  for (;;) {
    if (stopped()) return false;
    if (batch_.empty()) {
      if (!anything_due()) return true;
      gather();
      if (batch_.empty()) continue;
    }
    msghdr message{};
    message.msg_iov = &batch_.pieces[batch_.first_piece];
    message.msg_iovlen = batch_.piece_count - batch_.first_piece;
    const ssize_t sent = send_pieces(fd_, message, &way_);
    if (sent >= 0) {
      // A short write is tried again: only a send that is refused makes the kernel report when
      // there is space.
      batch_.advance(static_cast<size_t>(sent));
      turn += static_cast<size_t>(sent);
      if (turn < kSendTurnBytes) continue;
      if (batch_.empty() && !anything_due()) return true;
      send_later();
      return false;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (give_to_network_thread()) return false;
      continue;
    }
    fail(Code::peer_lost,
         fmt::format("data connection broken while sending: {}", std::strerror(errno)));
    return false;
  }
}

// True if the network thread will go on. False if the socket became writable meanwhile.
bool TcpLink::give_to_network_thread() {
  uint32_t right = kHeld;
  if (right_.compare_exchange_strong(right, kBlocked, std::memory_order_seq_cst)) return true;
  right_.store(kHeld,
               std::memory_order_relaxed);  // it was held_writable, which only the holder changes
  return false;
}

// The turn is over but the socket is not full: no edge will come.
void TcpLink::send_later() {
  right_.store(kBlocked, std::memory_order_seq_cst);
  context_.reactor->defer([weak = std::weak_ptr<TcpLink*>(self_)] {
    if (const auto self = weak.lock()) (*self)->on_writable();
  });
}

// Threads: network thread.
void TcpLink::on_writable() {
  uint32_t right = right_.load(std::memory_order_seq_cst);
  for (;;) {
    if (right == kBlocked) {
      // Only this thread takes it out of `blocked`.
      right_.store(kHeld, std::memory_order_seq_cst);
      if (!send_while_held()) return;
      right_.store(kFree, std::memory_order_seq_cst);
      if (anything_due()) send_pending();
      return;
    }
    if (right != kHeld) return;
    if (right_.compare_exchange_weak(right, kHeldWritable, std::memory_order_seq_cst)) return;
  }
}

// Fills the batch with what is pending.
void TcpLink::gather() {
  batch_.clear();
  // Before the looks: what is marked later sets them again.
  due_.store(false, std::memory_order_seq_cst);
  deferred_bytes_.store(0, std::memory_order_seq_cst);
  reads_.take([this](uint32_t number) {
    if (batch_.message_count == Batch::kReads) {
      due_.store(true, std::memory_order_relaxed);  // the holder's own note
      return false;
    }
    TcpIncoming& ring = incoming_[number];
    const wire::Position read = ring.told_.load(std::memory_order_acquire);
    // Equal: a mark that came after its position had gone with an earlier one.
    if (read == ring.told_sent_.load(std::memory_order_relaxed)) return true;
    ring.told_sent_.store(read, std::memory_order_relaxed);
    batch_.add(wire::read_message(number, read));
    return true;
  });
  writes_.take([this](uint32_t number) {
    if (batch_.message_count == Batch::kMessages) {
      due_.store(true, std::memory_order_relaxed);
      return false;
    }
    TcpOutgoing& ring = outgoing_[number];
    const wire::Position from = ring.sent_.load(std::memory_order_relaxed);
    const wire::Position end = ring.producer_.committed();  // acquire: the frames' bytes
    if (end == from) return true;
    ring.sent_.store(end, std::memory_order_relaxed);
    const uint32_t bytes = static_cast<uint32_t>(end - from);  // at most the ring
    batch_.add(wire::written_message(number, bytes, from));
    const uint32_t ring_bytes = ring.producer_.ring_bytes();
    const uint32_t to_end = ring_bytes - static_cast<uint32_t>(from & (ring_bytes - 1));
    batch_.add_piece(ring.producer_.at(from), bytes < to_end ? bytes : to_end);
    if (bytes > to_end) batch_.add_piece(ring.producer_.at(0), bytes - to_end);
    return true;
  });
}

// -------------------------------------------------------------------------------------------- ends

void TcpLink::stop() noexcept { end(); }

// After stop() a broken connection is no failure, and of two failures the first counts.
void TcpLink::fail(Code code, std::string message) {
  if (end()) context_.events->on_link_failed(Status(code, std::move(message)));
}

// True for the one who ended it.
bool TcpLink::end() noexcept {
  if (stopped_.exchange(true, std::memory_order_acq_rel)) return false;
  receiver_->remove(fd_);
  // Whoever is inside a system call on it gets an error or an end; the network thread gets an
  // event, finds the link stopped, and forgets the socket. What was sent before still arrives.
  shutdown(fd_, SHUT_RDWR);
  return true;
}

}  // namespace faro::transport::tcp
