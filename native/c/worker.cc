// What faro/c.h says of workers.
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/return_if_error.h"
#include "c/errors.h"
#include "c/handles.h"
#include "c/sized.h"
#include "faro/session.h"
#include "shuffle/shuffle_access.h"

using namespace faro::c;
using faro::Code;
using faro::Result;
using faro::ShuffleSpec;
using faro::Status;
using faro::Wait;

namespace {

Status add_groups(const faro_shuffle_spec& given, ShuffleSpec& spec) {
  FARO_RETURN_IF_ERROR(need_array(given.group_sizes, given.group_count, "spec->group_sizes"));
  if (given.group_count > ShuffleSpec::kGroupLimit) {
    return faro::base::error(Code::limit_exceeded, "stage {}: {} groups, of at most {}",
                             given.stage, given.group_count, ShuffleSpec::kGroupLimit);
  }
  const std::span<const uint32_t> sizes(given.group_sizes, given.group_count);
  const uint32_t* member = given.group_members;
  for (const uint32_t size : sizes) {
    FARO_RETURN_IF_ERROR(need_array(member, size, "spec->group_members"));
    spec.groups.emplace_back(member, member + size);
    member += size;
  }
  return Status::Ok();
}

Status set_delivery(const faro_shuffle_spec& given, ShuffleSpec& spec) {
  if (given.delivery < FARO_DELIVERY_WORKER || given.delivery > FARO_DELIVERY_REPLICATE) {
    return faro::base::error(Code::invalid_argument, "stage {}: delivery = {} is none of {} … {}",
                             given.stage, given.delivery, static_cast<int>(FARO_DELIVERY_WORKER),
                             static_cast<int>(FARO_DELIVERY_REPLICATE));
  }
  spec.delivery = static_cast<faro::Delivery>(given.delivery);
  return Status::Ok();
}

Result<ShuffleSpec> spec_of(const faro_shuffle_spec* of_caller) {
  faro_shuffle_spec given;
  FARO_RETURN_IF_ERROR(read(of_caller, "spec", given));
  FARO_RETURN_IF_ERROR(need_array(given.senders, given.sender_count, "spec->senders"));
  FARO_RETURN_IF_ERROR(need_array(given.receivers, given.receiver_count, "spec->receivers"));
  ShuffleSpec spec;
  spec.query = query_of(given.query);
  spec.stage = given.stage;
  spec.row_bytes = given.row_bytes;
  spec.senders.assign(given.senders, given.senders + given.sender_count);
  spec.receivers.assign(given.receivers, given.receivers + given.receiver_count);
  if (given.format != nullptr) spec.format = given.format;
  FARO_RETURN_IF_ERROR(add_groups(given, spec));
  FARO_RETURN_IF_ERROR(set_delivery(given, spec));
  return spec;
}

}  // namespace

uint32_t faro_worker_number(const faro_worker* worker) {
  return worker == nullptr ? UINT32_MAX : worker->worker.number();
}

faro_code faro_worker_open_shuffle(faro_worker* worker, const faro_shuffle_spec* spec,
                                   faro_shuffle** shuffle) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(worker, "worker"));
    FARO_RETURN_IF_ERROR(need(shuffle, "shuffle"));
    const Result<ShuffleSpec> asked = spec_of(spec);
    if (!asked.ok()) return asked.status();
    Result<faro::Shuffle> opened = worker->worker.open_shuffle(*asked);
    if (!opened.ok()) return opened.status();
    faro::shuffle::OpenShuffle& core = faro::ShuffleAccess::core(*opened);
    *shuffle = new faro_shuffle(std::move(*opened), core);
    return Status::Ok();
  });
}

faro_outcome faro_worker_wait_until(faro_worker* worker, faro_condition condition, void* context,
                                    int64_t wait_ns) {
  return answered([&]() -> Answer {
    FARO_RETURN_IF_ERROR(need(worker, "worker"));
    FARO_RETURN_IF_ERROR(need(condition, "condition"));
    const Result<Wait> wait = wait_of(wait_ns);
    if (!wait.ok()) return wait.status();
    const auto holds = [condition, context] { return condition(context) != 0; };
    return {worker->worker.wait_until(holds, *wait), worker->worker};
  });
}

faro_code faro_worker_wake(faro_worker* worker) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(worker, "worker"));
    worker->worker.wake();
    return Status::Ok();
  });
}

