// Sending in turns (transport/schedule): which rows go now, and what is told and heard of turns. All else passes without.
#include <algorithm>

#include "base/error.h"
#include "transport/tcp/tcp_link.h"

namespace faro::transport::tcp {

using schedule::TurnMessage;

void TcpLink::InTurns::add_counters(LinkCounters& sum) const {
  if (turns_ == nullptr) return;
  const schedule::Turns::Counts counts = turns_->turns().counts(peer());
  count(sum.turns, counts.turns);
  count(sum.turn_bytes, counts.bytes);
}

Status TcpLink::InTurns::open() {
  return turns_ == nullptr ? Status::Ok() : turns_->open(*link_.context_.reactor);
}

void TcpLink::InTurns::enter(base::Nanoseconds now) {
  if (turns_ != nullptr) turns_->turns().enter(peer(), *this, now);
}

// Not at once: whoever starts the link does not know it yet, and sending may end it.
void TcpLink::InTurns::begin() {
  if (turns_ == nullptr) return;
  link_.context_.reactor->defer([weak = std::weak_ptr<TcpLink*>(link_.self_)] {
    if (const auto link = weak.lock()) (*link)->turns_.send_what_is_due();
  });
}

void TcpLink::InTurns::leave() noexcept {
  if (turns_ != nullptr) turns_->turns().leave(peer(), *this, now());
}

void TcpLink::InTurns::remove() noexcept {
  if (turns_ != nullptr) turns_->turns().remove(peer(), *this, now());
}

void TcpLink::InTurns::send_due() noexcept { link_.send_now(); }

void TcpLink::InTurns::gather_message() {
  TurnMessage message;
  if (!turns_->turns().take_message(peer(), message)) return;
  const wire::TurnWords words{static_cast<uint32_t>(message.kind), message.has_begun,
                              message.quiet_nodes};
  link_.gather_.add(wire::turn_message(words, message.turn));
}

// What is left stays marked, and is not due: Turns has it sent in this node's turn.
void TcpLink::InTurns::gather_rows() {
  Gather& gather = link_.gather_;
  schedule::Turns::Allowance allowed = turns_->turns().ask(peer(), pending_rows(), now());
  gather.is_turn = allowed.is_turn;
  link_.writes_.take([&](uint32_t number) {
    if (allowed.bytes == 0) return false;
    if (gather.message_count == gather.message_limit) {
      link_.note_due();
      return false;
    }
    const uint64_t bytes = link_.gather_ring(number);
    gather.row_bytes += bytes;
    allowed.bytes -= std::min(allowed.bytes, bytes);
    return true;
  });
}

uint64_t TcpLink::InTurns::pending_rows() const noexcept {
  uint64_t bytes = 0;
  link_.writes_.look([&](uint32_t number) {
    const TcpOutgoing& ring = link_.outgoing_[number];
    bytes += ring.producer_.committed() - ring.sent_.load(std::memory_order_relaxed);
  });
  return bytes;
}

// Rows are the last of what is gathered. So what little is counted too early, of the messages before them, is not at their end.
void TcpLink::InTurns::note_sent(size_t bytes) {
  Gather& gather = link_.gather_;
  const uint64_t rows = std::min<uint64_t>(bytes, gather.row_bytes);
  if (rows == 0) return;
  gather.row_bytes -= rows;
  turns_->turns().sent(peer(), {rows, gather.is_turn}, gather.row_bytes + pending_rows(), now());
}

Status TcpLink::InTurns::accept(const wire::DataMessage& message) {
  const wire::TurnWords words = wire::words_of_turn(message);
  return turns_->turns().hear(peer(),
                              {static_cast<TurnMessage::Kind>(words.kind), words.has_begun,
                               words.quiet_nodes, message.position},
                              now());
}

}  // namespace faro::transport::tcp
