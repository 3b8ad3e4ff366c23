// Bursts: everything that is asked for at once is to come about, since nobody is hostile: channels from one address to one
// endpoint, sessions of many nodes on one host, links that break together.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "faro/session.h"
#include "support/child.h"
#include "support/endpoint_config.h"
#include "support/endpoint_pair.h"
#include "support/expect.h"
#include "support/held_address.h"
#include "transport/tcp/socket_address.h"

namespace faro::test {

/// Descriptors for all that a burst opens. False: the limit of this user is lower.
inline bool may_open(rlim_t descriptors) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < descriptors) return false;
  limit.rlim_cur = std::max(limit.rlim_cur, descriptors);
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/// Breaks connections of this process to the peer that listens there, as a firewall that forgets them: of `one_in` each first
/// one. Returns how many.
inline size_t cut_connections(const std::string& peer, size_t one_in = 1) {
  size_t met = 0;
  size_t cut = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    transport::tcp::SocketAddress address;
    address.length = sizeof address.storage;
    auto* const generic = reinterpret_cast<sockaddr*>(&address.storage);
    if (getpeername(fd, generic, &address.length) != 0 || address.family() != AF_INET ||
        transport::tcp::to_string(address) != peer || met++ % one_in != 0)
      continue;
    cut += shutdown(fd, SHUT_RDWR) == 0;
  }
  return cut;
}

/// A process that accepts channels and answers each frame with itself.
class Answerer {
 public:
  /// Make it before there are threads.
  Answerer(const Config& config, uint32_t channels)
      : child_([=](const Child::Side& parent) {
          EndpointSide side(config, {.name = "answerer", .channel_limit = 2 * channels});
          parent.say(side.address());
          for (;;) {
            const ChannelEvent event = side.next();
            if (event.kind != ChannelEvent::Kind::frame) continue;
            side.send(event.channel, text_of(event.data));
            side.poller().release(event.channel, event.token);
          }
          return 0;
        }),
        address_(child_.hear().value_or("")) {}

  const std::string& address() const { return address_; }

 private:
  Child child_;
  const std::string address_;
};

/// Many channels to one peer, dialled at once.
class ChannelBurst {
 public:
  using Kind = ChannelEvent::Kind;

  ChannelBurst(const Config& config, const Answerer& peer, uint32_t channels)
      : peer_(peer), side_(config, {.name = "caller", .channel_limit = 2 * channels}) {
    const auto begin = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i < channels; ++i)
      ids_.push_back(side_.connect(peer.address(), {.send_bytes = 4096, .receive_bytes = 4096}));
    begin_ = begin;
  }

  /// Waits until that many are open, unless one closes.
  void expect_open(size_t count) {
    for (; open_ < count; ++open_) {
      const ChannelEvent event = side_.next();
      ASSERT_EQ(event.kind, Kind::opened)
          << open_ << " of " << ids_.size()
          << " are open: " << side_.poller().status(event.channel).to_string();
    }
  }
  /// Expects that all of them open.
  void expect_all_open() {
    expect_open(ids_.size());
    const auto took = std::chrono::steady_clock::now() - begin_;
    seconds_ = std::chrono::duration<double>(took).count();
  }
  /// How long that took, from the first dial on.
  double seconds() const { return seconds_; }
  /// A frame goes over each, and back.
  void expect_all_answer() {
    size_t unsent = ids_.size();
    for (const ChannelId id : ids_) unsent -= side_.send(id, "frame");
    EXPECT_EQ(unsent, 0u);
    for (size_t answered = 0; answered < ids_.size(); ++answered) {
      const ChannelEvent event = side_.next();
      ASSERT_EQ(event.kind, Kind::frame) << side_.poller().status(event.channel).to_string();
      side_.poller().release(event.channel, event.token);
    }
  }
  size_t cut(size_t one_in = 1) const { return cut_connections(peer_.address(), one_in); }

 private:
  const Answerer& peer_;
  EndpointSide side_;
  std::chrono::steady_clock::time_point begin_;
  std::vector<ChannelId> ids_;
  size_t open_ = 0;
  double seconds_ = 0;
};

