// Endpoints and their channels, in one process: links that come and go, frames both ways, how channels end.
#include "faro/endpoint.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "links/attempt_limiter.h"
#include "support/certificates.h"
#include "support/endpoint_config.h"
#include "support/endpoint_pair.h"
#include "support/expect.h"
#include "support/raw_peer.h"
#include "support/secret_file.h"
#include "support/test_network.h"
#include "tls/credentials.h"
#include "tls/socket.h"

namespace faro {
namespace {

using test::endpoint_config;
using test::EndpointSide;
using test::expect_contains;
using test::is_ok;
using test::transports_to_test;
using Kind = ChannelEvent::Kind;

using test::Authority;
using test::NodeFiles;
using test::Subject;

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

// Mappings of shared memory.
size_t shared_mappings() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("memfd:") != line.npos;
  return count;
}

class Channels : public testing::TestWithParam<std::string> {
 protected:
  Config config_ = endpoint_config(GetParam());
};

INSTANTIATE_TEST_SUITE_P(over, Channels,
                         testing::ValuesIn(transports_to_test({"shm", "tcp", "tls"})),
                         [](const auto& over) { return over.param; });

/// Two endpoints with an open channel.
class OpenChannel : public Channels {
 protected:
  void connect(const ChannelSpec& spec = {}) {
    at_client_ = client_.connect(server_, spec);
    client_.expect(Kind::opened);
    at_server_ = server_.expect(Kind::opened).channel;
  }
  // Sends until there is no room. Returns how many frames.
  int fill(std::string_view text) {
    int sent = 0;
    while (client_.send(at_client_, text)) ++sent;
    return sent;
  }

