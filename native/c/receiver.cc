// What faro/c.h says of the receiving side of a shuffle, and of batches.
#include "faro/receiver.h"

#include "base/return_if_error.h"
#include "c/errors.h"
#include "c/handles.h"
#include "c/receiving.h"
#include "c/sized.h"

using namespace faro::c;
using faro::Outcome;
using faro::Result;
using faro::ShuffleReceiver;
using faro::Status;
using faro::Wait;

namespace {

Result<ShuffleReceiver> receiver_of(const faro_shuffle* shuffle) {
  FARO_RETURN_IF_ERROR(need(shuffle, "shuffle"));
  if (shuffle->receiver) return *shuffle->receiver;
  return shuffle->shuffle.receiver();  // says why there is none
}

// receive(receiver, batch, wait) does it.
template <typename Receive>
faro_outcome receive_rows(const faro_shuffle* shuffle, faro_batch* batch, int64_t wait_ns,
                          faro_rows* rows, const Receive& receive) noexcept {
  return answered([&]() -> Answer {
    const Result<ShuffleReceiver> receiver = receiver_of(shuffle);
    if (!receiver.ok()) return receiver.status();
    FARO_RETURN_IF_ERROR(need(batch, "batch"));
    if (rows != nullptr) FARO_RETURN_IF_ERROR(need_struct(rows, "rows"));
    const Result<Wait> wait = wait_of(wait_ns);
    if (!wait.ok()) return wait.status();
    const Outcome outcome = receive(*receiver, batch->batch, *wait);
    if (outcome == Outcome::done && rows != nullptr) describe(batch->batch, *rows);
    return {outcome, *receiver};
  });
}

}  // namespace

// --- batch

faro_batch* faro_batch_create() {
  faro_batch* made = nullptr;
  coded([&] {
    made = new faro_batch;
    return Status::Ok();
  });
  return made;
}

void faro_batch_destroy(faro_batch* batch) { delete batch; }

faro_code faro_batch_describe(const faro_batch* batch, faro_rows* rows) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(batch, "batch"));
    FARO_RETURN_IF_ERROR(need_struct(rows, "rows"));
    describe(batch->batch, *rows);
    return Status::Ok();
  });
}

faro_code faro_batch_release(faro_batch* batch) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(batch, "batch"));
    batch->batch.release();
    return Status::Ok();
  });
}

faro_code faro_batch_offsets(const faro_batch* batch, uint32_t* offsets, size_t count,
                             uint32_t* rows) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(batch, "batch"));
    FARO_RETURN_IF_ERROR(need_array(offsets, count, "offsets"));
    FARO_RETURN_IF_ERROR(need(rows, "rows"));
    *rows = batch->batch.offsets({offsets, count});
    return Status::Ok();
  });
}

faro_code faro_batch_detach(faro_batch* batch) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(batch, "batch"));
    return batch->batch.detach();
  });
}

// --- receiver

faro_outcome faro_receiver_receive(faro_shuffle* shuffle, faro_batch* batch, int64_t wait_ns,
                                   faro_rows* rows) {
  return receive_rows(shuffle, batch, wait_ns, rows,
                      [](const ShuffleReceiver& receiver, faro::Batch& into, Wait wait) {
                        return receiver.receive(into, wait);
                      });
}

faro_outcome faro_receiver_receive_from(faro_shuffle* shuffle, uint32_t sender, faro_batch* batch,
                                        int64_t wait_ns, faro_rows* rows) {
  return receive_rows(shuffle, batch, wait_ns, rows,
                      [&](const ShuffleReceiver& receiver, faro::Batch& into, Wait wait) {
                        return receiver.receive_from(sender, into, wait);
                      });
}

faro_outcome faro_receiver_receive_into(faro_shuffle* shuffle, faro_batch* batch,
                                        faro_allocate allocate, void* context, int64_t wait_ns,
                                        faro_rows* rows) {
  if (allocate == nullptr) return answered([]() -> Answer { return need(nullptr, "allocate"); });
  const auto take = [&](size_t bytes, size_t& room) {
    return static_cast<std::byte*>(allocate(context, bytes, &room));
  };
  return receive_rows(shuffle, batch, wait_ns, rows,
                      [&](const ShuffleReceiver& receiver, faro::Batch& into, Wait wait) {
                        return receiver.receive_into(into, take, wait);
                      });
}

faro_outcome faro_receiver_stop(faro_shuffle* shuffle) {
  return answered([&]() -> Answer {
    const Result<ShuffleReceiver> receiver = receiver_of(shuffle);
    if (!receiver.ok()) return receiver.status();
    return {receiver->stop(), *receiver};
  });
}

faro_code faro_receiver_name_format(faro_shuffle* shuffle, const char* format) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(receiver_of(shuffle).status());
    FARO_RETURN_IF_ERROR(need(format, "format"));
    return shuffle->core->receive_as(format);
  });
}
