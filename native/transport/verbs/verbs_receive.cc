// Handles completions: sends are finished, and arrivals move positions. Everything here is done by
// the holder of the right to poll (completion_poller.h): a worker that looks for rows, or the network
// thread.
#include <endian.h>
#include <fmt/format.h>
#include <sched.h>

#include <cstring>
#include <utility>

#include "base/error.h"
#include "transport/verbs/completion_error.h"
#include "transport/verbs/verbs_link.h"
#include "transport/verbs/verbs_path.h"

namespace faro::transport::verbs {
namespace {

// In the wr_id of receives, beside the index of their message; send requests have their number.
constexpr uint64_t kReceive = uint64_t{1} << 63;

constexpr int kBatch = 32;  // completions taken at a time

}  // namespace

int post_receive(ibv_qp* queue_pair, const RegisteredMemory& messages, uint32_t index) {
  ibv_sge piece{};
  piece.addr =
      reinterpret_cast<uint64_t>(messages.base()) + uint64_t{index} * wire::kVerbsMessageBytes;
  piece.length = wire::kVerbsMessageBytes;
  piece.lkey = messages.local_key();
  ibv_recv_wr request{};
  request.wr_id = kReceive | index;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* refused = nullptr;
  return ibv_post_recv(queue_pair, &request, &refused);
}

Status post_receives(ibv_qp* queue_pair, const RegisteredMemory& messages, uint32_t path,
                     uint32_t receives, uint32_t send_depth) {
  const uint32_t first = path * LinkParts::message_count(receives, send_depth);
  for (uint32_t i = 0; i < receives; ++i) {
    if (const int error = post_receive(queue_pair, messages, first + i); error != 0)
      return verbs_error("ibv_post_recv", error);
  }
  return {};
}

VerbsPath::VerbsPath(VerbsLink& link, uint32_t number, PathParts parts)
    : MessagedPath(link.context_, link.deferred_),
      link_(link),
      parts_(link.parts_),
      messages_(parts_, number),
      requests_per_ring_(
          LinkParts::requests_per_ring(context_.outgoing.ring_bytes, parts_.write_limit) + 1),
      acknowledges_writes_(parts.acknowledges_writes),
      queue_pair_(std::move(parts.queue_pair)),
      notes_(context_.outgoing.ring_count()),
      places_(parts_.send_depth),
      credits_(parts_.receives, parts_.peer_receives),
      chain_(LinkParts::chain_limit(parts_.send_depth), parts.inline_bytes, parts.raises_sigpipe) {
  queue_pair_->completion_queue()->cq_context = this;
  queue_pair_->set_handler(this);
}

Status VerbsPath::start() {
  if (!is_parked_) FARO_RETURN_IF_ERROR(deferred_->add(*context_.reactor, *this));
  FARO_RETURN_IF_ERROR(link_.poller_->add(*context_.reactor, *this));
  if (!std::exchange(is_parked_, false)) return {};
  note_due();
  held_.store(false, std::memory_order_seq_cst);  // W3
  send_pending();
  return {};
}

bool VerbsPath::give_up_queue_pair() noexcept {
  link_.poller_->remove(*this);
  if (!is_parked_ && held_.exchange(true, std::memory_order_seq_cst)) return false;
  is_parked_ = true;
  const std::lock_guard lock(link_.mutex_);
  queue_pair_.reset();
  return true;
}

void VerbsPath::take_queue_pair(PathParts parts) noexcept {
  queue_pair_ = std::move(parts.queue_pair);
  queue_pair_->completion_queue()->cq_context = this;
  queue_pair_->set_handler(this);
  chain_.set_inline_bytes(parts.inline_bytes);
  places_.restart();
  credits_.restart();
  notes_.restart();
  shown_ = {};
}

VerbsPath::~VerbsPath() {
  deferred_->remove(*this);
  link_.poller_->remove(*this);
}

void VerbsPath::arm() noexcept {
  if (halted()) return;
  if (const int error = ibv_req_notify_cq(queue_pair_->completion_queue(), 0); error != 0)
    fail(verbs_error("ibv_req_notify_cq", error));
}

bool VerbsPath::take_completions() noexcept {
  if (halted()) return false;  // the network thread may be at what the poller has
  bool any = false;
  std::array<ibv_wc, kBatch> batch;
  for (int taken = kBatch; taken == kBatch && !halted();) {
    taken = ibv_poll_cq(queue_pair_->completion_queue(), kBatch, batch.data());
    if (taken < 0) fail({Code::system_error, "ibv_poll_cq failed"});
    for (int i = 0; i < taken && !halted(); ++i) {
      any = true;
      take_completion(batch[static_cast<size_t>(i)]);
    }
  }
  ring_doorbells();
  return any;
}

void VerbsPath::take_completion(const ibv_wc& completion) {
  count(counters_.completions);
  if (completion.status != IBV_WC_SUCCESS) return fail_completion(completion);
  if ((completion.wr_id & kReceive) == 0) return take_sent(completion.wr_id);
  take_received(completion);
}

void VerbsPath::fail_completion(const ibv_wc& completion) {
  std::string operation = "a receive";
  if ((completion.wr_id & kReceive) == 0) {
    const uint32_t ring = places_.ring_of(completion.wr_id);
    const ring::Layout& out = context_.outgoing;
    operation = ring == SendQueue::kNoRing
                    ? "a notification"
                    : fmt::format("a WRITE to ring {} (from worker {} to worker {})", ring,
                                  out.sender_of(ring), out.receiver_of(ring));
  }
  fail(completion_error(completion, operation));
}

// ------------------------------------------------------------------------------------------- sent

void VerbsPath::take_sent(uint64_t number) {
  const bool known = places_.complete(number, [this](uint32_t ring, wire::Position end) {
    VerbsOutgoing& out = link_.outgoing_[ring];
    out.completed_.store(end, std::memory_order_seq_cst);
    if (parts_.order == Order::paper) notes_.mark(ring);
    if (out.update_free()) wake_sender(ring);
  });
  if (!known) fail({Code::internal_error, "the device completed a request that is not under way"});
}

// --------------------------------------------------------------------------------------- received

void VerbsPath::take_received(const ibv_wc& completion) {
  const uint32_t index = static_cast<uint32_t>(completion.wr_id & ~kReceive);
  Status status;
  if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
    status = accept_immediate(index, be32toh(completion.imm_data));
  } else {
    status = accept_message(index, completion.byte_len);
  }
  if (!status.ok()) return fail(status);
}

