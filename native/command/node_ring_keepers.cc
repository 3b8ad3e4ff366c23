#include "command/node_ring_keepers.h"

#include <fmt/format.h>

#include <algorithm>

#include "command/text.h"

namespace faro::command {
namespace {

using namespace counters;

// A query that the node has not shown, or forgotten, is told by its stage alone.
std::string stage_text(const NodeView& node, uint64_t word) {
  const auto query = std::ranges::find_if(
      node.queries, [&](const auto& each) { return is_stage_of(word, each.id); });
  const std::string stage = fmt::format("stage {}", static_cast<uint32_t>(word));
  return query == node.queries.end() ? stage
                                     : fmt::format("{} of query {}", stage, query->id.to_string());
}

}  // namespace

std::string untaken_text(const UntakenStream& stream) {
  return fmt::format("{}, {}, from worker {}, stage {} of query {}",
                     counted(stream.frames, "frame"), bytes_text(stream.bytes), stream.sender,
                     stream.stage, stream.query.to_string());
}

std::vector<uint32_t> readers_of(const NodeView& node, const UntakenStream& stream) {
  std::vector<uint32_t> readers;
  for (const WorkerView& worker : node.workers) {
    const uint64_t local = worker.number - node.self().first_worker;
    const bool reads = stream.reader == kAnyPeer ? local < 64 && (stream.readers >> local & 1) != 0
                                                 : stream.reader == worker.number;
    if (reads) readers.push_back(worker.number);
  }
  return readers;
}

std::vector<RingKeeper> ring_keepers(const NodeView& receiver, uint64_t sender, uint64_t stage) {
  std::vector<RingKeeper> keepers;
  // Where lanes end at workers, too, the rings of those count first.
  const uint32_t rings =
      std::max(1u, receiver.lanes.rings_per_lane / (receiver.lanes.end_at_workers ? 2 : 1));
  const uint64_t ring = stage % rings;
  const uint64_t counted = receiver.lanes.end_at_workers ? rings + ring : ring;
  for (const IncomingLane& lane : receiver.incoming) {
    if (lane.sender != sender) continue;
    for (const IncomingLane::Held& held : lane.held) {
      if (held.ring != counted) continue;
      keepers.push_back({lane.receiver, true,
                         fmt::format("holds {} from worker {}, {}", bytes_text(held.bytes), sender,
                                     stage_text(receiver, held.last_stage))});
    }
  }
  for (const UntakenStream& stream : receiver.untaken) {
    if (stream.sender != sender || stream.ring != ring) continue;
    for (const uint32_t reader : readers_of(receiver, stream)) {
      keepers.push_back(
          {reader, false,
           fmt::format("{} not taken {}",
                       stream.reader == kAnyPeer ? "has, as others of its node," : "has",
                       untaken_text(stream))});
    }
  }
  return keepers;
}

}  // namespace faro::command
