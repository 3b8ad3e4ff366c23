// ByteWriter and ByteReader: little-endian fields of control messages. Frames in rings are structs
// that are read in place (wire/frame.h); control messages are rare and have variable parts, so they
// are written and read field by field, and the reader can never look beyond what arrived.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace faro::wire {

/// Appends fields to a message. Threads: one. Owns: nothing; `out` outlives it.
class ByteWriter {
 public:
  explicit ByteWriter(std::vector<std::byte>& out) : out_(out) {}

  template <std::unsigned_integral T>
  void number(T value) {
    static_assert(std::endian::native == std::endian::little);
    bytes(std::as_bytes(std::span(&value, 1)));
  }
  void bytes(std::span<const std::byte> data) {
    if (data.empty()) return;
    const size_t at = out_.size();
    out_.resize(at + data.size());
    std::memcpy(out_.data() + at, data.data(), data.size());
  }
  /// A uint16 length and the characters; what is beyond 65535 is cut.
  void text(std::string_view value) {
    if (value.size() > UINT16_MAX) value = value.substr(0, UINT16_MAX);
    number(static_cast<uint16_t>(value.size()));
    bytes(std::as_bytes(std::span(value)));
  }

 private:
  std::vector<std::byte>& out_;
};

/// Takes fields from an untrusted message. A field that is not there, or is longer than its limit,
/// makes the reader fail permanently and reads as zero or empty: check `complete()` once, at the end.
/// Threads: one. Owns: nothing; the message outlives it.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> message) : rest_(message) {}

  template <std::unsigned_integral T>
  T number() {
    T value = 0;
    if (rest_.size() < sizeof value) {
      fail();
      return 0;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return value;
  }
  std::span<const std::byte> bytes(size_t count) {
    if (rest_.size() < count) {
      fail();
      return {};
    }
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  std::string text(size_t limit) {
    const size_t length = number<uint16_t>();
    if (length > limit) {
      fail();
      return {};
    }
    const auto taken = bytes(length);
    return std::string(reinterpret_cast<const char*>(taken.data()), taken.size());
  }
  /// The rest of the message.
  std::span<const std::byte> rest() { return bytes(rest_.size()); }

  bool failed() const { return failed_; }
  /// Whether every field was there, and nothing follows the last one.
  bool complete() const { return !failed_ && rest_.empty(); }

 private:
  void fail() {
    failed_ = true;
    rest_ = {};
  }
  std::span<const std::byte> rest_;
  bool failed_ = false;
};

}  // namespace faro::wire