Status VerbsPath::accept_message(uint32_t index, uint32_t bytes) {
  wire::VerbsHead head;
  if (bytes < sizeof head) return base::error(Code::protocol_error, "a SEND of {} bytes", bytes);
  std::memcpy(&head, messages_.at(index), sizeof head);
  if (head.record_count > wire::kVerbsRecordLimit || head.reserved != 0 ||
      bytes != sizeof head + head.record_count * sizeof(wire::VerbsRecord)) {
    return base::error(Code::protocol_error, "a SEND of {} bytes with {} records", bytes,
                       head.record_count);
  }
  std::array<wire::VerbsRecord, wire::kVerbsRecordLimit> records;
  std::memcpy(records.data(), messages_.at(index) + sizeof head, bytes - sizeof head);
  FARO_RETURN_IF_ERROR(messages_.post_again(queue_pair_->queue_pair(), index));
  if (head.record_count == 0) {
    credits_.return_taken();
  } else {
    credits_.note_taken();
  }
  if (!credits_.accept({head.notes, head.returns})) {
    return base::error(Code::protocol_error,
                       "credits for {} notifications and {} returns, but fewer were sent, or more "
                       "were confirmed before",
                       head.notes, head.returns);
  }
  for (uint32_t i = 0; i < head.record_count; ++i) FARO_RETURN_IF_ERROR(accept_record(records[i]));
  return {};
}

Status VerbsPath::accept_record(const wire::VerbsRecord& record) {
  const uint32_t ring = wire::ring_of(record);
  if (record.reserved != 0) return {Code::protocol_error, "a record with reserved bits"};
  if (context_.agreed.signs && wire::is_sign(record)) return {};  // that it has come says all
  return wire::is_read(record) ? accept_read(ring, record.position)
                               : accept_written(ring, record.position);
}

