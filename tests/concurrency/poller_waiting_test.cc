// What a poller waits for: quiet frames, reasons, and its descriptor in an event loop. No poller here ends a sleep by itself
// before the limit of a wait: a wake-up that is lost is a failure. That somebody is not woken is looked at for a moment
// (kMoment): too short a one could miss a mistake, and makes no test fail.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/endpoint_pair.h"
#include "support/expect.h"

namespace faro {
namespace {

using test::EndpointSide;
using test::is_ok;
using Kind = ChannelEvent::Kind;

constexpr auto kMoment = std::chrono::milliseconds(10);
constexpr Wait kAtMost = Wait::at_most(std::chrono::seconds(8));
constexpr int kAtMostMs = 8'000;
constexpr std::string_view kFrame = "0123456789";

Config config_of(std::string_view transport) {
  Config config;
  EXPECT_TRUE(is_ok(config.set("transport", transport)));
  EXPECT_TRUE(is_ok(config.set("wait.sleep_ms", "10000")));
  EXPECT_TRUE(is_ok(config.set("wait.yields", "0")));  // it sleeps at once
  return config;
}

bool is_readable(int descriptor, int timeout_ms = 0) {
  pollfd look{descriptor, POLLIN, 0};
  return poll(&look, 1, timeout_ms) == 1;
}
bool is_readable_soon(int descriptor) {
  return is_readable(descriptor, static_cast<int>(kMoment.count()));
}

/// A poller that waits on a thread of its own, and sleeps when the constructor has returned, unless it was woken at once.
class Sleeper {
 public:
  Sleeper(Poller& poller, WakeFor reasons)
      : poller_(poller), thread_([this, reasons] {
          outcome_ = poller_.wait(kAtMost, reasons);
          woken_ = true;
        }) {
    while (!woken_ && !is_asleep()) std::this_thread::yield();
  }
  /// Whether it sleeps now.
  bool is_asleep() {
    if (woken_ || !poller_.try_enter()) return false;
    poller_.leave();
    return true;
  }
  /// For a moment, at least.
  bool goes_on_sleeping() {
    std::this_thread::sleep_for(kMoment);
    return is_asleep();
  }
  /// How its wait ended.
  Outcome join() {
    if (thread_.joinable()) thread_.join();
    return outcome_;
  }

 private:
  Poller& poller_;
  Outcome outcome_ = Outcome::failed;
  std::atomic<bool> woken_{false};
  std::jthread thread_;
};

/// Two endpoints with an open channel of small rings.
class WaitingOver : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    at_client_ = client_.connect(server_, {.send_bytes = 4096, .receive_bytes = 4096});
    client_.expect(Kind::opened);
    at_server_ = server_.expect(Kind::opened).channel;
  }
  bool is_shm() const { return GetParam() == std::string_view("shm"); }

  static bool send(EndpointSide& side, ChannelId channel, std::string_view text, Notice notice) {
    const auto room = side.claim(channel, text.size(), text.size());
    if (room.data() == nullptr) return false;
    std::memcpy(room.data(), text.data(), text.size());
    EXPECT_EQ(side.poller().commit(channel, text.size(), notice), Outcome::done);
    side.poller().post();
    return true;
  }
  bool client_sends(std::string_view text, Notice notice = Notice::loud) {
    return send(client_, at_client_, text, notice);
  }
  // The client sends until a claim finds no room. Returns how many frames.
  int fill(Notice notice = Notice::loud) {
    int sent = 0;
    while (client_sends(kFrame, notice)) ++sent;
    return sent;
  }
  // The server reads that many frames, and tells that it has.
  void read(int frames) {
    for (int frame = 0; frame < frames; ++frame) server_.expect_frame(kFrame);
    EXPECT_NE(server_.poller().wait(Wait::none()), Outcome::failed);
  }
  // What the client's poller has to tell now, without waiting.
  std::vector<Kind> told() {
    std::vector<Kind> kinds;
    ChannelEvent events[8];
    for (const ChannelEvent& event : client_.poller().poll(events)) {
      kinds.push_back(event.kind);
      if (event.kind == Kind::frame) client_.poller().release(event.channel, event.token);
    }
    return kinds;
  }

