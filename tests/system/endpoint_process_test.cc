// Channels between processes, one of which is killed at every phase of a channel's life, or stopped for too long: the other
// is told why, keeps nothing of it, and goes on with the others.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/child.h"
#include "support/cutting_proxy.h"
#include "support/endpoint_pair.h"
#include "support/expect.h"

namespace faro::test {
namespace {

using Kind = ChannelEvent::Kind;

/// When the child kills itself.
enum class Phase { accepting, opened, receiving, sending, draining, never };

const char* name_of(Phase phase) {
  constexpr const char* kNames[] = {"accepting", "opened",   "receiving",
                                    "sending",   "draining", "never"};
  return kNames[static_cast<int>(phase)];
}

Config config_of(const std::string& transport) {
  Config config;
  EXPECT_TRUE(is_ok(config.set("transport", transport)));
  // What ends sooner than this was not noticed by silence, nor given up after a time.
  EXPECT_TRUE(is_ok(config.set("liveness.timeout_ms", 3'600'000)));
  EXPECT_TRUE(is_ok(config.set("link.mend_ms", 3'600'000)));
  return config;
}

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

/// Serves channels until its end of the pipe closes: answers each frame with itself.
int serve(const Child::Side& parent, const Config& config, Phase dies) {
  const auto die_in = [dies](Phase phase) {
    if (dies == phase) raise(SIGKILL);
  };
  EndpointSide side(config, {.name = "child", .accept = [&](const ChannelRequest&) {
                               die_in(Phase::accepting);
                               return ChannelAcceptance{};
                             }});
  parent.say(side.address());
  for (;;) {
    const ChannelEvent event = side.next();
    if (event.kind == Kind::opened) die_in(Phase::opened);
    if (event.kind != Kind::frame) continue;
    die_in(Phase::receiving);
    EXPECT_TRUE(side.send(event.channel, text_of(event.data)));
    die_in(Phase::sending);
    side.poller().release(event.channel, event.token);
    if (dies == Phase::draining) {
      side.poller().close(event.channel, Closing::drain);
      raise(SIGKILL);
    }
  }
}

class EndpointProcesses : public testing::TestWithParam<const char*> {
 protected:
  Config config_ = config_of(GetParam());
};

INSTANTIATE_TEST_SUITE_P(over, EndpointProcesses, testing::Values("shm", "tcp"),
                         [](const auto& over) { return std::string(over.param); });

TEST_P(EndpointProcesses, tell_who_was_killed_in_whichever_phase) {
  for (const Phase phase :
       {Phase::accepting, Phase::opened, Phase::receiving, Phase::sending, Phase::draining}) {
    SCOPED_TRACE(name_of(phase));
    // A peer that dies before there is a link is dialled again for that long.
    Config config = config_;
    if (phase == Phase::accepting) {
      ASSERT_TRUE(is_ok(config.set("connect.timeout_ms", 300)));
    }
    Child child([&](const Child::Side& parent) { return serve(parent, config, phase); });
    const std::string address = child.hear().value();
    EndpointSide client(config, {.name = "client"});
    const ChannelId id = client.connect(address);
    ChannelEvent event = client.next();
    while (event.kind != Kind::closed) {
      if (event.kind == Kind::opened) client.send(id, "frame");
      if (event.kind == Kind::frame) client.poller().release(id, event.token);
      event = client.next();
    }
    const Status cause = client.poller().status(id);
    EXPECT_EQ(cause.code(), phase == Phase::accepting ? Code::connect_failed : Code::peer_lost);
    expect_contains(cause.message(), address);
    EXPECT_EQ(child.wait_for_end(), -SIGKILL);
  }
}

// A side that has accepted a channel asks where the other listens.
TEST_P(EndpointProcesses,
       that_had_dialled_are_known_to_be_dead_though_the_connection_was_broken_before) {
  for (const bool breaks : {false, true}) {
    Child child([&](const Child::Side& parent) {
      EndpointSide side(config_, {.name = "child"});
      (void)side.connect(parent.hear());
      side.expect(Kind::opened);
      parent.say("opened");
      for (;;) (void)side.next();
      return 0;
    });
    EndpointSide server(config_, {.name = "server"});
    CuttingProxy proxy(server.address());
    child.say(proxy.address());
    const ChannelId id = server.expect(Kind::opened).channel;
    EXPECT_EQ(child.hear(), "opened");  // or its link would not be mended
    if (breaks) proxy.separate();
    child.signal(SIGKILL);
    const Status cause = server.expect_closed(id);
    EXPECT_EQ(cause.code(), Code::peer_lost);
    expect_contains(cause.message(), "refused");
  }
}

TEST_P(EndpointProcesses, are_not_waited_for_when_they_do_not_answer) {
  ASSERT_TRUE(is_ok(config_.set("connect.timeout_ms", 100)));
  Child child([&](const Child::Side& parent) { return serve(parent, config_, Phase::never); });
  const std::string address = child.hear().value();
  child.stop();
  EndpointSide client(config_);
  const ChannelId id = client.connect(address);  // the kernel accepts it, nobody says HELLO
  const Status cause = client.expect_closed(id);
  EXPECT_EQ(cause.code(), Code::connect_failed);
  expect_contains(cause.message(), "connect.timeout_ms = 100");
}

TEST_P(EndpointProcesses, that_hang_are_lost_after_their_time) {
  ASSERT_TRUE(is_ok(config_.set("liveness.timeout_ms", 400)));
  Child child([&](const Child::Side& parent) { return serve(parent, config_, Phase::never); });
  const std::string address = child.hear().value();
  EndpointSide client(config_);
  const ChannelId id = client.connect(address);
  client.expect(Kind::opened);
  child.stop();
  const Status cause = client.expect_closed(id);
  EXPECT_EQ(cause.code(), Code::peer_lost);
  expect_contains(cause.message(), "liveness.timeout_ms = 400");
}

TEST_P(EndpointProcesses, that_are_killed_leave_nothing_behind_and_others_go_on) {
  constexpr int kClients = 12;
  Child steady([&](const Child::Side& parent) { return serve(parent, config_, Phase::never); });
  std::vector<std::unique_ptr<Child>> victims;
  for (int each = 0; each < kClients; ++each) {
    victims.push_back(std::make_unique<Child>(
        [&](const Child::Side& parent) { return serve(parent, config_, Phase::sending); }));
  }
  const std::string steady_address = steady.hear().value();
  EndpointSide client(config_);
  const ChannelId kept = client.connect(steady_address);
  client.expect(Kind::opened);
  const size_t descriptors = open_descriptors();
  for (const auto& victim : victims) {
    const ChannelId id = client.connect(victim->hear().value());
    client.expect(Kind::opened);
    client.send(id, "your last one");
    ChannelEvent event = client.next();
    while (event.kind != Kind::closed) {
      if (event.kind == Kind::frame) client.poller().release(id, event.token);
      event = client.next();
    }
    EXPECT_TRUE(client.send(kept, "go on"));
    client.expect_frame("go on");
  }
  // The network thread destroys the last link a round after it was told.
  client.poller().close(kept, Closing::now);
  EXPECT_EQ(client.expect_closed(kept).code(), Code::closed);
  client.endpoint().close();
  EXPECT_LE(open_descriptors(), descriptors);
}

}  // namespace
}  // namespace faro::test
