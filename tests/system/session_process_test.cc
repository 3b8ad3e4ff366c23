// Sessions of real processes that cannot come about, by the public API.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "faro/log.h"
#include "support/child.h"
#include "support/session_cluster.h"

namespace faro::test {
namespace {

using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

/// A port that was free a moment ago: the session has to bind it by itself.
std::string free_address() {
  Result<Listener> listener = Listener::bind("127.0.0.1:0");
  EXPECT_TRUE(listener.ok()) << listener.status().to_string();
  return listener->address();
}

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
  const std::string address = free_address();
  const std::string addresses = address + "," + free_address();
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
  const std::string address = free_address();
  Child twin = node_0(address);
  const Result<Config> config = config_of(0, address, small_rings());
  const Result<std::unique_ptr<Session>> session = Session::open(*config);
  ASSERT_TRUE(session.ok()) << session.status().to_string();
  twin.say("open");
  const std::string outcome = twin.hear().value_or("ended");
  expect_contains(outcome, "address_in_use: cannot listen on " + address);
  expect_contains(outcome, "both say that they are node 0");
  const QueryId query = (*session)->begin_query();
  EXPECT_EQ((*session)->worker(0).end_query(query), Outcome::done);
}

TEST(SessionProcesses, that_find_a_stranger_on_their_port_say_only_that) {
  const Result<Listener> stranger = Listener::bind("127.0.0.1:0");  // it never answers
  ASSERT_TRUE(stranger.ok());
  const auto start = Clock::now();
  Child node = node_0(stranger->address());
  node.say("open");
  EXPECT_EQ(node.hear().value_or("ended"), "address_in_use: cannot listen on " +
                                               stranger->address() +
                                               ": the address is taken by another process");
  EXPECT_LT(Clock::now() - start, seconds(15));
}

}  // namespace
}  // namespace faro::test
