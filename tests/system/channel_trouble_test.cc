// Faults for real, over channels: the peer of a channel is killed, stopped, cut off, silent or
// flooded with connections, in each phase of the channel. The peer that has the channel is told, by
// the peer's address and within the time limit; a channel to somebody else goes on; and nothing is
// left of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "faro/endpoint.h"
#include "faro/log.h"
#include "support/child.h"
#include "support/expect.h"
#include "support/test_network.h"
#include "support/traces.h"
#include "support/watchdog.h"
#include "system/cables.h"
#include "system/unauthenticated_peers.h"

namespace faro::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Kind = ChannelEvent::Kind;

enum class Fault {
  killed,   // kill -9
  stopped,  // SIGSTOP, for longer than the time limit
  cut,      // its network cable is pulled
  paused,   // SIGSTOP, for less than the time limit
  silent,   // its poller makes no call
  flooded,  // hundreds of unauthenticated peers connect
};
constexpr const char* kFaultNames[] = {"killed", "stopped", "cut", "paused", "silent", "flooded"};

milliseconds limit_of(Fault fault) {
  return milliseconds(fault == Fault::stopped || fault == Fault::cut ? 1000 : 3000);
}
constexpr milliseconds kMore{1000};  // what it may take beyond the time limit
constexpr std::chrono::seconds kHang{40};

/// What the victim is doing when it is hit: it says "there" and its poller makes no call until "go on".
enum class Phase {
  opened,    // the channel is open, nothing was sent
  mid,       // both send, take and release
  held,      // it has taken frames and has not released them
  full,      // it takes nothing: the ring towards it is full
  draining,  // it has closed the channel, in order
};
constexpr const char* kPhaseNames[] = {"opened", "mid", "held", "full", "draining"};

constexpr uint32_t kRingBytes = 16 * 1024;
constexpr uint32_t kFrames = 400;  // that travel each way
constexpr uint32_t kWords = 64;    // of a frame
constexpr uint32_t kStayAfter = 8;

/// What the n-th frame of a side contains.
void write_frame(std::span<std::byte> room, uint64_t n) {
  uint64_t words[kWords];
  for (uint64_t i = 0; i < kWords; ++i) words[i] = n * kWords + i;
  std::memcpy(room.data(), words, sizeof(words));
}
bool is_frame(std::span<const std::byte> data, uint64_t n) {
  std::vector<std::byte> expected(kWords * sizeof(uint64_t));
  write_frame(expected, n);
  return data.size() == expected.size() &&
         std::memcmp(data.data(), expected.data(), data.size()) == 0;
}

/// A peer's whole program: one thread, one poller. The client has a channel to the victim and one to the bystander; all send
/// kFrames frames over each and compare those that come; the client drains a channel when it has all.
class Peer {
 public:
  enum class Role { client, victim, bystander };

  Peer(Role role, Phase phase, const Child::Side& test) : role_(role), phase_(phase), test_(test) {}

  Status open(const Config& config) {
    EndpointSpec spec{.name = "peer"};
    spec.accept = [](const ChannelRequest&) { return ChannelAcceptance{}; };
    auto opened = Endpoint::open(config, std::move(spec));
    if (opened.ok()) endpoint_ = std::move(*opened);
    return opened.status();
  }
  const std::string& address() const { return endpoint_->address(); }

  /// Until the channels to these, or the first channel that comes, have closed; says how: "victim ok", "bystander peer_lost …".
  void serve(const std::vector<std::pair<std::string, std::string>>& dialled) {
    for (const auto& [name, address] : dialled) {
      const Result<ChannelId> id =
          poller().connect(address, {.send_bytes = kRingBytes, .receive_bytes = kRingBytes});
      if (!id.ok()) return complain(id.status().to_string());
      channels_.push_back({.name = name, .id = *id});
    }
    size_t closed = 0;
    while (closed < std::max<size_t>(channels_.size(), 1)) {
      const Outcome outcome = poller().wait(Wait::at_most(kHang));
      if (outcome != Outcome::done) return complain(outcome_name(outcome));
      ChannelEvent some[8];
      for (const ChannelEvent& event : poller().poll(some)) {
        Traffic& channel = of(event.channel);
        if (event.kind == Kind::closed) {
          const Status why = poller().status(event.channel);
          const bool is_whole = channel.taken == kFrames && channel.sent == kFrames;
          if (why.ok() && !is_whole)
            complain(fmt::format("{} of {} frames", channel.taken, kFrames));
          test_.say(channel.name + " " + why.to_string());
          ++closed;
        } else {
          use(channel, event);
        }
      }
    }
  }
  void close() {
    endpoint_->close();
    endpoint_.reset();
  }

 private:
  struct Traffic {
    std::string name = "client";
    ChannelId id{};
    uint64_t sent = 0, taken = 0;
    bool stayed = false;
    std::deque<uint32_t> held{};
  };

  Poller& poller() { return endpoint_->poller(0); }
  void complain(const std::string& what) { test_.say("complaint: " + what); }

  Traffic& of(ChannelId id) {
    for (Traffic& each : channels_) {
      if (each.id == id) return each;
    }
    channels_.push_back({.id = id});
    return channels_.back();
  }

