// Control connections of a simulated cluster.
#include "lab/simulation/links/sim_network.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/seeds.h"
#include "support/expect.h"

namespace faro::sim {
namespace {

using links::ControlConnection;
using test::for_each_seed;

constexpr std::array<const char*, 3> kAddresses = {"node0:7000", "node1:7000", "node2:0"};

// One end as a session would use it: remembers everything.
struct End : ControlConnection::Handler {
  explicit End(std::unique_ptr<ControlConnection> c) : connection(std::move(c)) {
    connection->set_handler(this);
  }
  void on_message(std::span<const std::byte> message) override {
    EXPECT_FALSE(closed.has_value()) << "a message after the end";
    uint32_t value;
    ASSERT_EQ(message.size(), sizeof value);
    std::memcpy(&value, message.data(), sizeof value);
    received.push_back(value);
    if (received.size() == destroy_at) connection.reset();
  }
  void on_closed(const Status& cause) override {
    EXPECT_FALSE(closed.has_value()) << "told twice";
    closed = cause;
  }
  void send(uint32_t value) { connection->send(std::as_bytes(std::span(&value, 1))); }

  std::unique_ptr<ControlConnection> connection;
  std::vector<uint32_t> received;
  std::optional<Status> closed;
  size_t destroy_at = 0;
};

struct Node : links::Network::Acceptor {
  Node(SimInternet& internet, uint32_t number)
      : network(SimNetwork::create(internet, number, kAddresses[number], "host").value()) {
    network->set_acceptor(this);
  }
  void on_connection(std::unique_ptr<ControlConnection> connection) override {
    accepted = std::make_unique<End>(std::move(connection));
  }
  void on_data_stream(const links::StreamToken&, transport::DataStream) override {
    ADD_FAILURE() << "there are no descriptors";
  }
  void dial(const std::string& address) {
    network->connect(address, [this](Result<std::unique_ptr<ControlConnection>> result) {
      if (result.ok()) {
        dialled = std::make_unique<End>(std::move(*result));
      } else {
        refused = result.status();
      }
    });
  }
  /// Rounds of the network thread, in a fiber, until `done`.
  void run_until(const std::function<bool()>& done) {
    while (!done()) network->run_once(base::kForever);
  }

  std::unique_ptr<SimNetwork> network;
  std::unique_ptr<End> accepted;
  std::unique_ptr<End> dialled;
  std::optional<Status> refused;
};

class SimNetworks {
 public:
  explicit SimNetworks(uint64_t seed)
      : world(seed), internet(world), a(internet, 0), b(internet, 1) {}

  /// Runs `at_a` and `at_b` in fibers, connected: a.dialled to b.accepted.
  void run(const std::function<void()>& at_a, const std::function<void()>& at_b) {
    world.spawn("a", [&] {
      a.dial("node1:7000");
      a.run_until([&] { return a.dialled != nullptr; });
      at_a();
    });
    world.spawn("b", [&] {
      b.run_until([&] { return b.accepted != nullptr; });
      at_b();
    });
    const Status status = world.run();
    EXPECT_TRUE(status.ok()) << world.report();
  }