/// "tls_shm" and "tls": TLS over shm and tcp.
inline Config burst_config(std::string_view transport) {
  Config config = endpoint_config(transport == "tls_shm" ? "tls" : transport);
  if (transport == "tls_shm") {
    EXPECT_TRUE(is_ok(config.set("transport", "shm")));
  }
  // How long it takes is the machine's affair.
  EXPECT_TRUE(is_ok(config.set("connect.timeout_ms", 150'000)));
  EXPECT_TRUE(is_ok(config.set("link.mend_ms", 60'000)));
  return config;
}

inline void expect_burst_opens(const std::string& transport, uint32_t channels) {
  ASSERT_TRUE(may_open(8 * channels)) << "too few descriptors are allowed here";
  const Config config = burst_config(transport);
  const Answerer peer(config, channels);
  ChannelBurst burst(config, peer, channels);
  burst.expect_all_open();
  if (testing::Test::HasFatalFailure()) return;
  fmt::print("{} channels over {}: {:.2f} s\n", channels, transport, burst.seconds());
  burst.expect_all_answer();
}

/// Every second one of the connections that there are breaks, and later every third one, while
/// channels open. Each opens, once.
inline void expect_burst_opens_over_cuts(const std::string& transport, uint32_t channels) {
  ASSERT_TRUE(may_open(8 * channels)) << "too few descriptors are allowed here";
  Config config = burst_config(transport);
  ASSERT_TRUE(is_ok(config.set("link.mend_ms", 60'000)));  // as slow as this machine may be
  const Answerer peer(config, channels);
  ChannelBurst burst(config, peer, channels);
  for (const uint32_t part : {2u, 3u}) {
    burst.expect_open(channels / (6 - part));
    if (testing::Test::HasFatalFailure()) return;
    EXPECT_GT(burst.cut(part), 0u);
  }
  burst.expect_all_open();
  if (testing::Test::HasFatalFailure()) return;
  burst.expect_all_answer();
}

/// All connections break once the channels are open, and again while some are being mended.
inline void expect_burst_is_mended(const std::string& transport, uint32_t channels) {
  ASSERT_TRUE(may_open(8 * channels)) << "too few descriptors are allowed here";
  Config config = burst_config(transport);
  if (channels > 500) {  // more than this machine may mend in the usual time
    ASSERT_TRUE(is_ok(config.set("link.mend_ms", 60'000)));
  }
  const Answerer peer(config, channels);
  ChannelBurst burst(config, peer, channels);
  burst.expect_all_open();
  if (testing::Test::HasFatalFailure()) return;
  EXPECT_GE(burst.cut(), channels);
  burst.expect_all_answer();
  (void)burst.cut();  // over shared memory frames go on while connections are mended
  burst.expect_all_answer();
}

/// As many processes open one session, at once.
inline void expect_session_opens(const std::string& transport, uint32_t nodes) {
  std::vector<HeldAddress> held;
  std::string addresses;
  for (uint32_t n = 0; n < nodes; ++n) {
    held.emplace_back("127.0.0.1:0");
    addresses += (n == 0 ? "" : ",") + held.back().address();
  }
  Config config = burst_config(transport);
  ASSERT_TRUE(is_ok(config.set("cluster.nodes", addresses)));
  ASSERT_TRUE(is_ok(config.set("ring.bytes", 4096)));
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<Child>> processes;
  for (uint32_t n = 0; n < nodes; ++n) {
    processes.push_back(std::make_unique<Child>([&, n](const Child::Side& test) {
      EXPECT_TRUE(is_ok(config.set("cluster.node", uint64_t{n})));
      const auto session = Session::open(config);
      test.say(session.status().to_string());
      test.hear();
      return 0;
    }));
  }
  for (auto& each : processes) EXPECT_EQ(each->hear().value_or("gone"), Status().to_string());
  const auto took = std::chrono::steady_clock::now() - begin;
  fmt::print("a session of {} nodes over {}: {:.2f} s\n", nodes, transport,
             std::chrono::duration<double>(took).count());
  for (auto& each : processes) each->say("close");
  for (auto& each : processes) EXPECT_EQ(each->wait_for_end(), 0);
}

}  // namespace faro::test
