// What a fuzz target is made of: it takes bytes apart, feeds them to the real code, and says what
// has to hold. README.md in this folder says how targets are built, run and replayed.
//
// A target is one file that defines run_target. The same bytes must always do the same:
// no thread, no clock but a hand-set one, nothing that is kept from one input to the next.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "faro/log.h"

namespace faro::fuzz {

/// An invariant; `what` says it in words. A finding if it does not hold.
inline void require(bool holds, const char* what) {
  if (holds) [[likely]]
    return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

/// Takes an input apart, from the front. Behind its end there are zeros, so that every input means
/// something. Owns: nothing; the bytes outlive it.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(std::as_bytes(std::span(data, size))) {}

  bool empty() const { return rest_.empty(); }
  std::span<const std::byte> rest() const { return rest_; }

  /// Little-endian, as in the messages of wire/.
  template <std::unsigned_integral T>
  T number() {
    T value = 0;
    const auto taken = take(sizeof value);
    if (!taken.empty()) std::memcpy(&value, taken.data(), taken.size());
    return value;
  }
  /// From 0 to limit - 1.
  uint32_t below(uint32_t limit) { return number<uint8_t>() % limit; }
  bool flag() { return (number<uint8_t>() & 1) != 0; }

  /// That many bytes, or what is left.
  std::span<const std::byte> take(size_t count) {
    const auto taken = rest_.first(count < rest_.size() ? count : rest_.size());
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  /// A length (2 bytes) and that many bytes, at most `most`; in memory of their own, so that
  /// AddressSanitizer sees who reads beyond them.
  std::vector<std::byte> piece(size_t most = UINT16_MAX) {
    const size_t length = number<uint16_t>();
    const auto taken = take(length < most ? length : most);
    return {taken.begin(), taken.end()};
  }

 private:
  std::span<const std::byte> rest_;
};

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Whether a text may go to a log or a terminal: no line breaks, no control codes.
inline bool printable(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  }
  return true;
}

/// One run of a target, which each defines; a finding ends the process.
void run_target(Input input);

/// Log lines are made, looked at and dropped, whatever their level.
inline const bool log_lines_are_checked = [] {
  set_log_level(LogLevel::debug);
  set_log_sink([](LogLevel, std::string_view line) {
    require(printable(line), "no peer writes control codes into the log");
  });
  return true;
}();

}  // namespace faro::fuzz