  EndpointSide server_{config_of(GetParam()), {.name = "server"}};
  EndpointSide client_{config_of(GetParam()), {.name = "client"}};
  ChannelId at_client_, at_server_;
};

INSTANTIATE_TEST_SUITE_P(each, WaitingOver, testing::Values("shm", "tcp"),
                         [](const auto& over) { return std::string(over.param); });

// --- quiet frames

using QuietFrame = WaitingOver;
INSTANTIATE_TEST_SUITE_P(over, QuietFrame, testing::Values("shm", "tcp"),
                         [](const auto& over) { return std::string(over.param); });

TEST_P(QuietFrame, wakes_nobody_and_is_seen_with_the_next_loud_one) {
  Sleeper server(server_.poller(), WakeFor::frames_and_room);
  EXPECT_TRUE(client_sends("first", Notice::quiet));
  EXPECT_TRUE(client_sends("second", Notice::quiet));
  EXPECT_NE(client_.poller().wait(Wait::none()), Outcome::failed);  // which posts no more than that
  EXPECT_TRUE(server.goes_on_sleeping());
  EXPECT_TRUE(client_sends("third"));
  EXPECT_EQ(server.join(), Outcome::done);
  for (const char* text : {"first", "second", "third"}) server_.expect_frame(text);
}

TEST_P(QuietFrame, is_seen_on_one_host_when_its_receiver_looks) {
  if (!is_shm()) GTEST_SKIP() << "over a network it is not sent before a loud one";
  EXPECT_TRUE(client_sends("quiet", Notice::quiet));
  EXPECT_EQ(server_.poller().wait(kAtMost), Outcome::done);
  server_.expect_frame("quiet");
}

TEST_P(QuietFrame, stays_quiet_beside_a_loud_one_of_another_channel) {
  EndpointSide other(config_of(GetParam()));
  const ChannelId to_other = client_.connect(other);
  client_.expect(Kind::opened);
  other.expect(Kind::opened);
  Sleeper server(server_.poller(), WakeFor::frames_and_room);
  for (const auto& [channel, notice] :
       {std::pair(at_client_, Notice::quiet), std::pair(to_other, Notice::loud)}) {
    ASSERT_FALSE(client_.claim(channel, 1, 1).empty());
    EXPECT_EQ(client_.poller().commit(channel, 1, notice), Outcome::done);
  }
  client_.poller().post();
  EXPECT_EQ(other.expect(Kind::frame).data.size(), 1u);
  EXPECT_TRUE(server.goes_on_sleeping());
  client_.poller().close(at_client_, Closing::now);
  EXPECT_EQ(server.join(), Outcome::done);
}

TEST_P(QuietFrame, is_loud_with_a_loud_one_before_the_same_post) {
  Sleeper server(server_.poller(), WakeFor::frames_and_room);
  for (const Notice notice : {Notice::loud, Notice::quiet}) {
    ASSERT_FALSE(client_.claim(at_client_, 1, 1).empty());
    EXPECT_EQ(client_.poller().commit(at_client_, 1, notice), Outcome::done);
  }
  client_.poller().post();
  EXPECT_EQ(server.join(), Outcome::done);
  for (int frame = 0; frame < 2; ++frame) EXPECT_EQ(server_.expect(Kind::frame).data.size(), 1u);
}

TEST_P(QuietFrame, is_not_lost_when_its_channel_is_drained) {
  EXPECT_TRUE(client_sends("last words", Notice::quiet));
  client_.poller().close(at_client_, Closing::drain);
  server_.expect_frame("last words");
  std::jthread server([&] { EXPECT_TRUE(is_ok(server_.expect_closed(at_server_))); });
  EXPECT_TRUE(is_ok(client_.expect_closed(at_client_)));
}

TEST_P(QuietFrame, is_seen_when_there_is_no_room_left) {
  Sleeper server(server_.poller(), WakeFor::frames_and_room);
  const int sent = fill(Notice::quiet);
  EXPECT_EQ(server.join(), Outcome::done);
  read(sent);
  client_.expect(Kind::room);
}

