#include "shuffle/query/stage_lists.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "faro/hash.h"

namespace faro::shuffle {
namespace {

// Workers of a list that a text names.
constexpr size_t kNamed = 16;

std::string named(const std::vector<uint32_t>& workers) {
  const std::span<const uint32_t> first(workers.data(), std::min(workers.size(), kNamed));
  const size_t more = workers.size() - first.size();
  return fmt::format("{}{}", fmt::join(first, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace

StageLists StageLists::of(const ShuffleSpec& spec) {
  std::vector<uint32_t> workers = spec.senders;
  std::sort(workers.begin(), workers.end());
  workers.push_back(UINT32_MAX);  // no worker: ends the senders
  workers.insert(workers.end(), spec.receivers.begin(), spec.receivers.end());
  if (spec.delivery != Delivery::worker) {
    workers.push_back(UINT32_MAX);  // ends the receivers
    workers.push_back(static_cast<uint32_t>(spec.delivery));
  }
  StageLists lists;
  lists.digest = hash_bytes(workers.data(), workers.size() * sizeof(uint32_t));
  lists.sender_count = static_cast<uint32_t>(spec.senders.size());
  lists.receiver_count = static_cast<uint32_t>(spec.receivers.size());
  lists.delivery = spec.delivery;
  lists.text = fmt::format("senders {}, receivers {}", named(spec.senders), named(spec.receivers));
  if (spec.delivery != Delivery::worker)
    lists.text += fmt::format(", delivery = {}", to_string(spec.delivery));
  return lists;
}

std::vector<uint32_t> members_of(const ShuffleSpec& spec) {
  std::vector<uint32_t> senders = spec.senders;
  std::vector<uint32_t> receivers = spec.receivers;
  std::sort(senders.begin(), senders.end());
  std::sort(receivers.begin(), receivers.end());
  std::vector<uint32_t> members;
  std::set_union(senders.begin(), senders.end(), receivers.begin(), receivers.end(),
                 std::back_inserter(members));
  return members;
}

}  // namespace faro::shuffle
