// What the network thread of an endpoint does for channels with which nothing happens: it waits. Its rounds are made by hand.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "endpoint/endpoint_core.h"
#include "links/socket_network.h"
#include "ring/futex_waiter.h"
#include "support/cluster.h"
#include "support/cutting_proxy.h"
#include "support/expect.h"

namespace faro::test {
namespace {

using Kind = ChannelEvent::Kind;

/// The system's, which the test puts forward.
class ShiftedClock final : public base::Clock {
 public:
  base::Nanoseconds now_ns() const noexcept override {
    return base::SystemClock::instance().now_ns() + shift_;
  }
  void advance(base::Nanoseconds by) { shift_ += by; }

 private:
  base::Nanoseconds shift_ = 0;
};

/// Another one's, with a clock of its own.
class ReactorWithClock final : public transport::Reactor {
 public:
  ReactorWithClock(transport::Reactor& inner, const base::Clock& clock)
      : inner_(inner), clock_(clock) {}
  Status add(int fd, uint32_t epoll_events, Handler handler) override {
    return inner_.add(fd, epoll_events, std::move(handler));
  }
  void change(int fd, uint32_t epoll_events) override { inner_.change(fd, epoll_events); }
  void remove(int fd) noexcept override { inner_.remove(fd); }
  void defer(std::function<void()> task) override { inner_.defer(std::move(task)); }
  const base::Clock& clock() const override { return clock_; }

 private:
  transport::Reactor& inner_;
  const base::Clock& clock_;
};

/// Never waits, and keeps how long it was to wait.
class HandDrivenNetwork final : public ForwardingNetwork {
 public:
  HandDrivenNetwork(std::unique_ptr<links::Network> inner, const base::Clock& clock)
      : ForwardingNetwork(std::move(inner)), reactor_(ForwardingNetwork::reactor(), clock) {}
  transport::Reactor& reactor() override { return reactor_; }
  bool run_once(base::Nanoseconds until) override {
    until_ = until;
    return ForwardingNetwork::run_once(0);
  }
  bool wants_thread() const override { return false; }
  base::Nanoseconds until() const { return until_; }

 private:
  ReactorWithClock reactor_;
  base::Nanoseconds until_ = 0;
};

using SettingList = std::vector<std::pair<const char*, const char*>>;

base::Settings settings(const SettingList& more) {
  Config config;
  for (const auto& [key, value] : {std::pair{"transport", "tcp"}, {"close.timeout_ms", "20"}})
    EXPECT_TRUE(is_ok(config.set(key, value)));
  for (const auto& [key, value] : more) EXPECT_TRUE(is_ok(config.set(key, value)));
  return base::Settings::resolve_without_nodes(config).value();
}

/// An endpoint whose rounds and poller are driven by the test's thread.
class Side {
 public:
  /// The clock outlives it.
  explicit Side(const base::Clock& clock = base::SystemClock::instance(),
                const SettingList& more = {}, EndpointSpec spec = {})
      : settings_(settings(more)) {
    auto network = std::make_unique<HandDrivenNetwork>(
        links::SocketNetwork::create(settings_, "127.0.0.1:0").value(), clock);
    network_ = network.get();
    core_ = endpoint::EndpointCore::open(settings_, std::move(spec), std::move(network), [] {
              return std::make_unique<ring::FutexWaiter>();
            }).value();
  }

  endpoint::EndpointCore& core() { return *core_; }
  endpoint::PollerCore& poller() { return core_->poller(0); }
  /// A round, and a look at what it brought. Returns whether anything happened.
  bool turn() {
    const bool worked = core_->do_work();
    (void)poller().wait(Wait::none());
    ChannelEvent some[16];
    const auto taken = poller().poll(some);
    events.insert(events.end(), taken.begin(), taken.end());
    return worked || !taken.empty();
  }
  size_t count(Kind kind) const {
    return static_cast<size_t>(std::count_if(
        events.begin(), events.end(), [kind](const auto& event) { return event.kind == kind; }));
  }
  /// Whether its thread would wait now, and at most until it has to send heartbeats.
  void expect_waiting() const {
    const base::Nanoseconds now = network_->reactor().clock().now_ns();
    EXPECT_GT(network_->until(), now);
    EXPECT_LE(network_->until(), now + settings_.liveness_timeout_ms * 1'000'000 / 4);
  }

