#include "shuffle/overflow/overflow.h"

#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/planted.h"

namespace faro::shuffle {

using base::Plant;
using base::planted;  // false, except in the test that plants bugs: base/planted.h

namespace {

// Rows are handed out at 16-byte alignment (Batch::rows).
static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= 16);

std::byte* allocate_bytes(uint64_t bytes) noexcept {
  return static_cast<std::byte*>(::operator new(bytes, std::nothrow));
}
void free_bytes(std::byte* memory) noexcept { ::operator delete(memory); }

// Without what describes it.
constexpr uint64_t memory_of(uint64_t room) {
  return Overflow::taken_in_memory(room) - Overflow::kDescriptionBytes;
}

static_assert(sizeof(SharedBlock) + Overflow::kAllocatorBytes <= Overflow::kDescriptionBytes);

// Beside kDescriptionBytes.
uint64_t taken_by(const Stored& stored) {
  return stored.place == Stored::Place::memory ? memory_of(stored.room) : stored.extent.bytes;
}

// There is not even room to describe a part of the file, if there is one.
Status no_room_to_describe(uint64_t bytes, const OverflowLimits& limits, uint64_t memory_used,
                           uint64_t file_used) {
  if (limits.file_bytes == 0) {
    return base::error(
        Code::overflow_exhausted,
        "overflow is full: {} of overflow.memory_bytes = {} in use, {} more needed, and there is "
        "no file (overflow.file_bytes = 0); raise either of them",
        memory_used, limits.memory_bytes, Overflow::taken_in_memory(bytes));
  }
  return base::error(
      Code::overflow_exhausted,
      "the overflow file has too many small parts: {} bytes of it are in use, and what describes "
      "them has filled the memory for that, {} bytes = overflow.memory_bytes = {} and a part of "
      "overflow.file_bytes = {}; raise either of them",
      file_used, limits.most_memory_bytes(), limits.memory_bytes, limits.file_bytes);
}

}  // namespace

bool Overflow::is_above_query_limit(const OverflowUsage& usage, uint64_t bytes) const noexcept {
  if (limits_.query_bytes == 0) return false;
  const uint64_t used = usage.bytes.load(std::memory_order_relaxed);
  const uint64_t taken = bytes > UINT64_MAX / 2 ? bytes : spill_bytes(bytes) + kDescriptionBytes;
  return taken > limits_.query_bytes || used > limits_.query_bytes - taken;
}

Status Overflow::above_query_limit(const OverflowUsage& usage, uint64_t bytes) const {
  return base::error(Code::overflow_exhausted,
                     "the query has {} of overflow.query_limit_bytes = {} spilled, {} more needed",
                     usage.bytes.load(std::memory_order_relaxed), limits_.query_bytes, bytes);
}

