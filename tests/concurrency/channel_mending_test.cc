// Channels whose connections break while both processes live: nothing is lost, whichever connection is cut and wherever.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "faro/endpoint.h"
#include "support/certificates.h"
#include "support/cutting_proxy.h"
#include "support/expect.h"
#include "support/test_network.h"
#include "support/watchdog.h"

namespace faro::test {
namespace {

using Of = Cut::Of;
using Way = Cut::Way;
using Kind = ChannelEvent::Kind;
using SettingList = std::vector<std::pair<std::string, std::string>>;

constexpr uint32_t kRingBytes = 4096;

Config config_of(const SettingList& settings) {
  Config config;
  for (const auto& [name, value] : settings) EXPECT_TRUE(is_ok(config.set(name, value)));
  return config;
}

/// One side of a channel. Its frames are numbered, and of many lengths.
class Party {
 public:
  Party(const Config& config, EndpointSpec spec)
      : endpoint_(Endpoint::open(config, std::move(spec)).value()) {}

  Endpoint& endpoint() { return *endpoint_; }
  Poller& poller() { return endpoint_->poller(0); }
  void connect(const std::string& address, bool ends_when_broken) {
    channel = poller()
                  .connect(address, {.send_bytes = kRingBytes,
                                     .receive_bytes = kRingBytes,
                                     .ends_when_broken = ends_when_broken})
                  .value();
  }
  /// Sends what there is room for, takes what has come, and waits a moment if there is neither.
  void advance() {
    while (opened && sent < wanted && send()) {
    }
    ChannelEvent some[8];
    const auto events = poller().poll(some);
    for (const ChannelEvent& event : events) take(event);
    if (events.empty()) (void)poller().wait(Wait::at_most(std::chrono::microseconds(200)));
  }
  void close(Closing closing) { poller().close(channel, closing); }
  /// Releases the frame that is held, which is as it came.
  void let_go() {
    EXPECT_EQ(text_of(held.data), text(0));
    poller().release(channel, held.token);
    held = {};
  }

  ChannelId channel;
  uint64_t wanted = 0;  // frames to be sent
  uint64_t sent = 0;
  uint64_t received = 0;
  bool holds_first = false;
  ChannelEvent held;
  bool opened = false;
  bool closed = false;
  Status cause;

 private:
  static std::string text(uint64_t number) {
    std::string text = fmt::format("frame {} ", number);
    return text.append(number * 37 % 701, static_cast<char>('a' + number % 26));
  }
  static std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  bool send() {
    const std::string frame = text(sent);
    std::span<std::byte> room;
    if (poller().claim(channel, frame.size(), frame.size(), room) != Outcome::done) return false;
    std::memcpy(room.data(), frame.data(), frame.size());
    if (poller().commit(channel, frame.size()) != Outcome::done) return false;
    poller().post();
    ++sent;
    return true;
  }
  void take(const ChannelEvent& event) {
    channel = event.channel;
    if (event.kind == Kind::opened) opened = true;
    if (event.kind == Kind::closed) closed = true, cause = poller().status(channel);
    if (event.kind != Kind::frame) return;
    EXPECT_EQ(text_of(event.data), text(received)) << "frame " << received;
    if (holds_first && received++ == 0) {
      held = event;
      return;
    }
    received += holds_first ? 0 : 1;
    poller().release(channel, event.token);
  }

  std::unique_ptr<Endpoint> endpoint_;
};

/// Two endpoints, of which the client dials the server through a proxy; and their channel.
class MendedChannel {
 public:
  explicit MendedChannel(const SettingList& settings, bool server_ends = false)
      : MendedChannel(settings, settings, server_ends) {}
  MendedChannel(const SettingList& of_server, const SettingList& of_client,
                bool server_ends = false)
      : server(config_of(at_address(0, of_server)),
               {.name = "server",
                .accept =
                    [server_ends](const ChannelRequest&) {
                      return ChannelAcceptance{.ends_when_broken = server_ends};
                    }}),
        client(config_of(at_address(1, of_client)), {.name = "client"}),
        proxy(server.endpoint().address()) {
    EXPECT_TRUE(proxy.is_ready());
  }

