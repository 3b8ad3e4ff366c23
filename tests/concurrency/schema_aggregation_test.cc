// Aggregation over schemas, in real sessions: random schemas, keys, functions and memory, every group compared with an oracle; the rules
// of SQL one by one; and what is refused.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "faro/aggregate.h"
#include "support/operator_test.h"
#include "support/shuffle_api.h"

namespace faro::test {
namespace {

using enum AggregateFunction;
using Bytes = std::vector<std::byte>;
/// A value that has its bytes; null: none.
using Kept = std::variant<std::monostate, int64_t, Int128, float, double, std::string>;
using Row = std::vector<Kept>;

Value value_of_kept(const Kept& kept) {
  return std::visit([](const auto& value) -> Value { return value; }, kept);
}
Kept kept_of(const Value& value) {
  if (const auto* view = std::get_if<std::string_view>(&value)) return std::string(*view);
  return std::visit(
      [](const auto& of_type) -> Kept {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(of_type)>, std::string_view>)
          return std::string(of_type);
        else
          return of_type;
      },
      value);
}
bool is_null(const Kept& value) { return value.index() == 0; }

/// A text that is equal where values are: -0.0 and 0.0, all NaN.
std::string text_of(const Kept& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return fmt::format("i{}", *integer);
  if (const auto* wide = std::get_if<Int128>(&value))
    return fmt::format("w{}:{}", static_cast<int64_t>(*wide >> 64), static_cast<uint64_t>(*wide));
  if (const auto* text = std::get_if<std::string>(&value)) return "s" + *text;
  if (is_null(value)) return "null";
  const auto* narrow = std::get_if<float>(&value);
  const double real = narrow != nullptr ? double{*narrow} : std::get<double>(value);
  if (std::isnan(real)) return "NaN";
  return fmt::format("f{}", real == 0 ? 0.0 : real);
}
std::string text_of(const std::vector<Kept>& row, const std::vector<uint32_t>& columns) {
  std::string text;
  for (const uint32_t column : columns) {
    const std::string one = text_of(row[column]);
    text += fmt::format("{}:{};", one.size(), one);
  }
  return text;
}

bool is_less(const Kept& a, const Kept& b) {
  const auto real_of = [](const Kept& value) {
    const auto* narrow = std::get_if<float>(&value);
    return narrow != nullptr ? double{*narrow} : std::get<double>(value);
  };
  if (std::holds_alternative<float>(a) || std::holds_alternative<double>(a)) {
    if (std::isnan(real_of(a))) return false;
    return std::isnan(real_of(b)) || real_of(a) < real_of(b);
  }
  if (const auto* text = std::get_if<std::string>(&a)) {
    const auto& other = std::get<std::string>(b);
    return std::lexicographical_compare(
        text->begin(), text->end(), other.begin(), other.end(),
        [](char x, char y) { return static_cast<uint8_t>(x) < static_cast<uint8_t>(y); });
  }
  return a < b;
}

/// What a function comes to, by the simplest of loops. For `any`: the values that it may be.
std::set<std::string> expected_of(const Aggregate& what, const std::vector<Row>& rows) {
  int64_t count = 0;
  Int128 sum = 0;
  double real_sum = 0;
  std::optional<Kept> least, most;
  std::set<std::string> all;
  for (const Row& row : rows) {
    if (what.function == count_rows || !is_null(row[what.column])) ++count;
    if (what.function == count_rows || is_null(row[what.column])) continue;
    const Kept& value = row[what.column];
    all.insert(text_of(value));
    if (const auto* integer = std::get_if<int64_t>(&value)) sum += *integer;
    if (const auto* wide = std::get_if<Int128>(&value)) sum += *wide;
    if (const auto* real = std::get_if<double>(&value)) real_sum += *real;
    if (const auto* real = std::get_if<float>(&value)) real_sum += double{*real};
    if (!least || is_less(value, *least)) least = value;
    if (!most || is_less(*most, value)) most = value;
  }
  if (what.function == count_rows || what.function == AggregateFunction::count)
    return {text_of(count)};
  if (!least) return {"null"};
  switch (what.function) {
    case AggregateFunction::sum:
      if (std::holds_alternative<float>(*least) || std::holds_alternative<double>(*least))
        return {text_of(Kept(real_sum))};
      return {text_of(Kept(sum)), text_of(Kept(static_cast<int64_t>(sum)))};
    case min:
      return {text_of(*least)};
    case max:
      return {text_of(*most)};
    default:
      return all;
  }
}

/// A schema, what is computed of it, and the rows of all workers: all drawn from a seed.
class Drawn {
 public:
  explicit Drawn(uint32_t seed) : random_(seed) {
    const uint32_t count = 1 + below(6);
    for (uint32_t i = 0; i < count; ++i) columns_.push_back(column());
    grouping.rows = value_of(Schema::make(columns_));
    for (uint32_t i = 0; i < count && grouping.keys.size() < 3; ++i) {
      if (below(2) == 0) grouping.keys.push_back(i);
    }
    const uint32_t functions = (grouping.keys.empty() ? 1 : 0) + below(5);
    for (uint32_t i = 0; i < functions; ++i) {
      const Aggregate one{static_cast<AggregateFunction>(below(6)), below(count), {}};
      const ColumnType type = columns_[one.column].type;
      const bool is_number = type != ColumnType::boolean && width_of(type) > 0;
      if (one.function == AggregateFunction::sum && !is_number) continue;
      grouping.aggregates.push_back(one);
    }
    if (grouping.keys.empty() && grouping.aggregates.empty()) grouping.aggregates.push_back({});
    constexpr uint64_t kDomains[] = {1, 7, 300, 20'000};
    domain_ = kDomains[below(4)];
    is_long_ = below(4) == 0;
    const uint32_t rows = below(5) == 0 ? 0 : below(6000);
    for (uint32_t i = 0; i < rows * kWorkers; ++i) rows_of[i % kWorkers].push_back(row());
  }

  std::map<std::string, std::vector<Row>> groups() const {
    std::map<std::string, std::vector<Row>> groups;
    if (grouping.keys.empty()) groups[""];
    for (const std::vector<Row>& rows : rows_of) {
      for (const Row& each : rows) groups[text_of(each, grouping.keys)].push_back(each);
    }
    return groups;
  }

  Grouping grouping;
  std::vector<Row> rows_of[kWorkers];

 private:
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }

