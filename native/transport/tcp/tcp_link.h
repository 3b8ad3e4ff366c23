// One link's data connection over TCP: its two ends of rings, and the socket between them.
//
//   worker: commit → post ──► writes_ ─┐                      ┌─► READ:    free, wake the sender
//   worker: release → tell ─► reads_  ─┤─ sendmsg ─► socket ──┤
//                                      │                      └─► WRITTEN: bytes into the ring,
//             the holder of the right to write                             ready bit, wake the
//                                                                          receiver
//                                               the holder of the right to read (tcp_receiver.h)
//
// right_to_write.h says who that holder is, and why no post and no writability is lost. When the
// connection breaks (`broken`), the right is parked as soon as its holder notices, and nobody gets
// it until the link has another connection or is destroyed:
//
//   running ──► broken ──► running            mend: give_up_connection, then take_connection
//      └───────────┴─────► stopped
//
// Everything that was committed and not read lies in the rings still. So the new connection begins with a RESUME of each
// incoming ring in both directions (wire/data_message.h), and each side sends on from what the other names.
//
// The right covers gather_, sent_, and the taking side of the pending rings.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/fixed_array.h"
#include "transport/mending_tally.h"
#include "transport/messaged_path.h"
#include "transport/schedule/turns.h"
#include "transport/tcp/arrival.h"
#include "transport/tcp/kernel_watch.h"
#include "transport/tcp/node_turns.h"
#include "transport/tcp/right_to_write.h"
#include "transport/tcp/ring_region.h"
#include "transport/tcp/tcp_receiver.h"
#include "transport/tcp/tcp_stream.h"
#include "transport/transport.h"
#include "wire/data_message.h"

namespace faro::transport::tcp {

class TcpLink;

extern const Capabilities kTcpCapabilities;

/// The sending end of one ring.
class TcpOutgoing final : public MessagedOutgoing {
 public:
  TcpOutgoing(TcpLink& link, uint32_t ring, std::byte* base, uint32_t ring_bytes);

 private:
  friend class TcpLink;
  void on_broken() override;

  TcpLink& link_;
};

/// The receiving end of one ring.
class TcpIncoming final : public MessagedIncoming {
 public:
  TcpIncoming(TcpLink& link, uint32_t ring, std::byte* base, uint32_t ring_bytes,
              ring::ReadySet& ready, uint32_t ready_ring);

 private:
  friend class TcpLink;
  void on_invalid(const char* why) override;

  TcpLink& link_;
  std::byte* const base_;
};

/// Threads: outgoing and incoming ends as in transport.h; start and destruction: network thread, or
/// when that does not run. Owns: the socket and the memory of the rings.
class TcpLink final : public DataLink, public MessagedPath {
 public:
  /// What a link takes beside its rings and its connection.
  static uint64_t bytes(const ring::Layout& outgoing, const ring::Layout& incoming) noexcept;

  /// What the links of a node share. turns: null, if rows are sent without.
  struct Shared {
    std::shared_ptr<TcpReceiver> receiver;
    std::shared_ptr<DeferredSends> deferred;
    std::shared_ptr<NodeTurns> turns = nullptr;
  };

  /// Takes over a connected non-blocking socket, encrypted by `tls` or by nothing (null).
  TcpLink(LinkContext& context, Shared shared, int fd, std::shared_ptr<tls::Stream> tls,
          RingRegion outgoing, RingRegion incoming);
  ~TcpLink() override;
  TcpLink(const TcpLink&) = delete;
  TcpLink& operator=(const TcpLink&) = delete;

  /// Registers the socket with the reactor. Errors: system_error.
  Status start();

  const Capabilities& capabilities() const override { return kTcpCapabilities; }
  Outgoing& outgoing(uint32_t ring) override { return outgoing_[ring]; }
  Incoming& incoming(uint32_t ring) override { return incoming_[ring]; }

  void add_counters(LinkCounters& sum) const override { turns_.add_counters(sum); }

  Pulse take_pulse() noexcept override;

  /// A call that is inside a system call on the socket may still finish it; the socket is shut
  /// down, so it moves nothing.
  void stop() noexcept override;
  bool close_connections() noexcept override;

  /// Breaks the connection if it has not broken yet, and closes it. Threads: network thread. Blocks: until other threads
  /// have left it, which never wait.
  void give_up_connection() noexcept;
  /// After that: goes on over this connection; see the constructor. Errors: system_error; or why the link has stopped.
  Status take_connection(int fd, std::shared_ptr<tls::Stream> tls);

 private:
  friend class TcpOutgoing;
  friend class TcpIncoming;

  enum State : uint32_t { kRunning, kBroken, kStopped };

  // What a link that is mended needs besides.
  struct Resumption {
    uint32_t told = 0;   // incoming rings whose RESUME is gathered; the right's holder's
    uint32_t heard = 0;  // outgoing rings whose RESUME has come; the reading right's holder's
    bool owes = false;   // likewise: something was on its way in one of them that has not come
    std::atomic<bool> may_write{
        true};         // all have. Release, after `sent_` of the rings; partner: gather
    std::mutex mutex;  // guards changes of the state, and the next two
    Status failure;    // why it has stopped after it had broken
  };

  // What the connection has shown of the peer.
  struct Life {
    uint64_t received_bytes = 0;
    uint64_t seen_bytes = 0;  // of these, by the last heartbeat
    MendingTally tally;

    // A heartbeat is due. True: something has come since the one before.
    bool beat() noexcept {
      const bool heard = std::exchange(seen_bytes, received_bytes) != received_bytes;
      tally.beat(heard);
      return heard;
    }
  };

