// Processes of one host in network namespaces of their own, as containers are: by a folder that all see they share memory. Where they
// cannot, they say why.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "faro/log.h"
#include "faro/session.h"
#include "support/child.h"
#include "support/endpoint_pair.h"
#include "support/expect.h"
#include "support/log_lines.h"
#include "support/query_end.h"
#include "support/session_cluster.h"
#include "support/temporary_folder.h"
#include "system/cables.h"
#include "system/checked_shuffle.h"
#include "system/node_processes.h"

namespace faro::test {
namespace {

using Kind = ChannelEvent::Kind;

constexpr int kFrames = 100;
constexpr const char* kNoOwnUsers = "(no user namespaces)";

/// This process is the same user as before, in a user namespace of its own.
bool leave_for_own_users() {
  const uid_t uid = geteuid();
  if (unshare(CLONE_NEWUSER) != 0) return false;
  std::ofstream("/proc/self/uid_map") << fmt::format("{0} {0} 1", uid);
  return geteuid() == uid;
}

/// A process with a network of its own.
struct Place {
  std::string transport = "auto";
  std::string folder;
  bool has_own_users = false;

  Config config(uint32_t number) const {
    Config config;
    EXPECT_TRUE(is_ok(config.set("transport", transport)));
    EXPECT_TRUE(is_ok(config.set("shm.folder", folder)));
    EXPECT_TRUE(is_ok(config.set("counters.folder", "")));
    EXPECT_TRUE(is_ok(config.set("security.open", "1")));
    EXPECT_TRUE(is_ok(config.set("cluster.listen", address(number))));
    return config;
  }
  static std::string address(uint32_t number) { return OwnNetwork::address(number) + ":7100"; }
};

class ShmNamespaces : public testing::Test {
 protected:
  void SetUp() override {
    network_ = OwnNetwork::make();
    if (network_ == nullptr)
      GTEST_SKIP() << "this system permits no network of its own, or has no `ip`";
  }

  template <typename Body>
  void start(uint32_t number, const Place& place, Body body) {
    processes_[number] = std::make_unique<Child>([=](const Child::Side& test) {
      if (!OwnNetwork::move_in(number, test)) return 1;
      if (place.has_own_users && !leave_for_own_users()) {
        test.say(kNoOwnUsers);
        return 1;
      }
      body(test);
      return testing::Test::HasFailure() ? 1 : 0;
    });
    EXPECT_TRUE(network_->take_in(number, *processes_[number]));
  }
  std::string hear(uint32_t number) {
    return processes_[number]->hear().value_or("(it has ended)");
  }

  /// How a channel from 1 to 0 ends: "shm ok", or why it did not open.
  std::string channel_between(const Place& first, const Place& second) {
    start(0, first, [&first](const Child::Side& test) {
      EndpointSide side(first.config(0));
      test.say("open");
      for (;;) {
        const ChannelEvent event = side.next();
        if (event.kind != Kind::frame) continue;
        EXPECT_TRUE(side.send(event.channel, text_of(event.data)));
        side.poller().release(event.channel, event.token);
      }
    });
    EXPECT_EQ(hear(0), "open");
    start(1, second, [&second](const Child::Side& test) {
      EndpointSide side(second.config(1));
      const ChannelId id = side.connect(Place::address(0));
      const ChannelEvent event = side.next();
      if (event.kind == Kind::closed) return test.say(side.poller().status(id).to_string());
      for (int i = 0; i < kFrames; ++i) {
        EXPECT_TRUE(side.send(id, std::to_string(i)));
        side.expect_frame(std::to_string(i));
      }
      test.say(side.poller().info(id).value().transport);
    });
    return hear(1);
  }

  /// Opens two channels from 1 to 0, which are to go by tcp. What either process logs at level warning, as "<number of
  /// lines>: <reason>".
  void expect_tcp(const Place& first, const Place& second, const std::string& why_of_first,
                  const std::string& why_of_second) {
    const auto told = [](const LogLines& log, const std::string& why) {
      return fmt::format("{} of {}", log.count("tcp for the link to"), log.count("; shm: " + why));
    };
    start(0, first, [&](const Child::Side& test) {
      set_log_level(LogLevel::warning);
      const LogLines log;
      EndpointSide side(first.config(0));
      test.say("open");
      for (int i = 0; i < kChannels; ++i) side.expect(Kind::opened);
      test.say(told(log, why_of_first));
      test.hear();
    });
    EXPECT_EQ(hear(0), "open");
    start(1, second, [&](const Child::Side& test) {
      set_log_level(LogLevel::warning);
      const LogLines log;
      EndpointSide side(second.config(1));
      for (int i = 0; i < kChannels; ++i) {
        const ChannelId id = side.connect(Place::address(0));
        side.expect(Kind::opened);
        EXPECT_EQ(side.poller().info(id).value().transport, "tcp");
      }
      test.say(told(log, why_of_second));
      test.hear();
    });
    const std::string of_second = hear(1);
    if (of_second == kNoOwnUsers) GTEST_SKIP() << "this system permits no user namespaces";
    EXPECT_EQ(of_second, why_of_second.empty() ? "0 of 0" : "1 of 1") << why_of_second;
    EXPECT_EQ(hear(0), why_of_first.empty() ? "0 of 0" : "1 of 1") << why_of_first;
    for (const auto& process : processes_) {
      process->say("end");
      EXPECT_EQ(process->wait_for_end(), 0);
    }
  }

