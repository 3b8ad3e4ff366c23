// RowStream: the rows of some partitions, one after the other. Not part of the API.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "faro/detail/partition_store.h"
#include "faro/outcome.h"

#pragma GCC visibility push(default)

namespace faro::detail {

/// Takes rows out of their stores, as PartitionReader does.
///
/// Threads: those of the worker. Valid as long as the stores.
template <typename Row>
class RowStream {
 public:
  /// Partitions `first` … `last` - 1 of a store.
  struct Source {
    PartitionStore* store = nullptr;
    uint32_t first = 0;
    uint32_t last = 0;
    bool is_matched = false;  // what is known of its rows
  };

  void begin(std::initializer_list<Source> sources) noexcept {
    clear();
    for (const Source& source : sources) sources_[count_++] = source;
  }
  void clear() noexcept {
    reader_.reset();
    rows_ = {};
    count_ = at_ = 0;
  }

  /// The next rows, which are valid until the next call. end_of_stream: there are no more. failed:
  /// the operator has failed.
  Outcome next() {
    rows_ = {};
    for (; at_ < count_; ++at_) {
      Source& source = sources_[at_];
      for (; source.first < source.last; ++source.first) {
        if (!reader_) reader_.emplace(*source.store, source.first);
        std::span<const std::byte> bytes;
        const Outcome outcome = reader_->next(bytes);
        if (outcome == Outcome::failed) return outcome;
        if (outcome == Outcome::done) {
          rows_ = {reinterpret_cast<const Row*>(bytes.data()), bytes.size() / sizeof(Row)};
          return outcome;
        }
        reader_.reset();
      }
    }
    return Outcome::end_of_stream;
  }
  std::span<const Row> rows() const noexcept { return rows_; }
  /// What is known of these rows.
  bool is_matched() const noexcept { return at_ < count_ && sources_[at_].is_matched; }

 private:
  std::array<Source, 2> sources_;
  size_t count_ = 0;
  size_t at_ = 0;
  std::optional<PartitionReader> reader_;
  std::span<const Row> rows_;
};

}  // namespace faro::detail

#pragma GCC visibility pop
