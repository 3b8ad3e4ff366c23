// Completions: what was sent is out, what has arrived moves positions. Everything here is done by
// whoever has the right to poll (completion_poller.h): a worker that looks for rows, or the network
// thread.
#include <endian.h>
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

#include "transport/verbs/completion_error.h"
#include "transport/verbs/verbs_link.h"

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

VerbsLink::VerbsLink(LinkContext& context, std::shared_ptr<CompletionPoller> poller,
                     std::shared_ptr<DeferredSends> deferred, LinkParts parts)
    : MessagedLink(context, std::move(deferred)),
      poller_(std::move(poller)),
      parts_(std::move(parts)),
      capabilities_{
          .name = "verbs", .write_with_immediate = parts_.immediates, .registers_memory = true},
      outgoing_code_(context.outgoing),
      incoming_code_(context.incoming),
      chain_limit_(LinkParts::chain_limit(parts_.send_depth)),
      requests_per_ring_(
          LinkParts::requests_per_ring(context.outgoing.ring_bytes, parts_.write_limit)),
      notes_(context.outgoing.ring_count()),
      places_(parts_.send_depth),
      credits_(parts_.receives, parts_.peer_receives) {
  const ring::Layout& out = context.outgoing;
  for (uint32_t r = 0; r < out.ring_count(); ++r)
    outgoing_.emplace_back(*this, r, parts_.outgoing.base() + out.base_offset(r), out.ring_bytes);
  const ring::Layout& in = context.incoming;
  for (uint32_t r = 0; r < in.ring_count(); ++r) {
    incoming_.emplace_back(*this, r, parts_.incoming.base() + in.base_offset(r), in.ring_bytes,
                           context.workers[in.receiver_of(r)], ready_ring_of(context, r));
  }
  parts_.endpoint->completion_queue()->cq_context = this;
  parts_.endpoint->set_handler(this);
}

Status VerbsLink::start() {
  FARO_RETURN_IF_ERROR(deferred_->add(*context_.reactor, *this));
  return poller_->add(*context_.reactor, *this);
}

VerbsLink::~VerbsLink() {
  stop();
  deferred_->remove(*this);
  poller_->remove(*this);
}

void VerbsLink::arm() noexcept {
  if (stopped()) return;
  if (const int error = ibv_req_notify_cq(parts_.endpoint->completion_queue(), 0); error != 0)
    fail(verbs_error("ibv_req_notify_cq", error));
}

bool VerbsLink::take_completions() noexcept {
  bool any = false;
  std::array<ibv_wc, kBatch> batch;
  for (int taken = kBatch; taken == kBatch && !stopped();) {
    taken = ibv_poll_cq(parts_.endpoint->completion_queue(), kBatch, batch.data());
    if (taken < 0) fail({Code::system_error, "ibv_poll_cq failed"});
    for (int i = 0; i < taken && !stopped(); ++i) {
      any = true;
      take_completion(batch[static_cast<size_t>(i)]);
    }
  }
  ring_doorbells();
  return any;
}

void VerbsLink::take_completion(const ibv_wc& completion) {
  count(counters_.completions);
  if (completion.status != IBV_WC_SUCCESS) return fail_completion(completion);
  if ((completion.wr_id & kReceive) == 0) return take_sent(completion.wr_id);
  take_received(completion);
}

void VerbsLink::fail_completion(const ibv_wc& completion) {
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

bool VerbsOutgoing::update_free() noexcept {
  const wire::Position completed = completed_.load(std::memory_order_relaxed);
  const wire::Position both = completed < peer_read_ ? completed : peer_read_;
  return both != free() && free_up_to(both);
}

void VerbsLink::take_sent(uint64_t number) {
  const bool known = places_.complete(number, [this](uint32_t ring, wire::Position end) {
    VerbsOutgoing& out = outgoing_[ring];
    out.completed_.store(end, std::memory_order_seq_cst);
    if (parts_.order == Order::paper) notes_.mark(ring);
    if (out.update_free()) wake_sender(ring);
  });
  if (!known) fail({Code::internal_error, "the device completed a request that is not under way"});
}

// --------------------------------------------------------------------------------------- received

void VerbsLink::take_received(const ibv_wc& completion) {
  const uint32_t index = static_cast<uint32_t>(completion.wr_id & ~kReceive);
  Status status;
  if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
    status = accept_immediate(index, be32toh(completion.imm_data));
  } else {
    status = accept_message(index, completion.byte_len);
  }
  if (!status.ok()) return fail(status);
}

