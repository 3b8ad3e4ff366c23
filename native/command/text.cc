#include "command/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/printable.h"

namespace faro::command {
namespace {

constexpr std::array<std::string_view, 5> kByteUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};

}  // namespace

std::string bytes_text(uint64_t bytes) {
  size_t unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < kByteUnits.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} bytes", bytes);
  const bool whole = value == static_cast<double>(static_cast<uint64_t>(value));
  return fmt::format("{:.{}f} {}", value, whole || value >= 100 ? 0 : 1, kByteUnits[unit]);
}

std::string exact_bytes_text(uint64_t bytes) {
  // Settings know units up to GiB.
  for (size_t unit = 3; unit > 0; --unit) {
    const uint64_t size = uint64_t{1} << (10 * unit);
    if (bytes >= size && bytes % size == 0) {
      return fmt::format("{} {}", bytes / size, kByteUnits[unit]);
    }
  }
  return std::to_string(bytes);
}

std::string grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string scaled(double number) {
  constexpr std::array<std::string_view, 5> kUnits = {"", " k", " M", " G", " T"};
  size_t unit = 0;
  while (number >= 999.5 && unit + 1 < kUnits.size()) {
    number /= 1000;
    ++unit;
  }
  const int decimals = unit == 0 ? 0 : number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", number, decimals, kUnits[unit]);
}

std::string seconds_text(double seconds) {
  if (seconds >= 10) return fmt::format("{:.1f} s", seconds);
  if (seconds >= 0.1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 0.001) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.0f} µs", seconds * 1e6);
}

std::string counted(uint64_t number, std::string_view noun) {
  const bool es = noun.size() > 2 && noun.substr(noun.size() - 2) == "ss";
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : es ? "es" : "s");
}

size_t columns_of(std::string_view text) noexcept {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;  // not the rest of a letter
  }));
}

std::vector<std::string> wrapped(std::string_view text, size_t columns) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    if (!lines.back().empty() && columns_of(lines.back()) + 1 + columns_of(word) > columns) {
      lines.emplace_back();
    }
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return lines;
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = base::printable(std::move(cell));
  rows_.push_back({std::move(cells), false});
}

void Table::add_line(std::string line) {
  rows_.push_back({{base::printable(std::move(line), base::LineBreaks::kept)}, true});
}

std::string Table::text() const {
  std::vector<size_t> widths(columns_.size());
  for (const Row& row : rows_) {
    if (row.is_line) continue;
    for (size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], columns_of(row.cells[i]));
    }
  }
  std::string all;
  for (const Row& row : rows_) {
    std::string line;
    if (row.is_line) {
      line = row.cells.front();
    } else {
      for (size_t i = 0; i < widths.size(); ++i) {
        const std::string blanks(widths[i] - columns_of(row.cells[i]), ' ');
        if (i > 0) line += "  ";
        line += columns_[i] == 'r' ? blanks + row.cells[i] : row.cells[i] + blanks;
      }
    }
    line.erase(line.find_last_not_of(' ') + 1);
    all += line + '\n';
  }
  return all;
}

}  // namespace faro::command
