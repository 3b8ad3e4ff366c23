// ShuffleCore: what is behind faro::Shuffle.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "faro/shuffle.h"
#include "shuffle/worker_core.h"

namespace faro::detail {

class ShuffleCore {
 public:
  ShuffleCore(WorkerCore& worker, std::shared_ptr<shuffle::Query> query, ShuffleSpec spec,
              shuffle::StageLists lists, shuffle::RowFormat format);
  ~ShuffleCore();

  /// Becomes a sender.
  void make_sender();
  /// In all its rings.
  void use_slot(uint16_t slot) noexcept { slot_ = slot; }
  /// What the rows are that this worker sends from its next OPEN on, and how it reads those that it receives, for who
  /// learns that after it has opened. Errors: invalid_argument if it has said something else before;
  /// stage_mismatch if a sender has: then the query fails.
  Status send_as(std::string_view format);
  Status receive_as(std::string_view format);
  /// Becomes a receiver; the inbox may have rows already.
  void make_receiver(Inbox* inbox) noexcept;

  // Sending. All answer as faro::Shuffle documents.
  Outcome send(uint32_t receiver, std::span<const std::byte> row, bool wait,
               Timeout timeout) noexcept;
  /// The same, but a row that fits into a frame never goes to overflow: `holding` instead.
  Outcome send_in_ring(uint32_t receiver, std::span<const std::byte> row, bool wait,
                       Timeout timeout) noexcept;
  Outcome multicast(std::span<const uint32_t> receivers, std::span<const std::byte> row, bool wait,
                    Timeout timeout);
  Outcome broadcast(std::span<const std::byte> row, bool wait, Timeout timeout);
  /// Of rows of a fixed width the first that fit into the open frames of all receivers, if some have
  /// stopped; returns how many.
  size_t broadcast_into_open_frames(std::span<const std::byte> rows) noexcept;
  Outcome claim(uint32_t receiver, size_t bytes, std::span<std::byte>& data, bool wait,
                Timeout timeout);
  /// The open claim does not lie in a frame.
  bool is_claim_apart() const noexcept { return claim_.large; }
  Status commit_claim(std::span<std::byte> data, size_t bytes);
  void abort_claim() noexcept;
  /// The RowClaim is done with: aborts what was not committed. May destroy this object.
  void claim_gone() noexcept;
  void flush();
  Outcome finish(bool wait, Timeout timeout);

  // Receiving.
  Outcome poll(Batch& batch, const uint32_t* only_sender, bool wait, Timeout timeout);
  void stop();
  void release(Batch& batch) noexcept;
  Status detach(Batch& batch);

  void cancel(std::string_view reason);
  /// Rows of one width were read as rows of another.
  void fail_by_width(uint32_t row_bytes, size_t read_as) noexcept;
  void close() noexcept;

  // For WorkerCore.
  /// Writes the header of the open frame and commits or queues it.
  void close_frame(uint32_t receiver);
  /// The open frame does not lie in the ring.
  bool has_frame_in_overflow(uint32_t receiver) const noexcept {
    return outboxes_[receiver].in_overflow != nullptr;
  }
  void query_failed();
  void receivers_stopped(const std::vector<uint32_t>& workers);
  void queued(int change) noexcept { queued_ += change; }
  void dropped(uint32_t receiver, uint64_t rows) noexcept;
  /// The handle is closed and nothing refers to this any more.
  bool disposable() const noexcept { return closed_ && queued_ == 0 && !referenced(); }
  bool has_queued() const noexcept { return queued_ != 0; }
  bool handle_closed() const noexcept { return closed_; }

  /// For rows of its fixed width (setting kernel.scatter).
  SendKernels kernels() const;
  const ShuffleSpec& spec() const noexcept { return spec_; }
  const shuffle::StageLists& lists() const noexcept { return lists_; }
  /// Of the rows that this worker sends.
  const shuffle::RowFormat& format() const noexcept { return format_; }
  const std::shared_ptr<shuffle::Query>& query() const noexcept { return query_; }
  Inbox* inbox() const noexcept { return inbox_; }
  std::vector<OutboxCursor>& cursors() noexcept { return cursors_; }
  std::vector<uint32_t>& frame_rows() noexcept { return frame_rows_; }
  bool is_sender() const noexcept { return is_sender_; }
  bool is_receiver() const noexcept { return inbox_ != nullptr; }
  uint16_t slot() const noexcept { return slot_; }
  const Status& status() const noexcept { return status_; }
  uint32_t receiver_count() const noexcept { return static_cast<uint32_t>(spec_.receivers.size()); }
  /// receiver_count() if this worker is none.
  uint32_t own_receiver() const noexcept;

 private:
  struct OpenClaim {
    bool open = false;
    uint32_t receiver = 0;
    bool large = false;              // lies in `row`, travels as fragments
    std::byte* frame_end = nullptr;  // of the open frame, hidden from the inlined path meanwhile
    std::unique_ptr<QueuedFrame> row;
  };

