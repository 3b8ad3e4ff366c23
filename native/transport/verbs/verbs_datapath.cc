// Sending: from what is committed or released to the send queue. verbs_receive.cc has the other
// direction, verbs_path.h the picture and the arguments.
#include <endian.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "transport/verbs/verbs_link.h"
#include "transport/verbs/verbs_path.h"

namespace faro::transport::verbs {
namespace {

// The most READ records of one message: the rest is for WRITTEN.
constexpr uint32_t kMostReads = wire::kVerbsRecordLimit / 2;

}  // namespace

// ------------------------------------------------------------------------------- the right to post

void VerbsPath::send_pending() {
  if (post_pending()) link_.poller_->watch(*this);
}

bool VerbsPath::can_post() const noexcept {
  if (halted() || !places_.has_room()) return false;
  if (credits_.return_due() && credits_.may_return()) return true;
  if (parts_.order == Order::paper && anything_due() && writes_.any()) return true;
  return credits_.notes_left() != 0 && anything_to_note();
}

bool VerbsPath::stuck() const noexcept {
  return !halted() && (anything_to_note() || notes_.owed());
}

bool VerbsPath::post_pending() noexcept {
  do {
    if (held_.exchange(true, std::memory_order_seq_cst)) return false;  // W2
    while (fill_chain() && post_chain()) {
    }
    held_.store(false, std::memory_order_seq_cst);  // W3
  } while (can_post());                             // W4
  return stuck();
}

// ------------------------------------------------------------------------------------- one post

// What can be posted now; false if there is nothing.
bool VerbsPath::fill_chain() noexcept {
  chain_.clear();
  records_.clear();
  if (halted() || !places_.has_room()) return false;
  // An immediate carries no credits and no read positions: if any are due, a message goes instead,
  // with everything else along.
  if (parts_.immediates && !credits_.must_confirm() && !credits_.return_due() &&
      !reads_due_.load(std::memory_order_seq_cst)) {
    fill_with_immediates();
  } else {
    fill_with_message();
  }
  return !chain_.empty();
}

void VerbsPath::fill_with_immediates() noexcept {
  if (credits_.notes_left() == 0 || !anything_due()) return;
  take_due();
  // A read position that became due before take_due, and is not among what this sends.
  if (reads_due_.load(std::memory_order_seq_cst)) note_due();
  writes_.take([this](uint32_t number) {
    if (credits_.notes_left() == 0 || !chain_.has_room_for(requests_per_ring_)) {
      note_due();
      return false;
    }
    const uint32_t bytes = add_ring(number);
    if (bytes == 0) return true;
    ibv_send_wr& last = chain_.last();
    last.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    last.imm_data = htobe32(link_.outgoing_code_.encode(number, bytes));
    credits_.note_sent();
    count(counters_.notifications);
    return true;
  });
}

void VerbsPath::fill_with_message() noexcept {
  const bool may_note = credits_.notes_left() != 0 && anything_to_note();
  const bool paper = parts_.order == Order::paper;
  if (may_note) {
    take_due();
    gather_reads();
    if (paper) gather_notes();
  }
  if (may_note || paper) gather_writes();
  if (records_.count() != 0) {
    credits_.note_sent();
    count(counters_.notifications);
    add_message();
  } else if (credits_.return_due() && credits_.may_return()) {
    credits_.return_sent();
    count(counters_.credit_returns);
    add_message();
  }
}

void VerbsPath::gather_reads() noexcept {
  reads_due_.store(false, std::memory_order_seq_cst);  // first: what comes later sets it again
  reads_.take([this](uint32_t number) {
    if (records_.count() == kMostReads) {
      reads_due_.store(true, std::memory_order_seq_cst);
      note_due();
      return false;
    }
    wire::Position read = 0;
    if (link_.incoming_[number].take_told(read)) records_.add(wire::verbs_read(number, read));
    return true;
  });
}

// In paper order without records, which follow when the WRITEs have completed.
void VerbsPath::gather_writes() noexcept {
  const bool paper = parts_.order == Order::paper;
  writes_.take([this, paper](uint32_t number) {
    if (!chain_.has_room_for(requests_per_ring_) || records_.full()) {
      note_due();
      return false;
    }
    const uint32_t bytes = add_ring(number);
    if (paper) {
      notes_.posted(bytes);
    } else if (bytes != 0) {
      const wire::Position end = link_.outgoing_[number].sent_.load(std::memory_order_relaxed);
      records_.add(wire::verbs_written(number, end));
    }
    return true;
  });
}

// Paper order: of the bytes whose WRITE has completed.
void VerbsPath::gather_notes() noexcept {
  notes_.take([this](uint32_t number) {
    if (records_.full()) return false;
    VerbsOutgoing& ring = link_.outgoing_[number];
    const wire::Position end = ring.completed_.load(std::memory_order_seq_cst);
    // Equal: a mark that came after its position had gone with an earlier one.
    if (end != ring.noted_) records_.add(wire::verbs_written(number, end));
    notes_.noted(end - ring.noted_);
    ring.noted_ = end;
    return true;
  });
}

// Adds the WRITEs for all that is committed in a ring; returns its bytes.
uint32_t VerbsPath::add_ring(uint32_t number) noexcept {
  VerbsOutgoing& ring = link_.outgoing_[number];
  const wire::Position from = ring.sent_.load(std::memory_order_relaxed);
  const wire::Position end = ring.producer_.committed();  // acquire: the frames' bytes
  if (end == from) return 0;
  ring.sent_.store(end, std::memory_order_relaxed);

  const uint32_t ring_bytes = ring.producer_.ring_bytes();
  const uint64_t peer_base = parts_.peer_address + context_.outgoing.base_offset(number);
  const wire::Position pad = ring.producer_.last_pad();
  for (wire::Position at = from; at != end;) {
    const uint32_t offset = static_cast<uint32_t>(at & (ring_bytes - 1));
    uint64_t bytes = std::min<uint64_t>({end - at, ring_bytes - offset, parts_.write_limit});
    wire::Position next = at + bytes;
    if (at <= pad && pad < next) {  // of a pad only the header is read
      bytes = pad - at + sizeof(wire::FrameHeader);
      next = at - offset + ring_bytes;
    }
    // Only the last piece ends at the end of a frame, and frees space when it has completed.
    ibv_send_wr& request = chain_.add(places_.add(number, next == end ? end : SendQueue::kNothing),
                                      ring.producer_.at(at), static_cast<uint32_t>(bytes),
                                      parts_.outgoing.local_key());
    request.opcode = IBV_WR_RDMA_WRITE;
    request.wr.rdma.remote_addr = peer_base + offset;
    request.wr.rdma.rkey = parts_.peer_key;
    count(counters_.writes);
    at = next;
  }

  if (ring.signal_seen_ != signals_) {
    ring.signal_seen_ = signals_;
    ring.uncovered_from_ = from;
  }
  if (end - ring.uncovered_from_ >= ring_bytes / 4 || parts_.order == Order::paper)
    chain_.want_signal();
  return static_cast<uint32_t>(end - from);  // at most the ring
}

// The SEND at the end of the chain, with the records that were gathered and all credits.
void VerbsPath::add_message() noexcept {
  std::byte* const message = messages_.of_place(places_.next_place());
  const uint32_t bytes = records_.write(message, credits_.tell());
  chain_
      .add(places_.add(SendQueue::kNoRing, SendQueue::kNothing), message, bytes,
           messages_.local_key())
      .opcode = IBV_WR_SEND;
}

bool VerbsPath::post_chain() noexcept {
  const bool signal = chain_.wants_signal() || places_.signal_due();
  if (signal) {
    chain_.last().send_flags |= IBV_SEND_SIGNALED;
    ++signals_;
    count(counters_.signalled_posts);
  }
  places_.announce(signal);
  count(counters_.posts);
  const int error = chain_.post(queue_pair_->queue_pair());
  if (error == 0) [[likely]]
    return true;
  // Places were counted, so the queue is not full: the connection has gone.
  fail(base::error(Code::peer_lost, "RDMA connection broken while posting: {}",
                   std::strerror(error)));
  return false;
}

}  // namespace faro::transport::verbs