// A larger claim found none: it finds some when the peer has read all.
TEST_P(QuietFrame, is_seen_while_its_channel_waits_for_room) {
  int sent = 0;
  while (client_sends(std::string(900, 'x'))) ++sent;
  std::vector<ChannelEvent> held;
  for (int frame = 0; frame < sent; ++frame) held.push_back(server_.expect(Kind::frame));
  // A wait would find it at its end in any case.
  const int descriptor = server_.poller().descriptor().value();
  ASSERT_EQ(server_.poller().arm(), Outcome::would_wait);
  ASSERT_TRUE(client_sends("small", Notice::quiet)) << "there is no room for it";
  EXPECT_TRUE(is_readable(descriptor, kAtMostMs));
  server_.expect_frame("small");
}

// The end of a channel finds no room, too, and nothing else was ever posted.
TEST_P(QuietFrame, is_seen_when_there_is_no_room_to_drain_its_channel) {
  int sent = 0;
  // As many as there is room for, and no claim that finds none: 64 frames of 64 bytes.
  for (; sent < 64; ++sent) EXPECT_TRUE(client_sends(kFrame, Notice::quiet));
  client_.poller().close(at_client_, Closing::drain);
  read(sent);
  std::jthread server([&] { EXPECT_TRUE(is_ok(server_.expect_closed(at_server_))); });
  EXPECT_TRUE(is_ok(client_.expect_closed(at_client_)));
}

// --- reasons

TEST_P(WaitingOver, for_frames_only_is_not_ended_by_room_which_is_not_lost) {
  const int sent = fill();
  Sleeper client(client_.poller(), WakeFor::frames);
  read(sent);
  EXPECT_TRUE(client.goes_on_sleeping());
  EXPECT_TRUE(server_.send(at_server_, "frame"));
  EXPECT_EQ(client.join(), Outcome::done);
  EXPECT_EQ(told(), (std::vector{Kind::room, Kind::frame}));
}

TEST_P(WaitingOver, for_room_only_is_not_ended_by_frames_which_are_not_lost) {
  const int sent = fill();
  Sleeper client(client_.poller(), WakeFor::room);
  EXPECT_TRUE(server_.send(at_server_, "frame"));
  EXPECT_TRUE(client.goes_on_sleeping());
  read(sent);
  EXPECT_EQ(client.join(), Outcome::done);
  EXPECT_EQ(told(), (std::vector{Kind::room, Kind::frame}));
}

TEST_P(WaitingOver, for_nothing_is_ended_by_a_wake_and_by_the_end_of_a_channel) {
  const int sent = fill();
  {
    Sleeper client(client_.poller(), WakeFor::nothing);
    EXPECT_TRUE(server_.send(at_server_, "frame"));
    read(sent);
    EXPECT_TRUE(client.goes_on_sleeping());
    client_.poller().wake();
    EXPECT_EQ(client.join(), Outcome::done);
  }
  Sleeper client(client_.poller(), WakeFor::nothing);
  server_.poller().close(at_server_, Closing::now);
  EXPECT_EQ(client.join(), Outcome::done);
}

TEST_P(WaitingOver, for_nothing_is_ended_by_a_channel_that_opens) {
  Sleeper server(server_.poller(), WakeFor::nothing);
  client_.connect(server_);
  EXPECT_EQ(server.join(), Outcome::done);
  server_.expect(Kind::opened);
}

// The frames that are left behind a full batch are no reason either, and an end behind them is.
TEST_P(WaitingOver, for_nothing_goes_on_though_frames_were_left_by_a_poll) {
  for (int frame = 0; frame < 3; ++frame) EXPECT_TRUE(server_.send(at_server_, "frame"));
  client_.expect_frame("frame");
  ChannelEvent none[1];
  EXPECT_TRUE(client_.poller().poll(std::span(none, 0)).empty());
  Sleeper client(client_.poller(), WakeFor::nothing);
  EXPECT_TRUE(client.goes_on_sleeping());
  server_.poller().close(at_server_, Closing::now);
  EXPECT_EQ(client.join(), Outcome::done);
}

