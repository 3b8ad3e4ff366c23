// Sending in turns (transport/schedule): which rows go now, and what is told and heard of turns. All else passes without.
#include <algorithm>

#include "base/error.h"
#include "transport/tcp/tcp_link.h"

namespace faro::transport::tcp {

using schedule::TurnMessage;

void TcpLink::add_counters(LinkCounters& sum) const {
  if (turns_ == nullptr) return;
  const schedule::Turns::Counts counts = turns_->turns().counts(context_.peer_node);
  count(sum.turns, counts.turns);
  count(sum.turn_bytes, counts.bytes);
}

void TcpLink::send_due() noexcept { send_now(); }

void TcpLink::enter_turns() {
  if (turns_ == nullptr) return;
  turns_->turns().enter(context_.peer_node, *this, context_.reactor->clock().now_ns());
}

void TcpLink::gather_turn() {
  TurnMessage message;
  if (!turns_->turns().take_message(context_.peer_node, message)) return;
  const wire::TurnWords words{static_cast<uint32_t>(message.kind), message.has_begun,
                              message.quiet_nodes};
  gather_.add(wire::turn_message(words, message.turn));
}

// What is left stays marked, and is not due: Turns has it sent in this node's turn.
void TcpLink::gather_rows_in_turn() {
  const base::Nanoseconds now = context_.reactor->clock().now_ns();
  schedule::Turns::Allowance allowed = turns_->turns().ask(context_.peer_node, pending_rows(), now);
  gather_.is_turn = allowed.is_turn;
  writes_.take([&](uint32_t number) {
    if (allowed.bytes == 0) return false;
    if (gather_.message_count == gather_.message_limit) {
      note_due();
      return false;
    }
    const uint64_t bytes = gather_ring(number);
    gather_.row_bytes += bytes;
    allowed.bytes -= std::min(allowed.bytes, bytes);
    return true;
  });
}

uint64_t TcpLink::pending_rows() const noexcept {
  uint64_t bytes = 0;
  writes_.look([&](uint32_t number) {
    const TcpOutgoing& ring = outgoing_[number];
    bytes += ring.producer_.committed() - ring.sent_.load(std::memory_order_relaxed);
  });
  return bytes;
}

// Rows are the last of what is gathered. So what little is counted too early, of the messages before them, is not at their end.
void TcpLink::note_sent(size_t bytes) {
  const uint64_t rows = std::min<uint64_t>(bytes, gather_.row_bytes);
  if (rows == 0) return;
  gather_.row_bytes -= rows;
  turns_->turns().sent(context_.peer_node, {rows, gather_.is_turn},
                       gather_.row_bytes + pending_rows(), context_.reactor->clock().now_ns());
}

Status TcpLink::accept_turn(const wire::DataMessage& message) {
  const wire::TurnWords words = wire::words_of_turn(message);
  return turns_->turns().hear(context_.peer_node,
                              {static_cast<TurnMessage::Kind>(words.kind), words.has_begun,
                               words.quiet_nodes, message.position},
                              context_.reactor->clock().now_ns());
}

}  // namespace faro::transport::tcp
