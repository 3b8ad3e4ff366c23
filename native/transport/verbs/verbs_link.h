// One link over RDMA: its two ends of rings, and the queue pair between them.
//
//   worker: commit → post ──► writes_ ─┐  WRITE … SEND               ┌─► READ: free,
//   worker: release → tell ─► reads_  ─┤─ ibv_post_send ─► device ─► │   wake the sender
//                                      │                completions ─┤
//                   whoever has the right to post                    └─► WRITTEN: ready bit,
//                                                                        wake the receiver
//                             whoever has the right to poll (completion_poller.h)
//
// The data of a WRITE and the notification behind it are in one post, in this order, on one queue
// pair: the notification cannot overtake.
//
// The right to post (design, hard case 6) is one word, free or held: that to send of
// messaged_link.h, whose argument (W1 to W4) covers more here. What can be posted also depends on
// places (SendQueue) and credits (Credits), and the poller makes more possible: it stores that as its
// W1 and goes on with W2. At W4 the holder looks whether anything can be posted; all these stores and
// looks are seq_cst as well.
//
// If the last holder leaves something behind for lack of places or credits (stuck()), a completion
// will bring them: of an earlier request, since the last of a run is signalled (SendQueue), or of
// the peer's message (Credits). The holder then has the completion queue watched, so that the
// network thread goes on if no worker looks (CompletionPoller::watch).
//
// Space in an outgoing ring is free when the peer has read it *and* a completion covers its WRITE: a
// software device may still send from its pages. A chain is signalled when a ring has a quarter
// posted that no signalled request covers. So after everything was posted, all but a quarter gets
// covered, and a producer (which never needs more than half a ring) cannot wait for a completion
// that does not come.
//
// While the right to post is held, chain_, records_ and the posters' sides of rings, credits and
// places belong to the holder; the exchange that takes it (acquire) sees what the store that gave it
// back (release) published.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "transport/messaged_link.h"
#include "transport/transport.h"
#include "transport/verbs/completion_poller.h"
#include "transport/verbs/credits.h"
#include "transport/verbs/endpoint.h"
#include "transport/verbs/immediate_code.h"
#include "transport/verbs/registered_memory.h"
#include "transport/verbs/send_queue.h"
#include "wire/verbs_message.h"

namespace faro::transport::verbs {

class VerbsLink;

/// When the peer learns of bytes.
enum class Order {
  chained,  // in the post of their WRITE
  paper,    // when their WRITE has completed (paper §3.1)
};

/// What a link is made of; all of it set up and connected.
struct LinkParts {
  RegisteredMemory outgoing;           // local_read
  RegisteredMemory incoming;           // remote_write
  RegisteredMemory messages;           // local_write: message_bytes() of it
  std::unique_ptr<Endpoint> endpoint;  // destroyed first: the device then has let go of the memory
  uint64_t peer_address = 0;           // of the peer's incoming region
  uint32_t peer_key = 0;
  uint32_t send_depth = 0;
  uint32_t inline_bytes = 0;  // that the queue pair takes
  uint32_t write_limit = 0;   // bytes of one WRITE
  uint32_t receives = 0;      // own; all posted already
  uint32_t peer_receives = 0;
  bool immediates = false;  // notify by WRITE WITH IMMEDIATE where possible
  Order order = Order::chained;

  /// Requests that one transfer of a ring may need: the wrap, and the limit of one WRITE.
  static uint32_t requests_per_ring(uint32_t ring_bytes, uint32_t write_limit) {
    return (ring_bytes + write_limit - 1) / write_limit + 1;
  }
  /// Requests in one post.
  static uint32_t chain_limit(uint32_t send_depth) {
    return send_depth / 4 < kChainLimit ? send_depth / 4 : kChainLimit;
  }
  static constexpr uint32_t kChainLimit = 64;

  /// Room for one message per receive and per place of the send queue, receives first.
  static uint64_t message_bytes(uint32_t receives, uint32_t send_depth) {
    return uint64_t{wire::kVerbsMessageBytes} * (uint64_t{receives} + send_depth);
  }
};

/// Posts the receive that fills message `index`. Returns 0 or an errno. Threads: one at a time.
int post_receive(ibv_qp* queue_pair, const RegisteredMemory& messages, uint32_t index);

/// The sending end of one ring.
class VerbsOutgoing final : public MessagedOutgoing {
 public:
  VerbsOutgoing(VerbsLink& link, uint32_t ring, std::byte* base, uint32_t ring_bytes);

 private:
  friend class VerbsLink;
  void on_broken() override;
  bool update_free() noexcept;

  VerbsLink& link_;

  // The poster's.
  uint64_t signal_seen_ = 0;           // VerbsLink::signals_ when uncovered_from_ was set
  wire::Position uncovered_from_ = 0;  // posted since then, and not covered by a signalled request
  wire::Position noted_ = 0;           // paper order: the last WRITTEN

  // The poller's. completed_ is read by the poster in paper order.
  alignas(64) std::atomic<wire::Position> completed_{0};
  wire::Position peer_read_ = 0;
};

/// The receiving end of one ring.
class VerbsIncoming final : public MessagedIncoming {
 public:
  VerbsIncoming(VerbsLink& link, uint32_t ring, const std::byte* base, uint32_t ring_bytes,
                WorkerEnd worker, uint32_t ready_ring);