  EndpointSide server_{config_, {.name = "server"}};
  EndpointSide client_{config_, {.name = "client"}};
  ChannelId at_client_, at_server_;
};

INSTANTIATE_TEST_SUITE_P(over, OpenChannel,
                         testing::ValuesIn(transports_to_test({"shm", "tcp", "tls"})),
                         [](const auto& over) { return over.param; });

TEST_P(OpenChannel, carries_frames_both_ways) {
  connect();
  EXPECT_TRUE(client_.send(at_client_, "question"));
  server_.expect_frame("question");
  EXPECT_TRUE(server_.send(at_server_, "answer"));
  EXPECT_TRUE(server_.send(at_server_, ""));
  client_.expect_frame("answer");
  client_.expect_frame("");
}

TEST_P(OpenChannel, says_who_is_at_the_other_end) {
  connect({.send_bytes = 16384, .receive_bytes = 8192, .greeting = {std::byte{7}, std::byte{8}}});
  const auto client = client_.poller().info(at_client_);
  const auto server = server_.poller().info(at_server_);
  ASSERT_TRUE(is_ok(client) && is_ok(server));
  EXPECT_EQ(client->peer, "server");
  EXPECT_EQ(client->address, server_.address());
  EXPECT_TRUE(client->dialled);
  EXPECT_EQ(server->peer, "client");
  EXPECT_EQ(server->address, client_.address());
  EXPECT_FALSE(server->dialled);
  EXPECT_EQ(server->transport, GetParam() == "tls" ? "tcp" : GetParam());
  EXPECT_EQ(server->greeting, (std::vector{std::byte{7}, std::byte{8}}));
  EXPECT_EQ(client->send_bytes, 16384u);
  EXPECT_EQ(client->receive_bytes, 8192u);
  EXPECT_EQ(server->send_bytes, 8192u);
  EXPECT_EQ(server->receive_bytes, 16384u);
  EXPECT_EQ(client->least_frame_bytes, 4096u - 16);
}

TEST_P(OpenChannel, that_is_full_tells_when_there_is_room) {
  connect({.send_bytes = 4096, .receive_bytes = 4096});
  const int sent = fill("0123456789");
  ASSERT_GT(sent, 0);
  for (int frame = 0; frame < sent; ++frame) server_.expect_frame("0123456789");
  EXPECT_NE(server_.poller().wait(Wait::none()), Outcome::failed);  // tells what was released
  EXPECT_EQ(client_.expect(Kind::room).channel, at_client_);
  EXPECT_TRUE(client_.send(at_client_, "more"));
  server_.expect_frame("more");
}

TEST_P(OpenChannel, that_has_room_for_less_than_is_wanted_tells_of_none) {
  connect({.send_bytes = 4096, .receive_bytes = 4096});
  const int sent = fill("x");  // frames of 64 bytes
  std::span<std::byte> space;
  EXPECT_EQ(client_.poller().claim(at_client_, 1, SIZE_MAX, space), Outcome::would_wait);
  // Room for two of these frames: it would hold the least that is asked for, but a claim wants an eighth of the ring then.
  for (int frame = 0; frame < 2; ++frame) server_.expect_frame("x");
  EXPECT_NE(server_.poller().wait(Wait::none()), Outcome::failed);
  ChannelEvent none[1];
  EXPECT_NE(client_.poller().wait(Wait::none()), Outcome::failed);
  EXPECT_TRUE(client_.poller().poll(none).empty());
  for (int frame = 2; frame < sent; ++frame) server_.expect_frame("x");
  EXPECT_NE(server_.poller().wait(Wait::none()), Outcome::failed);
  client_.expect(Kind::room);
  EXPECT_FALSE(client_.claim(at_client_, 1, SIZE_MAX).empty());
}

TEST_P(OpenChannel, leaves_an_open_claim_where_it_is_while_another_waits_for_room) {
  connect({.send_bytes = 4096, .receive_bytes = 4096});
  // Seven frames of 512 bytes, of which one is read: the end of the ring and its beginning have 512 bytes each.
  const std::string frame(512 - 16, 'f');
  for (int each = 0; each < 7; ++each) EXPECT_TRUE(client_.send(at_client_, frame));
  server_.expect_frame(frame);
  EXPECT_NE(server_.poller().wait(Wait::none()), Outcome::failed);
  Poller& poller = client_.poller();
  EXPECT_TRUE(client_.claim(at_client_, 1000, 1000).empty());
  const auto room = client_.claim(at_client_, 100, 100);
  ASSERT_EQ(room.size(), 100u);
  std::memset(room.data(), 'c', room.size());
  for (int each = 0; each < 2; ++each)
    server_.expect_frame(frame);  // now there is room for the first claim
  EXPECT_NE(server_.poller().wait(Wait::none()), Outcome::failed);
  client_.expect(Kind::room);
  EXPECT_EQ(poller.commit(at_client_, 100), Outcome::done);
  poller.post();
  for (int each = 0; each < 4; ++each) server_.expect_frame(frame);
  server_.expect_frame(std::string(100, 'c'));
  EXPECT_TRUE(client_.send(at_client_, "behind it"));
  server_.expect_frame("behind it");
}

TEST_P(OpenChannel, gives_frames_back_in_any_order) {
  connect();
  for (const char* text : {"one", "two", "three"}) EXPECT_TRUE(client_.send(at_client_, text));
  std::vector<ChannelEvent> held;
  for (int frame = 0; frame < 3; ++frame) held.push_back(server_.expect(Kind::frame));
  EXPECT_EQ(test::text_of(held[1].data), "two");
  for (const int frame : {1, 2, 0})
    server_.poller().release(held[frame].channel, held[frame].token);
  EXPECT_TRUE(client_.send(at_client_, "four"));
  server_.expect_frame("four");
}

TEST_P(OpenChannel, gives_a_frame_back_once_however_often_it_is_released) {
  connect();
  std::vector<ChannelEvent> held;
  for (const char* text : {"one", "two"}) {
    EXPECT_TRUE(client_.send(at_client_, text));
    held.push_back(server_.expect(Kind::frame));
  }
  const auto release = [&](int frame) {
    server_.poller().release(held[frame].channel, held[frame].token);
  };
  const auto unreleased_bytes = [&] {
    (void)server_.poller().wait(Wait::none());  // which counts them
    const auto metrics = server_.endpoint().metrics();
    return is_ok(metrics) ? metrics->channels.at(0).traffic.unreleased_bytes : UINT64_MAX;
  };
  release(0);
  release(0);
  EXPECT_GT(unreleased_bytes(), 0u);
  release(1);
  EXPECT_EQ(unreleased_bytes(), 0u);
  // As many as can be tracked: the last of them are tracked where those two were.
  for (int frame = 2; frame < 66; ++frame) {
    EXPECT_TRUE(client_.send(at_client_, std::to_string(frame)));
    held.push_back(server_.expect(Kind::frame));
  }
  release(0);
  release(1);
  for (int frame = 65; frame > 1; --frame) release(frame);
  EXPECT_EQ(unreleased_bytes(), 0u);
}

TEST_P(OpenChannel, takes_no_more_frames_than_it_can_track_until_some_are_released) {
  connect();
  constexpr int kMore = 200;  // than the 64 of ring/consumer.h
  for (int frame = 0; frame < kMore; ++frame)
    EXPECT_TRUE(client_.send(at_client_, std::to_string(frame)));
  std::vector<ChannelEvent> held;
  for (int frame = 0; frame < 64; ++frame) held.push_back(server_.expect(Kind::frame));
  ChannelEvent none[1];
  EXPECT_TRUE(server_.poller().poll(none).empty());
  for (const ChannelEvent& frame : held) server_.poller().release(frame.channel, frame.token);
  for (int frame = 64; frame < kMore; ++frame) server_.expect_frame(std::to_string(frame));
}

TEST_P(OpenChannel, is_drained_before_it_closes) {
  connect({.send_bytes = 4096, .receive_bytes = 4096});
  const int from_client = fill("last");
  EXPECT_TRUE(server_.send(at_server_, "on its way"));
  client_.poller().close(at_client_, Closing::drain);
  for (int frame = 0; frame < from_client; ++frame) server_.expect_frame("last");
  std::thread server([&] { EXPECT_TRUE(is_ok(server_.expect_closed(at_server_))); });
  client_.expect_frame("on its way");
  EXPECT_TRUE(is_ok(client_.expect_closed(at_client_)));
  server.join();
}

TEST_P(OpenChannel, is_drained_by_both_sides_at_once) {
  connect();
  EXPECT_TRUE(client_.send(at_client_, "to the server"));
  EXPECT_TRUE(server_.send(at_server_, "to the client"));
  client_.poller().close(at_client_, Closing::drain);
  server_.poller().close(at_server_, Closing::drain);
  std::thread server([&] {
    server_.expect_frame("to the server");
    EXPECT_TRUE(is_ok(server_.expect_closed(at_server_)));
  });
  client_.expect_frame("to the client");
  EXPECT_TRUE(is_ok(client_.expect_closed(at_client_)));
  server.join();
}

TEST_P(OpenChannel, takes_no_frames_while_it_is_drained) {
  connect();
  client_.poller().close(at_client_, Closing::drain);
  EXPECT_FALSE(client_.send(at_client_, "late"));
  EXPECT_EQ(client_.poller().status(at_client_).code(), Code::closed);
  EXPECT_EQ(client_.poller().commit(at_client_, 0), Outcome::failed);
  EXPECT_FALSE(client_.poller().is_open(at_client_));
  EXPECT_TRUE(server_.poller().is_open(at_server_));
  std::span<std::byte> space;
  EXPECT_EQ(client_.poller().claim(at_client_, 0, 0, space), Outcome::failed);
}

TEST_P(OpenChannel, that_nobody_drains_ends_after_a_time) {
  ASSERT_TRUE(is_ok(config_.set("close.timeout_ms", 50)));
  EndpointSide client(config_);
  const ChannelId id = client.connect(server_);
  client.expect(Kind::opened);
  client.poller().close(id, Closing::drain);  // the server does not poll
  const Status cause = client.expect_closed(id);
  EXPECT_EQ(cause.code(), Code::deadline_exceeded);
  expect_contains(cause.message(), "close.timeout_ms = 50");
}

TEST_P(OpenChannel, closes_at_once) {
  connect();
  client_.poller().close(at_client_, Closing::now);
  EXPECT_EQ(client_.expect_closed(at_client_).code(), Code::closed);
  const Status cause = server_.expect_closed(at_server_);
  EXPECT_EQ(cause.code(), Code::closed);
  expect_contains(cause.message(), "client");
  EXPECT_FALSE(server_.send(at_server_, "late"));
  (void)server_.poller().wait(Wait::none());
  EXPECT_FALSE(server_.poller().info(at_server_).ok());
}

TEST_P(OpenChannel, that_opens_and_closes_in_one_batch_can_be_asked_about_while_that_is_handled) {
  at_client_ = client_.connect(server_, {.greeting = {std::byte{7}}});
  client_.expect(Kind::opened);
  client_.poller().close(at_client_, Closing::now);
  Poller& poller = server_.poller();
  const ChannelId channel{0, 1};  // the server's first
  const auto has_closed = [&] {
    return poller.status(channel).message().find("has closed the channel") != std::string::npos;
  };
  while (!has_closed()) {
    (void)poller.wait(Wait::at_most(std::chrono::milliseconds(1)));
    EXPECT_TRUE(poller.poll({}).empty());  // learns of it, and tells nothing yet
  }
  ChannelEvent events[4];
  const auto told = poller.poll(events);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].kind, Kind::opened);
  EXPECT_EQ(told[1].kind, Kind::closed);
  const auto info = poller.info(channel);
  ASSERT_TRUE(is_ok(info));
  EXPECT_EQ(info->greeting.front(), std::byte{7});
  EXPECT_TRUE(poller.poll(events).empty());
  EXPECT_EQ(poller.info(channel).status().code(), Code::closed);
}

