#include "shuffle/overflow/operator_memory.h"

#include <algorithm>

#include "base/return_if_error.h"

namespace faro::shuffle {
namespace {

bool add_within(std::atomic<uint64_t>& used, uint64_t bytes, uint64_t limit) noexcept {
  uint64_t before = used.load(std::memory_order_relaxed);
  do {
    if (bytes > limit || before > limit - bytes) return false;
  } while (!used.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
  return true;
}

}  // namespace

Status OperatorMemory::check() {
  const std::lock_guard lock(check_mutex_);
  if (was_checked_) return Status::Ok();
  FARO_RETURN_IF_ERROR(check_());
  was_checked_ = true;
  return Status::Ok();
}

bool OperatorMemory::take_within(uint64_t bytes, uint64_t limit) noexcept {
  if (!add_within(used_, bytes, limit)) return false;
  const uint64_t used = used_bytes();
  uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < used && !peak_.compare_exchange_weak(peak, used, std::memory_order_relaxed)) {
  }
  return true;
}

bool OperatorMemory::take_of_overflow(uint64_t bytes) noexcept {
  return add_within(spilled_in_memory_, bytes, overflow_.limits().memory_bytes / 2);
}

Status OperatorMemory::spill(OverflowUsage& usage, std::span<const std::byte> bytes, Stored* last,
                             Stored& made) {
  if (last != nullptr && last->room_left() >= bytes.size()) return overflow_.append(*last, bytes);
  const uint64_t room = std::max<uint64_t>(bytes.size(), Overflow::kPackedBytes);
  const uint64_t most = Overflow::taken_in_memory(room);
  if (!take_of_overflow(most)) return overflow_.store_in_file(usage, bytes, room, made);
  const auto give_back = [&](uint64_t unused) {
    spilled_in_memory_.fetch_sub(unused, std::memory_order_relaxed);
  };
  try {
    const Status status = overflow_.store(usage, bytes, room, made);
    const bool in_memory = status.ok() && made.place == Stored::Place::memory;
    give_back(in_memory ? most - Overflow::taken_in_memory(made.room) : most);
    return status;
  } catch (...) {
    give_back(most);
    throw;
  }
}

void OperatorMemory::free(Stored& stored) noexcept {
  if (stored.place == Stored::Place::memory) {
    spilled_in_memory_.fetch_sub(Overflow::taken_in_memory(stored.room), std::memory_order_relaxed);
  }
  overflow_.free(stored);
}

}  // namespace faro::shuffle
