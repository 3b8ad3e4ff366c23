// One link over RDMA: its rings, their memory, and the queue pairs that move it.
//
//                  ┌ outgoing rings ┐                            ┌ incoming region
//   workers ──────►┤                ├──► paths ══ network ══► ┤
//                  └ incoming rings ┘    (verbs_path.h)       └ messages
//
// When a connection breaks, all queue pairs of the link are given up, until it has others or is destroyed:
//
//   running ──► broken ──► running            mending: give_up_connections, then take_connections
//      └───────────┴─────► stopped
//
// While it is broken the network thread has every right to post, and no thread polls its paths, so that it can change
// what these cover. Workers go on marking what they have to send. Everything that was committed and not read lies in the
// rings still: each side sends on from where the other says that it is (progress_exchange.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/fixed_array.h"
#include "transport/mending_tally.h"
#include "transport/transport.h"
#include "transport/verbs/immediate_code.h"
#include "transport/verbs/link_parts.h"
#include "transport/verbs/path_map.h"
#include "transport/verbs/verbs_path.h"
#include "transport/verbs/verbs_rings.h"

namespace faro::transport::verbs {

extern const Capabilities kVerbsCapabilities;

/// Threads: outgoing and incoming ends as in transport.h; start and destruction: network thread, or any while that does
/// not run. Owns: the queue pairs and the memory of the rings.
class VerbsLink final : public DataLink {
 public:
  /// What a link with that many paths takes beside what it has registered.
  static uint64_t bytes(const ring::Layout& outgoing, const ring::Layout& incoming,
                        uint64_t paths) noexcept;

  VerbsLink(LinkContext& context, const std::shared_ptr<CompletionPoller>& poller,
            const std::shared_ptr<DeferredSends>& deferred, LinkParts parts);
  ~VerbsLink() override;
  VerbsLink(const VerbsLink&) = delete;
  VerbsLink& operator=(const VerbsLink&) = delete;

  /// From now on completions are handled. Errors: system_error.
  Status start();

  const Capabilities& capabilities() const override { return kVerbsCapabilities; }
  Outgoing& outgoing(uint32_t ring) override { return outgoing_[ring]; }
  Incoming& incoming(uint32_t ring) override { return incoming_[ring]; }
  void add_counters(LinkCounters& sum) const override;
  /// What all queue pairs have shown of the peer (VerbsPath::take_pulse).
  Pulse take_pulse() noexcept override;
  void stop() noexcept override { halt(kStopped); }
  bool close_connections() noexcept override;

  /// The link can carry nothing any more; of several causes the first is reported. peer_lost: its connection has broken.
  /// Has no effect after stop: then a broken connection is no failure. Threads: any.
  void fail(const Status& cause);

  const LinkParts& parts() const noexcept { return parts_; }

  // Mending, in this order. Threads: network thread.

  /// Breaks the connections if they have not broken yet, and destroys the queue pairs: from now on nothing of the peer's
  /// lands here, and nothing of these rings is under way. Blocks: until other threads have left, which never wait.
  void give_up_connections() noexcept;
  /// The peer's key reaches nothing any more; there is another one. Errors: as of RegisteredMemory::make.
  Status renew_key() { return parts_.incoming.register_anew(); }
  /// How far an incoming ring is; the peer is about to be told.
  wire::VerbsProgress progress(uint32_t ring) noexcept { return incoming_[ring].progress(); }
  /// How far the peer is in an outgoing ring. Errors: protocol_error.
  Status accept_progress(uint32_t ring, const wire::VerbsProgress& progress);
  /// Goes on over these, one per path, into the memory that the peer tells of. Errors: protocol_error; system_error; or
  /// why the link has stopped.
  Status take_connections(std::vector<PathParts> connections, const wire::VerbsMemory& peer);

 private:
  friend class VerbsPath;

  enum State : uint32_t { kRunning, kBroken, kStopped };

  // How far the peer has come, as it says while the link is mended.
  struct Progress {
    bool is_connected = true;  // there are queue pairs
    bool owes = false;         // something was sent and has not come
    uint64_t delivered = 0;    // bytes, of all rings
  };

  bool halt(State to, const Status& why = Status::Ok()) noexcept;
  bool halted() const noexcept { return state_.load(std::memory_order_acquire) != kRunning; }

  // Constant after construction.
  LinkContext& context_;
  const std::shared_ptr<CompletionPoller> poller_;
  const std::shared_ptr<DeferredSends> deferred_;
  LinkParts parts_;  // except its paths. While the link is broken, the keys change
  const ImmediateCode outgoing_code_;
  const ImmediateCode incoming_code_;
  base::FixedArray<VerbsOutgoing> outgoing_;
  base::FixedArray<VerbsIncoming> incoming_;

  std::atomic<State> state_{kRunning};
  std::mutex
      mutex_;  // guards changes of the state, the queue pairs of all paths against halt, and the next
  Status failure_;  // why it has stopped after it had broken

  // The network thread's.
  Progress progress_;
  MendingTally tally_;

  std::deque<VerbsPath> paths_;  // last: what they use outlives them
};

}  // namespace faro::transport::verbs
