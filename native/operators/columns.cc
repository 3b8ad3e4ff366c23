#include "faro/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/return_if_error.h"

namespace faro {
namespace {

constexpr uint64_t kMostRowBytes = std::numeric_limits<int32_t>::max();
constexpr uint32_t kLengthBytes = sizeof(uint32_t);

constexpr uint32_t digits_of(ColumnType type) noexcept {
  return type == ColumnType::decimal_18 ? 18 : type == ColumnType::decimal_38 ? 38 : 0;
}

/// 10 to that power, of at most 38.
constexpr Int128 power_of_ten(uint32_t exponent) noexcept {
  Int128 power = 1;
  for (uint32_t i = 0; i < exponent; ++i) power *= 10;
  return power;
}
/// Whether an unscaled value has at most as many digits.
constexpr bool has_digits(Int128 value, uint32_t precision) noexcept {
  const Int128 limit = power_of_ten(precision);
  return value > -limit && value < limit;
}

template <typename Word>
Word load(const std::byte* from) noexcept {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}
bool is_null(const std::byte* null_bits, uint32_t bit) noexcept {
  return (std::to_integer<unsigned>(null_bits[bit / 8]) >> bit % 8 & 1) != 0;
}

Status check(const Column& column, size_t number) {
  if (static_cast<size_t>(column.type) >= kColumnTypes) {
    return base::error(Code::invalid_argument, "column {}: there is no type {}", number,
                       static_cast<int>(column.type));
  }
  const uint32_t digits = digits_of(column.type);
  if (column.scale > digits) {
    return base::error(Code::invalid_argument, "column {}: {} with scale {}", number,
                       to_string(column.type), column.scale);
  }
  if (column.precision > digits || (column.precision != 0 && column.precision < column.scale)) {
    return base::error(Code::invalid_argument, "column {}: {} with scale {} and precision {}",
                       number, to_string(column.type), column.scale, column.precision);
  }
  return Status::Ok();
}

/// Whether it is a value of an integer type, or of a decimal, that the column can hold.
bool fits(int64_t value, const Column& column) noexcept {
  switch (column.type) {
    case ColumnType::boolean:
      return value == 0 || value == 1;
    case ColumnType::int8:
      return value == static_cast<int8_t>(value);
    case ColumnType::int16:
      return value == static_cast<int16_t>(value);
    case ColumnType::int32:
      return value == static_cast<int32_t>(value);
    case ColumnType::int64:
      return true;
    case ColumnType::decimal_18:
      return has_digits(value, column.precision);
    default:
      return false;
  }
}

/// Bytes of a value; none: it is none of this column.
std::optional<uint64_t> bytes_of(const Value& value, const Column& column) noexcept {
  const uint32_t width = width_of(column.type);
  bool is_right = false;
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    is_right = fits(*integer, column);
  } else if (const auto* wide = std::get_if<Int128>(&value)) {
    is_right = column.type == ColumnType::decimal_38 && has_digits(*wide, column.precision);
  } else if (std::holds_alternative<float>(value)) {
    is_right = column.type == ColumnType::float32;
  } else if (std::holds_alternative<double>(value)) {
    is_right = column.type == ColumnType::float64;
  } else if (const auto* bytes = std::get_if<std::string_view>(&value)) {
    if (width == 0) return kLengthBytes + uint64_t{bytes->size()};
  } else if (column.nullable) {
    return 0;
  }
  return is_right ? std::optional<uint64_t>(width) : std::nullopt;
}

/// Writes a value that is not null, of a column with a width.
void put(const Value& value, uint32_t width, std::byte* to) noexcept {
  std::visit(
      [&](const auto& of_type) {
        using Type = std::remove_cvref_t<decltype(of_type)>;
        if constexpr (!std::is_same_v<Type, std::monostate> &&
                      !std::is_same_v<Type, std::string_view>)
          std::memcpy(to, &of_type, std::min<size_t>(width, sizeof of_type));
      },
      value);
}

}  // namespace

std::string_view to_string(ColumnType type) noexcept {
  constexpr std::string_view kNames[kColumnTypes] = {"BOOLEAN",    "BYTE",   "SHORT",  "INT",
                                                     "LONG",       "FLOAT",  "DOUBLE", "DECIMAL_18",
                                                     "DECIMAL_38", "STRING", "BYTES"};
  const auto number = static_cast<size_t>(type);
  return number < kColumnTypes ? kNames[number] : "unknown";
}

std::string Column::to_string() const {
  return fmt::format("{}{}{}", faro::to_string(type),
                     is_decimal() ? fmt::format("({})", scale) : "", nullable ? " or null" : "");
}

bool Column::fits(const Value& value) const noexcept { return bytes_of(value, *this).has_value(); }

Result<Schema> Schema::make(std::vector<Column> columns) {
  Schema made;
  made.format_.clear();
  uint32_t bits = 0;
  for (uint32_t number = 0; number < columns.size(); ++number) {
    Column& column = columns[number];
    FARO_RETURN_IF_ERROR(check(column, number));
    if (column.precision == 0) column.precision = digits_of(column.type);
    const Field field{number, width_of(column.type), column.nullable ? bits++ : kNeverNull};
    (field.width == 0  ? made.variable_
     : column.nullable ? made.nullable_
                       : made.plain_)
        .push_back(field);
    made.format_ += (number == 0 ? "schema(" : ", ") + column.to_string();
  }
  made.format_ += columns.empty() ? "schema()" : ")";
  std::stable_sort(made.plain_.begin(), made.plain_.end(),
                   [](const Field& a, const Field& b) { return a.width > b.width; });
  made.fixed_.resize(columns.size());
  for (const Field& field : made.plain_) {
    made.fixed_[field.column] = {made.plain_bytes_, field.width};
    made.plain_bytes_ += field.width;
  }
  made.null_bytes_ = (bits + 7) / 8;
  made.columns_ = std::move(columns);
  return made;
}