  Column column() {
    Column column{static_cast<ColumnType>(below(kColumnTypes)), below(2) == 0};
    if (column.type == ColumnType::decimal_18) column.scale = below(19);
    if (column.type == ColumnType::decimal_38) column.scale = below(39);
    return column;
  }
  Row row() {
    Row row;
    for (const Column& column : columns_) row.push_back(value(column));
    return row;
  }
  Kept value(const Column& column) {
    if (column.nullable && below(5) == 0) return {};
    const auto drawn = static_cast<int64_t>(random_() % domain_);
    const int64_t number = drawn % 2 == 0 ? drawn : -drawn;
    switch (column.type) {
      case ColumnType::boolean:
        return drawn % 2;
      case ColumnType::int8:
        return int64_t{static_cast<int8_t>(number)};
      case ColumnType::int16:
        return int64_t{static_cast<int16_t>(number)};
      case ColumnType::float32:
        return static_cast<float>(real(number));
      case ColumnType::float64:
        return real(number);
      case ColumnType::decimal_38:
        return Int128{number} * 1'000'000'000'000'000'000 * 1'000'000;
      case ColumnType::string:
      case ColumnType::bytes: {
        // Its length goes with the value; a few are long, and some begin with a high byte.
        const size_t length = drawn % 50 == 3 && is_long_ ? 6000 : static_cast<size_t>(drawn % 40);
        return std::string(drawn % 5 == 0 ? "\xf0" : "") + std::to_string(drawn) +
               std::string(length, static_cast<char>('a' + drawn % 20));
      }
      default:
        return number * (column.type == ColumnType::int64 ? 1'000'000'007 : 1);
    }
  }
  double real(int64_t number) {
    switch (number % 11) {
      case 0:
        return below(2) == 0 ? 0.0 : -0.0;
      case 1:
        return domain_ > 7 ? static_cast<double>(number)
                           : std::bit_cast<double>(0x7ff8000000000000ULL + below(3));
      default:
        return static_cast<double>(number) / 4;
    }
  }

  std::mt19937_64 random_;
  std::vector<Column> columns_;
  uint64_t domain_ = 1;
  bool is_long_ = false;
};

Bytes packed(const Schema& schema, const std::vector<Row>& rows) {
  Bytes all;
  for (const Row& row : rows) {
    std::vector<Value> values;
    for (const Kept& value : row) values.push_back(value_of_kept(value));
    const size_t bytes = value_of(schema.bytes(values));
    const auto length = static_cast<uint32_t>(bytes);
    const size_t before = schema.row_bytes() == 0 ? sizeof length : 0;
    all.resize(all.size() + before + bytes);
    std::byte* const to = all.data() + all.size() - bytes;
    if (before > 0) std::memcpy(to - before, &length, before);
    schema.write(values, to);
  }
  return all;
}

std::vector<Row> unpacked(const Schema& schema, const PackedRows& rows) {
  std::vector<Row> all;
  size_t at = 0;
  for (size_t i = 0; i < rows.count; ++i) {
    uint32_t bytes = schema.row_bytes();
    if (bytes == 0) {
      std::memcpy(&bytes, rows.bytes.data() + at, sizeof bytes);
      at += sizeof bytes;
    }
    std::vector<Value> values(schema.columns().size());
    EXPECT_TRUE(is_ok(schema.read(rows.bytes.subspan(at, bytes), values)));
    at += bytes;
    Row& row = all.emplace_back();
    for (const Value& value : values) row.push_back(kept_of(value));
  }
  EXPECT_EQ(at, rows.bytes.size());
  return all;
}

class SchemaAggregationTest : public OperatorTest {
 protected:
  /// Adds rows, at a worker, in pieces, and takes the groups that come out there.
  static Outcome group(SchemaAggregation& by, const Bytes& rows, std::vector<Row>& groups) {
    std::span<const std::byte> rest = rows;
    while (!rest.empty()) {
      const SchemaAggregation::Added added = by.add(rest);
      if (added.outcome != Outcome::done) return added.outcome;
      rest = rest.subspan(added.bytes);
    }
    if (const Outcome outcome = by.finish(); outcome != Outcome::done) return outcome;
    for (;;) {
      PackedRows some;
      const Outcome outcome = by.next(some);
      if (outcome != Outcome::done) return outcome;
      EXPECT_GT(some.count, 0u);
      for (Row& row : unpacked(by.results(), some)) groups.push_back(std::move(row));
    }
  }

