// Which queue pair carries what: every way to share them, with as many and with fewer workers at one end.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "transport/verbs/path_map.h"

namespace faro::transport::verbs {
namespace {

constexpr Sharing kAll[] = {Sharing::link, Sharing::worker, Sharing::lane};
constexpr std::pair<uint32_t, uint32_t> kWorkers[] = {{1, 1}, {2, 2}, {3, 1}, {1, 4}, {2, 5}};

// The rings of one end, two per lane.
struct End {
  ring::Layout outgoing;
  ring::Layout incoming;
  PathMap map;

  End(Sharing sharing, uint32_t own, uint32_t peers)
      : outgoing{own, peers, 2, 4096},
        incoming{peers, own, 2, 4096},
        map(sharing, outgoing, incoming) {}
};

template <typename Check>
void for_each_shape(Check&& check) {
  for (const auto& [a, b] : kWorkers) {
    SCOPED_TRACE(std::to_string(a) + " and " + std::to_string(b) + " workers");
    check(a, b);
    check(b, a);
  }
}

TEST(PathMapTest, both_ends_count_the_same_and_use_no_other_path) {
  for (const Sharing sharing : kAll) {
    for_each_shape([&](uint32_t own, uint32_t peers) {
      const End end(sharing, own, peers);
      EXPECT_EQ(end.map.count(), End(sharing, peers, own).map.count());
      for (uint32_t r = 0; r < end.outgoing.ring_count(); ++r)
        EXPECT_LT(end.map.of_outgoing(r), end.map.count());
      for (uint32_t r = 0; r < end.incoming.ring_count(); ++r)
        EXPECT_LT(end.map.of_incoming(r), end.map.count());
    });
  }
}

TEST(PathMapTest, a_link_has_one) {
  for_each_shape([](uint32_t own, uint32_t peers) {
    EXPECT_EQ(End(Sharing::link, own, peers).map.count(), 1u);
  });
}

// The workers of one end, and with lanes also those of the other, that use each path.
TEST(PathMapTest, no_two_workers_share_one_of_their_own) {
  for_each_shape([](uint32_t own, uint32_t peers) {
    const End end(Sharing::worker, own, peers);
    for (uint32_t r = 0; r < end.outgoing.ring_count(); ++r)
      EXPECT_EQ(end.map.of_outgoing(r), end.outgoing.sender_of(r));
    for (uint32_t r = 0; r < end.incoming.ring_count(); ++r)
      EXPECT_EQ(end.map.of_incoming(r), end.incoming.receiver_of(r));
  });
}

TEST(PathMapTest, lanes_to_nodes_have_as_many_as_the_node_with_more_workers) {
  const ring::Layout forth{2, 1, 2, 4096};
  const ring::Layout back{4, 1, 2, 4096};
  EXPECT_EQ(PathMap::count(Sharing::link, forth, back), 1u);
  for (const auto& [outgoing, incoming] : {std::pair(forth, back), std::pair(back, forth)}) {
    const PathMap map(Sharing::worker, outgoing, incoming);
    EXPECT_EQ(map.count(), 4u);
    for (uint32_t r = 0; r < outgoing.ring_count(); ++r)
      EXPECT_EQ(map.of_outgoing(r), outgoing.sender_of(r));
    // By the number of their sender: there may be more of them than workers here.
    for (uint32_t r = 0; r < incoming.ring_count(); ++r)
      EXPECT_EQ(map.of_incoming(r), incoming.sender_of(r));
  }
}

TEST(PathMapTest, a_lane_shares_with_the_lane_back_only) {
  for_each_shape([](uint32_t own, uint32_t peers) {
    const End end(Sharing::lane, own, peers);
    using Lane = std::pair<uint32_t, uint32_t>;  // own worker, peer's worker
    std::map<uint32_t, std::set<Lane>> lanes;
    for (uint32_t r = 0; r < end.outgoing.ring_count(); ++r)
      lanes[end.map.of_outgoing(r)].emplace(end.outgoing.sender_of(r), end.outgoing.receiver_of(r));
    for (uint32_t r = 0; r < end.incoming.ring_count(); ++r)
      lanes[end.map.of_incoming(r)].emplace(end.incoming.receiver_of(r), end.incoming.sender_of(r));
    EXPECT_EQ(lanes.size(), own * peers);
    for (const auto& [path, of_path] : lanes) EXPECT_EQ(of_path.size(), 1u) << path;
  });
}

}  // namespace
}  // namespace faro::transport::verbs
