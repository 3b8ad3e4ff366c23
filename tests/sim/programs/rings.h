// The rings between two nodes of a World: mirrored rings, as every transport has them. What a
// sender commits is shown to a watcher.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "ring/layout.h"
#include "sim/programs/world.h"
#include "transport/transport.h"
#include "wire/frame.h"

namespace faro::programs {

using wire::Position;

/// Sees every frame that is committed.
class RingWatcher {
 public:
  virtual ~RingWatcher() = default;
  /// From `from` on; `frame` with its header and without the padding behind it.
  virtual void on_frame(const Port& by, uint32_t ring, Position from,
                        std::span<const std::byte> frame) = 0;
};

/// One end of a link: the rings that leave a node, and those that reach it. Owned by its LinkSetup,
/// then by its DataLink.
class Port : public std::enable_shared_from_this<Port> {
 public:
  Port(World& world, uint32_t node, transport::LinkContext& context);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  uint32_t node() const noexcept { return node_; }
  uint32_t peer_node() const noexcept { return context_.peer_node; }
  const ring::Layout& outgoing() const noexcept { return outgoing_; }
  const ring::Layout& incoming() const noexcept { return incoming_; }
  std::byte* outgoing_base(uint32_t ring) { return base_of(outgoing_memory_, outgoing_, ring); }
  std::byte* incoming_base(uint32_t ring) { return base_of(incoming_memory_, incoming_, ring); }
  const std::atomic<Position>* peer_read(uint32_t ring) { return &sending_[ring].peer_read; }
  const std::atomic<Position>* written(uint32_t ring) { return &receiving_[ring].written; }
  World& world() noexcept { return world_; }

  void attach(const std::shared_ptr<Port>& peer) { peer_ = peer; }
  /// The data link, which the program may hold.
  void set_link(transport::DataLink* link) noexcept { link_ = link; }
  transport::DataLink* link() noexcept { return link_; }
  void stop() noexcept { stopped_ = true; }
  /// The process has died: nothing leaves or arrives.
  void die();
  void fail(const Status& cause);

  // --- what the sender does

  void committed(uint32_t ring, Position from, uint32_t length);
  void post(uint32_t ring, Position to);
  void post_soon(uint32_t ring, Position to);
  void asks_for_room(uint32_t ring, bool wants) { sending_[ring].asks_for_room = wants; }
  /// What post_soon has left for later.
  void flush();

  /// Up to where bytes may arrive, and up to where they may once somebody flushes.
  Position posted(uint32_t ring) const { return sending_[ring].posted; }
  Position posted_soon(uint32_t ring) const { return sending_[ring].soon; }
  bool room_is_asked_for(uint32_t ring) const { return sending_[ring].asks_for_room; }

  // --- what the receiver does

  void tell_read(uint32_t ring, Position read);

  // --- what the program makes happen

  /// At most that many of the frames that were posted arrive. Returns whether any did.
  bool deliver(uint32_t ring, uint32_t frames);
  /// The read position of the peer arrives. Returns whether it had moved.
  bool deliver_read(uint32_t ring);
  void deliver_all();
  /// The data connection breaks: nothing arrives before the link is mended. Rings that are shared
  /// stand.
  void cut();
  void give_up_connection();
  Status take_connection();

 private:
  enum class Connection : uint8_t { stands, broken, waits_for_peer };
  struct Sending {
    std::atomic<Position> peer_read{0};
    Position posted = 0;
    Position soon = 0;
    bool asks_for_room = false;
    std::deque<Position> ends;  // of the frames that have not arrived
  };
  struct Receiving {
    std::atomic<Position> written{0};
    Position released = 0;
  };
  // Zeros, until a frame is written there.
  struct alignas(wire::kFrameAlignment) Line {
    std::byte bytes[wire::kFrameAlignment];
  };
  using Memory = std::vector<Line>;
  static std::byte* base_of(Memory& memory, const ring::Layout& layout, uint32_t ring) {
    return reinterpret_cast<std::byte*>(memory.data()) + layout.base_offset(ring);
  }

  bool carries(const std::shared_ptr<Port>& peer) const;
  bool is_dark(uint32_t from, uint32_t to) const;
  void break_connection();
  void go_on() { failed_ = false; }

  World& world_;
  const uint32_t node_;
  transport::LinkContext& context_;
  const ring::Layout outgoing_;
  const ring::Layout incoming_;
  Memory outgoing_memory_;
  Memory incoming_memory_;
  std::vector<Sending> sending_;
  std::vector<Receiving> receiving_;
  std::weak_ptr<Port> peer_;
  transport::DataLink* link_ = nullptr;
  bool stopped_ = false;
  bool failed_ = false;
  Connection connection_ = Connection::stands;
};

/// The transport of one node.
std::unique_ptr<transport::Transport> make_transport(World& world, uint32_t node);

}  // namespace faro::programs
