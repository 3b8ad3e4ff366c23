// FixedArray: objects in one piece of memory that is made once, for as many as there will be. They are never moved, so that
// their addresses can be given out, and need not be movable.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <utility>

namespace faro::base {

/// Threads: as T; emplace_back: one, before all else. Owns: the objects.
template <typename T>
class FixedArray {
 public:
  explicit FixedArray(size_t capacity)
      : capacity_(capacity), memory_(std::allocator<T>().allocate(capacity)) {}
  ~FixedArray() {
    std::destroy_n(memory_, size_);
    std::allocator<T>().deallocate(memory_, capacity_);
  }
  FixedArray(const FixedArray&) = delete;
  FixedArray& operator=(const FixedArray&) = delete;

  /// Behind the others; there is room for it.
  template <typename... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    assert(size_ < capacity_);
    T& made = *std::construct_at(memory_ + size_, std::forward<Arguments>(arguments)...);
    ++size_;
    return made;
  }
  size_t size() const noexcept { return size_; }
  T* begin() noexcept { return memory_; }
  T* end() noexcept { return memory_ + size_; }
  T& operator[](size_t index) noexcept { return memory_[index]; }
  const T& operator[](size_t index) const noexcept { return memory_[index]; }

 private:
  const size_t capacity_;
  T* const memory_;
  size_t size_ = 0;
};

}  // namespace faro::base