  std::vector<ChannelEvent> events;

 private:
  const base::Settings settings_;
  HandDrivenNetwork* network_ = nullptr;
  std::unique_ptr<endpoint::EndpointCore> core_;
};

class EndpointRounds : public testing::Test {
 protected:
  template <typename Reached>
  void turn_until(Reached&& reached) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!reached()) {
      client_.turn(), server_.turn();
      if (std::chrono::steady_clock::now() > limit) throw std::runtime_error("it never happens");
    }
  }
  // Until nothing happens any more.
  void settle() {
    for (int quiet = 0; quiet < 20;) {
      const bool client = client_.turn(), server = server_.turn();
      quiet = client || server ? 0 : quiet + 1;
    }
  }
  ChannelId connect() {
    const auto id = client_.poller().connect(server_.core().address(), {});
    EXPECT_TRUE(is_ok(id));
    return *id;
  }

  Side client_, server_;
};

TEST_F(EndpointRounds, wait_for_heartbeats_only_while_channels_are_idle) {
  for (int channel = 0; channel < 5; ++channel) connect();
  turn_until([&] { return client_.count(Kind::opened) == 5 && server_.count(Kind::opened) == 5; });
  settle();
  client_.expect_waiting();
  server_.expect_waiting();
}

TEST_F(EndpointRounds, wait_while_a_frame_of_a_closed_channel_is_held) {
  const ChannelId id = connect();
  turn_until([&] { return client_.count(Kind::opened) == 1 && server_.count(Kind::opened) == 1; });
  std::span<std::byte> room;
  ASSERT_EQ(client_.poller().claim(id, 8, 8, room), Outcome::done);
  std::memset(room.data(), 1, room.size());
  ASSERT_EQ(client_.poller().commit(id, 8), Outcome::done);
  turn_until([&] { return server_.count(Kind::frame) == 1; });
  client_.poller().close(id, Closing::now);
  turn_until([&] { return client_.count(Kind::closed) == 1 && server_.count(Kind::closed) == 1; });
  settle();
  client_.expect_waiting();
  server_.expect_waiting();
  const ChannelEvent frame = *std::find_if(server_.events.begin(), server_.events.end(),
                                           [](const auto& e) { return e.kind == Kind::frame; });
  EXPECT_EQ(frame.data[7], std::byte{1});
  server_.poller().release(frame.channel, frame.token);
  settle();
  server_.expect_waiting();
}

TEST_F(EndpointRounds, wait_when_a_channel_was_drained) {
  const ChannelId id = connect();
  turn_until([&] { return client_.count(Kind::opened) == 1 && server_.count(Kind::opened) == 1; });
  client_.poller().close(id, Closing::drain);
  turn_until([&] { return client_.count(Kind::closed) == 1 && server_.count(Kind::closed) == 1; });
  EXPECT_TRUE(is_ok(client_.poller().status(id)));
  settle();
  client_.expect_waiting();
  server_.expect_waiting();
}

TEST_F(EndpointRounds, drain_no_channel_as_idle_that_waits_for_room_or_whose_frames_are_held) {
  const ChannelId id = connect();
  turn_until([&] { return client_.count(Kind::opened) == 1 && server_.count(Kind::opened) == 1; });
  const auto idle = [](Side& side, ChannelId channel) {
    side.poller().tell({.id = channel, .cause = Status(Code::closed, "idle"), .is_idle = true});
    side.turn();
  };
  // The client fills the ring, and waits for room; the server holds what has come.
  std::span<std::byte> room;
  while (client_.poller().claim(id, 4096, 4096, room) == Outcome::done)
    ASSERT_EQ(client_.poller().commit(id, 4096), Outcome::done);
  settle();
  std::vector<ChannelEvent> frames;
  std::copy_if(server_.events.begin(), server_.events.end(), std::back_inserter(frames),
               [](const auto& event) { return event.kind == Kind::frame; });
  ASSERT_FALSE(frames.empty());
  const ChannelId at_server = frames.front().channel;
  idle(client_, id);
  idle(server_, at_server);
  EXPECT_TRUE(client_.poller().is_open(id));
  EXPECT_TRUE(server_.poller().is_open(at_server));
  for (const ChannelEvent& frame : frames) server_.poller().release(at_server, frame.token);
  turn_until([&] { return client_.count(Kind::room) == 1; });
  idle(client_, id);
  turn_until([&] { return client_.count(Kind::closed) == 1 && server_.count(Kind::closed) == 1; });
  EXPECT_EQ(client_.poller().status(id).message(), "idle");
  EXPECT_TRUE(is_ok(server_.poller().status(at_server)));
}

