#include "shuffle/overflow.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

namespace faro::shuffle {
namespace {

std::byte* allocate_bytes(uint64_t bytes) noexcept {
  // Rows are handed out at 16-byte alignment (Batch::rows).
  return static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) & ~uint64_t{63}));
}

Status out_of_memory(uint64_t bytes) {
  return Status(Code::overflow_exhausted, fmt::format("no memory for {} bytes of overflow", bytes));
}

}  // namespace

bool Overflow::take_memory(uint64_t bytes) noexcept {
  uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_ || used > limit_ - bytes) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < used + bytes &&
         !peak_.compare_exchange_weak(peak, used + bytes, std::memory_order_relaxed)) {
  }
  show_memory();
  return true;
}

void Overflow::give_memory(uint64_t bytes) noexcept {
  used_.fetch_sub(bytes, std::memory_order_relaxed);
  show_memory();
}

Result<Extent> Overflow::take_file(uint64_t bytes) {
  Result<Extent> extent = file_->allocate(bytes);
  show_file();
  return extent;
}

void Overflow::give_file(const Extent& extent) noexcept {
  file_->free(extent);
  show_file();
}

// Of two threads the slower one may leave what was true a moment ago; the next change puts it right.
void Overflow::show_memory() noexcept {
  if (counters_ == nullptr) return;
  counters::set(counters_->overflow_memory_bytes, memory_bytes());
  counters::set(counters_->overflow_memory_peak_bytes, memory_peak_bytes());
}

void Overflow::show_file() noexcept {
  if (counters_ == nullptr) return;
  counters::set(counters_->overflow_file_bytes, file_->used_bytes());
  counters::set(counters_->overflow_file_peak_bytes, file_->peak_bytes());
}

Status Overflow::allocate(OverflowUsage& usage, uint64_t bytes, bool may_map, Stored& out) {
  if (take_memory(bytes)) {
    std::byte* memory = allocate_bytes(bytes);
    if (memory == nullptr) {
      give_memory(bytes);
      return out_of_memory(bytes);
    }
    out = Stored{Stored::Place::memory, memory, {}, bytes, &usage};
  } else {
    if (!may_map) {
      return Status(
          Code::overflow_exhausted,
          fmt::format(
              "overflow memory is full: {} of overflow.memory_bytes = {} in use, {} more needed",
              memory_bytes(), limit_, bytes));
    }
    Result<Extent> extent = take_file(bytes);
    if (!extent.ok()) return extent.status();
    std::byte* memory = file_->map(*extent);
    if (memory == nullptr) {
      give_file(*extent);
      return out_of_memory(bytes);
    }
    out = Stored{Stored::Place::mapped, memory, *extent, bytes, &usage};
  }
  usage.bytes.fetch_add(bytes, std::memory_order_relaxed);
  return Status::Ok();
}

Status Overflow::store(OverflowUsage& usage, std::span<const std::byte> bytes, Stored& out) {
  if (allocate(usage, bytes.size(), false, out).ok()) {
    std::memcpy(out.memory, bytes.data(), bytes.size());
    return Status::Ok();
  }
  Result<Extent> extent = take_file(bytes.size());
  if (!extent.ok()) {
    return Status(Code::overflow_exhausted,
                  fmt::format("{}; memory too: {} of overflow.memory_bytes = {} in use",
                              extent.status().message(), memory_bytes(), limit_));
  }
  if (Status status = file_->write(*extent, bytes); !status.ok()) {
    give_file(*extent);
    return status;
  }
  out = Stored{Stored::Place::file, nullptr, *extent, bytes.size(), &usage};
  usage.bytes.fetch_add(bytes.size(), std::memory_order_relaxed);
  return Status::Ok();
}

Status Overflow::spill(Stored& stored) {
  if (stored.place != Stored::Place::memory) return Status::Ok();
  Result<Extent> extent = take_file(stored.bytes);
  if (!extent.ok()) return extent.status();
  if (Status status = file_->write(*extent, {stored.memory, stored.bytes}); !status.ok()) {
    give_file(*extent);
    return status;
  }
  std::free(stored.memory);
  give_memory(stored.bytes);
  stored.place = Stored::Place::file;
  stored.memory = nullptr;
  stored.extent = *extent;
  return Status::Ok();
}

Status Overflow::load(Stored& stored) {
  if (stored.place != Stored::Place::file || stored.memory != nullptr) return Status::Ok();
  std::byte* memory = allocate_bytes(stored.bytes);
  if (memory == nullptr) return out_of_memory(stored.bytes);
  if (Status status = file_->read(stored.extent, {memory, stored.bytes}); !status.ok()) {
    std::free(memory);
    return status;
  }
  stored.memory = memory;
  return Status::Ok();
}

void Overflow::free(Stored& stored) noexcept {
  switch (stored.place) {
    case Stored::Place::none:
      return;
    case Stored::Place::memory:
      std::free(stored.memory);
      give_memory(stored.bytes);
      break;
    case Stored::Place::file:
      std::free(stored.memory);
      give_file(stored.extent);
      break;
    case Stored::Place::mapped:
      file_->unmap(stored.extent, stored.memory);
      give_file(stored.extent);
      break;
  }
  stored.usage->bytes.fetch_sub(stored.bytes, std::memory_order_relaxed);
  stored = Stored{};
}

}  // namespace faro::shuffle
