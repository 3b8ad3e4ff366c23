#include "sim/node_memory.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <utility>

namespace faro::test {
namespace {

constexpr uint32_t kNodes = 16;
constexpr uint64_t kAllocatorBytes = 16;

struct Counted {
  uint64_t bytes = 0;
  uint64_t peak = 0;
};

// Plain data: operator new runs before constructors and after destructors.
sim::World* the_world = nullptr;
std::array<Counted, kNodes> counted;
uint64_t until_failure = 0;  // 0: none fails
bool failed = false;
bool agents_fail = false;

// In front of each block.
struct Header {
  void* block;     // as malloc gave it
  uint32_t bytes;  // rounded down where it is counted to nobody
  uint32_t node;   // UINT32_MAX: nobody's
};
static_assert(sizeof(Header) == 16);

uint32_t running_node() {
  if (the_world == nullptr) return UINT32_MAX;
  const uint32_t group = the_world->running_group();
  return group < kNodes ? group : UINT32_MAX;
}

bool is_to_fail(uint32_t node) {
  if (until_failure == 0 || node == UINT32_MAX) return false;
  if (!the_world->in_fiber() && !agents_fail) return false;
  if (--until_failure > 0) return false;
  failed = true;
  return true;
}

void* allocate(size_t bytes, size_t alignment) noexcept {
  const uint32_t node = running_node();
  if (is_to_fail(node)) return nullptr;
  const size_t before = std::max(alignment, sizeof(Header));
  void* const block = std::aligned_alloc(before, (before + bytes + before - 1) / before * before);
  if (block == nullptr) return nullptr;
  std::byte* const memory = static_cast<std::byte*>(block) + before;
  const uint64_t taken = bytes + kAllocatorBytes;
  new (memory - sizeof(Header)) Header{block, static_cast<uint32_t>(taken), node};
  if (node != UINT32_MAX) {
    Counted& of = counted[node];
    of.bytes += taken;
    of.peak = std::max(of.peak, of.bytes);
  }
  return memory;
}

void release(void* memory) noexcept {
  if (memory == nullptr) return;
  const auto* const header =
      reinterpret_cast<const Header*>(static_cast<std::byte*>(memory) - sizeof(Header));
  if (header->node != UINT32_MAX && the_world != nullptr)
    counted[header->node].bytes -= header->bytes;
  std::free(header->block);
}

void* allocate_or_throw(size_t bytes, size_t alignment) {
  if (void* const memory = allocate(bytes, alignment); memory != nullptr) return memory;
  throw std::bad_alloc();
}

class OutsideFile final : public shuffle::SpillFile {
 public:
  OutsideFile(sim::World& world, std::unique_ptr<shuffle::SpillFile> file)
      : world_(world), file_(std::move(file)) {}
  Result<shuffle::Extent> allocate(uint64_t bytes) override {
    const sim::World::Outside outside(world_);
    return file_->allocate(bytes);
  }
  void free(const shuffle::Extent& extent) noexcept override {
    const sim::World::Outside outside(world_);
    file_->free(extent);
  }
  Status write(const shuffle::Extent& extent, uint64_t at,
               std::span<const std::byte> bytes) override {
    const sim::World::Outside outside(world_);
    return file_->write(extent, at, bytes);
  }
  Status read(const shuffle::Extent& extent, std::span<std::byte> bytes) override {
    const sim::World::Outside outside(world_);
    return file_->read(extent, bytes);
  }
  std::byte* map(const shuffle::Extent& extent) override { return file_->map(extent); }
  void unmap(const shuffle::Extent& extent, std::byte* memory) noexcept override {
    file_->unmap(extent, memory);
  }
  uint64_t used_bytes() const override { return file_->used_bytes(); }
  uint64_t peak_bytes() const override { return file_->peak_bytes(); }

 private:
  sim::World& world_;
  std::unique_ptr<shuffle::SpillFile> file_;
};

}  // namespace

NodeMemory::NodeMemory(sim::World& world) {
  counted.fill({});
  until_failure = 0;
  failed = false;
  the_world = &world;
}
NodeMemory::~NodeMemory() {
  the_world = nullptr;
  until_failure = 0;
}
uint64_t NodeMemory::bytes(uint32_t node) const { return counted[node].bytes; }
uint64_t NodeMemory::peak_bytes(uint32_t node) const { return counted[node].peak; }
void NodeMemory::fail_at(uint64_t number) {
  until_failure = number;
  failed = agents_fail = false;
}
void NodeMemory::fail_anywhere_at(uint64_t number) {
  fail_at(number);
  agents_fail = true;
}
bool NodeMemory::has_failed() const { return failed; }

std::unique_ptr<shuffle::SpillFile> make_outside_file(sim::World& world,
                                                      std::unique_ptr<shuffle::SpillFile> file) {
  return std::make_unique<OutsideFile>(world, std::move(file));
}

}  // namespace faro::test

// All others end in these.
void* operator new(size_t bytes) { return faro::test::allocate_or_throw(bytes, 16); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return faro::test::allocate(bytes, 16);
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return faro::test::allocate_or_throw(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { faro::test::release(memory); }
void operator delete(void* memory, size_t) noexcept { faro::test::release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { faro::test::release(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  faro::test::release(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { faro::test::release(memory); }