// The look comes while there is no connection, and finds nothing to look at.
TEST(IdleChannel, is_drained_though_it_was_being_mended_when_idle_ones_were_looked_for) {
  constexpr base::Nanoseconds kSecond = 1'000'000'000;
  const SettingList settings = {{"channel.idle_ms", "40000"},
                                {"link.mend_ms", "3600000"},
                                {"liveness.timeout_ms", "3600000"},
                                {"close.timeout_ms", "30000"}};
  ShiftedClock clock;
  Side client(clock, settings), server(clock, settings);
  CuttingProxy proxy(server.core().address());
  ASSERT_TRUE(proxy.is_ready());
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto turn_until = [&](const std::function<bool()>& reached) {
    while (!reached()) {
      client.turn(), server.turn();
      if (std::chrono::steady_clock::now() > limit) throw std::runtime_error("it never happens");
    }
  };
  const ChannelId id = client.poller().connect(proxy.address(), {}).value();
  turn_until([&] { return client.count(Kind::opened) == 1 && server.count(Kind::opened) == 1; });
  proxy.separate();
  for (int turn = 0; turn < 10; ++turn) client.turn(), server.turn();
  clock.advance(11 * kSecond);  // the next look
  for (int turn = 0; turn < 10; ++turn) client.turn(), server.turn();
  proxy.reunite();
  std::span<std::byte> room;
  ASSERT_EQ(client.poller().claim(id, 8, 8, room), Outcome::done);
  ASSERT_EQ(client.poller().commit(id, 8), Outcome::done);
  turn_until([&] { return server.count(Kind::frame) == 1; });
  const ChannelEvent frame = server.events.back();
  server.poller().release(frame.channel, frame.token);
  const auto are_open = [&] {  // no time passes while it is drained
    return client.poller().is_open(id) && server.poller().is_open(frame.channel);
  };
  for (int look = 0; look < 10 && are_open(); ++look) {
    clock.advance(11 * kSecond);
    for (int turn = 0; turn < 10; ++turn) client.turn(), server.turn();
  }
  EXPECT_FALSE(are_open()) << "it is not drained";
  turn_until([&] { return client.count(Kind::closed) == 1 && server.count(Kind::closed) == 1; });
  // Both have the same setting: either may be the one that has drained it.
  const Status at_client = client.poller().status(id);
  const Status at_server = server.poller().status(frame.channel);
  for (const Status* const each : {&at_client, &at_server}) {
    EXPECT_TRUE(each->ok() || contains(std::string(each->message()), "channel.idle_ms = 40000"))
        << each->to_string();
  }
  EXPECT_FALSE(at_client.ok() && at_server.ok());
}

