// Control messages about queries: whatever bytes arrive, they are a message or they are not.
#include "wire/query_message.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace faro::wire {
namespace {

QueryMessage example(QueryMessageKind kind, std::string text = "because") {
  QueryMessage message;
  message.kind = kind;
  message.query = {17, 0x123456789abcdef0u, 3, 0};
  message.first = 2;
  message.second = -5;
  message.number = 16;
  message.text = std::move(text);
  return message;
}

TEST(QueryMessage, survives_the_way_there) {
  for (const auto kind :
       {QueryMessageKind::fail, QueryMessageKind::stop, QueryMessageKind::ended,
        QueryMessageKind::outcome, QueryMessageKind::confirm, QueryMessageKind::await}) {
    for (const std::string& text :
         {std::string(), std::string("because"), std::string(kQueryTextLimit, 'a')}) {
      const QueryMessage decoded = decode_query_message(encode(example(kind, text))).value();
      EXPECT_EQ(decoded.kind, kind);
      EXPECT_EQ(decoded.query.counter, 17u);
      EXPECT_EQ(decoded.query.incarnation, 0x123456789abcdef0u);
      EXPECT_EQ(decoded.query.issuer, 3u);
      EXPECT_EQ(decoded.first, 2u);
      EXPECT_EQ(decoded.second, -5);
      EXPECT_EQ(decoded.number, 16u);
      EXPECT_EQ(decoded.text, text);
    }
  }
}

// It comes from another process, and goes to logs and terminals.
TEST(QueryMessage, a_text_loses_its_control_characters) {
  const std::string text("\0a\nb\x1b[2J\x7f", 9);
  const auto decoded = decode_query_message(encode(example(QueryMessageKind::fail, text)));
  EXPECT_EQ(decoded.value().text, " a b [2J ");
}

TEST(QueryMessage, a_long_text_is_cut) {
  const std::string text(100'000, 'b');
  const auto decoded = decode_query_message(encode(example(QueryMessageKind::fail, text)));
  EXPECT_EQ(decoded.value().text, std::string(kQueryTextLimit, 'b'));
}

TEST(QueryMessage, any_other_length_is_refused) {
  std::vector<std::byte> bytes = encode(example(QueryMessageKind::outcome));
  for (size_t size = 0; size < bytes.size(); ++size) {
    // A copy of exactly that size: reading beyond is seen by the address sanitizer.
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_FALSE(decode_query_message(cut).has_value()) << size << " bytes";
  }
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(decode_query_message(bytes).has_value()) << "one byte more";
}

TEST(QueryMessage, with_a_field_at_its_end_is_read_unless_the_field_is_required) {
  for (const char* text : {"", "the cause"}) {
    const std::vector<std::byte> bytes = encode(example(QueryMessageKind::fail, text));
    std::vector<std::byte> longer = bytes;
    FieldWriter(longer).number(uint16_t{5}, uint32_t{7});
    const auto decoded = decode_query_message(longer);
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(encode(*decoded), bytes);
    std::vector<std::byte> demanding = bytes;
    FieldWriter(demanding).number(kRequiredField | uint16_t{5}, uint32_t{7});
    EXPECT_FALSE(decode_query_message(demanding).has_value());
  }
}

TEST(QueryMessage, of_the_upper_half_of_kinds_may_be_skipped) {
  EXPECT_FALSE(may_skip_query_message({}));
  for (int kind = 0; kind < 256; ++kind) {
    const std::vector<std::byte> bytes(1, static_cast<std::byte>(kind));
    EXPECT_EQ(may_skip_query_message(bytes), kind >= 128) << kind;
  }
}

TEST(QueryMessage, a_flipped_bit_is_refused_or_changes_its_field) {
  const std::vector<std::byte> bytes = encode(example(QueryMessageKind::stop));
  int refused = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::vector<std::byte> flipped = bytes;
    flipped[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto decoded = decode_query_message(flipped);
    if (!decoded) {
      ++refused;
      continue;
    }
    // What is no valid UTF-8 in the text is replaced.
    if (flipped == encode(*decoded)) continue;
    EXPECT_GE(bit / 8, bytes.size() - example(QueryMessageKind::stop).text.size());
    EXPECT_GE(flipped[bit / 8], std::byte{0x80}) << "bit " << bit << " was lost";
    flipped[bit / 8] = std::byte{'?'};
    EXPECT_EQ(encode(*decoded), flipped) << "bit " << bit;
  }
  // kind (some values), reserved bytes, text_bytes.
  EXPECT_GE(refused, 8 + 16 + 32 + 32);
}

TEST(QueryMessage, reserved_bytes_must_be_zero) {
  // `has` where nothing is about a stage, query.reserved, `stage` without `has`: see the picture.
  for (const size_t at : {size_t{1}, size_t{28}, size_t{36}}) {
    std::vector<std::byte> bytes = encode(example(QueryMessageKind::stop));
    bytes[at] = std::byte{1};
    EXPECT_FALSE(decode_query_message(bytes).has_value()) << "byte " << at;
  }
  std::vector<std::byte> bytes = encode(example(QueryMessageKind::fail));
  bytes[1] = std::byte{2};
  EXPECT_FALSE(decode_query_message(bytes).has_value());
}

TEST(QueryMessage, a_failure_says_which_stage_it_is_about) {
  for (const auto kind :
       {QueryMessageKind::fail, QueryMessageKind::ended, QueryMessageKind::outcome}) {
    for (const uint32_t stage : {0u, 7u, UINT32_MAX}) {
      QueryMessage message = example(kind);
      message.stage = stage;
      const QueryMessage decoded = decode_query_message(encode(message)).value();
      EXPECT_EQ(decoded.stage, stage);
    }
    EXPECT_EQ(decode_query_message(encode(example(kind)))->stage, std::nullopt);
  }
}

}  // namespace
}  // namespace faro::wire
