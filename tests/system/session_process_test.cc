// Sessions of real processes that cannot come about, by the public API.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "faro/log.h"
#include "support/child.h"
#include "support/session_cluster.h"

namespace faro::test {
namespace {

using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

/// A process that opens node 0 of these when it is told to, and says how that ended.
Child node_0(const std::string& addresses) {
  return Child([&addresses](const Child::Side& parent) {
    set_log_level(LogLevel::off);
    const Result<Config> config = config_of(0, addresses, small_rings());
    parent.hear();
    const Result<std::unique_ptr<Session>> opened = Session::open(*config);
    parent.say(opened.status().to_string());
    return 0;
  });
}

// connect.timeout_ms is 30 s: whoever says something earlier did not wait for it.
TEST(SessionProcesses, that_both_are_node_0_end_at_once_and_say_so) {
  const HeldAddress held[] = {HeldAddress("127.0.0.1:0"), HeldAddress("127.0.0.1:0")};
  const std::string& address = held[0].address();
  const std::string addresses = address + "," + held[1].address();
  const auto start = Clock::now();
  Child one = node_0(addresses);
  Child two = node_0(addresses);
  one.say("open");
  two.say("open");
  const std::string outcomes[] = {one.hear().value_or("ended"), two.hear().value_or("ended")};
  EXPECT_LT(Clock::now() - start, seconds(15)) << outcomes[0] << '\n' << outcomes[1];
  for (const std::string& outcome : outcomes) {
    expect_contains(outcome, "node 0 (" + address + ") and the process at ");
    expect_contains(outcome, "both say that they are node 0");
  }
  const bool first_listens = outcomes[0].rfind("configuration_mismatch", 0) == 0;
  expect_contains(outcomes[first_listens ? 1 : 0], "address_in_use: cannot listen on " + address);
  expect_contains(outcomes[first_listens ? 0 : 1], "configuration_mismatch: ");
}

TEST(SessionProcesses, of_one_number_do_not_disturb_a_cluster_that_is_open) {
  const HeldAddress held("127.0.0.1:0");
  const std::string& address = held.address();
  Child twin = node_0(address);
  const Result<Config> config = config_of(0, address, small_rings());
  const Result<std::unique_ptr<Session>> session = Session::open(*config);
  ASSERT_TRUE(is_ok(session));
  twin.say("open");
  const std::string outcome = twin.hear().value_or("ended");
  expect_contains(outcome, "address_in_use: cannot listen on " + address);
  expect_contains(outcome, "both say that they are node 0");
  const QueryId query = (*session)->begin_query();
  EXPECT_EQ((*session)->worker(0).end_query(query), Outcome::done);
}

TEST(SessionProcesses, that_find_another_program_on_their_port_say_only_that) {
  const Result<ListeningSocket> outsider =
      ListeningSocket::bind("127.0.0.1:0");  // it never answers
  ASSERT_TRUE(outsider.ok());
  const auto start = Clock::now();
  Child node = node_0(outsider->address());
  node.say("open");
  EXPECT_EQ(node.hear().value_or("ended"), "address_in_use: cannot listen on " +
                                               outsider->address() +
                                               ": the address is taken by another process");
  EXPECT_LT(Clock::now() - start, seconds(15));
}

// --- a name server that takes questions and never answers

/// A network of this process alone: a loopback device and nothing else.
bool enter_own_network() {
  if (unshare(CLONE_NEWNS | CLONE_NEWNET) != 0) return false;
  const base::UniqueFd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP;
  return ioctl(any.get(), SIOCSIFFLAGS, &loopback) == 0;
}

base::UniqueFd silent_name_server() {
  base::UniqueFd server(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(53);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    server.reset();
  return server;
}

/// Lets this process alone see `file` as the resolver's settings.
bool use_resolver_settings(const std::string& file) {
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount(file.c_str(), "/etc/resolv.conf", nullptr, MS_BIND, nullptr) == 0;
}

TEST(SessionProcesses, whose_name_server_is_silent_keep_to_their_deadline) {
  std::string settings = testing::TempDir() + "/faro_resolver_XXXXXX";
  const base::UniqueFd made(mkstemp(settings.data()));
  ASSERT_TRUE(made.valid());
  std::ofstream(settings) << "nameserver 127.0.0.1\noptions timeout:30 attempts:1\n";
  Child child([&settings](const Child::Side& parent) {
    set_log_level(LogLevel::off);
    if (!enter_own_network() || !use_resolver_settings(settings)) {
      parent.say("skip");
      return 0;
    }
    const base::UniqueFd server = silent_name_server();
    const Result<Config> config =
        config_of(1, "somewhere.test:7000,127.0.0.1:7001", {{"connect.timeout_ms", "1000"}});
    if (!server.valid() || !config.ok()) return 1;
    parent.say(Session::open(*config).status().to_string());
    // The name was asked for, and the question is still open.
    char question[512];
    parent.say(recv(server.get(), question, sizeof question, MSG_DONTWAIT) > 0 ? "asked" : "no");
    return 0;
  });
  const auto start = Clock::now();
  const std::string outcome = child.hear().value_or("ended");
  unlink(settings.c_str());
  if (outcome == "skip") GTEST_SKIP() << "this system permits no network of its own";
  EXPECT_LT(Clock::now() - start, seconds(15)) << "it waited for the resolver";
  expect_contains(outcome, "connect_failed: 0 of 1 peers linked within connect.timeout_ms = 1000");
  expect_contains(outcome, "node 0 (somewhere.test:7000)");
  EXPECT_EQ(child.hear().value_or("ended"), "asked");
}

}  // namespace
}  // namespace faro::test
