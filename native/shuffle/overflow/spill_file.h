// SpillFile: where rows go that memory has no room for. A file without a name, of extents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "faro/status.h"

namespace faro::shuffle {

/// Space in a spill file is given out in multiples of this.
inline constexpr uint64_t kSpillBlock = 4096;

/// What `bytes` bytes occupy.
constexpr uint64_t spill_bytes(uint64_t bytes) {
  return (bytes + kSpillBlock - 1) & ~(kSpillBlock - 1);
}

/// A part of a spill file.
struct Extent {
  uint64_t offset = 0;
  uint64_t bytes = 0;  // what was asked for; occupies spill_bytes of it
};

/// Space is reserved (posix_fallocate) before it is used, so that a full disk is an error here and
/// not a signal or a lost row later (native/DESIGN.md#hc-14). The file is made when first needed, has no name, and shrinks
/// to nothing when unused.
///
/// Injected, so that the simulation can make disks full.
class SpillFile {
 public:
  virtual ~SpillFile() = default;
  /// Errors: overflow_exhausted, naming the limit or the file system's answer.
  virtual Result<Extent> allocate(uint64_t bytes) = 0;
  virtual void free(const Extent& extent) noexcept = 0;
  /// From `at` on.
  virtual Status write(const Extent& extent, uint64_t at, std::span<const std::byte> bytes) = 0;
  /// From the beginning.
  virtual Status read(const Extent& extent, std::span<std::byte> bytes) = 0;
  /// Maps an extent (its space is reserved) for writing and reading; nullptr if impossible.
  virtual std::byte* map(const Extent& extent) = 0;
  virtual void unmap(const Extent& extent, std::byte* memory) noexcept = 0;
  virtual uint64_t used_bytes() const = 0;
  virtual uint64_t peak_bytes() const = 0;
};

/// Whether a spill file can be made in `folder`. Errors: config_invalid, with overflow.folder, its
/// value and the reason.
Status check_spill_folder(const std::string& folder);

/// A file in `folder` of at most `limit_bytes`. Threads: any (a lock; this is never the row path).
std::unique_ptr<SpillFile> make_spill_file(std::string folder, uint64_t limit_bytes);

}  // namespace faro::shuffle