Status VerbsPath::accept_read(uint32_t number, wire::Position position) {
  if (number >= link_.outgoing_.size()) {
    return base::error(Code::protocol_error, "READ of ring {}; there are {}", number,
                       link_.outgoing_.size());
  }
  VerbsOutgoing& ring = link_.outgoing_[number];
  const wire::Position sent = ring.sent_.load(std::memory_order_relaxed);
  if (position <= ring.peer_read_ || position > sent || position % wire::kFrameAlignment != 0) {
    return base::error(Code::protocol_error, "READ of ring {} at {}; it was at {} and {} was sent",
                       number, position, ring.peer_read_, sent);
  }
  ring.peer_read_ = position;
  if (ring.update_free()) wake_sender(number);
  return {};
}

Status VerbsPath::accept_written(uint32_t number, wire::Position position) {
  if (number >= link_.incoming_.size()) {
    return base::error(Code::protocol_error, "WRITTEN of ring {}; there are {}", number,
                       link_.incoming_.size());
  }
  VerbsIncoming& ring = link_.incoming_[number];
  const wire::Position written = ring.written();
  const wire::Position limit = ring.write_limit();
  if (position <= written || position > limit || position % wire::kFrameAlignment != 0) {
    return base::error(Code::protocol_error,
                       "WRITTEN of ring {} at {}; it was at {} and may go to {}", number, position,
                       written, limit);
  }
  ring.arrived(position);
  note_frames(context_.incoming.receiver_of(number));
  return {};
}

Status VerbsPath::accept_immediate(uint32_t index, uint32_t code) {
  FARO_RETURN_IF_ERROR(messages_.post_again(queue_pair_->queue_pair(), index));
  credits_.note_taken();
  const ImmediateCode::Written written = link_.incoming_code_.decode(code);
  if (!link_.incoming_code_.fits() || written.ring >= link_.incoming_.size()) {
    return base::error(Code::protocol_error, "immediate {:#x} is of no ring", code);
  }
  return accept_written(written.ring, link_.incoming_[written.ring].written() + written.bytes);
}

// -------------------------------------------------------------------------------------- being there

Pulse VerbsPath::take_pulse() noexcept {
  link_.poller_->watch(*this);
  if (halted() || is_parked_) return Pulse::none;
  const uint32_t taken = credits_.taken();
  const bool has_sent = taken != std::exchange(shown_.taken, taken);
  const bool is_answered = acknowledges_writes_ && places_.completed() >= shown_.asked_up_to;
  if (is_answered || (!acknowledges_writes_ && context_.agreed.signs)) show_life();
  if (has_sent || is_answered) return Pulse::heard;
  return acknowledges_writes_ || context_.agreed.signs ? Pulse::none : Pulse::unknown;
}

// Where devices acknowledge, a WRITE of no bytes, which takes neither a receive nor credits. Else a notification; if there are
// no credits for it, what has taken them is on its way, and shows as much.
void VerbsPath::show_life() noexcept {
  while (held_.exchange(true, std::memory_order_seq_cst)) sched_yield();  // its holder never waits
  shown_.asked_up_to = places_.completed() + 1;  // without room for more, what is under way will do
  if (!halted() && places_.has_room()) {
    chain_.clear();
    if (acknowledges_writes_) {
      const uint64_t number = places_.add(SendQueue::kNoRing, SendQueue::kNothing);
      ibv_send_wr& request =
          chain_.add(number, parts_.outgoing.base(), 0, parts_.outgoing.local_key());
      request.num_sge = 0;  // a piece of no bytes is one of 2^31 to some devices
      request.opcode = IBV_WR_RDMA_WRITE;
      request.wr.rdma.remote_addr = parts_.peer_address;
      request.wr.rdma.rkey = parts_.peer_key;
      chain_.want_signal();
      shown_.asked_up_to = number + 1;
    } else if (credits_.notes_left() != 0) {
      records_.clear();
      records_.add(wire::verbs_sign());
      credits_.note_sent();
      count(counters_.notifications);
      add_message();
    }
    if (!chain_.empty()) (void)post_chain();
  }
  held_.store(false, std::memory_order_seq_cst);  // W3
  if (can_post()) send_pending();                 // W4
}

// ------------------------------------------------------------------------------------------- ending

bool VerbsPath::halted() const noexcept { return link_.halted(); }
void VerbsPath::fail(const Status& cause) { link_.fail(cause); }

// What arrived before the end counts.
void VerbsPath::on_disconnected(const Status& cause) {
  link_.poller_->watch(*this);
  fail(cause);
}

}  // namespace faro::transport::verbs
