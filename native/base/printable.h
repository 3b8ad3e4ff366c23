// Text of another process on its way to logs, exceptions and terminals.
#pragma once

#include <algorithm>
#include <string>

namespace faro::base {

/// The same text with a blank for each line break, terminal code or other control character.
inline std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return text;
}

}  // namespace faro::base
