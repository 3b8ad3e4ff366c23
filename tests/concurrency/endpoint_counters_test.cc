// What an endpoint counts, as another process reads it, while its channels come and go.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "counters/endpoint_view.h"
#include "counters/folder.h"
#include "faro/log.h"
#include "support/endpoint_pair.h"
#include "support/expect.h"
#include "support/log_lines.h"
#include "support/temporary_folder.h"

namespace faro::test {
namespace {

using counters::ChannelLife;
using counters::ChannelView;
using counters::EndpointView;
using Kind = ChannelEvent::Kind;

class EndpointCounters : public testing::Test {
 protected:
  EndpointCounters() {
    set("transport", "tcp");
    set("counters.folder", folder_.path());
  }
  void set(const char* key, const std::string& value) {
    EXPECT_TRUE(is_ok(config_.set(key, value)));
  }

  /// What the endpoint of that name has counted.
  EndpointView read(const std::string& name) {
    for (const std::string& path : counters::counter_files_in(folder_.path())) {
      EndpointView view = value_of(counters::EndpointCounterView::open(path))->read();
      if (view.name == name) return view;
    }
    throw std::runtime_error("no endpoint " + name);
  }
  /// Reads until that is reached.
  template <typename Reached>
  EndpointView read_until(const std::string& name, Reached&& reached) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (;;) {
      EndpointView view = read(name);
      if (reached(view)) return view;
      if (std::chrono::steady_clock::now() > limit) throw std::runtime_error("it never happens");
      std::this_thread::yield();
    }
  }
  ChannelId connect(EndpointSide& client, EndpointSide& server, const ChannelSpec& spec = {}) {
    const ChannelId id = client.connect(server, spec);
    client.expect(Kind::opened);
    at_server_ = server.expect(Kind::opened).channel;
    return id;
  }

