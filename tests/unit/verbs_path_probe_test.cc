// PathProbe: an address that answers, whether it accepts or refuses, one that does not, and one that cannot be reached.
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "links/epoll_reactor.h"
#include "support/expect.h"
#include "transport/verbs/path_probe.h"

namespace faro::transport::verbs {
namespace {

class PathProbeTest : public testing::Test {
 protected:
  void start(const tcp::SocketAddress& peer) {
    probe_.emplace(*reactor_);
    started_ = probe_->start(address("127.0.0.1:0"), peer,
                             [this](const Status& answer) { answer_ = answer; });
  }
  void wait_for_answer() {
    while (!answer_) reactor_->run_once(base::kForever);
  }
  static tcp::SocketAddress address(const std::string& text) {
    return tcp::resolve(text).value().front();
  }
  /// Of `listener_`, at a free port, whose queue takes that many connections more than one.
  tcp::SocketAddress listen(int backlog) {
    listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    tcp::SocketAddress at = address("127.0.0.1:0");
    EXPECT_EQ(::bind(listener_.get(), at.get(), at.length), 0);
    EXPECT_EQ(::listen(listener_.get(), backlog), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at.storage), &at.length),
              0);
    return at;
  }

  base::SystemClock clock_;
  const std::unique_ptr<links::EpollReactor> reactor_ =
      std::move(links::EpollReactor::create(clock_).value());
  base::UniqueFd listener_;
  std::optional<PathProbe> probe_;
  Status started_;
  std::optional<Status> answer_;
};

TEST_F(PathProbeTest, is_answered_by_a_listener) {
  start(listen(8));
  EXPECT_TRUE(test::is_ok(started_));
  wait_for_answer();
  EXPECT_TRUE(test::is_ok(*answer_));
}

TEST_F(PathProbeTest, is_answered_by_a_host_where_nothing_listens_there_any_more) {
  const tcp::SocketAddress peer = listen(8);
  listener_.reset();
  start(peer);
  EXPECT_TRUE(test::is_ok(started_));
  wait_for_answer();
  EXPECT_TRUE(test::is_ok(*answer_));
}

// Linux drops requests to connect to a listener whose queue is full, as a dark path does.
TEST_F(PathProbeTest, is_not_answered_by_a_dark_path_and_can_be_given_up) {
  const tcp::SocketAddress peer = listen(0);
  const base::UniqueFd only(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(only.get(), peer.get(), peer.length), 0);
  start(peer);
  EXPECT_TRUE(test::is_ok(started_));
  reactor_->wake();
  reactor_->run_once(base::kForever);
  EXPECT_FALSE(answer_);
  probe_.reset();
  listener_.reset();
  reactor_->wake();
  reactor_->run_once(base::kForever);
  EXPECT_FALSE(answer_);
}

TEST_F(PathProbeTest, says_why_an_address_cannot_be_reached) {
  start(address("255.255.255.255:1"));
  if (started_.ok()) wait_for_answer();
  test::expect_error(started_.ok() ? *answer_ : started_, Code::connect_failed,
                     {"the peer's RDMA device at 255.255.255.255:1 cannot be reached"});
}

}  // namespace
}  // namespace faro::transport::verbs
