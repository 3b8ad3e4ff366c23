// A roster of many nodes of which a query uses few costs what these cost (native/session/README.md, "Links on demand"): numbers,
// addresses and nothing else are kept of the others. Real sessions in one process.
#include <gtest/gtest.h>
#include <malloc.h>
#include <poll.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <thread>

#include "links/listening_socket.h"
#include "support/changing_cluster.h"
#include "support/temporary_folder.h"
#include "support/watchdog.h"

namespace faro::test {
namespace {

constexpr uint64_t kNodes = 8;
constexpr uint64_t kPeers = kNodes - 1;
constexpr uint64_t kSocketsOfLink = 2;  // at each end: control and data

/// What a cluster of 8 nodes, which a query uses, takes beside what the test itself does.
struct Taken {
  uint64_t heap_bytes = 0;
  uint64_t counter_bytes = 0;  // that its files take
  uint64_t descriptors = 0;
  uint64_t links = 0;
};

uint64_t heap_bytes() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

/// Descriptors of this process: sockets, or all.
uint64_t descriptors(bool sockets_only) {
  uint64_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string what = std::filesystem::read_symlink(entry.path(), gone).string();
    count += !sockets_only || what.starts_with("socket:");
  }
  return count;
}

Taken take(uint32_t roster) {
  const std::set<uint32_t> there = {0, 1, 2, 3, 4, 5, 6, 7};
  const TemporaryFolder folder;
  // Where the others of the roster listen: nobody may come.
  links::ListeningSocket nobody = value_of(links::ListeningSocket::bind(listen_address(0)));
  ChangingCluster cluster({{"transport", "tcp"},
                           {"connect.wait_for", "none"},
                           {"ring.bytes", "4096"},
                           {"counters.folder", folder.path()}},
                          there.size(), roster);
  const uint64_t heap = heap_bytes();
  for (const uint32_t n : there) cluster.open(n, there);
  const uint64_t sockets = descriptors(true);
  for (const uint32_t n : there) {
    for (uint32_t other = static_cast<uint32_t>(there.size()); other < roster; ++other)
      EXPECT_TRUE(is_ok(Nodes(cluster[n]).add({other, nobody.address()})));
  }
  cluster.expect_working(there, 10);
  Taken taken;
  for (const uint32_t n : there) {
    const SessionMetrics metrics = cluster[n].metrics();
    EXPECT_EQ(metrics.lanes.size(),
              2 * kNodes * ChangingCluster::kWorkers * ChangingCluster::kWorkers)
        << "both ways with the 8 nodes";
    for (const LinkMetrics& link : metrics.links) taken.links += link.connected && link.node != n;
  }
  taken.heap_bytes = heap_bytes() - heap;
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    struct stat state {};
    EXPECT_EQ(stat(file.path().c_str(), &state), 0);
    taken.counter_bytes += static_cast<uint64_t>(state.st_blocks) * 512;
  }
  // Connections that asked to be dialled are closed a little later.
  while (descriptors(true) > sockets + kNodes * kPeers * kSocketsOfLink) std::this_thread::yield();
  EXPECT_EQ(descriptors(true), sockets + kNodes * kPeers * kSocketsOfLink);
  taken.descriptors = descriptors(false);
  pollfd came{.fd = nobody.fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&came, 1, 0), 0) << "somebody has dialled a node that no query needs";
  return taken;
}

#if defined(FARO_SANITIZE_ADDRESS) || defined(FARO_SANITIZE_UNDEFINED) || \
    defined(FARO_SANITIZE_THREAD)
constexpr bool kSeesHeap = false;  // it is the sanitizer's
#else
constexpr bool kSeesHeap = true;
#endif

TEST(Roster, of_1000_nodes_of_which_a_query_uses_8_costs_what_8_cost) {
  Watchdog watchdog(std::chrono::seconds(50), [] { return std::string("a large roster"); });
  constexpr uint32_t kRoster = 1000;
  const Taken small = take(kNodes);
  const Taken large = take(kRoster);
  EXPECT_EQ(small.links, kNodes * kPeers);
  EXPECT_EQ(large.links, small.links);
  EXPECT_EQ(large.descriptors, small.descriptors);
  // Each number takes in each of the 8 sessions what is known of it, and no rings.
  constexpr uint64_t kOfNumber = 1024;
  constexpr uint64_t kOfNumberInFile = 320;
  if (kSeesHeap) {
    EXPECT_LT(large.heap_bytes, small.heap_bytes + kNodes * kRoster * kOfNumber);
  }
  EXPECT_LT(large.counter_bytes, small.counter_bytes + kNodes * kRoster * kOfNumberInFile);
  RecordProperty("heap_bytes_of_8", std::to_string(small.heap_bytes));
  RecordProperty("heap_bytes_of_1000", std::to_string(large.heap_bytes));
  RecordProperty("counter_bytes_of_8", std::to_string(small.counter_bytes));
  RecordProperty("counter_bytes_of_1000", std::to_string(large.counter_bytes));
}

}  // namespace
}  // namespace faro::test
