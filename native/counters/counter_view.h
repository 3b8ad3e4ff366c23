// CounterView: a counter file as others see it: mapped read-only, never locked, so that the node it
// belongs to does not notice.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "counters/layout.h"
#include "faro/status.h"

namespace faro::counters {

/// A worker of the node that was read.
struct WorkerView {
  uint32_t number = 0;
  WorkerValues counters;
  Wait wait;
  std::vector<uint32_t> awaited;  ///< worker numbers, if it waits for rows
};

/// One lane: all its rings together.
struct OutgoingLane {
  uint32_t sender = 0, receiver = 0;
  OutgoingValues counters;
};
struct IncomingLane {
  uint32_t sender = 0, receiver = 0;
  IncomingValues counters;
};

struct PeerView {
  uint32_t node = 0;
  std::string name;
  std::string transport;
  uint64_t incarnation = 0;
  uint32_t first_worker = 0;
  uint32_t worker_count = 0;
  PeerValues counters;
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
  uint64_t ring_bytes = 0, threshold_bytes = 0;
  uint32_t rings_per_lane = 0;
  NodeValues counters;
  std::vector<PeerView> peers;
  std::vector<WorkerView> workers;
  std::vector<OutgoingLane> outgoing;  ///< by sender, then receiver
  std::vector<IncomingLane> incoming;  ///< by receiver, then sender
  std::vector<QueryState> queries;

  const PeerView& self() const { return peers[node]; }
};

/// Threads: any. Owns: the mapping.
class CounterView {
 public:
  /// Errors: system_error (no such file, not this user's); invalid_argument (no counter file, or of
  /// another layout version: both versions are named).
  static Result<std::unique_ptr<CounterView>> open(const std::string& path);
  /// Over memory that outlives the view. Errors: invalid_argument.
  static Result<std::unique_ptr<CounterView>> over(std::span<const std::byte> memory);
  ~CounterView();
  CounterView(const CounterView&) = delete;
  CounterView& operator=(const CounterView&) = delete;

  /// Blocks: never. A node whose process has ended is read as it was at its end.
  NodeView read() const;

 private:
  CounterView(std::span<const std::byte> memory, base::UniqueFd fd, std::string path)
      : memory_(memory), fd_(std::move(fd)), path_(std::move(path)) {}
  Status check();

  const Header& header() const { return header_; }
  uint32_t count(Section section) const;
  template <typename Record>
  const Record& at(Section section, uint32_t index) const;
  template <typename Values>
  void add(Section section, uint32_t first, Values& sum) const;
  WorkerView read_worker(uint32_t local) const;

  const std::span<const std::byte> memory_;
  const base::UniqueFd fd_;  // invalid: over memory of someone else
  const std::string path_;
  Header header_;  // a copy, checked: what the file says later does not count
};

}  // namespace faro::counters
