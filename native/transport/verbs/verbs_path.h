// One queue pair of a link, and all that is bound to it: the right to post, places in its send queue,
// credits, and what its rings have to send. A link has one path or several (path_map.h).
//
//   worker: commit → post ──► writes_ ─┐  WRITE … SEND               ┌─► READ: free,
//   worker: release → tell ─► reads_  ─┤─ ibv_post_send ─► device ─► │   wake the sender
//                                      │                completions ─┤
//                   the holder of the right to post                  └─► WRITTEN: ready bit,
//                                                                        wake the receiver
//                         the holder of the right to poll (completion_poller.h)
//
// The data of a WRITE and the notification after it are in one post, in this order, on one queue pair, so
// the notification cannot overtake the data.
//
// The right to post (native/DESIGN.md#hc-6) is one word, free or held. It is the right to send of
// messaged_path.h, and its steps W1 to W4 (native/DESIGN.md#memory-orders) cover more here: what can be posted also
// depends on places (SendQueue) and credits (Credits). When the poller gains some it stores them as its W1 and
// continues with W2. At W4 the holder checks whether anything can be posted. All these stores and loads are seq_cst as
// well.
//
// If the last holder leaves something unsent for lack of places or credits (stuck()), a completion will
// bring them: that of an earlier request, since the last of a run is signalled (SendQueue), or that of the
// peer's message (Credits). In paper order a WRITE's notification stays unsent until the WRITE has
// completed. Then the holder has the completion queue watched, so that the network thread continues if no
// worker polls (CompletionPoller::watch).
//
// Space in an outgoing ring is free when the peer has read it *and* a completion covers its WRITE: a
// software device may still send from its pages. A chain is signalled when a ring has a quarter
// posted that no signalled request covers. So after everything was posted, all but a quarter gets
// covered, and a producer (which never needs more than half a ring) cannot wait for a completion
// that does not come.
//
// The network thread keeps the right to post while the link has no queue pairs (verbs_link.h). What was marked meanwhile
// it posts when it gives the right back, as every holder does.
//
// While the right to post is held, chain_, records_ and the posters' sides of the path's rings,
// credits and places belong to the holder; the exchange that takes it (acquire) sees what the store
// that gave it back (release) published. The right to poll is of all paths of a node: what arrives
// may be of any ring of the link.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "transport/messaged_path.h"
#include "transport/transport.h"
#include "transport/verbs/completion_poller.h"
#include "transport/verbs/credits.h"
#include "transport/verbs/immediate_code.h"
#include "transport/verbs/link_parts.h"
#include "transport/verbs/paper_notes.h"
#include "transport/verbs/path_messages.h"
#include "transport/verbs/queue_pair.h"
#include "transport/verbs/send_queue.h"
#include "transport/verbs/verbs_rings.h"
#include "transport/verbs/work_chain.h"
#include "wire/verbs_message.h"

namespace faro::transport::verbs {

class VerbsLink;

/// Threads: start and destruction: network thread, or any while that does not run; else as noted.
/// Owns: the queue pair; when the link is mended it gets another one. Not copied.
class VerbsPath final : public MessagedPath, private QueuePair::Handler {
 public:
  /// Path `number` of the link, which outlives it.
  VerbsPath(VerbsLink& link, uint32_t number, PathParts parts);
  ~VerbsPath() override;

  /// From now on its completions are handled, and what is marked is sent. Errors: system_error.
  Status start();
  /// Does what QueuePair::disconnect says, if there is a queue pair. Threads: the one that has the
  /// link's mutex.
  void disconnect() noexcept {
    if (queue_pair_ != nullptr) queue_pair_->disconnect();
  }

  /// Whether the peer was heard since the last call: it has sent a message, or its device has acknowledged what was asked
  /// then. Asks again; where a device tells of no acknowledgements, sends a sign of life, if both sides do. Threads: network
  /// thread.
  Pulse take_pulse() noexcept;