TEST_P(OpenChannel, ends_with_the_endpoint_of_its_peer) {
  connect();
  client_.endpoint().close();
  EXPECT_EQ(server_.expect_closed(at_server_).code(), Code::closed);
  EXPECT_EQ(client_.expect_closed(at_client_).code(), Code::closed);
  for (int each = 0; each < 2; ++each) EXPECT_EQ(client_.poller().wait(), Outcome::failed);
}

TEST_P(OpenChannel, keeps_frames_that_are_held_when_it_closes) {
  connect();
  EXPECT_TRUE(client_.send(at_client_, "kept"));
  const ChannelEvent frame = server_.expect(Kind::frame);
  client_.poller().close(at_client_, Closing::now);
  EXPECT_EQ(server_.expect_closed(at_server_).code(), Code::closed);
  EXPECT_EQ(test::text_of(frame.data), "kept");
  server_.poller().release(frame.channel, frame.token);
}

TEST_P(OpenChannel, tells_where_its_frames_lie_and_keeps_that_mapped_as_long_as_asked) {
  connect({.send_bytes = 16384, .receive_bytes = 8192});
  auto sends = client_.poller().rings(at_client_);
  auto receives = server_.poller().rings(at_server_);
  ASSERT_TRUE(is_ok(sends) && is_ok(receives));
  EXPECT_EQ(sends->outgoing.size(), 16384u);
  EXPECT_EQ(sends->incoming.size(), 8192u);
  EXPECT_EQ(receives->incoming.size(), 16384u);
  EXPECT_EQ(client_.claim(at_client_, 4, 4).data(), sends->outgoing.data() + 16);
  EXPECT_TRUE(client_.send(at_client_, "kept"));
  const ChannelEvent frame = server_.expect(Kind::frame);
  EXPECT_EQ(frame.data.data(), receives->incoming.data() + 16);
  client_.poller().close(at_client_, Closing::now);
  EXPECT_EQ(server_.expect_closed(at_server_).code(), Code::closed);
  EXPECT_TRUE(is_ok(server_.poller().rings(at_server_)));  // a frame is held
  server_.poller().release(frame.channel, frame.token);
  EXPECT_EQ(server_.poller().rings(at_server_).status().code(), Code::closed);
  EXPECT_EQ(test::text_of(receives->incoming.subspan(16, 4)), "kept");
  sends->outgoing[0] = std::byte{1};
}

// Java's buffers keep addresses so, until they are collected, and no memory.
TEST_P(OpenChannel, that_has_ended_gives_its_memory_back_to_who_keeps_addresses_alone) {
  std::vector<std::shared_ptr<const void>> kept;
  const auto memory = [&] { return test::value_of(server_.endpoint().metrics()).memory_bytes; };
  for (int peer = 0; peer < 20; ++peer) {
    connect();
    kept.push_back(test::value_of(server_.poller().rings(at_server_)).addresses);
    EXPECT_TRUE(client_.send(at_client_, "held"));
    const ChannelEvent frame = server_.expect(Kind::frame);
    client_.poller().close(at_client_, Closing::now);
    EXPECT_EQ(client_.expect_closed(at_client_).code(), Code::closed);
    EXPECT_EQ(server_.expect_closed(at_server_).code(), Code::closed);
    EXPECT_EQ(test::text_of(frame.data), "held");
    EXPECT_GT(memory(), 0u);
    server_.poller().release(frame.channel, frame.token);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (memory() > 0 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    EXPECT_EQ(memory(), 0u);
  }
}

// Its network thread, which destroys links otherwise, has ended.
TEST_P(OpenChannel, of_an_endpoint_that_has_closed_gives_its_memory_back_when_its_poller_lets_go) {
  connect();
  EXPECT_TRUE(client_.send(at_client_, "held"));
  const ChannelEvent frame = server_.expect(Kind::frame);
  const auto memory = [&] { return test::value_of(server_.endpoint().metrics()).memory_bytes; };
  server_.endpoint().close();
  EXPECT_EQ(server_.expect_closed(at_server_).code(), Code::closed);
  EXPECT_EQ(test::text_of(frame.data), "held");
  EXPECT_GT(memory(), 0u);
  server_.poller().release(frame.channel, frame.token);
  EXPECT_EQ(memory(), 0u);
}

// A binding that keeps their memory keeps that alone.
TEST_P(OpenChannel, that_has_closed_keeps_no_descriptor_for_who_keeps_its_memory) {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  connect();  // transports have some of their own, once there was a link
  client_.poller().close(at_client_, Closing::now);
  EXPECT_EQ(server_.expect_closed(at_server_).code(), Code::closed);
  EXPECT_EQ(client_.expect_closed(at_client_).code(), Code::closed);
  std::vector<ChannelRings> kept;
  const auto close_one = [&] {
    connect();
    kept.push_back(test::value_of(client_.poller().rings(at_client_)));
    kept.push_back(test::value_of(server_.poller().rings(at_server_)));
    client_.poller().close(at_client_, Closing::now);
    EXPECT_EQ(server_.expect_closed(at_server_).code(), Code::closed);
    EXPECT_EQ(client_.expect_closed(at_client_).code(), Code::closed);
  };
  close_one();
  const auto before = descriptors();
  for (int more = 0; more < 20; ++more) close_one();
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (descriptors() > before && std::chrono::steady_clock::now() < limit)
    std::this_thread::yield();
  EXPECT_LE(descriptors(), before);
}

TEST_P(OpenChannel, refuses_frames_that_it_cannot_take) {
  connect({.send_bytes = 4096, .receive_bytes = 4096});
  Poller& poller = client_.poller();
  std::span<std::byte> space;
  EXPECT_EQ(poller.claim(at_client_, 1009, 1009, space), Outcome::failed);
  EXPECT_EQ(poller.status(at_client_).code(), Code::invalid_argument);
  expect_contains(poller.status(at_client_).message(), "1008");
  EXPECT_EQ(client_.claim(at_client_, 1008, 5000).size(), 2048u - 16);  // half the ring
  EXPECT_EQ(poller.commit(at_client_, 2048), Outcome::failed);
  EXPECT_EQ(poller.commit(at_client_, 10), Outcome::done);
  EXPECT_EQ(poller.commit(at_client_, 0), Outcome::failed);
  EXPECT_EQ(poller.status(at_client_).code(), Code::wrong_state);
}

// Rings round up what is claimed: that is not the engine's.
TEST_P(OpenChannel, takes_no_more_of_a_claim_than_it_gave) {
  connect({.send_bytes = 4096, .receive_bytes = 4096});
  Poller& poller = client_.poller();
  for (size_t bytes = 0; bytes <= 130; ++bytes) {
    ASSERT_EQ(client_.claim(at_client_, bytes, bytes).size(), bytes);
    for (size_t more = 1; more < 64; ++more) {
      EXPECT_EQ(poller.commit(at_client_, bytes + more), Outcome::failed) << bytes << "+" << more;
      EXPECT_EQ(poller.status(at_client_).code(), Code::invalid_argument);
    }
  }
  const std::span<std::byte> claim = client_.claim(at_client_, 4, 4);  // stays
  std::memcpy(claim.data(), "last", 4);
  EXPECT_EQ(poller.commit(at_client_, 5), Outcome::failed);
  EXPECT_EQ(poller.commit(at_client_, 4), Outcome::done);
  poller.post();
  server_.expect_frame("last");
}

TEST_P(OpenChannel, forgets_a_refusal_with_the_next_claim_and_commit) {
  connect({.send_bytes = 4096, .receive_bytes = 4096});
  Poller& poller = client_.poller();
  EXPECT_TRUE(client_.claim(at_client_, 1009, 1009).empty());
  fill("0123456789");  // until a claim finds no room, which is no refusal
  EXPECT_TRUE(is_ok(poller.status(at_client_)));
  EXPECT_EQ(poller.commit(at_client_, 1), Outcome::failed);
  EXPECT_EQ(poller.status(at_client_).code(), Code::wrong_state);
  server_.expect_frame("0123456789");
}

TEST_P(OpenChannel, counts_with_sizes_of_any_number_of_bytes) {
  connect({.send_bytes = 4096, .receive_bytes = 4096});
  Poller& poller = client_.poller();
  EXPECT_EQ(client_.claim(at_client_, 1, SIZE_MAX).size(), 2048u - 16);
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX - 15, size_t{1} << 32}) {
    EXPECT_EQ(poller.commit(at_client_, bytes), Outcome::failed);
    EXPECT_EQ(poller.status(at_client_).code(), Code::invalid_argument);
  }
  EXPECT_TRUE(client_.claim(at_client_, SIZE_MAX, SIZE_MAX).empty());
  EXPECT_EQ(poller.status(at_client_).code(), Code::invalid_argument);
  EXPECT_TRUE(client_.send(at_client_, "goes on"));
  server_.expect_frame("goes on");
}

