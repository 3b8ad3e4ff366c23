// From which address a node dials: that at which it listens.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/settings.h"
#include "links/socket_network.h"
#include "support/expect.h"

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
  settings.node = 0;
  settings.node_addresses = {address};
  settings.tls = "off";
  auto network = SocketNetwork::create(settings);
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

}  // namespace
}  // namespace faro::links