  // Mending, in this order, then start. Threads: network thread.

  /// Takes the path from the poller and the right to post, for good, and destroys the queue pair. The link has broken,
  /// or stopped. False: another thread, which never waits, is inside; call it again. Idempotent.
  bool give_up_queue_pair() noexcept;
  /// Begins anew with that one. The link's mutex is held.
  void take_queue_pair(PathParts parts) noexcept;

  const LinkCounters& counters() const noexcept { return counters_; }

  // For CompletionPoller, whose right to poll the caller holds.

  /// Handles all completions that have arrived; returns whether there were any.
  bool take_completions() noexcept;
  /// Posts what can be posted (W2 to W4). True if the caller was the last holder and is stuck().
  /// Threads: any.
  bool post_pending() noexcept;
  /// Something waits for places, credits or a completion. Threads: whoever was the last holder.
  bool stuck() const noexcept;
  /// Arms the queue: if no completion is there yet, the next one makes an event.
  void arm() noexcept;
  /// Fails the link of the path, as VerbsLink::fail says.
  void fail(const Status& cause);
  PollState& poll_state() noexcept { return poll_state_; }
  void count_event() noexcept { count(counters_.network_events); }

 private:
  // What has shown that the peer lives, until the last pulse.
  struct Shown {
    uint32_t taken = 0;        // messages of the peer
    uint64_t asked_up_to = 0;  // is acknowledged once that many requests have completed
  };

  // Posting (verbs_datapath.cc). The holder of the right to post.
  void send_pending() override;
  void on_read_due() override { reads_due_.store(true, std::memory_order_seq_cst); }
  void show_life() noexcept;
  bool anything_to_note() const noexcept { return anything_due() || notes_.any(); }
  bool can_post() const noexcept;
  bool fill_chain() noexcept;
  void fill_with_immediates() noexcept;
  void fill_with_message() noexcept;
  void gather_reads() noexcept;
  void gather_notes() noexcept;
  void gather_writes() noexcept;
  uint32_t add_ring(uint32_t number) noexcept;
  void add_message() noexcept;
  bool post_chain() noexcept;

  // Polling (verbs_receive.cc). The holder of the right to poll.
  void take_completion(const ibv_wc& completion);
  void take_sent(uint64_t number);
  void take_received(const ibv_wc& completion);
  Status accept_message(uint32_t index, uint32_t bytes);
  Status accept_record(const wire::VerbsRecord& record);
  Status accept_read(uint32_t number, wire::Position position);
  Status accept_written(uint32_t number, wire::Position position);
  Status accept_immediate(uint32_t index, uint32_t code);
  void fail_completion(const ibv_wc& completion);
  void wake_sender(uint32_t ring) noexcept { note_room(context_.outgoing.sender_of(ring)); }

  // Ending. Any thread.
  void on_disconnected(const Status& cause) override;
  bool halted() const noexcept;

  // Constant after construction.
  VerbsLink& link_;
  const LinkParts& parts_;  // the link's
  const PathMessages messages_;
  const uint32_t requests_per_ring_;  // for one transfer, with the notification behind it, at most
  const bool acknowledges_writes_;

  // While the link runs it does not change; null from give_up_queue_pair to take_queue_pair.
  std::unique_ptr<QueuePair> queue_pair_;

  // Shared.
  PaperNotes notes_;
  std::atomic<bool> reads_due_{false};  // send read positions even if no message is due otherwise
  alignas(64) std::atomic<bool> held_{false};
  SendQueue places_;
  Credits credits_;
  LinkCounters counters_;

  // The network thread's.
  bool is_parked_ = false;  // it has the right to post
  Shown shown_;

  // The poster's.
  alignas(64) WorkChain chain_;
  MessageRecords records_;  // of the chain's message
  uint64_t signals_ = 1;    // signalled posts, plus one

  // The poller's.
  alignas(64) PollState poll_state_;
};

}  // namespace faro::transport::verbs