  /// All workers group; what comes out at each.
  std::vector<std::vector<Row>> group_all(const Grouping& grouping, const std::vector<Row>* rows,
                                          std::optional<uint32_t> table = {}) {
    std::vector<std::vector<Row>> groups(kWorkers);
    cluster_->run_workers([&](uint32_t w) {
      Worker& worker = cluster_->worker(w);
      auto made = value_of(SchemaAggregation::make(worker, {query_, 0, {}, {}, table}, grouping));
      EXPECT_EQ(group(*made, packed(grouping.rows, rows[w]), groups[w]), Outcome::end_of_stream)
          << made->status().to_string();
      const AggregationMetrics metrics = made->metrics();
      EXPECT_EQ(metrics.rows, rows[w].size());
      {
        const std::lock_guard lock(mutex_);
        spilled_ += metrics.spilled_bytes;
        split_ += metrics.partitions_split;
        passed_ += metrics.rows_passed;
        states_sent_ += metrics.states_sent;
      }
      made.reset();
      EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
    });
    return groups;
  }
  /// Rows of a few workers' own, and the groups of all.
  std::vector<Row> group_some(const Grouping& grouping, std::vector<Row> rows) {
    std::vector<Row> of_worker[kWorkers];
    for (size_t i = 0; i < rows.size(); ++i) of_worker[i % kWorkers].push_back(std::move(rows[i]));
    std::vector<Row> all;
    for (std::vector<Row>& groups : group_all(grouping, of_worker)) {
      for (Row& group : groups) all.push_back(std::move(group));
    }
    return all;
  }
  /// Why the query fails at every worker.
  void expect_failure(const Grouping& grouping, const std::vector<Row>& rows,
                      const std::string& part) {
    cluster_->run_workers([&](uint32_t w) {
      Worker& worker = cluster_->worker(w);
      // Another worker may have failed by then.
      if (auto made = SchemaAggregation::make(worker, {query_}, grouping); made.ok()) {
        std::vector<Row> groups;
        (void)group(**made, packed(grouping.rows, rows), groups);
      }
      EXPECT_EQ(worker.end_query(query_), Outcome::failed);
      EXPECT_NE(worker.status().message().find(part), std::string_view::npos)
          << worker.status().to_string();
    });
  }