  TemporaryFolder folder_;
  Config config_;
  ChannelId at_server_;
};

TEST_F(EndpointCounters, show_who_is_at_the_other_end_and_what_has_moved) {
  EndpointSide server(config_, {.name = "server"}), client(config_, {.name = "client"});
  const ChannelId id = connect(client, server, {.send_bytes = 8192, .receive_bytes = 4096});
  ASSERT_TRUE(client.send(id, "one"));
  ASSERT_TRUE(client.send(id, "two"));
  server.expect_frame("one");
  server.expect_frame("two");
  const EndpointView at_client = read("client"), at_server = read("server");
  ASSERT_EQ(at_client.channels.size(), 1u);
  ASSERT_EQ(at_server.channels.size(), 1u);
  const ChannelView& out = at_client.channels[0];
  const ChannelView& in = at_server.channels[0];
  EXPECT_EQ(out.life, ChannelLife::open);
  EXPECT_EQ(out.peer, "server");
  EXPECT_EQ(out.address, server.address());
  EXPECT_EQ(out.transport, "tcp");
  EXPECT_TRUE(out.dialled);
  EXPECT_FALSE(in.dialled);
  EXPECT_EQ(out.incarnation, at_server.incarnation);
  EXPECT_EQ(in.incarnation, at_client.incarnation);
  EXPECT_EQ(out.send_bytes, 8192u);
  EXPECT_EQ(in.send_bytes, 4096u);
  EXPECT_EQ(out.counts.sent.frames_sent, 2u);
  EXPECT_EQ(out.counts.sent.bytes_sent, in.counts.received.bytes_received);
  EXPECT_EQ(in.counts.received.frames_received, 2u);
  EXPECT_EQ(at_server.counters.channels_open, 1u);
  EXPECT_GT(at_server.counters.memory_bytes, 8192u + 4096u);
  EXPECT_GT(at_server.pollers[0].events, 2u);
}

TEST_F(EndpointCounters, are_told_by_a_call_also_without_a_folder_and_after_close) {
  for (const std::string& folder : {folder_.path(), std::string()}) {
    set("counters.folder", folder);
    EndpointSide server(config_, {.name = "server"}), client(config_, {.name = "client"});
    const ChannelId gone = connect(client, server);
    ASSERT_TRUE(client.send(gone, "one"));
    server.expect_frame("one");
    client.poller().close(gone, Closing::now);
    EXPECT_EQ(client.expect_closed(gone).code(), Code::closed);
    EXPECT_EQ(server.expect_closed(at_server_).code(), Code::closed);
    const ChannelId id = connect(client, server);
    ASSERT_TRUE(client.send(id, "two"));
    server.expect_frame("two");
    const EndpointMetrics out = value_of(client.endpoint().metrics());
    ASSERT_EQ(out.channels.size(), 1u);
    EXPECT_EQ(out.channels[0].channel, id);
    EXPECT_EQ(out.channels[0].peer, "server");
    EXPECT_EQ(out.channels[0].address, server.address());
    EXPECT_EQ(out.channels[0].transport, "tcp");
    EXPECT_EQ(out.channels[0].traffic.frames_sent, 1u);
    EXPECT_EQ(out.all.frames_sent, 2u);
    EXPECT_EQ(out.channels_opened, 2u);
    EXPECT_EQ(out.channels_closed, 1u);
    EXPECT_GT(out.memory_bytes, 256u * 1024);
    EXPECT_GE(out.events, 3u);
    server.endpoint().close();
    const EndpointMetrics in = value_of(server.endpoint().metrics());
    EXPECT_EQ(in.all.frames_received, 2u);
    EXPECT_EQ(in.channels_closed, 2u);
    EXPECT_TRUE(in.channels.empty());
  }
}

TEST_F(EndpointCounters, keep_what_channels_have_counted_that_are_no_more) {
  EndpointSide server(config_, {.name = "server"}), client(config_, {.name = "client"});
  for (uint64_t round = 1; round <= 3; ++round) {
    const ChannelId id = connect(client, server);
    ASSERT_TRUE(client.send(id, "once"));
    server.expect_frame("once");
    const EndpointView open = read("server");
    ASSERT_EQ(open.channels.size(), 1u);
    EXPECT_EQ(open.channels[0].generation, round) << "the index is used again";
    EXPECT_EQ(open.channels[0].counts.received.frames_received, 1u) << "by a channel of its own";
    EXPECT_EQ(open.all.received.frames_received, round);
    client.poller().close(id, Closing::now);
    EXPECT_EQ(client.expect_closed(id).code(), Code::closed);
    EXPECT_EQ(server.expect_closed(at_server_).code(), Code::closed);
    const auto is_gone = [](const EndpointView& view) { return view.channels.empty(); };
    const EndpointView gone = read_until("server", is_gone);
    EXPECT_EQ(gone.all.received.frames_received, round);
    EXPECT_EQ(gone.all.received.unreleased_bytes, 0u);
    EXPECT_EQ(gone.counters.channels_opened, round);
    EXPECT_EQ(gone.counters.channels_closed, round);
    EXPECT_EQ(gone.counters.channels_open, 0u);
    read_until("client", is_gone);
  }
}

TEST_F(EndpointCounters, tell_refused_channels_from_lost_ones) {
  EndpointSide server(config_, {.name = "server", .accept = [](const ChannelRequest&) {
                                  return ChannelAcceptance{.refusal = "not today"};
                                }});
  EndpointSide client(config_, {.name = "client"});
  const ChannelId id = client.connect(server);
  EXPECT_EQ(client.expect_closed(id).code(), Code::cancelled);
  const auto one = [](const EndpointView& view) { return view.counters.channels_refused == 1; };
  EXPECT_EQ(read_until("client", one).counters.channels_lost, 0u);
  EXPECT_EQ(read_until("server", one).counters.channels_opened, 0u);
}

TEST_F(EndpointCounters, show_a_channel_that_is_dialled_and_why_that_fails) {
  EndpointSide client(config_, {.name = "client"});
  std::string address;
  { address = EndpointSide(config_, {.name = "gone"}).address(); }
  const ChannelId id = client.connect(address);
  const EndpointView view = read_until("client", [](const EndpointView& seen) {
    return !seen.channels.empty() && !seen.channels[0].failure.empty();
  });
  EXPECT_EQ(view.channels[0].life, ChannelLife::opening);
  EXPECT_EQ(view.channels[0].address, address);
  EXPECT_TRUE(contains(view.channels[0].failure, address)) << view.channels[0].failure;
  client.poller().close(id, Closing::now);
  (void)client.expect_closed(id);
}

TEST_F(EndpointCounters, show_who_waits_for_room_and_who_holds_frames) {
  EndpointSide server(config_, {.name = "server"}), client(config_, {.name = "client"});
  const ChannelId id = connect(client, server, {.send_bytes = 4096, .receive_bytes = 4096});
  while (client.send(id, std::string(500, 'x'))) {
  }
  const EndpointView waits = read("client");
  EXPECT_GT(waits.channels[0].counts.sent.no_room, 0u);
  EXPECT_LE(waits.channels[0].since_ns + waits.channels[0].counts.counters.room_ns, waits.read_ns)
      << "since some time after it has opened";
  const auto is_waiting = [](const EndpointView& view) {
    return view.channels[0].counts.counters.room_ns > 0;
  };
  EXPECT_TRUE(is_waiting(waits));
  const ChannelEvent first = server.expect(Kind::frame), second = server.expect(Kind::frame);
  (void)server.poller().wait(Wait::none());
  const ChannelView holds = read("server").channels[0];
  EXPECT_GE(holds.counts.counters.held_frames, 2u);
  EXPECT_GE(holds.counts.received.unreleased_bytes, 1000u);
  server.poller().release(first.channel, first.token);
  server.poller().release(second.channel, second.token);
  std::thread goes_on([&] {
    for (size_t taken = 2; taken < waits.channels[0].counts.sent.frames_sent; ++taken)
      server.expect_frame(std::string(500, 'x'));
    (void)server.poller().wait(Wait::none());
  });
  client.expect(Kind::room);
  goes_on.join();
  EXPECT_FALSE(is_waiting(read("client")));
  EXPECT_EQ(read("server").channels[0].counts.counters.held_frames, 0u);
}

TEST_F(EndpointCounters, show_a_poller_that_sleeps) {
  EndpointSide side(config_, {.name = "side"});
  std::thread sleeper([&] { EXPECT_EQ(side.poller().wait(), Outcome::done); });
  const EndpointView view =
      read_until("side", [](const EndpointView& seen) { return seen.pollers[0].asleep_ns > 0; });
  EXPECT_GT(view.pollers[0].sleeps, 0u);
  EXPECT_EQ(view.pollers[0].polls, 0u);
  side.poller().wake();
  sleeper.join();
  EXPECT_EQ(read("side").pollers[0].asleep_ns, 0u);
}

TEST_F(EndpointCounters, show_a_poller_that_is_armed) {
  EndpointSide side(config_, {.name = "side"});
  const int descriptor = value_of(side.poller().descriptor());
  const auto before = read("side").pollers[0];
  ASSERT_EQ(side.poller().arm(), Outcome::would_wait);
  const auto armed = read("side").pollers[0];
  EXPECT_EQ(armed.waits, before.waits + 1);
  EXPECT_EQ(armed.sleeps, before.sleeps + 1);
  EXPECT_GT(armed.asleep_ns, 0u);
  side.poller().wake();
  pollfd look{descriptor, POLLIN, 0};
  ASSERT_EQ(poll(&look, 1, 30'000), 1);
  EXPECT_EQ(read("side").pollers[0].asleep_ns, 0u);
  // What is found at once is no sleep.
  ASSERT_EQ(side.poller().arm(), Outcome::done);
  EXPECT_EQ(read("side").pollers[0].sleeps, armed.sleeps);
  EXPECT_EQ(read("side").pollers[0].asleep_ns, 0u);
}

TEST_F(EndpointCounters, show_a_channel_that_is_drained) {
  EndpointSide server(config_, {.name = "server"}), client(config_, {.name = "client"});
  const ChannelId id = connect(client, server);
  client.poller().close(id, Closing::drain);
  // The server's poller takes no part in it yet.
  read_until("client", [](const EndpointView& view) {
    return view.channels[0].life == ChannelLife::draining;
  });
  std::thread other([&] { EXPECT_TRUE(is_ok(server.expect_closed(at_server_))); });
  EXPECT_TRUE(is_ok(client.expect_closed(id)));
  other.join();
}

// The file has room for 32 channels; then a limit of file sizes is met, as a full folder would be.
TEST_F(EndpointCounters, of_a_channel_without_room_in_the_file_are_not_lost) {
  EndpointSide server(config_, {.name = "server"}), client(config_, {.name = "client"});
  std::vector<std::pair<ChannelId, ChannelId>> channels;
  const auto open_one = [&] {
    const ChannelId id = connect(client, server, {.send_bytes = 4096, .receive_bytes = 4096});
    channels.emplace_back(id, at_server_);
    ASSERT_TRUE(client.send(id, "once"));
    server.expect_frame("once");
  };
  open_one();
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  uint64_t size = 0;
  for (const std::string& path : counters::counter_files_in(folder_.path())) {
    struct stat state {};
    ASSERT_EQ(stat(path.c_str(), &state), 0);
    size = std::max<uint64_t>(size, static_cast<uint64_t>(state.st_size));
  }
  const rlimit full{size, before.rlim_max};
  const LogLines lines;
  setrlimit(RLIMIT_FSIZE, &full);
  for (int more = 1; more < 34; ++more) open_one();
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(lines.count("faro stat will not see all channels"), 2u) << "once for each endpoint";
  EXPECT_EQ(read("server").channels.size(), 32u);
  EXPECT_EQ(read("server").counters.channels_open, 34u);
  for (const auto& [here, there] : channels) {
    client.poller().close(here, Closing::now);
    (void)client.expect_closed(here);
    (void)server.expect_closed(there);
  }
  const EndpointView view = read_until("server", [](const EndpointView& seen) {
    return seen.channels.empty() && seen.all.received.frames_received == 34;
  });
  EXPECT_EQ(view.counters.channels_closed, 34u);
}

TEST_F(EndpointCounters, are_removed_with_the_endpoint) {
  {
    EndpointSide side(config_);
    EXPECT_FALSE(folder_.empty());
    side.endpoint().close();
    EXPECT_TRUE(folder_.empty());
  }
  EXPECT_TRUE(folder_.empty());
}

TEST_F(EndpointCounters,
       of_a_folder_that_does_not_exist_are_an_error_and_of_one_that_takes_none_a_warning) {
  set("counters.folder", "/dev/shm/faro-no-such-folder");
  expect_error(Endpoint::open(config_, {}).status(), Code::config_invalid,
               {"faro-no-such-folder", "counters.folder"});
  set("counters.folder", "/proc");
  const LogLines lines;
  EXPECT_TRUE(is_ok(Endpoint::open(config_, {})));
  EXPECT_EQ(lines.count("faro stat will not see this endpoint"), 1u);
}

}  // namespace
}  // namespace faro::test
