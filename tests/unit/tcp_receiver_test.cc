// Who reads the data connections: workers that look, the network thread while one sleeps.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <vector>

#include "unit/tcp_end.h"

namespace faro::test {
namespace {

class TcpReceiverTest : public TcpEnd {
 protected:
  static constexpr uint32_t kFrame = 64;

  void SetUp() override {
    connect({1, 1, 1, 4096});
    network_thread();  // what registering brings
  }

  /// A frame of the peer, which has arrived when this returns.
  void peer_sends() {
    const std::vector<std::byte> bytes = written_frame(0, sent_, kFrame);
    ASSERT_EQ(send(raw_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    sent_ += kFrame;
  }
  /// What the network thread would do now; whether it would have been woken.
  bool network_thread() {
    bool any = false;
    for (int round = 0; round < 20; ++round) any |= reactor_.run_once(1);
    return any;
  }
  int frames() { return frames_of(*link_); }
  static int frames_of(transport::DataLink& link) {
    int count = 0;
    transport::FrameView view;
    while (link.incoming(0).next(view) == ring::Next::frame) {
      link.incoming(0).release(view.token);
      ++count;
    }
    return count;
  }
  /// A worker's look, until it finds something (loopback takes a moment).
  bool look() {
    for (int round = 0; round < 10'000; ++round) {
      if (transport_.poll()) return true;
    }
    return false;
  }

  wire::Position sent_ = 0;
};

TEST_F(TcpReceiverTest, the_network_thread_reads_until_a_worker_has_looked) {
  for (int i = 0; i < 3; ++i) {
    peer_sends();
    EXPECT_TRUE(network_thread());
    EXPECT_EQ(frames(), 1);
  }
}

TEST_F(TcpReceiverTest, a_worker_that_looks_reads_without_the_network_thread) {
  peer_sends();
  EXPECT_TRUE(look());
  EXPECT_EQ(frames(), 1);
  EXPECT_FALSE(transport_.poll());
}

TEST_F(TcpReceiverTest, a_look_reads_one_connection_and_the_next_look_another) {
  const auto other_ready = std::move(ready_set_);
  const base::UniqueFd other_raw = std::move(raw_);
  const std::unique_ptr<transport::DataLink> other = std::move(link_);
  const int other_mine = mine_;
  connect({1, 1, 1, 4096});
  network_thread();
  EXPECT_FALSE(transport_.poll());
  peer_sends();
  const std::vector<std::byte> bytes = written_frame(0, 0, kFrame);
  ASSERT_EQ(send(other_raw.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
  for (const int fd : {mine_, other_mine}) {
    pollfd arrived{fd, POLLIN, 0};
    ASSERT_EQ(::poll(&arrived, 1, 10'000), 1);
  }
  EXPECT_TRUE(transport_.poll());
  EXPECT_EQ(frames() + frames_of(*other), 1);
  EXPECT_TRUE(transport_.poll());
  EXPECT_EQ(frames() + frames_of(*other), 1);
  EXPECT_FALSE(transport_.poll());
}

TEST_F(TcpReceiverTest, the_network_thread_is_left_alone_while_workers_look) {
  EXPECT_FALSE(transport_.poll());
  peer_sends();
  EXPECT_FALSE(network_thread());
  EXPECT_EQ(frames(), 0);
  EXPECT_TRUE(look());
  EXPECT_EQ(frames(), 1);
}

TEST_F(TcpReceiverTest, the_network_thread_reads_what_came_before_a_worker_sleeps_and_after) {
  EXPECT_FALSE(transport_.poll());
  peer_sends();
  EXPECT_FALSE(network_thread());
  transport_.worker_sleeps();
  EXPECT_TRUE(network_thread());
  EXPECT_EQ(frames(), 1);
  peer_sends();
  EXPECT_TRUE(network_thread());
  EXPECT_EQ(frames(), 1);
  transport_.worker_wakes();
  EXPECT_FALSE(transport_.poll());
  peer_sends();
  EXPECT_FALSE(network_thread());
  EXPECT_TRUE(look());
}

TEST_F(TcpReceiverTest, the_network_thread_reads_as_long_as_one_worker_sleeps) {
  EXPECT_FALSE(transport_.poll());
  transport_.worker_sleeps();
  transport_.worker_sleeps();
  transport_.worker_wakes();
  EXPECT_FALSE(transport_.poll());  // of the one that woke
  peer_sends();
  EXPECT_TRUE(network_thread());
  EXPECT_EQ(frames(), 1);
  transport_.worker_wakes();
}

TEST_F(TcpReceiverTest, a_lost_peer_is_noticed_while_workers_look_elsewhere) {
  EXPECT_FALSE(transport_.poll());
  raw_.reset();
  network_thread();
  EXPECT_EQ(failures_, 1);
}

TEST_F(TcpReceiverTest, a_stopped_link_is_not_read_any_more) {
  peer_sends();
  link_->stop();
  EXPECT_FALSE(transport_.poll());
  network_thread();
  EXPECT_EQ(frames(), 0);
  link_.reset();
  EXPECT_FALSE(transport_.poll());
}

}  // namespace
}  // namespace faro::test