  // What is on its way into the kernel: messages and the pieces of memory that make them up.
  struct Gather {
    static constexpr uint32_t kMostMessages = 128;
    static constexpr uint32_t kPiecesPerMessage = 3;  // header and a ring's bytes, wrapped at worst

    // A link with few rings has few messages at a time: two of each, as a ring may be marked again meanwhile.
    static uint32_t limit_of(uint32_t rings) { return std::min(2 * rings, kMostMessages); }
    explicit Gather(uint32_t rings)
        : message_limit(limit_of(rings)),
          messages(std::make_unique<wire::DataMessage[]>(message_limit)),
          pieces(std::make_unique<iovec[]>(kPiecesPerMessage * message_limit)) {}

    // Reads take at most half of it, so that one batch can always hold a whole word of either kind
    // (PendingRings).
    const uint32_t message_limit;
    const std::unique_ptr<wire::DataMessage[]> messages;
    const std::unique_ptr<iovec[]> pieces;
    uint32_t message_count = 0;
    uint32_t piece_count = 0;
    uint32_t first_piece = 0;  // not yet completely in the kernel
    uint64_t row_bytes = 0;    // not yet in the kernel, about; counted only with turns
    bool is_turn = false;      // its rows have been gathered in a turn

    uint32_t read_limit() const { return message_limit / 2; }
    bool empty() const { return first_piece == piece_count; }
    void clear() {
      message_count = piece_count = first_piece = 0;
      row_bytes = 0;
    }
    void add(const wire::DataMessage& message);
    void add_piece(const void* data, size_t bytes);
    /// What is not in the kernel yet.
    std::span<iovec> rest() { return {&pieces[first_piece], piece_count - first_piece}; }
    /// The kernel took that many bytes.
    void advance(size_t bytes);
  };

  // Sending (tcp_datapath.cc).
  void send_pending() override;
  bool send_while_held();
  void on_writable();
  void send_later();
  /// Sending in turns (tcp_turns.cc): which rows go now, and what is told and heard of turns. False: rows are sent without. Threads:
  /// those of the link; gather_message, gather_rows, note_sent: who has the right to write.
  class InTurns final : private schedule::Turns::Path {
   public:
    InTurns(TcpLink& link, std::shared_ptr<NodeTurns> turns)
        : link_(link), turns_(std::move(turns)) {}
    explicit operator bool() const noexcept { return turns_ != nullptr; }

    /// Before the first enter.
    Status open();
    void enter(base::Nanoseconds now);
    /// The link has started: what it has to tell of turns goes soon.
    void begin();
    void leave() noexcept;
    void remove() noexcept;
    void gather_message();
    void gather_rows();
    void note_sent(size_t bytes);
    Status accept(const wire::DataMessage& message);
    void add_counters(LinkCounters& sum) const;
    /// Has others send whose turn it is now.
    void send_what_is_due() noexcept {
      if (turns_ != nullptr) [[unlikely]]
        turns_->turns().send_due();
    }

   private:
    void send_due() noexcept override;
    uint64_t pending_rows() const noexcept;
    uint32_t peer() const noexcept { return link_.context_.peer_node; }
    base::Nanoseconds now() const noexcept { return link_.context_.reactor->clock().now_ns(); }

    TcpLink& link_;
    const std::shared_ptr<NodeTurns> turns_;
  };

  void gather();
  void gather_resumes();
  uint32_t gather_ring(uint32_t number);

  Status watch();

  // Receiving (tcp_receive.cc). Threads: the holder of the right to read.
  friend class TcpReceiver;
  void on_readable(bool until_end);
  void on_events(uint32_t events);  // network thread
  void read_resumes();              // the same
  void receive(bool until_end);
  void receive_some(bool until_end);
  bool take_received(size_t bytes);
  bool take_messages();
  Status accept_read(const wire::DataMessage& message);
  Status accept_no_read(const wire::DataMessage& message);
  Status accept_written(const wire::DataMessage& message);
  Status accept_resume(const wire::DataMessage& message);
  void note_resumed();
  void publish();

  // Ending. Any thread.
  void fail(Code code, std::string message);
  /// Where `part` finds no memory, the link ends.
  template <typename Part>
  void guarded(Part&& part) noexcept {
    try {
      part();
    } catch (const std::bad_alloc&) {
      if (halt(kStopped)) context_.events->on_link_failed(no_memory_);
    }
  }
  /// True: it ran until now, so the events are to be told.
  bool halt(State to, const Status& why = Status::Ok()) noexcept;
  bool halted() const { return state_.load(std::memory_order_acquire) != kRunning; }
  /// The socket of a link that has halted is closed. False: another thread is inside.
  bool close_socket() noexcept;

  // Constant after construction.
  const std::shared_ptr<TcpReceiver> receiver_;
  InTurns turns_;
  std::optional<TcpStream>
      stream_;  // changed under the mutex by the thread that has both rights; none: given up
  RingRegion outgoing_region_;
  RingRegion incoming_region_;
  base::FixedArray<TcpOutgoing> outgoing_;
  base::FixedArray<TcpIncoming> incoming_;
  // Tasks handed to the reactor hold this weakly: they may outlive the link.
  std::shared_ptr<TcpLink*> self_;
  const Status no_memory_{Code::resource_limit, "no memory for its data connection"};

  // Shared.
  std::atomic<State> state_{kRunning};
  Resumption resumption_;
  alignas(64) RightToWrite right_;
  std::atomic<bool> sign_due_{false};  // before due_ is set, and taken after that is

  // The right's holder's.
  alignas(64) Gather gather_;

  // The reading right's holder's.
  alignas(64) Arrival arrival_;
  Life life_;

  // The network thread's.
  bool registered_ = false;
  KernelWatch kernel_watch_;
};

}  // namespace faro::transport::tcp