  static void compare(const Drawn& drawn, const std::vector<std::vector<Row>>& groups) {
    const std::map<std::string, std::vector<Row>> expected = drawn.groups();
    std::set<std::string> seen;
    const size_t keys = drawn.grouping.keys.size();
    std::vector<uint32_t> key_columns(keys);
    for (uint32_t i = 0; i < keys; ++i) key_columns[i] = i;
    for (const std::vector<Row>& of_worker : groups) {
      for (const Row& row : of_worker) {
        const std::string key = text_of(row, key_columns);
        ASSERT_TRUE(seen.insert(key).second) << key << " comes twice";
        const auto found = expected.find(key);
        ASSERT_NE(found, expected.end()) << key;
        for (size_t i = 0; i < drawn.grouping.aggregates.size(); ++i) {
          const std::set<std::string> may_be =
              expected_of(drawn.grouping.aggregates[i], found->second);
          EXPECT_TRUE(may_be.contains(text_of(row[keys + i])))
              << "function " << i << " of " << key << ": " << text_of(row[keys + i]) << ", and not "
              << *may_be.begin();
        }
        for (const uint32_t column : key_columns) {
          const auto* real = std::get_if<double>(&row[column]);
          EXPECT_FALSE(real != nullptr && *real == 0 && std::signbit(*real));
        }
      }
    }
    EXPECT_EQ(seen.size(), expected.size());
  }

