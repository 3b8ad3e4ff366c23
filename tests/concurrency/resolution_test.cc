#include "links/resolution.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "support/test_reactor.h"

namespace faro::links {
namespace {

using test::TestReactor;
using Addresses = Resolution::Addresses;

constexpr int kLongMs = 20'000;  // nothing here takes so long unless it hangs

Addresses some_addresses() { return transport::tcp::resolve("127.0.0.1:7000"); }

/// What a resolution answered, and in which thread.
struct Answer {
  std::optional<Addresses> addresses;
  std::thread::id thread;

  Resolution::Done done() {
    return [this](Addresses found) {
      addresses = std::move(found);
      thread = std::this_thread::get_id();
    };
  }
};

/// Fulfils a promise when the thread that owns it ends. (Not promise::set_value_at_thread_exit:
/// that is done inside libstdc++.so, where the thread sanitizer does not see it.)
struct AtThreadEnd {
  ~AtThreadEnd() {
    if (promise != nullptr) promise->set_value();
  }
  std::shared_ptr<std::promise<void>> promise;
};

void fulfil_at_thread_end(std::shared_ptr<std::promise<void>> promise) {
  thread_local AtThreadEnd end;
  end.promise = std::move(promise);
}

TEST(Resolution, of_a_numeric_address_is_answered_at_once_and_without_a_thread) {
  for (const char* address : {"127.0.0.1:7000", "[::1]:7000"}) {
    TestReactor reactor;
    Answer answer;
    std::thread::id looked_up;
    Resolution resolution(reactor, address, answer.done(), [&](const std::string& asked) {
      looked_up = std::this_thread::get_id();
      EXPECT_EQ(asked, address);
      return some_addresses();
    });
    resolution.start();
    ASSERT_TRUE(answer.addresses.has_value());
    EXPECT_TRUE(answer.addresses->ok());
    EXPECT_EQ(looked_up, std::this_thread::get_id());
  }
}

TEST(Resolution, of_a_name_does_not_keep_the_network_thread_waiting) {
  TestReactor reactor;
  Answer answer;
  std::promise<void> resolver_answers;
  Resolution resolution(reactor, "somewhere:7000", answer.done(), [&](const std::string&) {
    resolver_answers.get_future().wait();
    return some_addresses();
  });
  resolution.start();
  bool others_ran = false;
  reactor.defer([&] { others_ran = true; });
  EXPECT_TRUE(reactor.run_once(0));
  EXPECT_TRUE(others_ran);
  EXPECT_FALSE(answer.addresses.has_value());
  resolver_answers.set_value();
  while (!answer.addresses.has_value()) ASSERT_TRUE(reactor.run_once(kLongMs));
  EXPECT_TRUE(answer.addresses->ok());
  EXPECT_EQ(answer.thread, std::this_thread::get_id());
}

TEST(Resolution, of_a_name_that_does_not_exist_says_so_by_the_reactor) {
  TestReactor reactor;
  Answer answer;
  Resolution resolution(reactor, "nowhere:7000", answer.done(), [](const std::string& address) {
    return Addresses(Status(Code::connect_failed, "'" + address + "' cannot be resolved"));
  });
  resolution.start();
  while (!answer.addresses.has_value()) ASSERT_TRUE(reactor.run_once(kLongMs));
  EXPECT_EQ(answer.addresses->status().code(), Code::connect_failed);
}

// Also the reactor goes while the resolver still thinks.
TEST(Resolution, that_is_given_up_neither_waits_nor_answers) {
  const auto resolver_answers = std::make_shared<std::promise<void>>();
  const auto left = std::make_shared<std::promise<void>>();
  Answer answer;
  {
    TestReactor reactor;
    Resolution resolution(reactor, "somewhere:7000", answer.done(),
                          [resolver_answers, left](const std::string&) {
                            resolver_answers->get_future().wait();
                            fulfil_at_thread_end(left);
                            return some_addresses();
                          });
    resolution.start();
  }
  resolver_answers->set_value();
  left->get_future().wait();
  EXPECT_FALSE(answer.addresses.has_value());
}

TEST(Resolution, that_is_given_up_after_the_resolver_answered_does_not_answer) {
  TestReactor reactor;
  Answer answer;
  const auto left = std::make_shared<std::promise<void>>();
  {
    Resolution resolution(reactor, "somewhere:7000", answer.done(), [left](const std::string&) {
      fulfil_at_thread_end(left);
      return some_addresses();
    });
    resolution.start();
    left->get_future().wait();  // the answer lies in the reactor
  }
  EXPECT_TRUE(reactor.run_once(0));
  EXPECT_FALSE(answer.addresses.has_value());
}

TEST(Resolution, may_be_destroyed_by_its_answer) {
  TestReactor reactor;
  for (const char* address : {"127.0.0.1:7000", "somewhere:7000"}) {
    std::unique_ptr<Resolution> resolution;
    resolution = std::make_unique<Resolution>(
        reactor, address, [&](Addresses) { resolution.reset(); },
        [](const std::string&) { return some_addresses(); });
    resolution->start();
    while (resolution != nullptr) ASSERT_TRUE(reactor.run_once(kLongMs));
  }
}

}  // namespace
}  // namespace faro::links
