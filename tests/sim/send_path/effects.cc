#include "sim/send_path/effects.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace faro::send_path {

void Effects::on_frame(const Port& by, uint32_t ring, Position from,
                       std::span<const std::byte> frame) {
  frames_.push_back(
      {by.node(), by.peer_node(), ring, from, std::vector(frame.begin(), frame.end())});
}

void Effects::note_frame(const Frame& frame) {
  wire::FrameHeader header;
  std::memcpy(&header, frame.bytes.data(), sizeof header);
  if (header.kind <= wire::kLastFrameKind) ++kinds_[static_cast<size_t>(header.kind)];
  record_.note(Kind::frame,
               "frame {}>{} ring {} at {}: length {} kind {} flags {} slot {} rows {} fields {} "
               "payload {:016x}",
               frame.from, frame.to, frame.ring, frame.position, header.length,
               static_cast<int>(header.kind), header.flags, header.slot, header.row_count,
               header.field_bytes,
               hash_bytes(frame.bytes.data() + sizeof header, frame.bytes.size() - sizeof header));
  if (!record_.keeps_text()) return;
  const std::span payload = std::span(frame.bytes).subspan(sizeof header);
  for (size_t at = 0; at < payload.size(); at += 32) {
    std::string hex;
    for (const std::byte each : payload.subspan(at, std::min<size_t>(32, payload.size() - at)))
      hex += fmt::format("{:02x}", static_cast<unsigned>(each));
    record_.explain("{:>6} {}", at, hex);
  }
}

void Effects::note_frames() {
  std::ranges::stable_sort(
      frames_, {}, [](const Frame& frame) { return std::tuple(frame.from, frame.to, frame.ring); });
  for (const Frame& frame : frames_) note_frame(frame);
  frames_.clear();
}

void Effects::note_local(uint32_t node, uint32_t number, transport::Outgoing& ring) {
  Walk& walk = walks_[{node, node, number}];
  const transport::OutgoingCounters& counters = ring.counters();
  const uint64_t frames = counters.frames_sent.load(std::memory_order_relaxed);
  const uint64_t bytes = counters.bytes_sent.load(std::memory_order_relaxed);
  const uint64_t transfers = counters.transfers.load(std::memory_order_relaxed);
  const std::span<const std::byte> memory = ring.memory();
  // With pads it is less than a ring.
  if (bytes - walk.bytes > memory.size() / 4) walk.is_lost = true;
  for (uint64_t i = walk.frames; i < frames && !walk.is_lost; ++i) {
    wire::FrameHeader header;
    for (;;) {
      std::memcpy(&header, memory.data() + walk.position % memory.size(), sizeof header);
      if (header.kind != wire::FrameKind::pad) break;
      walk.position += header.length;
    }
    const std::byte* const at = memory.data() + walk.position % memory.size();
    frames_.push_back({node, node, number, walk.position, {at, at + header.length}});
    walk.position += wire::padded(header.length);
  }
  if (walk.is_lost && frames != walk.frames) {
    record_.note(Kind::frame, "frames {}>{} ring {}: {} more, {} bytes", node, node, number,
                 frames - walk.frames, bytes - walk.bytes);
  }
  if (transfers != walk.transfers) {
    record_.note(Kind::announced, "transfers {}>{} ring {}: {}", node, node, number, transfers);
  }
  walk.frames = frames;
  walk.bytes = bytes;
  walk.transfers = transfers;
}

void Effects::note_rings(World& world, Nodes& nodes, const Plan& plan) {
  const uint32_t local =
      plan.workers_per_node * plan.workers_per_node * plan.settings.rings_per_lane;
  for (uint32_t node = 0; node < plan.nodes; ++node) {
    if (!nodes.is_there(node)) continue;
    for (uint32_t ring = 0; ring < local; ++ring)
      note_local(node, ring, nodes.local_link(node).outgoing(ring));
  }
  note_frames();
  for (const auto& port : world.ports()) {
    for (uint32_t ring = 0; ring < port->outgoing().ring_count(); ++ring) {
      Announced& was = announced_[{port->node(), port->peer_node(), ring}];
      const Announced is{port->posted(ring), port->posted_soon(ring),
                         port->room_is_asked_for(ring)};
      if (is.posted != was.posted || is.soon != was.soon) {
        record_.note(Kind::announced, "announced {}>{} ring {}: {}, soon {}", port->node(),
                     port->peer_node(), ring, is.posted, is.soon);
      }
      if (is.asks_for_room != was.asks_for_room) {
        record_.note(Kind::room, "room {}>{} ring {}: {}", port->node(), port->peer_node(), ring,
                     is.asks_for_room ? "asked for" : "not asked for");
      }
      was = is;
    }
  }
}

void Effects::note_worker(const WorkerMetrics& is) {
  WorkerMetrics& was = workers_[is.worker];
  const auto values = [](const WorkerMetrics& m) {
    return std::array{m.rows_sent,          m.rows_received, m.rows_dropped,
                      m.frames_spilled,     m.bytes_spilled, m.frames_out_overflow,
                      m.bytes_out_overflow, m.open_shuffles, m.held_frames};
  };
  if (values(is) != values(was)) {
    record_.note(
        Kind::counter,
        "worker {}: sent, received, dropped, spilled frames and bytes, overflow frames and "
        "bytes, shuffles, held: {}",
        is.worker, values(is));
  }
  was = is;
}

void Effects::note_shuffle(uint32_t query, const ShuffleMetrics& is) {
  ShuffleMetrics& was = shuffles_[{query, is.stage, is.worker}];
  was.sent.resize(is.sent.size());
  for (size_t r = 0; r < is.sent.size(); ++r) {
    const auto values = [](const SentMetrics& m) {
      return std::array{
          m.rows, m.bytes, m.frames, m.no_room, m.rows_out_overflow, m.bytes_out_overflow};
    };
    if (values(is.sent[r]) == values(was.sent[r])) continue;
    record_.note(
        Kind::counter,
        "stage {} of query {}, worker {} to {}: rows, bytes, frames, no room, overflow rows "
        "and bytes: {}",
        is.stage, query, is.worker, r, values(is.sent[r]));
  }
  if (is.blocked_on_room != was.blocked_on_room) {
    record_.note(Kind::counter, "stage {} of query {}, worker {}: blocked on room {}", is.stage,
                 query, is.worker, is.blocked_on_room);
  }
  was = is;
}

void Effects::note_memory(uint32_t node, const SessionMetrics& metrics) {
  uint64_t& was = memory_[node];
  const uint64_t is = metrics.overflow_memory_bytes + metrics.overflow_file_bytes;
  if (is != was) {
    record_.note(Kind::memory, "node {}: overflow {} in memory, {} in the file", node,
                 metrics.overflow_memory_bytes, metrics.overflow_file_bytes);
  }
  was = is;
}

}  // namespace faro::send_path
