// Many channels: what is left of those that have come and gone, and what those take that are idle.
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <stdexcept>
#include <string>
#include <thread>

#include "lab/bench/channel_peers.h"
#include "support/endpoint_config.h"
#include "support/endpoint_pair.h"
#include "support/expect.h"
#include "support/temporary_folder.h"
#include "support/traces.h"

namespace faro::test {
namespace {

using Kind = ChannelEvent::Kind;

// The bytes of all files together.
uint64_t bytes_in(const std::string& folder) {
  uint64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) bytes += file.file_size();
  return bytes;
}

/// What this process has of each kind.
struct Belongings {
  size_t descriptors = entries_of("/proc/self/fd");
  size_t threads = entries_of("/proc/self/task");
  size_t shared_mappings = 0;
  size_t heap_bytes = mallinfo2().uordblks + mallinfo2().hblkhd;  // 0 with a sanitizer's allocator

  Belongings() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      shared_mappings += line.find("memfd:") != line.npos;
  }
};
std::ostream& operator<<(std::ostream& out, const Belongings& have) {
  return out << have.descriptors << " descriptors, " << have.threads << " threads, "
             << have.shared_mappings << " mappings, " << have.heap_bytes << " bytes of heap";
}

class ManyChannels : public testing::TestWithParam<std::string> {
 protected:
  // One after the other, each of which brings a frame. Every third one is drained.
  void come_and_go(EndpointSide& client, EndpointSide& server, int count) {
    for (int each = 0; each < count; ++each) {
      const ChannelId id = client.connect(server, {.send_bytes = 4096, .receive_bytes = 4096});
      client.expect(Kind::opened);
      const ChannelId at_server = server.expect(Kind::opened).channel;
      ASSERT_TRUE(client.send(id, "once"));
      server.expect_frame("once");
      if (each % 3 == 0) {
        drain(client, id, server, at_server);
        continue;
      }
      client.poller().close(id, Closing::now);
      EXPECT_EQ(client.expect_closed(id).code(), Code::closed);
      EXPECT_EQ(server.expect_closed(at_server).code(), Code::closed);
    }
  }
  static void drain(EndpointSide& client, ChannelId id, EndpointSide& server, ChannelId at_server) {
    client.poller().close(id, Closing::drain);
    std::thread serves([&] { EXPECT_TRUE(is_ok(server.expect_closed(at_server))); });
    EXPECT_TRUE(is_ok(client.expect_closed(id)));
    serves.join();
  }
  // What there is when the network threads have let the last links go: first the descriptors, then the memory.
  Belongings settled(size_t descriptors, size_t shared_mappings) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (;;) {
      const Belongings now;
      if (now.descriptors <= descriptors && now.shared_mappings <= shared_mappings) return now;
      if (std::chrono::steady_clock::now() > limit)
        throw std::runtime_error("descriptors or mappings are left");
      std::this_thread::yield();
    }
  }

  Config config_ = endpoint_config(GetParam());
};

INSTANTIATE_TEST_SUITE_P(over, ManyChannels, testing::Values("shm", "tcp", "tls"),
                         [](const auto& over) { return over.param; });

TEST_P(ManyChannels, that_come_and_go_leave_nothing_behind) {
  const TemporaryFolder folder;
  ASSERT_TRUE(is_ok(config_.set("counters.folder", folder.path())));
  EndpointSide server(config_), client(config_);
  const Belongings at_first;
  come_and_go(client, server, 1200);  // the causes of 1024 are kept
  // Transports have some of their own, once there was a link.
  const Belongings before = settled(at_first.descriptors + 8, at_first.shared_mappings + 8);
  const uint64_t counters = bytes_in(folder.path());
  come_and_go(client, server, GetParam() == "tls" ? 1'000 : 10'000);
  const Belongings after = settled(before.descriptors, before.shared_mappings);
  EXPECT_EQ(after.threads, before.threads);
  EXPECT_LE(after.heap_bytes, before.heap_bytes + 64 * 1024);
  EXPECT_GT(counters, 0u);
  EXPECT_EQ(bytes_in(folder.path()), counters) << "of counters";
  std::cout << before << "\n" << after << "\n";
}

TEST_P(ManyChannels, that_are_idle_take_their_rings_and_little_more) {
  const auto figures = bench::run_idle_peers({.idle_ms = 2000}, config_);
  ASSERT_TRUE(is_ok(figures));
  EXPECT_TRUE(figures->verified);
#ifdef NDEBUG  // sanitizers take more
  // OpenSSL keeps some 45 KiB for each of a link's two connections.
  EXPECT_LE(figures->memory_bytes, (GetParam() == "tls" ? 176u : 64u) << 20);
#endif
  std::cout << (figures->memory_bytes >> 10) << " KiB, " << 100 * figures->cpu_share << " % CPU\n";
}

}  // namespace
}  // namespace faro::test
