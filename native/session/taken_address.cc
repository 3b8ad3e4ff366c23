#include "session/taken_address.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/unique_fd.h"
#include "links/handshake.h"
#include "links/socket_network.h"
#include "session/cluster_identity.h"
#include "session/topology.h"

namespace faro::session {
namespace {

// A Faro node answers at once, unless it is clearing its rings.
constexpr base::Nanoseconds kAnswerTime = 2'000'000'000;

/// The dialling side of a handshake with this node's own number, which ends in a refusal.
class Question final : private links::Handshake::Owner {
 public:
  Question(const ClusterIdentity& identity, links::Network& network)
      : identity_(identity), network_(network) {}

  /// Why the other process refuses this node; Ok if it does not answer in time.
  Status ask(const std::string& address) {
    network_.connect(address, [this](Result<std::unique_ptr<links::ControlConnection>> connection) {
      if (!connection.ok()) return answer(connection.status());
      handshake_ = std::make_unique<links::Handshake>(static_cast<links::Handshake::Owner&>(*this),
                                                      identity_, std::move(connection.value()),
                                                      identity_.hello.head.node);
      handshake_->start();
    });
    const base::Clock& clock = network_.reactor().clock();
    const base::Nanoseconds deadline = base::deadline_after(clock.now_ns(), kAnswerTime);
    while (!answer_ && clock.now_ns() < deadline) network_.run_once(deadline);
    return answer_.value_or(Status::Ok());
  }

 private:
  void answer(const Status& status) { answer_ = status; }

  // Handshake::Owner
  bool draw_random(std::span<std::byte> bytes) override { return network_.draw_random(bytes); }
  std::optional<links::Refusal> judge(const wire::Hello&, const std::string&) override {
    return {};
  }
  void on_admitted(links::Handshake&, std::unique_ptr<links::ControlConnection>,
                   const wire::Hello&) override {
    answer(Status::Ok());  // nodes with the same number are never linked
  }
  void on_refused(links::Handshake&, const links::Refusal& refusal) override {
    answer(refusal.status);
  }

  const ClusterIdentity& identity_;
  links::Network& network_;
  std::unique_ptr<links::Handshake> handshake_;
  std::optional<Status> answer_;
};

}  // namespace

Status ask_who_listens(const base::Settings& settings, const Status& taken) {
  const std::string& address = own_address(settings);
  auto network = links::SocketNetwork::create(
      settings, links::ListeningSocket::adopt(base::UniqueFd(), address), address);
  if (!network.ok()) return taken;
  ClusterIdentity identity;
  identity.name = fmt::format("node {} ({})", settings.node, address);
  identity.hello = hello_of(settings);
  identity.hello.address = address;
  auto secret = links::load_secret(settings);
  if (!secret.ok()) return taken;
  identity.secret = std::move(*secret);
  if (!(*network)->draw_random(std::as_writable_bytes(std::span(&identity.hello.incarnation, 1)))) {
    return taken;
  }
  const Status answer = Question(identity, **network).ask(address);
  if (answer.code() != Code::configuration_mismatch) return taken;
  return base::error(taken.code(), "{}: {}", taken.message(), answer.message());
}

}  // namespace faro::session
