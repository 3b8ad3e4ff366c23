#include "lab/simulation/sim_spill_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace faro::simulation {

using shuffle::Extent;

SimSpillFile::~SimSpillFile() {
  if (!parts_.empty()) misused(fmt::format("{} extents were never freed", parts_.size()));
  for (const auto& [offset, part] : parts_) disk_.used_bytes -= part.bytes;
}

Result<Extent> SimSpillFile::allocate(uint64_t bytes) {
  if (disk_.full || bytes > disk_.limit_bytes || disk_.used_bytes > disk_.limit_bytes - bytes) {
    ++disk_.refused_count;
    return Status(Code::overflow_exhausted,
                  fmt::format("the overflow file cannot grow from {} by {} bytes: no space left",
                              disk_.used_bytes, bytes));
  }
  const Extent extent{end_, bytes};
  end_ += std::max<uint64_t>(bytes, 1);
  Part& part = parts_[extent.offset];
  part.memory = std::make_unique<std::byte[]>(bytes);
  part.bytes = bytes;
  disk_.used_bytes += bytes;
  disk_.peak_bytes = std::max(disk_.peak_bytes, disk_.used_bytes);
  return extent;
}

void SimSpillFile::free(const Extent& extent) noexcept {
  const Part* const part = find(extent, extent.bytes, "freed");
  if (part == nullptr) return;
  if (part->mapped) misused(fmt::format("the extent at {} is freed while mapped", extent.offset));
  disk_.used_bytes -= part->bytes;
  parts_.erase(extent.offset);
}

Status SimSpillFile::write(const Extent& extent, uint64_t at, std::span<const std::byte> bytes) {
  if (Part* const part = find(extent, at + bytes.size(), "written"))
    std::copy(bytes.begin(), bytes.end(), part->memory.get() + at);
  return Status::Ok();
}

Status SimSpillFile::read(const Extent& extent, std::span<std::byte> bytes) {
  if (const Part* const part = find(extent, bytes.size(), "read"))
    std::copy_n(part->memory.get(), bytes.size(), bytes.begin());
  return Status::Ok();
}

std::byte* SimSpillFile::map(const Extent& extent) {
  Part* const part = find(extent, extent.bytes, "mapped");
  if (part == nullptr) return nullptr;
  part->mapped = true;
  return part->memory.get();
}

void SimSpillFile::unmap(const Extent& extent, std::byte*) noexcept {
  if (Part* const part = find(extent, extent.bytes, "unmapped")) part->mapped = false;
}

SimSpillFile::Part* SimSpillFile::find(const Extent& extent, uint64_t bytes, const char* what) {
  const auto found = parts_.find(extent.offset);
  if (found != parts_.end() && bytes <= found->second.bytes) return &found->second;
  misused(
      fmt::format("{} bytes at {} are {}, which are not allocated", bytes, extent.offset, what));
  return nullptr;
}

void SimSpillFile::misused(std::string text) {
  if (disk_.misuse.empty()) disk_.misuse = std::move(text);
}

}  // namespace faro::simulation