TEST_P(WaitingOver, for_room_again_finds_what_came_when_it_was_not_waited_for) {
  const int sent = fill();
  EXPECT_EQ(client_.poller().wait(Wait::none(), WakeFor::frames), Outcome::would_wait);
  read(sent);
  EXPECT_EQ(client_.poller().wait(kAtMost, WakeFor::room), Outcome::done);
  EXPECT_EQ(told(), std::vector{Kind::room});
}

TEST_P(WaitingOver, for_nothing_does_not_keep_a_channel_from_being_drained) {
  const int sent = fill();
  client_.poller().close(at_client_, Closing::drain);
  std::jthread client([&] {
    EXPECT_EQ(client_.poller().wait(kAtMost, WakeFor::nothing), Outcome::done);  // to say END
    EXPECT_TRUE(is_ok(client_.expect_closed(at_client_)));
  });
  read(sent);
  EXPECT_TRUE(is_ok(server_.expect_closed(at_server_)));
}

// A channel is given back when its last frame is released and its poller has looked at it once more.
TEST_P(WaitingOver, for_nothing_goes_on_when_the_last_frame_of_a_closed_channel_is_released) {
  EndpointSide server(config_of(GetParam()), {.channel_limit = 1});
  const ChannelId first = client_.connect(server);
  client_.expect(Kind::opened);
  server.expect(Kind::opened);
  ASSERT_TRUE(client_.send(first, "last"));
  const ChannelEvent frame = server.expect(Kind::frame);
  client_.poller().close(first, Closing::now);
  EXPECT_EQ(client_.expect_closed(first).code(), Code::closed);
  EXPECT_EQ(server.expect_closed(frame.channel).code(), Code::closed);
  for (const WakeFor reasons : {WakeFor::nothing, WakeFor::room})
    EXPECT_EQ(server.poller().wait(Wait::none(), reasons), Outcome::would_wait) << "it is held";
  server.poller().release(frame.channel, frame.token);
  // Its memory has been given back: there is nothing that another call would have to do.
  ChannelEvent none[1];
  EXPECT_TRUE(server.poller().poll(none).empty());
  for (const WakeFor reasons : {WakeFor::nothing, WakeFor::room})
    EXPECT_EQ(server.poller().wait(Wait::none(), reasons), Outcome::would_wait);
  // The network thread has its place for another one a moment later.
  for (;;) {
    const ChannelId next = client_.connect(server);
    if (client_.next().kind == Kind::opened) break;
    ASSERT_EQ(client_.poller().status(next).code(), Code::limit_exceeded);
  }
}

// Each waits for one thing only, the one that the other's work brings; both let go of it and arm for it again all the time.
TEST_P(WaitingOver, for_one_thing_at_a_time_misses_nothing) {
  constexpr int kFrames = 20'000;
  std::jthread client([&] {
    for (int sent = 0; sent < kFrames;) {
      if (client_sends(kFrame, sent % 3 == 0 ? Notice::loud : Notice::quiet)) {
        ++sent;
        continue;
      }
      if (sent % 2 == 0) (void)client_.poller().wait(Wait::none(), WakeFor::frames);
      ASSERT_EQ(client_.poller().wait(kAtMost, WakeFor::room), Outcome::done);
      for (const Kind kind : told())
        EXPECT_EQ(static_cast<int>(kind), static_cast<int>(Kind::room));
    }
    client_.poller().close(at_client_, Closing::drain);
    EXPECT_TRUE(is_ok(client_.expect_closed(at_client_)));
  });
  int received = 0;
  for (bool is_closed = false; !is_closed;) {
    if (received % 2 == 0) (void)server_.poller().wait(Wait::none(), WakeFor::room);
    ASSERT_EQ(server_.poller().wait(kAtMost, WakeFor::frames), Outcome::done);
    ChannelEvent events[8];
    for (const ChannelEvent& event : server_.poller().poll(events)) {
      is_closed |= event.kind == Kind::closed;
      if (event.kind != Kind::frame) continue;
      ++received;
      server_.poller().release(event.channel, event.token);
    }
  }
  EXPECT_EQ(received, kFrames);
}

// --- a descriptor

using ArmedPoller = WaitingOver;
INSTANTIATE_TEST_SUITE_P(over, ArmedPoller, testing::Values("shm", "tcp"),
                         [](const auto& over) { return std::string(over.param); });