  World world;
  SimInternet internet;
  Node a;
  Node b;
};

TEST(SimNetwork, messages_arrive_once_whole_and_in_order) {
  for_each_seed(100, [](uint64_t seed) {
    SimNetworks nets(seed);
    constexpr uint32_t kCount = 50;
    std::vector<uint32_t> expected(kCount);
    for (uint32_t i = 0; i < kCount; ++i) expected[i] = i;
    const auto exchange = [&](Node& node, std::unique_ptr<End>& end) {
      for (uint32_t i = 0; i < kCount; ++i) {
        end->send(i);
        if (nets.world.random().one_in(4)) nets.world.yield();
      }
      node.run_until([&] { return end->received.size() == kCount && end->connection->flushed(); });
      EXPECT_EQ(end->received, expected);
      EXPECT_FALSE(end->closed.has_value());
    };
    nets.run([&] { exchange(nets.a, nets.a.dialled); }, [&] { exchange(nets.b, nets.b.accepted); });
  });
}

TEST(SimNetwork, what_was_sent_before_closing_arrives_before_the_end) {
  for_each_seed(100, [](uint64_t seed) {
    SimNetworks nets(seed);
    nets.run(
        [&] {
          for (uint32_t i = 0; i < 5; ++i) nets.a.dialled->send(i);
          nets.a.dialled.reset();
        },
        [&] {
          nets.b.run_until([&] { return nets.b.accepted->closed.has_value(); });
          EXPECT_EQ(nets.b.accepted->received.size(), 5u);
          EXPECT_EQ(nets.b.accepted->closed->code(), Code::peer_lost);
        });
  });
}

TEST(SimNetwork, a_process_that_dies_takes_along_what_had_not_left) {
  std::set<size_t> counts;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SimNetworks nets(seed);
    nets.run(
        [&] {
          for (uint32_t i = 0; i < 5; ++i) nets.a.dialled->send(i);
          const base::Nanoseconds death = nets.world.now() + nets.world.random().below(300'000);
          nets.world.wait_until([] { return false; }, death, "its death");
          nets.a.network.reset();
        },
        [&] {
          nets.b.run_until([&] { return nets.b.accepted->closed.has_value(); });
          const std::vector<uint32_t>& received = nets.b.accepted->received;
          for (uint32_t i = 0; i < received.size(); ++i) EXPECT_EQ(received[i], i);
          counts.insert(received.size());
        });
  }
  EXPECT_GT(counts.size(), 3u) << "cut at different places";
}

TEST(SimNetwork, a_connection_that_is_cut_has_brought_what_came_before_and_ends_for_both) {
  for_each_seed(100, [](uint64_t seed) {
    SimNetworks nets(seed);
    const auto deliveries = static_cast<uint32_t>(seed % 5);
    nets.internet.fabric().faults().cut(0, 1, SimFaults::Wire::control, deliveries);
    nets.run(
        [&] {
          for (uint32_t i = 0; i < 5; ++i) nets.a.dialled->send(i);
          nets.a.run_until([&] { return nets.a.dialled->closed.has_value(); });
        },
        [&] {
          nets.b.run_until([&] { return nets.b.accepted->closed.has_value(); });
          EXPECT_EQ(nets.b.accepted->received.size(), deliveries);
        });
  });
}

TEST(SimNetwork, nodes_that_are_kept_apart_cannot_connect_and_are_not_refused) {
  SimNetworks nets(1);
  nets.internet.fabric().faults().separate(0, 1, base::kForever);
  nets.world.spawn("a", [&] {
    nets.a.dial("node1:7000");
    nets.a.run_until([&] { return nets.a.refused.has_value(); });
  });
  ASSERT_TRUE(nets.world.run().ok()) << nets.world.report();
  EXPECT_EQ(nets.a.refused->code(), Code::connect_failed);
}

TEST(SimNetwork, a_handler_may_destroy_its_connection) {
  for_each_seed(50, [](uint64_t seed) {
    SimNetworks nets(seed);
    nets.run(
        [&] {
          for (uint32_t i = 0; i < 10; ++i) nets.a.dialled->send(i);
          nets.a.run_until([&] { return nets.a.dialled->closed.has_value(); });
        },
        [&] {
          nets.b.accepted->destroy_at = 3;
          nets.b.run_until([&] { return nets.b.accepted->connection == nullptr; });
          EXPECT_EQ(nets.b.accepted->received.size(), 3u);
        });
  });
}

TEST(SimNetwork, a_peer_that_takes_nothing_ends_the_connection) {
  SimNetworks nets(1);
  bool ended = false;
  nets.run(
      [&] {
        const std::vector<std::byte> large(4096);
        for (size_t sent = 0; sent <= SimStream::kUntakenLimit; sent += large.size()) {
          nets.a.dialled->connection->send(large);
        }
        nets.a.run_until([&] { return nets.a.dialled->closed.has_value(); });
        ended = true;
      },
      [&] { nets.world.wait_until([&] { return ended; }, base::kForever, "nothing"); });
}

TEST(SimNetwork, dialling_where_nobody_listens_is_refused) {
  World world(1);
  SimInternet internet(world);
  Node a(internet, 0);
  world.spawn("a", [&] {
    a.dial("node1:7000");
    a.run_until([&] { return a.refused.has_value(); });
    EXPECT_EQ(a.refused->code(), Code::peer_lost);
    test::expect_contains(a.refused->to_string(), "node1:7000");
  });
  EXPECT_TRUE(world.run().ok()) << world.report();
}

TEST(SimNetwork, an_address_is_taken_once_and_port_0_is_chosen) {
  World world(1);
  SimInternet internet(world);
  Node a(internet, 0);
  EXPECT_EQ(SimNetwork::create(internet, 0, kAddresses[0], "host").status().code(),
            Code::address_in_use);
  Node c(internet, 2);
  EXPECT_NE(c.network->local_address(), "node2:0");
  EXPECT_EQ(internet.find(c.network->local_address()), c.network.get());
}

TEST(SimNetwork, deferred_tasks_and_wake_end_a_waiting_round) {
  World world(1);
  SimInternet internet(world);
  Node a(internet, 0);
  bool ran = false;
  int rounds = 0;
  world.spawn("network thread", [&] {
    while (!ran) {
      a.network->run_once(base::kForever);
      ++rounds;
    }
    EXPECT_FALSE(a.network->run_once(world.now() + 1'000'000)) << "nothing until the deadline";
  });
  world.spawn("worker", [&] {
    world.yield();
    a.network->wake();
    world.wait_until([&] { return rounds > 0; }, base::kForever, "a round");
    a.network->reactor().defer([&] { ran = true; });
  });
  EXPECT_TRUE(world.run().ok()) << world.report();
  EXPECT_GE(rounds, 2);
}

}  // namespace
}  // namespace faro::sim
