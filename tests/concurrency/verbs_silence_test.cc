// Packets that vanish between two RDMA devices while both processes live. Needs the switch of tests/softroce/lib/network.sh,
// whose ports the environment names (TEST_CABLES): neither device is told that one of them carries nothing.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/log_lines.h"
#include "support/mended_counts.h"
#include "support/mended_pair.h"
#include "support/test_network.h"
#include "support/watchdog.h"

namespace faro::test {
namespace {

using Where = Darkness::Where;
using Steady = std::chrono::steady_clock;

void run_command(const std::string& command) {
  if (std::system(command.c_str()) != 0) std::abort();
}

/// TCP connections of siw between the addresses of the nodes that stand: their ports, both ways.
std::vector<std::pair<unsigned, unsigned>> connections_of_siw() {
  std::vector<std::pair<unsigned, unsigned>> ports;
  const auto hex = [](uint32_t node) {
    in_addr address{};
    inet_pton(AF_INET, node_host(node).c_str(), &address);
    return fmt::format("{:08X}", address.s_addr);
  };
  std::ifstream table("/proc/net/tcp");
  for (std::string line; std::getline(table, line);) {
    char from[9] = {}, to[9] = {};
    unsigned from_port = 0, to_port = 0, state = 0;
    const int read = std::sscanf(line.c_str(), " %*d: %8[^:]:%X %8[^:]:%X %X", from, &from_port, to,
                                 &to_port, &state);
    const bool is_between = (from == hex(0) && to == hex(1)) || (from == hex(1) && to == hex(0));
    if (read == 5 && state == 1 && is_between) ports.emplace_back(from_port, to_port);
  }
  return ports;
}

/// The ports of the switch at which the nodes are. Devices are not told what it drops.
class Ports {
 public:
  ~Ports() {
    forward(true);
    remember();
    let_through_all();
  }
  void forward(bool is_on) {
    run_command(fmt::format("bridge link set dev {} state {}", node_cable(1), is_on ? 3 : 0));
  }
  /// The connection that stands is dropped, as a firewall does that has forgotten it. Connections that come are not; over rxe,
  /// where requests to connect are sent again, all packets are dropped until remember().
  void forget() {
    const auto connections = connections_of_siw();
    if (connections.empty()) return forward(false);
    for (const uint32_t node : {0u, 1u}) {
      run_command(fmt::format("tc qdisc add dev {} ingress", node_cable(node)));
      for (const auto& [from, to] : connections)
        run_command(
            fmt::format("tc filter add dev {} ingress protocol ip u32 match ip sport {} "
                        "0xffff match ip dport {} 0xffff action drop",
                        node_cable(node), from, to));
    }
    forgets_ = true;
  }
  void remember() {
    if (!std::exchange(forgets_, false)) return forward(true);
    for (const uint32_t node : {0u, 1u})
      run_command(fmt::format("tc qdisc delete dev {} ingress", node_cable(node)));
  }
  /// What is larger vanishes on its way to a node.
  void let_through(uint32_t bytes) {
    for (const uint32_t node : {0u, 1u})
      run_command(fmt::format("tc qdisc replace dev {} root tbf rate 1gbit burst {} limit 4mb",
                              node_cable(node), bytes));
  }
  /// It all takes its time.
  void slow_down() {
    run_command(fmt::format("tc qdisc replace dev {} root tbf rate 1mbit burst 16kb limit 4mb",
                            node_cable(1)));
  }
  void let_through_all() {
    for (const uint32_t node : {0u, 1u})
      run_command(fmt::format("tc qdisc replace dev {} root pfifo", node_cable(node)));
  }

 private:
  bool forgets_ = false;
};

class VerbsSilence : public testing::Test {
 protected:
  void SetUp() override {
    if (transports_to_test({}) != std::vector<std::string>{"verbs"} || node_cable(1).empty())
      GTEST_SKIP() << "TEST_TRANSPORT does not ask for verbs, or TEST_CABLES names no ports";
    ports_.emplace();
    set_log_level(LogLevel::debug);
  }
  void TearDown() override {
    set_log_level(LogLevel::warning);
    for (const std::string& line : log_.lines()) fmt::print("{}\n", line);
  }

