// Rows of schemas: the bytes that Java's SchemaCodec writes, and what is no row.
#include "faro/columns.h"

#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "support/expect.h"

namespace faro::test {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<std::string> split(const std::string& text, const std::string& by) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(by, begin)) != std::string::npos; begin = end + by.size())
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

Bytes from_hex(const std::string& text) {
  Bytes bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

Int128 integer_of(const std::string& text) {
  const bool is_negative = text.front() == '-';
  Int128 value = 0;
  for (const char digit : text.substr(is_negative ? 1 : 0)) value = value * 10 + (digit - '0');
  return is_negative ? -value : value;
}

Column column_of(std::string text) {
  Column column;
  if (const size_t nullable = text.find(" or null"); nullable != std::string::npos) {
    column.nullable = true;
    text.resize(nullable);
  }
  if (const size_t digits = text.find('('); digits != std::string::npos) {
    std::istringstream(text.substr(digits + 1)) >> column.precision >> column.scale;
    text.resize(digits);
  }
  for (size_t type = 0; type < kColumnTypes; ++type) {
    if (to_string(static_cast<ColumnType>(type)) == text)
      return column.type = static_cast<ColumnType>(type), column;
  }
  ADD_FAILURE() << "no type " << text;
  return column;
}

/// A row of the kept file.
struct KeptRow {
  std::vector<Column> columns;
  std::vector<std::string> texts;
  Bytes bytes;

  Value value(size_t i, std::vector<std::string>& memory) const {
    const std::string& text = texts[i];
    if (text == "null") return {};
    switch (columns[i].type) {
      case ColumnType::float32:
        return std::bit_cast<float>(static_cast<uint32_t>(std::stoul(text, nullptr, 16)));
      case ColumnType::float64:
        return std::bit_cast<double>(uint64_t{std::stoull(text, nullptr, 16)});
      case ColumnType::decimal_38:
        return integer_of(text);
      case ColumnType::string:
        return std::string_view(text).substr(1, text.size() - 2);
      case ColumnType::bytes: {
        const Bytes of_text = from_hex(text.substr(1));
        memory[i].assign(reinterpret_cast<const char*>(of_text.data()), of_text.size());
        return std::string_view(memory[i]);
      }
      default:
        return static_cast<int64_t>(integer_of(text));
    }
  }
};

std::vector<KeptRow> kept_rows() {
  std::ifstream file(FARO_KEPT_ROWS);
  std::vector<KeptRow> rows;
  const std::string kColumns = "columns: ", kValues = "values: ", kBytes = "bytes: ";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kColumns)) {
      rows.emplace_back();
      for (const std::string& text : split(line.substr(kColumns.size()), ", "))
        rows.back().columns.push_back(column_of(text));
    } else if (line.starts_with(kValues)) {
      rows.back().texts = split(line.substr(kValues.size()), "; ");
    } else if (line.starts_with(kBytes)) {
      rows.back().bytes = from_hex(line.substr(kBytes.size()));
    }
  }
  return rows;
}

Schema schema_of(std::vector<Column> columns) {
  Result<Schema> made = Schema::make(std::move(columns));
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return made.ok() ? *made : Schema();
}

/// By their bits: NaN equals itself, and no other one.
bool same(const Value& a, const Value& b) {
  if (a.index() != b.index()) return false;
  if (const auto* real = std::get_if<float>(&a))
    return std::bit_cast<uint32_t>(*real) == std::bit_cast<uint32_t>(std::get<float>(b));
  if (const auto* real = std::get_if<double>(&a))
    return std::bit_cast<uint64_t>(*real) == std::bit_cast<uint64_t>(std::get<double>(b));
  return a == b;
}

TEST(SchemaTest, writes_and_reads_the_bytes_that_are_kept_of_each_type) {
  const std::vector<KeptRow> rows = kept_rows();
  ASSERT_GT(rows.size(), 40u);
  std::map<ColumnType, int> types;
  for (const KeptRow& row : rows) {
    const Schema schema = schema_of(row.columns);
    std::vector<std::string> memory(row.columns.size());
    std::vector<Value> values;
    ASSERT_EQ(row.texts.size(), row.columns.size()) << schema.format();
    for (size_t i = 0; i < row.texts.size(); ++i) values.push_back(row.value(i, memory));
    for (const Column& column : row.columns) ++types[column.type];
    const Result<size_t> bytes = schema.bytes(values);
    ASSERT_TRUE(bytes.ok()) << bytes.status().to_string();
    Bytes written(*bytes);
    schema.write(values, written.data());
    EXPECT_EQ(written, row.bytes) << schema.format();
    std::vector<Value> read(values.size());
    ASSERT_TRUE(is_ok(schema.read(row.bytes, read)));
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_TRUE(same(values[i], read[i])) << schema.format() << ", column " << i;
  }
  EXPECT_EQ(types.size(), kColumnTypes);
}

TEST(SchemaTest, says_its_columns_as_java_does_and_has_a_width_if_all_have) {
  const Schema schema = schema_of(
      {{ColumnType::int64}, {ColumnType::string, true}, {ColumnType::decimal_18, false, 2}});
  EXPECT_EQ(schema.format(), "schema(LONG, STRING or null, DECIMAL_18(2))");
  EXPECT_EQ(schema.row_bytes(), 0u);
  EXPECT_EQ(schema_of({{ColumnType::float64}, {ColumnType::boolean}}).row_bytes(), 9u);
  EXPECT_EQ(schema_of({{ColumnType::float64, true}}).row_bytes(), 0u);
  EXPECT_EQ(schema_of({}).format(), "schema()");
  EXPECT_EQ(Schema().format(), "schema()");
}

