// What rows are, in the words of an engine: how it is told, kept and named.
#include "shuffle/query/row_format.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "wire/frame.h"

namespace faro::shuffle {
namespace {

/// The payload of an OPEN that carries the format.
std::vector<std::byte> open_of(const RowFormat& format) {
  std::vector<std::byte> payload(sizeof(wire::OpenPayload));
  const std::string behind = format.open_bytes();
  for (const char c : behind) payload.push_back(static_cast<std::byte>(c));
  return payload;
}

TEST(RowFormat, what_an_open_carries_is_what_was_said) {
  for (const std::string& said : {std::string(), std::string("schema(INT)"), std::string(256, 'x'),
                                  std::string(257, 'x'), std::string(100'000, 'x')}) {
    const RowFormat format = RowFormat::of(said);
    const std::vector<std::byte> payload = open_of(format);
    EXPECT_TRUE(wire::is_open_payload(static_cast<uint32_t>(payload.size()))) << said.size();
    const RowFormat heard = RowFormat::of_open(payload);
    EXPECT_EQ(heard.digest, format.digest);
    EXPECT_EQ(heard.text, said.substr(0, 256));
    EXPECT_EQ(said.empty(), heard.digest == 0);
  }
}

TEST(RowFormat, an_open_has_none_or_one_with_words_up_to_the_limit) {
  for (const uint32_t bytes : {48u, 57u, 56u + 256u}) EXPECT_TRUE(wire::is_open_payload(bytes));
  for (const uint32_t bytes : {0u, 47u, 49u, 56u, 56u + 257u})
    EXPECT_FALSE(wire::is_open_payload(bytes)) << bytes;
}

TEST(RowFormat, all_that_was_said_counts_though_only_its_beginning_is_kept) {
  const std::string begin(256, 'x');
  const RowFormat one = RowFormat::of(begin + "1"), two = RowFormat::of(begin + "2");
  EXPECT_FALSE(one.agrees(two));
  EXPECT_TRUE(one.agrees(one));
  EXPECT_EQ(one.text, two.text);
  EXPECT_NE(one.beside(two), two.beside(one)) << one.beside(two);
}

TEST(RowFormat, agrees_with_nothing_said) {
  EXPECT_TRUE(RowFormat::of("a").agrees(RowFormat{}));
  EXPECT_TRUE(RowFormat{}.agrees(RowFormat::of("a")));
  EXPECT_TRUE(RowFormat{}.agrees(RowFormat{}));
}

TEST(RowFormat, is_cut_between_characters) {
  for (const std::string& character : {std::string("é"), std::string("€"), std::string("😀")}) {
    for (size_t before = 250; before <= 256; ++before) {
      const RowFormat format =
          RowFormat::of(std::string(before, 'x') + character + character + character + character);
      ASSERT_LE(format.text.size(), 256u);
      EXPECT_GT(format.text.size() + character.size(), 256u);
      EXPECT_EQ((format.text.size() - before) % character.size(), 0u) << before << character;
    }
  }
  // No text at all, but it can be told from none.
  EXPECT_FALSE(RowFormat::of(std::string(1000, '\x80')).text.empty());
}

TEST(RowFormat, of_another_node_is_printable) {
  RowFormat format;
  format.digest = 1;
  format.text = "\x1b[31mred\n";
  EXPECT_EQ(RowFormat::of_open(open_of(format)).text, " [31mred ");
}

}  // namespace
}  // namespace faro::shuffle
