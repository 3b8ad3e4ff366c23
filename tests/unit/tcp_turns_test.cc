// Nodes that send their rows in turns over tcp: four in one thread, with a connection between any two. No worker reads or flushes, so all that
// happens is the network thread's.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "contract/frames.h"
#include "support/expect.h"
#include "support/tcp_socket_pair.h"
#include "support/test_reactor.h"
#include "transport/tcp/tcp_transport.h"
#include "wire/data_message.h"

namespace faro::test {
namespace {

using transport::schedule::PhaseSettings;
using transport::tcp::NodeTurns;
using wire::DataMessage;

constexpr uint32_t kNodes = 4;
constexpr uint32_t kRing = 16384;
constexpr ring::Layout kLayout{1, 1, 2, kRing};
constexpr PhaseSettings kSettings{
    .turn_bytes = 4096, .from_bytes = 2048, .turn_ns = 1000 * base::kMillisecond};
constexpr uint32_t kFrame = 1024;

/// Whoever looks at it next first has something happen.
class WatchedClock final : public base::Clock {
 public:
  base::Nanoseconds now_ns() const noexcept override {
    if (const auto happen = std::exchange(next_, nullptr)) happen();
    return base::SystemClock::instance().now_ns();
  }
  void at_next_look(std::function<void()> happen) { next_ = std::move(happen); }

 private:
  mutable std::function<void()> next_;
};

/// A node's end of a link.
struct End : transport::LinkEvents {
  void on_link_failed(const Status& cause) override {
    ++failures;
    failure = cause;
  }

  ring::ReadySet ready{1};
  ring::DoorbellLine doorbell{};
  transport::WorkerEnd worker{&ready, &doorbell};
  uint32_t ready_group = 0;
  transport::LinkContext context;
  std::unique_ptr<transport::DataLink> link;
  int failures = 0;
  Status failure;
  uint64_t sent = 0;
  uint64_t received = 0;
};

struct Node {
  Node(uint32_t number, const PhaseSettings& settings)
      : turns(std::make_shared<NodeTurns>(settings, number, kNodes)),
        transport(std::nullopt, nullptr, turns) {}

  std::shared_ptr<NodeTurns> turns;
  transport::tcp::TcpTransport transport;
  std::array<End, kNodes> ends;
};

class TcpTurns : public testing::Test {
 protected:
  void SetUp() override { open(kSettings); }

  void open(const PhaseSettings& settings) {
    nodes_.clear();
    for (uint32_t n = 0; n < kNodes; ++n) nodes_.push_back(std::make_unique<Node>(n, settings));
    for (uint32_t a = 0; a < kNodes; ++a) {
      for (uint32_t b = 0; b < a; ++b) connect(a, b);
    }
  }
  void connect(uint32_t a, uint32_t b) {
    auto [one, other] = tcp_socket_pair();
    ASSERT_TRUE(one.valid() && other.valid());
    add(a, b, one.release());
    add(b, a, other.release());
  }
  End& end(uint32_t node, uint32_t peer) { return nodes_[node]->ends[peer]; }
  void add(uint32_t node, uint32_t peer, int socket) {
    End& end = this->end(node, peer);
    end.context.peer_node = peer;
    end.context.agreed.turns = true;
    end.context.outgoing = end.context.incoming = kLayout;
    end.context.workers = {&end.worker, 1};
    end.context.ready_group = {&end.ready_group, 1};
    end.context.reactor = &reactor_;
    end.context.events = &end;
    const auto setup = nodes_[node]->transport.begin(end.context);
    ASSERT_TRUE(setup->start().ok());
    ASSERT_TRUE(setup->on_stream({socket}).ok());
    end.link = setup->take();
    ASSERT_NE(end.link, nullptr);
  }
  /// Posts frames, with more in each ring than a turn takes.
  void post(uint32_t node, uint32_t peer, uint32_t frames) {
    FrameSequence sequence(0, kRing / 4);
    sequence.set_length(kFrame);
    for (uint32_t i = 0; i < frames; ++i) {
      transport::Outgoing& ring = end(node, peer).link->outgoing(i % 2);
      ASSERT_TRUE(reactor_.run_until([&] {
        if (sequence.try_send(ring)) return true;
        (void)all_has_come();  // its receiver makes room
        return false;
      }));
      ring.post();
      end(node, peer).sent += kFrame;
    }
  }
  void post_all(uint32_t frames) {
    for (uint32_t node = 0; node < kNodes; ++node) {
      for (uint32_t peer = 0; peer < kNodes; ++peer) {
        if (peer != node && end(node, peer).failures == 0) post(node, peer, frames);
      }
    }
  }
  /// Takes what has come. Whether that is all that was sent between nodes whose link stands.
  bool all_has_come() {
    bool is_all = true;
    for (uint32_t node = 0; node < kNodes; ++node) {
      for (uint32_t peer = 0; peer < kNodes; ++peer) {
        End& end = this->end(node, peer);
        if (peer == node || end.failures != 0 || this->end(peer, node).failures != 0) continue;
        for (uint32_t ring = 0; ring < 2; ++ring) {
          transport::FrameView view;
          while (end.link->incoming(ring).next(view) == ring::Next::frame) {
            end.received += wire::padded(view.header.length);
            end.link->incoming(ring).release(view.token);
          }
          end.link->incoming(ring).flush_releases();
        }
        is_all = is_all && end.received == this->end(peer, node).sent;
      }
    }
    return is_all;
  }
  bool all_rest() {
    for (const auto& node : nodes_) {
      if (!node->turns->turns().is_at_rest()) return false;
    }
    return true;
  }
  uint64_t turns(uint32_t node, uint32_t peer) {
    transport::LinkCounters counters;
    end(node, peer).link->add_counters(counters);
    return counters.turns.load();
  }
  /// Adds what all links have counted.
  void add_all(transport::LinkCounters& sum) {
    for (uint32_t node = 0; node < kNodes; ++node) {
      for (uint32_t peer = 0; peer < kNodes; ++peer) {
        if (peer != node) end(node, peer).link->add_counters(sum);
      }
    }
  }
  void expect_all_comes() {
    EXPECT_TRUE(reactor_.run_until([&] { return all_has_come(); }));
    EXPECT_TRUE(reactor_.run_until([&] { return all_rest(); }));
  }

