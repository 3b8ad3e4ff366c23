// Rows that are sent to groups of receivers through the public API, by threads: over shared memory, over TCP and within a node.
// tests/sim/groups_test.cc has the order of events.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "support/shuffle_api.h"

namespace faro::test {
namespace {

struct GroupsPlace {
  const char* name;
  uint32_t nodes;
  const char* transport;
  const char* workers;
};

class ShuffleGroups : public ShuffleApi, public testing::WithParamInterface<GroupsPlace> {
 protected:
  static constexpr uint32_t kWorkers = 4;

  /// What a worker sends to: each has others.
  static std::vector<std::vector<uint32_t>> groups_of(uint32_t sender) {
    switch (sender) {
      case 0:
        return {{0, 1}, {1, 2}, {3}};
      case 1:
        return {{0, 1, 2, 3}};
      case 2:
        return {};
      default:
        return {{3, 0}, {2}, {2}, {0, 3}};
    }
  }
  static uint64_t row_of(uint32_t sender, uint32_t target, uint64_t number) {
    return (uint64_t{sender} << 56) | (uint64_t{target} << 48) | number;
  }
};

INSTANTIATE_TEST_SUITE_P(Places, ShuffleGroups,
                         testing::Values(GroupsPlace{"local", 1, "tcp", "4"},
                                         GroupsPlace{"tcp", 2, "tcp", "2,2"},
                                         GroupsPlace{"shm", 2, "shm", "2,2"}),
                         [](const auto& place) { return place.param.name; });

// All send at once, and receive what has come whenever they find no room.
TEST_P(ShuffleGroups, each_row_comes_to_each_member_once_and_in_the_order_of_its_group) {
  constexpr uint64_t kRows = 4000;  // to each group
  open(GetParam().nodes,
       {{"transport", GetParam().transport}, {"cluster.workers", GetParam().workers}});
  const QueryId id = session().begin_query();
  std::array<std::vector<uint64_t>, kWorkers> got;
  cluster_->run_workers([&](uint32_t w) {
    ShuffleSpec what = spec(id, 0, 8);
    what.groups = groups_of(w);
    Shuffle shuffle = open_shuffle(worker(w), what);
    const RowSender<uint64_t> sender = *shuffle.sender<uint64_t>();
    uint64_t next = 0;
    const auto produce = [&](const ShuffleSender&) {
      for (int some = 0; some < 100; ++some, ++next) {
        if (next == kRows * sender.receiver_count()) return Outcome::end_of_stream;
        const auto target = static_cast<uint32_t>(next % sender.receiver_count());
        const uint64_t row = row_of(w, target, next / sender.receiver_count());
        const Outcome sent = sender.send(target, row, Wait::none());
        if (sent != Outcome::done) return sent;
      }
      return Outcome::done;
    };
    const auto consume = [&](Batch& batch) {
      for (const uint64_t row : batch.rows<uint64_t>()) got[w].push_back(row);
    };
    EXPECT_EQ(worker(w).exchange(shuffle, produce, consume), Outcome::end_of_stream);
    close_and_end(shuffle, w, id);
  });
  for (uint32_t receiver = 0; receiver < kWorkers; ++receiver) {
    size_t expected = 0;
    for (uint32_t sender = 0; sender < kWorkers; ++sender) {
      std::vector<std::vector<uint32_t>> groups = groups_of(sender);
      if (groups.empty()) groups = {{0}, {1}, {2}, {3}};
      for (uint32_t target = 0; target < groups.size(); ++target) {
        if (std::ranges::count(groups[target], receiver) == 0) continue;
        uint64_t next = 0;
        for (const uint64_t row : got[receiver]) next += row == row_of(sender, target, next);
        EXPECT_EQ(next, kRows) << sender << " to " << receiver << " by " << target;
        expected += kRows;
      }
    }
    EXPECT_EQ(got[receiver].size(), expected) << receiver;
  }
  for (uint32_t node = 0; node < GetParam().nodes; ++node)
    EXPECT_EQ(session(node).metrics().overflow_memory_bytes, 0u);
}

}  // namespace
}  // namespace faro::test