  void use(Traffic& channel, const ChannelEvent& event) {
    const bool is_first = phase_ == Phase::opened || phase_ == Phase::full;
    if (event.kind == Kind::opened && is_first) stay(channel);
    if (event.kind == Kind::opened && channel.name == "victim") test_.say("victim open");
    if (event.kind == Kind::frame) {
      if (!is_frame(event.data, channel.taken)) complain("a frame is wrong");
      ++channel.taken;
      channel.held.push_back(event.token);
      const bool enough = channel.held.size() >= kStayAfter;
      if (enough && phase_ == Phase::held) stay(channel);
      if (role_ != Role::victim || phase_ != Phase::held || channel.stayed) release(channel);
      if (channel.taken == kStayAfter && phase_ == Phase::mid) stay(channel);
    }
    send(channel);
    const bool has_all = channel.sent == kFrames && channel.taken == kFrames;
    const bool ends = phase_ == Phase::draining ? role_ == Role::victim : role_ == Role::client;
    if (has_all && (ends || channel.name == "bystander")) {
      poller().close(channel.id, Closing::drain);
      if (phase_ == Phase::draining) stay(channel);
    }
  }

  void release(Traffic& channel) {
    for (const uint32_t token : channel.held) poller().release(channel.id, token);
    channel.held.clear();
  }

  void send(Traffic& channel) {
    constexpr size_t kBytes = kWords * sizeof(uint64_t);
    std::span<std::byte> room;
    while (channel.sent < kFrames) {
      if (poller().claim(channel.id, kBytes, kBytes, room) != Outcome::done) return;
      write_frame(room, channel.sent);
      if (poller().commit(channel.id, kBytes) != Outcome::done) return;
      ++channel.sent;
    }
  }

  // The victim, in its phase.
  void stay(Traffic& channel) {
    if (role_ != Role::victim || std::exchange(channel.stayed, true)) return;
    (void)poller().wait(Wait::none());  // so that all is posted
    test_.say("there");
    test_.hear();
  }

  const Role role_;
  const Phase phase_;
  const Child::Side& test_;
  std::unique_ptr<Endpoint> endpoint_;
  std::deque<Traffic> channels_;
};

constexpr uint32_t kClient = 0, kBystander = 1, kVictim = 2;

struct Trouble {
  Fault fault;
  std::string transport;
  Phase phase;

  std::string name() const {
    return fmt::format("{}_{}_{}", kFaultNames[static_cast<int>(fault)], transport,
                       kPhaseNames[static_cast<int>(phase)]);
  }
  friend void PrintTo(const Trouble& trouble, std::ostream* to) { *to << trouble.name(); }
};

bool has_given_cable() { return !node_cable(kVictim).empty(); }

std::vector<Trouble> troubles(std::initializer_list<Fault> faults) {
  std::vector<Trouble> made;
  for (const Fault fault : faults) {
    for (const std::string& transport : transports_to_test({"shm", "tcp"})) {
      if (fault == Fault::cut && transport != "tcp" && !has_given_cable()) continue;
      for (const Phase phase :
           {Phase::opened, Phase::mid, Phase::held, Phase::full, Phase::draining})
        made.push_back({fault, transport, phase});
    }
  }
  return made;
}

std::string name_of(const testing::TestParamInfo<Trouble>& info) { return info.param.name(); }

/// The victim was hit in its phase a moment ago; skipped where that is not possible.
class ChannelTrouble : public testing::TestWithParam<Trouble> {
 protected:
  void SetUp() override {
    if (trouble_.fault == Fault::cut && has_given_cable()) {
      cable_ = std::make_unique<GivenCable>(node_cable(kVictim));
    } else if (trouble_.fault == Fault::cut) {
      network_ = OwnNetwork::make();
      if (network_ == nullptr)
        GTEST_SKIP() << "this system permits no network of its own, or has no `ip`";
    }
    for (uint32_t n = 0; n < 3; ++n) ASSERT_NO_FATAL_FAILURE(start(n));
    nodes_[kClient]->say(addresses_[kVictim] + " " + addresses_[kBystander]);
    ASSERT_EQ(hear(kVictim), "there");
    // The victim knows of the channel before the client does.
    for (std::string said; (said = hear(kClient)) != "victim open";) {
      ASSERT_NE(said, "(it has ended)");
      said_before_.push_back(said);
    }
    hit();
    hit_ = Clock::now();
  }

  std::string hear(uint32_t n) { return nodes_[n]->hear().value_or("(it has ended)"); }
  /// How the next channel of the client has ended.
  std::string hear_client() {
    if (said_before_.empty()) return hear(kClient);
    const std::string said = said_before_.front();
    said_before_.pop_front();
    return said;
  }

  void start(uint32_t n) {
    nodes_[n] =
        std::make_unique<Child>([this, n](const Child::Side& test) { return run(n, test); });
    if (network_ != nullptr) {
      EXPECT_TRUE(network_->take_in(n, *nodes_[n]));
    }
    const std::string said = hear(n);
    ASSERT_TRUE(said.starts_with("at ")) << "peer " << n << ": " << said;
    addresses_[n] = said.substr(3);
  }