// --- reading

bool Schema::locate(std::span<const std::byte> row, std::span<ColumnPlace> places) const noexcept {
  uint64_t at = uint64_t{plain_bytes_} + null_bytes_;
  if (row.size() < at || row.size() > kMostRowBytes) return false;
  std::copy(fixed_.begin(), fixed_.end(), places.begin());
  const std::byte* const nulls = row.data() + plain_bytes_;
  for (const Field& field : nullable_) {
    if (is_null(nulls, field.null_bit)) continue;
    if (row.size() - at < field.width) return false;
    places[field.column] = {static_cast<uint32_t>(at), field.width};
    at += field.width;
  }
  for (const Field& field : variable_) {
    if (field.null_bit != kNeverNull && is_null(nulls, field.null_bit)) continue;
    if (row.size() - at < kLengthBytes) return false;
    const auto length = load<uint32_t>(row.data() + at);
    at += kLengthBytes;
    if (row.size() - at < length) return false;
    places[field.column] = {static_cast<uint32_t>(at), length};
    at += length;
  }
  return true;
}

Value Schema::value(std::span<const std::byte> row, size_t column,
                    ColumnPlace place) const noexcept {
  if (place.is_null()) return {};
  const std::byte* const at = row.data() + place.offset;
  switch (columns_[column].type) {
    case ColumnType::boolean:
      return int64_t{std::to_integer<uint8_t>(*at) != 0};
    case ColumnType::int8:
      return int64_t{load<int8_t>(at)};
    case ColumnType::int16:
      return int64_t{load<int16_t>(at)};
    case ColumnType::int32:
      return int64_t{load<int32_t>(at)};
    case ColumnType::int64:
    case ColumnType::decimal_18:
      return load<int64_t>(at);
    case ColumnType::float32:
      return load<float>(at);
    case ColumnType::float64:
      return load<double>(at);
    case ColumnType::decimal_38:
      return load<Int128>(at);
    case ColumnType::string:
    case ColumnType::bytes:
      return std::string_view(reinterpret_cast<const char*>(at), place.bytes);
  }
  return {};
}

Status Schema::read(std::span<const std::byte> row, std::span<Value> values) const {
  std::vector<ColumnPlace> places(columns_.size());
  if (!locate(row, places)) {
    return base::error(Code::protocol_error, "{} bytes that are no row of {}", row.size(), format_);
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    values[i] = value(row, i, places[i]);
    if (!columns_[i].is_decimal()) continue;
    const auto* const narrow = std::get_if<int64_t>(&values[i]);
    const auto* const wide = std::get_if<Int128>(&values[i]);
    const Int128 unscaled = narrow != nullptr ? *narrow : wide != nullptr ? *wide : 0;
    if (has_digits(unscaled, columns_[i].precision)) continue;
    return base::error(Code::protocol_error, "column {}: a decimal of more than {} digits", i,
                       columns_[i].precision);
  }
  return Status::Ok();
}

// --- writing

Result<size_t> Schema::bytes(std::span<const Value> values) const {
  if (values.size() != columns_.size()) {
    return base::error(Code::invalid_argument, "a row of {} values for {} columns", values.size(),
                       columns_.size());
  }
  uint64_t bytes = null_bytes_;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::optional<uint64_t> of_value = bytes_of(values[i], columns_[i]);
    if (!of_value) {
      return base::error(Code::invalid_argument, "column {}: the value does not fit {}", i,
                         columns_[i].to_string());
    }
    bytes += *of_value;
    if (bytes > kMostRowBytes) {
      return base::error(Code::invalid_argument, "column {}: the row has more than {} bytes", i,
                         kMostRowBytes);
    }
  }
  return static_cast<size_t>(bytes);
}

void Schema::write(std::span<const Value> values, std::byte* to) const noexcept {
  for (const Field& field : plain_) {
    put(values[field.column], field.width, to);
    to += field.width;
  }
  std::byte* const nulls = to;
  std::memset(nulls, 0, null_bytes_);
  to += null_bytes_;
  const auto is_there = [&](const Field& field) {
    if (!std::holds_alternative<std::monostate>(values[field.column])) return true;
    nulls[field.null_bit / 8] |= std::byte{1} << field.null_bit % 8;
    return false;
  };
  for (const Field& field : nullable_) {
    if (!is_there(field)) continue;
    put(values[field.column], field.width, to);
    to += field.width;
  }
  for (const Field& field : variable_) {
    if (!is_there(field)) continue;
    const std::string_view bytes = std::get<std::string_view>(values[field.column]);
    const auto length = static_cast<uint32_t>(bytes.size());
    std::memcpy(to, &length, sizeof length);
    if (length > 0) std::memcpy(to + sizeof length, bytes.data(), length);
    to += sizeof length + length;
  }
}

}  // namespace faro