TEST_P(OpenChannel, is_sent_to_by_another_thread_while_its_poller_sleeps) {
  connect();
  std::atomic<bool> sent = false;
  std::thread other([&] {
    while (!client_.poller().try_enter()) std::this_thread::yield();
    EXPECT_TRUE(client_.send(at_client_, "by another thread"));
    client_.poller().leave();
    sent = true;
    client_.poller().wake();
  });
  do EXPECT_EQ(client_.poller().wait(EndpointSide::kAtMost), Outcome::done);
  while (!sent);
  other.join();
  server_.expect_frame("by another thread");
}

TEST_P(Channels, are_refused_with_the_reason_of_the_peer) {
  EndpointSide server(config_, {.accept = [](const ChannelRequest& request) {
                        EXPECT_EQ(request.peer, "unwanted");
                        return ChannelAcceptance{.refusal = "no more guests today"};
                      }});
  EndpointSide client(config_, {.name = "unwanted"});
  const Status cause = client.expect_closed(client.connect(server));
  EXPECT_EQ(cause.code(), Code::cancelled);
  expect_contains(cause.message(), "no more guests today");
}

TEST_P(Channels, get_the_lesser_of_both_rings) {
  EndpointSide server(config_, {.accept = [](const ChannelRequest& request) {
                        EXPECT_EQ(request.send_bytes, 65536u);
                        EXPECT_EQ(request.receive_bytes, 8192u);
                        return ChannelAcceptance{.send_bytes = 20000, .receive_bytes = 1u << 20};
                      }});
  EndpointSide client(config_);
  const ChannelId id = client.connect(server, {.send_bytes = 8192, .receive_bytes = 65536});
  client.expect(Kind::opened);
  EXPECT_EQ(client.poller().info(id)->send_bytes, 8192u);
  EXPECT_EQ(client.poller().info(id)->receive_bytes, 16384u);  // the power of two below 20000
}

TEST_P(Channels, are_served_by_the_poller_that_their_acceptor_names) {
  EndpointSide server(config_, {.poller_count = 2, .accept = [](const ChannelRequest&) {
                                  return ChannelAcceptance{.poller = 1};
                                }});
  EndpointSide client(config_);
  const ChannelId id = client.connect(server);
  client.expect(Kind::opened);
  EXPECT_TRUE(client.send(id, "hello"));
  Poller& poller = server.endpoint().poller(1);
  std::string received;
  while (received.empty() && poller.wait(EndpointSide::kAtMost) == Outcome::done) {
    ChannelEvent events[4];
    for (const ChannelEvent& event : poller.poll(events)) received = test::text_of(event.data);
  }
  EXPECT_EQ(received, "hello");
}

TEST_P(Channels, beyond_the_memory_limit_are_refused_with_the_figures_and_others_stand) {
  // Room for one: of a link by shm a side has the rings that it receives from, else all.
  const std::string limit = GetParam() == "shm" ? "1572864" : "3145728";
  Config limited = config_;
  ASSERT_TRUE(is_ok(limited.set("memory.limit_bytes", limit)));
  EndpointSide server(limited);
  EndpointSide client(config_);
  const ChannelSpec megabyte{.send_bytes = 1 << 20, .receive_bytes = 1 << 20};
  const ChannelId first = client.connect(server, megabyte);
  client.expect(Kind::opened);
  const Status cause = client.expect_closed(client.connect(server, megabyte));
  EXPECT_EQ(cause.code(), Code::resource_limit);
  expect_contains(cause.message(), "memory.limit_bytes = " + limit);
  EXPECT_TRUE(client.send(first, "still there"));
  const ChannelId at_server = server.expect(Kind::opened).channel;
  server.expect_frame("still there");
  // What a channel took is given back with it.
  client.poller().close(first, Closing::now);
  EXPECT_EQ(client.expect_closed(first).code(), Code::closed);
  EXPECT_EQ(server.expect_closed(at_server).code(), Code::closed);
  client.connect(server, megabyte);
  client.expect(Kind::opened);
}

