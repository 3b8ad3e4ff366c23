// One link's data connection over TCP: its two ends of rings, and the socket between them.
//
//   worker: commit → post ──► writes_ ─┐                      ┌─► READ:    free, wake the sender
//   worker: release → tell ─► reads_  ─┤─ sendmsg ─► socket ──┤
//                                      │                      └─► WRITTEN: bytes into the ring,
//             the holder of the right to write                             ready bit, wake the
//                                                                          receiver
//                                               the holder of the right to read (tcp_receiver.h)
//
// The right to write (native/DESIGN.md#hc-6) is one word:
//
//   free ──CAS──► held ──► free             everything due is in the kernel
//                 held ──► blocked          the socket is full (or the turn is over). Now the
//                                           right is the network thread's, which takes it
//                                           (blocked → held) when the socket is writable
//                 held ──► held_writable    the network thread saw the socket writable while the
//                                           right was held: its holder must try again instead of
//                                           blocking
//
// native/DESIGN.md#memory-orders says why no post is lost (W1 to W4). If W2 finds `blocked`, the network thread becomes
// the holder later, and the same holds.
//
// No writability is lost: the socket is registered with the reactor edge-triggered once, so that a
// full socket costs no system call beyond the one that found it full. The kernel reports an edge
// after a send that it refused. If that edge comes before the holder has stored `blocked`, the
// network thread finds `held` and leaves held_writable there, on which the holder's CAS held →
// blocked fails, and it sends again.
//
// When the connection breaks (`broken`), the right becomes `parked` as soon as its holder notices, and nobody gets it
// until the link has another connection or is destroyed:
//
//   running ──► broken ──► running            mend: give_up_connection, then take_connection
//      └───────────┴─────► stopped
//
// Everything that was committed and not read lies in the rings still. So the new connection begins with a RESUME of each
// incoming ring in both directions (wire/data_message.h), and each side sends on from what the other names.
//
// While the right is held, or blocked, what it covers (batch_, sent_, the taking side of the
// pending rings) belongs to the holder; the CAS free → held or blocked → held (acquire) sees what
// the store of free or blocked (release) published.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>

#include "base/fixed_array.h"
#include "transport/mending_tally.h"
#include "transport/messaged_channel.h"
#include "transport/tcp/kernel_watch.h"
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
  TcpIncoming(TcpLink& link, uint32_t ring, std::byte* base, uint32_t ring_bytes, WorkerEnd worker,
              uint32_t ready_ring);

 private:
  friend class TcpLink;
  void on_invalid(const char* why) override;

  TcpLink& link_;
  std::byte* const base_;
};

/// Threads: outgoing and incoming ends as in transport.h; start and destruction: network thread, or
/// when that does not run. Owns: the socket and the memory of the rings.
class TcpLink final : public DataLink, public MessagedChannel {
 public:
  /// What a link takes beside its rings and its connection.
  static uint64_t bytes(const ring::Layout& outgoing, const ring::Layout& incoming) noexcept;

  /// Takes over a connected non-blocking socket, encrypted by `tls` or by nothing (null).
  TcpLink(LinkContext& context, std::shared_ptr<TcpReceiver> receiver,
          std::shared_ptr<DeferredSends> deferred, int fd, std::shared_ptr<tls::Stream> tls,
          RingRegion outgoing, RingRegion incoming);
  ~TcpLink() override;
  TcpLink(const TcpLink&) = delete;
  TcpLink& operator=(const TcpLink&) = delete;

  /// Registers the socket with the reactor. Errors: system_error.
  Status start();

  const Capabilities& capabilities() const override { return kTcpCapabilities; }
  Outgoing& outgoing(uint32_t ring) override { return outgoing_[ring]; }
  Incoming& incoming(uint32_t ring) override { return incoming_[ring]; }

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

  enum Right : uint32_t { kFree, kHeld, kHeldWritable, kBlocked, kParked };
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

  // What is on its way into the kernel: messages and the pieces of memory that make them up.
  struct Batch {
    static constexpr uint32_t kMostMessages = 128;
    static constexpr uint32_t kPiecesPerMessage = 3;  // header and a ring's bytes, wrapped at worst

    // A link with few rings has few messages at a time: two of each, as a ring may be marked again meanwhile.
    static uint32_t limit_of(uint32_t rings) { return std::min(2 * rings, kMostMessages); }
    explicit Batch(uint32_t rings)
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

    uint32_t read_limit() const { return message_limit / 2; }
    bool empty() const { return first_piece == piece_count; }
    void clear() { message_count = piece_count = first_piece = 0; }
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
  bool give_to_network_thread();
  void park() noexcept { right_.store(kParked, std::memory_order_seq_cst); }
  void on_writable();
  void send_later();
  void gather();
  void gather_resumes();
  void gather_sign();

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
  void publish(TcpIncoming& ring);

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
  std::optional<TcpStream>
      stream_;  // changed under the mutex by who has both rights; none: given up
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
  alignas(64) std::atomic<uint32_t> right_{kFree};
  std::atomic<bool> sign_due_{false};  // before due_ is set, and taken after that is

  // The right's holder's.
  alignas(64) Batch batch_;

  // The reading right's holder's.
  // Received and not yet understood: between two turns of reading the beginning of a message, within one all of it, in
  // the receiver's staging.
  alignas(64) std::array<std::byte, sizeof(wire::DataMessage)> begun_;
  size_t staged_ = 0;                 // bytes of it
  TcpIncoming* filling_ = nullptr;    // the ring whose payload is being received
  wire::Position fill_position_ = 0;  // where the next byte of it goes
  size_t fill_left_ = 0;              // bytes of it still to come; 0: between messages
  uint64_t received_bytes_ = 0;
  MendingTally tally_;

  // The network thread's.
  bool registered_ = false;
  uint64_t seen_bytes_ = 0;  // of received_bytes_
  KernelWatch kernel_watch_;
};

}  // namespace faro::transport::tcp