// Else a thread that has nothing to do would have each frame cost two switches to the network thread and back.
TEST(PollersOfAnEndpoint,
     do_not_have_the_network_thread_read_for_one_that_looks_while_another_sleeps) {
  EndpointSpec spec;
  spec.poller_count = 2;
  Side client, server(base::SystemClock::instance(), {{"wait.yields", "0"}}, spec);
  endpoint::PollerCore& idle = server.core().poller(1);
  std::thread sleeper([&] { EXPECT_EQ(idle.wait(Wait::forever()), Outcome::done); });
  while (!idle.waiting().try_enter()) std::this_thread::yield();  // it sleeps
  idle.waiting().leave();
  const auto id = client.poller().connect(server.core().address(), {});
  ASSERT_TRUE(is_ok(id));
  while (client.count(Kind::opened) == 0 || server.count(Kind::opened) == 0)
    client.turn(), server.turn();
  for (int quiet = 0; quiet < 20; ++quiet) {
    if (client.turn() | server.turn()) quiet = 0;
  }
  std::span<std::byte> room;
  ASSERT_EQ(client.poller().claim(*id, 8, 8, room), Outcome::done);
  ASSERT_EQ(client.poller().commit(*id, 8), Outcome::done);
  client.poller().post();
  ChannelEvent event[1];
  for (int round = 0; round < 100; ++round) {
    (void)server.core().do_work();
    ASSERT_TRUE(server.poller().poll(event).empty()) << "the network thread has read it";
  }
  while (server.count(Kind::frame) == 0) server.turn();
  idle.waiting().wake();
  sleeper.join();
}

/// Counts how often a poller reads the sockets.
class CountingNetwork final : public transport::IdleWork {
 public:
  bool poll() noexcept override { return ++polls, false; }

  int polls = 0;
};

/// Waits by calling what the test does meanwhile.
class VisitedWaiter final : public ring::Waiter {
 public:
  /// `sleep`: none is expected.
  explicit VisitedWaiter(std::function<void()> visit, std::function<void()> sleep = {})
      : visit_(std::move(visit)), sleep_(std::move(sleep)) {}
  void yield() noexcept override { visit_(); }
  void sleep(ring::Doorbell&, uint64_t) noexcept override {
    if (sleep_) return sleep_();
    ADD_FAILURE() << "nobody has come";
    visit_();
  }

 private:
  const std::function<void()> visit_;
  const std::function<void()> sleep_;
};

// This is the address of a peer that has dialled.
TEST(ListeningAddress, is_what_the_peer_says_unless_that_leads_elsewhere) {
  const struct {
    const char* said;
    const char* from;
    const char* dialled;
  } kCases[] = {
      {"10.0.0.2:7000", "10.0.0.2:41234", "10.0.0.2:7000"},
      {"[fd00::2]:7000", "[fd00::2]:41234", "[fd00::2]:7000"},
      {"10.0.0.2:7000", "[::ffff:10.0.0.2]:41234", "10.0.0.2:7000"},
      {"worker-2.example:7000", "10.0.0.2:41234", "worker-2.example:7000"},
      // At all addresses of its host.
      {"0.0.0.0:7000", "10.0.0.2:41234", "10.0.0.2:7000"},
      {"[::]:7000", "[fd00::2]:41234", "[fd00::2]:7000"},
      // Behind a translation of addresses.
      {"172.17.0.2:7000", "10.0.0.2:41234", ""},
      {"127.0.0.1:7000", "10.0.0.2:41234", ""},
  };
  for (const auto& each : kCases)
    EXPECT_EQ(endpoint::listening_address(each.said, each.from), each.dialled) << each.said;
}

