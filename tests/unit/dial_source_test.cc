// From which address a node dials, that at which it listens; and at which it is reached.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "base/settings.h"
#include "links/socket_network.h"
#include "support/expect.h"
#include "transport/tcp/socket_address.h"

namespace faro::links {
namespace {

struct Callers final : Network::Acceptor {
  void on_connection(std::unique_ptr<ControlConnection> connection) override {
    from = connection->peer_address();
  }
  void on_data_stream(const StreamToken&, transport::DataStream) override {}
  std::string from;
};

std::unique_ptr<SocketNetwork> network_at(const std::string& address) {
  base::Settings settings;
  settings.tls = "off";
  auto network = SocketNetwork::create(settings, address);
  EXPECT_TRUE(test::is_ok(network));
  return network.ok() ? std::move(*network) : nullptr;
}

/// Where the caller at `own` seems to come from.
std::string seen_from(const std::string& own) {
  const auto called = network_at("127.0.0.2:0");
  const auto calling = network_at(own);
  if (called == nullptr || calling == nullptr) return "nowhere";
  Callers callers;
  called->set_acceptor(&callers);
  std::unique_ptr<ControlConnection> connection;
  Status failed;
  calling->connect(called->local_address(), [&](Result<std::unique_ptr<ControlConnection>> made) {
    if (made.ok()) {
      connection = std::move(*made);
    } else {
      failed = made.status();
    }
  });
  for (int round = 0; round < 10'000 && callers.from.empty() && failed.ok(); ++round) {
    calling->run_once(0);
    called->run_once(0);
  }
  called->set_acceptor(nullptr);
  if (!failed.ok()) return failed.to_string();
  return callers.from.substr(0, callers.from.find(':'));
}

TEST(DialSource, a_node_dials_from_the_address_at_which_it_listens) {
  EXPECT_EQ(seen_from("127.0.0.3:0"), "127.0.0.3");
}

TEST(DialSource, a_node_that_listens_everywhere_lets_the_system_choose) {
  EXPECT_EQ(seen_from("0.0.0.0:0"), "127.0.0.1");
}

TEST(SocketNetwork, tells_peers_the_address_that_its_owner_gives_with_the_port_that_it_listens_on) {
  const auto port_of = [](const std::string& address) {
    return address.substr(address.rfind(':'));
  };
  base::Settings settings;
  settings.tls = "off";
  auto listener = test::value_of(ListeningSocket::bind("127.0.0.1:0"));
  const std::string port = port_of(listener.address());
  const auto given =
      test::value_of(SocketNetwork::create(settings, std::move(listener), "faro.example:0"));
  EXPECT_EQ(given->local_address(), "faro.example" + port);

  settings.listen = "127.0.0.2:0";
  const auto mapped = test::value_of(SocketNetwork::create(settings, "faro.example:7000"));
  EXPECT_EQ(mapped->local_address(), "faro.example:7000");
  EXPECT_EQ(transport::tcp::to_string(*mapped->source()), "127.0.0.2:0");
}

}  // namespace
}  // namespace faro::links
