#include "base/printable.h"

#include <algorithm>
#include <string_view>

namespace faro::base {
namespace {

bool is_plain(unsigned char c) { return c >= 0x20 && c < 0x7f; }

bool continues(std::string_view text, size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
}

// C0 and C1, and the separators of lines and paragraphs: all that may end a line or begin a code of
// a terminal.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return !is_plain(first);
  if (character.size() == 2)
    return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
  return character == "\xe2\x80\xa8" || character == "\xe2\x80\xa9";
}

// How many bytes at the beginning are one character of valid UTF-8; 0 if none are.
size_t character_bytes(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4 || !continues(text, 1)) return 0;
  if (first < 0xe0) return 2;
  // The second byte excludes longer spellings of a character, surrogates, and what lies above
  // U+10FFFF.
  const auto second = static_cast<unsigned char>(text[1]);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f) || !continues(text, 2))
    return 0;
  if (first < 0xf0) return 3;
  return continues(text, 3) ? 4 : 0;
}

}  // namespace

std::string printable(std::string text, LineBreaks breaks) {
  const auto stays = [&](char c) {
    return is_plain(static_cast<unsigned char>(c)) || (c == '\n' && breaks == LineBreaks::kept);
  };
  if (std::all_of(text.begin(), text.end(), stays)) return text;
  std::string out;
  out.reserve(text.size());
  for (std::string_view rest = text; !rest.empty();) {
    const size_t bytes = character_bytes(rest);
    const std::string_view character = rest.substr(0, std::max<size_t>(bytes, 1));
    if (bytes == 0) {
      out += '?';
    } else if (is_control(character) && !stays(character[0])) {
      out += ' ';
    } else {
      out += character;
    }
    rest.remove_prefix(character.size());
  }
  return out;
}

}  // namespace faro::base