// The receive is posted anew before the peer can learn that it was taken.
Status VerbsLink::take_message(uint32_t index) {
  const int error = post_receive(parts_.endpoint->queue_pair(), parts_.messages, index);
  if (error == 0) return {};
  return {Code::peer_lost,
          fmt::format("RDMA connection broken while posting a receive: {}", std::strerror(error))};
}

Status VerbsLink::accept_message(uint32_t index, uint32_t bytes) {
  wire::VerbsHead head;
  if (bytes < sizeof head) return {Code::protocol_error, fmt::format("a SEND of {} bytes", bytes)};
  std::memcpy(&head, message_at(index), sizeof head);
  if (head.record_count > wire::kVerbsRecordLimit || head.reserved != 0 ||
      bytes != sizeof head + head.record_count * sizeof(wire::VerbsRecord)) {
    return {Code::protocol_error,
            fmt::format("a SEND of {} bytes with {} records", bytes, head.record_count)};
  }
  std::array<wire::VerbsRecord, wire::kVerbsRecordLimit> records;
  std::memcpy(records.data(), message_at(index) + sizeof head, bytes - sizeof head);
  FARO_RETURN_IF_ERROR(take_message(index));
  if (head.record_count == 0) {
    credits_.return_taken();
  } else {
    credits_.note_taken();
  }
  if (!credits_.accept({head.notes, head.returns})) {
    return {Code::protocol_error,
            fmt::format("credits for {} notifications and {} returns, of which "
                        "fewer were sent, or more told before",
                        head.notes, head.returns)};
  }
  for (uint32_t i = 0; i < head.record_count; ++i) FARO_RETURN_IF_ERROR(accept_record(records[i]));
  return {};
}

Status VerbsLink::accept_record(const wire::VerbsRecord& record) {
  const uint32_t ring = wire::ring_of(record);
  if (record.reserved != 0) return {Code::protocol_error, "a record with reserved bits"};
  return wire::is_read(record) ? accept_read(ring, record.position)
                               : accept_written(ring, record.position);
}

Status VerbsLink::accept_read(uint32_t number, wire::Position position) {
  if (number >= outgoing_.size()) {
    return {Code::protocol_error,
            fmt::format("READ of ring {}; there are {}", number, outgoing_.size())};
  }
  VerbsOutgoing& ring = outgoing_[number];
  const wire::Position sent = ring.sent_.load(std::memory_order_relaxed);
  if (position <= ring.peer_read_ || position > sent || position % wire::kFrameAlignment != 0) {
    return {Code::protocol_error, fmt::format("READ of ring {} at {}; it was at {} and {} was sent",
                                              number, position, ring.peer_read_, sent)};
  }
  ring.peer_read_ = position;
  if (ring.update_free()) wake_sender(number);
  return {};
}

Status VerbsLink::accept_written(uint32_t number, wire::Position position) {
  if (number >= incoming_.size()) {
    return {Code::protocol_error,
            fmt::format("WRITTEN of ring {}; there are {}", number, incoming_.size())};
  }
  VerbsIncoming& ring = incoming_[number];
  const wire::Position written = ring.written();
  const wire::Position limit = ring.write_limit();
  if (position <= written || position > limit || position % wire::kFrameAlignment != 0) {
    return {Code::protocol_error,
            fmt::format("WRITTEN of ring {} at {}; it was at {} and may go to {}", number, position,
                        written, limit)};
  }
  ring.arrived(position);
  note_worker(context_.incoming.receiver_of(number));
  return {};
}

Status VerbsLink::accept_immediate(uint32_t index, uint32_t code) {
  FARO_RETURN_IF_ERROR(take_message(index));
  credits_.note_taken();
  const ImmediateCode::Written written = incoming_code_.decode(code);
  if (!incoming_code_.fits() || written.ring >= incoming_.size()) {
    return {Code::protocol_error, fmt::format("immediate {:#x} is of no ring", code)};
  }
  return accept_written(written.ring, incoming_[written.ring].written() + written.bytes);
}

// What arrived before the end counts.
void VerbsLink::on_disconnected(const Status& cause) {
  poller_->watch(*this);
  fail(cause);
}

}  // namespace faro::transport::verbs