TEST_P(Channels, beyond_the_limit_of_channels_are_refused) {
  EndpointSide server(config_, {.channel_limit = 1});
  EndpointSide client(config_, {.channel_limit = 2});
  client.connect(server);
  client.expect(Kind::opened);
  const Status cause = client.expect_closed(client.connect(server));
  EXPECT_EQ(cause.code(), Code::limit_exceeded);
  expect_contains(cause.message(), "channel_limit");
  EndpointSide one(config_, {.channel_limit = 1});
  one.connect(server.address());
  EXPECT_EQ(one.poller().connect(server.address(), {}).status().code(), Code::limit_exceeded);
}

TEST_P(Channels, that_are_idle_are_drained_and_say_why) {
  EndpointSide server(config_);
  ASSERT_TRUE(is_ok(config_.set("channel.idle_ms", 40)));
  EndpointSide client(config_);
  const ChannelId id = client.connect(server);
  client.expect(Kind::opened);
  const ChannelId at_server = server.expect(Kind::opened).channel;
  EXPECT_TRUE(client.send(id, "the last one"));
  std::thread other([&] {
    server.expect_frame("the last one");
    EXPECT_TRUE(is_ok(server.expect_closed(at_server)));
  });
  const Status cause = client.expect_closed(id);
  other.join();
  EXPECT_EQ(cause.code(), Code::closed);
  expect_contains(cause.message(), "channel.idle_ms = 40");
}

TEST_P(Channels, that_carry_something_now_and_then_are_not_idle) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kIdle = std::chrono::milliseconds(200);
  EndpointSide server(config_);
  ASSERT_TRUE(is_ok(config_.set("channel.idle_ms", static_cast<int>(kIdle.count()))));
  EndpointSide client(config_);
  const ChannelId id = client.connect(server);
  Clock::time_point last = Clock::now();
  client.expect(Kind::opened);
  server.expect(Kind::opened);
  const Clock::time_point end = last + 3 * kIdle;
  Clock::duration longest{};
  while (last < end) {
    if (!client.send(id, "here")) break;
    const ChannelEvent event = server.next();
    if (event.kind != Kind::frame) break;
    server.poller().release(event.channel, event.token);
    (void)client.poller().wait(Wait::none());
    (void)server.poller().wait(Wait::none());
    const Clock::time_point now = Clock::now();
    longest = std::max(longest, now - last);
    last = now;
  }
  // A machine that stands still makes it idle.
  EXPECT_TRUE(last >= end || longest >= kIdle) << client.poller().status(id).to_string();
}

TEST_P(Channels, cross_when_both_sides_dial) {
  EndpointSide a(config_, {.name = "a"});
  EndpointSide b(config_, {.name = "b"});
  const ChannelId from_a = a.connect(b);
  const ChannelId from_b = b.connect(a);
  for (int channel = 0; channel < 2; ++channel) a.expect(Kind::opened);
  for (int channel = 0; channel < 2; ++channel) b.expect(Kind::opened);
  EXPECT_TRUE(a.send(from_a, "from a"));
  EXPECT_TRUE(b.send(from_b, "from b"));
  b.expect_frame("from a");
  a.expect_frame("from b");
}

TEST_P(Channels, of_one_endpoint_lead_to_many_peers) {
  constexpr int kPeers = 40;
  EndpointSide server(config_);
  std::vector<std::unique_ptr<EndpointSide>> clients;
  std::vector<ChannelId> ids;
  for (int peer = 0; peer < kPeers; ++peer) {
    clients.push_back(std::make_unique<EndpointSide>(config_));
    ids.push_back(clients.back()->connect(server, {.send_bytes = 4096, .receive_bytes = 4096}));
  }
  for (int peer = 0; peer < kPeers; ++peer) {
    clients[peer]->expect(Kind::opened);
    EXPECT_TRUE(clients[peer]->send(ids[peer], std::to_string(peer)));
  }
  std::vector<bool> heard(kPeers);
  for (int left = kPeers; left > 0;) {
    const ChannelEvent event = server.next();
    if (event.kind != Kind::frame) continue;
    heard[std::stoi(test::text_of(event.data))] = true;
    --left;
  }
  EXPECT_EQ(std::count(heard.begin(), heard.end(), true), kPeers);
}

TEST_P(Channels, that_come_and_go_leave_nothing_behind) {
  const int rounds = GetParam() == "verbs" ? 50 : 300;  // its devices are software
  EndpointSide server(config_, {.channel_limit = 4});
  EndpointSide client(config_, {.channel_limit = 4});
  size_t descriptors = 0;
  for (int round = 0; round < rounds; ++round) {
    const ChannelId id = client.connect(server, {.send_bytes = 4096, .receive_bytes = 4096});
    client.expect(Kind::opened);
    const ChannelId at_server = server.expect(Kind::opened).channel;
    EXPECT_TRUE(client.send(id, "once"));
    server.expect_frame("once");
    client.poller().close(id, Closing::drain);
    std::thread other([&] { EXPECT_TRUE(is_ok(server.expect_closed(at_server))); });
    EXPECT_TRUE(is_ok(client.expect_closed(id)));
    other.join();
    // A link may still be leaving when its channel has closed.
    if (round == 10) descriptors = open_descriptors() + 3 * 8;
  }
  EXPECT_LE(open_descriptors(), descriptors);
}

TEST(Endpoint, that_is_destroyed_gives_back_the_memory_of_channels_that_were_open) {
  const Config config = endpoint_config("shm");
  const size_t before = shared_mappings();
  {
    EndpointSide server(config);
    EndpointSide client(config);
    const ChannelId id = client.connect(server);
    client.expect(Kind::opened);
    EXPECT_TRUE(client.send(id, "held"));
    server.expect(Kind::opened);
    server.expect(Kind::frame);  // which is not released
    EXPECT_GT(shared_mappings(), before);
  }
  EXPECT_EQ(shared_mappings(), before);
}

