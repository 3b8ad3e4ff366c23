#include "base/kept_addresses.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "base/unique_fd.h"

namespace faro::base {
namespace {

uintptr_t number_of(const void* address) { return reinterpret_cast<uintptr_t>(address); }

/// Some addresses that are kept, and what they were a part of, when that has been unmapped.
struct Kept {
  void* mapping = nullptr;  // null: it still has its memory
  size_t bytes = 0;
};

/// All that is kept in this process.
class KeptAddresses {
 public:
  using Place = std::multimap<uintptr_t, Kept>::iterator;

  Place add(uintptr_t address) {
    const std::lock_guard lock(mutex_);
    return kept_.emplace(address, Kept{});
  }

  void remove(Place place) noexcept {
    const std::lock_guard lock(mutex_);
    const Kept kept = place->second;
    kept_.erase(place);
    if (kept.mapping != nullptr && !keeps_any(kept.mapping, kept.bytes))
      munmap(kept.mapping, kept.bytes);
    if (kept_.empty()) empty_.reset();
  }

  void unmap(void* mapping, size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    if (!keeps_any(mapping, bytes)) {
      munmap(mapping, bytes);
      return;
    }
    vacate(mapping, bytes);
    for (Place place = first_of(mapping); place != last_of(mapping, bytes); ++place)
      place->second = {mapping, bytes};
  }

 private:
  Place first_of(const void* mapping) { return kept_.lower_bound(number_of(mapping)); }
  Place last_of(const void* mapping, size_t bytes) {
    return kept_.lower_bound(number_of(mapping) + bytes);
  }
  bool keeps_any(const void* mapping, size_t bytes) {
    return first_of(mapping) != last_of(mapping, bytes);
  }

  // All of it lies behind the end of one empty file, each page at its own address: so the kernel joins neighbours, and
  // thousands of them do not use up vm.max_map_count. Where that fails the memory stays until its addresses go.
  void vacate(void* mapping, size_t bytes) noexcept {
    if (!empty_.valid()) empty_.reset(memfd_create("faro-given-back", MFD_CLOEXEC));
    if (!empty_.valid()) return;
    mmap(mapping, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
         empty_.get(), static_cast<off_t>(number_of(mapping)));
  }

  std::mutex mutex_;
  std::multimap<uintptr_t, Kept> kept_;  // by the first address
  UniqueFd empty_;
};

// Never destroyed: bindings may let go while the process ends.
KeptAddresses& all_kept() {
  static auto* const all = new KeptAddresses;
  return *all;
}

}  // namespace

std::shared_ptr<const void> keep_addresses(std::span<const std::byte> memory) {
  struct Keeper {
    explicit Keeper(uintptr_t address) : place(all_kept().add(address)) {}
    ~Keeper() { all_kept().remove(place); }
    Keeper(const Keeper&) = delete;
    Keeper& operator=(const Keeper&) = delete;
    const KeptAddresses::Place place;
  };
  return std::make_shared<const Keeper>(number_of(memory.data()));
}

void unmap(void* mapping, size_t bytes) noexcept { all_kept().unmap(mapping, bytes); }

}  // namespace faro::base
