// Memory without a name that processes share, or that stays private: mapped ahead, unmapped by the
// destructor.
//
// Shared memory is a sealed memfd. No process can shrink it (accesses would raise SIGBUS) or unseal it, and
// it disappears with the last process that has it, even after kill -9. It is never sparse: all of it is
// allocated when it is made, so that missing memory is an error at that point and not a signal
// later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"
#include "faro/status.h"

namespace faro::transport::shm {

/// A page of memory at least; sizes of shared memory are multiples of it.
inline constexpr uint64_t kPageBytes = 4096;

/// Owns: a mapping. Movable, not copyable.
class Mapping {
 public:
  Mapping() noexcept = default;
  Mapping(Mapping&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    if (this != &other) {
      unmap();
      memory_ = std::exchange(other.memory_, {});
    }
    return *this;
  }
  ~Mapping() { unmap(); }

  std::byte* data() const noexcept { return memory_.data(); }
  uint64_t bytes() const noexcept { return memory_.size(); }

  /// Zeroed memory of this process alone. `what` is for messages, as everywhere here.
  /// Blocks: while the kernel clears the pages. Errors: resource_limit, naming the need.
  static Result<Mapping> allocate_private(uint64_t bytes, std::string_view what);
  /// Maps a memfd, all pages at once. Errors: resource_limit.
  static Result<Mapping> map(int memfd, uint64_t bytes, std::string_view what);

 private:
  static Result<Mapping> make(int flags, int fd, uint64_t bytes, std::string_view what);
  explicit Mapping(std::span<std::byte> memory) noexcept : memory_(memory) {}
  void unmap() noexcept;

  std::span<std::byte> memory_;
};

/// Makes a memfd of that many bytes (rounded up to pages), zeroed, allocated and sealed. `name` is
/// only seen in /proc/<pid>/maps. Blocks: while the kernel clears the pages. Errors:
/// resource_limit, naming need and limit; transport_unavailable if the kernel refuses memfds.
Result<base::UniqueFd> create_sealed_memfd(const char* name, uint64_t bytes, std::string_view what);

/// Whether a descriptor that another process sent is a memfd that was made like that and has at
/// least that many bytes
/// (`exactly`: neither more). Errors: protocol_error, saying what is wrong with it.
Status check_sealed_memfd(int fd, uint64_t bytes, bool exactly, std::string_view what);

}  // namespace faro::transport::shm
