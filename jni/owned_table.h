// OwnedTable: the numbers by which Java names native objects; found without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace faro::jni {

/// Gives each object a handle, (generation << 32) | place, that is never given twice: a handle that
/// was removed never finds anything again, whatever has taken its place since.
///
/// For objects that are used and removed by their owner alone (Java checks the thread before each
/// call): then nobody can remove an object that another call is inside of, and finding it costs
/// three loads. Others: HandleTable.
///
/// Who writes what: a slot's object, then its generation with release (add), or its generation with
/// release, then the object (remove), under the mutex. The release of the generation is the partner
/// of the acquire in `find`.
///
/// Threads: any. Owns: the objects. Slots are given back with the table only.
template <typename T, uint32_t kLastGeneration = 0x7fffffff>  // handles are positive
class OwnedTable {
 public:
  OwnedTable() = default;
  ~OwnedTable() {
    for (const auto& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
  }
  OwnedTable(const OwnedTable&) = delete;
  OwnedTable& operator=(const OwnedTable&) = delete;

  int64_t add(std::unique_ptr<T> object) {
    std::lock_guard lock(mutex_);
    uint32_t place;
    if (!free_.empty()) {
      place = free_.back();
      free_.pop_back();
    } else {
      place = count_++;
      std::atomic<Slot*>& chunk = chunks_.at(place / kChunk);
      if (place % kChunk == 0) chunk.store(new Slot[kChunk], std::memory_order_release);
    }
    Slot& slot = *slot_at(place);
    const uint32_t generation = ++slot.last_generation;
    slot.object = std::move(object);
    slot.generation.store(generation, std::memory_order_release);
    return (int64_t{generation} << 32) | place;
  }

  /// Null if it was removed, or never was.
  T* find(int64_t handle) const noexcept {
    Slot* const slot = slot_of(handle);
    return slot == nullptr ? nullptr : slot->object.get();
  }

  /// The object, which nobody finds any more; null if it was removed before.
  std::unique_ptr<T> remove(int64_t handle) {
    std::lock_guard lock(mutex_);
    Slot* const slot = slot_of(handle);
    if (slot == nullptr) return nullptr;
    slot->generation.store(0, std::memory_order_release);
    // A place whose generations are used up is not used again.
    if (slot->last_generation != kLastGeneration) free_.push_back(static_cast<uint32_t>(handle));
    return std::move(slot->object);
  }

 private:
  static constexpr uint32_t kChunk = 256;

  struct Slot {
    std::atomic<uint32_t> generation{0};  // 0: empty
    uint32_t last_generation = 0;
    std::unique_ptr<T> object;
  };

  Slot* slot_at(uint32_t place) const noexcept {
    if (place / kChunk >= chunks_.size()) return nullptr;
    Slot* const chunk = chunks_[place / kChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : chunk + place % kChunk;
  }
  Slot* slot_of(int64_t handle) const noexcept {
    const auto generation = static_cast<uint32_t>(handle >> 32);
    Slot* const slot = slot_at(static_cast<uint32_t>(handle));
    if (slot == nullptr || generation == 0) return nullptr;
    return slot->generation.load(std::memory_order_acquire) == generation ? slot : nullptr;
  }

  std::array<std::atomic<Slot*>, 4096> chunks_{};  // a million objects
  std::mutex mutex_;
  uint32_t count_ = 0;
  std::vector<uint32_t> free_;
};

}  // namespace faro::jni
