#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/return_if_error.h"
#include "faro/aggregate.h"
#include "operators/schema_groups.h"

namespace faro {
namespace {

using operators::GroupRow;
using operators::SchemaGroups;

// Rows that become records together: those and their keys stay in the first-level cache.
constexpr size_t kTogether = 128;
// What groups take that are handed out together.
constexpr uint64_t kResultBytes = uint64_t{64} << 10;
constexpr size_t kPrefixBytes = sizeof(uint32_t);

}  // namespace

/// An aggregation that was made.
class SchemaAggregation::Running {
 public:
  using Operator = detail::AggregationOperator<SchemaGroups>;

  Running(std::unique_ptr<Operator> made, const Schema& rows)
      : operator_(std::move(made)),
        rows_(rows),
        places_(rows.columns().size()),
        fixed_(kTogether * groups().width()),
        values_(groups().results().columns().size()) {
    records_.reserve(kTogether);
    ends_.reserve(kTogether);
  }
  ~Running() { operator_->part().give(result_room_); }

  Status open(bool is_first_receiver) {
    is_due_ = is_first_receiver && !groups().has_keys();
    if (!make_room(kResultBytes)) {
      (void)operator_->part().fail_for_memory("the groups that are handed out");
      return operator_->status();
    }
    return Status::Ok();
  }

  Operator& operation() noexcept { return *operator_; }
  const SchemaGroups& groups() const noexcept { return operator_->groups(); }
  Added add(std::span<const std::byte> rows, Wait wait);
  Outcome next(PackedRows& groups, Wait wait);
  Outcome stop() {
    is_due_ = false;
    record_count_ = next_record_ = 0;
    return operator_->stop();
  }

 private:
  bool take_records(std::span<const std::byte> rows);
  std::span<const std::byte> row_at(std::span<const std::byte> rows, size_t& at) const noexcept;
  Outcome fail(const Status& why) {
    return operator_->part().fail(why.of_stage(operator_->stage()));
  }
  bool make_room(uint64_t bytes);
  Outcome hand_out(PackedRows& groups);
  Outcome hand_out_empty(PackedRows& groups);
  Outcome write(const operators::GroupRecord& record, PackedRows& groups, bool& is_full);

