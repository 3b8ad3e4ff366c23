// Faults for real: in a cluster of processes one, the victim, is killed, stopped, cut off, silent
// or flooded with connections, in each phase of a query. Every node that needs it is told, by its
// name and within the time limit; nobody else is; and nothing is left of it. In sessions with a
// fixed list of nodes, and in those whose nodes change: the victim is added before the query, and
// as it is hit another node, the guest, is added, has a query, and is drained.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/expect.h"
#include "support/temporary_folder.h"
#include "support/test_network.h"
#include "system/cables.h"
#include "system/fault_node.h"
#include "system/unauthenticated_peers.h"

namespace faro::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

enum class Fault {
  killed,   // kill -9
  stopped,  // SIGSTOP, for longer than the time limit
  cut,      // its network cable is pulled
  paused,   // SIGSTOP, for less than the time limit
  silent,   // it does not read: its worker makes no call
  flooded,  // hundreds of unauthenticated peers connect, to it and to the others
};
constexpr const char* kFaultNames[] = {"killed", "stopped", "cut", "paused", "silent", "flooded"};

/// Its peers lose it.
bool loses(Fault fault) { return fault <= Fault::cut; }
/// The guests of tests/softroce, which name addresses, emulate their processors.
bool is_slow_machine() { return names_addresses(); }
/// A node that only notices by silence has to wait for the time limit; the others are given more,
/// so that a busy machine makes nobody seem silent.
milliseconds limit_of(Fault fault) {
  if (fault == Fault::stopped || fault == Fault::cut) return milliseconds(1000);
  return milliseconds(is_slow_machine() ? 4000 : 2000);
}
constexpr milliseconds kMore{1000};  // what it may take beyond the time limit
/// connect.timeout_ms of nodes that are hit later, and of those that are hit as they connect.
constexpr milliseconds kAmple{20'000};
milliseconds connect_limit() { return milliseconds(is_slow_machine() ? 5000 : 1500); }
constexpr int kFloodPeers = 300;  // more connections than the victim takes at a time

struct Trouble {
  Fault fault;
  std::string transport;
  bool changing;  // the nodes of the session change

  std::string name() const {
    return fmt::format("{}_{}{}", kFaultNames[static_cast<int>(fault)], transport,
                       changing ? "_changing" : "");
  }
  friend void PrintTo(const Trouble& trouble, std::ostream* to) { *to << trouble.name(); }
};

bool has_given_cable() { return !node_cable(kVictim).empty(); }

std::vector<Trouble> troubles(std::initializer_list<Fault> faults) {
  std::vector<Trouble> made;
  for (const Fault fault : faults) {
    for (const std::string& transport : transports_to_test({"shm", "tcp"})) {
      const bool possible = fault != Fault::cut || transport == "tcp" || has_given_cable();
      for (const bool changing : {false, true}) {
        if (possible) made.push_back({fault, transport, changing});
      }
    }
  }
  return made;
}

/// Three nodes in processes of their own, and perhaps the guest, and what has to be said to them.
class TroubledCluster {
 public:
  TroubledCluster(Trouble trouble, Phase phase, milliseconds connect = kAmple)
      : trouble_(std::move(trouble)), phase_(phase) {
    for (FaultNodePlan& plan : plans_) {
      plan.node = static_cast<uint32_t>(&plan - plans_);
      plan.phase = phase;
      plan.settings =
          small_rings({{"transport", trouble_.transport},
                       {"liveness.timeout_ms", std::to_string(limit_of(trouble_.fault).count())},
                       {"connect.timeout_ms", std::to_string(connect.count())},
                       {"overflow.memory_bytes", "64 KiB"},
                       {"overflow.folder", folder_.path()},
                       {"counters.folder", folder_.path()}});
      if (trouble_.changing)
        plan.settings.push_back({"cluster.node_limit", std::to_string(kNodes)});
    }
  }

  /// Binds what the nodes listen on. "" or why it cannot be done here.
  std::string prepare() {
    if (trouble_.fault == Fault::cut && has_given_cable()) {
      cable_ = std::make_unique<GivenCable>(node_cable(kVictim));
    } else if (trouble_.fault == Fault::cut) {
      network_ = OwnNetwork::make();
      if (network_ == nullptr) return "this system permits no network of its own, or has no `ip`";
      for (uint32_t n = 0; n < kNodes; ++n) addresses_[n] = own_address(n, 7100);
      for (uint32_t n = 0; n < 2; ++n) add_beside(own_address(n, 7200));
      for (FaultNodePlan& plan : plans_) plan.settings.push_back({"security.open", "1"});
      return "";
    }
    for (uint32_t n = 0; n < kNodes; ++n) {
      listeners_.push_back(std::move(*ListeningSocket::bind(listen_address(n))));
      addresses_[n] = listeners_.back().address();
    }
    for (uint32_t n = 0; n < 2; ++n) {
      beside_.push_back(std::move(*ListeningSocket::bind(listen_address(n))));
      add_beside(beside_.back().address());
    }
    return "";
  }

  void set_connect_limit(uint32_t n, milliseconds limit) {
    plans_[n].settings.push_back({"connect.timeout_ms", std::to_string(limit.count())});
  }

  /// All that take part, before anything is said. In a session that changes, the victim is added to the others.
  void start() {
    if (!trouble_.changing) {
      for (uint32_t n = 0; n < kFaultNodes; ++n) start(n);
      for (uint32_t n = 0; n < kFaultNodes; ++n) EXPECT_EQ(hear(n), "open") << "node " << n;
    } else {
      for (const uint32_t n : {0u, 1u}) start(n, {0, 1});
      start(kGuest, {kGuest});
      for (const uint32_t n : kGuestAndHosts) EXPECT_EQ(hear(n), "open") << "node " << n;
      for (const uint32_t n : {0u, 1u}) tell_of(kVictim, n);
      start(kVictim);
      EXPECT_EQ(hear(kVictim), "open");
      for (const uint32_t n : {0u, 1u}) EXPECT_EQ(ask(n, "await 2"), "ok") << "node " << n;
    }
    close_listeners();
  }
  /// With a session of these.
  void start(uint32_t n, const std::set<uint32_t>& list = {0, 1, kVictim}) {
    for (uint32_t each = 0; each <= *list.rbegin(); ++each)
      plans_[n].addresses +=
          (each == 0 ? "" : ",") + (list.contains(each) ? addresses_[each] : "-");
    nodes_[n] =
        std::make_unique<Child>([this, n](const Child::Side& test) { return run(n, test); });
    if (network_ != nullptr) {
      EXPECT_TRUE(network_->take_in(n, *nodes_[n]));
    }
    EXPECT_EQ(hear(n), "opening");
  }
  /// What this process still listens on for the nodes would answer for the dead.
  void close_listeners() {
    listeners_.clear();
    beside_.clear();
  }
  /// Until somebody has dialled node `n`, which has not been started, and has said something.
  void await_dial(uint32_t n) {
    const std::string& address = addresses_[n];
    const int port = std::atoi(address.substr(address.rfind(':') + 1).c_str());
    const auto deadline = Clock::now() + seconds(20);
    while (!has_unread_connection(port)) {
      ASSERT_LT(Clock::now(), deadline) << "nobody has dialled node " << n;
      sched_yield();
    }
  }

  void say(uint32_t n, const std::string& line) { nodes_[n]->say(line); }
  std::string hear(uint32_t n) { return nodes_[n]->hear().value_or("(it has ended)"); }
  std::string ask(uint32_t n, const std::string& line) {
    say(n, line);
    return hear(n);
  }

  /// Worker 0 of all nodes begins a query; the victim goes up to its phase.
  void begin_query() {
    const std::string id = ask(victim_is_issuer() ? kVictim : 0, "begin");
    for (uint32_t n = 0; n < kFaultNodes; ++n) say(n, "query " + id);
    EXPECT_EQ(hear(kVictim), "there");
    if (phase_ == Phase::closing) {
      for (const uint32_t n : {0u, 1u}) EXPECT_EQ(ask(n, "outcome"), "done") << "node " << n;
    }
  }
  bool victim_is_issuer() const { return trouble_.transport != "shm"; }

  /// A node that is killed, or was told to close when it was hit, does not.
  std::vector<uint32_t> still_obeying() const {
    if (trouble_.fault == Fault::killed || phase_ == Phase::closing) return {0, 1};
    return {0, 1, kVictim};
  }
  void hit() {
    Child& victim = *nodes_[kVictim];
    // A cable goes with the last process at its end, which may not take long to close.
    if (cable_ != nullptr) cable_->pull();
    if (network_ != nullptr) network_->pull(kVictim);
    if (phase_ == Phase::closing) victim.say("close");
    switch (trouble_.fault) {
      case Fault::killed:
        return victim.signal(SIGKILL);
      case Fault::stopped:
      case Fault::paused:
        return victim.stop();
      case Fault::cut:
      case Fault::silent:
        return;
      case Fault::flooded:
        for (uint32_t n = 0; n < kFaultNodes; ++n)
          flood_.come_to(addresses_[n], n == kVictim ? kFloodPeers : kFloodPeers / 3);
    }
  }
  void relieve() {
    nodes_[kVictim]->signal(SIGCONT);
    flood_.leave();
  }

  /// The victim was hit a moment ago: the guest comes, has a query with nodes 0 and 1, and is drained. Nobody is waited for.
  void have_guest() {
    for (const uint32_t n : still_obeying()) tell_of(kGuest, n);
    for (const uint32_t n : {0u, 1u}) tell_of(n, kGuest);
    const std::string query = "with guest " + ask(0, "begin");
    for (const uint32_t n : kGuestAndHosts) say(n, query);
    say(kGuest, "drain 3");
    for (const uint32_t n : still_obeying()) say(n, "drain 3");
  }
  /// A drain waits for whoever has not said that it needs the guest no more, such as a victim that is paused.
  void expect_guest_kept() {
    for (const uint32_t n : {0u, 1u}) EXPECT_EQ(ask(n, "count drained 3"), "0") << "node " << n;
  }
  /// Once the victim is lost, or obeys: the guest goes, and its number is free.
  void expect_guest_gone() {
    for (const uint32_t n : kGuestAndHosts) {
      EXPECT_EQ(ask(n, "guest"), "guest well") << "node " << n;
      EXPECT_EQ(ask(n, "told drained 3"), "drained 3") << "node " << n;
    }
    say(kGuest, "close");
    expect_end(kGuest);
    for (const uint32_t n : {0u, 1u}) {
      say(n, "remove 3");
      EXPECT_EQ(ask(n, "told removed 3"), "removed 3") << "node " << n;
    }
  }

  /// Nodes 0 and 1 have another query, and a session without the victim, that go on.
  void expect_others_go_on() {
    const std::string ids = ask(0, "begin") + "," + ask(0, "begin pair");
    for (const uint32_t n : {0u, 1u}) say(n, "others " + ids);
    for (const uint32_t n : {0u, 1u}) EXPECT_EQ(hear(n), "others well") << "node " << n;
  }

  /// All that live; nothing is left of them.
  void close() {
    for (const uint32_t n : still_obeying()) say(n, "close");
    for (uint32_t n = 0; n < kFaultNodes; ++n) {
      if (n != kVictim || trouble_.fault != Fault::killed) expect_end(n);
    }
    expect_no_files();
  }
  /// A node that closes, or did not open, ends, and leaves nothing behind.
  void expect_end(uint32_t n) {
    EXPECT_EQ(hear(n), "well") << "node " << n;
    EXPECT_EQ(nodes_[n]->wait_for_end(), 0) << "node " << n;
  }
  void expect_no_files() { EXPECT_TRUE(folder_.empty()) << "a file is left in " << folder_.path(); }

 private:
  static bool has_unread_connection(int at_port) {
    constexpr unsigned kEstablished = 1;
    std::ifstream sockets("/proc/net/tcp");
    for (std::string line; std::getline(sockets, line);) {
      unsigned port = 0, state = 0, unsent = 0, unread = 0;
      if (std::sscanf(line.c_str(), " %*u: %*x:%x %*x:%*x %x %x:%x", &port, &state, &unsent,
                      &unread) == 4 &&
          port == static_cast<unsigned>(at_port) && state == kEstablished && unread > 0)
        return true;
    }
    return false;
  }
  static std::string own_address(uint32_t n, int port) {
    return fmt::format("{}:{}", OwnNetwork::address(n), port);
  }
  /// Node `to` is told of node `n`.
  void tell_of(uint32_t n, uint32_t to) { say(to, fmt::format("add {} {}", n, addresses_[n])); }
  void add_beside(const std::string& address) {
    std::string& all = plans_[0].beside_addresses;
    all += (all.empty() ? "" : ",") + address;
    plans_[1].beside_addresses = all;
  }

  // In the node's process.
  int run(uint32_t n, const Child::Side& test) {
    if (network_ != nullptr) {
      if (!OwnNetwork::move_in(n, test)) return 1;
    }
    std::optional<ListeningSocket> listener = take(listeners_, n, own_address(n, 7100));
    std::optional<ListeningSocket> beside;
    if (n < 2) beside = take(beside_, n, own_address(n, 7200));
    close_listeners();
    return run_fault_node(plans_[n], std::move(*listener), std::move(beside), test);
  }
  static ListeningSocket take(std::vector<ListeningSocket>& made, uint32_t n,
                              const std::string& own) {
    if (made.empty()) return std::move(*ListeningSocket::bind(own));
    return std::move(made[n]);
  }

  static constexpr uint32_t kNodes = kFaultNodes + 1;
  static constexpr uint32_t kGuestAndHosts[] = {0, 1, kGuest};

  const Trouble trouble_;
  const Phase phase_;
  const TemporaryFolder folder_;
  std::unique_ptr<OwnNetwork> network_;
  std::unique_ptr<GivenCable> cable_;
  std::string addresses_[kNodes];
  FaultNodePlan plans_[kNodes];
  std::vector<ListeningSocket> listeners_, beside_;
  std::unique_ptr<Child> nodes_[kNodes];
  UnauthenticatedPeers flood_;
};

using PhaseOfTrouble = std::tuple<Trouble, size_t>;

std::string name_of(const testing::TestParamInfo<PhaseOfTrouble>& info) {
  return std::get<0>(info.param).name() + "_" + kPhaseNames[std::get<1>(info.param)];
}

/// The victim was hit in its phase a moment ago; skipped where that is not possible.
class ShuffleTrouble : public testing::TestWithParam<PhaseOfTrouble> {
 protected:
  void SetUp() override {
    if (const std::string problem = cluster_.prepare(); !problem.empty()) GTEST_SKIP() << problem;
    cluster_.start();
    if (HasFailure()) return;
    cluster_.begin_query();
    cluster_.hit();
    hit_ = Clock::now();
    cluster_.say(1, "hit");
    if (trouble_.changing) cluster_.have_guest();
  }
  void expect_in_time() const { EXPECT_LT(Clock::now() - hit_, limit_of(trouble_.fault) + kMore); }

  const Trouble& trouble_ = std::get<0>(GetParam());
  const Phase phase_ = kPhases[std::get<1>(GetParam())];
  TroubledCluster cluster_{trouble_, phase_};
  Clock::time_point hit_;
};

class LosingTrouble : public ShuffleTrouble {
 protected:
  /// What a victim knows that lives, and whom the others have lost.
  void expect_victim_knows() {
    if (trouble_.fault == Fault::killed || phase_ == Phase::closing) return;
    cluster_.say(kVictim, "go on");
    const std::string own = cluster_.ask(kVictim, "outcome");
    // An issuer whom the others had told that they ended may have decided, for itself.
    if (own == "done" && (phase_ == Phase::finished || phase_ == Phase::ended)) return;
    if (trouble_.fault == Fault::cut) {
      expect_contains(own, "failed peer_lost");
      expect_in_time();
    } else {
      expect_contains(own, "heard nothing from node 2 (");  // it was given up, and accuses nobody
    }
  }
};

TEST_P(LosingTrouble, is_told_to_who_needs_the_victim_by_its_name_and_in_time) {
  const std::string told[] = {cluster_.ask(0, "outcome"), cluster_.ask(1, "outcome")};
  expect_in_time();
  // That the victim had ended its part may have reached the issuer before it was hit.
  const bool may_be_done = phase_ == Phase::ended && !cluster_.victim_is_issuer();
  for (const std::string& each : told) {
    if (phase_ == Phase::closing || (may_be_done && told[0] == "done")) {
      EXPECT_EQ(each, "done");
    } else {
      expect_contains(each, "failed peer_lost");
      expect_contains(each, "node 2 (");
    }
  }
  if (trouble_.fault == Fault::cut) expect_victim_knows();
  cluster_.expect_others_go_on();
  if (trouble_.changing) cluster_.expect_guest_gone();
  cluster_.relieve();
  if (trouble_.fault == Fault::stopped) expect_victim_knows();
  cluster_.close();
}

INSTANTIATE_TEST_SUITE_P(Phases, LosingTrouble,
                         testing::Combine(testing::ValuesIn(troubles({Fault::killed, Fault::stopped,
                                                                      Fault::cut})),
                                          testing::Range<size_t>(0, std::size(kPhases))),
                         name_of);

class HarmlessTrouble : public ShuffleTrouble {};

TEST_P(HarmlessTrouble, lets_all_queries_end_with_their_rows) {
  cluster_.expect_others_go_on();
  if (trouble_.fault == Fault::paused) {
    // For half the time limit at least, of which the others may have taken some.
    const auto since = std::chrono::duration_cast<milliseconds>(Clock::now() - hit_);
    const milliseconds more = std::max(limit_of(trouble_.fault) / 2 - since, milliseconds(0));
    EXPECT_EQ(cluster_.ask(0, fmt::format("wait {}", more.count())), "waited");
    // One that closes may have said goodbye before.
    if (trouble_.changing && phase_ != Phase::closing) cluster_.expect_guest_kept();
  } else if (trouble_.changing) {
    cluster_.expect_guest_gone();
  }
  cluster_.relieve();
  if (trouble_.changing && trouble_.fault == Fault::paused) cluster_.expect_guest_gone();
  for (const uint32_t n : cluster_.still_obeying()) cluster_.say(n, "go on");
  for (const uint32_t n : cluster_.still_obeying()) EXPECT_EQ(cluster_.ask(n, "outcome"), "done");
  cluster_.close();
}

INSTANTIATE_TEST_SUITE_P(Phases, HarmlessTrouble,
                         testing::Combine(testing::ValuesIn(troubles({Fault::paused, Fault::silent,
                                                                      Fault::flooded})),
                                          testing::Range<size_t>(0, std::size(kPhases))),
                         name_of);

/// There is no session yet to which nodes could be added: one that may change opens with a list here, as a fixed one does.
class HandshakeTrouble : public testing::TestWithParam<Trouble> {};

TEST_P(HandshakeTrouble, ends_open_with_the_victims_name_or_does_no_harm) {
  const Trouble& trouble = GetParam();
  TroubledCluster cluster(trouble, Phase::opened, connect_limit());
  if (const std::string problem = cluster.prepare(); !problem.empty()) GTEST_SKIP() << problem;
  // It dials node 0, whose process has not been started yet, and waits for an answer to its HELLO.
  // What dials has time until it has been seen; only a victim that is stopped gives up later.
  cluster.set_connect_limit(kVictim, trouble.fault == Fault::stopped ? seconds(5) : kAmple);
  cluster.start(kVictim);
  cluster.await_dial(0);
  cluster.hit();
  const auto hit = Clock::now();
  for (const uint32_t n : {0u, 1u}) cluster.start(n);
  cluster.close_listeners();
  if (!loses(trouble.fault)) {
    cluster.relieve();
    for (uint32_t n = 0; n < kFaultNodes; ++n) EXPECT_EQ(cluster.hear(n), "open") << "node " << n;
    cluster.expect_others_go_on();
    cluster.close();
  } else {
    for (const uint32_t n : {0u, 1u}) expect_contains(cluster.hear(n), "node 2 (");
    EXPECT_LT(Clock::now() - hit, connect_limit() + kMore);
    for (const uint32_t n : {0u, 1u}) cluster.expect_end(n);
    cluster.relieve();
    if (trouble.fault == Fault::stopped) {
      expect_contains(cluster.hear(kVictim), "failed");
      cluster.expect_end(kVictim);
    }
    cluster.expect_no_files();
  }
}

INSTANTIATE_TEST_SUITE_P(Handshake, HandshakeTrouble,
                         testing::ValuesIn(troubles({Fault::killed, Fault::stopped, Fault::paused,
                                                     Fault::flooded})),
                         [](const auto& param) { return param.param.name(); });

}  // namespace
}  // namespace faro::test
