// What the contract suite needs of a transport: both ends of one link, in this process.
//
// A transport joins the suite with one file, <name>_pair.cc, that calls add_transport from a static
// initialiser, and its name in CMakeLists.txt. Most can use ConnectedPair (connected_pair.h), which
// needs only a factory for the transport::Transport of each side.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "faro/status.h"
#include "ring/doorbell.h"
#include "ring/layout.h"
#include "ring/ready_set.h"
#include "support/expect.h"
#include "transport/transport.h"

namespace faro::test {

/// Nothing in the suite takes as long unless it hangs.
inline constexpr base::Nanoseconds kLimit = 30'000'000'000;

/// Rings from side 0 to side 1, and back. The worker counts must fit each other: with other receiving ends than the other
/// direction has senders the last one is the node.
struct PairShape {
  ring::Layout forth;
  ring::Layout back;

  /// Both directions alike: that many workers at each side.
  static PairShape symmetric(uint32_t workers, uint32_t rings_per_lane, uint32_t ring_bytes) {
    const ring::Layout layout{workers, workers, rings_per_lane, ring_bytes};
    return {layout, layout};
  }
};

/// Two connected ends, side 0 and side 1.
/// Threads: each outgoing and incoming end is used by one thread at a time, as transport.h says;
/// all else by the test.
class TransportPair {
 public:
  virtual ~TransportPair() = default;

  virtual transport::DataLink& link(int side) = 0;
  virtual ring::ReadySet& ready_set(int side, uint32_t end) = 0;
  virtual ring::DoorbellLine& doorbell(int side, uint32_t worker) = 0;
  /// The number of the first ring from the other side in that worker's ready set.
  virtual uint32_t first_ready(int side, uint32_t worker) = 0;

  /// One round of both network threads' work, on this thread, not waiting for anything that has not
  /// been started. Returns whether there was any. Not while run_network_threads is in force.
  virtual bool pump() = 0;
  /// Starts a network thread for each side; they end with the pair.
  virtual void run_network_threads() = 0;

  /// Transport::flush of that side: a worker is about to wait.
  virtual void flush(int) {}
  /// Transport::poll, worker_sleeps and worker_wakes of that side, for workers that read the
  /// network themselves.
  virtual bool poll(int) { return false; }
  virtual void worker_sleeps(int) {}
  virtual void worker_wakes(int) {}

  /// Side `side` vanishes without a word, as when its process dies: its link must not be used any
  /// more.
  virtual void drop(int side) = 0;

  /// Breaks the connection, and gives the link another one; where its capabilities say that it mends. Not while anything
  /// else than workers and network threads uses the link. Blocks: until it is in order again.
  virtual Status mend() { return {Code::transport_unavailable, "it does not mend"}; }

  /// How often on_link_failed was called at that side, and the first cause.
  virtual int failures(int side) = 0;
  virtual Status failure(int side) = 0;
};

/// Why a verbs transport with a queue pair for each lane has none.
inline constexpr const char* kNoLanesToNodes =
    "verbs.queue_pairs = lane is refused where lanes end at nodes";

struct TransportUnderTest {
  std::string name;
  std::function<Result<std::unique_ptr<TransportPair>>(const PairShape&)> open;

  /// Why this machine does not have it; then all cases are skipped. Empty: it has, and none is.
  std::function<std::string()> unavailable_because = {};

  /// Frames of the cases that send many: fewer where each costs far more.
  uint64_t many_frames = 100'000;

  // Capabilities. A reason instead of an empty text skips, and reports, the cases that need it.
  std::string no_threads_because = {};  // cases with network threads and a thread per worker
  std::string no_inside_because = {};   // ready sets, doorbells, counters, the bytes of headers
  std::string rings_for_all_room_because =
      {};                             // a sender is woken for room that it has not asked for
  std::string no_nodes_because = {};  // rings that end at nodes
  std::string no_loss_because = {};   // the transport itself notices that its peer is gone
};

/// How GoogleTest shows it.
inline void PrintTo(const TransportUnderTest& transport, std::ostream* out) {
  *out << transport.name;
}

/// Adds a transport to the suite; before main.
bool add_transport(TransportUnderTest transport);
const std::vector<TransportUnderTest>& transports_under_test();

}  // namespace faro::test
