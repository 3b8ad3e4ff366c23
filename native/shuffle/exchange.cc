#include "shuffle/exchange.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "shuffle/shuffle_access.h"

namespace faro::shuffle {
namespace {

// Between two looks at what there is to send: as many frames as a ring mostly has.
constexpr uint32_t kBatchesAtOnce = 16;

bool has_sent(const StageSender* sender) noexcept { return sender == nullptr || sender->is_done(); }
bool has_received(const StageReceiver* receiver) noexcept {
  return receiver == nullptr || receiver->is_done();
}

// That a function is there where the worker has something to do by it, and only there.
Status check_function(const OpenShuffle& shuffle, bool is_there, bool takes_part, bool is_over,
                      std::string_view function, std::string_view side) {
  if (is_there == takes_part || is_over) return Status::Ok();
  const uint32_t worker = shuffle.worker().number;
  const uint32_t stage = shuffle.spec().stage;
  return takes_part ? base::error(Code::wrong_state,
                                  "worker {} is a {} of stage {}, for which exchange has no "
                                  "function `{}`",
                                  worker, side, stage, function)
                    : base::error(Code::wrong_state,
                                  "worker {} is no {} of stage {}, for which exchange has a "
                                  "function `{}`",
                                  worker, side, stage, function);
}

}  // namespace

OpenShuffle& Exchange::core(const ExchangePart& part) { return ShuffleAccess::core(*part.shuffle); }

Exchange::~Exchange() {
  if (is_checked_) mark_all(false);
}

// What this call takes by itself is not spilled meanwhile.
void Exchange::mark_all(bool is_taken) noexcept {
  for (const ExchangePart& part : parts_) {
    if (!part.shuffle->is_open()) continue;
    if (StageReceiver* const receiver = core(part).receiver()) receiver->take_in_exchange(is_taken);
  }
}

Status Exchange::check(uint32_t worker) {
  if (parts_.empty()) return Status(Code::invalid_argument, "exchange without a shuffle");
  for (size_t i = 0; i < parts_.size(); ++i) {
    ExchangePart& part = parts_[i];
    if (part.shuffle == nullptr)
      return Status(Code::invalid_argument, "exchange has a part without a shuffle");
    if (!part.shuffle->is_open())
      return Status(Code::closed, "exchange has a shuffle that is not open");
    OpenShuffle& shuffle = core(part);
    const bool is_named_twice =
        std::any_of(parts_.begin(), parts_.begin() + static_cast<ptrdiff_t>(i),
                    [&](const ExchangePart& before) { return before.shuffle == part.shuffle; });
    if (is_named_twice) {
      return base::error(Code::invalid_argument, "exchange has the shuffle of stage {} twice",
                         shuffle.spec().stage);
    }
    if (shuffle.worker().number != worker) {
      return base::error(Code::invalid_argument,
                         "exchange of worker {} has a shuffle of worker {}, of stage {}", worker,
                         shuffle.worker().number, shuffle.spec().stage);
    }
    const StageSender* const sender = shuffle.sender();
    const StageReceiver* const receiver = shuffle.receiver();
    FARO_RETURN_IF_ERROR(check_function(shuffle, part.produce != nullptr, sender != nullptr,
                                        sender != nullptr && has_sent(sender), "produce",
                                        "sender"));
    FARO_RETURN_IF_ERROR(check_function(shuffle, part.consume != nullptr, receiver != nullptr,
                                        receiver != nullptr && has_received(receiver), "consume",
                                        "receiver"));
    part.ended = has_received(receiver);
  }
  is_checked_ = true;
  mark_all(true);
  return Status::Ok();
}

bool Exchange::turn() noexcept {
  bool any = false;
  for (ExchangePart& part : parts_) {
    any |= guarded(part, [&] { return take(part); });
    if (has_failed_ || has_kept_) return true;
  }
  if (lanes_.holds_batches()) return any;
  for (ExchangePart& part : parts_) {
    any |= guarded(part, [&] { return produce(part); });
    if (has_failed_) return true;
  }
  is_done_ = std::ranges::all_of(
      parts_, [](const ExchangePart& part) { return part.ended && has_sent(core(part).sender()); });
  return any || is_done_;
}

template <typename Do>
bool Exchange::guarded(ExchangePart& part, const Do& something) noexcept {
  if (!part.shuffle->is_open()) {
    const Status why = part.shuffle->status();
    return fail(why.ok() ? Status(Code::closed, "a shuffle was closed during its exchange") : why);
  }
  OpenShuffle& shuffle = core(part);
  try {
    return something();
  } catch (const std::exception& thrown) {
    exception_ = std::current_exception();
    return fail_query(shuffle, base::error(Code::query_failed, "{}", thrown.what()));
  } catch (...) {
    exception_ = std::current_exception();
    return fail_query(shuffle, Status(Code::query_failed, "an exception of no known type"));
  }
}

bool Exchange::fail(const Status& why) {
  why_ = why;
  return has_failed_ = true;
}

bool Exchange::fail_query(OpenShuffle& shuffle, const Status& why) {
  failed_query_ = shuffle.query();
  return fail(why.of_query(shuffle.query()->id).of_stage(shuffle.spec().stage));
}

// The first batches that have come.
bool Exchange::take(ExchangePart& part) {
  bool any = false;
  for (uint32_t taken = 0; taken < kBatchesAtOnce && !part.ended; ++taken) {
    Batch batch;
    switch (core(part).receiver()->receive(batch, nullptr, Wait::none())) {
      case Outcome::done:
        any = true;
        part.consume(batch);
        if (!part.shuffle->is_open()) return true;
        has_kept_ = batch.empty() && lanes_.holds_batches();
        if (has_kept_) return true;
        break;
      case Outcome::end_of_stream:
        any = true;
        part.ended = true;
        break;
      case Outcome::failed:
        return fail(core(part).receiver()->status());
      default:
        return any;  // would_wait, or, holding batches that were moved away, holding
    }
  }
  return any;
}

bool Exchange::produce(ExchangePart& part) {
  OpenShuffle& shuffle = core(part);
  StageSender* const sender = shuffle.sender();
  if (has_sent(sender)) return false;
  if (sender->is_finishing()) return finish(*sender, shuffle);
  const Outcome outcome = part.produce(*part.shuffle->sender());
  if (!part.shuffle->is_open()) return true;
  switch (outcome) {
    case Outcome::done:
      return true;
    case Outcome::would_wait:
    case Outcome::holding:
      return false;
    case Outcome::end_of_stream:
    case Outcome::stopped:
      (void)finish(*sender, shuffle);
      return true;
    case Outcome::failed:
      if (shuffle.query()->failed()) return fail(shuffle.query()->cause());
      return fail_query(shuffle, sender->status().ok()
                                     ? Status(Code::query_failed, "its function `produce` failed")
                                     : sender->status());
    default:
      break;
  }
  return fail_query(shuffle, base::error(Code::query_failed,
                                         "its function `produce` answered {}, and has to answer "
                                         "done, would_wait, end_of_stream or failed",
                                         outcome_name(outcome)));
}

bool Exchange::finish(StageSender& sender, OpenShuffle& shuffle) {
  const Outcome outcome = sender.finish(Wait::none());
  if (outcome != Outcome::failed) return outcome == Outcome::done;
  return shuffle.query()->failed() ? fail(shuffle.query()->cause())
                                   : fail_query(shuffle, sender.status());
}

}  // namespace faro::shuffle
