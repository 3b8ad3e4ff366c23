// Opening, waiting for a node and closing without waiting, and ending such waits from another thread.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/session_cluster.h"
#include "support/silent_listener.h"

namespace faro::test {
namespace {

using Opened = Result<std::unique_ptr<Session>>;

/// The answer to an asynchronous call.
template <typename Answer>
class Answered {
 public:
  auto callback() {
    return [promise = promise_](Answer answer) { promise->set_value(std::move(answer)); };
  }
  /// Blocks: until it is there.
  Answer get() { return future_.get(); }

 private:
  std::shared_ptr<std::promise<Answer>> promise_ = std::make_shared<std::promise<Answer>>();
  std::future<Answer> future_ = promise_->get_future();
};

/// No wait of these tests ends by time.
const SettingList kPatient = small_rings({{"connect.timeout_ms", "3600000"}});

/// Listeners of a cluster whose nodes open one by one.
struct Addresses {
  explicit Addresses(uint32_t count) {
    for (uint32_t node = 0; node < count; ++node) {
      held.emplace_back(listen_address(node));
      listeners.push_back(ListeningSocket::bind(held.back().address()).value());
      text += (node == 0 ? "" : ",") + listeners.back().address();
    }
  }
  Config config(uint32_t node) const { return config_of(node, text, kPatient).value(); }

  std::vector<HeldAddress> held;
  std::vector<ListeningSocket> listeners;
  std::string text;
};

// Somebody listens at node 0's address and says nothing; the attempt of node 1 to connect shows that
// its open is waiting.
TEST(AsynchronousOpen, an_open_that_waits_ends_when_another_thread_cancels_it) {
  SilentListener silent;
  ListeningSocket own = ListeningSocket::bind(listen_address(1)).value();
  const Config config = config_of(1, silent.address() + "," + own.address(), kPatient).value();
  const Cancellation cancellation;
  Answered<Status> ended;
  std::thread opens(
      [&] { ended.callback()(Session::open(config, std::move(own), cancellation).status()); });
  silent.accept_one();
  cancellation.cancel();
  const Status status = ended.get();
  opens.join();
  expect_error(status, Code::cancelled, {"still waiting for node 0"});
}

TEST(AsynchronousOpen, an_open_that_was_cancelled_before_does_not_wait) {
  Addresses addresses(2);
  const Cancellation cancellation;
  cancellation.cancel();
  EXPECT_TRUE(cancellation.cancelled());
  const Opened opened =
      Session::open(addresses.config(1), std::move(addresses.listeners[1]), cancellation);
  EXPECT_EQ(opened.status().code(), Code::cancelled);
}

TEST(AsynchronousOpen, the_others_go_on_waiting_for_a_node_whose_open_was_cancelled) {
  Addresses addresses(3);
  const std::string first_address = addresses.listeners[1].address();
  Answered<Opened> opened[3];
  Answered<Opened> given_up;
  const Cancellation cancellation;
  Session::open_async(addresses.config(0), std::move(addresses.listeners[0]), opened[0].callback());
  Session::open_async(addresses.config(1), std::move(addresses.listeners[1]), given_up.callback(),
                      cancellation);
  cancellation.cancel();
  EXPECT_EQ(given_up.get().status().code(), Code::cancelled);
  ListeningSocket again = ListeningSocket::bind(first_address).value();
  Session::open_async(addresses.config(1), std::move(again), opened[1].callback());
  Session::open_async(addresses.config(2), std::move(addresses.listeners[2]), opened[2].callback());
  std::vector<Opened> sessions;  // nobody leaves before all are there
  for (Answered<Opened>& each : opened) sessions.push_back(each.get());
  for (const Opened& session : sessions) EXPECT_TRUE(is_ok(session));
}

TEST(AsynchronousOpen, tells_what_is_wrong_by_its_callback) {
  Answered<Opened> opened;
  Config nobody;
  Session::open_async(std::move(nobody), opened.callback());
  EXPECT_EQ(opened.get().status().code(), Code::config_invalid);
}

/// Two nodes, of which the second has closed.
class AwaitingANode : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(is_ok(cluster_.status()));
    Answered<Status> closed;
    Session::close_async(std::move(cluster_.session(1)), closed.callback());
    EXPECT_TRUE(closed.get().ok());
    // That node 1 has left reaches node 0 a moment later.
    while (cluster_[0].has_node(1)) std::this_thread::yield();
  }

  SessionCluster cluster_{2, small_rings()};
};

TEST_F(AwaitingANode, ends_when_another_thread_cancels_it) {
  const Cancellation cancellation;
  Answered<Status> answered;
  cluster_[0].await_node_async(1, answered.callback(), Wait::forever(), cancellation);
  cancellation.cancel();
  EXPECT_EQ(answered.get().code(), Code::cancelled);
  EXPECT_EQ(cluster_[0].await_node(1, Wait::forever(), cancellation).code(), Code::cancelled);
}

TEST_F(AwaitingANode, ends_when_the_session_is_closed_and_destroyed) {
  Answered<Status> answered;
  cluster_[0].await_node_async(1, answered.callback());
  cluster_.session(0).reset();
  EXPECT_EQ(answered.get().code(), Code::session_closed);
}

TEST_F(AwaitingANode, ends_after_its_time_limit_and_for_a_node_that_is_there_at_once) {
  Answered<Status> late;
  cluster_[0].await_node_async(1, late.callback(), Wait::at_most(std::chrono::milliseconds(1)));
  EXPECT_EQ(late.get().code(), Code::deadline_exceeded);
  Answered<Status> there;
  cluster_[0].await_node_async(0, there.callback());
  EXPECT_TRUE(there.get().ok());
}

}  // namespace
}  // namespace faro::test
