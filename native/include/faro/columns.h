// Columns: what rows of a schema are, which is known only at run time, and how they lie in bytes.
#pragma once

#include "faro/detail/cxx20.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "faro/status.h"

#pragma GCC visibility push(default)

namespace faro {

/// What a column holds. Numbers are little-endian.
enum class ColumnType : uint8_t {
  boolean = 0,     ///< one byte: 0 or 1
  int8 = 1,        ///< BYTE in Java
  int16 = 2,       ///< SHORT
  int32 = 3,       ///< INT
  int64 = 4,       ///< LONG
  float32 = 5,     ///< FLOAT
  float64 = 6,     ///< DOUBLE
  decimal_18 = 7,  ///< up to 18 digits: the unscaled value in 8 bytes
  decimal_38 = 8,  ///< up to 38 digits: the unscaled value in 16 bytes
  string = 9,      ///< UTF-8 of any length
  bytes = 10,      ///< bytes of any number
};
inline constexpr size_t kColumnTypes = 11;

/// Bytes of a value of that type; 0: each value has a length.
constexpr uint32_t width_of(ColumnType type) noexcept {
  constexpr uint8_t kWidths[kColumnTypes] = {1, 1, 2, 4, 8, 4, 8, 8, 16, 0, 0};
  return kWidths[static_cast<size_t>(type)];
}
/// Its name in Java: "BOOLEAN", "BYTE", … "DECIMAL_18", "STRING", "BYTES".
std::string_view to_string(ColumnType type) noexcept;

__extension__ using Int128 = __int128;

/// A value of a column, or null (std::monostate). Integers, booleans and decimals of up to 18
/// digits are int64_t, unscaled; decimals of up to 38 are Int128; strings and bytes are views,
/// valid as long as the bytes that they were read from.
using Value = std::variant<std::monostate, int64_t, Int128, float, double, std::string_view>;

/// A column of a schema.
struct Column {
  ColumnType type = ColumnType::int64;
  bool nullable = false;   ///< whether it may hold null instead
  uint32_t scale = 0;      ///< of decimals: digits after the decimal point
  uint32_t precision = 0;  ///< of decimals: most digits of a value; 0: as many as the type has

  bool is_decimal() const noexcept {
    return type == ColumnType::decimal_18 || type == ColumnType::decimal_38;
  }
  /// "LONG", "STRING or null", "DECIMAL_18(2)": for decimals with their scale.
  std::string to_string() const;
  /// Whether it is a value that the column can hold.
  bool fits(const Value& value) const noexcept;

  bool operator==(const Column&) const = default;
};

/// Where the value of a column lies in a row.
struct ColumnPlace {
  static constexpr uint32_t kNull = UINT32_MAX;
  uint32_t offset = kNull;  ///< from the beginning of the row; kNull: it is null
  uint32_t bytes = 0;

  bool is_null() const noexcept { return offset == kNull; }
};

/// The columns of a row, and how they lie in it. The bytes are those of Java's SchemaCodec, and are
/// densely packed in three parts (Roediger et al., High-Speed Query Processing over High-Speed
/// Networks, VLDB 2015, section 3.2.1):
///
/// +--------------------------+-----------------------------------------+------------------------+
/// | values of the columns    | null bits, one per column  | values of  | for each column of     |
/// | with a width that are    | that may be null, from the | those with | variable width that is |
/// | never null, widest first | lowest bit of a byte on;   | a width    | not null: length (4    |
/// |                          | 1: null                    | not null   | bytes), then bytes     |
/// +--------------------------+-----------------------------------------+------------------------+
///
/// Within a part, columns are in the order of the schema. Nothing is aligned. If all columns have a
/// width and are never null, all rows have the same width; otherwise each row has a length, which
/// is not part of it: a shuffle of rows with a length each keeps it in front of them.
///
/// Threads: any; it does not change. Blocks: never.
class Schema {
 public:
  /// A schema of no column.
  Schema() = default;
  /// Errors: invalid_argument (a column with a type that does not exist; a scale or precision of
  /// what is no decimal, or above what its type has).
  static Result<Schema> make(std::vector<Column> columns);

  const std::vector<Column>& columns() const noexcept { return columns_; }
  /// Width of every row; 0: rows have a length each. It is ShuffleSpec::row_bytes.
  uint32_t row_bytes() const noexcept { return is_plain() ? plain_bytes_ : 0; }
  /// All columns have a width and are never null.
  bool is_plain() const noexcept { return plain_.size() == columns_.size() && !columns_.empty(); }
  /// "schema(LONG, STRING or null, DECIMAL_18(2))": the words of Java's SchemaCodec, so that a
  /// shuffle may be opened with it in both languages (ShuffleSpec::format).
  const std::string& format() const noexcept { return format_; }

  /// Finds the columns of a row, into as many places as there are columns. Each byte that says
  /// where something lies is read once, and checked: what the places say lies within `row`, also if
  /// a peer has written it, or changes it meanwhile. Bytes behind the last column are passed over.
  /// False: it is no row of this schema.
  bool locate(std::span<const std::byte> row, std::span<ColumnPlace> places) const noexcept;
  /// In a row of a schema that is_plain(), where the columns always are.
  std::span<const ColumnPlace> places() const noexcept { return fixed_; }

  /// The value of a column at its place, which locate() has found.
  Value value(std::span<const std::byte> row, size_t column, ColumnPlace place) const noexcept;
  /// Reads a row, into as many values as there are columns. Errors: protocol_error (it is no row of
  /// this schema, or a decimal has more digits than its column).
  Status read(std::span<const std::byte> row, std::span<Value> values) const;

  /// How many bytes a row of these values takes, as many as there are columns. Errors:
  /// invalid_argument (too many or too few; a value of another type than its column, or which does
  /// not fit it; a null in a column without; more than 2^31 bytes), which names the column.
  Result<size_t> bytes(std::span<const Value> values) const;
  /// Writes a row of values for which bytes() was asked, at any address.
  void write(std::span<const Value> values, std::byte* to) const noexcept;

 private:
  static constexpr uint32_t kNeverNull = UINT32_MAX;
  struct Field {
    uint32_t column;
    uint32_t width;
    uint32_t null_bit;  // kNeverNull: it has none
  };

  std::vector<Column> columns_;
  std::string format_ = "schema()";
  // In the order in which they are written.
  std::vector<Field> plain_;     // with a width, never null
  std::vector<Field> nullable_;  // with a width
  std::vector<Field> variable_;
  std::vector<ColumnPlace> fixed_;  // of plain columns, by column; others: null
  uint32_t plain_bytes_ = 0;
  uint32_t null_bytes_ = 0;
};

}  // namespace faro

#pragma GCC visibility pop