TEST(Endpoint, that_nobody_listens_at_says_so) {
  Config config;
  ASSERT_TRUE(is_ok(config.set("connect.timeout_ms", 50)));
  EndpointSide client(config);  // before the port is free: it may not be its own
  std::string address;
  {
    EndpointSide gone(config);
    address = gone.address();
  }
  const Status cause = client.expect_closed(client.connect(address));
  EXPECT_EQ(cause.code(), Code::connect_failed);
  expect_contains(cause.message(), address);
  expect_contains(cause.message(), "connect.timeout_ms = 50");
}

constexpr std::string_view kAnswer = "this is Faro";

EndpointSpec answering() {
  const auto bytes = test::bytes_of(kAnswer);
  return {.answer_to_others = {bytes.begin(), bytes.end()}};
}

// Over TLS, too, in clear: that it does not begin with TLS is seen first.
TEST_P(Channels, have_an_answer_to_whoever_begins_with_another_protocol) {
  EndpointSide server(config_, answering());
  test::RawPeer other(server.address());
  other.send_text("GET");  // less than a preamble
  EXPECT_EQ(other.receive_text(), kAnswer);
  // A peer that begins as Faro does gets no answer.
  test::RawPeer old(server.address());
  wire::Preamble preamble = wire::control_preamble();
  ++preamble.version;
  old.send_bytes(std::as_bytes(std::span(&preamble, 1)));
  EXPECT_EQ(old.receive_text(), "");
}

TEST(Endpoint, takes_no_long_answer_to_others) {
  const std::vector<std::byte> longer(4097);
  test::expect_error(Endpoint::open({}, {.answer_to_others = longer}).status(),
                     Code::invalid_argument, {"answer_to_others", "4097", "4096"});
}

TEST(Endpoint, gives_up_dialling_when_the_channel_is_closed) {
  Config config;
  EndpointSide client(config);
  const ChannelId id = client.connect("127.0.0.1:1");
  client.poller().close(id, Closing::drain);
  EXPECT_EQ(client.expect_closed(id).code(), Code::closed);
}

// So long may a channel take to open: a poller that is refused for good must not dial on until
// then.
constexpr uint64_t kLongestConnectMs = 86'400'000;

TEST(Endpoint, links_only_with_peers_that_know_the_secret) {
  const test::SecretFile secret;
  const test::SecretFile other(test::kOtherSecret);
  Config knows, guesses, has_none;
  ASSERT_TRUE(is_ok(knows.set("security.secret_file", secret.path())));
  ASSERT_TRUE(is_ok(guesses.set("security.secret_file", other.path())));
  for (Config* each : {&knows, &guesses, &has_none})
    ASSERT_TRUE(is_ok(each->set("connect.timeout_ms", kLongestConnectMs)));
  EndpointSide server(knows);
  EndpointSide friendly(knows);
  const ChannelId id = friendly.connect(server);
  friendly.expect(Kind::opened);
  EXPECT_TRUE(friendly.send(id, "secret"));
  EndpointSide guesser(guesses);
  EndpointSide simple(has_none);
  test::expect_error(guesser.expect_closed(guesser.connect(server)), Code::authentication_failed,
                     {"have different secrets"});
  test::expect_error(simple.expect_closed(simple.connect(server)), Code::authentication_failed,
                     {"has a secret", "has none"});
  test::expect_error(friendly.expect_closed(friendly.connect(simple)), Code::authentication_failed,
                     {"has a secret", "has none"});
  server.expect(Kind::opened);
  server.expect_frame("secret");
}

// Gives the files of a node as bytes.
Config config_of_bytes(const NodeFiles& files) {
  Config config = endpoint_config("tcp");
  EXPECT_TRUE(is_ok(config.set("security.tls", "on")));
  for (const auto& [name, path] : {std::pair{"security.certificate", files.certificate()},
                                   {"security.key", files.key()},
                                   {"security.authority", files.authority()}})
    EXPECT_TRUE(is_ok(config.set_bytes(name, test::bytes_of(content(path)))));
  return config;
}

TEST(Endpoint, takes_certificates_as_bytes) {
  const Config config = config_of_bytes(Authority().issue());
  for (const char* name : {"security.certificate", "security.key", "security.authority"})
    EXPECT_EQ(config.get(name), "(given as bytes)");
  EndpointSide server(config), client(config);
  const ChannelId id = client.connect(server);
  client.expect(Kind::opened);
  server.expect(Kind::opened);
  EXPECT_TRUE(client.send(id, "in secret"));
  server.expect_frame("in secret");
}