  std::mutex mutex_;
  uint64_t spilled_ = 0;
  uint64_t split_ = 0;
  uint64_t passed_ = 0;
  uint64_t states_sent_ = 0;
};

Schema schema_of(std::vector<Column> columns) { return value_of(Schema::make(std::move(columns))); }

class RandomSchemas : public SchemaAggregationTest, public testing::WithParamInterface<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Each, RandomSchemas, testing::Range(0u, 6u));

TEST_P(RandomSchemas, give_every_group_once_as_an_oracle_does) {
  constexpr uint32_t kSeeds = 12;
  for (uint32_t i = 0; i < kSeeds; ++i) {
    const uint32_t seed = GetParam() * kSeeds + i;
    SCOPED_TRACE(fmt::format("seed {}", seed));
    SettingList settings = i % 2 == 0 ? small_rings() : SettingList();
    if (i % 3 == 0) settings.push_back({"operator.memory_bytes", "4 MiB"});
    open(settings);
    const Drawn drawn(seed);
    const std::optional<uint32_t> tables[] = {std::nullopt, 0u, 4096u};
    compare(drawn, group_all(drawn.grouping, drawn.rows_of, tables[i % 3]));
    TearDown();
    cluster_.reset();
    if (HasFailure()) return;
  }
}

// Strings as keys, and as the least and largest of a group: more than the reserves of the workers hold.
TEST_F(SchemaAggregationTest, groups_that_do_not_fit_the_memory_are_spilled_and_merged) {
  open({{"operator.memory_bytes", "4 MiB"}, {"overflow.memory_bytes", "1 MiB"}});
  Drawn drawn(1);
  drawn.grouping = {schema_of({{ColumnType::string}, {ColumnType::bytes, true}}),
                    {0},
                    {{count_rows}, {min, 1}, {max, 1}, {any, 0}}};
  std::mt19937 random(3);
  for (std::vector<Row>& rows : drawn.rows_of) {
    rows.clear();
    for (int i = 0; i < 40'000; ++i) {
      const uint32_t key = random() % 60'000;
      rows.push_back({std::to_string(key) + std::string(key % 50, 'x'),
                      random() % 9 == 0 ? Kept() : std::string(random() % 90, 'a' + i % 20)});
    }
  }
  compare(drawn, group_all(drawn.grouping, drawn.rows_of));
  EXPECT_GT(spilled_, uint64_t{1} << 20);
}

// The largest value of a group becomes longer with every row: what it leaves is used again.
TEST_F(SchemaAggregationTest, a_value_that_grows_again_and_again_takes_what_it_has) {
  open({{"operator.memory_bytes", "6 MiB"}});
  Drawn drawn(1);
  drawn.grouping = {schema_of({{ColumnType::int32}, {ColumnType::string}}), {0}, {{max, 1}}};
  for (std::vector<Row>& rows : drawn.rows_of) {
    rows.clear();
    // Short, longer and long by turns, each larger than the one before.
    for (int i = 0; i < 20'000; ++i)
      rows.push_back(
          {int64_t{i % 3}, fmt::format("{:06}", i) + std::string(i / 3 % 3 * 1500, 'x')});
  }
  compare(drawn, group_all(drawn.grouping, drawn.rows_of, 4096));
  EXPECT_EQ(states_sent_, 3 * kWorkers);  // no table was sent for want of room before its end
}

TEST_F(SchemaAggregationTest, rows_above_a_table_and_a_frame_pass) {
  open(small_rings({{"operator.memory_bytes", "32 MiB"}}));
  Drawn drawn(1);
  drawn.grouping = {schema_of({{ColumnType::string}, {ColumnType::int64}}), {0}, {{sum, 1}}};
  for (std::vector<Row>& rows : drawn.rows_of) {
    rows.clear();
    for (int i = 0; i < 12; ++i) rows.push_back({std::string(500'000 + i % 4, 'k'), int64_t{i}});
  }
  compare(drawn, group_all(drawn.grouping, drawn.rows_of));
}

// --- SQL

TEST_F(SchemaAggregationTest, functions_pass_over_nulls_and_are_null_of_none) {
  open();
  const Grouping grouping{
      schema_of({{ColumnType::int32, true}, {ColumnType::int64, true}}),
      {0},
      {{count_rows}, {AggregateFunction::count, 1}, {sum, 1}, {min, 1}, {any, 1}}};
  const int64_t one = 1, two = 2;
  std::vector<Row> groups = group_some(
      grouping, {{one, Kept()}, {one, Kept()}, {Kept(), two}, {Kept(), Kept()}, {Kept(), two}});
  ASSERT_EQ(groups.size(), 2u);
  if (is_null(groups[0][0])) std::swap(groups[0], groups[1]);
  EXPECT_EQ(groups[0], (Row{one, two, int64_t{0}, Kept(), Kept(), Kept()}));
  EXPECT_EQ(groups[1], (Row{Kept(), int64_t{3}, two, int64_t{4}, two, two}));
}

TEST_F(SchemaAggregationTest, without_keys_there_is_one_row_at_the_first_receiver_also_of_none) {
  open();
  const Grouping grouping{schema_of({{ColumnType::string}, {ColumnType::decimal_18}}),
                          {},
                          {{count_rows}, {AggregateFunction::count, 0}, {sum, 1}, {max, 0}}};
  const std::vector<Row> rows[kWorkers];
  const std::vector<std::vector<Row>> groups = group_all(grouping, rows);
  ASSERT_EQ(groups[0].size(), 1u);
  EXPECT_EQ(groups[0][0], (Row{int64_t{0}, int64_t{0}, Kept(), Kept()}));
  for (uint32_t w = 1; w < kWorkers; ++w) EXPECT_TRUE(groups[w].empty());
}

TEST_F(SchemaAggregationTest, nan_is_one_group_and_the_largest_and_minus_zero_is_zero) {
  open();
  const Grouping grouping{schema_of({{ColumnType::float64}, {ColumnType::float32}}),
                          {0},
                          {{min, 1}, {max, 1}, {count_rows}}};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto other_nan = std::bit_cast<double>(0xfff8000000000123ULL);
  const auto narrow_nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<Row> groups = group_some(
      grouping, {{nan, 1.0F}, {other_nan, narrow_nan}, {-0.0, -0.0F}, {0.0, 0.0F}, {nan, 2.0F}});
  ASSERT_EQ(groups.size(), 2u);
  if (std::isnan(std::get<double>(groups[0][0]))) std::swap(groups[0], groups[1]);
  EXPECT_EQ(groups[0], (Row{0.0, 0.0F, 0.0F, int64_t{2}}));
  EXPECT_FALSE(std::signbit(std::get<double>(groups[0][0])));
  EXPECT_EQ(std::get<float>(groups[1][1]), 1.0F);
  EXPECT_TRUE(std::isnan(std::get<float>(groups[1][2])));
  EXPECT_EQ(groups[1][3], Kept(int64_t{3}));
}

// By units of UTF-16, as Java compares, the second would be less: it is a surrogate pair there.
TEST_F(SchemaAggregationTest, strings_compare_byte_by_byte) {
  open();
  const Grouping grouping{schema_of({{ColumnType::string}}), {}, {{min, 0}, {max, 0}}};
  const std::string last_of_bmp = "\xef\xbf\xbd", beyond = "\xf0\x9f\x98\x80";
  const std::vector<Row> groups = group_some(grouping, {{beyond}, {last_of_bmp}, {beyond}});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0], (Row{last_of_bmp, beyond}));
}

TEST_F(SchemaAggregationTest, sums_have_128_bits_and_the_column_that_was_named) {
  open();
  const int64_t most = std::numeric_limits<int64_t>::max();
  Grouping grouping{
      schema_of({{ColumnType::int64}}), {}, {{sum, 0, Column{ColumnType::decimal_38, true}}}};
  std::vector<Row> groups = group_some(grouping, {{most}, {most}, {most}});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0], (Row{Int128{most} * 3}));
}

TEST_F(SchemaAggregationTest, a_sum_that_does_not_fit_its_column_fails_the_query_and_names_it) {
  open();
  const Grouping grouping{
      schema_of({{ColumnType::int32}, {ColumnType::int64}}), {0}, {{count_rows}, {sum, 1}}};
  expect_failure(grouping, {{int64_t{1}, std::numeric_limits<int64_t>::max()}},
                 "sum(column 1) of an aggregation does not fit LONG, column 2");
}

TEST_F(SchemaAggregationTest, a_sum_above_the_named_column_fails_the_query_and_names_both) {
  struct {
    Column result;
    const char* part;
  } const kNarrow[] = {
      {{ColumnType::int8}, "sum(column 1) of an aggregation does not fit BYTE, column 1"},
      {{ColumnType::decimal_18, false, 0, 2}, "does not fit DECIMAL_18(0), column 1"},
      {{ColumnType::decimal_38, false, 0, 2}, "does not fit DECIMAL_38(0), column 1"}};
  for (const auto& [result, part] : kNarrow) {
    open();
    const Schema rows = schema_of({{ColumnType::int32}, {ColumnType::int64}});
    expect_failure({rows, {0}, {{sum, 1, result}}}, {{int64_t{1}, int64_t{200}}}, part);
    TearDown();
    cluster_.reset();
  }
}

TEST_F(SchemaAggregationTest, a_sum_beyond_128_bits_fails_the_query_and_names_the_column) {
  open();
  Int128 most = 1;
  for (int i = 0; i < 38; ++i) most *= 10;
  const Grouping grouping{schema_of({{ColumnType::decimal_38}}), {}, {{sum, 0}}};
  expect_failure(grouping, {{most - 1}, {most - 1}},
                 "sum(column 0) of an aggregation does not fit 128 bits");
}

// Each worker adds one row: it is where states meet that there are too many bits.
TEST_F(SchemaAggregationTest, states_whose_sum_is_beyond_128_bits_fail_the_query_where_they_meet) {
  open();
  Int128 most = 1;
  for (int i = 0; i < 38; ++i) most *= 10;
  const Grouping grouping{schema_of({{ColumnType::decimal_38}}), {}, {{sum, 0}}};
  expect_failure(grouping, {{most - 1}}, "sum(column 0) of an aggregation does not fit 128 bits");
}

// --- what is refused

TEST_F(SchemaAggregationTest, groupings_that_cannot_be_are_refused_by_name) {
  open();
  const Schema rows = schema_of(
      {{ColumnType::string}, {ColumnType::int32, true}, {ColumnType::decimal_18, false, 2}});
  struct {
    Grouping grouping;
    const char* part;
  } const kWrong[] = {
      {{rows, {}, {}}, "no key and no function"},
      {{rows, {3}, {}}, "column 3 of 3"},
      {{rows, {0}, {{sum, 3}}}, "sum(column 3)"},
      {{rows, {0}, {{sum, 0}}}, "sum(column 0): it is STRING"},
      {{rows, {0}, {{min, 1, Column{ColumnType::int64, true}}}}, "min(column 1) is INT or null"},
      {{rows, {0}, {{sum, 1, Column{ColumnType::int64}}}}, "and not LONG"},
      {{rows, {0}, {{sum, 2, Column{ColumnType::decimal_38, false, 3}}}},
       "DECIMAL_38(2), and not DECIMAL_38(3)"},
  };
  Worker& worker = cluster_->worker(0);
  for (const auto& [grouping, part] : kWrong) {
    const auto made = SchemaAggregation::make(worker, {query_}, grouping);
    expect_error(made.status(), Code::invalid_argument, {part});
  }
  (void)worker.end_query(query_, Status(Code::query_cancelled, "done"));
}

TEST_F(SchemaAggregationTest, bytes_that_are_no_row_are_refused_and_those_before_are_added) {
  open();
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    const Grouping grouping{schema_of({{ColumnType::string}}), {0}, {{count_rows}}};
    auto made = value_of(SchemaAggregation::make(worker, {query_}, grouping));
    Bytes rows = packed(grouping.rows, {{std::string("ab")}, {std::string("abc")}});
    rows[rows.size() - 4 - 3] = std::byte{9};  // the length of the second string
    const SchemaAggregation::Added added = made->add(rows);
    EXPECT_EQ(added.outcome, Outcome::failed);
    EXPECT_EQ(added.rows, 1u);
    EXPECT_EQ(added.bytes, 4u + 4 + 2);
    expect_error(made->status(), Code::invalid_argument, {"row 1", "schema(STRING)"});
    std::vector<Row> groups;
    EXPECT_EQ(group(*made, {}, groups), Outcome::end_of_stream);
    for (const Row& row : groups) EXPECT_EQ(row, (Row{std::string("ab"), int64_t{kWorkers}}));
    made.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::done);
  });
}

