// SimSpillFile: an overflow file in memory whose disk can become full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "shuffle/overflow/spill_file.h"

namespace faro::simulation {

/// The disk of one node, and what was found wrong with how it is used. Outlives the node's files: also
/// that of a node which was started again.
struct SimDisk {
  /// The disk is full, for everything from now on.
  bool full = false;
  /// Bytes that any file on it may have.
  uint64_t limit_bytes = UINT64_MAX;
  uint64_t used_bytes = 0;
  uint64_t peak_bytes = 0;
  uint64_t refused_count = 0;  // allocations, because it was full
  /// The first misuse: an extent that is freed twice, written beyond its end, or never freed.
  std::string misuse;
};

/// Threads: its world's.
class SimSpillFile final : public shuffle::SpillFile {
 public:
  explicit SimSpillFile(SimDisk& disk) : disk_(disk) {}
  ~SimSpillFile() override;

  Result<shuffle::Extent> allocate(uint64_t bytes) override;
  void free(const shuffle::Extent& extent) noexcept override;
  Status write(const shuffle::Extent& extent, uint64_t at,
               std::span<const std::byte> bytes) override;
  Status read(const shuffle::Extent& extent, std::span<std::byte> bytes) override;
  std::byte* map(const shuffle::Extent& extent) override;
  void unmap(const shuffle::Extent& extent, std::byte* memory) noexcept override;
  uint64_t used_bytes() const override { return disk_.used_bytes; }
  uint64_t peak_bytes() const override { return disk_.peak_bytes; }

 private:
  struct Part {
    std::unique_ptr<std::byte[]> memory;
    uint64_t bytes = 0;
    bool mapped = false;
  };
  /// Null, and noted, if there is none or it is shorter.
  Part* find(const shuffle::Extent& extent, uint64_t bytes, const char* what);
  void misused(std::string text);

  SimDisk& disk_;
  std::map<uint64_t, Part> parts_;  // by offset; none is used twice
  uint64_t end_ = 0;
};

}  // namespace faro::simulation