bool Overflow::charge(OverflowUsage& usage, uint64_t bytes) noexcept {
  uint64_t used = usage.bytes.load(std::memory_order_relaxed);
  do {
    if (limits_.query_bytes != 0 &&
        (bytes > limits_.query_bytes || used > limits_.query_bytes - bytes))
      return false;
  } while (!usage.bytes.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

bool Overflow::take_memory(uint64_t bytes, uint64_t limit) noexcept {
  uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit || used > limit - bytes) return false;
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

// Where two threads do so the slower one may leave what was true a moment ago; the next change puts
// it right.
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

bool Overflow::allocate_memory(OverflowUsage& usage, uint64_t bytes, uint64_t room, Need need,
                               Stored& out) noexcept {
  if (room > limits_.memory_bytes) return false;  // also what could not be rounded up
  const uint64_t taken = memory_of(room) + kDescriptionBytes;
  if (!charge(usage, taken)) return false;
  const uint64_t spared =
      need == Need::plenty
          ? std::min(usage.bytes.load(std::memory_order_relaxed) / 2, limits_.memory_bytes)
          : 0;
  if (take_memory(taken, limits_.memory_bytes - spared)) {
    if (std::byte* const memory = allocate_bytes(room); memory != nullptr) {
      out = Stored{Stored::Place::memory, memory, {}, bytes, room, &usage};
      return true;
    }
    give_memory(taken);
  }
  usage.bytes.fetch_sub(taken, std::memory_order_relaxed);
  return false;
}

Status Overflow::allocate_file(OverflowUsage& usage, uint64_t bytes, uint64_t room, Stored& out) {
  if (room > UINT64_MAX / 2) {
    return base::error(Code::overflow_exhausted, "{} bytes are more than overflow can hold", room);
  }
  uint64_t whole = spill_bytes(room);
  if (!charge(usage, whole + kDescriptionBytes)) {
    whole = spill_bytes(bytes);
    if (!charge(usage, whole + kDescriptionBytes)) return above_query_limit(usage, whole);
  }
  const auto uncharge = [&] {
    usage.bytes.fetch_sub(whole + kDescriptionBytes, std::memory_order_relaxed);
  };
  if (!take_memory(kDescriptionBytes, limits_.most_memory_bytes())) {
    uncharge();
    return no_room_to_describe(bytes, limits_, memory_bytes(), file_->used_bytes());
  }
  try {
    Result<Extent> extent = take_file(whole);
    if (extent.ok()) {
      out = Stored{Stored::Place::file, nullptr, *extent, bytes, whole, &usage};
      return Status::Ok();
    }
    give_memory(kDescriptionBytes);
    uncharge();
    return base::error(Code::overflow_exhausted,
                       "{}; memory too: {} of overflow.memory_bytes = {} in use",
                       extent.status().message(), memory_bytes(), limits_.memory_bytes);
  } catch (...) {
    give_memory(kDescriptionBytes);
    uncharge();
    throw;
  }
}

Status Overflow::allocate(OverflowUsage& usage, uint64_t bytes, Stored& out) {
  if (allocate_memory(usage, bytes, bytes, Need::any, out)) return Status::Ok();
  Stored made;
  FARO_RETURN_IF_ERROR(allocate_file(usage, bytes, bytes, made));
  made.memory = file_->map(made.extent);
  if (made.memory == nullptr) {
    free(made);
    return base::error(Code::overflow_exhausted, "{} bytes of the overflow file cannot be mapped",
                       bytes);
  }
  made.place = Stored::Place::mapped;
  out = made;
  return Status::Ok();
}

Status Overflow::allocate_in_memory(OverflowUsage& usage, uint64_t bytes, Stored& out) {
  if (allocate_memory(usage, bytes, bytes, Need::any, out)) return Status::Ok();
  const uint64_t taken = memory_of(bytes) + kDescriptionBytes;
  if (limits_.query_bytes != 0 &&
      usage.bytes.load(std::memory_order_relaxed) + taken > limits_.query_bytes)
    return above_query_limit(usage, taken);
  return base::error(Code::overflow_exhausted,
                     "{} bytes of memory needed, {} of overflow.memory_bytes = {} in use", taken,
                     memory_bytes(), limits_.memory_bytes);
}

// For the moment of the copy both are there, and the larger one counts.
bool Overflow::grow_memory(Stored& stored, uint64_t bytes) noexcept {
  if (stored.place != Stored::Place::memory || bytes > limits_.memory_bytes) return false;
  const uint64_t more = memory_of(bytes) - memory_of(stored.room);
  if (!charge(*stored.usage, more)) return false;
  if (take_memory(more, limits_.memory_bytes)) {
    if (std::byte* const memory = allocate_bytes(bytes); memory != nullptr) {
      std::memcpy(memory, stored.memory, stored.bytes);
      free_bytes(std::exchange(stored.memory, memory));
      stored.bytes = stored.room = bytes;
      return true;
    }
    give_memory(more);
  }
  stored.usage->bytes.fetch_sub(more, std::memory_order_relaxed);
  return false;
}

Status Overflow::grow(Stored& stored, uint64_t bytes) {
  if (grow_memory(stored, bytes)) return Status::Ok();
  Stored larger;
  FARO_RETURN_IF_ERROR(allocate(*stored.usage, bytes, larger));
  std::memcpy(larger.memory, stored.memory, stored.bytes);
  free(stored);
  stored = larger;
  return Status::Ok();
}

// How large a block is taken for `bytes` bytes. Where there is little, what one sender may need later is no reason to have
// nothing for others.
uint64_t Overflow::room_within(uint64_t limit, uint64_t bytes, uint64_t room) const noexcept {
  const uint64_t query_limit = limits_.query_bytes == 0 ? UINT64_MAX : limits_.query_bytes;
  return std::max(bytes, std::min(room, std::min(limit, query_limit) / 16));
}

bool Overflow::store_in_memory(OverflowUsage& usage, std::span<const std::byte> bytes,
                               uint64_t room, Need need, Stored& out) noexcept {
  const uint64_t taken = room_within(limits_.memory_bytes, bytes.size(), room);
  if (!allocate_memory(usage, bytes.size(), taken, need, out)) return false;
  std::memcpy(out.memory, bytes.data(), bytes.size());
  return true;
}

bool Overflow::store_if_plenty(OverflowUsage& usage, std::span<const std::byte> bytes,
                               uint64_t room, Stored& out) noexcept {
  return store_in_memory(usage, bytes, room, Need::plenty, out);
}

Status Overflow::store(OverflowUsage& usage, std::span<const std::byte> bytes, uint64_t room,
                       Stored& out) {
  if (store_in_memory(usage, bytes, room, Need::any, out)) return Status::Ok();
  return store_in_file(usage, bytes, room, out);
}

Status Overflow::store_in_file(OverflowUsage& usage, std::span<const std::byte> bytes,
                               uint64_t room, Stored& out) {
  Stored made;
  FARO_RETURN_IF_ERROR(allocate_file(usage, bytes.size(),
                                     room_within(limits_.file_bytes, bytes.size(), room), made));
  if (Status status = file_->write(made.extent, 0, bytes); !status.ok()) {
    free(made);
    return status;
  }
  out = made;
  return Status::Ok();
}

Status Overflow::append(Stored& stored, std::span<const std::byte> bytes) {
  if (stored.place == Stored::Place::file) {
    FARO_RETURN_IF_ERROR(file_->write(stored.extent, stored.bytes, bytes));
  } else {
    std::memcpy(stored.memory + stored.bytes, bytes.data(), bytes.size());
  }
  stored.bytes += bytes.size();
  return Status::Ok();
}

void Overflow::shrink(Stored& stored, uint64_t bytes) noexcept {
  stored.bytes = bytes;
  if (stored.place != Stored::Place::memory || stored.room_left() < stored.room / 4) return;
  std::byte* const memory = allocate_bytes(bytes);
  if (memory == nullptr) return;  // it stays as it is
  std::memcpy(memory, stored.memory, bytes);
  free_bytes(stored.memory);
  const uint64_t back = memory_of(stored.room) - memory_of(bytes);
  stored.memory = memory;
  stored.room = bytes;
  stored.usage->bytes.fetch_sub(back, std::memory_order_relaxed);
  give_memory(back);
}

Status Overflow::load(Stored& stored) {
  if (stored.place == Stored::Place::shared) {
    const std::lock_guard lock(stored.block->loading);
    FARO_RETURN_IF_ERROR(load(stored.block->stored));
    stored.memory = stored.block->stored.memory;
    return Status::Ok();
  }
  if (stored.place != Stored::Place::file) return Status::Ok();
  const uint64_t taken = memory_of(stored.bytes);
  if (take_memory(taken, limits_.memory_bytes)) {
    if (std::byte* const memory = allocate_bytes(stored.bytes); memory != nullptr) {
      Status status = file_->read(stored.extent, {memory, stored.bytes});
      if (!status.ok()) {
        free_bytes(memory);
        give_memory(taken);
        return status;
      }
      // Never more than before: the file's part was rounded up to blocks, except for a few bytes.
      stored.usage->bytes.fetch_add(taken - stored.extent.bytes, std::memory_order_relaxed);
      give_file(stored.extent);
      stored.place = Stored::Place::memory;
      stored.memory = memory;
      stored.room = stored.bytes;
      stored.extent = {};
      return Status::Ok();
    }
    give_memory(taken);
  }
  std::byte* const memory = file_->map(stored.extent);
  if (memory == nullptr) {
    return base::error(Code::overflow_exhausted, "{} bytes of the overflow file cannot be mapped",
                       stored.bytes);
  }
  stored.memory = memory;
  stored.place = Stored::Place::mapped;
  return Status::Ok();
}

Status Overflow::read(const Stored& stored, std::span<std::byte> to) const {
  if (stored.place == Stored::Place::shared) {
    const std::lock_guard lock(stored.block->loading);
    return read(stored.block->stored, to);
  }
  if (stored.place == Stored::Place::file) return file_->read(stored.extent, to);
  std::memcpy(to.data(), stored.memory, to.size());
  return Status::Ok();
}

Status Overflow::make_shared(Stored& stored) {
  OverflowUsage& usage = *stored.usage;
  auto block = std::make_unique<SharedBlock>();
  if (!charge(usage, kDescriptionBytes)) return above_query_limit(usage, kDescriptionBytes);
  if (!take_memory(kDescriptionBytes, limits_.most_memory_bytes())) {
    usage.bytes.fetch_sub(kDescriptionBytes, std::memory_order_relaxed);
    return base::error(Code::overflow_exhausted,
                       "{} bytes of memory needed, {} of overflow.memory_bytes = {} in use",
                       kDescriptionBytes, memory_bytes(), limits_.memory_bytes);
  }
  block->stored = std::exchange(stored, {});
  stored = Stored{Stored::Place::shared,
                  block->stored.memory,
                  {},
                  block->stored.bytes,
                  block->stored.bytes,
                  &usage,
                  block.get()};
  (void)block.release();
  return Status::Ok();
}

Stored Overflow::share(const Stored& stored) noexcept {
  stored.block->holders.fetch_add(1, std::memory_order_relaxed);
  if (planted(Plant::charged_per_reader)) used_.fetch_add(stored.bytes);
  return stored;
}

// Who holds it last has seen what the others did with it.
void Overflow::free_shared(Stored& stored) noexcept {
  const Stored held = std::exchange(stored, {});
  SharedBlock* const block = held.block;
  if (block->holders.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    if (planted(Plant::charged_per_reader)) give_memory(held.bytes);
    return;
  }
  OverflowUsage& usage = *block->stored.usage;
  free(block->stored);
  delete block;
  give_memory(kDescriptionBytes);
  usage.bytes.fetch_sub(kDescriptionBytes, std::memory_order_relaxed);
}

void Overflow::free(Stored& stored) noexcept {
  if (stored.place == Stored::Place::none) return;
  if (stored.place == Stored::Place::shared) return free_shared(stored);
  const uint64_t taken = taken_by(stored);
  if (stored.place == Stored::Place::memory) {
    free_bytes(stored.memory);
    give_memory(taken + kDescriptionBytes);
  } else {
    if (stored.place == Stored::Place::mapped) file_->unmap(stored.extent, stored.memory);
    give_file(stored.extent);
    give_memory(kDescriptionBytes);
  }
  stored.usage->bytes.fetch_sub(taken + kDescriptionBytes, std::memory_order_relaxed);
  stored = Stored{};
}

}  // namespace faro::shuffle
