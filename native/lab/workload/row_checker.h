// RowChecker: what a receiver of a stage has to see. Of each sender its own rows, whole, each once, in order; where it is in several
// groups of a sender, in the order of each group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/workload/row_generator.h"

namespace faro::workload {

/// Threads: one. Answers are empty, or say what is wrong.
class RowChecker {
 public:
  /// `rows` stays as long as this.
  RowChecker(const RowGenerator& rows, uint32_t receiver);

  /// The next row that came from the sender. With Delivery::node some may be missing, which others have.
  std::string check(uint32_t sender, std::span<const std::byte> row);
  /// The number of the last one that was checked, at its sender.
  uint64_t number_of_last(uint32_t sender) const { return sources_.at(sender).received - 1; }
  /// `made`: how many the sender made, for all receivers. Also before its end: no row may be one too many.
  std::string check_number(uint32_t sender, uint64_t made) const;
  /// At the end of the sender's stream; `made` is empty if the sender did not say so before it.
  std::string check_end(uint32_t sender, std::optional<uint64_t> made) const;

 private:
  /// What comes from one target of a sender.
  struct Stream {
    uint32_t target = 0;
    uint64_t next = 0;  // number of the sender's next row
  };
  struct Source {
    std::vector<Stream> streams;
    uint64_t received = 0;  // number of the last row of all, plus one
  };

  void skip_to(uint32_t sender, Stream& stream, std::span<const std::byte> row);
  bool is_next(uint32_t sender, const Stream& stream, std::span<const std::byte> row);
  std::string complaint(uint32_t sender, const Source& source, std::span<const std::byte> row);

  const RowGenerator& rows_;
  std::map<uint32_t, Source> sources_;  // by sender
  std::vector<std::byte> expected_;
};

}  // namespace faro::workload