TEST_P(ArmedPoller, is_told_of_frames_once_and_is_not_readable_when_idle) {
  Poller& poller = server_.poller();
  const int descriptor = poller.descriptor().value();
  EXPECT_EQ(poller.descriptor().value(), descriptor);
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_EQ(poller.arm(), Outcome::would_wait);
    EXPECT_FALSE(is_readable_soon(descriptor));
    EXPECT_TRUE(client_sends(kFrame));
    ASSERT_TRUE(is_readable(descriptor, kAtMostMs));
    ASSERT_EQ(poller.arm(), Outcome::done) << "there is a frame";
    EXPECT_FALSE(is_readable(descriptor));
    server_.expect_frame(kFrame);
  }
}

TEST_P(ArmedPoller, is_told_of_what_it_waits_for) {
  Poller& poller = client_.poller();
  const int descriptor = poller.descriptor().value();
  const int sent = fill();
  ASSERT_EQ(poller.arm(WakeFor::room), Outcome::would_wait);
  EXPECT_TRUE(server_.send(at_server_, "frame"));
  EXPECT_FALSE(is_readable_soon(descriptor));
  read(sent);
  ASSERT_TRUE(is_readable(descriptor, kAtMostMs));
  ASSERT_EQ(poller.arm(WakeFor::room), Outcome::done);
  EXPECT_EQ(told(), (std::vector{Kind::room, Kind::frame}));
}

TEST_P(ArmedPoller, is_told_of_a_wake_and_of_the_end_of_its_endpoint) {
  Poller& poller = server_.poller();
  const int descriptor = poller.descriptor().value();
  ASSERT_EQ(poller.arm(WakeFor::nothing), Outcome::would_wait);
  poller.wake();
  ASSERT_TRUE(is_readable(descriptor, kAtMostMs));
  EXPECT_EQ(poller.arm(WakeFor::nothing), Outcome::done);
  ASSERT_EQ(poller.arm(WakeFor::nothing), Outcome::would_wait);
  server_.endpoint().close();
  ASSERT_TRUE(is_readable(descriptor, kAtMostMs));
  EXPECT_EQ(server_.expect_closed(at_server_).code(), Code::closed);
  EXPECT_EQ(poller.arm(), Outcome::failed);
}

// It closes when the callback has returned: until then an event loop goes on.
TEST_P(ArmedPoller, is_told_of_the_end_of_its_endpoint_that_a_callback_has_closed) {
  Endpoint* endpoint = nullptr;
  std::promise<void> closes, goes_on;
  EndpointSide server(config_of(GetParam()), {.accept = [&](const ChannelRequest&) {
                        if (endpoint != nullptr) {
                          endpoint->close();
                          closes.set_value();
                          goes_on.get_future().wait_for(std::chrono::seconds(8));
                        }
                        return ChannelAcceptance{};
                      }});
  client_.connect(server);
  client_.expect(Kind::opened);
  const ChannelId channel = server.expect(Kind::opened).channel;
  Poller& poller = server.poller();
  const int descriptor = poller.descriptor().value();
  endpoint = &server.endpoint();
  client_.connect(server);
  closes.get_future().wait();
  EXPECT_EQ(poller.arm(), Outcome::would_wait);
  goes_on.set_value();
  ASSERT_TRUE(is_readable(descriptor, kAtMostMs));
  EXPECT_EQ(server.expect_closed(channel).code(), Code::closed);
}

TEST_P(ArmedPoller, that_waits_instead_is_not_armed_any_more) {
  Poller& poller = server_.poller();
  const int descriptor = poller.descriptor().value();
  ASSERT_EQ(poller.arm(), Outcome::would_wait);
  EXPECT_EQ(poller.wait(Wait::none()), Outcome::would_wait);
  EXPECT_TRUE(client_sends(kFrame));
  server_.expect_frame(kFrame);
  EXPECT_FALSE(is_readable_soon(descriptor));
}

TEST_P(ArmedPoller, that_has_no_descriptor_is_refused) {
  EXPECT_EQ(server_.poller().arm(), Outcome::failed);
  EXPECT_EQ(server_.poller().wait(Wait::none()), Outcome::would_wait);
}

