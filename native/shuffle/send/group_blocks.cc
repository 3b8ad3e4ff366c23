#include "shuffle/send/group_blocks.h"

#include "base/error.h"

namespace faro::shuffle {

Status GroupBlocks::check(const ShuffleSpec& spec, uint32_t receiver_count) {
  const std::vector<std::vector<uint32_t>>& groups = spec.groups;
  if (spec.delivery == Delivery::replicate && !groups.empty()) {
    return base::error(Code::invalid_argument,
                       "stage {}: {} groups with delivery = replicate, which has one receiver: all "
                       "listed workers; leave groups empty",
                       spec.stage, groups.size());
  }
  if (groups.size() > ShuffleSpec::kGroupLimit) {
    return base::error(Code::limit_exceeded, "stage {}: {} groups, of at most {}", spec.stage,
                       groups.size(), ShuffleSpec::kGroupLimit);
  }
  std::vector<size_t> named_by(receiver_count);  // the last group that names it, plus one
  for (size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].empty())
      return base::error(Code::invalid_argument, "stage {}: group {} is empty", spec.stage, g);
    for (const uint32_t member : groups[g]) {
      if (member >= named_by.size()) {
        return base::error(Code::invalid_argument,
                           "stage {}: group {}: receiver {} does not exist (0 … {})", spec.stage, g,
                           member, named_by.size() - 1);
      }
      if (std::exchange(named_by[member], g + 1) == g + 1) {
        return base::error(Code::invalid_argument, "stage {}: group {}: receiver {} is named twice",
                           spec.stage, g, member);
      }
    }
  }
  return Status::Ok();
}

Result<GroupBlocks> GroupBlocks::allocate(const ShuffleSpec& spec,
                                          const std::vector<std::vector<uint32_t>>& groups,
                                          uint32_t receiver_count, Overflow& overflow,
                                          OverflowUsage& usage, uint32_t block_bytes) {
  GroupBlocks made;
  LoneMembers alone(receiver_count);
  for (size_t g = 0; g < groups.size(); ++g) {
    if (alone.is_receiver(groups[g])) continue;
    made.blocks_.reserve(groups.size());
    Stored stored;
    const bool is_needed = spec.delivery == Delivery::replicate;
    const Status status = is_needed ? overflow.allocate(usage, block_bytes, stored)
                                    : overflow.allocate_in_memory(usage, block_bytes, stored);
    if (!status.ok() && is_needed) {
      return base::error(Code::overflow_exhausted, "stage {}: a broadcast has no block: {}",
                         spec.stage, status.message());
    }
    if (!status.ok()) {
      return base::error(Code::limit_exceeded, "stage {}: group {} of {} has no block: {}",
                         spec.stage, g, groups.size(), status.message());
    }
    made.blocks_.emplace_back(overflow, std::move(stored));
  }
  return made;
}

}  // namespace faro::shuffle
