// Rows: what every row is, and the oracle: what a receiver has to see of each sender, in order,
// each row once.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace faro::send_path {

/// Writes the row of that number. The number is its first 8 bytes, unless it is shorter than that.
void write_row(uint64_t number, std::span<std::byte> row);

/// One sender's way to one receiver in a stage of a query.
struct Way {
  uint32_t query = 0;
  uint32_t stage = 0;
  uint32_t sender = 0;
  uint32_t receiver = 0;  // workers
  auto operator<=>(const Way&) const = default;
};

/// Threads: one.
class Rows {
 public:
  /// `claimed`: it was written in place. A claim above a frame lies apart, and what is sent before
  /// it is committed goes by it, or not: it may come before any row with a higher number.
  void sent(const Way& way, uint64_t number, size_t bytes, bool claimed) {
    under_way_[way].push_back({number, bytes, claimed});
    ++sent_;
  }
  void received(const Way& way, std::span<const std::byte> row);
  /// The receiver was told that a sender has no more rows.
  void ended(const Way& way);
  void violated(std::string what) {
    if (violation_.empty()) violation_ = std::move(what);
  }

  uint64_t sent_count() const noexcept { return sent_; }
  uint64_t received_count() const noexcept { return received_; }
  /// The first rule that was broken; empty: none was.
  const std::string& violation() const noexcept { return violation_; }

 private:
  struct Row {
    uint64_t number;
    size_t bytes;
    bool claimed;
  };
  bool is(const Row& row, std::span<const std::byte> bytes);
  std::map<Way, std::deque<Row>> under_way_;
  std::vector<std::byte> expected_;
  uint64_t sent_ = 0;
  uint64_t received_ = 0;
  std::string violation_;
};

}  // namespace faro::send_path
