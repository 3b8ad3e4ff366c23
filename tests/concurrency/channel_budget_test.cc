// How large the rings of channels are made that are to fit a budget of memory together.
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "counters/endpoint_view.h"
#include "counters/folder.h"
#include "faro/endpoint.h"
#include "support/endpoint_config.h"
#include "support/endpoint_pair.h"
#include "support/expect.h"
#include "support/temporary_folder.h"
#include "support/test_network.h"

namespace faro::test {
namespace {

using Kind = ChannelEvent::Kind;
using Sizes = std::pair<uint32_t, uint32_t>;

constexpr uint32_t kKiB = 1024;

class ChannelBudget : public testing::TestWithParam<std::string> {
 protected:
  Config config(uint64_t limit_bytes = 0, uint64_t expected = 0) {
    Config made = endpoint_config(GetParam());
    EXPECT_TRUE(is_ok(made.set("memory.limit_bytes", std::to_string(limit_bytes))));
    EXPECT_TRUE(is_ok(made.set("channel.expected", std::to_string(expected))));
    // Where Endpoint::channel_memory looks for a device; an EndpointSide listens where it is its turn.
    if (names_addresses()) {
      EXPECT_TRUE(is_ok(made.set("cluster.listen", listen_address(0))));
    }
    return made;
  }
  /// What an endpoint takes for a channel with rings of that size, as it counts it.
  uint64_t memory_of_one(uint32_t ring_bytes) {
    const TemporaryFolder folder;
    Config counting = config();
    EXPECT_TRUE(is_ok(counting.set("counters.folder", folder.path())));
    EndpointSide server(counting), client(config());
    client.connect(server, {.send_bytes = ring_bytes, .receive_bytes = ring_bytes});
    client.expect(Kind::opened);
    server.expect(Kind::opened);
    const auto files = counters::counter_files_in(folder.path());
    EXPECT_EQ(files.size(), 1u);
    return value_of(counters::EndpointCounterView::open(files.at(0)))->read().counters.memory_bytes;
  }
  /// The rings of a channel between them, towards the server and back.
  static Sizes sizes(EndpointSide& client, EndpointSide& server, const ChannelSpec& spec = {}) {
    const ChannelId id = client.connect(server, spec);
    client.expect(Kind::opened);
    server.expect(Kind::opened);
    const auto info = client.poller().info(id);
    EXPECT_TRUE(is_ok(info));
    return {info->send_bytes, info->receive_bytes};
  }
};

INSTANTIATE_TEST_SUITE_P(over, ChannelBudget,
                         testing::ValuesIn(transports_to_test({"shm", "tcp", "tls"})),
                         [](const auto& over) { return over.param; });

// Both ends of a channel: each counts for itself what it takes.
TEST_P(ChannelBudget, is_told_what_a_channel_takes_before_there_is_an_endpoint) {
  const ChannelSpec specs[] = {{.send_bytes = 64 * kKiB, .receive_bytes = 8 * kKiB},
                               {.send_bytes = 8 * kKiB, .receive_bytes = 64 * kKiB},
                               {.send_bytes = 16 * kKiB, .receive_bytes = 16 * kKiB}};
  const auto told = value_of(Endpoint::channel_memory(config(), specs));
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[2], memory_of_one(16 * kKiB));
  // One byte less, and there is no room for it.
  for (const uint64_t missing : {0, 1}) {
    EndpointSide client(config(told[0] - missing)), server(config(told[1]));
    const ChannelId id = client.connect(server, specs[0]);
    if (missing == 0) {
      client.expect(Kind::opened);
    } else {
      EXPECT_EQ(client.expect_closed(id).code(), Code::resource_limit);
    }
    EndpointSide dialling(config()), accepting(config(told[1] - missing));
    const ChannelId other = dialling.connect(accepting, specs[0]);
    if (missing == 0) {
      dialling.expect(Kind::opened);
    } else {
      EXPECT_EQ(dialling.expect_closed(other).code(), Code::resource_limit);
    }
  }
}

TEST_P(ChannelBudget, is_told_of_the_transport_that_takes_most) {
  const ChannelSpec spec{.send_bytes = 64 * kKiB, .receive_bytes = 8 * kKiB};
  const auto told = [&](const std::string& transport) {
    Config asked = config();
    EXPECT_TRUE(is_ok(asked.set("transport", transport)));
    return value_of(Endpoint::channel_memory(asked, std::span(&spec, 1))).at(0);
  };
  EXPECT_GE(told("auto"), told("tcp"));
  EXPECT_GE(told("auto"), told("shm"));
  EXPECT_GE(told("tcp"), 72 * kKiB);
}

TEST_P(ChannelBudget, is_told_of_nothing_for_rings_that_there_are_not) {
  for (const ChannelSpec& spec : {ChannelSpec{.send_bytes = 0, .receive_bytes = 8192},
                                  ChannelSpec{.send_bytes = 8192, .receive_bytes = 5000}}) {
    const Status refused = Endpoint::channel_memory(config(), std::span(&spec, 1)).status();
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    expect_contains(refused.message(), "both have to be powers of two from 4096 to");
  }
}

TEST_P(ChannelBudget, has_room_for_as_many_as_are_expected_and_for_no_more) {
  constexpr uint64_t kExpected = 20;
  const uint64_t limit = kExpected * memory_of_one(16 * kKiB);
  EndpointSide server(config(limit, kExpected)), client(config());
  std::vector<std::pair<ChannelId, ChannelId>> channels;  // at the client, at the server
  for (uint64_t each = 0; each < kExpected; ++each) {
    const ChannelId id = client.connect(server);
    client.expect(Kind::opened);
    channels.emplace_back(id, server.expect(Kind::opened).channel);
    const auto info = client.poller().info(id);
    ASSERT_TRUE(is_ok(info));
    EXPECT_EQ(Sizes(info->send_bytes, info->receive_bytes), Sizes(16 * kKiB, 16 * kKiB));
  }
  const Status refused = client.expect_closed(client.connect(server));
  EXPECT_EQ(refused.code(), Code::resource_limit);
  expect_contains(refused.message(), "memory.limit_bytes = " + std::to_string(limit));
  expect_contains(refused.message(), "one more link needs");
  for (const auto& [at_client, at_server] : channels) {
    ASSERT_TRUE(client.send(at_client, "still there"));
    server.expect_frame("still there");
    ASSERT_TRUE(server.send(at_server, "here, too"));
    client.expect_frame("here, too");
  }
  client.poller().close(channels.front().first, Closing::now);
  EXPECT_EQ(client.expect_closed(channels.front().first).code(), Code::closed);
  EXPECT_EQ(server.expect_closed(channels.front().second).code(), Code::closed);
  EXPECT_EQ(sizes(client, server), Sizes(16 * kKiB, 16 * kKiB));
}

// One byte less, and the next smaller rings are the largest that fit.
TEST_P(ChannelBudget, is_used_up_to_the_last_byte) {
  const uint64_t limit = 3 * memory_of_one(32 * kKiB);
  EndpointSide client(config());
  EndpointSide server(config(limit, 3)), less(config(limit - 1, 3));
  EXPECT_EQ(sizes(client, server), Sizes(32 * kKiB, 32 * kKiB));
  EXPECT_EQ(sizes(client, less), Sizes(16 * kKiB, 16 * kKiB));
}

TEST_P(ChannelBudget, of_either_side_decides_if_it_is_the_lesser) {
  EndpointSide few(config(4 * memory_of_one(32 * kKiB), 4));
  EndpointSide many(config(8 * memory_of_one(8 * kKiB), 8));
  const Sizes lesser = sizes(many, few);
  EXPECT_LE(lesser.first, 8 * kKiB);
  EXPECT_EQ(sizes(few, many), lesser);
  EXPECT_EQ(lesser.first, lesser.second);
  EndpointSide without(config());
  EXPECT_EQ(sizes(without, many), lesser);
  EXPECT_EQ(sizes(many, without), lesser);
}

TEST_P(ChannelBudget, leaves_rings_as_they_are_without_a_limit_or_a_number) {
  const uint64_t limit = 64 << 20;
  EndpointSide unlimited(config(0, 0)), unnumbered(config(limit, 0)), client(config());
  const Sizes usual{256 * kKiB, 256 * kKiB};
  EXPECT_EQ(sizes(client, unlimited), usual);
  EXPECT_EQ(sizes(unlimited, client), usual);
  EXPECT_EQ(sizes(client, unnumbered), usual);
  EXPECT_EQ(sizes(unnumbered, client), usual);
  // With plenty of room nobody gets more than usual, and a peer that asks for more may have it.
  EndpointSide plenty(config(limit, 4));
  EXPECT_EQ(sizes(plenty, client), usual);
  const ChannelSpec megabyte{.send_bytes = 1024 * kKiB, .receive_bytes = 1024 * kKiB};
  EXPECT_EQ(sizes(client, plenty, megabyte), Sizes(1024 * kKiB, 1024 * kKiB));
}

TEST_P(ChannelBudget, of_its_own_does_not_change_what_a_side_says_itself) {
  const uint64_t limit = 16 * memory_of_one(16 * kKiB);
  Config small = config(limit, 16);
  const ChannelSpec spec{.send_bytes = 64 * kKiB, .receive_bytes = 0};
  EndpointSide client(small), anybody(config());
  EXPECT_EQ(sizes(client, anybody, spec), Sizes(64 * kKiB, 16 * kKiB));
  EndpointSide server(small, {.accept = [](const ChannelRequest& request) {
                        return ChannelAcceptance{.send_bytes = 0,
                                                 .receive_bytes = request.receive_bytes};
                      }});
  EXPECT_EQ(sizes(anybody, server, {.send_bytes = 64 * kKiB, .receive_bytes = 64 * kKiB}),
            Sizes(64 * kKiB, 16 * kKiB));
  // What the other side asks for does not count against it.
  EndpointSide guarded(small);
  EXPECT_EQ(sizes(anybody, guarded, {.send_bytes = 64 * kKiB, .receive_bytes = 8 * kKiB}),
            Sizes(16 * kKiB, 8 * kKiB));
}

TEST_P(ChannelBudget, that_cannot_do_is_refused_at_once) {
  const auto opened = Endpoint::open(config(1 << 20, 1000), {});
  ASSERT_EQ(opened.status().code(), Code::resource_limit);
  const std::string why(opened.status().message());
  expect_contains(why, "channel.expected = 1000");
  expect_contains(why, "memory.limit_bytes is 1048576");
  expect_contains(why, "raise the limit");
}

TEST(ChannelBudgetSettings, that_have_no_limit_is_refused_at_once) {
  Config config;
  EXPECT_TRUE(is_ok(config.set("channel.expected", "1000")));
  const auto opened = Endpoint::open(config, {});
  ASSERT_EQ(opened.status().code(), Code::config_invalid);
  for (const char* part : {"channel.expected = 1000", "memory.limit_bytes"})
    expect_contains(std::string(opened.status().message()), part);
}

}  // namespace
}  // namespace faro::test
