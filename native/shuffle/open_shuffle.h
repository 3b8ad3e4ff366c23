// OpenShuffle: what is behind faro::Shuffle: one stage at one worker, with its sending and its receiving side.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "faro/shuffle.h"
#include "shuffle/operation/shuffle_context.h"
#include "shuffle/stage/stage_receiver.h"
#include "shuffle/stage/stage_sender.h"

namespace faro::shuffle {

class LocalWorker;

/// Lives until its handle is closed, none of its frames is queued and no batch or claim refers to it; keeps the
/// memory of its node as long. It is closed by its handle, or before that by its worker, if its part of the query fails:
/// then it answers all calls by an error, and belongs to its handle.
///
/// Threads: those of the worker.
class OpenShuffle final : public ShuffleContext {
 public:
  OpenShuffle(LocalWorker& worker, Ownership& ownership, std::shared_ptr<Query> query,
              ShuffleSpec spec, StageLists lists, LogicalReceivers receivers,
              std::shared_ptr<ShuffleCounts> counts);
  ~OpenShuffle() override;

  void become_sender(WaitLoop& wait_loop, Lanes& lanes, RowFormat format, uint16_t slot,
                     GroupBlocks blocks);
  void become_receiver(WaitLoop& wait_loop, ReceiveSide& side, Inbox& inbox);
  LocalWorker& local_worker() noexcept { return local_worker_; }
  /// Null if this worker is none.
  StageSender* sender() noexcept { return sender_ ? &*sender_ : nullptr; }
  StageReceiver* receiver() noexcept { return receiver_ ? &*receiver_ : nullptr; }

  uint32_t receiver_count() const noexcept { return receivers().count(); }
  /// receiver_count() if this worker is none.
  uint32_t own_receiver() const noexcept;
  /// They do what StageSender::send_as and StageReceiver::receive_as say; nothing where this worker
  /// is none.
  Status send_as(std::string_view format);
  Status receive_as(std::string_view format);

  Status cancel(std::string_view reason);
  /// What came was not all used: the query fails, as by a receiver that is closed before its end. `what` of the worker's was
  /// closed, for the cause.
  void leave(std::string_view what) noexcept;
  /// The handle is closed, and is no more. May destroy this object.
  void close() noexcept;
  /// Closes all but the handle. May destroy this object.
  void end() noexcept;
  bool is_closed() const noexcept { return closed_; }
  /// Nothing is left of it at its worker.
  bool is_over() const noexcept {
    return closed_ && !is_referenced() && !(sender_ && sender_->has_queued());
  }
  bool has_handle() const noexcept { return has_handle_; }
  /// The worker lets go of it, which is over.
  void leave_to_handle() noexcept { left_to_handle_ = true; }

  void drop_rows() override;

 private:
  void unreferenced() noexcept override;
  Status check_open();
  void abandon(std::string_view what);
  void cancel_if_unfinished();

  LocalWorker& local_worker_;
  std::shared_ptr<const void> keep_alive_;  // while the handle, a batch or a claim exists
  std::optional<StageSender> sender_;
  std::optional<StageReceiver> receiver_;
  bool rows_dropped_ = false;
  bool closed_ = false;
  bool has_handle_ = true;
  bool left_to_handle_ = false;
};

}  // namespace faro::shuffle