  SettingList with(const SettingList& more = {}) const {
    SettingList all = {{"transport", "verbs"},
                       {"liveness.timeout_ms", "2000"},
                       {"link.mend_ms", "30000"},
                       {"counters.folder", counts_.folder()}};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// The port carries nothing until both sides know that. Tells what it took.
  void darken_until_that_is_noticed() {
    const auto begin = Steady::now();  // the port is dark a little later
    ports_->forget();
    counts_.wait_until_it_has_broken();
    const std::chrono::duration<double> took = Steady::now() - begin;
    fmt::print("noticed after {:.2f} s\n", took.count());
    std::fflush(stdout);
    ports_->remember();
  }
  /// What the ends of a query say.
  static std::string said_by(const std::vector<Status>& ends) {
    std::string said;
    for (const Status& end : ends) {
      EXPECT_EQ(end.code(), Code::peer_lost) << end.to_string();
      said += end.to_string() + "\n";
    }
    return said;
  }

  std::optional<Ports> ports_;
  const MendedCounts counts_;
  LogLines log_;
  Watchdog watchdog_{std::chrono::seconds(100), [this] {
                       std::string all;
                       for (const std::string& line : log_.lines()) all += line + "\n";
                       return all;
                     }};
};

TEST_F(VerbsSilence, is_noticed_and_mended_while_rows_are_sent) {
  MendedPair pair(with());
  pair.expect_complete(10);
  std::atomic<bool> is_under_way{false};
  pair.before_row = [&](uint64_t row) { is_under_way = is_under_way || row >= 1000; };
  std::thread silence([&] {
    while (!is_under_way) std::this_thread::yield();
    darken_until_that_is_noticed();
  });
  const QueryId id = pair.session(0).begin_query();
  Status other;
  std::thread node([&] { other = pair.run_part(1, id, 20'000); });
  EXPECT_TRUE(is_ok(pair.run_part(0, id, 20'000)));
  node.join();
  EXPECT_TRUE(is_ok(other));
  silence.join();
}

TEST_F(VerbsSilence, is_noticed_and_mended_while_nothing_is_sent) {
  MendedPair pair(with());
  pair.expect_complete(10);
  darken_until_that_is_noticed();
  counts_.wait_until_mended(1);
  pair.expect_complete(1000);
}

// While the link is mended there is silence, too.
TEST_F(VerbsSilence, that_lasts_ends_the_link_with_the_last_cause) {
  MendedPair pair(with({{"link.mend_ms", "3000"}}));
  pair.expect_complete(10);
  ports_->forward(false);
  expect_contains(said_by(pair.query(100'000)),
                  "the link was not mended within link.mend_ms = 3000");
}

TEST_F(VerbsSilence, of_the_control_connection_or_of_both_fails_by_name) {
  for (const Where where : {Where::control, Where::both}) {
    MendedPair pair(with());
    pair.expect_complete(10);
    if (where == Where::both) ports_->forward(false);
    pair.proxy().darken({Where::control, true});
    const std::string said = said_by(pair.query(1'000'000));
    expect_contains(said, "heard nothing from");
    expect_contains(said, "for liveness.timeout_ms = 2000");
    ports_->forward(true);
  }
}

// Requests to connect come through, and the answers of devices do.
TEST_F(VerbsSilence, of_large_packets_alone_is_not_mended_for_ever) {
  MendedPair pair(with({{"ring.bytes", "256 KiB"}, {"transfer.threshold_bytes", "64 KiB"}}));
  pair.expect_complete(10);
  ports_->let_through(600);
  pair.row_bytes = 20'000;
  expect_contains(said_by(pair.query(1000)),
                  "it has broken 3 times although it was mended, and nothing has got further");
}

TEST_F(VerbsSilence, is_not_what_a_peer_shows_whose_packets_wait_in_a_queue) {
  MendedPair pair(with());
  pair.expect_complete(10);
  ports_->slow_down();
  pair.expect_complete(50'000);
  ports_->let_through_all();
  EXPECT_EQ(counts_.mended(), (std::array<uint64_t, 2>{}));
}

}  // namespace
}  // namespace faro::test