// A string counts for each function that is of it: all of them together have more bytes than 32 bits can say.
TEST_F(SchemaAggregationTest,
       a_row_whose_state_is_no_row_of_a_shuffle_is_refused_and_the_query_goes_on) {
  open();
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    const Grouping grouping{
        schema_of({{ColumnType::string}}), {}, std::vector<Aggregate>(1025, {max, 0})};
    auto made = value_of(SchemaAggregation::make(worker, {query_}, grouping));
    const Bytes rows = packed(
        grouping.rows, {{std::string("ab")}, {std::string(4 << 20, 'x')}, {std::string("b")}});
    const SchemaAggregation::Added added = made->add(rows);
    EXPECT_EQ(added.outcome, Outcome::failed);
    EXPECT_EQ(added.rows, 1u);
    expect_error(made->status(), Code::row_too_large, {"row.limit_bytes"});
    std::vector<Row> groups;
    EXPECT_EQ(group(*made, packed(grouping.rows, {{std::string("b")}}), groups),
              Outcome::end_of_stream);
    EXPECT_EQ(groups.size(), w == 0 ? 1u : 0u);
    for (const Row& row : groups) EXPECT_EQ(row, Row(1025, std::string("b")));
    made.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::done);
  });
}

TEST_F(SchemaAggregationTest,
       a_group_that_is_larger_than_the_memory_fails_the_query_and_names_the_setting) {
  open({{"operator.memory_bytes", "8 MiB"}});
  const Grouping grouping{schema_of({{ColumnType::int32}, {ColumnType::string}}), {0}, {{max, 1}}};
  expect_failure(grouping, {{int64_t{1}, std::string(6 << 20, 'x')}},
                 ": operator.memory_bytes = 8388608, of which operators of this node have ");
}