  void open(bool ends_when_broken = false) {
    for (Party* const party : {&server, &client}) {
      party->wanted = party->sent = party->received = 0;
      party->opened = party->closed = false;
    }
    client.connect(proxy.address(), ends_when_broken);
    advance_until([&] { return server.opened && client.opened; });
  }
  /// That many more frames each way.
  void exchange(uint64_t frames) {
    client.wanted += frames;
    server.wanted += frames;
    advance_until(
        [&] { return client.received == server.wanted && server.received == client.wanted; });
  }
  /// Until both have closed.
  void advance_to_end() {
    while (!client.closed || !server.closed) client.advance(), server.advance();
  }
  template <typename Reached>
  void advance_until(Reached&& reached) {
    while (!reached()) {
      client.advance(), server.advance();
      if (!client.closed && !server.closed) continue;
      ADD_FAILURE() << "client: " << client.cause.to_string()
                    << ", server: " << server.cause.to_string();
      return;
    }
  }
  /// Cuts there, while frames go both ways.
  void cut(const std::vector<Cut>& where) {
    proxy.cut(where);
    while (proxy.left() != 0 && !testing::Test::HasFailure()) exchange(20);
  }

 private:
  /// Over verbs, frames take the addresses of test_network.h.
  static SettingList at_address(uint32_t side, SettingList settings) {
    if (names_addresses()) settings.emplace_back("verbs.address", node_host(side));
    return settings;
  }

 public:
  Party server;
  Party client;
  CuttingProxy proxy;
};

class ChannelMending : public testing::TestWithParam<std::string> {
 protected:
  // Heartbeats are all that a channel has to say over its control connection, unless it ends.
  SettingList with(SettingList more = {}) const {
    more.emplace_back("transport", GetParam());
    more.emplace_back("liveness.timeout_ms", "1000");
    return more;
  }
  bool has_data() const { return GetParam() == "tcp"; }