// Other channels may wait for what is in them.
TEST(PollerWait, reads_the_sockets_now_and_then_though_it_always_finds_something) {
  CountingNetwork network;
  base::ManualClock clock;
  ring::ReadyWatch ready_watch({});
  endpoint::PollerWait poller(network, clock, std::make_unique<ring::FutexWaiter>(), {},
                              transport::shm::NodeDoorbells::make(1).value(), ready_watch);
  const auto wait = [&] {
    return poller.wait(Wait::forever(), ring::WokenFor::all, [] { return true; });
  };
  EXPECT_EQ(wait(), Outcome::done);
  EXPECT_EQ(network.polls, 1);
  for (int each = 0; each < 1000; ++each) (void)wait();
  EXPECT_EQ(network.polls, 1);  // no time has passed
  clock.advance(200'000);
  for (int each = 0; each < 1000; ++each) (void)wait();
  EXPECT_EQ(network.polls, 2);
}

TEST(PollerWait, yields_no_longer_than_it_may_wait) {
  CountingNetwork network;
  base::ManualClock clock;
  ring::ReadyWatch ready_watch({});
  int yields = 0;
  const auto visit = [&] {
    ++yields;
    clock.advance(400);
  };
  endpoint::PollerWait poller(network, clock, std::make_unique<VisitedWaiter>(visit),
                              {.yields = 1000}, transport::shm::NodeDoorbells::make(1).value(),
                              ready_watch);
  const auto look = [] { return false; };
  EXPECT_EQ(poller.wait(Wait::at_most(std::chrono::nanoseconds(1000)), ring::WokenFor::all, look),
            Outcome::deadline);
  EXPECT_EQ(yields, 3);
}

// A task that has something to send need not hand it over to a poller that looks for work in vain.
TEST(PollerWait, counts_four_yields_that_let_nobody_run_as_one) {
  const struct {
    base::Nanoseconds takes;
    uint32_t yields;
  } kCases[] = {{20'000, 5}, {400, 20}};
  for (const auto& each : kCases) {
    CountingNetwork network;
    base::ManualClock clock;
    ring::ReadyWatch ready_watch({});
    uint32_t yields = 0;
    const auto visit = [&] {
      ++yields;
      clock.advance(each.takes);
    };
    endpoint::PollerWait poller(
        network, clock, std::make_unique<VisitedWaiter>(visit, [&] { clock.advance(1'000'000); }),
        {.yields = 5}, transport::shm::NodeDoorbells::make(1).value(), ready_watch);
    EXPECT_EQ(poller.wait(Wait::at_most(std::chrono::milliseconds(1)), ring::WokenFor::all,
                          [] { return false; }),
              Outcome::deadline);
    EXPECT_EQ(yields, each.yields);
  }
}

// It looks sooner than another thread could take its place.
TEST(PollerWait, lets_no_other_thread_enter_where_yields_let_nobody_run) {
  CountingNetwork network;
  base::ManualClock clock;
  ring::ReadyWatch ready_watch({});
  endpoint::PollerWait* waiting = nullptr;
  std::vector<bool> entered;
  const std::vector<base::Nanoseconds> takes = {400, 400, 20'000, 20'000, 400, 400};
  const auto visit = [&] {
    clock.advance(takes[entered.size()]);
    entered.push_back(waiting->try_enter());
    if (entered.back()) waiting->leave();
  };
  endpoint::PollerWait poller(network, clock, std::make_unique<VisitedWaiter>(visit), {.yields = 6},
                              transport::shm::NodeDoorbells::make(1).value(), ready_watch);
  waiting = &poller;
  EXPECT_EQ(poller.wait(Wait::forever(), ring::WokenFor::all,
                        [&] { return entered.size() == takes.size(); }),
            Outcome::done);
  EXPECT_EQ(entered, (std::vector<bool>{true, false, false, true, true, false}));
}

TEST(PollerWait, lets_another_thread_enter_while_it_yields_and_waits_until_that_has_left) {
  CountingNetwork network;
  base::ManualClock clock;
  ring::ReadyWatch ready_watch({});
  endpoint::PollerWait* waiting = nullptr;
  int yields = 0;
  bool has_left = false;
  const auto visit = [&] {
    if (++yields == 1) {
      EXPECT_TRUE(waiting->try_enter());
      EXPECT_FALSE(waiting->try_enter());
    } else if (yields == 3) {
      waiting->leave();
      has_left = true;
    }
  };
  endpoint::PollerWait poller(network, clock, std::make_unique<VisitedWaiter>(visit), {.yields = 1},
                              transport::shm::NodeDoorbells::make(1).value(), ready_watch);
  waiting = &poller;
  const auto look = [&] {
    EXPECT_EQ(has_left, yields > 0);
    return has_left;
  };
  EXPECT_EQ(poller.wait(Wait::forever(), ring::WokenFor::all, look), Outcome::done);
  EXPECT_EQ(yields, 3);
  EXPECT_FALSE(poller.try_enter());  // it does not wait any more
}

}  // namespace
}  // namespace faro::test
