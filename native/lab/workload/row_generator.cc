#include "lab/workload/row_generator.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "lab/workload/integer_rows.h"

namespace faro::workload {
namespace {

std::vector<uint32_t> resolve(const std::vector<uint32_t>& named, uint32_t count) {
  if (!named.empty()) return named;
  std::vector<uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

std::vector<uint32_t> receivers_of(const StagePlan& plan, uint32_t worker_count) {
  if (plan.delivery == Delivery::worker) return resolve(plan.receivers, worker_count);
  if (plan.delivery == Delivery::replicate) return {plan.receivers.front()};
  std::vector<uint32_t> first;
  for (const std::vector<uint32_t>& workers : plan.nodes) first.push_back(workers.front());
  return first;
}

}  // namespace

RowGenerator::RowGenerator(uint64_t seed, StagePlan plan, uint32_t worker_count)
    : seed_(seed),
      plan_(std::move(plan)),
      senders_(resolve(plan_.senders, worker_count)),
      receivers_(receivers_of(plan_, worker_count)) {
  if (!plan_.grouped) return;
  for (const uint32_t sender : senders_) groups_[sender] = draw_groups(sender);
}

// Up to five, of any receivers, so that they overlap, and some have one; a sender of four has none.
RowGenerator::Groups RowGenerator::draw_groups(uint32_t sender) const {
  const auto draw = [&](uint64_t what, uint64_t which) {
    return mix(seed_, number(), sender, what, which);
  };
  if (draw(13, 0) % 4 == 0) return {};
  Groups groups(1 + draw(14, 0) % 5);
  for (size_t g = 0; g < groups.size(); ++g) {
    const uint64_t members = draw(15, g);
    for (uint32_t r = 0; r < receivers_.size(); ++r) {
      if ((members >> (r % 61) & 1) != 0) groups[g].push_back(r);
    }
    if (groups[g].empty()) groups[g].push_back(static_cast<uint32_t>(members % receivers_.size()));
  }
  return groups;
}

const RowGenerator::Groups& RowGenerator::groups(uint32_t sender) const {
  static const Groups kNoGroups;
  const auto found = groups_.find(sender);
  return found == groups_.end() ? kNoGroups : found->second;
}

uint32_t RowGenerator::target_count(uint32_t sender) const {
  const Groups& all = groups(sender);
  return static_cast<uint32_t>(all.empty() ? receivers_.size() : all.size());
}

std::vector<uint32_t> RowGenerator::targets_of(uint32_t receiver, uint32_t sender) const {
  const Groups& all = groups(sender);
  if (all.empty()) return {receiver};
  std::vector<uint32_t> targets;
  for (uint32_t g = 0; g < all.size(); ++g) {
    if (std::ranges::find(all[g], receiver) != all[g].end()) targets.push_back(g);
  }
  return targets;
}

bool RowGenerator::sends(uint32_t worker) const {
  return std::find(senders_.begin(), senders_.end(), worker) != senders_.end();
}

uint32_t RowGenerator::receiver_of(uint32_t worker) const {
  if (plan_.delivery == Delivery::replicate)
    return std::ranges::count(plan_.receivers, worker) > 0 ? 0 : 1;
  if (plan_.delivery == Delivery::node) {
    const auto has_worker = [worker](const std::vector<uint32_t>& workers) {
      return std::ranges::find(workers, worker) != workers.end();
    };
    return static_cast<uint32_t>(std::ranges::find_if(plan_.nodes, has_worker) -
                                 plan_.nodes.begin());
  }
  return static_cast<uint32_t>(std::find(receivers_.begin(), receivers_.end(), worker) -
                               receivers_.begin());
}

uint64_t RowGenerator::key(uint32_t sender, uint64_t row) const {
  if (plan_.spread == Spread::one_key) return mix(seed_, plan_.stage);
  return mix(seed_, number(), sender, row);
}

uint64_t RowGenerator::length(uint32_t sender, uint64_t row) const {
  if (plan_.row_bytes != 0) return plan_.row_bytes;
  const uint64_t span = plan_.most_bytes - plan_.least_bytes + 1;
  return plan_.least_bytes + mix(seed_, number(), sender, row, 7) % span;
}

void RowGenerator::fill(uint32_t sender, uint64_t row, std::span<std::byte> bytes) const {
  const uint64_t base = mix(seed_, number(), sender, row, 8);
  uint64_t word = key(sender, row);
  for (size_t at = 0; at < bytes.size(); at += sizeof word) {
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
    word = (base + at) * 0x9E3779B97F4A7C15u;
  }
}

void RowGenerator::destinations(uint32_t sender, uint64_t row, std::vector<uint32_t>& to) const {
  const uint32_t all = target_count(sender);
  to.clear();
  switch (plan_.spread) {
    case Spread::by_key:
    case Spread::one_key:
      to.push_back(destination_of<FinalizerHash>(key(sender, row), all));
      return;
    case Spread::broadcast:
      for (uint32_t r = 0; r < all; ++r) to.push_back(r);
      return;
    case Spread::multicast: {
      const uint64_t draw = key(sender, row);
      for (uint32_t r = 0; r < all; ++r) {
        if ((draw >> (r % 61) & 1) != 0) to.push_back(r);
      }
      if (to.empty()) to.push_back(static_cast<uint32_t>(draw % all));
      return;
    }
  }
}

bool RowGenerator::is_for(uint32_t target, uint32_t sender, uint64_t row) const {
  const uint32_t all = target_count(sender);
  switch (plan_.spread) {
    case Spread::by_key:
    case Spread::one_key:
      return destination_of<FinalizerHash>(key(sender, row), all) == target;
    case Spread::broadcast:
      return true;
    case Spread::multicast: {
      std::vector<uint32_t> to;
      destinations(sender, row, to);
      return std::find(to.begin(), to.end(), target) != to.end();
    }
  }
  return false;
}

uint64_t RowGenerator::next_for(uint32_t target, uint32_t sender, uint64_t row) const {
  // With one key all rows are for one target: the others would look forever.
  if (plan_.spread == Spread::one_key && !is_for(target, sender, row)) return kNone;
  // By chance a row is for this target after a few target counts; the bound only keeps a broken
  // spread from going on forever.
  for (uint64_t tries = 0; tries < 1'000'000 && !is_for(target, sender, row); ++tries) ++row;
  return row;
}

}  // namespace faro::workload
