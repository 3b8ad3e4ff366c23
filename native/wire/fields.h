// Fields: how messages grow. A list of fields ends a message:
//
//    0      2        4             4 + length
//   +------+--------+--- - - - ---+--- - -
//   | tag  | length | bytes       | the next field …
//   +------+--------+--- - - - ---+--- - -
//     bits 0…14: number     bit 15: required
//
// Little-endian. Numbers ascend and are never given away a second time; each stands in a list once at most. A receiver
// that does not know a number skips the field, unless it is required: then it must not go on. A number that the
// receiver knows means the same with and without that bit.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "wire/bytes.h"

namespace faro::wire {

/// Set in a tag: a receiver that does not know the field must not go on.
inline constexpr uint16_t kRequiredField = 0x8000;

/// Appends fields to a message, in ascending order of their numbers. Threads: one. Owns: nothing; `out` outlives it.
class FieldWriter {
 public:
  explicit FieldWriter(std::vector<std::byte>& out) : writer_(out) {}

  /// At most 65535 bytes; what is beyond is cut.
  void bytes(uint16_t tag, std::span<const std::byte> value) {
    if (value.size() > UINT16_MAX) value = value.first(UINT16_MAX);
    writer_.number(tag);
    writer_.number(static_cast<uint16_t>(value.size()));
    writer_.bytes(value);
  }
  void text(uint16_t tag, std::string_view value) { bytes(tag, std::as_bytes(std::span(value))); }
  template <std::unsigned_integral T>
  void number(uint16_t tag, T value) {
    bytes(tag, std::as_bytes(std::span(&value, 1)));
  }

 private:
  ByteWriter writer_;
};

/// Takes fields from an untrusted list. Threads: one. Owns: nothing; the list outlives it.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> list) : list_(list) {}

  /// Takes the next field. False at the end, and where the list is malformed.
  bool next() {
    if (list_.complete()) return false;
    const uint16_t tag = list_.number<uint16_t>();
    const size_t length = list_.number<uint16_t>();
    bytes_ = list_.bytes(length);
    const int number = tag & ~kRequiredField;
    if (number <= number_) malformed_ = true;
    number_ = number;
    required_ = (tag & kRequiredField) != 0;
    return !malformed();
  }
  /// A field is cut short, a number does not ascend.
  bool malformed() const { return malformed_ || list_.failed(); }

  // The number and the bytes of the field that was taken.
  uint16_t number() const { return static_cast<uint16_t>(number_); }
  std::span<const std::byte> bytes() const { return bytes_; }

  /// Skips the field, which the caller does not know.
  void skip() {
    if (required_ && !unknown_) unknown_ = number();
  }
  /// The first required field that was skipped.
  std::optional<uint16_t> unknown() const { return unknown_; }

 private:
  ByteReader list_;
  int number_ = 0;  // 0 is no field's
  bool required_ = false;
  bool malformed_ = false;
  std::span<const std::byte> bytes_;
  std::optional<uint16_t> unknown_;
};

/// Whether these bytes, behind all that is known of a message, are fields that may be skipped.
inline bool may_skip_fields(std::span<const std::byte> list) {
  FieldReader fields(list);
  while (fields.next()) fields.skip();
  return !fields.malformed() && !fields.unknown();
}

/// The number in a field. False if the field has another length.
template <std::unsigned_integral T>
bool read_field(std::span<const std::byte> field, T& value) {
  if (field.size() != sizeof value) return false;
  std::memcpy(&value, field.data(), sizeof value);
  return true;
}

}  // namespace faro::wire
