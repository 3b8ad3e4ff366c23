// Numbers as people read them, and aligned tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace faro::command {

/// "28.0 MiB", "64 KiB", "512 bytes".
std::string bytes_text(uint64_t bytes);
/// A byte count as a setting is written: "64 KiB" if that is exact, else digits.
std::string exact_bytes_text(uint64_t bytes);
/// "20,000,000".
std::string grouped(uint64_t number);
/// "357 M", "1.25 G", "940 k": three digits and a unit of 1000.
std::string scaled(double number);
/// "0.0560 s", "12.3 ms", "850 µs".
std::string seconds_text(double seconds);
/// "1 worker", "2 workers".
std::string counted(uint64_t number, std::string_view noun);

/// The width of UTF-8 text in terminal columns, if every character takes one column.
size_t columns_of(std::string_view text) noexcept;

/// Breaks text at spaces into lines of at most this many columns.
std::vector<std::string> wrapped(std::string_view text, size_t columns);

/// Rows of cells, aligned by column; names from outside cannot leave their cell. Threads: a value.
class Table {
 public:
  /// A letter for each column: l, aligned to the left, or r.
  explicit Table(std::string columns) : columns_(std::move(columns)) {}

  /// A row; missing cells are empty.
  void add(std::vector<std::string> cells);
  /// A separate line that does not widen any column.
  void add_line(std::string line);

  /// All rows, each with its line end; no blanks at line ends.
  std::string text() const;

 private:
  struct Row {
    std::vector<std::string> cells;
    bool is_line = false;
  };
  const std::string columns_;
  std::vector<Row> rows_;
};

}  // namespace faro::command