TEST(Endpoint, answers_whoever_speaks_another_protocol_within_tls) {
  const NodeFiles files = Authority().issue();
  EndpointSide server(config_of_bytes(files), answering());
  const auto credentials = tls::Credentials::load(files.resolved()).value();
  base::UniqueFd fd = test::RawPeer(server.address()).take();
  ASSERT_EQ(fcntl(fd.get(), F_SETFL, O_NONBLOCK), 0);
  auto encryption = credentials->dial(fd.get(), "127.0.0.1");
  tls::Socket other(std::move(fd), std::move(encryption));
  const auto when_ready = [&](auto attempt) {
    ssize_t moved = -1;
    pollfd input{other.get(), POLLIN, 0};
    while ((moved = attempt()) < 0 && errno == EAGAIN && poll(&input, 1, 10'000) == 1) continue;
    return moved;
  };
  ASSERT_EQ(when_ready([&] { return other.send(test::bytes_of("GET")); }), 3);
  std::array<std::byte, 64> buffer;
  const ssize_t got = when_ready([&] { return other.receive(buffer); });
  ASSERT_GT(got, 0);
  EXPECT_EQ(test::text_of(std::span(buffer).first(static_cast<size_t>(got))), kAnswer);
}

TEST(Endpoint, says_what_is_wrong_with_bytes_without_showing_them) {
  Config config = config_of_bytes(Authority().issue());
  ASSERT_TRUE(is_ok(config.set_bytes("security.key", test::bytes_of("no key at all"))));
  const Status status = Endpoint::open(config, {}).status();
  EXPECT_EQ(status.code(), Code::config_invalid);
  expect_contains(status.message(), "security.key = (given as bytes): no private key");
  EXPECT_EQ(status.message().find("no key at all"), std::string::npos);
}

TEST(Endpoint, takes_a_secret_as_bytes) {
  Config config = endpoint_config("tcp"), other = config;
  ASSERT_TRUE(is_ok(config.set_bytes("security.secret_file",
                                     test::bytes_of("0123456789abcdef0123456789abcdef"))));
  ASSERT_TRUE(is_ok(
      other.set_bytes("security.secret_file", test::bytes_of("another one 0123456789abcdef0123"))));
  ASSERT_TRUE(is_ok(other.set("connect.timeout_ms", kLongestConnectMs)));
  EndpointSide server(config), client(config), outsider(other);
  client.connect(server);
  client.expect(Kind::opened);
  const ChannelId id = outsider.connect(server);
  expect_contains(outsider.expect_closed(id).message(), "secret");
}

TEST(Endpoint, refuses_a_certificate_of_another_authority_for_good) {
  EndpointSide server(config_of_bytes(Authority().issue()));
  Config config = config_of_bytes(Authority().issue());
  ASSERT_TRUE(is_ok(config.set("connect.timeout_ms", kLongestConnectMs)));
  EndpointSide client(config);
  test::expect_error(client.expect_closed(client.connect(server)), Code::authentication_failed,
                     {"the peer's certificate is refused"});
}

/// An outsider that dials many times at once, and again whenever it was refused, until it is destroyed.
class Storm {
 public:
  Storm(const Config& config, const std::string& address)
      : thread_([this, config, address] { run(config, address); }) {}
  ~Storm() {
    ends_ = true;
    thread_.join();
  }
  int refused() const { return refused_; }
  /// Blocks: until it was refused that often. What hangs fails by the test's time limit.
  void await(int refused) const {
    for (int seen = refused_; seen < refused; seen = refused_) refused_.wait(seen);
  }

  static constexpr int kDialled = 10;  // at once

 private:
  void run(const Config& config, const std::string& address) {
    EndpointSide side(config, {.name = "outsider"});
    for (int i = 0; i < kDialled; ++i) (void)side.connect(address);
    while (!ends_) {
      const ChannelEvent event = side.expect(Kind::closed);
      EXPECT_EQ(side.poller().status(event.channel).code(), Code::authentication_failed);
      ++refused_;
      refused_.notify_all();
      (void)side.connect(address);
    }
  }

  std::atomic<int> refused_{0};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

/// A friend opens a channel, and sends over it, while an outsider storms the server.
void expect_harmless(const Config& friends, const Config& outsiders) {
  const base::Clock& clock = base::SystemClock::instance();
  EndpointSide server(friends, {.name = "server"});
  EndpointSide client(friends, {.name = "client"});
  const base::Nanoseconds begin = clock.now_ns();
  const Storm storm(outsiders, server.address());
  // Those that may fail at once, and those that were let in beside them. Each of the others had to wait for an interval;
  // a thread that is held up only makes it longer.
  constexpr int kWaited = 30;
  storm.await(links::AttemptLimiter::kAtOnce + Storm::kDialled + kWaited);
  EXPECT_GE(clock.now_ns() - begin, (kWaited - 1) * links::AttemptLimiter::kInterval)
      << "it is not limited";
  const ChannelId id = client.connect(server);
  client.expect(Kind::opened);
  EXPECT_EQ(server.poller().info(server.expect(Kind::opened).channel).value().peer, "client");
  const auto say = [&](const std::string& text) {
    EXPECT_TRUE(client.send(id, text));
    server.expect_frame(text);
  };
  say("in the storm");
  storm.await(storm.refused() + Storm::kDialled);
  say("still");
}

TEST(Endpoint, has_friends_whose_channels_open_in_a_storm_of_wrong_secrets) {
  const test::SecretFile secret;
  const test::SecretFile other(test::kOtherSecret);
  Config knows = endpoint_config("tcp"), guesses = knows;
  ASSERT_TRUE(is_ok(knows.set("security.secret_file", secret.path())));
  ASSERT_TRUE(is_ok(guesses.set("security.secret_file", other.path())));
  expect_harmless(knows, guesses);
}

TEST(Endpoint, has_friends_whose_channels_open_in_a_storm_of_wrong_certificates) {
  const Authority authority;
  const Config friends = config_of_bytes(authority.issue());
  // One is refused, and one refuses the server itself, and leaves in the middle of TLS.
  for (const NodeFiles& files :
       {authority.issue({.hosts = {"elsewhere.example"}}), Authority().issue()})
    expect_harmless(friends, config_of_bytes(files));
}

/// Endpoints whose certificates are for other hosts than those at which they listen.
class CertificatesOfElsewhere : public testing::Test {
 protected:
  Config config_with(const NodeFiles& files, const std::string& peers) {
    Config config = config_of_bytes(files);
    EXPECT_TRUE(is_ok(config.set("security.peers", peers)));
    EXPECT_TRUE(is_ok(config.set("connect.timeout_ms", kLongestConnectMs)));
    return config;
  }
  // Why the client finds no channel; ok: it has one.
  Status dial(const std::string& client_asks, const std::string& server_asks) {
    EndpointSide server(config_with(server_files_, server_asks));
    EndpointSide client(config_with(files_, client_asks));
    const ChannelId id = client.connect(server);
    if (client.next().kind == Kind::opened) return Status::Ok();
    return client.poller().status(id);
  }

  NodeFiles files_ = Authority().issue({.hosts = {"elsewhere.example"}});
  NodeFiles server_files_ = files_;
};

TEST_F(CertificatesOfElsewhere, are_refused_where_they_have_to_be_for_the_host) {
  expect_contains(dial("host", "authority").message(), "mismatch");
  const Status refused = dial("authority", "host");
  EXPECT_EQ(refused.code(), Code::authentication_failed);
  expect_contains(refused.message(), "its certificate is not for 127.0.0.1");
}

TEST_F(CertificatesOfElsewhere, are_admitted_by_their_authority_alone) {
  EXPECT_TRUE(is_ok(dial("authority", "authority")));
}

TEST_F(CertificatesOfElsewhere, are_admitted_by_the_fingerprint_that_a_refusal_shows) {
  const std::string none(64, '0');
  const std::string text(dial(none, "authority").message());
  expect_contains(text, "is none of the 1 that security.peers names");
  const std::string_view before = "its SHA-256 fingerprint ";
  ASSERT_NE(text.find(before), text.npos);
  const std::string shown = text.substr(text.find(before) + before.size(), 64);
  EXPECT_TRUE(is_ok(dial(shown, none + ", " + shown)));
  // The accepting side says so, too; the other one is only told that its certificate is refused.
  expect_contains(dial(shown, none).message(), "refuses this node's certificate");
}

TEST_F(CertificatesOfElsewhere, are_admitted_by_either_fingerprint_whoever_has_signed_them) {
  server_files_ = Authority().issue({.hosts = {"another.example"}});
  const auto shown = [](const std::string& text, const std::string& before, size_t digits) {
    const size_t at = text.find(before);
    return at == text.npos ? text : text.substr(at + before.size(), digits);
  };
  const std::string none(40, '0');
  const std::string refused(dial(none, none).message());
  const std::string sha256 = shown(refused, "its SHA-256 fingerprint ", 64);
  const std::string sha1 = shown(refused, "(SHA-1 ", 40);
  // The server admits the client by one, the client the server by the other.
  std::swap(server_files_, files_);
  const std::string theirs = shown(std::string(dial(none, none).message()), "(SHA-1 ", 40);
  EXPECT_TRUE(is_ok(dial(theirs, sha256)));
  EXPECT_TRUE(is_ok(dial(theirs, none + "," + sha1)));
  expect_contains(dial(sha1, sha256).message(), "(SHA-1 " + theirs + ") is none of the 1");
  expect_contains(dial("authority", "authority").message(), "certificate");
}

TEST(Endpoint, refuses_policies_that_are_none) {
  const NodeFiles files = Authority().issue();
  Config config = config_of_bytes(files);
  ASSERT_TRUE(is_ok(config.set("security.peers", "everybody")));
  const Status status = Endpoint::open(config, {}).status();
  EXPECT_EQ(status.code(), Code::config_invalid);
  expect_contains(status.message(), "security.peers = everybody");
  Config open = endpoint_config("tcp");
  ASSERT_TRUE(is_ok(open.set("security.peers", "authority")));
  expect_contains(Endpoint::open(open, {}).status().message(), "with security.tls = off");
}

TEST(Endpoint, of_another_cluster_is_refused) {
  Config ours, theirs;
  ASSERT_TRUE(is_ok(theirs.set("cluster.id", "another")));
  EndpointSide server(ours);
  EndpointSide client(theirs);
  const Status cause = client.expect_closed(client.connect(server));
  EXPECT_EQ(cause.code(), Code::configuration_mismatch);
  expect_contains(cause.message(), "cluster.id is");
}

TEST(Endpoint, refuses_peers_that_listen_less_patiently) {
  Config patient, hasty;
  ASSERT_TRUE(is_ok(hasty.set("liveness.timeout_ms", 500)));
  EndpointSide server(patient);
  EndpointSide client(hasty);
  const Status cause = client.expect_closed(client.connect(server));
  EXPECT_EQ(cause.code(), Code::configuration_mismatch);
  expect_contains(cause.message(), "liveness.timeout_ms");
}

TEST(Endpoint, is_no_node_of_a_cluster_whatever_the_settings_say_of_one) {
  Config config = endpoint_config("tcp");
  for (const auto& [name, value] : {std::pair{"cluster.nodes", "10.0.0.1:7000,10.0.0.2"},
                                    {"cluster.node", "9"},
                                    {"cluster.node_limit", "4"},
                                    {"cluster.workers", "2,3"}})
    ASSERT_TRUE(is_ok(config.set(name, value)));
  EndpointSide server(config), client(config);
  EXPECT_EQ(server.address().find("10.0.0."), std::string::npos);
  client.connect(server);
  client.expect(Kind::opened);
  ASSERT_TRUE(is_ok(config.set("cluster.listen", "nowhere")));
  test::expect_error(Endpoint::open(config, {}).status(), Code::config_invalid,
                     {"cluster.listen: 'nowhere' is not host:port"});
}

TEST(Endpoint, that_was_closed_dials_nobody) {
  EndpointSide side{Config()};
  side.endpoint().close();
  EXPECT_EQ(side.poller().connect("127.0.0.1:1", {}).status().code(), Code::closed);
}

TEST(Endpoint, refuses_a_commit_before_the_channel_is_open) {
  EndpointSide side{Config()};
  const ChannelId id = side.connect("127.0.0.1:1");
  std::span<std::byte> space;
  EXPECT_EQ(side.poller().claim(id, 1, 1, space), Outcome::would_wait);
  EXPECT_TRUE(is_ok(side.poller().status(id)));
  EXPECT_TRUE(side.poller().is_open(id));
  EXPECT_FALSE(side.poller().is_open({}));
  EXPECT_EQ(side.poller().commit(id, 0), Outcome::failed);
  EXPECT_EQ(side.poller().status(id).code(), Code::wrong_state);
}

TEST(Endpoint, refuses_arguments_that_make_no_sense) {
  const Config config;
  EXPECT_EQ(Endpoint::open(config, {.poller_count = 0}).status().code(), Code::invalid_argument);
  EXPECT_EQ(Endpoint::open(config, {.channel_limit = 70000}).status().code(),
            Code::invalid_argument);
  EXPECT_EQ(Endpoint::open(config, {.name = std::string(300, 'x')}).status().code(),
            Code::invalid_argument);
  EndpointSide client(config);
  Poller& poller = client.poller();
  const auto code = [&](std::string_view address, const ChannelSpec& spec) {
    return poller.connect(address, spec).status().code();
  };
  EXPECT_EQ(code("127.0.0.1", {}), Code::invalid_argument);
  EXPECT_EQ(code("127.0.0.1:1", {.send_bytes = 5000}), Code::invalid_argument);
  EXPECT_EQ(code("127.0.0.1:1", {.receive_bytes = 2048}), Code::invalid_argument);
  EXPECT_EQ(code("127.0.0.1:1", {.greeting = std::vector<std::byte>(4097)}),
            Code::invalid_argument);
  EXPECT_EQ(poller.wait(Wait::at_most(std::chrono::milliseconds(-1))), Outcome::failed);
  std::span<std::byte> space;
  EXPECT_EQ(poller.claim({}, 1, 1, space), Outcome::failed);
  EXPECT_EQ(poller.status({}).code(), Code::closed);
  poller.release({}, 0);
}

TEST(Endpoint, that_has_nothing_to_tell_waits_no_longer_than_it_is_told) {
  EndpointSide side{Config()};
  EXPECT_EQ(side.poller().wait(Wait::none()), Outcome::would_wait);
  EXPECT_EQ(side.poller().wait(Wait::at_most(std::chrono::milliseconds(1))), Outcome::deadline);
  side.poller().wake();
  EXPECT_EQ(side.poller().wait(), Outcome::done);
  EXPECT_EQ(side.poller().wait(Wait::none()), Outcome::would_wait);
}

}  // namespace
}  // namespace faro
