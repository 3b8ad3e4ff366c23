#include "command/wait_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace faro::command {

using counters::WaitKind;

uint64_t age_ns(const counters::NodeView& node, uint64_t since_ns) {
  return node.read_ns > since_ns ? node.read_ns - since_ns : 0;
}

const char* wait_name(WaitKind kind) {
  constexpr const char* kNames[] = {"none", "rows", "room", "outcome", "condition", "overflow"};
  const auto number = static_cast<size_t>(kind);  // of another version of faro, perhaps
  return number < std::size(kNames) ? kNames[number] : "unknown";
}

std::string few_of(const std::vector<uint32_t>& numbers) {
  constexpr size_t kMost = 6;
  std::string text;
  for (size_t i = 0; i < numbers.size() && i < kMost; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", numbers[i]);
  if (numbers.size() > kMost) text += fmt::format(" and {} more", numbers.size() - kMost);
  return text;
}

const counters::PeerView* peer_with(const counters::NodeView& node, uint64_t worker) {
  const auto found = std::ranges::find_if(node.peers, [worker](const counters::PeerView& peer) {
    return worker >= peer.first_worker && worker - peer.first_worker < peer.worker_count;
  });
  return found == node.peers.end() ? nullptr : &*found;
}

std::string waits_text(const counters::NodeView& node, const counters::WorkerView& worker) {
  std::string text;
  for (const counters::WaitView& wait : worker.waits)
    text += (text.empty() ? "" : "; ") + wait_text(node, wait);
  if (!worker.waits.empty() && worker.waits.front().further > 0)
    text += fmt::format("; and for {} more", worker.waits.front().further);
  return text;
}

std::string wait_text(const counters::NodeView& node, const counters::WaitView& wait) {
  const std::string of = fmt::format("stage {} of query {}", wait.stage, wait.query.to_string());
  switch (wait.kind) {
    case WaitKind::none:
      return "";
    case WaitKind::rows:
      return fmt::format("rows from worker{} {}, {}", wait.awaited.size() == 1 ? "" : "s",
                         few_of(wait.awaited), of);
    case WaitKind::room: {
      const counters::PeerView* const peer = peer_with(node, wait.peer);
      if (wait.is_room_at_node() && peer != nullptr)
        return fmt::format("room towards node {}, {}", peer->node, of);
      return fmt::format("room towards worker {}, {}", wait.peer, of);
    }
    case WaitKind::outcome:
      return fmt::format("the outcome of query {}", wait.query.to_string());
    case WaitKind::condition:
      return "a condition of the engine";
    case WaitKind::overflow:
      return fmt::format("overflow to be freed, query {}", wait.query.to_string());
  }
  return "something that this version of faro does not know";
}

}  // namespace faro::command
