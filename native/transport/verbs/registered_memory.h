// RegisteredMemory: pages that a device may read or write.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "faro/status.h"
#include "transport/verbs/device.h"

namespace faro::transport::verbs {

/// How the memory may be used. Never with relaxed ordering: a notification must not overtake its data.
enum class Access {
  local_read,    // the device sends from it
  local_write,   // the device receives into it
  remote_write,  // the peer writes there; nothing else of this process can be reached
};

/// The bytes that are pinned when a region of this size is registered.
uint64_t pinned_bytes(uint64_t bytes, bool huge_pages);

/// Owns the mapping and its registration; the device outlives both. Not inherited by forked
/// processes, whose copies would take the pages away from the device.
class RegisteredMemory {
 public:
  /// Maps zeroed pages and registers them. Errors: resource_limit with need and limit.
  static Result<RegisteredMemory> make(std::shared_ptr<Device> device, uint64_t bytes,
                                       Access access, bool huge_pages);
  /// Memory that is not registered with any device, for a test's queue pairs, which find it by this key.
  static Result<RegisteredMemory> unregistered_for_test(uint64_t bytes, uint32_t key);
  RegisteredMemory() = default;
  RegisteredMemory(RegisteredMemory&& other) noexcept { swap(other); }
  RegisteredMemory& operator=(RegisteredMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~RegisteredMemory();

  /// Takes its keys away, then registers it again: what had the old ones cannot reach it any more. Its bytes stay. No
  /// queue pair uses it. Errors: as of make; then nothing reaches it.
  Status register_anew();

  std::byte* base() const noexcept { return base_; }
  uint64_t bytes() const noexcept { return bytes_; }
  uint32_t local_key() const noexcept { return local_key_; }
  uint32_t remote_key() const noexcept { return remote_key_; }

 private:
  Status map(uint64_t bytes, bool huge_pages);
  Status enter();
  void swap(RegisteredMemory& other) noexcept;

  std::shared_ptr<Device> device_;  // null: unregistered
  Access access_ = Access::local_read;
  std::byte* base_ = nullptr;
  uint64_t bytes_ = 0;   // asked for
  uint64_t mapped_ = 0;  // whole pages
  ibv_mr* region_ = nullptr;
  uint32_t local_key_ = 0;
  uint32_t remote_key_ = 0;
};

}  // namespace faro::transport::verbs
