// What faro/c.h says of sending and receiving together.
#include "faro/exchange.h"

#include <exception>
#include <utility>
#include <vector>

#include "base/return_if_error.h"
#include "c/errors.h"
#include "c/handles.h"
#include "c/receiving.h"
#include "c/sized.h"

using namespace faro::c;
using faro::ExchangePart;
using faro::Outcome;
using faro::Result;
using faro::Status;
using faro::Wait;

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
