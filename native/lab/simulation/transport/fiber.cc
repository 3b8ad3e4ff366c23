#include "lab/simulation/transport/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cassert>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace faro::sim {
namespace {

// Mapped, so that only what is touched costs memory. Instrumented frames are several times larger.
constexpr size_t kStackBytes = size_t{1} << 20;
constexpr size_t kGuardBytes = size_t{1} << 16;  // a multiple of every page size in use

#if defined(__SANITIZE_ADDRESS__)
void start_switch(void** save, const void* bottom, size_t bytes) {
  __sanitizer_start_switch_fiber(save, bottom, bytes);
}
void finish_switch(void* saved, const void** old_bottom, size_t* old_bytes) {
  __sanitizer_finish_switch_fiber(saved, old_bottom, old_bytes);
}
// The frames that were left for good have poisoned their surroundings; the next mapping may lie
// there.
void forget_stack(const void* bottom, size_t bytes) {
  __asan_unpoison_memory_region(bottom, bytes);
}
#else
void start_switch(void**, const void*, size_t) {}
void finish_switch(void*, const void**, size_t*) {}
void forget_stack(const void*, size_t) {}
#endif

#if defined(__SANITIZE_THREAD__)
void* tsan_create() { return __tsan_create_fiber(0); }
void tsan_destroy(void* fiber) { __tsan_destroy_fiber(fiber); }
void* tsan_current() { return __tsan_get_current_fiber(); }
void tsan_switch(void* fiber) { __tsan_switch_to_fiber(fiber, 0); }
#else
void* tsan_create() { return nullptr; }
void tsan_destroy(void*) {}
void* tsan_current() { return nullptr; }
void tsan_switch(void*) {}
#endif

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)) {
  void* mapping = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED || mprotect(mapping, kGuardBytes, PROT_NONE) != 0) {
    std::perror("faro simulation: no memory for the stack of a fiber");
    std::abort();
  }
  stack_ = static_cast<std::byte*>(mapping);
  tsan_fiber_ = tsan_create();
  getcontext(&own_);
  own_.uc_stack.ss_sp = stack_ + kGuardBytes;
  own_.uc_stack.ss_size = kStackBytes;
  own_.uc_link = nullptr;
  // makecontext passes ints only.
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
              static_cast<unsigned>(uint64_t{self} >> 32), static_cast<unsigned>(self));
}

Fiber::~Fiber() { release_stack(); }

void Fiber::release_stack() noexcept {
  if (stack_ == nullptr) return;
  tsan_destroy(tsan_fiber_);
  forget_stack(stack_ + kGuardBytes, kStackBytes);
  munmap(stack_, kGuardBytes + kStackBytes);
  stack_ = nullptr;
}

void Fiber::enter(unsigned high, unsigned low) {
  reinterpret_cast<Fiber*>(static_cast<uintptr_t>(uint64_t{high} << 32 | low))->run();
}

void Fiber::run() {
  finish_switch(nullptr, &resumer_stack_, &resumer_stack_bytes_);
  body_();
  body_ = nullptr;  // what it captured ends with it
  finished_ = true;
  // A null pointer tells the address sanitizer that this stack does not come back.
  start_switch(nullptr, resumer_stack_, resumer_stack_bytes_);
  tsan_switch(tsan_resumer_);
  setcontext(&resumer_);
}

void Fiber::resume() {
  assert(!finished_);
  void* fake_stack = nullptr;
  tsan_resumer_ = tsan_current();
  start_switch(&fake_stack, stack_ + kGuardBytes, kStackBytes);
  tsan_switch(tsan_fiber_);
  swapcontext(&resumer_, &own_);
  finish_switch(fake_stack, nullptr, nullptr);
  if (finished_) release_stack();
}

void Fiber::suspend() {
  start_switch(&fake_stack_, resumer_stack_, resumer_stack_bytes_);
  tsan_switch(tsan_resumer_);
  swapcontext(&own_, &resumer_);
  finish_switch(fake_stack_, &resumer_stack_, &resumer_stack_bytes_);
}

}  // namespace faro::sim
