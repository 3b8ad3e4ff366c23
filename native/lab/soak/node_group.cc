#include "lab/soak/node_group.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/return_if_error.h"

namespace faro::soak {
namespace {

constexpr base::Nanoseconds kHang = 60'000'000'000;  // an answer that takes longer never comes

}  // namespace

Status broken(std::string what) { return Status(Code::internal_error, std::move(what)); }

Status NodeGroup::start(uint32_t node) {
  if (has(node)) return Status::Ok();
  FARO_ASSIGN_OR_RETURN(NodeProcess made, NodeProcess::start(node, options_, folder_));
  nodes_[node].process.emplace(std::move(made));
  return Status::Ok();
}

void NodeGroup::forget(uint32_t node) {
  nodes_[node].process.reset();
  nodes_[node].owed = 0;
  nodes_[node].endings.clear();
}

NodeProcess NodeGroup::let_go(uint32_t node) {
  NodeProcess process = std::move(*nodes_[node].process);
  forget(node);
  return process;
}

std::vector<uint32_t> NodeGroup::all() const {
  std::vector<uint32_t> numbers;
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    if (has(node)) numbers.push_back(node);
  }
  return numbers;
}

Result<std::string> NodeGroup::hear_line(uint32_t node) {
  std::optional<std::string> line =
      nodes_[node].process->hear(base::SystemClock::instance().now_ns() + kHang);
  if (!line) return broken(fmt::format("node {} hangs or has ended by itself", node));
  return std::move(*line);
}

Result<std::string> NodeGroup::hear(uint32_t node, const std::string& line,
                                    const std::string& good) {
  FARO_ASSIGN_OR_RETURN(std::string answer, hear_line(node));
  while (nodes_[node].owed > nodes_[node].endings.size() && answer.starts_with("ended ")) {
    nodes_[node].endings.push_back(std::move(answer));
    FARO_ASSIGN_OR_RETURN(answer, hear_line(node));
  }
  if (!answer.starts_with(good))
    return broken(fmt::format("node {}, told to {}: {}", node, line, answer));
  return answer.substr(good.size());
}

Result<std::string> NodeGroup::ask(uint32_t node, const std::string& line,
                                   const std::string& good) {
  say(node, line);
  return hear(node, line, good);
}

Result<std::vector<std::string>> NodeGroup::ask(std::span<const uint32_t> nodes,
                                                const std::string& line, const std::string& good) {
  std::vector<std::string> answers;
  for (const uint32_t node : nodes) say(node, line);
  for (const uint32_t node : nodes) {
    FARO_ASSIGN_OR_RETURN(std::string answer, hear(node, line, good));
    answers.push_back(std::move(answer));
  }
  return answers;
}

Result<uint64_t> NodeGroup::close(std::span<const uint32_t> nodes, uint32_t witness) {
  FARO_ASSIGN_OR_RETURN(const auto closed, ask(nodes, "close", "closed "));
  uint64_t heap_bytes = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i] == witness) heap_bytes = std::strtoull(closed[i].c_str(), nullptr, 10);
  }
  return heap_bytes;
}

void NodeGroup::run(uint32_t node, const std::string& line) {
  say(node, "run " + line);
  ++nodes_[node].owed;
}

Result<Ending> NodeGroup::hear_ending(uint32_t node) {
  Node& from = nodes_[node];
  std::string line;
  if (from.endings.empty()) {
    FARO_ASSIGN_OR_RETURN(line, hear_line(node));
  } else {
    line = std::move(from.endings.front());
    from.endings.pop_front();
  }
  --from.owed;
  Ending ending;
  char code[64] = "";
  int text_at = 0;
  if (std::sscanf(line.c_str(), "ended %lu %lu %63s%n", &ending.at, &ending.rows, code, &text_at) !=
      3)
    return broken(fmt::format("node {} said: {}", node, line));
  ending.code = code;
  ending.text = line.substr(static_cast<size_t>(text_at));
  return ending;
}

}  // namespace faro::soak
