// CounterView: a counter file as another process sees it. The file is read and never locked, so its node does not
// notice. It is copied, not mapped: its owner could truncate it, and reading a mapping would then raise
// SIGBUS.
#pragma once

#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "counters/layout.h"
#include "counters/reading.h"
#include "faro/status.h"

namespace faro::counters {

/// One of the things that a worker waits for.
struct WaitView : WaitRecord {
  std::vector<uint32_t> awaited;  ///< worker numbers, if it is rows

  bool is_room_at_node() const { return kind == WaitKind::room && awaited_count != 0; }
};

/// An operator of a worker.
struct OperatorView : OperatorState {
  OperatorValues counters;
};

/// A worker of the node that was read.
struct WorkerView {
  uint32_t number = 0;
  WorkerValues counters;
  std::vector<WaitView> waits;          ///< none: it waits for nothing
  ReaderValues at_node_end;             ///< where lanes end at nodes
  std::vector<OperatorView> operators;  ///< that live; up to kOperatorSlots of them
  std::array<OperatorValues, kOperatorKinds> operator_totals;  ///< by kind, of all that it has had

  /// Whether it waits inside a call, or its event loop for it.
  bool waits_in_call() const { return !waits.empty() && waits.front().in_call != 0; }
};

/// One lane: all its rings together.
struct OutgoingLane {
  uint32_t sender = 0,
           receiver = 0;  ///< where lanes end at nodes alone, the first worker of that node
  OutgoingValues counters;
};
struct IncomingLane {
  uint32_t sender = 0, receiver = 0;
  IncomingValues counters;
  /// Frames of a ring that ends at the node, which the worker has taken and not released.
  struct Held {
    uint32_t ring = 0;
    uint64_t bytes = 0;
    uint64_t last_stage = 0;  ///< stage_word of the last one
  };
  std::vector<Held> held;
};

struct PeerView {
  uint32_t node = 0;
  std::string name;
  std::string transport;
  uint64_t incarnation = 0;
  uint32_t first_worker = 0;
  uint32_t worker_count = 0;
  PeerValues counters;

  /// Whether there was a link with it, so that its lanes may have counted something.
  bool was_linked() const { return !transport.empty() && transport != "none"; }
};

/// What is the same for all lanes of a node.
struct LanesView {
  uint64_t ring_bytes = 0, threshold_bytes = 0;
  uint32_t rings_per_lane = 0;  ///< as they are counted: those to nodes behind those to workers
  bool end_at_workers = true;
  bool end_at_nodes = false;
};

/// A node at one moment: each value is exact, together they are of about one moment.
struct NodeView {
  std::string path;
  bool alive = false;  ///< its process has not ended
  bool stopped =
      false;  ///< but does not run: SIGSTOP, or a debugger. Seen within its namespace of pids
  bool open = false;  ///< its session is connected
  uint32_t pid = 0;   ///< in its own namespace
  std::string cluster;
  uint32_t node = 0;
  uint64_t created_ns = 0;
  uint64_t read_ns = 0;  ///< when this was read, CLOCK_MONOTONIC
  LanesView lanes;
  NodeValues counters;
  std::vector<PeerView> peers;
  std::vector<WorkerView> workers;
  std::vector<OutgoingLane> outgoing;  ///< by sender, then receiver; with nodes that were linked
  std::vector<IncomingLane> incoming;  ///< by receiver, then sender; the same
  std::vector<QueryState> queries;
  NodeEndValues node_end;  ///< if lanes end at nodes, as the next
  std::vector<UntakenStream>
      untaken;  ///< of which nobody has taken rows for longest, at the last tick

  const PeerView& self() const { return peers[node]; }
  /// Whether a node has the peer's number, as far as is known: where nodes can be added, some numbers have none.
  bool has(const PeerView& peer) const { return !open || !peer.name.empty(); }
};

/// Threads: one at a time. Owns: a copy of the file.
class CounterView {
 public:
  /// The largest file that is read: more than the largest cluster has counters.
  static constexpr uint64_t kFileLimit = uint64_t{1} << 30;

  /// `named`: the user has named this file, see open_counter_file.
  /// Errors: system_error (no such file, not this user's); invalid_argument (no counter file, one that
  /// takes less space than it has bytes, or of another layout version: both versions are named).
  static Result<std::unique_ptr<CounterView>> open(const std::string& path, bool named = false);
  /// Over memory that outlives the view. Errors: invalid_argument.
  static Result<std::unique_ptr<CounterView>> over(std::span<const std::byte> memory);
  CounterView(const CounterView&) = delete;
  CounterView& operator=(const CounterView&) = delete;

  /// A node whose process has ended is read as it was at its end; one whose file was cut short, as it
  /// was read last, and as ended. Blocks: for the file.
  NodeView read();

 private:
  struct Unmap {
    uint64_t bytes;
    void operator()(Line* lines) const noexcept { munmap(lines, bytes); }
  };
  /// Zeros at first, and memory where something else is written.
  using SparseLines = std::unique_ptr<Line[], Unmap>;
  static SparseLines make_lines(uint64_t bytes);

  /// Views memory of someone else.
  CounterView(std::span<const std::byte> memory, std::string path)
      : copy_(nullptr, Unmap{0}), memory_(memory), path_(std::move(path)) {}
  /// Views a copy of a file.
  CounterView(uint64_t bytes, base::UniqueFd fd, std::string path)
      : copy_(make_lines(bytes)),
        memory_(reinterpret_cast<const std::byte*>(copy_.get()), bytes),
        fd_(std::move(fd)),
        path_(std::move(path)) {}
  Status check();
  /// False if the file has not all its bytes any more: then the copy is of no use.
  bool copy_file(Line* to, uint64_t offset, uint64_t bytes) const;
  bool copy_again(Section section);
  uint64_t lane_bytes() const;
  template <typename Value>
  bool load(Section section, uint32_t index, Value& value) const;

  const Header& header() const { return header_; }
  uint32_t count(Section section) const;
  template <typename Record>
  const Record& at(Section section, uint32_t index) const;
  template <typename Values>
  void add(Section section, uint32_t first, Values& sum) const;
  bool lanes_end_at_workers() const { return header().lanes_end_at_workers != 0; }
  bool lanes_end_at_nodes() const { return count(Section::node_end) != 0; }
  bool has_node_end_or_none() const;
  uint32_t receiving_ends() const {
    return lanes_end_at_workers() ? header().worker_count : header().node_count;
  }
  WorkerView read_worker(uint32_t local, uint64_t now) const;
  WaitView read_wait(uint32_t slot) const;
  void read_operators(uint32_t local, WorkerView& worker) const;
  std::vector<IncomingLane::Held> read_held(uint32_t first) const;
  NodeView view(bool whole) const;
  void note_room();

  SparseLines copy_;                      // of the file, at the last read
  std::map<Section, SparseLines> again_;  // of sequenced records, copied after that
  std::span<const std::byte> memory_;     // copy_, or memory of someone else
  const base::UniqueFd fd_;               // invalid: over memory of someone else
  const std::string path_;
  uint64_t lane_room_ = UINT64_MAX;  // lanes for which the file has space: no more are shown
  Header header_;                    // a copy, checked: what the file says later does not count
};

}  // namespace faro::counters
