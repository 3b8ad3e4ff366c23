// What faro/c.h says of shuffles, apart from their two sides.
#include "faro/shuffle.h"

#include <utility>

#include "base/return_if_error.h"
#include "c/errors.h"
#include "c/handles.h"
#include "c/shuffle_metrics.h"
#include "c/sized.h"

using namespace faro::c;
using faro::Status;

static_assert(sizeof(faro_cursor) == sizeof(faro::detail::FrameCursor) &&
              offsetof(faro_cursor, at) == offsetof(faro::detail::FrameCursor, at) &&
              offsetof(faro_cursor, end) == offsetof(faro::detail::FrameCursor, end));

faro_shuffle::faro_shuffle(faro::Shuffle opened, faro::shuffle::OpenShuffle& of)
    : shuffle(std::move(opened)),
      senders(shuffle.spec().senders),
      receivers(shuffle.spec().receivers),
      core(&of) {
  info.senders = senders.data();
  info.receivers = receivers.data();
  info.sender_count = static_cast<uint32_t>(senders.size());
  info.receiver_count = static_cast<uint32_t>(receivers.size());
  info.own_receiver = core->own_receiver();
  if (core->receiver() != nullptr) receiver = *shuffle.receiver();
  if (core->sender() == nullptr) return;
  sender = *shuffle.sender();
  info.is_sender = 1;
  frames.cursors = reinterpret_cast<faro_cursor*>(core->sender()->targets().cursors());
  frames.row_counts = core->sender()->targets().frame_rows();
  frames.receiver_count = core->sender()->targets().count();
  frames.row_bytes = shuffle.spec().row_bytes;
  frames.cursor_bytes = sizeof(faro_cursor);
}

// The claim goes last: it keeps what is behind the shuffle.
void faro_shuffle::close() noexcept {
  shuffle.close();
  claim.abort();
  core = nullptr;
  sender.reset();
  receiver.reset();
  frames = {};
}

faro_code faro_shuffle_describe(const faro_shuffle* shuffle, faro_shuffle_info* info) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(shuffle, "shuffle"));
    FARO_RETURN_IF_ERROR(need_struct(info, "info"));
    fill(*info, shuffle->info);
    return Status::Ok();
  });
}

faro_code faro_shuffle_status(const faro_shuffle* shuffle) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(shuffle, "shuffle"));
    return shuffle->shuffle.status();
  });
}

faro_code faro_shuffle_cancel(faro_shuffle* shuffle, const char* reason) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(shuffle, "shuffle"));
    FARO_RETURN_IF_ERROR(need(reason, "reason"));
    return shuffle->shuffle.cancel(reason);
  });
}

faro_code faro_shuffle_read_metrics(const faro_shuffle* shuffle, faro_tell_shuffle tell_shuffle,
                                    void* context) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(shuffle, "shuffle"));
    FARO_RETURN_IF_ERROR(need(tell_shuffle, "tell"));
    tell(shuffle->shuffle.metrics(), tell_shuffle, context);
    return Status::Ok();
  });
}

faro_code faro_shuffle_close(faro_shuffle* shuffle) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(shuffle, "shuffle"));
    shuffle->close();
    return Status::Ok();
  });
}

void faro_shuffle_destroy(faro_shuffle* shuffle) { delete shuffle; }
