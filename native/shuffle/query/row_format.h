// RowFormat: what rows are, as a worker says it, so that those who write and those who read them can be compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "wire/frame.h"

namespace faro::shuffle {

/// Threads: as a value.
struct RowFormat {
  uint64_t digest = 0;  // of all that was said; 0: nothing was
  std::string text;     // how it begins, printable

  /// What an engine has said (ShuffleSpec::format); empty: nothing.
  static RowFormat of(std::string_view said);
  /// What a sender has said; `payload` is that of an OPEN, of a length that wire::is_open_payload allows.
  static RowFormat of_open(std::span<const std::byte> payload);
  /// The bytes that stand behind OpenPayload; empty if nothing was said.
  std::string open_bytes() const;

  /// Where one side has said nothing there is nothing to compare.
  bool agrees(const RowFormat& other) const noexcept {
    return digest == 0 || other.digest == 0 || digest == other.digest;
  }
  /// For an error that names it and another one from which it differs.
  std::string beside(const RowFormat& other) const;
};

}  // namespace faro::shuffle