  Watchdog watchdog_{std::chrono::seconds(100), [] { return std::string(); }};
};

INSTANTIATE_TEST_SUITE_P(Transports, ChannelMending,
                         testing::ValuesIn(transports_to_test({"shm", "tcp"})),
                         [](const auto& each) { return each.param; });

TEST_P(ChannelMending, no_frame_is_lost_wherever_a_connection_is_cut) {
  MendedChannel pair(with());
  pair.open();
  pair.exchange(10);
  for (const Way way : {Way::to_listener, Way::to_dialler}) {
    for (const uint64_t bytes : {1u, 4u, 5u, 17u}) {
      SCOPED_TRACE(fmt::format("{} bytes, way {}", bytes, static_cast<int>(way)));
      pair.cut({{Of::control, way, bytes}});
    }
    if (!has_data()) continue;
    // Inside of a header, a payload, between frames, and behind several rings full.
    for (const uint64_t bytes : {1u, 15u, 16u, 17u, 80u, 1000u, 4096u, 10000u, 30000u}) {
      SCOPED_TRACE(fmt::format("{} bytes of data, way {}", bytes, static_cast<int>(way)));
      pair.cut({{Of::data, way, bytes}});
    }
  }
  pair.exchange(100);
  for (Party* const party : {&pair.client, &pair.server})
    EXPECT_FALSE(party->poller().info(party->channel)->ends_when_broken);
}

TEST_P(ChannelMending, a_channel_opens_though_what_it_is_opened_over_is_cut) {
  MendedChannel pair(with({{"link.mend_ms", "0"}}));
  const size_t connections = has_data() ? 2 : 1;
  for (size_t i = 0; i < connections; ++i) {
    const Of of = i == 0 ? Of::control : Of::data;
    for (const uint64_t bytes : {1u, 20u}) {
      SCOPED_TRACE(fmt::format("{} bytes of {}", bytes, i == 0 ? "control" : "data"));
      pair.proxy.cut({{of, Way::to_listener, bytes}});
      pair.open();
      EXPECT_EQ(pair.proxy.left(), 0u);
      pair.exchange(20);
      pair.client.close(Closing::now);
      pair.advance_to_end();
    }
  }
}

// Most of the next cuts come while the link is mended from the last one, at every place of that. The memory is enough for
// one channel, before as after.
TEST_P(ChannelMending, a_hundred_cuts_in_a_row_lose_no_frame_and_keep_no_memory) {
  // There is room for one link.
  const char* const limit = GetParam() == "verbs" ? "300000" : "20000";
  MendedChannel pair(with({{"link.mend_ms", "60000"}, {"memory.limit_bytes", limit}}));
  pair.open();
  std::vector<Cut> cuts;
  for (uint64_t i = 0; i < 100; ++i) {
    const Way way = i % 3 == 0 ? Way::to_dialler : Way::to_listener;
    const Of of = has_data() && i % 2 == 0 ? Of::data : Of::control;
    // Mending takes some 280 bytes of control each way; beyond that heartbeats have to bring them.
    cuts.push_back({of, way, 1 + (of == Of::data ? 37 * i : 29 * i % 285)});
  }
  pair.cut(cuts);
  pair.exchange(100);
  pair.client.close(Closing::drain);
  pair.advance_to_end();
  EXPECT_TRUE(is_ok(pair.client.cause));
  EXPECT_TRUE(is_ok(pair.server.cause));
  // What the link had is given back a moment after its channel has closed.
  Party& client = pair.client;
  do {
    client.closed = client.opened = false;
    client.connect(pair.proxy.address(), false);
    while (!client.opened && !client.closed) client.advance(), pair.server.advance();
  } while (client.closed && client.cause.code() == Code::resource_limit);
  EXPECT_TRUE(client.opened);
}

// The handshakes of TLS are cut, too.
TEST_P(ChannelMending, goes_on_with_tls) {
  const Authority authority;
  const NodeFiles files = authority.issue();
  MendedChannel pair(with(files.settings()));
  pair.open();
  pair.exchange(10);
  for (const Way way : {Way::to_listener, Way::to_dialler}) {
    // Those in the middle of a handshake follow a cut that makes one.
    for (const uint64_t bytes : {100u, 600u, 1500u}) {
      SCOPED_TRACE(fmt::format("{} bytes, way {}", bytes, static_cast<int>(way)));
      pair.cut({{Of::any, way, 1}, {Of::any, way, bytes}});
    }
  }
  pair.exchange(100);
}

TEST_P(ChannelMending, frames_that_are_held_stay_as_they_are) {
  MendedChannel pair(with());
  pair.server.holds_first = true;
  pair.open();
  pair.client.wanted = 1;
  pair.advance_until([&] { return pair.server.received == 1; });
  // The frame that is held stops the ring after a while.
  pair.client.wanted = 100;
  pair.proxy.cut({{Of::any, Way::to_listener, 1}});
  pair.advance_until([&] { return pair.proxy.left() == 0; });
  pair.server.let_go();
  pair.exchange(10);
}

// Wherever the connections are cut while both sides say that they have taken all, both know that in the end.
TEST_P(ChannelMending, a_channel_is_drained_although_it_breaks) {
  MendedChannel pair(with());
  size_t cut = 0;
  for (const Of of : {Of::control, Of::data}) {
    if (of == Of::data && !has_data()) continue;
    for (const Way way : {Way::to_listener, Way::to_dialler}) {
      for (uint64_t bytes = 1; bytes <= 30; ++bytes) {
        SCOPED_TRACE(fmt::format("{} bytes of {}, way {}", bytes,
                                 of == Of::data ? "data" : "control", static_cast<int>(way)));
        pair.open();
        pair.client.wanted = pair.server.wanted = 1;
        pair.proxy.cut({{of, way, bytes}});
        pair.advance_until([&] { return pair.client.sent == 1 && pair.server.sent == 1; });
        pair.client.close(Closing::drain);
        if (bytes % 2 == 0) pair.server.close(Closing::drain);
        pair.advance_to_end();
        cut += pair.proxy.left() == 0 ? 1 : 0;
        pair.proxy.cut_no_more();
        ASSERT_TRUE(is_ok(pair.client.cause));
        ASSERT_TRUE(is_ok(pair.server.cause));
        ASSERT_EQ(pair.client.received, 1u);
        ASSERT_EQ(pair.server.received, 1u);
      }
    }
  }
  EXPECT_GE(cut, has_data() ? 60u : 30u);
}

// Closing an endpoint waits until the other side knows of a channel that was drained before.
TEST_P(ChannelMending, a_drained_channel_is_known_to_be_though_an_endpoint_is_closed_meanwhile) {
  // Without heartbeats the next message of the client says that it has taken all.
  SettingList settings = {{"transport", GetParam()},
                          {"liveness.timeout_ms", "3600000"},
                          {"close.timeout_ms", "60000"}};  // no busy machine takes that long
  std::optional<MendedChannel> made;
  // Mostly the first that the client says is that it has taken all; if it acknowledges what the server says before it has, it is
  // cut off too early, and all begins anew.
  do {
    made.emplace(settings);
    made->open();
    made->proxy.cut({{Of::control, Way::to_listener, 1, true}});
    made->client.close(Closing::drain);
    while (!made->client.closed) made->client.advance(), made->server.advance();
  } while (!made->client.cause.ok());
  MendedChannel& pair = *made;
  std::thread closes([&] { pair.client.endpoint().close(); });
  // It has begun to close when it takes no other channel.
  settings.emplace_back("connect.timeout_ms", "1000");
  Party other(config_of(settings), {.name = "other"});
  do {
    other.opened = other.closed = false;
    other.connect(pair.client.endpoint().address(), false);
    while (!other.opened && !other.closed) other.advance();
    if (other.opened) other.close(Closing::now);
    while (!other.closed) other.advance();
  } while (other.opened);
  EXPECT_EQ(other.cause.code(), Code::closed) << other.cause.to_string();
  pair.proxy.reunite();
  while (!pair.server.closed) pair.server.advance();
  closes.join();
  EXPECT_TRUE(is_ok(pair.server.cause));
}

TEST_P(ChannelMending, draining_takes_close_timeout_ms_at_most_though_the_link_is_being_mended) {
  MendedChannel pair(with({{"link.mend_ms", "3600000"}, {"close.timeout_ms", "300"}}));
  pair.open();
  pair.proxy.separate();
  pair.client.close(Closing::drain);
  while (!pair.client.closed) pair.client.advance();
  EXPECT_EQ(pair.client.cause.code(), Code::deadline_exceeded);
  expect_contains(pair.client.cause.message(), "was not drained within close.timeout_ms = 300; ");
}

TEST_P(ChannelMending, ends_at_once_when_this_side_closes_it_at_once) {
  MendedChannel pair(with({{"link.mend_ms", "3600000"}, {"close.timeout_ms", "3600000"}}));
  pair.open();
  pair.proxy.separate();
  pair.client.close(Closing::now);
  pair.advance_to_end();
  EXPECT_EQ(pair.client.cause.code(), Code::closed);
  EXPECT_EQ(pair.server.cause.code(), Code::peer_lost);  // it cannot be told
}

// The side that accepted the link cannot wait for the other to dial: it asks.
TEST_P(ChannelMending, ends_at_once_when_the_other_process_is_gone) {
  MendedChannel pair(with({{"link.mend_ms", "3600000"}, {"close.timeout_ms", "3600000"}}));
  pair.open();
  pair.proxy.separate();
  pair.client.endpoint().close();
  while (!pair.server.closed) pair.server.advance();
  EXPECT_EQ(pair.server.cause.code(), Code::peer_lost);
}

TEST_P(ChannelMending, takes_link_mend_ms_at_most) {
  MendedChannel pair(with({{"link.mend_ms", "200"}}));
  pair.open();
  pair.proxy.separate();
  pair.advance_to_end();
  // The side whose limit ends first tells the other that there is no such link, if that just asks.
  uint32_t limited = 0;
  for (const Party* const party : {&pair.client, &pair.server}) {
    EXPECT_EQ(party->cause.code(), Code::peer_lost);
    const std::string cause = party->cause.to_string();
    const bool is_limit = contains(cause, "was not mended within link.mend_ms = 200");
    limited += is_limit ? 1 : 0;
    EXPECT_TRUE(is_limit || contains(cause, "does not have that link")) << cause;
  }
  EXPECT_GE(limited, 1u);
}

// Both sides show it again when the channel is mended.
// The files are read again for each connection: here, those of another authority.
TEST(ChannelMendingOverTls, says_that_a_certificate_is_refused_that_came_since_the_channel_opened) {
  Watchdog watchdog(std::chrono::seconds(100), [] { return std::string("a certificate"); });
  const Authority authority;
  const NodeFiles of_server = authority.issue(), of_client = authority.issue();
  const auto settings_of = [](const NodeFiles& files) {
    SettingList settings = files.settings();
    settings.insert(settings.end(), {{"transport", "tcp"}, {"link.mend_ms", "1000"}});
    return settings;
  };
  MendedChannel pair(settings_of(of_server), settings_of(of_client));
  pair.open();
  pair.exchange(10);
  Authority().renew(of_server);
  pair.exchange(10);  // it goes on
  pair.proxy.separate();
  pair.proxy.reunite();
  pair.advance_to_end();
  expect_error(pair.client.cause, Code::peer_lost,
               {"was not mended within link.mend_ms = 1000", "certificate signature failure"});
}

TEST_P(ChannelMending, is_not_done_if_a_side_does_not_want_it) {
  for (const bool client_ends : {true, false}) {
    MendedChannel pair(with({{"link.mend_ms", "3600000"}}), !client_ends);
    pair.open(client_ends);
    for (Party* const party : {&pair.client, &pair.server})
      EXPECT_TRUE(party->poller().info(party->channel)->ends_when_broken);
    pair.exchange(10);
    pair.proxy.separate();
    pair.advance_to_end();
    for (const Party* const party : {&pair.client, &pair.server})
      expect_error(party->cause, Code::peer_lost, {"is lost"});
  }
}

// A channel that is drained for it would end by close.timeout_ms.
TEST_P(ChannelMending, is_not_idle_meanwhile) {
  MendedChannel pair(
      with({{"link.mend_ms", "1000"}, {"channel.idle_ms", "100"}, {"close.timeout_ms", "200"}}));
  pair.open();
  pair.proxy.separate();
  pair.advance_to_end();
  EXPECT_EQ(pair.client.cause.code(), Code::peer_lost);
  EXPECT_EQ(pair.server.cause.code(), Code::peer_lost);
}

}  // namespace
}  // namespace faro::test
