// CounterFile: the counters of one node, where other processes can read them (folder.h). Threads count directly in the
// file's mapping: nothing is copied, and no thread publishes anything.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "counters/counter_memory.h"
#include "counters/folder.h"
#include "counters/layout.h"
#include "counters/operator_slots.h"
#include "faro/status.h"

namespace faro::counters {

/// What the size of a file follows from.
struct Shape {
  std::string cluster;
  uint32_t node = 0;
  std::vector<uint32_t> workers_per_node;
  uint32_t rings_per_lane = 0;
  uint64_t ring_bytes = 0;
  uint64_t threshold_bytes = 0;
  bool lanes_end_at_workers = true;
  bool lanes_end_at_nodes = false;

  uint32_t local_workers() const { return workers_per_node[node]; }
  uint32_t worker_count() const;
  uint32_t first_worker(uint32_t of_node) const;
  /// Where lanes end: at each worker of the cluster, or at each node.
  uint32_t receiving_ends() const {
    return lanes_end_at_workers ? worker_count() : static_cast<uint32_t>(workers_per_node.size());
  }
};

class CounterFile {
 public:
  /// Bytes of memory that a node's counters take.
  static uint64_t bytes(const Shape& shape);

  /// Counters in a new file in `folder`, or in memory of this process alone if that is empty. Stale
  /// files of this user there are removed. `now`: CLOCK_MONOTONIC.
  /// Errors: resource_limit (no memory), config_invalid (no such folder, or not for this user),
  /// system_error (the folder cannot take it).
  static Result<std::unique_ptr<CounterFile>> make(const Shape& shape, const std::string& folder,
                                                   uint64_t now);
  CounterFile(const CounterFile&) = delete;
  CounterFile& operator=(const CounterFile&) = delete;

  /// Empty if there is no file, or its name was removed. Threads: one at a time, as remove_name.
  const std::string& path() const noexcept { return memory_.path(); }
  /// Removes the file's name, so that it is no longer found; the records stay. Idempotent. exit() does it, too.
  void remove_name() noexcept { memory_.remove_name(); }
  std::span<const std::byte> memory() const noexcept { return {memory_.data(), memory_.bytes()}; }

  /// Room for the lanes to and from these workers, which take none before. Only then may they count. Repeatable.
  /// Errors: system_error (the folder cannot take it). Threads: one at a time.
  Status reserve_lanes(uint32_t first_worker, uint32_t worker_count);

  // What is constant while the session is open. Threads: one at a time, before `opened`.
  void set_peer(uint32_t node, const Peer& peer) noexcept;
  void opened() noexcept;

  // The records. Valid as long as this object.
  NodeCounters& node() noexcept { return *at<NodeCounters>(Section::node, 0); }
  PeerCounters& peer(uint32_t node) noexcept {
    return *at<PeerCounters>(Section::peer_counters, node);
  }
  WorkerCounters& worker(uint32_t local) noexcept {
    return *at<WorkerCounters>(Section::workers, local);
  }
  Sequenced<WaitRecord>& wait(uint32_t local, uint32_t slot) noexcept {
    return *at<Sequenced<WaitRecord>>(Section::waits, local * kWaitSlots + slot);
  }
  /// A bit per worker of the cluster.
  std::span<Counter> awaited(uint32_t local, uint32_t slot) noexcept;
  /// `worker`: number of the receiver, of any worker of the node at which the lane ends, or of the sender; `k`: the ring of the lane.
  OutgoingCounters& outgoing(uint32_t local, uint32_t worker, uint32_t k) noexcept {
    return *at<OutgoingCounters>(Section::outgoing, outgoing_ring(local, end_of(worker), k));
  }
  IncomingCounters& incoming(uint32_t local, uint32_t worker, uint32_t k) noexcept {
    return *at<IncomingCounters>(Section::incoming, ring(local, worker, k));
  }
  Sequenced<QueryState>& query(uint32_t slot) noexcept {
    return *at<Sequenced<QueryState>>(Section::queries, slot);
  }
  /// The operators of a worker.
  OperatorSlots operators(uint32_t local) noexcept {
    return OperatorSlots(
        {at<OperatorRecord>(Section::operators, local * kOperatorSlots), kOperatorSlots},
        {at<OperatorCounters>(Section::operator_totals, local * kOperatorKinds), kOperatorKinds});
  }
  // Where lanes end at nodes:
  NodeEndCounters& node_end() noexcept { return *at<NodeEndCounters>(Section::node_end, 0); }
  ReaderCounters& reader(uint32_t local) noexcept {
    return *at<ReaderCounters>(Section::readers, local);
  }
  Sequenced<UntakenStream>& untaken(uint32_t slot) noexcept {
    return *at<Sequenced<UntakenStream>>(Section::untaken, slot);
  }

 private:
  CounterFile(CounterMemory memory, const Shape& shape);

  Header& header() noexcept { return *reinterpret_cast<Header*>(memory_.data()); }
  template <typename Record>
  Record* at(Section section, uint32_t index) noexcept {
    const SectionPlace& place = header().sections[static_cast<uint32_t>(section)];
    return reinterpret_cast<Record*>(memory_.data() + place.offset +
                                     uint64_t{index} * place.stride_bytes);
  }
  uint32_t ring(uint32_t local, uint32_t worker, uint32_t k) noexcept {
    return (local * header().worker_count + worker) * header().rings_per_lane + k;
  }

  uint32_t outgoing_ring(uint32_t local, uint32_t end, uint32_t k) noexcept {
    return (local * receiving_ends_ + end) * header().rings_per_lane + k;
  }
  uint32_t end_of(uint32_t worker) const noexcept;
  Status reserve(Section section, uint64_t first, uint64_t end);

  CounterMemory memory_;
  const uint32_t receiving_ends_;
  std::vector<uint32_t> first_workers_;  // of nodes, if lanes end at these alone; else none
};

}  // namespace faro::counters