faro_code faro_worker_ready_descriptor(faro_worker* worker, int32_t* descriptor) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(worker, "worker"));
    FARO_RETURN_IF_ERROR(need(descriptor, "descriptor"));
    const Result<int> made = worker->worker.ready_descriptor();
    if (made.ok()) *descriptor = *made;
    return made.status();
  });
}

faro_code faro_worker_on_ready(faro_worker* worker, faro_ready ready, void* context,
                               faro_forget forget) {
  return coded([&]() -> Status {
    const std::shared_ptr<void> kept(context, [forget](void* unused) {
      if (forget != nullptr) forget(unused);
    });
    FARO_RETURN_IF_ERROR(need(worker, "worker"));
    FARO_RETURN_IF_ERROR(need(ready, "ready"));
    return worker->worker.on_ready([ready, kept] { ready(kept.get()); });
  });
}

faro_outcome faro_worker_arm(faro_worker* worker, faro_condition progress, void* context,
                             int32_t what) {
  return answered([&]() -> Answer {
    FARO_RETURN_IF_ERROR(need(worker, "worker"));
    FARO_RETURN_IF_ERROR(need(progress, "progress"));
    if (what != FARO_PROGRESS_TURN && what != FARO_PROGRESS_CALL)
      return Status(Code::invalid_argument, "there is no progress " + std::to_string(what));
    const auto tries = [progress, context] { return progress(context) != 0; };
    return {worker->worker.arm(tries, static_cast<faro::Progress>(what)), worker->worker};
  });
}

faro_outcome faro_worker_end_query(faro_worker* worker, const faro_query_id* query,
                                   faro_code failure, const char* message, int64_t wait_ns) {
  return answered([&]() -> Answer {
    FARO_RETURN_IF_ERROR(need(worker, "worker"));
    FARO_RETURN_IF_ERROR(need(query, "query"));
    const Result<Wait> wait = wait_of(wait_ns);
    if (!wait.ok()) return wait.status();
    Status why;
    FARO_RETURN_IF_ERROR(read_failure(failure, message, why));
    return {worker->worker.end_query(query_of(*query), why, *wait), worker->worker};
  });
}

faro_code faro_worker_release_ownership(faro_worker* worker) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(worker, "worker"));
    worker->worker.release_ownership();
    return Status::Ok();
  });
}

faro_code faro_worker_take_ownership(faro_worker* worker) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(worker, "worker"));
    worker->core.ownership().adopt();
    return Status::Ok();
  });
}

static_assert(sizeof(faro::WorkerMetrics) == sizeof(faro_worker_metrics) - sizeof(uint64_t),
              "no counter is left out");

faro_code faro_worker_read_metrics(const faro_worker* worker, faro_worker_metrics* metrics) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(worker, "worker"));
    FARO_RETURN_IF_ERROR(need_struct(metrics, "metrics"));
    const faro::WorkerMetrics now = worker->worker.metrics();
    faro_worker_metrics told{};
    told.worker = now.worker;
    told.rows_sent = now.rows_sent;
    told.rows_received = now.rows_received;
    told.rows_dropped = now.rows_dropped;
    told.waits = now.waits;
    told.sleeps = now.sleeps;
    told.blocked_ns = now.blocked_ns;
    told.frames_spilled = now.frames_spilled;
    told.bytes_spilled = now.bytes_spilled;
    told.frames_out_overflow = now.frames_out_overflow;
    told.bytes_out_overflow = now.bytes_out_overflow;
    told.open_shuffles = now.open_shuffles;
    told.operations = now.operations;
    told.held_frames = now.held_frames;
    fill(*metrics, told);
    return Status::Ok();
  });
}

faro_code faro_worker_rings(faro_worker* worker, faro_rings* rings) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(worker, "worker"));
    FARO_RETURN_IF_ERROR(need_struct(rings, "rings"));
    std::vector<faro_ring> now;
    const auto add = [&](uint32_t peer, bool is_outgoing, std::span<const std::byte> memory) {
      faro_ring ring{};
      ring.base = const_cast<std::byte*>(memory.data());
      ring.bytes = memory.size();
      ring.peer = peer;
      ring.is_outgoing = is_outgoing ? 1 : 0;
      now.push_back(ring);
    };
    FARO_ASSIGN_OR_RETURN(const uint64_t* const generation, worker->core.each_ring(add));
    worker->rings = std::move(now);
    faro_rings told{};
    told.rings = worker->rings.data();
    told.ring_count = static_cast<uint32_t>(worker->rings.size());
    told.ring_bytes = sizeof(faro_ring);
    told.generation = generation;
    fill(*rings, told);
    return Status::Ok();
  });
}