  WatchedClock clock_;
  TestReactor reactor_{clock_};
  std::vector<std::unique_ptr<Node>> nodes_;
};

TEST_F(TcpTurns, what_is_held_goes_in_turns_and_all_rest_afterwards) {
  for (int round = 0; round < 5; ++round) {
    post_all(24);
    expect_all_comes();
  }
  const uint64_t sent = uint64_t{5} * kNodes * (kNodes - 1) * 24 * kFrame;
  // Before its first round a node has less than turns are for.
  transport::LinkCounters counters;
  add_all(counters);
  EXPECT_GE(counters.turn_bytes.load() * 10, sent * 9);
  EXPECT_GE(counters.turns.load(), kNodes * (kNodes - 1));
  // Read positions may still be under way. Then there is nothing to do.
  EXPECT_TRUE(reactor_.run_until([&] { return !reactor_.run_once(50); }));
}

TEST_F(TcpTurns, what_is_little_goes_without_a_turn_and_wakes_nobody) {
  post(0, 1, 1);
  EXPECT_TRUE(nodes_[0]->turns->turns().is_at_rest());
  expect_all_comes();
  transport::LinkCounters counters;
  add_all(counters);
  EXPECT_EQ(counters.turns.load(), 0u);
}

TEST_F(TcpTurns, a_node_that_has_much_holds_its_rows_until_others_have_passed_their_turns) {
  post(0, 1, 9);  // the third of these is held
  EXPECT_FALSE(nodes_[0]->turns->turns().is_at_rest());
  EXPECT_FALSE(all_has_come());
  expect_all_comes();
}

TEST_F(TcpTurns, a_node_whose_links_break_keeps_nobody_waiting) {
  post_all(24);
  for (uint32_t peer = 0; peer < kNodes; ++peer) {
    if (peer != 2) end(2, peer).link->stop();
  }
  EXPECT_TRUE(reactor_.run_until([&] {
    return end(0, 2).failures != 0 && end(1, 2).failures != 0 && end(3, 2).failures != 0;
  }));
  expect_all_comes();
  // With two nodes there are no turns: what was held goes.
  for (uint32_t node : {0u, 1u, 3u}) {
    for (uint32_t peer : {0u, 1u, 3u}) {
      if (peer != node) post(node, peer, 12);
    }
  }
  for (uint32_t peer : {0u, 1u}) end(3, peer).link->stop();
  EXPECT_TRUE(
      reactor_.run_until([&] { return end(0, 3).failures != 0 && end(1, 3).failures != 0; }));
  expect_all_comes();
}

TEST_F(TcpTurns, a_mended_link_has_turns_again) {
  post_all(8);
  auto [one, other] = tcp_socket_pair();
  End& a = end(1, 3);
  End& b = end(3, 1);
  const auto mend_a = nodes_[1]->transport.mend(a.context, *a.link);
  const auto mend_b = nodes_[3]->transport.mend(b.context, *b.link);
  ASSERT_TRUE(mend_a->start().ok() && mend_b->start().ok());
  ASSERT_TRUE(mend_a->on_stream({one.release()}).ok() && mend_b->on_stream({other.release()}).ok());
  ASSERT_TRUE(is_ok(mend_a->finish()));
  ASSERT_TRUE(is_ok(mend_b->finish()));
  expect_all_comes();
  const uint64_t before = turns(1, 3);
  for (int round = 0; round < 3; ++round) {
    post_all(24);
    expect_all_comes();
  }
  EXPECT_GT(turns(1, 3), before);
}

// Its connection ends as it is given. The node then has one link that stands, and with that no turns.
TEST_F(TcpTurns, a_link_that_stops_as_it_is_mended_has_none) {
  end(0, 3).link->stop();
  End& end = this->end(0, 2);
  const auto mending = nodes_[0]->transport.mend(end.context, *end.link);
  auto [mine, peers] = tcp_socket_pair();
  ASSERT_TRUE(mending->start().ok() && mending->on_stream({mine.release()}).ok());
  clock_.at_next_look([&] { end.link->stop(); });
  (void)mending->finish();
  const auto now = base::SystemClock::instance().now_ns();
  EXPECT_EQ(nodes_[0]->turns->turns().ask(1, 2 * kSettings.turn_bytes, now).bytes,
            transport::schedule::Phases::kUnlimited);
}

// A round is on, and the node follows another one from now on. Nothing else happens: nobody answers, and no time passes.
TEST_F(TcpTurns, what_a_link_has_to_say_when_it_starts_goes_at_once) {
  const auto handle_all = [&] {
    while (reactor_.run_once(0)) {
    }
  };
  base::UniqueFd peers[kNodes];
  const auto add_to_node_0 = [&](uint32_t peer) {
    auto [mine, theirs] = tcp_socket_pair();
    add(0, peer, mine.release());
    peers[peer] = std::move(theirs);
    handle_all();
  };
  for (uint32_t peer = 1; peer < kNodes; ++peer) end(0, peer).link.reset();
  add_to_node_0(2);
  add_to_node_0(3);
  post(0, 2, 4);
  ASSERT_FALSE(nodes_[0]->turns->turns().is_at_rest());
  add_to_node_0(1);
  DataMessage said;
  ASSERT_EQ(recv(peers[1].get(), &said, sizeof said, MSG_DONTWAIT), ssize_t{sizeof said});
  EXPECT_EQ(wire::words_of_turn(said).kind,
            static_cast<uint32_t>(transport::schedule::TurnMessage::Kind::follow));
}

TEST_F(TcpTurns, what_no_peer_can_say_of_turns_ends_the_link_by_name) {
  struct Bad {
    const char* what;
    DataMessage message;
    const char* said;
  };
  const Bad kBad[] = {
      {"a kind", wire::turn_message({3, false, 0}, 5), "kind 3"},
      {"a number", wire::turn_message({0, false, 0}, uint64_t{1} << 63), "told of turn"},
      {"more nodes than there are", wire::turn_message({0, false, kNodes + 1}, 5), "5 quiet nodes"},
      {"another bit", {wire::kTurnMessage, 8, 5}, "READ of ring"},
      {"another ring", {wire::kTurnMessage | 2, 0, 5}, "READ of ring"}};
  for (const Bad& bad : kBad) {
    SCOPED_TRACE(bad.what);
    open(kSettings);
    auto [mine, peers] = tcp_socket_pair();
    End& end = this->end(0, 1);
    end.link.reset();
    add(0, 1, mine.release());
    ASSERT_EQ(send(peers.get(), &bad.message, sizeof bad.message, MSG_NOSIGNAL), 16);
    EXPECT_TRUE(reactor_.run_until([&] { return end.failures != 0; }));
    EXPECT_EQ(end.failure.code(), Code::protocol_error);
    EXPECT_NE(end.failure.message().find(bad.said), std::string::npos) << end.failure.to_string();
  }
}

TEST_F(TcpTurns, what_is_told_late_or_twice_ends_nothing) {
  auto [mine, peers] = tcp_socket_pair();
  End& end = this->end(0, 1);
  end.link.reset();
  add(0, 1, mine.release());
  for (const uint64_t turn : {9u, 9u, 4u, 9u}) {
    const DataMessage message = wire::turn_message({0, false, 0}, turn);
    ASSERT_EQ(send(peers.get(), &message, sizeof message, MSG_NOSIGNAL), 16);
  }
  for (int i = 0; i < 20; ++i) reactor_.run_once(1);
  EXPECT_EQ(end.failures, 0) << end.failure.to_string();
}

// Also without a worker that reads: the network thread does, a while after the last one has looked.
TEST_F(TcpTurns, what_is_told_of_turns_is_heard_while_all_workers_compute) {
  for (const auto& node : nodes_) node->transport.poll();  // from now on workers read
  post_all(24);
  EXPECT_TRUE(reactor_.run_until([&] { return all_has_come(); }));
}

}  // namespace
}  // namespace faro::test
