// Effects: what a call has left behind in rings, counters and memory, noted in a Record.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "faro/metrics.h"
#include "faro/shuffle.h"
#include "sim/programs/record.h"
#include "sim/programs/rings.h"
#include "sim/send_path/nodes.h"

namespace faro::send_path {

/// Within a call frames count by ring: which of two rings had its frame first nobody can see.
///
/// Threads: one.
class Effects final : public programs::RingWatcher {
 public:
  explicit Effects(Record& record) : record_(record) {}

  void on_frame(const Port& by, uint32_t ring, Position from,
                std::span<const std::byte> frame) override;
  /// Notes what is new in all rings.
  void note_rings(World& world, Nodes& nodes, const Plan& plan);
  void note_worker(const WorkerMetrics& metrics);
  void note_shuffle(uint32_t query, const ShuffleMetrics& metrics);
  void note_memory(uint32_t node, const SessionMetrics& metrics);

  /// Frames of a kind that were seen, by wire::FrameKind.
  uint64_t frames(wire::FrameKind kind) const { return kinds_[static_cast<size_t>(kind)]; }

 private:
  struct Frame {
    uint32_t from = 0;
    uint32_t to = 0;
    uint32_t ring = 0;
    Position position = 0;
    std::vector<std::byte> bytes;
  };
  struct Announced {
    Position posted = 0;
    Position soon = 0;
    bool asks_for_room = false;
  };
  /// How far a ring within a node was read. Others show their frames by themselves.
  struct Walk {
    Position position = 0;
    uint64_t frames = 0;
    uint64_t bytes = 0;
    uint64_t transfers = 0;
    bool is_lost = false;  // more was written at once than the ring shows
  };
  using RingName = std::tuple<uint32_t, uint32_t, uint32_t>;  // nodes and ring

  void note_frames();
  void note_frame(const Frame& frame);
  void note_local(uint32_t node, uint32_t number, transport::Outgoing& ring);

  Record& record_;
  std::vector<Frame> frames_;  // of the call of now
  std::map<RingName, Announced> announced_;
  std::map<RingName, Walk> walks_;
  std::map<uint32_t, WorkerMetrics> workers_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, ShuffleMetrics> shuffles_;
  std::map<uint32_t, uint64_t> memory_;
  uint64_t kinds_[static_cast<size_t>(wire::kLastFrameKind) + 1] = {};
};

}  // namespace faro::send_path
