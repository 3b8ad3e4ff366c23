// What faro/c.h says of sending and receiving together.
#include "faro/exchange.h"

#include <exception>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/return_if_error.h"
#include "c/errors.h"
#include "c/handles.h"
#include "c/receiving.h"
#include "c/sized.h"
#include "shuffle/shuffle_access.h"

using namespace faro::c;
using faro::Code;
using faro::ExchangePart;
using faro::Outcome;
using faro::Result;
using faro::Status;
using faro::Wait;
using faro::shuffle::OpenShuffle;

namespace {

/// A function of the caller's has refused a batch: what exchange throws on.
class ConsumeFailed final : public std::exception {
 public:
  explicit ConsumeFailed(Status why) : why_(std::move(why)) {}
  const char* what() const noexcept override { return why_.message().data(); }
  const Status& why() const noexcept { return why_; }

 private:
  const Status why_;
};

void consume(const faro_exchange_part& part, faro::Batch& batch) {
  faro_batch handle{std::move(batch)};
  faro_rows rows{};
  rows.size = sizeof rows;
  describe(handle.batch, rows);
  const faro_code code = part.consume(part.context, &handle, &rows);
  if (code == FARO_CODE_OK) return;
  faro_error error{};
  error.size = sizeof error;
  (void)faro_last_error(&error);
  Status why;
  const Status read = read_failure(code, error.code == code ? error.message : nullptr, why);
  throw ConsumeFailed(read.ok() ? why : read);
}

Result<ExchangePart> part_of(const faro_exchange_part* of_caller) {
  faro_exchange_part given;
  FARO_RETURN_IF_ERROR(read(of_caller, "part", given));
  FARO_RETURN_IF_ERROR(need(given.shuffle, "part->shuffle"));
  ExchangePart part;
  part.shuffle = &given.shuffle->shuffle;
  if (given.produce != nullptr) {
    part.produce = [given](const faro::ShuffleSender&) {
      return static_cast<Outcome>(given.produce(given.context, given.shuffle));
    };
  }
  if (given.consume != nullptr)
    part.consume = [given](faro::Batch& batch) { consume(given, batch); };
  return part;
}

/// A condition that takes the rows of shuffles: from its first call on until this goes they are not spilled. Until then the shuffles
/// live, also if it destroys their handles.
///
/// Threads: the worker.
class Taking {
 public:
  Taking(faro_condition condition, void* context) : condition_(condition), context_(context) {}
  ~Taking() {
    if (!has_begun_) return;
    for (OpenShuffle* const shuffle : shuffles_) {
      mark(*shuffle, false);
      shuffle->release_reference();
    }
  }
  Taking(const Taking&) = delete;
  Taking& operator=(const Taking&) = delete;

  Status add(const faro_worker& worker, const faro_shuffle* shuffle) {
    FARO_RETURN_IF_ERROR(need(shuffle, "shuffle"));
    if (shuffle->core == nullptr) return Status(Code::closed, "a shuffle is not open");
    const uint32_t owner = shuffle->core->worker().number;
    if (owner != worker.worker.number()) {
      return faro::base::error(Code::invalid_argument,
                               "worker {} is to take rows of a shuffle of worker {}",
                               worker.worker.number(), owner);
    }
    shuffles_.push_back(shuffle->core);
    return Status::Ok();
  }
  /// Called by the worker's wait, which has checked the thread.
  bool holds() {
    if (!std::exchange(has_begun_, true)) {
      for (OpenShuffle* const shuffle : shuffles_) {
        shuffle->refer();
        mark(*shuffle, true);
      }
    }
    return condition_(context_) != 0;
  }

 private:
  static void mark(OpenShuffle& shuffle, bool is_taken) noexcept {
    if (shuffle.receiver() != nullptr) shuffle.receiver()->take_in_exchange(is_taken);
  }

  const faro_condition condition_;
  void* const context_;
  std::vector<OpenShuffle*> shuffles_;
  bool has_begun_ = false;
};

}  // namespace

faro_outcome faro_worker_exchange(faro_worker* worker, faro_exchange_part* const* parts,
                                  size_t count, int64_t wait_ns) {
  return answered([&]() -> Answer {
    FARO_RETURN_IF_ERROR(need(worker, "worker"));
    FARO_RETURN_IF_ERROR(need_array(parts, count, "parts"));
    const Result<Wait> wait = wait_of(wait_ns);
    if (!wait.ok()) return wait.status();
    std::vector<ExchangePart> all;
    for (size_t i = 0; i < count; ++i) {
      Result<ExchangePart> part = part_of(parts[i]);
      if (!part.ok()) return part.status();
      all.push_back(std::move(*part));
    }
    try {
      const Outcome outcome = worker->worker.exchange(all, *wait);
      for (size_t i = 0; i < count; ++i) {
        faro_exchange_part told;
        if (!read(parts[i], "part", told).ok()) continue;
        told.ended = all[i].ended ? 1 : 0;
        fill(*parts[i], told);
      }
      return {outcome, worker->worker};
    } catch (const ConsumeFailed& failed) {
      return failed.why();
    }
  });
}

faro_outcome faro_worker_wait_taking(faro_worker* worker, faro_shuffle* const* shuffles,
                                     size_t count, faro_condition condition, void* context,
                                     int64_t wait_ns) {
  return answered([&]() -> Answer {
    FARO_RETURN_IF_ERROR(need(worker, "worker"));
    FARO_RETURN_IF_ERROR(need_array(shuffles, count, "shuffles"));
    FARO_RETURN_IF_ERROR(need(condition, "condition"));
    const Result<Wait> wait = wait_of(wait_ns);
    if (!wait.ok()) return wait.status();
    Taking taking(condition, context);
    for (size_t i = 0; i < count; ++i) FARO_RETURN_IF_ERROR(taking.add(*worker, shuffles[i]));
    const auto holds = [&taking] { return taking.holds(); };
    return {worker->worker.wait_until(holds, *wait), worker->worker};
  });
}
