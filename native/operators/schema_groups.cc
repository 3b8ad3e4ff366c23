#include "operators/schema_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/return_if_error.h"

namespace faro::operators {
namespace {

constexpr std::string_view kFunctionNames[] = {"count", "count", "sum", "min", "max", "any"};

std::string name_of(AggregateFunction function, uint32_t column) {
  const std::string_view name = kFunctionNames[static_cast<size_t>(function)];
  return function == AggregateFunction::count_rows ? std::string(name)
                                                   : fmt::format("{}(column {})", name, column);
}

bool is_integer(ColumnType type) noexcept {
  return type >= ColumnType::int8 && type <= ColumnType::int64;
}
bool is_float(ColumnType type) noexcept {
  return type == ColumnType::float32 || type == ColumnType::float64;
}
bool is_decimal(ColumnType type) noexcept {
  return type == ColumnType::decimal_18 || type == ColumnType::decimal_38;
}

/// -0.0 is 0.0, and all NaN are one.
template <typename Real>
Real one_of_equal(Real value) noexcept {
  if (std::isnan(value)) return std::numeric_limits<Real>::quiet_NaN();
  return value == 0 ? Real{0} : value;
}
/// NaN is the largest.
bool is_less(double a, double b) noexcept { return std::isnan(b) ? !std::isnan(a) : a < b; }

uint64_t hash_of_integer(int64_t value) noexcept {
  return FinalizerHash{}(static_cast<uint64_t>(value));
}

/// Reads an integer, a boolean, or a decimal of up to 18 digits.
int64_t integer_at(ColumnType type, const std::byte* from) noexcept {
  const auto load = [from](auto word) -> int64_t {
    std::memcpy(&word, from, sizeof word);
    return word;
  };
  switch (type) {
    case ColumnType::boolean:
      return load(uint8_t{}) != 0;
    case ColumnType::int8:
      return load(int8_t{});
    case ColumnType::int16:
      return load(int16_t{});
    case ColumnType::int32:
      return load(int32_t{});
    default:
      return load(int64_t{});
  }
}

std::string_view view_of(const std::byte* bytes, uint32_t count) noexcept {
  return {reinterpret_cast<const char*>(bytes), count};
}

/// The room of a value that may become longer.
uint64_t room_of(uint32_t bytes, uint64_t least) noexcept {
  return bytes == 0 ? 0 : std::max(least, std::bit_ceil(uint64_t{bytes}));
}

/// Whether a function can be had of a column.
bool is_for(AggregateFunction function, ColumnType type) noexcept {
  return function != AggregateFunction::sum || is_integer(type) || is_float(type) ||
         is_decimal(type);
}

}  // namespace

// --- what a grouping means

Result<SchemaGroups> SchemaGroups::make(const Grouping& grouping) {
  SchemaGroups made;
  FARO_RETURN_IF_ERROR(made.lay_out(grouping));
  made.copy_.resize(made.width());
  return made;
}

Status GroupLayout::lay_out(const Grouping& grouping) {
  rows_ = grouping.rows;
  if (grouping.keys.empty() && grouping.aggregates.empty())
    return base::error(Code::invalid_argument, "an aggregation of no key and no function");
  FARO_RETURN_IF_ERROR(add_keys(grouping));
  FARO_RETURN_IF_ERROR(add_states(grouping));
  place();
  return add_results(grouping);
}

Status GroupLayout::add_keys(const Grouping& grouping) {
  for (const uint32_t number : grouping.keys) {
    if (number >= rows_.columns().size()) {
      return base::error(Code::invalid_argument, "a key is column {} of {}", number,
                         rows_.columns().size());
    }
    const Column& column = rows_.columns()[number];
    // The place and the bit are known when all keys are.
    keys_.push_back({number, column.type, 0, column.nullable ? 0 : kNone});
  }
  return Status::Ok();
}

Status GroupLayout::add_states(const Grouping& grouping) {
  using enum AggregateFunction;
  for (const Aggregate& each : grouping.aggregates) {
    if (static_cast<size_t>(each.function) >= std::size(kFunctionNames)) {
      return base::error(Code::invalid_argument, "there is no function {}",
                         static_cast<int>(each.function));
    }
    State state{each.function, Merge::counts, each.column, ColumnType::int64, 0, kNone, 0};
    if (each.function != count_rows) {
      if (each.column >= rows_.columns().size()) {
        return base::error(Code::invalid_argument, "{} of {} columns",
                           name_of(each.function, each.column), rows_.columns().size());
      }
      const Column& column = rows_.columns()[each.column];
      state.type = column.type;
      if (!is_for(each.function, column.type)) {
        return base::error(Code::invalid_argument, "{}: it is {}",
                           name_of(each.function, each.column), column.to_string());
      }
      const uint32_t width = width_of(column.type);
      const bool is_any = each.function == any;
      state.variable = each.function != count && width == 0 ? 1 : 0;
      if (each.function == sum) {
        state.merge = is_float(column.type) ? Merge::float_sums : Merge::integer_sums;
      } else if (each.function != count) {
        state.merge = width == 0                ? Merge::strings
                      : width == sizeof(Int128) ? is_any ? Merge::wide_words : Merge::wide_integers
                      : is_any                  ? Merge::words
                      : is_float(column.type)   ? Merge::floats
                                                : Merge::integers;
      }
      // A global aggregate may be of no row.
      if (each.function != count && (column.nullable || grouping.keys.empty())) state.has_bit = 0;
    }
    states_.push_back(state);
  }
  return Status::Ok();
}

void GroupLayout::place() {
  uint32_t at = 0;
  const auto is_wide = [](const State& state) {
    return state.merge == Merge::integer_sums || state.merge == Merge::wide_integers ||
           state.merge == Merge::wide_words;
  };
  for (const uint32_t width : {16u, 8u}) {
    for (State& state : states_) {
      if (is_wide(state) != (width == 16)) continue;
      state.at = at;
      at += width;
    }
  }
  key_at_ = at;
  for (const uint32_t width : {16u, 8u, 4u, 2u, 1u}) {
    for (KeyColumn& key : keys_) {
      if (width_of(key.type) != width) continue;
      key.at = at;
      at += width;
    }
  }
  // Bits are counted from the beginning of the record.
  uint32_t bit = 8 * at;
  for (KeyColumn& key : keys_) {
    if (key.null_bit != kNone) key.null_bit = bit++;
  }
  at = key_end_ = (bit + 63) / 64 * 8;
  for (KeyColumn& key : keys_) {
    if (width_of(key.type) != 0) continue;
    key.at = at;
    refs_.push_back(at);
    at += sizeof(Ref);
  }
  key_ref_count_ = static_cast<uint32_t>(refs_.size());
  for (const State& state : states_) {
    if (state.variable != 0) refs_.push_back(state.at);
  }
  bit = 8 * at;
  for (State& state : states_) {
    if (state.has_bit != kNone) state.has_bit = bit++;
  }
  width_ = (bit + 63) / 64 * 8;
}

Status GroupLayout::add_results(const Grouping& grouping) {
  std::vector<Column> columns;
  format_ = "aggregation of " + rows_.format() + " by";
  for (const KeyColumn& key : keys_) {
    columns.push_back(rows_.columns()[key.column]);
    format_ += fmt::format(" {}", key.column);
  }
  for (size_t i = 0; i < states_.size(); ++i) {
    const State& state = states_[i];
    const bool is_sum = state.function == AggregateFunction::sum;
    Column result;
    if (state.merge != Merge::counts) {
      result = rows_.columns()[state.column];
      if (is_sum && is_float(result.type)) result.type = ColumnType::float64;
      if (is_sum && is_integer(result.type)) result.type = ColumnType::int64;
      if (is_sum && result.is_decimal()) {
        result.type = ColumnType::decimal_38;
        result.precision = 38;
      }
    }
    result.nullable = state.has_bit != kNone;
    const Column usual = result;
    if (grouping.aggregates[i].result) result = *grouping.aggregates[i].result;
    const bool is_number = state.merge == Merge::counts || state.merge == Merge::integer_sums;
    const bool may_be = is_number ? (is_integer(result.type) || is_decimal(result.type)) &&
                                        result.scale == usual.scale
                                  : result.type == usual.type && result.scale == usual.scale;
    if (!may_be || (usual.nullable && !result.nullable)) {
      return base::error(Code::invalid_argument, "{} is {}, and not {}",
                         name_of(state.function, state.column), usual.to_string(),
                         result.to_string());
    }
    format_ += fmt::format("{} {} as {}", i == 0 ? ":" : ",", name_of(state.function, state.column),
                           result.to_string());
    columns.push_back(result);
  }
  FARO_ASSIGN_OR_RETURN(results_, Schema::make(std::move(columns)));
  return Status::Ok();
}

// --- rows

GroupRow GroupLayout::record_of(std::span<const std::byte> row, std::span<const ColumnPlace> places,
                                std::byte* fixed) const noexcept {
  uint64_t variable = 0;
  const auto refer = [&](uint32_t at, ColumnPlace place) {
    store(fixed + at, Ref{place.bytes, place.offset});
    variable += place.bytes;
  };
  for (const KeyColumn& key : keys_) {
    const ColumnPlace place = places[key.column];
    if (place.is_null()) {
      set(fixed, key.null_bit);
      continue;
    }
    const std::byte* const from = row.data() + place.offset;
    switch (key.type) {
      case ColumnType::boolean:
        fixed[key.at] = std::byte{*from != std::byte{0}};
        break;
      case ColumnType::float32:
        store(fixed + key.at, one_of_equal(load<float>(from)));
        break;
      case ColumnType::float64:
        store(fixed + key.at, one_of_equal(load<double>(from)));
        break;
      case ColumnType::string:
      case ColumnType::bytes:
        refer(key.at, place);
        break;
      case ColumnType::int64:
      case ColumnType::decimal_18:
        store(fixed + key.at, load<uint64_t>(from));
        break;
      default:
        std::memcpy(fixed + key.at, from, place.bytes);
    }
  }
  for (const State& state : states_) {
    std::byte* const to = fixed + state.at;
    if (state.function == AggregateFunction::count_rows) {
      store(to, uint64_t{1});
      continue;
    }
    const ColumnPlace place = places[state.column];
    if (place.is_null()) continue;
    set(fixed, state.has_bit);
    const std::byte* const from = row.data() + place.offset;
    switch (state.merge) {
      case Merge::counts:
        store(to, uint64_t{1});
        break;
      case Merge::integer_sums:
        store(to, state.type == ColumnType::decimal_38 ? load<Int128>(from)
                                                       : Int128{integer_at(state.type, from)});
        break;
      case Merge::wide_integers:
      case Merge::wide_words:
        store(to, load<Int128>(from));
        break;
      case Merge::float_sums:
        store(to,
              state.type == ColumnType::float32 ? double{load<float>(from)} : load<double>(from));
        break;
      case Merge::floats:
        store(to, one_of_equal(state.type == ColumnType::float32 ? double{load<float>(from)}
                                                                 : load<double>(from)));
        break;
      case Merge::words:
        if (is_float(state.type)) {
          std::memcpy(to, from, place.bytes);
        } else {
          store(to, integer_at(state.type, from));
        }
        break;
      case Merge::integers:
        store(to, integer_at(state.type, from));
        break;
      case Merge::strings:
        refer(state.at, place);
        break;
    }
  }
  return {{fixed, row.data(), variable}, keys_.empty() ? 0 : hash_of(fixed, row.data())};
}

// --- keys

uint64_t GroupLayout::hash_of(const std::byte* fixed, const std::byte* base) const noexcept {
  if (keys_.empty()) return 0;  // which is of the first receiver
  uint64_t hash = hash_of(keys_.front(), fixed, base);
  for (size_t i = 1; i < keys_.size(); ++i)
    hash = FinalizerHash{}(hash + 0x9e3779b97f4a7c15ULL) + hash_of(keys_[i], fixed, base);
  return hash;
}

uint64_t GroupLayout::hash_of(const KeyColumn& key, const std::byte* fixed,
                              const std::byte* base) const noexcept {
  constexpr uint64_t kOfNull = 0x6a09e667f3bcc908ULL;
  if (key.null_bit != kNone && has(fixed, key.null_bit)) return kOfNull;
  const std::byte* const from = fixed + key.at;
  switch (key.type) {
    case ColumnType::float32:
      return FinalizerHash{}(std::bit_cast<uint64_t>(double{load<float>(from)}));
    case ColumnType::float64:
      return FinalizerHash{}(load<uint64_t>(from));
    case ColumnType::decimal_38:
      return FinalizerHash{}(load<uint64_t>(from) + FinalizerHash{}(load<uint64_t>(from + 8)));
    case ColumnType::string:
    case ColumnType::bytes: {
      const Ref ref = load<Ref>(from);
      return hash_bytes(base + ref.at, ref.bytes);
    }
    default:
      return hash_of_integer(integer_at(key.type, from));
  }
}

bool SchemaGroups::has_variable_key(const std::byte* group, const Heap& heap,
                                    const Key& key) const noexcept {
  for (uint32_t i = 0; i < key_ref_count_; ++i) {
    const Ref own = load<Ref>(group + refs_[i]), other = load<Ref>(key.fixed + refs_[i]);
    if (own.bytes != other.bytes) return false;
    if (own.bytes > 0 && std::memcmp(heap.base() + own.at, key.base + other.at, own.bytes) != 0)
      return false;
  }
  return true;
}

uint64_t SchemaGroups::variable_bytes(const std::byte* fixed) const noexcept {
  uint64_t bytes = 0;
  for (const uint32_t at : refs_) bytes += load<Ref>(fixed + at).bytes;
  return bytes;
}

// --- states

void SchemaGroups::begin(std::byte* group, Heap& heap, const Record& record) const noexcept {
  std::memcpy(group, record.fixed, width_);
  for (size_t i = 0; i < refs_.size(); ++i) {
    const Ref ref = load<Ref>(record.fixed + refs_[i]);
    const uint64_t room = i < key_ref_count_ ? ref.bytes : room_of(ref.bytes, kLeastRoom);
    store(group + refs_[i], Ref{ref.bytes, heap.add(record.base + ref.at, ref.bytes, room)});
  }
}

/// Whether the state of a record takes the place of that of a group, of which both have a value.
bool SchemaGroups::replaces(const State& state, std::byte* group,
                            const std::byte* fixed) const noexcept {
  const bool is_min = state.function == AggregateFunction::min;
  const auto compare = [&](auto own, auto other) { return is_min ? other < own : own < other; };
  const std::byte* const own = group + state.at;
  const std::byte* const other = fixed + state.at;
  switch (state.merge) {
    case Merge::integers:
      return compare(load<int64_t>(own), load<int64_t>(other));
    case Merge::wide_integers:
      return compare(load<Int128>(own), load<Int128>(other));
    case Merge::floats: {
      const double of_group = load<double>(own), of_record = load<double>(other);
      return is_min ? is_less(of_record, of_group) : is_less(of_group, of_record);
    }
    default:
      return false;
  }
}

void SchemaGroups::merge(std::byte* group, Heap& heap, const Record& record) const noexcept {
  for (const State& state : states_) {
    if (!has(record.fixed, state.has_bit)) continue;
    std::byte* const own = group + state.at;
    const std::byte* const other = record.fixed + state.at;
    switch (state.merge) {
      case Merge::counts:
        store(own, load<uint64_t>(own) + load<uint64_t>(other));
        continue;
      case Merge::integer_sums: {
        Int128 sum;
        if (__builtin_add_overflow(load<Int128>(own), load<Int128>(other), &sum)) [[unlikely]]
          overflowed_ = &state;
        store(own, sum);
        break;
      }
      case Merge::float_sums:
        store(own, load<double>(own) + load<double>(other));
        break;
      case Merge::strings:
        merge_bytes(state, group, heap, record);
        break;
      default:
        if (has(group, state.has_bit) && !replaces(state, group, record.fixed)) continue;
        std::memcpy(
            own, other,
            state.merge == Merge::wide_integers || state.merge == Merge::wide_words ? 16 : 8);
    }
    set(group, state.has_bit);
  }
}

void SchemaGroups::merge_bytes(const State& state, std::byte* group, Heap& heap,
                               const Record& record) const noexcept {
  const Ref own = load<Ref>(group + state.at), other = load<Ref>(record.fixed + state.at);
  const std::byte* const from = record.base + other.at;
  if (has(group, state.has_bit)) {
    if (state.function == AggregateFunction::any) return;
    const int order = view_of(from, other.bytes).compare(view_of(heap.base() + own.at, own.bytes));
    if (state.function == AggregateFunction::min ? order >= 0 : order <= 0) return;
  }
  const uint64_t old_room = room_of(own.bytes, kLeastRoom);
  const uint64_t new_room = room_of(other.bytes, kLeastRoom);
  Ref now{other.bytes, own.at};
  if (new_room <= old_room) {
    heap.write(own.at, from, other.bytes);
    heap.give_up(old_room - new_room);
  } else {
    now.at = heap.add(from, other.bytes, new_room);
    heap.give_up(old_room);
  }
  store(group + state.at, now);
}

void SchemaGroups::move_heap(std::byte* group, const Heap& from, Heap& to) const noexcept {
  for (size_t i = 0; i < refs_.size(); ++i) {
    const Ref ref = load<Ref>(group + refs_[i]);
    const uint64_t room = i < key_ref_count_ ? ref.bytes : room_of(ref.bytes, kLeastRoom);
    store(group + refs_[i], Ref{ref.bytes, to.add(from.base() + ref.at, ref.bytes, room)});
  }
}

Status SchemaGroups::overflow() const {
  if (overflowed_ == nullptr) return Status::Ok();
  return base::error(Code::query_failed, "{} of an aggregation does not fit 128 bits",
                     name_of(overflowed_->function, overflowed_->column));
}

// --- as they are sent and arrive

void SchemaGroups::write(const Record& record, std::byte* to) const noexcept {
  std::memcpy(to, record.fixed, width_);
  uint32_t at = 0;
  for (const uint32_t of_ref : refs_) {
    const Ref ref = load<Ref>(record.fixed + of_ref);
    store(to + of_ref, Ref{ref.bytes, at});
    if (ref.bytes > 0) std::memcpy(to + width_ + at, record.base + ref.at, ref.bytes);
    at += ref.bytes;
  }
}

// A peer has written it, and may change it: of what says where something lies a copy is looked at.
std::optional<GroupRecord> SchemaGroups::received(std::span<const std::byte> row) const noexcept {
  if (row.size() < width_ || row.size() > UINT32_MAX) return std::nullopt;
  std::memcpy(copy_.data(), row.data(), width_);
  const auto variable = static_cast<uint32_t>(row.size() - width_);
  uint32_t at = 0;
  for (const uint32_t of_ref : refs_) {
    const Ref ref = load<Ref>(copy_.data() + of_ref);
    if (ref.at != at || ref.bytes > variable - at) return std::nullopt;
    at += ref.bytes;
  }
  if (at != variable) return std::nullopt;
  return Record{copy_.data(), row.data() + width_, variable};
}

Status SchemaGroups::no_record(size_t bytes) {
  return base::error(Code::query_failed,
                     "a peer has sent {} bytes that are no state of this aggregation", bytes);
}

// --- as they are handed out

Value GroupLayout::key_value(const KeyColumn& key, const GroupRecord& record) const noexcept {
  if (key.null_bit != kNone && has(record.fixed, key.null_bit)) return {};
  const std::byte* const from = record.fixed + key.at;
  switch (key.type) {
    case ColumnType::float32:
      return load<float>(from);
    case ColumnType::float64:
      return load<double>(from);
    case ColumnType::decimal_38:
      return load<Int128>(from);
    case ColumnType::string:
    case ColumnType::bytes: {
      const Ref ref = load<Ref>(from);
      return view_of(record.base + ref.at, ref.bytes);
    }
    default:
      return integer_at(key.type, from);
  }
}

Result<Value> GroupLayout::state_value(const State& state, const Column& result,
                                       const GroupRecord& record) const {
  if (!has(record.fixed, state.has_bit)) return Value();
  const std::byte* const from = record.fixed + state.at;
  switch (state.merge) {
    case Merge::counts:
    case Merge::integer_sums: {
      const Int128 sum =
          state.merge == Merge::counts ? Int128{load<uint64_t>(from)} : load<Int128>(from);
      if (result.type == ColumnType::decimal_38) return Value(sum);
      if (sum == static_cast<int64_t>(sum)) return Value(static_cast<int64_t>(sum));
      break;
    }
    case Merge::float_sums:
      return Value(load<double>(from));
    case Merge::floats:
      return state.type == ColumnType::float32 ? Value(static_cast<float>(load<double>(from)))
                                               : Value(load<double>(from));
    case Merge::wide_integers:
    case Merge::wide_words:
      return Value(load<Int128>(from));
    case Merge::strings: {
      const Ref ref = load<Ref>(from);
      return Value(view_of(record.base + ref.at, ref.bytes));
    }
    case Merge::words:
      if (state.type == ColumnType::float32) return Value(load<float>(from));
      if (state.type == ColumnType::float64) return Value(load<double>(from));
      return Value(load<int64_t>(from));
    case Merge::integers:
      return Value(load<int64_t>(from));
  }
  return Status(Code::query_failed, "");
}

Status GroupLayout::finish(const GroupRecord& record, std::span<Value> values) const {
  for (size_t i = 0; i < keys_.size(); ++i) values[i] = key_value(keys_[i], record);
  for (size_t i = 0; i < states_.size(); ++i) {
    const size_t number = keys_.size() + i;
    const Column& column = results_.columns()[number];
    const Result<Value> value = state_value(states_[i], column, record);
    if (value.ok() && column.fits(*value)) {
      values[number] = *value;
      continue;
    }
    return base::error(Code::query_failed, "{} of an aggregation does not fit {}, column {}",
                       name_of(states_[i].function, states_[i].column), column.to_string(), number);
  }
  return Status::Ok();
}

}  // namespace faro::operators