TEST_F(SchemaAggregationTest, workers_that_compute_something_else_fail_by_stage_mismatch) {
  const Schema rows = schema_of({{ColumnType::int64}, {ColumnType::int64}});
  const Schema nullable = schema_of({{ColumnType::int64}, {ColumnType::int64, true}});
  const Column as_int{ColumnType::int32};
  struct {
    Grouping one, other;
    const char *of_one, *of_other;
  } const kDifferent[] = {
      {{rows, {0}, {{min, 0}}}, {rows, {0}, {{max, 0}}}, "min(column 0)", "max(column 0)"},
      {{rows, {0}, {{sum, 0}}}, {rows, {0}, {{sum, 1}}}, "sum(column 0)", "sum(column 1)"},
      {{rows, {0}, {{min, 0}}}, {rows, {1}, {{min, 0}}}, "by 0:", "by 1:"},
      {{rows, {0, 1}, {{count_rows}}}, {rows, {1, 0}, {{count_rows}}}, "by 0 1:", "by 1 0:"},
      {{rows, {0}, {{sum, 0}}}, {rows, {0}, {{sum, 0, as_int}}}, "as LONG", "as INT"},
      {{rows, {0}, {{sum, 0}}}, {nullable, {0}, {{sum, 0}}}, "LONG, LONG)", "LONG, LONG or null)"}};
  for (const auto& [one, other, of_one, of_other] : kDifferent) {
    open();
    cluster_->run_workers(
        [&, &first = one, &second = other, in_first = of_one, in_second = of_other](uint32_t w) {
          Worker& worker = cluster_->worker(w);
          const Grouping& grouping = w == 0 ? first : second;
          if (auto made = SchemaAggregation::make(worker, {query_}, grouping); made.ok()) {
            std::vector<Row> groups;
            (void)group(**made, packed(grouping.rows, {{int64_t{1}, int64_t{2}}}), groups);
          }
          EXPECT_EQ(worker.end_query(query_), Outcome::failed);
          expect_error(worker.status(), Code::stage_mismatch, {in_first, in_second});
        });
    TearDown();
    cluster_.reset();
  }
}

