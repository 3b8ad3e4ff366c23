// ThreadValue: a value of each thread that does not keep this library from being unloaded.
//
// A thread_local that has to be destroyed keeps its library loaded until its thread ends: a JVM's threads outlive the class
// loader that has loaded it.
#pragma once

#include <pthread.h>

#include <memory>
#include <new>
#include <utility>

namespace faro::c {

/// Threads: any; each has its own. A static object: when the library is unloaded, the values of threads that live stay behind.
template <typename T>
class ThreadValue {
 public:
  ThreadValue() noexcept
      : has_key_(pthread_key_create(&key_, [](void* value) { delete static_cast<T*>(value); }) ==
                 0) {}
  ~ThreadValue() {
    if (!has_key_) return;
    delete get();
    pthread_key_delete(key_);
  }
  ThreadValue(const ThreadValue&) = delete;
  ThreadValue& operator=(const ThreadValue&) = delete;

  /// Null if this thread has none.
  T* get() const noexcept {
    return has_key_ ? static_cast<T*>(pthread_getspecific(key_)) : nullptr;
  }
  /// Nothing changes if there is no memory for a thread's first one.
  void set(T value) noexcept {
    if (T* const has = get()) {
      *has = std::move(value);
    } else if (has_key_) {
      auto first = std::unique_ptr<T>(new (std::nothrow) T(std::move(value)));
      if (first != nullptr && pthread_setspecific(key_, first.get()) == 0) (void)first.release();
    }
  }

 private:
  pthread_key_t key_{};
  const bool has_key_;
};

}  // namespace faro::c
