// Text from outside where it is shown, logged, or written in a format that has rules.
#include "base/printable.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"

namespace faro::base {
namespace {

TEST(Printable, keeps_text_and_replaces_what_has_no_place_in_a_line) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"plain text: \"quotes\", \\", "plain text: \"quotes\", \\"},
      {"", ""},
      {"Käse, 日本, 🦀", "Käse, 日本, 🦀"},
      {"a\r\nb\tc", "a  b c"},
      {"\x1b[2J\x7f", " [2J "},
      {std::string("a\0b", 3), "a b"},
      {"\xc2\x9b[2J", " [2J"},  // the one-character form of what begins a code of a terminal
      {"a\xe2\x80\xa8z\xe2\x80\xa9", "a z "},  // ends of lines, too
      {"bad\xff", "bad?"},
      {"\xc3", "?"},  // cut in the middle of a character
      {"\xe6\x97", "??"},
      {"\xc0\xaf", "??"},  // a longer spelling of '/'
      {"\xe0\x80\xaf", "???"},
      {"\xed\xa0\x80", "???"},       // half of a surrogate pair
      {"\xf4\x90\x80\x80", "????"},  // above the last character
      {"\xf0\x9f\xa6z", "???z"}};
  for (const auto& [text, shown] : cases) EXPECT_EQ(printable(text), shown);
  EXPECT_EQ(printable("two\nlines\r\n", LineBreaks::kept), "two\nlines \n");
}

// Random bytes, so that every byte meets every other: what comes out needs no second look, and is
// no longer.
TEST(Printable, has_nothing_left_to_replace) {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string text(random() % 12, ' ');
    for (char& c : text) c = static_cast<char>(random() % 4 == 0 ? random() % 128 : random());
    const std::string once = printable(text);
    EXPECT_EQ(printable(once), once);
    EXPECT_LE(once.size(), text.size());
    for (const char c : once) EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7f);
  }
}

TEST(Log, writes_no_line_break_and_no_byte_that_belongs_to_no_character) {
  std::string logged;
  set_log_sink([&logged](LogLevel, std::string_view line) { logged = line; });
  log_line(LogLevel::error, "node bad\xff\n2026-01-01 faro error: forged\x1b[2J");
  set_log_sink(nullptr);
  EXPECT_EQ(logged, "node bad? 2026-01-01 faro error: forged [2J");
}

}  // namespace
}  // namespace faro::base