  void hit() {
    Child& victim = *nodes_[kVictim];
    switch (trouble_.fault) {
      case Fault::killed:
        return victim.signal(SIGKILL);
      case Fault::stopped:
      case Fault::paused:
        return victim.stop();
      case Fault::cut:
        return cable_ != nullptr ? cable_->pull() : network_->pull(kVictim);
      case Fault::silent:
        return;
      case Fault::flooded:
        for (const uint32_t n : {kClient, kVictim}) flood_.come_to(addresses_[n], 200);
    }
  }
  void relieve() {
    nodes_[kVictim]->signal(SIGCONT);
    nodes_[kVictim]->say("go on");
    flood_.leave();
  }
  void expect_end(uint32_t n) {
    EXPECT_EQ(hear(n), "well") << "peer " << n;
    EXPECT_EQ(nodes_[n]->wait_for_end(), 0) << "peer " << n;
  }

  // In the peer's process.
  int run(uint32_t n, const Child::Side& test) {
    if (network_ != nullptr) {
      if (!OwnNetwork::move_in(n, test)) return 1;
    }
    set_log_level(LogLevel::off);
    Config config;
    const std::string listen =
        network_ != nullptr ? OwnNetwork::address(n) + ":7100" : listen_address(n);
    const auto limit = std::to_string(limit_of(trouble_.fault).count());
    if (!config.set("transport", trouble_.transport).ok() ||
        !config.set("cluster.listen", listen).ok() ||
        !config.set("liveness.timeout_ms", limit).ok() || !config.set("counters.folder", "").ok() ||
        ((network_ != nullptr || names_addresses()) && !config.set("security.open", "1").ok()))
      return 1;
    Watchdog watchdog(kHang, [n] { return fmt::format("peer {}", n); });
    const Traces before = Traces::look();
    {
      constexpr Peer::Role kRoles[] = {Peer::Role::client, Peer::Role::bystander,
                                       Peer::Role::victim};
      Peer peer(kRoles[n], trouble_.phase, test);
      if (const Status opened = peer.open(config); !opened.ok()) {
        test.say(opened.to_string());
        return 1;
      }
      test.say("at " + peer.address());
      std::vector<std::pair<std::string, std::string>> dialled;
      if (n == kClient) {
        const std::string both = test.hear();
        dialled = {{"victim", both.substr(0, both.find(' '))},
                   {"bystander", both.substr(both.find(' ') + 1)}};
      }
      peer.serve(dialled);
      peer.close();
    }
    const std::string left = Traces::left_since(before);
    test.say(left.empty() ? "well" : "complaint: left are " + left);
    return left.empty() ? 0 : 1;
  }

  const Trouble& trouble_ = GetParam();
  std::unique_ptr<OwnNetwork> network_;
  std::unique_ptr<GivenCable> cable_;
  std::unique_ptr<Child> nodes_[3];
  std::string addresses_[3];
  std::deque<std::string> said_before_;  // by the client, until the victim was hit
  UnauthenticatedPeers flood_;
  Clock::time_point hit_;
};

class LosingTrouble : public ChannelTrouble {};

TEST_P(LosingTrouble, is_told_by_the_victims_address_and_in_time_and_others_go_on) {
  std::string first = hear_client(), second = hear_client();
  EXPECT_LT(Clock::now() - hit_, limit_of(trouble_.fault) + kMore);
  if (first.starts_with("victim")) std::swap(first, second);
  EXPECT_EQ(first, "bystander ok");
  expect_contains(second, "victim peer_lost");
  expect_contains(second, addresses_[kVictim]);
  EXPECT_EQ(hear(kBystander), "client ok");
  for (const uint32_t n : {kClient, kBystander}) expect_end(n);
  if (trouble_.fault == Fault::killed) return;
  relieve();
  const std::string own = hear(kVictim);
  // What the client had said before may have been all that it needed.
  if (trouble_.phase != Phase::draining || own != "client ok")
    expect_contains(own, "client peer_lost");
  expect_end(kVictim);
}

INSTANTIATE_TEST_SUITE_P(Phases, LosingTrouble,
                         testing::ValuesIn(troubles({Fault::killed, Fault::stopped, Fault::cut})),
                         name_of);

class HarmlessTrouble : public ChannelTrouble {};

TEST_P(HarmlessTrouble, delivers_every_frame_once_and_in_order) {
  // The other channel needs nothing of the victim.
  EXPECT_EQ(hear_client(), "bystander ok");
  EXPECT_EQ(hear(kBystander), "client ok");
  if (trouble_.fault == Fault::paused) std::this_thread::sleep_for(limit_of(Fault::paused) / 4);
  relieve();
  EXPECT_EQ(hear_client(), "victim ok");
  EXPECT_EQ(hear(kVictim), "client ok");
  for (uint32_t n = 0; n < 3; ++n) expect_end(n);
}

INSTANTIATE_TEST_SUITE_P(
    Phases, HarmlessTrouble,
    testing::ValuesIn(troubles({Fault::paused, Fault::silent, Fault::flooded})), name_of);

}  // namespace
}  // namespace faro::test
