// How the two ends of a simulated link find each other: each tells the other the key of its port.
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "lab/simulation/transport/sim_transport.h"
#include "transport/standing_rings.h"

namespace faro::sim {
namespace {

// The one message of the set-up. Its layouts are the sender's: outgoing is what the receiver calls
// incoming.
struct PortMessage {
  uint64_t magic;
  uint64_t key;
  ring::Layout outgoing;
  ring::Layout incoming;
};
constexpr uint64_t kMagic = 0x315f6d69735f6f66;
static_assert(std::is_trivially_copyable_v<PortMessage>);

bool same(const ring::Layout& a, const ring::Layout& b) {
  return a.sender_workers == b.sender_workers && a.receiver_ends == b.receiver_ends &&
         a.rings_per_lane == b.rings_per_lane && a.ring_bytes == b.ring_bytes;
}

class SimSetup final : public transport::LinkSetup {
 public:
  SimSetup(SimFabric& fabric, uint32_t node, transport::LinkContext& context,
           std::shared_ptr<SimTurns> turns)
      : fabric_(fabric), node_(node), context_(context), turns_(std::move(turns)) {}
  ~SimSetup() override {
    if (key_ != 0) fabric_.remove(key_);
    if (port_ != nullptr) port_->stop();  // not taken
  }

  Status start() override {
    if (fabric_.faults().refuses_registration(node_)) {
      return Status(
          Code::resource_limit,
          fmt::format("node {}: {} bytes of rings cannot be registered", node_,
                      context_.outgoing.region_bytes() + context_.incoming.region_bytes()));
    }
    port_ = std::make_shared<SimPort>(fabric_.world(), fabric_.faults(), node_, context_, turns_);
    key_ = fabric_.add(port_);
    const PortMessage message{kMagic, key_, context_.outgoing, context_.incoming};
    context_.send(std::as_bytes(std::span(&message, 1)));
    return Status::Ok();
  }

  Status on_message(std::span<const std::byte> bytes) override {
    PortMessage message;
    if (bytes.size() != sizeof message) {
      return protocol_error(
          fmt::format("a set-up message of {} bytes, not {}", bytes.size(), sizeof message));
    }
    std::memcpy(&message, bytes.data(), sizeof message);
    if (message.magic != kMagic) return protocol_error("a set-up message that is none");
    if (port_ == nullptr) return protocol_error("a set-up message before the start");
    if (peer_ != nullptr) return protocol_error("a second set-up message");
    if (!same(message.outgoing, context_.incoming) || !same(message.incoming, context_.outgoing)) {
      return protocol_error("rings of another shape than ours");
    }
    std::shared_ptr<SimPort> peer = fabric_.find(message.key);
    // Its end has given up since: the control connection says why.
    if (peer == nullptr && fabric_.has_given_out(message.key)) return Status::Ok();
    if (peer == nullptr || peer == port_) return protocol_error("an unknown port");
    // The peer's memory is as announced, not only its message.
    if (!same(peer->outgoing(), context_.incoming) || !same(peer->incoming(), context_.outgoing)) {
      return protocol_error("a port of another shape than announced");
    }
    port_->attach(peer);
    peer_ = std::move(peer);
    return Status::Ok();
  }

  Status on_stream(transport::DataStream stream) override {
    if (stream.fd >= 0) close(stream.fd);
    return protocol_error("a data connection, which this transport does not use");
  }

  Status status() const override { return Status::Ok(); }
  bool ready() const override { return peer_ != nullptr; }
  std::unique_ptr<transport::DataLink> take() override { return make_sim_link(std::move(port_)); }

 private:
  Status protocol_error(std::string what) const {
    return Status(Code::protocol_error, fmt::format("{} sent {}", context_.peer_name, what));
  }

  SimFabric& fabric_;
  const uint32_t node_;
  transport::LinkContext& context_;
  const std::shared_ptr<SimTurns> turns_;
  std::shared_ptr<SimPort> port_;
  std::shared_ptr<SimPort>
      peer_;  // until both links are up: a peer that gives up is then seen as closed
  uint64_t key_ = 0;
};

// Both ends are in one world: each looks at how far the other is. So there is nothing to be told.
class SimMending final : public transport::LinkMending {
 public:
  explicit SimMending(SimPort& port) : port_(port) { port_.give_up_connection(); }

  Status start() override { return Status::Ok(); }
  Status on_message(std::span<const std::byte>) override {
    return {Code::protocol_error, "a set-up message for a link that is mended"};
  }
  Status on_stream(transport::DataStream stream) override {
    if (stream.fd >= 0) close(stream.fd);
    return {Code::protocol_error, "a data connection, which this transport does not use"};
  }
  Status status() const override { return Status::Ok(); }
  bool ready() const override { return true; }
  Status finish() override { return port_.take_connection(); }

 private:
  SimPort& port_;
};

}  // namespace

std::unique_ptr<transport::LinkMending> SimTransport::mend(transport::LinkContext&,
                                                           transport::DataLink& link) {
  if (fabric_.world().knobs().rings_stand) return std::make_unique<transport::StandingRings>();
  return std::make_unique<SimMending>(port_of(link));
}

std::unique_ptr<transport::LinkSetup> SimTransport::begin(transport::LinkContext& context) {
  return std::make_unique<SimSetup>(fabric_, node_, context, turns_);
}

}  // namespace faro::sim