TEST(SchemaTest, refuses_columns_that_cannot_be) {
  const Column kWrong[] = {
      {static_cast<ColumnType>(11)},          {ColumnType::int64, false, 1},
      {ColumnType::string, false, 0, 5},      {ColumnType::decimal_18, false, 19},
      {ColumnType::decimal_18, false, 0, 19}, {ColumnType::decimal_38, false, 5, 4}};
  for (const Column& column : kWrong) {
    const Result<Schema> made = Schema::make({{ColumnType::int8}, column});
    EXPECT_EQ(made.status().code(), Code::invalid_argument);
    EXPECT_NE(made.status().message().find("column 1"), std::string_view::npos);
  }
}

TEST(SchemaTest, refuses_values_that_do_not_fit_and_names_the_column) {
  struct {
    Column column;
    Value value;
  } const kWrong[] = {{{ColumnType::int8}, int64_t{128}},
                      {{ColumnType::int16}, int64_t{-32'769}},
                      {{ColumnType::int32}, int64_t{1} << 31},
                      {{ColumnType::boolean}, int64_t{2}},
                      {{ColumnType::int64}, Value()},
                      {{ColumnType::int64}, 1.0},
                      {{ColumnType::float32}, 1.0},
                      {{ColumnType::string}, int64_t{1}},
                      {{ColumnType::decimal_18, false, 2, 5}, int64_t{100'000}},
                      {{ColumnType::decimal_38}, int64_t{1}},
                      {{ColumnType::decimal_38, false, 0, 2}, Int128{-100}}};
  for (const auto& [column, value] : kWrong) {
    const Schema schema = schema_of({{ColumnType::int64}, column});
    const Result<size_t> bytes = schema.bytes(std::vector<Value>{int64_t{1}, value});
    EXPECT_EQ(bytes.status().code(), Code::invalid_argument) << column.to_string();
    EXPECT_NE(bytes.status().message().find("column 1"), std::string_view::npos);
  }
  const Schema one = schema_of({{ColumnType::int64}});
  EXPECT_EQ(one.bytes(std::vector<Value>(2)).status().code(), Code::invalid_argument);
}

// Nothing of the values is read, of which only the last ones together are too many.
TEST(SchemaTest, refuses_a_row_of_more_bytes_than_a_length_says) {
  const Schema schema = schema_of({{ColumnType::string}, {ColumnType::bytes}});
  const auto of_size = [](uint64_t bytes) { return Value(std::string_view("", bytes)); };
  const uint64_t most = std::numeric_limits<int32_t>::max() - 2 * sizeof(uint32_t);
  const Result<size_t> fits = schema.bytes(std::vector<Value>{of_size(most - 5), of_size(5)});
  ASSERT_TRUE(fits.ok()) << fits.status().to_string();
  EXPECT_EQ(*fits, most + 2 * sizeof(uint32_t));
  for (const uint64_t bytes : {uint64_t{6}, most, uint64_t{1} << 32, uint64_t{1} << 62}) {
    const Result<size_t> above =
        schema.bytes(std::vector<Value>{of_size(most - 5), of_size(bytes)});
    EXPECT_EQ(above.status().code(), Code::invalid_argument) << bytes;
    EXPECT_NE(above.status().message().find("column 1: the row has more than 2147483647 bytes"),
              std::string_view::npos);
  }
}

TEST(SchemaTest, a_received_decimal_has_no_more_digits_than_its_column) {
  const Schema schema = schema_of({{ColumnType::decimal_18, false, 0, 3}});
  std::vector<Value> value(1);
  EXPECT_TRUE(is_ok(schema.read(from_hex("e703000000000000"), value)));
  EXPECT_EQ(schema.read(from_hex("e803000000000000"), value).code(), Code::protocol_error);
}

// Whatever the bytes are, what is found lies in them.
TEST(SchemaTest, bytes_that_are_no_row_are_refused_and_harmless) {
  const Schema schema = schema_of({{ColumnType::string},
                                   {ColumnType::int32, true},
                                   {ColumnType::int64},
                                   {ColumnType::bytes, true}});
  const Bytes row = from_hex("0100000000000000000200000002000000616201000000ff");
  std::vector<ColumnPlace> places(4);
  ASSERT_TRUE(schema.locate(row, places));
  EXPECT_EQ(places[0].bytes, 2u);
  EXPECT_EQ(places[3].bytes, 1u);
  for (size_t bytes = 0; bytes < row.size(); ++bytes)
    EXPECT_FALSE(schema.locate({row.data(), bytes}, places)) << bytes;
  std::mt19937 random(7);
  uint32_t found = 0;
  for (int round = 0; round < 20'000; ++round) {
    Bytes damaged = row;
    damaged.resize(random() % (row.size() + 1));
    for (uint32_t i = random() % 3; i > 0 && !damaged.empty(); --i)
      damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    if (!schema.locate(damaged, places)) continue;
    ++found;
    for (const ColumnPlace& place : places) {
      if (place.is_null()) continue;
      ASSERT_LE(uint64_t{place.offset} + place.bytes, damaged.size());
    }
  }
  EXPECT_GT(found, 0u);
}

}  // namespace
}  // namespace faro::test