// How often the endpoint's thread that sleeps for armed pollers has gone to sleep.
uint64_t sleeps_of_ready_threads() {
  uint64_t sleeps = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    if (name != "faro-ready") continue;
    std::ifstream status(task.path() / "status");
    for (std::string word; status >> word;) {
      if (word != "voluntary_ctxt_switches:") continue;
      uint64_t count = 0;
      status >> count;
      sleeps += count;
    }
  }
  return sleeps;
}

TEST_P(ArmedPoller, wakes_nobody_by_arming_again) {
  Poller& poller = server_.poller();
  const int descriptor = poller.descriptor().value();
  ASSERT_EQ(poller.arm(), Outcome::would_wait);
  poller.wake();
  ASSERT_TRUE(is_readable(descriptor, kAtMostMs));
  std::this_thread::sleep_for(kMoment);
  const uint64_t before = sleeps_of_ready_threads();
  for (int turn = 0; turn < 100; ++turn) {
    const Outcome outcome = poller.arm();
    EXPECT_TRUE(outcome == Outcome::would_wait || turn == 0);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  EXPECT_LT(sleeps_of_ready_threads(), before + 20);
  poller.wake();
  EXPECT_TRUE(is_readable(descriptor, kAtMostMs));
}

// Two pollers of one endpoint in one epoll, each with channels to several peers, which send and wait for the answer.
TEST_P(ArmedPoller, of_several_in_one_event_loop_misses_nothing) {
  constexpr int kPeers = 4;
  constexpr int kRequests = 500;
  std::atomic<uint32_t> dialled{0};
  EndpointSide server(config_of(GetParam()),
                      {.poller_count = 2, .accept = [&](const ChannelRequest&) {
                         return ChannelAcceptance{.poller = dialled++ % 2};
                       }});
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  for (uint32_t p = 0; p < 2; ++p) {
    epoll_event interest{EPOLLIN, {.u32 = p}};
    ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, server.endpoint().poller(p).descriptor().value(),
                        &interest),
              0);
  }
  std::vector<std::jthread> peers;
  for (int peer = 0; peer < kPeers; ++peer) {
    peers.emplace_back([&] {
      EndpointSide client(config_of(GetParam()));
      const ChannelId channel = client.connect(server);
      client.expect(Kind::opened);
      for (int request = 0; request < kRequests; ++request) {
        EXPECT_TRUE(client.send(channel, std::to_string(request)));
        client.expect_frame(std::to_string(request));
      }
      client.poller().close(channel, Closing::drain);
      EXPECT_TRUE(is_ok(client.expect_closed(channel)));
    });
  }
  int closed = 0;
  int idle = 0;  // events of the descriptors without anything to tell
  const auto serve = [&](Poller& poller) {
    ChannelEvent events[8];
    bool any = false;
    Outcome outcome;
    while ((outcome = poller.arm()) == Outcome::done) {
      for (const ChannelEvent& event : poller.poll(events)) {
        any = true;
        closed += event.kind == Kind::closed;
        if (event.kind != Kind::frame) continue;
        std::span<std::byte> room;
        ASSERT_EQ(poller.claim(event.channel, event.data.size(), event.data.size(), room),
                  Outcome::done);
        std::ranges::copy(event.data, room.begin());
        EXPECT_EQ(poller.commit(event.channel, room.size()), Outcome::done);
        poller.release(event.channel, event.token);
      }
    }
    EXPECT_EQ(outcome, Outcome::would_wait);
    idle += !any;
  };
  for (uint32_t p = 0; p < 2; ++p) serve(server.endpoint().poller(p));
  int events_seen = 0;
  while (closed < kPeers) {
    std::array<epoll_event, 2> ready{};
    const int count = epoll_wait(epoll, ready.data(), ready.size(), kAtMostMs);
    ASSERT_GT(count, 0) << "an event was lost";
    for (int i = 0; i < count; ++i) serve(server.endpoint().poller(ready[i].data.u32));
    events_seen += count;
  }
  EXPECT_LE(events_seen, 2 * kPeers * (kRequests + 10)) << "it runs in circles";
  close(epoll);
}

}  // namespace
}  // namespace faro
