// HandleTable: the numbers by which Java names native objects.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace faro::jni {

/// Gives each object a handle, (generation << 32) | place, that is never given twice: a handle that
/// was removed finds nothing for ever, whatever has taken its place since.
///
/// Threads: any. Owns: an object until it is removed; a caller that has found it keeps it alive as
/// long as it holds the pointer, so that removing never pulls it from under a call.
template <typename T>
class HandleTable {
 public:
  int64_t add(std::shared_ptr<T> object) {
    std::lock_guard lock(mutex_);
    uint32_t place;
    if (free_.empty()) {
      place = static_cast<uint32_t>(slots_.size());
      slots_.emplace_back();
    } else {
      place = free_.back();
      free_.pop_back();
    }
    slots_[place].object = std::move(object);
    return (int64_t{slots_[place].generation} << 32) | place;
  }

  /// Null if it was removed, or never was.
  std::shared_ptr<T> find(int64_t handle) const {
    std::lock_guard lock(mutex_);
    const Slot* slot = slot_of(handle);
    return slot == nullptr ? nullptr : slot->object;
  }

  /// The object, which nobody finds any more; null if it was removed before.
  std::shared_ptr<T> remove(int64_t handle) {
    std::lock_guard lock(mutex_);
    auto* slot = const_cast<Slot*>(slot_of(handle));
    if (slot == nullptr) return nullptr;
    std::shared_ptr<T> object = std::move(slot->object);
    slot->object = nullptr;
    // A place whose generations are used up is not used again.
    if (++slot->generation != kGenerationLimit) free_.push_back(static_cast<uint32_t>(handle));
    return object;
  }

 private:
  static constexpr uint32_t kGenerationLimit = 0x7fffffff;  // handles are positive

  struct Slot {
    uint32_t generation = 1;  // handles are not zero
    std::shared_ptr<T> object;
  };

  const Slot* slot_of(int64_t handle) const {
    const auto place = static_cast<uint32_t>(handle);
    if (place >= slots_.size()) return nullptr;
    const Slot& slot = slots_[place];
    return slot.generation == handle >> 32 && slot.object != nullptr ? &slot : nullptr;
  }

  mutable std::mutex mutex_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
};

}  // namespace faro::jni
