// The rings of a link and direction: one contiguous region of private memory, allocated ahead.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/kept_addresses.h"
#include "ring/layout.h"

namespace faro::transport::tcp {

/// Owns the mapping. Every page is there from the start, so that no row pays for a page fault.
class RingRegion {
 public:
  /// What the rings take: whole pages.
  static uint64_t bytes_of(const ring::Layout& layout) {
    constexpr uint64_t kPageBytes = 4096;
    return (layout.extent_bytes() + kPageBytes - 1) / kPageBytes * kPageBytes;
  }
  RingRegion() = default;
  explicit RingRegion(const ring::Layout& layout) : layout_(layout), bytes_(bytes_of(layout)) {
    void* const mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (mapped != MAP_FAILED) base_ = static_cast<std::byte*>(mapped);
  }
  RingRegion(RingRegion&& other) noexcept
      : layout_(other.layout_), bytes_(other.bytes_), base_(std::exchange(other.base_, nullptr)) {}
  RingRegion& operator=(RingRegion&& other) noexcept {
    std::swap(layout_, other.layout_);
    std::swap(bytes_, other.bytes_);
    std::swap(base_, other.base_);
    return *this;
  }
  ~RingRegion() {
    if (base_ != nullptr) base::unmap(base_, bytes_);
  }

  /// Whether the memory could be had (errno says why not, right after construction).
  bool ok() const { return base_ != nullptr; }
  const ring::Layout& layout() const { return layout_; }
  std::byte* base(uint32_t ring) const { return base_ + layout_.base_offset(ring); }

 private:
  ring::Layout layout_;
  size_t bytes_ = 0;
  std::byte* base_ = nullptr;
};

}  // namespace faro::transport::tcp
