// Part: what is behind detail::OperatorPart.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "counters/operator_slots.h"
#include "faro/detail/operator_part.h"
#include "faro/detail/partition_store.h"
#include "shuffle/local_worker.h"
#include "shuffle/open_shuffle.h"
#include "shuffle/operation/intake.h"
#include "shuffle/overflow/operator_memory.h"

namespace faro::operators {

/// A stage of an operator: its shuffle, and what takes its rows.
///
/// Threads: the worker.
class Stage final : public shuffle::Intake::Stage {
 public:
  Stage(Part& part, detail::OperatorPart::Take take) : part_(part), take_(std::move(take)) {}
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  Status open(Worker& worker, shuffle::Intake& intake, const ShuffleSpec& spec);
  Shuffle& shuffle() noexcept { return shuffle_; }
  bool has_ended() const noexcept { return has_ended_; }
  Outcome stop();

  bool take_in() noexcept override;
  void mark(bool is_taken) noexcept override;

 private:
  shuffle::StageReceiver* receiver() noexcept;
  bool take_batches();

  Part& part_;
  detail::OperatorPart::Take take_;
  Shuffle shuffle_;
  shuffle::Intake* intake_ = nullptr;  // null: it has nothing to take in
  ShuffleReceiver receiver_;
  bool has_ended_ = true;
};

/// What one operator has of the memory of its node: a reserve for as long as it lives, and more as it needs it.
///
/// Threads: the worker.
class Share {
 public:
  explicit Share(shuffle::OperatorMemory& memory) : memory_(memory) {}
  ~Share() { memory_.give(charged_); }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  bool reserve(uint64_t bytes) noexcept;
  /// Takes bytes if `room` more could be taken beside them. From then on as much stays charged beside what is used.
  bool take(uint64_t bytes, uint64_t room = 0) noexcept;
  void give(uint64_t bytes) noexcept;
  uint64_t used_bytes() const noexcept { return used_; }
  uint64_t peak_bytes() const noexcept { return peak_; }

 private:
  // Taken of the node at a time, and kept: so that not every block is two atomic operations.
  static constexpr uint64_t kStep = uint64_t{256} << 10;

  shuffle::OperatorMemory& memory_;
  uint64_t reserve_ = 0;
  uint64_t charged_ = 0;  // of the node: the reserve at least
  uint64_t used_ = 0;
  uint64_t room_ = kStep;  // that stays charged where memory is given back
  uint64_t peak_ = 0;
};

/// Threads: the worker.
class Part {
 public:
  Part(Worker& worker, shuffle::LocalWorker& local, OperatorKind kind)
      : worker_(worker),
        local_(local),
        keep_alive_(local.context().node.keep_alive()),
        share_(local.context().operator_memory),
        kind_(kind),
        operators_(local.context().operators) {}
  /// It is shown no more, and what it held is given back.
  ~Part();
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  Status open(uint64_t reserve_bytes, std::vector<detail::OperatorPart::Stage> stages);

  Stage& stage(size_t index) noexcept { return *stages_[index]; }
  uint64_t number() const noexcept { return number_; }
  uint64_t now_ns() const noexcept { return local_.context().now(); }

  void begin_call() noexcept { call_.emplace(*local_.context().intake); }
  void end_call() noexcept {
    call_.reset();
    publish();
  }
  void tells(detail::OperatorPart::Tell tell) { tell_ = std::move(tell); }
  void publish() noexcept;
  const char* name() const noexcept;
  bool take_in() noexcept;
  Outcome wait(const std::function<Outcome()>& attempt, Wait wait);

  bool is_alive();
  Outcome fail(const Status& cause) noexcept;
  void leave(const char* name) noexcept;
  Outcome refuse(Status why) noexcept;
  const Status& status() const noexcept { return status_; }

  Share& share() noexcept { return share_; }
  uint64_t fair_bytes() const noexcept;
  Outcome fail_for_memory(const std::string& what);
  /// Spills the largest partition. False: there is none in memory; or the operator has failed.
  bool spill_largest();
  /// Spills rows; `last` is what was spilled before of the same partition, or null. False: the operator has failed.
  bool spill(std::span<const std::byte> rows, std::vector<shuffle::Stored>& spilled);
  bool read(const shuffle::Stored& stored, std::span<std::byte> to);
  /// In a forked child nothing is done: the file is its parent's.
  void free(shuffle::Stored& stored) noexcept {
    if (!local_.context().node.forked()) memory().free(stored);
  }
  uint64_t spilled_bytes() const noexcept { return spilled_bytes_; }

  void add(detail::PartitionStore& store) { stores_.push_back(&store); }
  void remove(detail::PartitionStore& store) noexcept { std::erase(stores_, &store); }

 private:
  shuffle::OperatorMemory& memory() noexcept { return local_.context().operator_memory; }
  Outcome try_once(const std::function<Outcome()>& attempt);

  Worker& worker_;
  shuffle::LocalWorker& local_;
  const std::shared_ptr<const void> keep_alive_;  // what is spilled lies in memory of the node
  Share share_;
  const OperatorKind kind_;
  counters::OperatorSlots operators_;
  counters::OperatorRecord* record_ = nullptr;  // null: it counts in the totals alone
  counters::OperatorValues published_;
  detail::OperatorPart::Tell tell_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::optional<shuffle::Intake::Taking> call_;  // that is being made
  std::shared_ptr<shuffle::Query> query_;
  std::vector<detail::PartitionStore*> stores_;
  uint64_t number_ = 0;
  uint64_t spilled_bytes_ = 0;
  uint64_t partitions_spilled_ = 0;
  Status status_;
};

}  // namespace faro::operators
