// File descriptors: one that closes itself, and none that a program takes for its standard input, output or error.
#pragma once

#include <unistd.h>

#include <array>
#include <utility>

namespace faro::base {

/// Gives a descriptor that is new another number if it has one of the standard ones, 0 to 2: a program that was started without
/// these would write its errors into it. Returns -1 and errno if there is no other. Not for one that the kernel knows by its
/// number already (epoll).
int above_standard(int fd) noexcept;

/// While it lives, descriptors that others make (a driver, a library) get other numbers than 0 to 2: those of them that are free
/// are taken. Threads: one at a time.
class StandardHeld {
 public:
  StandardHeld() noexcept;
  ~StandardHeld();
  StandardHeld(const StandardHeld&) = delete;
  StandardHeld& operator=(const StandardHeld&) = delete;

 private:
  std::array<int, 3> held_ = {-1, -1, -1};
};

/// Owns: the descriptor, which is none of 0 to 2 (above_standard); -1 is none. Movable, not copyable. Threads: a value, one at a
/// time.
class UniqueFd {
 public:
  UniqueFd() noexcept = default;
  explicit UniqueFd(int fd) noexcept : fd_(above_standard(fd)) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }
  /// Gives the descriptor away without closing it.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  void reset(int fd = -1) noexcept {
    const int old = std::exchange(fd_, above_standard(fd));
    if (old >= 0) close(old);
  }

 private:
  int fd_ = -1;
};

}  // namespace faro::base
