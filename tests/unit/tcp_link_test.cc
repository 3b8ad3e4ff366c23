// One end of a TCP link against a raw socket: the exact bytes it sends, and everything that a peer
// must not send.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "contract/frames.h"
#include "support/expect.h"
#include "unit/tcp_end.h"

namespace faro::test {
namespace {

using ring::Next;
using transport::Pulse;
using wire::DataMessage;

constexpr uint32_t kRing = 4096;
constexpr uint32_t kRings = 2;

class TcpLinkTest : public TcpEnd {
 protected:
  void SetUp() override { connect({1, 1, kRings, kRing}); }

  // --- the peer

  void send_bytes(const void* bytes, size_t count) {
    const auto* at = static_cast<const std::byte*>(bytes);
    ASSERT_TRUE(reactor_.run_until([&] {
      const ssize_t sent = send(raw_.get(), at, count, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) {
        at += sent;
        count -= static_cast<size_t>(sent);
      }
      return count == 0 || (sent < 0 && errno != EAGAIN);  // a link that has failed takes no more
    }));
  }
  void send_message(const DataMessage& message) { send_bytes(&message, sizeof message); }
  void send_frame(uint32_t ring, wire::Position position, uint32_t length) {
    const std::vector<std::byte> bytes = written_frame(ring, position, length);
    send_bytes(bytes.data(), bytes.size());
  }
  std::vector<std::byte> receive_bytes(size_t count) {
    std::vector<std::byte> bytes(count);
    size_t got = 0;
    EXPECT_TRUE(reactor_.run_until([&] {
      const ssize_t n = recv(raw_.get(), bytes.data() + got, count - got, MSG_DONTWAIT);
      if (n > 0) got += static_cast<size_t>(n);
      return got == count;
    })) << got
        << " of " << count << " bytes came";
    return bytes;
  }
  DataMessage receive_message() {
    DataMessage message{};
    const std::vector<std::byte> bytes = receive_bytes(sizeof message);
    std::memcpy(&message, bytes.data(), sizeof message);
    return message;
  }
  bool nothing_to_receive() {
    std::byte byte;
    return recv(raw_.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
  }

  // --- this end

  bool commit(uint32_t ring, uint32_t length) {
    FrameSequence sequence(0, kRing / 4);
    sequence.set_length(length);
    return sequence.try_send(link_->outgoing(ring));
  }
  bool post(uint32_t ring, uint32_t length) {
    const bool committed = commit(ring, length);
    link_->outgoing(ring).post();
    return committed;
  }
  bool post_soon(uint32_t ring, uint32_t length) {
    const bool committed = commit(ring, length);
    link_->outgoing(ring).post_soon();
    return committed;
  }
  transport::FrameView receive_frame(uint32_t ring) {
    transport::FrameView view;
    Next next = Next::nothing;
    reactor_.run_until([&] { return (next = link_->incoming(ring).next(view)) != Next::nothing; });
    EXPECT_EQ(next, Next::frame);
    return view;
  }
  /// From the peer to this end, which releases it.
  void pass_frame(uint32_t ring, wire::Position position, uint32_t length) {
    send_frame(ring, position, length);
    link_->incoming(ring).release(receive_frame(ring).token);
  }
  void flush_releases() {
    link_->incoming(0).flush_releases();
    transport_.flush();
  }
  /// The connection is cut, and there is another one.
  void mend() {
    raw_.reset();
    auto [raw, mine] = tcp_socket_pair();
    ASSERT_TRUE(raw.valid() && mine.valid());
    const auto mending = transport_.mend(context_, *link_);
    ASSERT_TRUE(mending->start().ok());
    ASSERT_FALSE(mending->ready());
    ASSERT_TRUE(mending->on_stream({mine.release()}).ok());
    ASSERT_TRUE(mending->ready());
    ASSERT_TRUE(is_ok(mending->finish()));
    raw_ = std::move(raw);
    failures_ = 0;
  }
  /// RESUME of each ring, in order: where this end's incoming rings are.
  void expect_resumes(wire::Position position, uint32_t unread) {
    for (uint32_t ring = 0; ring < kRings; ++ring) {
      const DataMessage message = receive_message();
      EXPECT_EQ(message.ring_and_kind, ring | wire::kResumeMessage);
      EXPECT_EQ(message.position, ring == 0 ? position : 0);
      EXPECT_EQ(message.length, ring == 0 ? unread : 0);
    }
  }
  void expect_refused(const char* what) {
    EXPECT_TRUE(reactor_.run_until([&] { return failures_ > 0; })) << what << " was accepted";
    EXPECT_EQ(failures_, 1) << what;
    EXPECT_EQ(failure_.code(), Code::protocol_error) << what << ": " << failure_.to_string();
  }
};

// ------------------------------------------------------------------------------------ what is sent

TEST_F(TcpLinkTest, a_post_is_a_header_and_the_bytes_of_the_ring) {
  ASSERT_TRUE(post(1, 100));
  const std::vector<std::byte> bytes = receive_bytes(16 + 128);
  constexpr unsigned char kHeader[16] = {1, 0, 0, 0, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(std::memcmp(bytes.data(), kHeader, 16), 0);
  constexpr unsigned char kFrame[8] = {100, 0, 0, 0, 2, 0, 0, 0};
  EXPECT_EQ(std::memcmp(bytes.data() + 16, kFrame, 8), 0);
  EXPECT_TRUE(nothing_to_receive());
}

TEST_F(TcpLinkTest, a_post_of_several_frames_is_one_message) {
  ASSERT_TRUE(commit(0, 100));
  ASSERT_TRUE(commit(0, 64));
  ASSERT_TRUE(post(0, 65));
  const DataMessage message = receive_message();
  EXPECT_FALSE(wire::is_read(message));
  EXPECT_EQ(message.length, 128u + 64 + 128);
  receive_bytes(message.length);
  ASSERT_TRUE(post(0, 64));
  EXPECT_EQ(receive_message().position, 128u + 64 + 128);
}

TEST_F(TcpLinkTest, a_span_that_wraps_is_one_message) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(post(0, 1024));
  receive_bytes(3 * (16 + 1024));
  send_message(wire::read_message(0, 3072));
  ASSERT_TRUE(commit(0, 960));
  ASSERT_TRUE(reactor_.run_until([&] { return commit(0, 512); }));  // 64 bytes of pad before it
  link_->outgoing(0).post();
  const DataMessage message = receive_message();
  EXPECT_EQ(message.position, 3072u);
  ASSERT_EQ(message.length, 960u + 64 + 512);
  const std::vector<std::byte> bytes = receive_bytes(message.length);
  EXPECT_EQ(bytes[960 + 4], static_cast<std::byte>(wire::FrameKind::pad));
  EXPECT_EQ(bytes[960 + 64 + 4], static_cast<std::byte>(wire::FrameKind::data));
}

TEST_F(TcpLinkTest, what_a_full_socket_refuses_follows_when_the_peer_reads) {
  constexpr uint32_t kLarge = 32 << 20;  // more than socket buffers grow to
  connect({1, 1, 2, kLarge});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(post(0, kLarge / 4));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(post(1, kLarge / 4));  // behind the first ones
  pass_frame(1, 0, 64);                                          // its read position too
  uint64_t written[2] = {0, 0};
  int reads = 0;
  while (written[0] < kLarge || written[1] < kLarge || reads == 0) {
    const DataMessage message = receive_message();
    const uint32_t ring = wire::ring_of(message);
    ASSERT_LT(ring, 2u);
    if (wire::is_read(message)) {
      EXPECT_EQ(message.position, 64u);
      ++reads;
      continue;
    }
    ASSERT_EQ(message.position, written[ring]);
    receive_bytes(message.length);
    written[ring] += message.length;
  }
  EXPECT_EQ(reads, 1);
  EXPECT_TRUE(nothing_to_receive());
  EXPECT_EQ(failures_, 0) << failure_.to_string();
}

TEST_F(TcpLinkTest, read_positions_that_wait_for_the_socket_are_told_as_one) {
  constexpr uint32_t kLarge = 32 << 20;
  connect({1, 1, 2, kLarge});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(post(0, kLarge / 4));  // the socket is full now
  ASSERT_TRUE(post(1, 64));                                      // what they go along with
  for (uint32_t i = 0; i < 10; ++i) pass_frame(1, i * 64, 64);
  EXPECT_EQ(link_->incoming(1).counters().read_notifications.load(), 10u);
  std::vector<wire::Position> told;
  for (uint64_t written = 0; written < kLarge + 64;) {
    const DataMessage message = receive_message();
    if (wire::is_read(message)) {
      told.push_back(message.position);
    } else {
      receive_bytes(message.length);
      written += message.length;
    }
  }
  EXPECT_EQ(told, std::vector<wire::Position>{640});
}

TEST_F(TcpLinkTest, a_read_position_waits_for_a_post_while_the_peer_has_half_a_ring_left) {
  for (uint32_t i = 0; i < 2; ++i) {
    pass_frame(0, i * 1024, 1024);
    flush_releases();
  }
  EXPECT_TRUE(nothing_to_receive());
  ASSERT_TRUE(post(0, 64));
  const DataMessage read = receive_message();
  EXPECT_TRUE(wire::is_read(read));
  EXPECT_EQ(read.position, 2048u);
  EXPECT_FALSE(wire::is_read(receive_message()));
}

TEST_F(TcpLinkTest,
       a_read_position_is_told_with_the_next_flush_when_more_than_half_a_ring_was_released) {
  for (uint32_t i = 0; i < 3; ++i) {
    send_frame(0, i * 1024, 1024);
    transport_.flush();
    EXPECT_TRUE(nothing_to_receive());
    link_->incoming(0).release(receive_frame(0).token);
  }
  EXPECT_TRUE(nothing_to_receive());
  transport_.flush();
  EXPECT_EQ(receive_message().position, 3072u);
}

TEST_F(TcpLinkTest, a_sleeping_worker_tells_its_read_position_when_the_peer_may_be_waiting_for_it) {
  for (uint32_t i = 0; i < 3; ++i) send_frame(0, i * 1024, 1024);
  const transport::FrameView first = receive_frame(0);
  receive_frame(0);
  receive_frame(0);
  link_->incoming(0).release(first.token);  // the others are held
  transport_.flush();
  EXPECT_TRUE(nothing_to_receive());
  flush_releases();
  EXPECT_EQ(receive_message().position, 1024u);
  flush_releases();
  EXPECT_TRUE(nothing_to_receive());
}

TEST_F(TcpLinkTest, posts_that_may_wait_go_together_with_one_flush) {
  for (const uint32_t ring : {0u, 1u, 0u}) {
    ASSERT_TRUE(post_soon(ring, 64));
    EXPECT_EQ(link_->outgoing(ring).pending_bytes(), 0u);
  }
  EXPECT_TRUE(nothing_to_receive());
  transport_.flush();
  EXPECT_EQ(receive_message().length, 128u);
  receive_bytes(128);
  EXPECT_EQ(receive_message().ring_and_kind, 1u);
  receive_bytes(64);
  transport_.flush();
  EXPECT_TRUE(nothing_to_receive());
}

TEST_F(TcpLinkTest, what_may_wait_goes_with_any_post_to_the_same_node) {
  ASSERT_TRUE(post_soon(0, 64));
  ASSERT_TRUE(post(1, 64));
  receive_bytes(2 * (16 + 64));
  ASSERT_TRUE(post_soon(0, 64));
  link_->outgoing(0).post();  // of what was posted already
  EXPECT_EQ(receive_message().position, 64u);
}

TEST_F(TcpLinkTest, what_may_wait_goes_when_there_is_no_more_space) {
  while (commit(0, 1024)) link_->outgoing(0).post_soon();
  receive_bytes(16 + kRing);
}

TEST_F(TcpLinkTest, what_may_wait_goes_when_it_is_much) {
  connect({1, 1, kRings, 1 << 20});
  uint32_t committed = 0;
  while (nothing_to_receive() && commit(0, 1024)) {
    link_->outgoing(0).post_soon();
    committed += 1024;
  }
  EXPECT_EQ(committed, 128u << 10);
}

TEST_F(TcpLinkTest, what_may_wait_is_sent_by_the_network_thread_when_no_worker_comes_back) {
  ASSERT_TRUE(post_soon(0, 64));
  EXPECT_TRUE(reactor_.run_until([&] { return !nothing_to_receive(); }));
  receive_bytes(16 + 64);
  // And again: the timer starts anew.
  ASSERT_TRUE(post_soon(0, 64));
  EXPECT_TRUE(reactor_.run_until([&] { return !nothing_to_receive(); }));
}

TEST_F(TcpLinkTest, what_may_wait_does_not_wait_for_long_while_workers_send_or_read) {
  ASSERT_TRUE(post_soon(0, 64));
  clock_.advance(99'999);
  ASSERT_TRUE(post_soon(0, 64));
  EXPECT_TRUE(nothing_to_receive());
  clock_.advance(1);
  for (uint32_t i = 0; i < 3; ++i) {  // enough to make a read position worth telling
    pass_frame(1, i * 1024, 1024);
  }
  // Which comes first depends on how many of the frames have come when the link looks.
  const auto first = receive_message();
  const auto second = receive_message();
  EXPECT_NE(wire::is_read(first), wire::is_read(second));
  EXPECT_EQ((wire::is_read(first) ? second : first).length, 128u);
}

// -------------------------------------------------------------------------------- what is received

TEST_F(TcpLinkTest, messages_may_come_in_pieces_of_any_size) {
  std::vector<std::byte> bytes;
  for (uint32_t i = 0; i < 3; ++i) {
    const std::vector<std::byte> frame = written_frame(0, i * 128, 128, i + 1);
    bytes.insert(bytes.end(), frame.begin(), frame.end());
  }
  for (const size_t piece :
       {size_t{1}, size_t{7}, size_t{16}, size_t{17}, size_t{143}, size_t{145}, bytes.size()}) {
    SCOPED_TRACE(piece);
    connect({1, 1, kRings, kRing});
    for (size_t at = 0; at < bytes.size(); at += piece) {
      send_bytes(bytes.data() + at, std::min(piece, bytes.size() - at));
      reactor_.run_once(piece < 8 ? 1 : 0);
    }
    for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(receive_frame(0).header.row_count, i + 1);
    EXPECT_EQ(failures_, 0) << failure_.to_string();
  }
}

TEST_F(TcpLinkTest, a_frame_is_not_shown_before_all_of_its_message_has_come) {
  const std::vector<std::byte> frame = written_frame(0, 0, 128);
  send_bytes(frame.data(), frame.size() - 1);
  for (int i = 0; i < 20; ++i) reactor_.run_once(1);
  transport::FrameView view;
  EXPECT_EQ(link_->incoming(0).next(view), Next::nothing);
  EXPECT_FALSE(ready_set_->any());
}

struct BadMessage {
  const char* what;
  DataMessage message;  // after: 1024 bytes were received in ring 0, 1024 were sent in ring 0, of
                        // which 512 were read
};
constexpr uint64_t k63 = uint64_t{1} << 63;
constexpr BadMessage kBadMessages[] = {
    {"WRITTEN of a ring that does not exist", {kRings, 64, 0}},
    {"WRITTEN of ring 2^31 - 1", {wire::kReadMessage - 1, 64, 0}},
    {"WRITTEN of no bytes", {0, 0, 1024}},
    {"WRITTEN of one byte", {0, 1, 1024}},
    {"WRITTEN of 63 bytes", {0, 63, 1024}},
    {"WRITTEN of 65 bytes", {0, 65, 1024}},
    {"WRITTEN beyond the credit by one line", {0, kRing - 1024 + 64, 1024}},
    {"WRITTEN of more than the ring", {0, kRing + 64, 1024}},
    {"WRITTEN of 2^31 bytes", {0, 1u << 31, 1024}},
    {"WRITTEN of 2^32 - 64 bytes", {0, ~0u - 63, 1024}},
    {"WRITTEN once more", {0, 64, 0}},
    {"WRITTEN that goes back a little", {0, 64, 960}},
    {"WRITTEN with a gap", {0, 64, 1088}},
    {"WRITTEN one ring ahead", {0, 64, 1024 + kRing}},
    {"WRITTEN at an odd position", {0, 64, 1025}},
    {"WRITTEN at 2^31", {0, 64, uint64_t{1} << 31}},
    {"WRITTEN just below 2^63", {0, 64, k63 - 64}},
    {"WRITTEN at 2^63", {0, 64, k63}},
    {"WRITTEN at the end of all positions", {0, 64, ~uint64_t{63}}},
    {"WRITTEN of another ring at this one's position", {1, 64, 1024}},
    {"READ of a ring that does not exist", {wire::kReadMessage | kRings, 0, 1024}},
    {"READ of ring 2^31 - 1", {~0u, 0, 1024}},
    {"READ with a length", {wire::kReadMessage, 64, 1024}},
    {"READ once more", {wire::kReadMessage, 0, 512}},
    {"READ that goes back", {wire::kReadMessage, 0, 448}},
    {"READ of position 0", {wire::kReadMessage, 0, 0}},
    {"READ at an odd position", {wire::kReadMessage, 0, 576 + 32}},
    {"READ of more than was sent", {wire::kReadMessage, 0, 1088}},
    {"READ just below 2^63", {wire::kReadMessage, 0, k63 - 64}},
    {"READ at 2^63", {wire::kReadMessage, 0, k63}},
    {"READ at the end of all positions", {wire::kReadMessage, 0, ~uint64_t{63}}},
    {"READ of a ring in which nothing was sent", {wire::kReadMessage | 1, 0, 64}},
};

TEST_F(TcpLinkTest, every_impossible_message_ends_the_link_with_protocol_error) {
  for (const BadMessage& bad : kBadMessages) {
    SCOPED_TRACE(bad.what);
    connect({1, 1, kRings, kRing});
    ASSERT_TRUE(post(0, 1024));
    receive_bytes(16 + 1024);
    send_message(wire::read_message(0, 512));
    send_frame(0, 0, 1024);
    receive_frame(0);
    ASSERT_EQ(failures_, 0) << failure_.to_string();
    send_message(bad.message);
    // What follows is not looked at any more.
    std::array<std::byte, 4096> more;
    more.fill(std::byte{0xff});
    send_bytes(more.data(), more.size());
    expect_refused(bad.what);
    transport::FrameView view;
    EXPECT_EQ(link_->incoming(0).next(view), Next::nothing);
    EXPECT_EQ(link_->incoming(1).next(view), Next::nothing);
  }
}

TEST_F(TcpLinkTest, a_peer_may_use_exactly_the_credit_it_was_told_of) {
  for (uint32_t i = 0; i < 4; ++i) send_frame(0, i * 1024, 1024);
  for (uint32_t i = 0; i < 3; ++i) {
    const transport::FrameView view = receive_frame(0);
    if (i == 0) link_->incoming(0).release(view.token);
  }
  flush_releases();
  EXPECT_EQ(receive_message().position, 1024u);
  send_frame(0, 4096, 1024);  // what was released
  receive_frame(0);
  receive_frame(0);
  EXPECT_EQ(failures_, 0) << failure_.to_string();
  send_frame(0, 5120, 64);
  expect_refused("a line more");
}

TEST_F(TcpLinkTest, a_peer_that_closes_inside_a_message_is_lost) {
  for (const size_t bytes : {size_t{1}, size_t{15}, size_t{16}, size_t{100}}) {
    SCOPED_TRACE(bytes);
    connect({1, 1, kRings, kRing});
    send_bytes(written_frame(0, 0, 128).data(), bytes);
    raw_.reset();
    ASSERT_TRUE(reactor_.run_until([&] { return failures_ > 0; }));
    EXPECT_EQ(failure_.code(), Code::peer_lost);
    EXPECT_EQ(failure_.message(), "data connection closed by the peer inside a message");
    transport::FrameView view;
    EXPECT_EQ(link_->incoming(0).next(view), Next::nothing);
  }
}

TEST_F(TcpLinkTest, what_came_before_the_peer_closed_is_still_delivered) {
  send_frame(0, 0, 1024);
  send_frame(1, 0, 64);
  raw_.reset();
  ASSERT_TRUE(reactor_.run_until([&] { return failures_ > 0; }));
  EXPECT_EQ(failure_.code(), Code::peer_lost);
  EXPECT_EQ(failure_.message(), "data connection closed by the peer");
  EXPECT_EQ(receive_frame(0).header.length, 1024u);
  EXPECT_EQ(receive_frame(1).header.length, 64u);
}

TEST_F(TcpLinkTest, a_connection_reset_is_a_loss_with_its_cause) {
  const linger reset{.l_onoff = 1, .l_linger = 0};
  ASSERT_EQ(setsockopt(raw_.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
  raw_.reset();
  ASSERT_TRUE(reactor_.run_until([&] { return failures_ > 0; }));
  expect_error(failure_, Code::peer_lost, {"Connection reset"});
  EXPECT_TRUE(post(0, 64));
  EXPECT_EQ(failures_, 1);
}

TEST_F(TcpLinkTest, a_post_into_a_broken_connection_is_a_loss) {
  const linger reset{.l_onoff = 1, .l_linger = 0};
  ASSERT_EQ(setsockopt(raw_.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
  raw_.reset();
  // The worker notices before the network thread runs.
  for (int i = 0; i < 64 && failures_ == 0; ++i) post(0, 64);
  EXPECT_EQ(failures_, 1);
  EXPECT_EQ(failure_.code(), Code::peer_lost);
}

TEST_F(TcpLinkTest, an_end_after_stop_is_no_failure) {
  link_->stop();
  link_->stop();
  raw_.reset();
  for (int i = 0; i < 20; ++i) reactor_.run_once(1);
  EXPECT_EQ(failures_, 0);
}

TEST_F(TcpLinkTest, stop_ends_the_peers_connection_after_what_was_sent) {
  ASSERT_TRUE(post(0, 64));
  link_->stop();
  ASSERT_TRUE(post(0, 64));
  receive_bytes(16 + 64);
  std::byte byte;
  ASSERT_TRUE(reactor_.run_until([&] { return recv(raw_.get(), &byte, 1, MSG_DONTWAIT) == 0; }));
}

// ------------------------------------------------------------------------------------------ mending

TEST_F(TcpLinkTest, a_mended_link_goes_on_where_the_peer_says_that_it_is) {
  ASSERT_TRUE(post(0, 128));
  ASSERT_TRUE(post(0, 64));
  receive_bytes(16 + 128);  // the rest is lost with the connection
  pass_frame(0, 0, 64);
  send_frame(0, 64, 192);
  receive_frame(0);
  mend();
  expect_resumes(256, 192);
  ASSERT_TRUE(post(0, 256));
  send_message(wire::resume_message(0, 64, 128));
  for (int i = 0; i < 20; ++i) reactor_.run_once(1);
  EXPECT_TRUE(nothing_to_receive()) << "before all positions are known";
  send_message(wire::resume_message(1, 0, 0));
  const DataMessage message = receive_message();
  EXPECT_EQ(message.ring_and_kind, 0u);
  EXPECT_EQ(message.position, 128u);
  ASSERT_EQ(message.length, 64u + 256);
  receive_bytes(message.length);
  send_frame(1, 0, 64);
  receive_frame(1);
  EXPECT_EQ(failures_, 0);
}

TEST_F(TcpLinkTest, what_had_come_of_a_message_when_the_connection_broke_comes_again) {
  for (const size_t bytes : {size_t{1}, size_t{15}, size_t{16}, size_t{100}}) {
    SCOPED_TRACE(bytes);
    connect({1, 1, kRings, kRing});
    send_bytes(written_frame(0, 0, 1024).data(), bytes);
    raw_.reset();
    ASSERT_TRUE(reactor_.run_until([&] { return failures_ > 0; }));
    mend();
    expect_resumes(0, 0);
    for (uint32_t ring = 0; ring < kRings; ++ring) send_message(wire::resume_message(ring, 0, 0));
    send_frame(0, 0, 1024);
    EXPECT_EQ(receive_frame(0).header.length, 1024u);
  }
}

// A READ that was lost with the connection must not leave a sender without room.
TEST_F(TcpLinkTest, a_sender_without_room_learns_from_a_mended_link_what_was_read) {
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(post(0, 1024));
  ASSERT_FALSE(commit(0, 1024));
  doorbell_.sleeping.store(1);
  mend();
  ASSERT_FALSE(commit(0, 1024));
  send_message(wire::resume_message(0, 1024, 4096));
  send_message(wire::resume_message(1, 0, 0));
  ASSERT_TRUE(reactor_.run_until([&] { return doorbell_.sleeping.load() == 0; })) << "no doorbell";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(commit(0, 1024));
  EXPECT_FALSE(commit(0, 1024));
}

TEST_F(TcpLinkTest, every_impossible_position_to_resume_from_ends_the_link) {
  // After 1024 bytes were sent in ring 0, of which 512 were read.
  constexpr BadMessage kBad[] = {
      {"another ring", wire::resume_message(1, 0, 0)},
      {"a ring that does not exist", wire::resume_message(kRings, 0, 0)},
      {"WRITTEN", {0, 64, 0}},
      {"READ", {wire::kReadMessage, 0, 1024}},
      {"RESUME with the bit of READ", {wire::kReadMessage | wire::kResumeMessage, 512, 1024}},
      {"more than was sent", wire::resume_message(0, 512, 1088)},
      {"less than was read", wire::resume_message(0, 0, 448)},
      {"fewer bytes read than before", wire::resume_message(0, 576, 1024)},
      {"more unread than there are", wire::resume_message(0, 2048, 1024)},
      {"an odd position", wire::resume_message(0, 0, 1023)},
      {"an odd count", wire::resume_message(0, 63, 1024)},
      {"the end of all positions", wire::resume_message(0, 0, ~uint64_t{63})},
  };
  for (const BadMessage& bad : kBad) {
    SCOPED_TRACE(bad.what);
    connect({1, 1, kRings, kRing});
    ASSERT_TRUE(post(0, 1024));
    receive_bytes(16 + 1024);
    send_message(wire::read_message(0, 512));
    pass_frame(1, 0, 64);
    mend();
    send_message(bad.message);
    expect_refused(bad.what);
  }
  connect({1, 1, kRings, kRing});
  send_message(wire::resume_message(0, 0, 0));
  expect_refused("RESUME on the first connection");
}

TEST_F(TcpLinkTest, a_link_breaks_again_after_it_was_mended) {
  for (int i = 0; i < 3; ++i) {
    raw_.reset();
    ASSERT_TRUE(reactor_.run_until([&] { return failures_ > 0; }));
    EXPECT_EQ(failures_, 1);
    EXPECT_EQ(failure_.code(), Code::peer_lost);
    EXPECT_TRUE(post(0, 64));
    mend();
  }
  expect_resumes(0, 0);
}

TEST_F(TcpLinkTest, what_has_failed_for_good_is_not_mended) {
  link_->stop();
  auto [raw, mine] = tcp_socket_pair();
  const auto mending = transport_.mend(context_, *link_);
  ASSERT_TRUE(mending->on_stream({mine.release()}).ok());
  EXPECT_FALSE(mending->finish().ok());
}

// --------------------------------------------------------------------------------------- signs of life

class TcpSignsTest : public TcpLinkTest {
 protected:
  void SetUp() override {
    context_.agreed.signs = true;
    TcpLinkTest::SetUp();
  }
  Pulse pulse() { return link_->take_pulse(); }
  /// What the peer has sent is in the socket, but nobody has read it.
  void arrive() {
    ASSERT_TRUE(reactor_.run_until([&] {
      int unsent = 1;
      return ioctl(raw_.get(), SIOCOUTQ, &unsent) == 0 && unsent == 0;
    }));
  }
  void expect_sign() {
    const std::vector<std::byte> bytes = receive_bytes(16);
    constexpr unsigned char kSign[16] = {0, 0, 0, 0xc0};
    EXPECT_EQ(std::memcmp(bytes.data(), kSign, 16), 0);
  }
  /// The connection goes dark for the limit, and then is cut; what is mended has the peer say that nothing has come.
  void go_dark_and_mend() {
    for (int i = 0; i < 5; ++i) (void)pulse();
    mend();
  }
};

TEST_F(TcpSignsTest, a_sign_goes_with_each_pulse_and_is_all_of_a_message) {
  EXPECT_EQ(pulse(), Pulse::none);
  expect_sign();
  EXPECT_TRUE(nothing_to_receive());
  EXPECT_EQ(pulse(), Pulse::none);
  expect_sign();
}

TEST_F(TcpSignsTest, whatever_comes_is_a_sign_of_life) {
  send_message(wire::sign_message());
  arrive();
  EXPECT_EQ(pulse(), Pulse::heard);
  EXPECT_EQ(pulse(), Pulse::none);
  // A part of a message, of which nobody knows yet.
  const std::vector<std::byte> frame = written_frame(0, 0, 1024);
  size_t from = 0;
  for (const size_t to : {size_t{7}, size_t{16}, size_t{900}, frame.size()}) {
    send_bytes(frame.data() + from, to - from);
    arrive();
    EXPECT_EQ(pulse(), Pulse::heard) << to;
    from = to;
  }
  receive_frame(0);
  EXPECT_EQ(failures_, 0) << failure_.to_string();
}

// Workers that compute read nothing. What the peer has sent is no silence.
TEST_F(TcpSignsTest, what_no_worker_reads_is_read_with_the_pulse) {
  ASSERT_FALSE(transport_.poll());  // from now on workers read
  send_frame(1, 0, 64);
  arrive();
  for (int i = 0; i < 5; ++i) reactor_.run_once(1);
  EXPECT_FALSE(ready_set_->any());
  EXPECT_EQ(pulse(), Pulse::heard);
  EXPECT_TRUE(ready_set_->any());
  receive_frame(1);
}

TEST_F(TcpSignsTest, a_sign_waits_for_the_rest_of_a_message_and_several_are_one) {
  constexpr uint32_t kLarge = 32 << 20;  // more than socket buffers grow to
  connect({1, 1, 2, kLarge});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(post(0, kLarge / 4));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(post(1, kLarge / 4));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pulse(), Pulse::none);
  int signs = 0;
  for (uint64_t written = 0; written < 2 * kLarge || signs == 0;) {
    const DataMessage message = receive_message();
    if (wire::is_sign(message)) {
      ++signs;
      continue;
    }
    ASSERT_FALSE(wire::is_read(message));
    receive_bytes(message.length);
    written += message.length;
  }
  EXPECT_EQ(signs, 1);
  EXPECT_TRUE(nothing_to_receive());
}

TEST_F(TcpSignsTest, a_sign_comes_behind_the_positions_of_a_mended_link) {
  EXPECT_EQ(pulse(), Pulse::none);
  mend();
  EXPECT_EQ(pulse(), Pulse::none);
  expect_resumes(0, 0);
  expect_sign();
  // And before the peer has said where it is.
  EXPECT_TRUE(nothing_to_receive());
  for (uint32_t ring = 0; ring < kRings; ++ring) send_message(wire::resume_message(ring, 0, 0));
  send_message(wire::sign_message());
  arrive();
  EXPECT_EQ(pulse(), Pulse::heard);
  EXPECT_EQ(failures_, 0) << failure_.to_string();
}

TEST_F(TcpSignsTest, what_only_looks_like_a_sign_ends_the_link) {
  constexpr BadMessage kBad[] = {
      {"a ring", {wire::kSignMessage | 1, 0, 0}},
      {"another bit", {wire::kSignMessage | 1u << 29, 0, 0}},
      {"a length", {wire::kSignMessage, 64, 0}},
      {"a position", {wire::kSignMessage, 0, 64}},
      {"RESUME on the first connection", wire::resume_message(0, 0, 0)},
  };
  for (const BadMessage& bad : kBad) {
    SCOPED_TRACE(bad.what);
    connect({1, 1, kRings, kRing});
    send_message(bad.message);
    expect_refused(bad.what);
  }
  connect({1, 1, kRings, kRing});
  mend();
  send_message(wire::sign_message());
  expect_refused("a sign before the positions");
}

TEST_F(TcpLinkTest, a_sign_from_a_peer_that_has_not_offered_any_ends_the_link) {
  send_message(wire::sign_message());
  expect_refused("SIGN");
}

TEST_F(TcpLinkTest, a_peer_that_knows_no_signs_gets_none_and_its_silence_says_nothing) {
  EXPECT_EQ(link_->take_pulse(), Pulse::unknown);
  EXPECT_TRUE(nothing_to_receive());
  send_frame(0, 0, 64);
  EXPECT_TRUE(reactor_.run_until([&] { return link_->take_pulse() == Pulse::heard; }));
}

TEST_F(TcpSignsTest, a_path_that_keeps_going_dark_is_stuck_the_third_time) {
  ASSERT_TRUE(post(0, 1024));
  go_dark_and_mend();
  go_dark_and_mend();
  EXPECT_EQ(pulse(), Pulse::none);
  go_dark_and_mend();
  EXPECT_EQ(pulse(), Pulse::stuck);
}

TEST_F(TcpSignsTest, a_path_over_which_what_is_sent_never_comes_is_stuck_the_third_time) {
  ASSERT_TRUE(post(0, 1024));
  for (int i = 0; i < 3; ++i) {
    for (int beat = 0; beat < 5; ++beat) {
      EXPECT_NE(pulse(), Pulse::stuck);
      send_message(wire::sign_message());  // small messages do come
      arrive();
    }
    mend();
    for (uint32_t ring = 0; ring < kRings; ++ring) send_message(wire::resume_message(ring, 0, 0));
    arrive();
  }
  EXPECT_EQ(pulse(), Pulse::stuck);
}

TEST_F(TcpSignsTest, a_path_over_which_anything_gets_further_is_not_stuck) {
  ASSERT_TRUE(post(0, 1024));
  for (uint32_t i = 1; i <= 6; ++i) {
    go_dark_and_mend();
    send_message(wire::resume_message(0, 0, 64 * i));
    send_message(wire::resume_message(1, 0, 0));
    arrive();
    EXPECT_NE(pulse(), Pulse::stuck) << i;
  }
}

// ------------------------------------------------------------------- what the kernel sees to instead

class TcpKernelWatchTest : public TcpLinkTest {
 protected:
  void SetUp() override {
    context_.liveness = 1'000'000'000;
    TcpLinkTest::SetUp();
  }
  /// All packets that come are dropped.
  static void go_dark(int fd) {
    sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
    const sock_fprog program{1, &drop};
    ASSERT_EQ(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
  }
  int user_timeout_ms() {
    int value = -1;
    socklen_t length = sizeof value;
    EXPECT_EQ(getsockopt(mine_, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &length), 0);
    return value;
  }
  void expect_noticed() {
    ASSERT_TRUE(reactor_.run_until([&] {
      (void)link_->take_pulse();
      return failures_ != 0;
    }));
    expect_error(failure_, Code::peer_lost, {"timed out"});
  }
};

TEST_F(TcpKernelWatchTest, a_path_that_goes_dark_is_noticed_while_nothing_is_sent) {
  go_dark(raw_.get());
  expect_noticed();
}

TEST_F(TcpKernelWatchTest, a_path_that_goes_dark_is_noticed_while_something_is_sent) {
  go_dark(raw_.get());
  ASSERT_TRUE(post(0, 1024));
  expect_noticed();
}

TEST_F(TcpKernelWatchTest, a_peer_that_reads_nothing_is_not_lost_for_that) {
  constexpr uint32_t kLarge = 32 << 20;
  connect({1, 1, 2, kLarge});
  EXPECT_EQ(user_timeout_ms(), 1000);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(post(0, kLarge / 4));
  ASSERT_TRUE(reactor_.run_until([&] {
    EXPECT_EQ(link_->take_pulse(), Pulse::unknown);
    return user_timeout_ms() == 0;  // the window is closed
  }));
  receive_bytes(sizeof(DataMessage) + kLarge);
  ASSERT_TRUE(reactor_.run_until([&] {
    (void)link_->take_pulse();
    return user_timeout_ms() == 1000;
  }));
  EXPECT_EQ(failures_, 0) << failure_.to_string();
}

// Streams of messages that are valid, nearly valid or nonsense, in pieces of random size: memory
// stays intact (the sanitizers look), nothing is shown that was not announced, and the link fails
// at most once.
TEST_F(TcpLinkTest, random_streams_never_do_more_than_end_the_link) {
#if defined(FARO_SANITIZE_ADDRESS) || defined(FARO_SANITIZE_THREAD)
  constexpr uint64_t kStreams = 300;
#else
  constexpr uint64_t kStreams = 2000;
#endif
  for (uint64_t seed = 1; seed <= kStreams; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    connect({1, 1, kRings, kRing});
    uint64_t chance = mix(seed);
    const auto draw = [&](uint64_t below) { return (chance = mix(chance)) % below; };
    ASSERT_TRUE(post(0, 1024));
    wire::Position written[kRings] = {};
    std::vector<std::byte> stream;
    for (uint64_t messages = 1 + draw(20); messages > 0; --messages) {
      DataMessage message{};
      const uint32_t ring = static_cast<uint32_t>(draw(kRings));
      message = draw(4) == 0 ? wire::read_message(ring, 64 * draw(18))
                             : wire::written_message(
                                   ring, static_cast<uint32_t>(64 * (1 + draw(20))), written[ring]);
      if (draw(8) == 0) {  // one field wrong
        const uint64_t nonsense = draw(2) == 0 ? mix(chance) : uint64_t{1} << draw(64);
        switch (draw(3)) {
          case 0:
            message.ring_and_kind ^= static_cast<uint32_t>(nonsense);
            break;
          case 1:
            message.length ^= static_cast<uint32_t>(nonsense);
            break;
          default:
            message.position ^= nonsense;
        }
      }
      const size_t at = stream.size();
      const size_t payload = wire::is_read(message) ? 0 : message.length % (2 * kRing);
      stream.resize(at + sizeof message + payload);
      std::memcpy(stream.data() + at, &message, sizeof message);
      for (size_t i = at + sizeof message; i < stream.size(); ++i)
        stream[i] = static_cast<std::byte>(mix(seed + i));
      if (draw(2) == 0 && payload >= 64) {  // a valid frame in it
        put_data_header(stream.data() + at + sizeof message, static_cast<uint32_t>(payload));
      }
      if (!wire::is_read(message)) written[ring] += message.length;
    }
    for (size_t at = 0; at < stream.size() && failures_ == 0;) {
      const size_t piece = std::min<size_t>(1 + draw(3000), stream.size() - at);
      send_bytes(stream.data() + at, piece);
      at += piece;
      reactor_.run_once(0);
      transport::FrameView view;
      for (uint32_t r = 0; r < kRings; ++r) {
        uint64_t sum = 0;
        while (link_->incoming(r).next(view) == Next::frame) {
          for (uint32_t i = 0; i < view.payload_bytes(); ++i)
            sum += static_cast<uint64_t>(view.payload[i]);
          if (draw(2) == 0) link_->incoming(r).release(view.token);
        }
        EXPECT_LE(sum, uint64_t{255} * kRing);
      }
    }
    EXPECT_LE(failures_, 1);
    if (failures_ == 1) {
      EXPECT_EQ(failure_.code(), Code::protocol_error) << failure_.to_string();
    }
  }
}

}  // namespace
}  // namespace faro::test
