#include "lab/soak/changing_cluster.h"

#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/return_if_error.h"

namespace faro::soak {
namespace {

constexpr base::Nanoseconds kSettledNs = 10'000'000'000;
// The file of the overflow, which is made when rows are spilled for the first time.
constexpr uint32_t kLateDescriptors = 1;

}  // namespace

ChangingCluster::ChangingCluster(const Options& options, uint64_t number, NodeGroup& nodes,
                                 Progress& progress)
    : options_(options),
      number_(number),
      plan_(draw_cluster(options, number)),
      nodes_(nodes),
      progress_(progress),
      queries_(options, plan_, number, nodes, progress),
      chance_(workload::mix(options.seed, number, 6)),
      witness_(witness_of(options)) {}

Result<uint64_t> ChangingCluster::run(const std::function<bool()>& is_over) {
  FARO_RETURN_IF_ERROR(enter(witness_));
  FARO_RETURN_IF_ERROR(nodes_.ask(witness_, "open " + list_of({witness_}), "open").status());
  members_ = {witness_};
  for (uint32_t round = 0; round < plan_.rounds && !is_over(); ++round) {
    const uint64_t changes = chance_.between(4, 16);
    for (uint64_t i = 0; i < changes && !is_over(); ++i) {
      std::optional<Begun> begun;
      if (members_.size() > 1) {
        std::vector<uint32_t> those = members_;
        while (those.size() > 2 && chance_.one_in(2))
          those.erase(those.begin() + static_cast<ptrdiff_t>(chance_.below(those.size())));
        FARO_ASSIGN_OR_RETURN(begun, queries_.begin(next_query_++, those));
      }
      FARO_RETURN_IF_ERROR(change(begun));
      FARO_RETURN_IF_ERROR(query_over_all());
    }
    FARO_RETURN_IF_ERROR(drain(members_but(witness_), {}));
    FARO_RETURN_IF_ERROR(look_at_witness());
  }
  return nodes_.close(members_, witness_);
}

/// The address of a number in this cluster, at which a process listens that has no session.
Status ChangingCluster::enter(uint32_t node) {
  FARO_RETURN_IF_ERROR(nodes_.start(node));
  FARO_ASSIGN_OR_RETURN(addresses_[node],
                        nodes_.ask(node, fmt::format("cluster {}", number_), "at "));
  return Status::Ok();
}

std::vector<uint32_t> ChangingCluster::members_but(uint32_t node) const {
  std::vector<uint32_t> others = members_;
  std::erase(others, node);
  return others;
}

std::string ChangingCluster::list_of(const std::vector<uint32_t>& nodes) const {
  std::vector<std::string> list(*std::max_element(nodes.begin(), nodes.end()) + 1, "-");
  for (const uint32_t node : nodes) list[node] = addresses_[node];
  return fmt::format("{}", fmt::join(list, ","));
}

Status ChangingCluster::change(const std::optional<Begun>& begun) {
  std::vector<uint32_t> free;
  for (uint32_t node = 0; node < kNodeLimit; ++node) {
    if (std::find(members_.begin(), members_.end(), node) == members_.end()) free.push_back(node);
  }
  const std::vector<uint32_t> others = members_but(witness_);
  if (others.empty() || (!free.empty() && chance_.one_in(2)))
    return join(free[chance_.below(free.size())], begun);
  const uint32_t node = others[chance_.below(others.size())];
  switch (chance_.below(4)) {
    case 0:
      return drain({node}, begun);
    case 1:
      return remove(node, begun);
    case 2:
      return kill(node, begun);
    default:
      return replace_stopped(node, begun);
  }
}

/// A node comes: with the list of all, or knowing itself alone; it and the others are told in any order.
Status ChangingCluster::join(uint32_t node, const std::optional<Begun>& begun) {
  FARO_RETURN_IF_ERROR(enter(node));
  const std::string add = fmt::format("add {} {}", node, addresses_[node]);
  std::vector<uint32_t> all = members_;
  all.push_back(node);
  std::sort(all.begin(), all.end());
  const bool knows_all = chance_.one_in(2), is_told_first = chance_.one_in(2);
  const std::string open = "open " + list_of(knows_all ? all : std::vector<uint32_t>{node});
  if (is_told_first) FARO_RETURN_IF_ERROR(nodes_.ask(members_, add, "ok").status());
  nodes_.say(node, open);
  if (!is_told_first) FARO_RETURN_IF_ERROR(nodes_.ask(members_, add, "ok").status());
  FARO_RETURN_IF_ERROR(nodes_.hear(node, open, "open").status());
  if (!knows_all) {
    for (const uint32_t other : members_) {
      FARO_RETURN_IF_ERROR(
          nodes_.ask(node, fmt::format("add {} {}", other, addresses_[other]), "ok").status());
    }
  }
  FARO_RETURN_IF_ERROR(nodes_.ask(members_, fmt::format("await {}", node), "ok").status());
  for (const uint32_t other : members_)
    FARO_RETURN_IF_ERROR(nodes_.ask(node, fmt::format("await {}", other), "ok").status());
  members_ = std::move(all);
  ++progress_.joined;
  return hear_good(begun);
}

/// Nodes go in order: nothing fails.
Status ChangingCluster::drain(const std::vector<uint32_t>& leaving,
                              const std::optional<Begun>& begun) {
  for (const uint32_t node : leaving)
    FARO_RETURN_IF_ERROR(nodes_.ask(members_, fmt::format("drain {}", node), "ok").status());
  FARO_RETURN_IF_ERROR(hear_good(begun));
  for (const uint32_t node : leaving) {
    FARO_RETURN_IF_ERROR(nodes_.ask(members_, fmt::format("drained {}", node), "ok").status());
    FARO_RETURN_IF_ERROR(nodes_.ask(node, "close", "closed ").status());
    std::erase(members_, node);
    FARO_RETURN_IF_ERROR(forget_at(members_, node));
    ++progress_.drained;
  }
  return Status::Ok();
}

/// The others forget a node that lives.
Status ChangingCluster::remove(uint32_t node, const std::optional<Begun>& begun) {
  const base::Nanoseconds hit = now();
  const std::vector<uint32_t> others = members_but(node);
  FARO_RETURN_IF_ERROR(forget_at(others, node));
  ++progress_.removed.count;
  FARO_RETURN_IF_ERROR(hear_of_loss(begun, node, hit, progress_.removed));
  members_ = others;
  FARO_RETURN_IF_ERROR(queries_.hear_rest(node));
  return nodes_.ask(node, "close", "closed ").status();
}

Status ChangingCluster::kill(uint32_t node, const std::optional<Begun>& begun) {
  const base::Nanoseconds hit = now();
  nodes_[node].signal(SIGKILL);
  ++progress_.killed.count;
  const std::vector<uint32_t> others = members_but(node);
  // The others are told of it before they find out, or after.
  const bool is_told_first = chance_.one_in(2);
  if (is_told_first) FARO_RETURN_IF_ERROR(forget_at(others, node));
  FARO_RETURN_IF_ERROR(hear_of_loss(begun, node, hit, progress_.killed));
  if (!is_told_first) FARO_RETURN_IF_ERROR(forget_at(others, node));
  members_ = others;
  nodes_.forget(node);
  return Status::Ok();
}

/// Another process gets the number of one that stands still, and that wakes up then.
Status ChangingCluster::replace_stopped(uint32_t node, const std::optional<Begun>& begun) {
  const base::Nanoseconds hit = now();
  nodes_[node].signal(SIGSTOP);
  ++progress_.stopped.count;
  const std::vector<uint32_t> others = members_but(node);
  FARO_RETURN_IF_ERROR(forget_at(others, node));
  FARO_RETURN_IF_ERROR(hear_of_loss(begun, node, hit, progress_.stopped));
  members_ = others;
  const NodeProcess former = nodes_.let_go(node);
  FARO_RETURN_IF_ERROR(join(node, {}));
  former.signal(SIGCONT);
  return query_over_all();
}

Status ChangingCluster::hear_good(const std::optional<Begun>& begun) {
  return begun ? queries_.hear_good(*begun) : Status::Ok();
}

Status ChangingCluster::hear_of_loss(const std::optional<Begun>& begun, uint32_t node,
                                     base::Nanoseconds hit, Losses& losses) {
  uint32_t told = 0;
  return begun ? queries_.hear_of_loss(*begun, node, hit, losses, told) : Status::Ok();
}

Status ChangingCluster::forget_at(const std::vector<uint32_t>& others, uint32_t node) {
  return nodes_.ask(others, fmt::format("remove {}", node), "ok").status();
}

Status ChangingCluster::query_over_all() {
  FARO_ASSIGN_OR_RETURN(const Begun begun, queries_.begin(next_query_++, members_));
  return queries_.hear_good(begun);
}

/// Alone, it has nothing of those that are gone, once each of its workers has let go of their links.
Status ChangingCluster::look_at_witness() {
  FARO_RETURN_IF_ERROR(query_over_all());
  // The network thread gives back their memory with its next heartbeat.
  std::this_thread::sleep_for(std::chrono::milliseconds(options_.liveness_ms / 4));
  FARO_ASSIGN_OR_RETURN(const std::string heap, nodes_.ask(witness_, "look", "heap "));
  alone_heap_.look(std::strtoull(heap.c_str(), nullptr, 10));
  if (alone_heap_.grew())
    return broken("the heap of the witness, alone, has grown: " + alone_heap_.text());
  if (!alone_) alone_ = nodes_[witness_].usage();
  // Threads that have ended may still be shown for a while.
  const base::Nanoseconds deadline = now() + kSettledNs;
  for (;;) {
    const Usage usage = nodes_[witness_].usage();
    if (usage.descriptors <= alone_->descriptors + kLateDescriptors &&
        usage.threads <= alone_->threads)
      return Status::Ok();
    if (now() > deadline) {
      return broken(
          fmt::format("alone, the witness has {} descriptors and {} threads, {} and {} at first",
                      usage.descriptors, usage.threads, alone_->descriptors, alone_->threads));
    }
  }
}

}  // namespace faro::soak