  void abandon(std::string_view what);
  /// Where `part` finds no memory, this query fails.
  template <typename Part>
  Status guarded(Part&& part) {
    try {
      return part();
    } catch (const std::bad_alloc&) {
      return lack_memory();
    }
  }
  Status lack_memory() noexcept;
  Status say(shuffle::RowFormat& known, std::string_view format, std::string_view what) const;
  Status commit_open_claim(std::span<std::byte> data, size_t bytes);
  Outcome fail(Code code, std::string message);
  Outcome fail(const Status& status);
  Outcome check();
  Outcome check_send();
  /// That all exist, and each is named once.
  Outcome check_receivers(std::span<const uint32_t> receivers);
  /// Runs an attempt, or waits for it.
  template <typename Attempt>
  Outcome operate(const Attempt& attempt, bool wait, Timeout timeout) {
    if (!wait) return worker_.run(attempt);
    if (Status status = worker_.check_may_wait(); !status.ok()) return fail(status);
    return worker_.wait(attempt, timeout);
  }
  /// Where a row goes whose ring is full while the worker holds batches.
  enum class WhenFull : uint8_t { overflow, nowhere };
  Outcome attempt_send(uint32_t receiver, std::span<const std::byte> row,
                       WhenFull when_full = WhenFull::overflow);
  Outcome attempt_multicast(std::span<const uint32_t> receivers, std::span<const std::byte> row,
                            WhenFull when_full = WhenFull::overflow);
  Outcome attempt_claim(uint32_t receiver, size_t bytes, std::span<std::byte>& data);
  Outcome attempt_finish();
  Outcome attempt_poll(Batch& batch, const uint32_t* only_sender);

  /// Makes room for `bytes` more in the open frame of a receiver, which may be a new one.
  Outcome make_room(uint32_t receiver, uint32_t bytes, WhenFull when_full = WhenFull::overflow);
  /// The same without overflow. would_wait: no room in the ring, or rows are queued for it.
  Outcome make_room_in_ring(uint32_t receiver, uint32_t bytes);
  Outcome open_in_overflow(uint32_t receiver);
  /// Sends OPEN or FINISH by the ring, or by the queue. would_wait: no room, and no batch is held.
  Outcome send_control(uint32_t receiver, wire::FrameKind kind);
  Outcome send_large(std::span<const uint32_t> receivers, std::span<const std::byte> row);
  Outcome prepare_large(uint32_t receiver);
  void enqueue_large(std::unique_ptr<QueuedFrame> frame, uint64_t row_bytes);
  /// A frame of `bytes` bytes for the queue of a receiver's ring; null unless done.
  Outcome make_queued(uint32_t receiver, wire::FrameKind kind, uint64_t bytes,
                      std::unique_ptr<QueuedFrame>& frame);
  void write_row(uint32_t receiver, std::span<const std::byte> row) noexcept;
  void close_full_frame(uint32_t receiver, uint32_t next_bytes);
  /// Commits a row that was claimed larger than a frame, but fits into one.
  Status commit_shrunk(std::span<const std::byte> row);
  void abandon_frame(uint32_t receiver) noexcept;
  bool has_room(uint32_t receiver, uint32_t bytes) const noexcept;
  /// Bytes that a row takes in a frame.
  uint64_t framed_bytes(uint64_t row_bytes) const noexcept {
    return spec_.row_bytes == 0 ? row_bytes + sizeof(wire::RowLength) : row_bytes;
  }
  uint32_t frame_payload_limit() const noexcept;

  /// Batches or a claim refer to this.
  bool referenced() const noexcept { return held_ > 0 || claim_exists_; }
  void reference_gone() noexcept;

  WorkerCore& worker_;
  std::shared_ptr<NodeCore> keep_alive_;  // while the handle, a batch or a claim exists
  std::shared_ptr<shuffle::Query> query_;
  ShuffleSpec spec_;
  shuffle::StageLists lists_;
  shuffle::RowFormat format_;
  Status status_;

  bool is_sender_ = false;
  uint16_t slot_ = 0;
  std::vector<OutboxCursor> cursors_;
  std::vector<Outbox> outboxes_;
  std::vector<uint32_t> everyone_;  // all receivers
  std::vector<uint64_t> named_;     // by receiver: the number of the last multicast that named it
  uint64_t multicasts_ = 0;
  std::vector<uint32_t> frame_rows_;  // rows with a length each: rows in the open frame
  uint32_t stopped_count_ = 0;
  uint32_t finished_count_ = 0;
  bool finish_called_ = false;
  bool finish_done_ = false;  // everything has left the queues, too
  bool failed_handled_ = false;
  bool closed_ = false;
  int queued_ = 0;
  OpenClaim claim_;

  Inbox* inbox_ = nullptr;
  uint32_t held_ = 0;          // batches
  bool claim_exists_ = false;  // a RowClaim refers to this, open or not
  uint32_t ends_told_ = 0;     // senders whose end of stream the engine was told
  bool stopped_ = false;
};

}  // namespace faro::detail