TEST_F(SchemaAggregationTest, a_worker_that_stops_gets_no_group) {
  open();
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    const Grouping grouping{schema_of({{ColumnType::string}}), {}, {{count_rows}}};
    auto made = value_of(SchemaAggregation::make(worker, {query_}, grouping));
    const Outcome stopped = w == 0 ? made->stop() : Outcome::done;
    EXPECT_EQ(stopped, Outcome::done);
    std::vector<Row> groups;
    EXPECT_EQ(group(*made, {}, groups), Outcome::end_of_stream);
    EXPECT_TRUE(groups.empty());
    made.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
  });
}

// What a peer has sent is checked: here by a worker that opens the stage as a shuffle of its own. The count is followed by the length of the
// key, and where it lies in the bytes behind.
TEST_F(SchemaAggregationTest, bytes_from_a_peer_that_are_no_state_fail_the_query) {
  const Grouping one{schema_of({{ColumnType::string}}), {0}, {{count_rows}}};
  const Grouping two{schema_of({{ColumnType::string}, {ColumnType::string}}), {0, 1}, {}};
  const auto state = [](uint32_t length, uint32_t at, size_t behind) {
    Bytes bytes(2 * sizeof(uint64_t) + behind);
    bytes[0] = std::byte{1};
    std::memcpy(&bytes[8], &length, sizeof length);
    std::memcpy(&bytes[12], &at, sizeof at);
    return bytes;
  };
  const auto first = [](Bytes bytes, size_t count) {
    bytes.resize(count);
    return bytes;
  };
  // The lengths of two keys, which are together as many bytes as there are, if 32 bits are all that is looked at.
  const auto wrapped = [] {
    Bytes bytes(16 + 3);
    const uint32_t words[] = {UINT32_MAX, 0, 4, UINT32_MAX};
    std::memcpy(bytes.data(), words, sizeof words);
    return bytes;
  };
  struct {
    Bytes bytes;
    bool is_state;
    bool has_two_keys = false;
  } const kSent[] = {{state(3, 0, 3), true},
                     {state(0, 0, 0), true},
                     {{}, false},
                     {Bytes(15), false},
                     {state(4, 0, 3), false},
                     {state(2, 0, 3), false},
                     {state(3, 1, 3), false},
                     {state(3, UINT32_MAX, 3), false},
                     {state(UINT32_MAX, 0, 3), false},
                     {filled(40, 0x7f), false},
                     {first(state(UINT32_MAX, 0, 0), 15), false},
                     {wrapped(), false, true}};
  for (const auto& [sent, is_state, has_two_keys] : kSent) {
    open();
    cluster_->run_workers([&, &bytes = sent, &grouping = has_two_keys ? two : one,
                           is_right = is_state](uint32_t w) {
      Worker& worker = cluster_->worker(w);
      if (w == 0) {
        auto made = value_of(SchemaAggregation::make(worker, {query_, 0, {1}, {0}}, grouping));
        std::vector<Row> groups;
        EXPECT_EQ(group(*made, {}, groups), is_right ? Outcome::end_of_stream : Outcome::failed);
        EXPECT_EQ(groups.size(), is_right ? 1u : 0u);
        EXPECT_EQ(
            made->status().message().find("no state of this aggregation") == std::string_view::npos,
            is_right)
            << made->status().to_string();
        made.reset();
      } else if (w == 1) {
        Shuffle shuffle = value_of(worker.open_shuffle({query_, 0, 0, {1}, {0}}));
        send_now(shuffle, bytes);
        (void)shuffle.sender()->finish();
      }
      (void)worker.end_query(query_);
    });
    TearDown();
    cluster_.reset();
  }
}

}  // namespace
}  // namespace faro::test