  std::unique_ptr<Operator> operator_;
  const Schema rows_;
  std::vector<ColumnPlace> places_;
  // The rows that are added: their records, and where each row ends.
  std::vector<std::byte> fixed_;
  std::vector<GroupRow> records_;
  std::vector<size_t> ends_;
  // The groups that are handed out.
  std::unique_ptr<std::byte[]> results_;
  uint64_t result_room_ = 0;
  uint64_t result_bytes_ = 0;
  std::vector<Value> values_;
  uint64_t record_count_ = 0;  // in the table
  uint64_t next_record_ = 0;
  bool is_due_ = false;  // the group of an aggregate without keys, if no row comes
};

// --- adding

/// The row that begins there, and behind which `at` is then. Without an address: it is none.
std::span<const std::byte> SchemaAggregation::Running::row_at(std::span<const std::byte> rows,
                                                              size_t& at) const noexcept {
  size_t bytes = rows_.row_bytes();
  size_t begin = at;
  if (bytes == 0) {
    if (rows.size() - at < kPrefixBytes) return {};
    uint32_t length;
    std::memcpy(&length, rows.data() + at, sizeof length);
    begin += kPrefixBytes;
    bytes = length;
  }
  if (rows.size() - begin < bytes) return {};
  at = begin + bytes;
  return rows.subspan(begin, bytes);
}

/// Makes records of the first rows. False: behind these comes what is no row.
bool SchemaAggregation::Running::take_records(std::span<const std::byte> rows) {
  std::fill_n(fixed_.begin(), records_.size() * groups().width(), std::byte{0});
  records_.clear();
  ends_.clear();
  std::span<const ColumnPlace> places = rows_.places();
  for (size_t at = 0; at < rows.size() && records_.size() < kTogether;) {
    const std::span<const std::byte> row = row_at(rows, at);
    if (row.data() == nullptr) return false;
    if (!rows_.is_plain()) {
      if (!rows_.locate(row, places_)) return false;
      places = places_;
    }
    std::byte* const fixed = fixed_.data() + records_.size() * groups().width();
    records_.push_back(groups().record_of(row, places, fixed));
    ends_.push_back(at);
  }
  return true;
}

SchemaAggregation::Added SchemaAggregation::Running::add(std::span<const std::byte> rows,
                                                         Wait wait) {
  Added added;
  do {
    const bool are_rows = take_records(rows.subspan(added.bytes));
    const Sent sent = operator_->add(records_, wait);
    added.rows += sent.rows;
    if (sent.rows > 0) added.bytes += ends_[sent.rows - 1];
    added.outcome = sent.outcome;
    if (Status overflow = groups().overflow(); !overflow.ok()) added.outcome = fail(overflow);
    if (added.outcome == Outcome::done && !are_rows) {
      added.outcome = operator_->part().refuse(
          base::error(Code::invalid_argument,
                      "row {} of those that are added, at byte {} of {}, is none of {}", added.rows,
                      added.bytes, rows.size(), rows_.format())
              .of_stage(operator_->stage()));
    }
  } while (added.bytes < rows.size() && added.outcome == Outcome::done);
  return added;
}

// --- handing out

bool SchemaAggregation::Running::make_room(uint64_t bytes) {
  if (bytes <= result_room_) return true;
  detail::OperatorPart& part = operator_->part();
  if (!part.take(bytes)) return false;
  std::unique_ptr<std::byte[]> larger(new (std::nothrow) std::byte[bytes]);
  if (larger == nullptr) {
    part.give(bytes);
    return false;
  }
  results_ = std::move(larger);
  part.give(std::exchange(result_room_, bytes));
  return true;
}

/// Writes one more group, unless it is full.
Outcome SchemaAggregation::Running::write(const operators::GroupRecord& record, PackedRows& groups,
                                          bool& is_full) {
  const Schema& schema = this->groups().results();
  const Status finished = this->groups().finish(record, values_);
  if (!finished.ok()) return fail(finished);
  const Result<size_t> row = schema.bytes(values_);
  if (!row.ok()) return fail(base::error(Code::query_failed, "{}", row.status().message()));
  const size_t before = schema.row_bytes() == 0 ? kPrefixBytes : 0;
  const size_t bytes = before + *row;
  is_full = bytes > result_room_ - result_bytes_;
  if (is_full && groups.count > 0) return Outcome::done;
  if (is_full && !make_room(bytes))
    return operator_->part().fail_for_memory(fmt::format("a group of {} bytes", bytes));
  is_full = false;
  const auto length = static_cast<uint32_t>(*row);
  std::byte* const to = results_.get() + result_bytes_;
  if (before > 0) std::memcpy(to, &length, sizeof length);
  schema.write(values_, to + before);
  result_bytes_ += bytes;
  ++groups.count;
  groups.bytes = {results_.get(), result_bytes_};
  return Outcome::done;
}

Outcome SchemaAggregation::Running::hand_out(PackedRows& groups) {
  bool is_full = false;
  while (next_record_ < record_count_) {
    const Outcome outcome = write(operator_->table().record(next_record_), groups, is_full);
    if (outcome != Outcome::done) {
      groups = {};
      return outcome;
    }
    if (is_full) break;
    ++next_record_;
  }
  return Outcome::done;
}

Outcome SchemaAggregation::Running::hand_out_empty(PackedRows& groups) {
  is_due_ = false;
  const std::vector<std::byte> none = this->groups().empty();
  bool is_full = false;
  return write({none.data(), none.data(), 0}, groups, is_full);
}

Outcome SchemaAggregation::Running::next(PackedRows& groups, Wait wait) {
  groups = {};
  result_bytes_ = 0;
  if (next_record_ == record_count_) {
    record_count_ = next_record_ = 0;
    const Outcome outcome = operator_->next(wait);
    if (outcome == Outcome::end_of_stream && is_due_) return hand_out_empty(groups);
    if (outcome != Outcome::done) return outcome;
    if (Status overflow = this->groups().overflow(); !overflow.ok()) return fail(overflow);
    record_count_ = operator_->table().size();
    is_due_ = false;
  }
  if (!operator_->part().is_alive()) return Outcome::failed;
  return hand_out(groups);
}

// --- what is public

SchemaAggregation::SchemaAggregation(std::unique_ptr<Running> running)
    : running_(std::move(running)) {}
SchemaAggregation::~SchemaAggregation() = default;

Result<std::unique_ptr<SchemaAggregation>> SchemaAggregation::make(Worker& worker,
                                                                   const AggregationSpec& spec,
                                                                   const Grouping& grouping) {
  try {
    FARO_ASSIGN_OR_RETURN(SchemaGroups groups, SchemaGroups::make(grouping));
    std::string format = groups.format();
    FARO_ASSIGN_OR_RETURN(
        std::unique_ptr<Running::Operator> made,
        Running::Operator::make(worker, spec, std::move(groups), std::move(format), kResultBytes));
    const std::vector<uint32_t>& receivers = made->part().shuffle(0).spec().receivers;
    const bool is_first = !receivers.empty() && receivers.front() == worker.number();
    auto running = std::make_unique<Running>(std::move(made), grouping.rows);
    FARO_RETURN_IF_ERROR(running->open(is_first));
    return std::unique_ptr<SchemaAggregation>(new SchemaAggregation(std::move(running)));
  } catch (const std::bad_alloc&) {
    return Status(Code::overflow_exhausted, "the process has no memory left for an aggregation");
  }
}

const Schema& SchemaAggregation::results() const noexcept { return running_->groups().results(); }
SchemaAggregation::Added SchemaAggregation::add(std::span<const std::byte> rows, Wait wait) {
  return running_->add(rows, wait);
}
Outcome SchemaAggregation::finish(Wait wait) { return running_->operation().finish(wait); }
Outcome SchemaAggregation::next(PackedRows& groups, Wait wait) {
  return running_->next(groups, wait);
}
Outcome SchemaAggregation::stop() { return running_->stop(); }
const Status& SchemaAggregation::status() const noexcept { return running_->operation().status(); }
AggregationMetrics SchemaAggregation::metrics() const noexcept {
  return running_->operation().metrics();
}

}  // namespace faro
