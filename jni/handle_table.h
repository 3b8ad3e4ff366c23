// HandleTable: handles of objects that any thread may use and remove.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "jni/owned_table.h"

namespace faro::jni {

/// Gives objects handles as OwnedTable does, but a caller that has found an object keeps it alive
/// as long as it holds the pointer, so that removing never pulls it from under a call. That costs a
/// lock.
///
/// Threads: any. Owns: an object until it is removed.
template <typename T>
class HandleTable {
 public:
  int64_t add(std::shared_ptr<T> object) {
    return table_.add(std::make_unique<std::shared_ptr<T>>(std::move(object)));
  }

  /// Null if it was removed, or never was.
  std::shared_ptr<T> find(int64_t handle) const {
    std::lock_guard lock(mutex_);
    const std::shared_ptr<T>* const found = table_.find(handle);
    return found == nullptr ? nullptr : *found;
  }

  /// The object, which nobody finds any more; null if it was removed before.
  std::shared_ptr<T> remove(int64_t handle) {
    std::lock_guard lock(mutex_);
    const std::unique_ptr<std::shared_ptr<T>> removed = table_.remove(handle);
    return removed == nullptr ? nullptr : std::move(*removed);
  }

 private:
  mutable std::mutex mutex_;  // between finding an object and sharing it nobody removes it
  OwnedTable<std::shared_ptr<T>> table_;
};

}  // namespace faro::jni