 private:
  friend class VerbsLink;
  void on_invalid(const char* why) override;

  VerbsLink& link_;
};

/// Threads: outgoing and incoming ends as in transport.h; start and destruction: network thread, or
/// when that does not run. Owns: the queue pair and the memory of the rings.
class VerbsLink final : public MessagedLink, private Endpoint::Handler {
 public:
  /// context.ready_group is set.
  VerbsLink(LinkContext& context, std::shared_ptr<CompletionPoller> poller,
            std::shared_ptr<DeferredSends> deferred, LinkParts parts);
  ~VerbsLink() override;
  VerbsLink(const VerbsLink&) = delete;
  VerbsLink& operator=(const VerbsLink&) = delete;

  /// From now on its completions are taken. Errors: system_error.
  Status start();

  const Capabilities& capabilities() const override { return capabilities_; }
  Outgoing& outgoing(uint32_t ring) override { return outgoing_[ring]; }
  Incoming& incoming(uint32_t ring) override { return incoming_[ring]; }
  void stop() noexcept override;

  const LinkCounters& counters() const override { return counters_; }

  // For CompletionPoller, whose right to poll the caller holds.

  /// Handles all completions that are there; returns whether there were any.
  bool take_completions() noexcept;
  /// Posts what can be posted (W2 to W4). True if the caller was the last holder and is stuck().
  /// Threads: any.
  bool post_pending() noexcept;
  /// Something waits for places or credits. Threads: whoever was the last holder.
  bool stuck() const noexcept;
  /// The next completion, if none is there yet, makes an event.
  void arm() noexcept;
  PollState& poll_state() noexcept { return poll_state_; }
  void count_event() noexcept { count(counters_.events); }

 private:
  friend class VerbsOutgoing;
  friend class VerbsIncoming;

  // Work requests on their way into one ibv_post_send.
  struct Chain {
    std::array<ibv_send_wr, LinkParts::kChainLimit> requests;
    std::array<ibv_sge, LinkParts::kChainLimit> pieces;
    uint32_t count = 0;
    bool signal = false;  // somebody relies on it
  };

  // Posting (verbs_datapath.cc). Whoever has the right to post.
  void send_pending() override;
  void on_read_due() override { reads_due_.store(true, std::memory_order_seq_cst); }
  bool anything_to_note() const noexcept { return anything_due() || notes_.any(); }
  bool can_post() const noexcept;
  bool fill_chain() noexcept;
  void fill_with_immediates() noexcept;
  void fill_with_message() noexcept;
  void gather_reads() noexcept;
  void gather_notes() noexcept;
  void gather_writes() noexcept;
  bool has_room_for_ring() const noexcept {
    return chain_.count + requests_per_ring_ + 1 <= chain_limit_;
  }
  uint32_t add_ring(uint32_t number) noexcept;
  ibv_send_wr& add_request(uint32_t ring, wire::Position end, const std::byte* data, uint32_t bytes,
                           uint32_t key) noexcept;
  void add_message() noexcept;
  bool post_chain() noexcept;
  std::byte* message_at(uint32_t index) const noexcept {
    return parts_.messages.base() + uint64_t{index} * wire::kVerbsMessageBytes;
  }

  // Polling (verbs_receive.cc). Whoever has the right to poll.
  void take_completion(const ibv_wc& completion);
  void take_sent(uint64_t number);
  void take_received(const ibv_wc& completion);
  Status take_message(uint32_t index);
  Status accept_message(uint32_t index, uint32_t bytes);
  Status accept_record(const wire::VerbsRecord& record);
  Status accept_read(uint32_t number, wire::Position position);
  Status accept_written(uint32_t number, wire::Position position);
  Status accept_immediate(uint32_t index, uint32_t code);
  void fail_completion(const ibv_wc& completion);
  void wake_sender(uint32_t ring) noexcept { note_worker(context_.outgoing.sender_of(ring)); }

  // Ending. Any thread.
  void on_disconnected(const Status& cause) override;
  void fail(const Status& cause);
  bool end() noexcept;
  bool stopped() const noexcept { return stopped_.load(std::memory_order_acquire); }

  // Constant after construction.
  const std::shared_ptr<CompletionPoller> poller_;
  const LinkParts parts_;
  const Capabilities capabilities_;
  const ImmediateCode outgoing_code_;
  const ImmediateCode incoming_code_;
  const uint32_t chain_limit_;        // requests in one post
  const uint32_t requests_per_ring_;  // for one transfer, at most
  std::deque<VerbsOutgoing> outgoing_;
  std::deque<VerbsIncoming> incoming_;

  // Shared.
  std::atomic<bool> stopped_{false};
  PendingRings notes_;                  // paper order: outgoing rings with a WRITTEN to send
  std::atomic<bool> reads_due_{false};  // not only along with a message that is sent anyway
  alignas(64) std::atomic<bool> held_{false};
  SendQueue places_;
  Credits credits_;
  LinkCounters counters_;

  // The poster's.
  alignas(64) Chain chain_;
  std::array<wire::VerbsRecord, wire::kVerbsRecordLimit> records_;  // of the chain's message
  uint32_t record_count_ = 0;
  uint64_t signals_ = 1;  // signalled posts, plus one

  // The poller's.
  alignas(64) PollState poll_state_;
};

}  // namespace faro::transport::verbs
