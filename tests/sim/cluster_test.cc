// The session layer over a simulated network: clusters that come up, talk, carry rows and close.
#include "sim/cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "node/session_access.h"
#include "sim/seeds.h"
#include "sim/sim_pair.h"
#include "support/expect.h"
#include "support/secret_file.h"

namespace faro::test {
namespace {

ClusterShape random_shape(sim::Random& random) {
  ClusterShape shape;
  shape.workers_per_node.resize(random.between(2, 6));
  for (uint32_t& workers : shape.workers_per_node)
    workers = static_cast<uint32_t>(random.between(1, 4));
  const uint64_t ring_bytes = uint64_t{4096} << random.below(4);
  shape.configure = [ring_bytes](Config& config, uint32_t) {
    EXPECT_TRUE(config.set("ring.bytes", ring_bytes).ok());
    EXPECT_TRUE(config.set("transfer.threshold_bytes", ring_bytes / 4).ok());
  };
  return shape;
}

uint64_t open_and_close(uint64_t seed) {
  sim::Random random(seed);
  SimCluster cluster(seed, random_shape(random));
  const Status opened = cluster.open();
  EXPECT_TRUE(opened.ok()) << opened.to_string() << '\n' << cluster.world().report();
  if (!opened.ok()) return 0;
  for (uint32_t node = 0; node < cluster.node_count(); ++node) {
    for (uint32_t peer = 0; peer < cluster.node_count(); ++peer) {
      EXPECT_TRUE(cluster.membership(node).connected(peer)) << node << " to " << peer;
      EXPECT_EQ(cluster.membership(node).nodes()[peer].worker_count,
                cluster.settings(0).workers_per_node[peer]);
    }
  }
  const Status closed = cluster.close();
  EXPECT_TRUE(closed.ok()) << closed.to_string() << '\n' << cluster.world().report();
  for (uint32_t node = 0; node < cluster.node_count(); ++node) {
    EXPECT_TRUE(cluster.observer(node).lost.empty())
        << "node " << node << " lost node " << cluster.observer(node).lost[0] << ": "
        << cluster.observer(node).causes[0].to_string();
  }
  return cluster.world().trace_hash();
}

TEST(SimCluster, opens_and_closes_in_order_whatever_the_timing) {
  for_each_seed(100, [](uint64_t seed) { open_and_close(seed); });
}

// Somebody waits for it, and its address is still on its way to the network thread.
TEST(SimCluster, a_node_that_is_wanted_while_it_is_added_is_linked) {
  ClusterShape shape;
  shape.configure = [](Config& config, uint32_t node) {
    EXPECT_TRUE(config.set("cluster.id", "changes").ok());
    EXPECT_TRUE(config.set("cluster.node_limit", "2").ok());
    EXPECT_TRUE(config.set("cluster.workers", "1").ok());
    EXPECT_TRUE(config.set("cluster.nodes", node == 0 ? "node0:7000" : "-,node1:7000").ok());
  };
  SimCluster cluster(1, shape);
  const Status opened = cluster.open();
  ASSERT_TRUE(opened.ok()) << opened.to_string();
  session::Membership& one = cluster.membership(1);
  EXPECT_TRUE(is_ok(cluster.membership(0).add_node(1, "node1:7000")));
  one.want_link(0);
  EXPECT_TRUE(is_ok(one.add_node(0, "node0:7000")));
  cluster.spawn(1, 0, [&] {
    const base::Nanoseconds deadline = cluster.world().now() + 10'000'000'000;
    while (!one.connected(0) && cluster.world().now() < deadline) {
      one.want_link(0);
      cluster.sleep(1'000'000);
    }
  });
  EXPECT_TRUE(is_ok(cluster.run()));
  EXPECT_TRUE(one.connected(0));
  EXPECT_TRUE(is_ok(cluster.close()));
}

TEST(SimCluster, the_same_seed_gives_exactly_the_same_run) {
  for_each_seed(10, [](uint64_t seed) { EXPECT_EQ(open_and_close(seed), open_and_close(seed)); });
}

TEST(SimCluster, a_cluster_of_16_nodes_with_8_workers_each_opens) {
  ClusterShape shape;
  shape.workers_per_node.assign(16, 8);
  shape.configure = [](Config& config, uint32_t) {
    EXPECT_TRUE(config.set("ring.bytes", 4096).ok());
    EXPECT_TRUE(config.set("transfer.threshold_bytes", 1024).ok());
  };
  SimCluster cluster(1, shape);
  const Status opened = cluster.open();
  EXPECT_TRUE(opened.ok()) << opened.to_string() << '\n' << cluster.world().report();
}

TEST(SimCluster, a_node_that_never_starts_ends_open_at_its_deadline) {
  ClusterShape shape;
  shape.workers_per_node = {1, 1, 1};
  shape.configure = [](Config& config, uint32_t) {
    EXPECT_TRUE(config.set("connect.timeout_ms", 2000).ok());
  };
  SimCluster cluster(1, shape);
  const base::Nanoseconds before = cluster.world().now();
  const Status opened = cluster.open_only({0, 2});
  EXPECT_EQ(opened.code(), Code::connect_failed) << opened.to_string();
  expect_contains(opened.to_string(), "node 1");
  EXPECT_FALSE(cluster.world().failed()) << cluster.world().report();
  EXPECT_GE(cluster.world().now() - before, 2'000'000'000u);
  EXPECT_LT(cluster.world().now() - before, 4'000'000'000u);
}

TEST(SimCluster, with_a_secret_opens_whatever_the_timing_and_never_with_a_node_that_has_another) {
  const SecretFile secret;
  const SecretFile other(kOtherSecret);
  for_each_seed(30, [&](uint64_t seed) {
    sim::Random random(seed);
    ClusterShape shape = random_shape(random);
    const auto nodes = static_cast<uint32_t>(shape.workers_per_node.size());
    // One of them, or none.
    const auto intruder = static_cast<uint32_t>(random.below(2) == 0 ? nodes : random.below(nodes));
    shape.configure = [&, rest = shape.configure](Config& config, uint32_t node) {
      rest(config, node);
      const std::string& path = node == intruder ? other.path() : secret.path();
      EXPECT_TRUE(config.set("security.secret_file", std::string_view(path)).ok());
      EXPECT_TRUE(config.set("connect.timeout_ms", 3000).ok());
    };
    SimCluster cluster(seed, shape);
    const Status opened = cluster.open();
    EXPECT_EQ(opened.ok(), intruder == nodes) << opened.to_string();
    EXPECT_FALSE(cluster.world().failed()) << cluster.world().report();
  });
}

TEST(SimCluster, an_idle_cluster_stays_connected_by_heartbeats) {
  SimCluster cluster(1, {});
  ASSERT_TRUE(cluster.open().ok()) << cluster.world().report();
  cluster.spawn(0, 0, [&] {
    for (int seconds = 0; seconds < 100; ++seconds) {
      cluster.world().wait_until([] { return false; }, cluster.world().now() + 1'000'000'000,
                                 "time");
      cluster.world().note_progress();
    }
  });
  ASSERT_TRUE(cluster.run().ok()) << cluster.world().report();
  for (uint32_t node = 0; node < 2; ++node) {
    EXPECT_TRUE(cluster.observer(node).lost.empty());
    EXPECT_GE(cluster.observer(node).ticks, 30u);
  }
}

TEST(SimCluster, control_messages_arrive_once_and_in_order_also_at_the_own_node) {
  for_each_seed(30, [](uint64_t seed) {
    sim::Random random(seed);
    SimCluster cluster(seed, random_shape(random));
    ASSERT_TRUE(cluster.open().ok()) << cluster.world().report();
    constexpr uint32_t kCount = 10;
    const size_t expected = size_t{kCount} * cluster.node_count();
    for (uint32_t node = 0; node < cluster.node_count(); ++node) {
      cluster.spawn(node, 0, [&, node] {
        for (uint32_t i = 0; i < kCount; ++i) {
          for (uint32_t to = 0; to < cluster.node_count(); ++to) {
            cluster.membership(node).send(to, std::as_bytes(std::span(&i, 1)));
            cluster.world().maybe_yield();
          }
        }
        cluster.world().wait_until(
            [&] { return cluster.observer(node).messages.size() == expected; }, base::kForever,
            "all messages");
      });
    }
    ASSERT_TRUE(cluster.run().ok()) << cluster.world().report();
    for (uint32_t node = 0; node < cluster.node_count(); ++node) {
      std::vector<uint32_t> next(cluster.node_count(), 0);
      for (const auto& message : cluster.observer(node).messages) {
        uint32_t value;
        ASSERT_EQ(message.bytes.size(), sizeof value);
        std::memcpy(&value, message.bytes.data(), sizeof value);
        EXPECT_EQ(value, next[message.from]++) << "from " << message.from;
      }
    }
  });
}

// A worker that sends `count` numbered frames into every ring of its own, and reads as many from
// every ring. Everything goes through the links as the shuffle layer will use them.
class RingProgram {
 public:
  RingProgram(SimCluster& cluster, uint32_t node, uint32_t worker, uint32_t count)
      : cluster_(cluster),
        membership_(cluster.membership(node)),
        node_(node),
        worker_(worker),
        count_(count) {
    for (uint32_t peer = 0; peer < cluster.node_count(); ++peer) {
      membership_.link(peer)->attach_ready(
          membership_.ready_set(worker),
          membership_.first_ready(peer, worker) / ring::ReadySet::kRingsPerGroup, worker);
      const ring::Layout out = membership_.outgoing_layout(peer);
      for (uint32_t r = 0; r < out.ring_count(); ++r) {
        if (out.sender_of(r) == worker) outgoing_.push_back({peer, r});
      }
      const ring::Layout in = membership_.incoming_layout(peer);
      for (uint32_t r = 0; r < in.ring_count(); ++r) {
        if (in.receiver_of(r) != worker) continue;
        incoming_.push_back(
            {peer, r, 0, membership_.first_ready(peer, worker) + in.index_at_receiver(r)});
      }
    }
  }

  void run() {
    ring::Doorbell doorbell(&membership_.doorbell(worker_));
    while (!done()) {
      if (work()) continue;
      flush();
      doorbell.arm();
      cluster_.world().maybe_yield();
      if (work()) {
        doorbell.disarm();
        continue;
      }
      cluster_.waiter().sleep(doorbell, base::kForever);
    }
    flush();
  }

 private:
  struct End {
    uint32_t peer;
    uint32_t ring;
    uint32_t next = 0;
    uint32_t ready = 0;
  };

  bool done() const {
    const auto all = [this](const std::vector<End>& ends) {
      return std::all_of(ends.begin(), ends.end(),
                         [this](const End& e) { return e.next == count_; });
    };
    return all(outgoing_) && all(incoming_);
  }

  bool work() {
    bool any = false;
    for (End& e : outgoing_) {
      const uint32_t value[4] = {node_, e.ring, e.next, ~e.next};
      if (e.next < count_ &&
          send_frame(membership_.link(e.peer)->outgoing(e.ring), std::as_bytes(std::span(value)))) {
        ++e.next;
        any = true;
      }
    }
    membership_.ready_set(worker_).take([&](uint32_t ready) {
      for (End& e : incoming_) {
        if (e.ready == ready) any |= receive(e);
      }
    });
    return any;
  }

  bool receive(End& e) {
    transport::Incoming& incoming = membership_.link(e.peer)->incoming(e.ring);
    transport::FrameView view;
    bool any = false;
    while (incoming.next(view) == transport::Next::frame) {
      const uint32_t expected[4] = {e.peer, e.ring, e.next, ~e.next};
      if (view.payload_bytes() != sizeof expected ||
          std::memcmp(view.payload, expected, sizeof expected) != 0) {
        cluster_.world().violation("another frame than the next one");
      }
      ++e.next;
      incoming.release(view.token);
      any = true;
    }
    return any;
  }

  void flush() {
    for (End& e : outgoing_) membership_.link(e.peer)->outgoing(e.ring).post();
    for (End& e : incoming_) membership_.link(e.peer)->incoming(e.ring).flush_releases();
  }

  SimCluster& cluster_;
  session::Membership& membership_;
  const uint32_t node_;
  const uint32_t worker_;
  const uint32_t count_;
  std::vector<End> outgoing_;
  std::vector<End> incoming_;
};

TEST(SimCluster, every_worker_sends_to_every_other_through_every_ring) {
  for_each_seed(30, [](uint64_t seed) {
    sim::Random random(seed);
    SimCluster cluster(seed, random_shape(random));
    const Status opened = cluster.open();
    ASSERT_TRUE(opened.ok()) << opened.to_string() << '\n' << cluster.world().report();
    const auto count = static_cast<uint32_t>(random.between(1, 200));
    std::vector<std::unique_ptr<RingProgram>> programs;
    for (uint32_t node = 0; node < cluster.node_count(); ++node) {
      for (uint32_t w = 0; w < cluster.settings(0).workers_per_node[node]; ++w) {
        programs.push_back(std::make_unique<RingProgram>(cluster, node, w, count));
        cluster.spawn(node, w, [program = programs.back().get()] { program->run(); });
      }
    }
    ASSERT_TRUE(cluster.run().ok()) << cluster.world().report();
    ASSERT_TRUE(cluster.close().ok()) << cluster.world().report();
  });
}

TEST(SimCluster, whole_sessions_open_carry_a_gather_and_close) {
  for_each_seed(30, [](uint64_t seed) {
    sim::Random random(seed);
    SimCluster cluster(seed, random_shape(random));
    const Status opened = cluster.open_sessions();
    ASSERT_TRUE(opened.ok()) << opened.to_string() << '\n' << cluster.world().report();
    const QueryId query = cluster.session(0).begin_query();
    uint64_t sum = 0;
    const uint32_t worker_count = cluster.session(0).worker_count();
    const auto program = [&](Worker& worker) {
      Result<Shuffle> shuffle = worker.open_shuffle({query, 0, sizeof(uint64_t), {}, {0}});
      ASSERT_TRUE(is_ok(shuffle));
      for (uint64_t value = 1; value <= 1000; ++value) {
        ASSERT_EQ(shuffle->sender()->send(0, std::as_bytes(std::span(&value, 1))), Outcome::done);
      }
      ASSERT_EQ(shuffle->sender()->finish(), Outcome::done);
      Batch batch;
      while (worker.number() == 0 && shuffle->receiver()->receive(batch) == Outcome::done) {
        for (const uint64_t value : batch.rows<uint64_t>()) sum += value;
        batch.release();
      }
      shuffle->close();
      ASSERT_EQ(worker.end_query(query), Outcome::done);
    };
    for (uint32_t node = 0; node < cluster.node_count(); ++node) {
      Session& session = cluster.session(node);
      for (uint32_t w = 0; w < session.local_worker_count(); ++w) {
        cluster.spawn(node, w, [&, w] { program(session.worker(w)); });
      }
    }
    ASSERT_TRUE(cluster.run().ok()) << cluster.world().report();
    EXPECT_EQ(sum, uint64_t{worker_count} * 1000 * 1001 / 2);
    ASSERT_TRUE(cluster.close().ok()) << cluster.world().report();
  });
}

// At any moment of the return, also after the two have been admitted to each other.
TEST(SimCluster, a_node_that_dies_while_another_one_returns_is_missing_there) {
  uint64_t returns = 0;
  for_each_seed(200, [&](uint64_t seed) {
    sim::Random random(seed);
    ClusterShape shape;
    shape.workers_per_node = {1, 1, 1};
    SimCluster cluster(seed, shape);
    ASSERT_TRUE(cluster.open_sessions().ok()) << cluster.world().report();
    const base::Nanoseconds dies_after = random.below(uint64_t{1} << random.between(10, 21));
    cluster.world().spawn("node 2", [&] {
      cluster.kill(2);
      (void)cluster.end_node(2);
      cluster.sleep(1'000'000'000);
      cluster.world().spawn("what kills node 1", [&] {
        cluster.sleep(dies_after);
        cluster.kill(1);
      });
      (void)cluster.open_session(2);
      cluster.sleep(20'000'000'000);
    });
    ASSERT_TRUE(cluster.run().ok()) << cluster.world().report();
    if (!cluster.has_session(2)) return;
    ++returns;
    node::NodeCore& core = SessionAccess::core(cluster.session(2));
    EXPECT_FALSE(core.membership().peers().is_present(1)) << "died after " << dies_after << " ns";
    EXPECT_TRUE(core.membership().peers().is_present(0));
  });
  EXPECT_GT(returns, 50u);
}

// Far below the threshold, and nobody flushes: a worker that waits has to post what others wait
// for.
TEST(SimCluster, two_workers_answer_each_other_row_by_row) {
  for_each_seed(50, [](uint64_t seed) {
    ClusterShape shape;
    shape.workers_per_node = seed % 2 == 0 ? std::vector<uint32_t>{1, 1} : std::vector<uint32_t>{2};
    shape.knobs.stall_limit = 2'000'000'000;
    shape.configure = [](Config& config, uint32_t) {
      EXPECT_TRUE(config.set("wait.sleep_ms", 10'000).ok());
    };
    SimCluster cluster(seed, shape);
    ASSERT_TRUE(cluster.open_sessions().ok()) << cluster.world().report();
    const QueryId query = cluster.session(0).begin_query();
    constexpr uint64_t kRounds = 50;
    const auto program = [&](Worker& worker) {
      const uint32_t peer = 1 - worker.number();
      Result<Shuffle> shuffle = worker.open_shuffle({query, 0, sizeof(uint64_t), {}, {}});
      ASSERT_TRUE(is_ok(shuffle));
      for (uint64_t value = worker.number(); value < 2 * kRounds; value += 2) {
        if (value > 0) {
          Batch batch;
          ASSERT_EQ(shuffle->receiver()->receive(batch), Outcome::done);
          ASSERT_EQ(batch.rows<uint64_t>().size(), 1u);
          ASSERT_EQ(batch.rows<uint64_t>()[0], value - 1);
        }
        ASSERT_EQ(shuffle->sender()->send(peer, std::as_bytes(std::span(&value, 1))),
                  Outcome::done);
      }
      ASSERT_EQ(shuffle->sender()->finish(), Outcome::done);
      Batch batch;
      while (shuffle->receiver()->receive(batch) == Outcome::done) batch.release();
      shuffle->close();
      ASSERT_EQ(worker.end_query(query), Outcome::done);
    };
    const bool one_node = shape.workers_per_node.size() == 1;
    for (uint32_t w = 0; w < 2; ++w) {
      const uint32_t node = one_node ? 0 : w;
      const uint32_t local = one_node ? w : 0;
      cluster.spawn(node, local,
                    [&, node, local] { program(cluster.session(node).worker(local)); });
    }
    ASSERT_TRUE(cluster.run().ok()) << cluster.world().report();
    ASSERT_TRUE(cluster.close().ok()) << cluster.world().report();
  });
}

// One worker holds a batch for `held`, another fiber closes its session; what close answers, and
// how long it took.
struct ClosedWhileHeld {
  Status status;
  base::Nanoseconds took = 0;
};

ClosedWhileHeld close_while_held(uint64_t seed, base::Nanoseconds held) {
  ClusterShape shape;
  shape.workers_per_node = {1};
  shape.configure = [](Config& config, uint32_t) {
    EXPECT_TRUE(config.set("close.timeout_ms", 20'000).ok());
  };
  SimCluster cluster(seed, shape);
  sim::World& world = cluster.world();
  EXPECT_TRUE(cluster.open_sessions().ok()) << world.report();
  bool holds = false;
  cluster.spawn(0, 0, [&] {
    Worker& worker = cluster.session(0).worker(0);
    Result<Shuffle> shuffle =
        worker.open_shuffle({cluster.session(0).begin_query(), 0, sizeof(uint64_t), {}, {}});
    ASSERT_TRUE(is_ok(shuffle));
    const uint64_t value = 7;
    ASSERT_EQ(shuffle->sender()->send(0, std::as_bytes(std::span(&value, 1))), Outcome::done);
    ASSERT_EQ(shuffle->sender()->finish(), Outcome::done);
    Batch batch;
    ASSERT_EQ(shuffle->receiver()->receive(batch), Outcome::done);
    holds = true;
    world.wait_until([] { return false; }, world.now() + held, "its own work");
    EXPECT_EQ(batch.rows<uint64_t>()[0], value);  // its memory is there until it is released
    batch.release();
  });
  ClosedWhileHeld result;
  world.spawn("closer", [&] {
    world.wait_until([&] { return holds; }, base::kForever, "the batch");
    const base::Nanoseconds before = world.now();
    result.status = cluster.close_node(0);
    result.took = world.now() - before;
  });
  const Status ran = cluster.run();
  EXPECT_TRUE(ran.ok()) << ran.to_string() << '\n' << world.report();
  return result;
}

constexpr base::Nanoseconds kSecond = 1'000'000'000;

TEST(SimCluster, a_close_waits_for_a_held_batch_in_simulated_time) {
  for_each_seed(20, [](uint64_t seed) {
    const ClosedWhileHeld closed = close_while_held(seed, 10 * kSecond);
    EXPECT_TRUE(is_ok(closed.status));
    EXPECT_GT(closed.took, 9 * kSecond);
    EXPECT_LT(closed.took, 11 * kSecond);
  });
}

TEST(SimCluster, a_close_gives_a_held_batch_up_at_its_simulated_deadline) {
  for_each_seed(20, [](uint64_t seed) {
    const ClosedWhileHeld closed = close_while_held(seed, 25 * kSecond);
    EXPECT_EQ(closed.status.code(), Code::deadline_exceeded) << closed.status.to_string();
    EXPECT_GE(closed.took, 20 * kSecond);
    EXPECT_LT(closed.took, 21 * kSecond);
  });
}

}  // namespace
}  // namespace faro::test
