// SimStream: one end of a simulated control connection.
//
// A message leaves this process a while after send, in order, and arrives at the other end a while
// after that. What was queued before the handle was destroyed still leaves, then the other end sees
// the connection closed; what had not left when the whole network was destroyed (a process that
// died) is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lab/simulation/transport/sim_faults.h"
#include "lab/simulation/transport/sim_world.h"
#include "links/network.h"

namespace faro::sim {

class SimNetwork;

/// Threads: its world's. Kept by its handle and by events under way; its network knows it weakly.
class SimStream : public std::enable_shared_from_this<SimStream> {
 public:
  using Handler = links::ControlConnection::Handler;
  /// A peer that leaves so much untaken is as good as lost (as with sockets).
  static constexpr size_t kUntakenLimit = size_t{4} << 20;

  SimStream(SimNetwork& network, uint32_t peer_node, std::string peer_address);

  static void join(const std::shared_ptr<SimStream>& a, const std::shared_ptr<SimStream>& b) {
    a->peer_ = b;
    b->peer_ = a;
  }

  void set_handler(Handler* handler);
  void send(std::span<const std::byte> message);
  bool flushed() const { return queued_count_ == 0; }
  /// The handle is gone and not everything has left.
  bool lingering() const { return detached_ && !flushed(); }
  const std::string& peer_address() const { return peer_address_; }
  /// The handle is gone.
  void detach();
  /// The network is gone.
  void cut();
  /// The connection breaks: what has not left is lost. This end sees that at once, the other when that arrives.
  void break_off();

  /// Whether deliver would do anything.
  bool has_news() const {
    return handler_ != nullptr && !told_ && (!arrived_.empty() || !failure_.ok());
  }
  /// Hands at most that many messages to the handler, then the end if it has come.
  void deliver(uint64_t most);

 private:
  using Message = std::vector<std::byte>;

  void leave(Message message);
  void arrive(Message message);
  void arrive_end(const char* cause);
  void send_end(const char* cause);
  void lose_what_is_queued();
  void wake_network();
  Nanoseconds next_arrival();
  void make_hostile(Message& message);

  World& world_;
  SimFaults& faults_;
  SimNetwork* network_;  // null once it is gone
  const uint32_t node_;
  const uint32_t peer_node_;
  const std::string peer_address_;
  std::weak_ptr<SimStream> peer_;
  Handler* handler_ = nullptr;
  bool detached_ = false;
  bool told_ = false;  // on_closed was called

  // Outgoing.
  uint64_t queued_count_ = 0;   // messages that have not left
  bool lost_ = false;           // what has not left never does
  uint64_t untaken_bytes_ = 0;  // sent and not yet taken by the peer's handler
  Nanoseconds last_departure_ = 0;
  Nanoseconds last_arrival_ = 0;

  // Incoming.
  std::deque<Message> arrived_;
  Status failure_;  // the end, told after what arrived before it
};

/// What the session holds.
class SimConnection final : public links::ControlConnection {
 public:
  explicit SimConnection(std::shared_ptr<SimStream> stream) : stream_(std::move(stream)) {}
  ~SimConnection() override { stream_->detach(); }
  void set_handler(Handler* handler) override { stream_->set_handler(handler); }
  void send(std::span<const std::byte> message) override { stream_->send(message); }
  bool flushed() const override { return stream_->flushed(); }
  const std::string& peer_address() const override { return stream_->peer_address(); }

 private:
  const std::shared_ptr<SimStream> stream_;
};

}  // namespace faro::sim
