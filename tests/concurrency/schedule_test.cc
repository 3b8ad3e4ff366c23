// network.schedule = phases, through the public API: four nodes over tcp, with TLS and without, each with two workers that send to
// all.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support/certificates.h"
#include "support/shuffle_api.h"

namespace faro::test {
namespace {

/// By what carries the rows: "tcp", or "tls".
class Schedule : public ShuffleApi, public testing::WithParamInterface<const char*> {
 protected:
  void open_nodes(uint32_t nodes, const SettingList& more = {}) {
    SettingList settings = transport_settings(GetParam());
    settings.insert(settings.end(), {{"cluster.workers", "2"},
                                     {"ring.bytes", "64 KiB"},
                                     {"transfer.threshold_bytes", "16 KiB"},
                                     {"network.schedule", "phases"},
                                     {"network.turn_bytes", "128 KiB"},
                                     {"network.turn_ms", "2000"}});
    settings.insert(settings.end(), more.begin(), more.end());
    open(nodes, settings);
  }
  /// Each worker sends as many rows to each, and takes what comes. Before each row of worker 0 `meanwhile` is called with its number.
  void exchange(
      uint64_t rows, const std::function<void(uint64_t)>& meanwhile = [](uint64_t) {}) {
    const QueryId id = session().begin_query();
    const uint32_t workers = cluster_->worker_count();
    std::atomic<uint64_t> taken{0};
    cluster_->run_workers([&](uint32_t me) {
      Shuffle shuffle = open_shuffle(worker(me), spec(id, 0, sizeof(uint64_t)));
      const auto sender = value_of(shuffle.sender<uint64_t>());
      for (uint64_t row = 0; row < rows; ++row) {
        if (me == 0) meanwhile(row);
        for (uint32_t to = 0; to < workers; ++to) ASSERT_EQ(sender.send(to, row), Outcome::done);
      }
      ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
      taken += take_rows(shuffle);
      close_and_end(shuffle, me, id);
    });
    EXPECT_EQ(taken, rows * workers * workers);
  }
  struct Sent {
    uint64_t bytes = 0;
    uint64_t in_turns = 0;
    uint64_t turns = 0;
  };
  /// To other nodes, by all.
  Sent sent() {
    Sent sum;
    for (uint32_t node = 0; node < cluster_->size(); ++node) {
      for (const LinkMetrics& link : session(node).metrics().links) {
        if (link.node == node) continue;
        sum.bytes += link.bytes_sent;
        sum.in_turns += link.turn_bytes;
        sum.turns += link.turns;
      }
    }
    return sum;
  }
};

TEST_P(Schedule, much_goes_in_turns_and_arrives_whole) {
  open_nodes(4);
  exchange(100'000);
  const Sent much = sent();
  EXPECT_GE(much.in_turns * 10, much.bytes * 9);
  EXPECT_LE(much.in_turns, much.bytes);
  EXPECT_GT(much.turns, 12u);
}

TEST_P(Schedule, little_goes_without_a_turn) {
  open_nodes(4);
  exchange(10);
  const Sent little = sent();
  EXPECT_GT(little.bytes, 0u);
  EXPECT_EQ(little.turns, 0u);
  EXPECT_EQ(little.in_turns, 0u);
}

TEST_P(Schedule, two_nodes_have_no_turns) {
  open_nodes(2);
  exchange(100'000);
  EXPECT_EQ(sent().turns, 0u);
}

/// Breaks one of three TCP connections of this process; how many.
uint32_t cut_connections(uint32_t which) {
  constexpr int kDescriptors = 1024;
  uint32_t found = 0;
  uint32_t cut = 0;
  for (int fd = 3; fd < kDescriptors; ++fd) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.sin_family != AF_INET || found++ % 3 != which % 3) continue;
    cut += shutdown(fd, SHUT_RDWR) == 0;
  }
  return cut;
}

// A link that is mended takes part in the turns again: rows that were held when it broke go, and it has more of them.
TEST_P(Schedule, links_that_break_again_and_again_lose_no_row_and_have_turns_afterwards) {
  open_nodes(4, {{"link.mend_ms", "30000"}, {"network.turn_ms", "10"}});
  uint32_t cut = 0;
  exchange(60'000, [&](uint64_t row) {
    if (row % 10'000 == 5'000) cut += cut_connections(static_cast<uint32_t>(row / 10'000));
  });
  EXPECT_GT(cut, 6u);
  const uint64_t before = sent().in_turns;
  exchange(60'000);
  EXPECT_GT(sent().in_turns, before);
}

INSTANTIATE_TEST_SUITE_P(Over, Schedule, testing::Values("tcp", "tls"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace faro::test