  static constexpr int kChannels = 2;
  const TemporaryFolder folder_;
  std::unique_ptr<OwnNetwork> network_;
  std::unique_ptr<Child> processes_[2];
};

TEST_F(ShmNamespaces, share_memory_by_a_folder_that_both_see) {
  const Place place{.folder = folder_.path()};
  EXPECT_EQ(channel_between(place, place), "shm");
  // The sockets are there only while links are set up; of processes that are killed nothing else is left.
  for (const auto& file : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_TRUE(file.path().string().ends_with(".host")) << file.path();
}

TEST_F(ShmNamespaces, use_tcp_without_a_folder) { EXPECT_EQ(channel_between({}, {}), "tcp"); }

TEST_F(ShmNamespaces, say_that_a_folder_is_missing) {
  const Place with{.transport = "shm", .folder = folder_.path()};
  const Place without{.transport = "shm", .folder = ""};
  const std::string answer = channel_between(with, without);
  expect_contains(answer, "transport_unavailable");
  expect_contains(answer, "in different network namespaces");
  expect_contains(answer, "shm.folder");
}

TEST_F(ShmNamespaces, say_that_their_folders_differ) {
  const TemporaryFolder other;
  const Place one{.transport = "shm", .folder = folder_.path()};
  expect_contains(channel_between(one, {.transport = "shm", .folder = other.path()}),
                  "their shm.folder is not the same folder");
}

TEST_F(ShmNamespaces, say_that_their_users_differ) {
  const Place one{.transport = "shm", .folder = folder_.path()};
  Place other = one;
  other.has_own_users = true;
  const std::string answer = channel_between(one, other);
  if (answer == kNoOwnUsers) GTEST_SKIP() << "this system permits no user namespaces";
  expect_contains(answer, "different user namespaces");
}

TEST_F(ShmNamespaces, use_tcp_if_their_users_differ_and_both_warn_of_it_once) {
  const Place one{.folder = folder_.path()};
  Place other = one;
  other.has_own_users = true;
  constexpr const char* kWhy = "the nodes are in different user namespaces";
  expect_tcp(one, other, kWhy, kWhy);
}

TEST_F(ShmNamespaces, use_tcp_if_their_folders_differ_and_both_warn_of_it_once) {
  const TemporaryFolder other;
  constexpr const char* kWhy =
      "the nodes are in different network namespaces, and their shm.folder is not the same folder";
  expect_tcp({.folder = folder_.path()}, {.folder = other.path()}, kWhy, kWhy);
}

TEST_F(ShmNamespaces, are_not_warned_of_by_who_has_no_folder) {
  expect_tcp({.folder = folder_.path()}, {},
             "the nodes are in different network namespaces, and the other has no shm.folder", "");
}

TEST_F(ShmNamespaces, have_sessions_that_share_memory) {
  const Place place{.transport = "shm", .folder = folder_.path()};
  for (uint32_t n = 0; n < 2; ++n) {
    start(n, place, [&place, n](const Child::Side& test) {
      Config config = place.config(n);
      EXPECT_TRUE(is_ok(config.set("cluster.nodes", Place::address(0) + "," + Place::address(1))));
      EXPECT_TRUE(is_ok(config.set("cluster.node", uint64_t{n})));
      const auto session = value_of(Session::open(config));
      const QueryId id = n == 0 ? session->begin_query() : query_in(test.hear(), 0);
      if (n == 0) test.say(line_of(id));
      Worker& worker = session->worker(0);
      CheckedShuffle shuffle;
      EXPECT_TRUE(is_ok(shuffle.open(worker, id, {0, 1})));
      for (uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(shuffle.send(i % 2), Outcome::done);
      EXPECT_EQ(shuffle.finish(), Outcome::done);
      EXPECT_EQ(shuffle.take_to_end(), Outcome::end_of_stream);
      shuffle.close();
      Status cause;
      EXPECT_EQ(end_query(worker, id, cause), Outcome::done) << cause.to_string();
      worker.release_ownership();
      EXPECT_TRUE(is_ok(session->close()));
    });
  }
  processes_[1]->say(hear(0));
  for (uint32_t n = 0; n < 2; ++n) EXPECT_EQ(processes_[n]->wait_for_end(), 0);
}

}  // namespace
}  // namespace faro::test
