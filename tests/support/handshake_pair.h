// HandshakePair: two ends of a handshake without sockets; the test delivers by hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "links/handshake.h"
#include "session/cluster_identity.h"

namespace faro::test {

/// Keeps what is sent; the test delivers by hand.
struct HandWire {
  links::ControlConnection::Handler* handler = nullptr;
  std::deque<wire::ControlMessage> sent;   // and not taken yet
  std::vector<wire::ControlMessage> said;  // all that was ever sent
  bool closed = false;
  std::optional<std::string> certificate;  // the host that the peer's is for; none: without TLS
};

class HandConnection final : public links::ControlConnection {
 public:
  explicit HandConnection(std::shared_ptr<HandWire> wire) : wire_(std::move(wire)) {}
  ~HandConnection() override {
    wire_->closed = true;
    wire_->handler = nullptr;
  }
  void set_handler(Handler* handler) override { wire_->handler = handler; }
  void send(std::span<const std::byte> message) override {
    wire_->sent.emplace_back(message.begin(), message.end());
    wire_->said.push_back(wire_->sent.back());
  }
  bool flushed() const override { return true; }
  const std::string& peer_address() const override { return address_; }
  Status check_peer(const std::string& host) const override {
    if (!wire_->certificate || *wire_->certificate == host) return Status::Ok();
    return Status(Code::authentication_failed, "its certificate is not for " + host);
  }

 private:
  std::shared_ptr<HandWire> wire_;
  const std::string address_ = "10.9.9.9:4242";
};

/// One node's part; remembers how it ended.
struct HandshakeSide final : links::Handshake::Owner {
  HandshakeSide(uint32_t node, std::optional<uint32_t> dialled) {
    identity.name = "node " + std::to_string(node) + " (h" + std::to_string(node) + ":7000)";
    identity.host_of_node = [](uint32_t number) { return "h" + std::to_string(number); };
    identity.hello.head.node = node;
    identity.hello.head.cluster_hash = 77;
    identity.hello.node_count = 3;
    identity.hello.incarnation = 1000 + node;
    identity.hello.cluster_id = "faro";
    identity.hello.address = "h" + std::to_string(node) + ":7000";
    identity.hello.transports = {"tcp"};
    identity.hello.settings = "ring.bytes=65536\n";
    dialled_node = dialled;
    drawn = static_cast<uint8_t>(node << 6);
  }
  void begin() {
    handshake = std::make_unique<links::Handshake>(
        *this, identity, std::make_unique<HandConnection>(wire), dialled_node);
    handshake->start();
  }
  /// What it has said and was not delivered yet, one message at a time.
  wire::ControlMessage take_sent() {
    wire::ControlMessage message = std::move(wire->sent.front());
    wire->sent.pop_front();
    return message;
  }
  /// Not random, but different at each side and each time.
  bool draw_random(std::span<std::byte> bytes) override {
    for (std::byte& each : bytes) each = static_cast<std::byte>(++drawn);
    return true;
  }
  std::optional<links::Refusal> judge(const wire::Hello&, const std::string&) override {
    return judgement;
  }
  void on_admitted(links::Handshake&, std::unique_ptr<links::ControlConnection> connection,
                   const wire::Hello& peer) override {
    admitted = peer.head.node;
    kept = std::move(connection);
  }
  void on_refused(links::Handshake&, const links::Refusal& refusal) override { refused = refusal; }

  session::ClusterIdentity identity;
  std::optional<uint32_t> dialled_node;
  uint8_t drawn = 0;  // the last byte of it
  std::shared_ptr<HandWire> wire = std::make_shared<HandWire>();
  std::unique_ptr<links::Handshake> handshake;
  std::optional<links::Refusal> judgement;
  std::optional<uint32_t> admitted;
  std::optional<links::Refusal> refused;
  std::unique_ptr<links::ControlConnection> kept;
};

/// Delivers until nothing is under way.
inline void exchange(HandshakeSide& a, HandshakeSide& b) {
  for (bool moved = true; moved;) {
    moved = false;
    for (auto [from, to] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
      while (!from->wire->sent.empty() && to->wire->handler != nullptr) {
        to->wire->handler->on_message(from->take_sent());
        moved = true;
      }
    }
  }
}

/// Node 2 dials node 1.
struct HandshakePair {
  HandshakeSide dialling{2, 1};
  HandshakeSide accepting{1, std::nullopt};
  void begin() {
    accepting.begin();
    dialling.begin();
  }
  void run() {
    begin();
    exchange(dialling, accepting);
  }
};

}  // namespace faro::test
