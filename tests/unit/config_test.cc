// Settings that follow another one as long as nobody sets them, and which of them are looked at.
#include "faro/config.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/settings.h"

namespace faro {
namespace {

constexpr const char* kThreshold = "transfer.threshold_bytes";

Config config_with_ring(const char* ring_bytes) {
  Config config;
  EXPECT_TRUE(config.set("cluster.nodes", "127.0.0.1:0").ok());
  EXPECT_TRUE(config.set("ring.bytes", ring_bytes).ok());
  return config;
}

TEST(Settings, small_rings_alone_are_valid_and_the_threshold_says_that_it_follows_them) {
  const Config config = config_with_ring("4 KiB");
  EXPECT_EQ(config.validate().to_string(), "ok");
  EXPECT_EQ(config.get_number(kThreshold), 2048u);
  EXPECT_EQ(config.get(kThreshold), "2048");
  EXPECT_EQ(config.source(kThreshold), "default (half of ring.bytes)");
}

TEST(Settings, the_threshold_is_the_usual_one_when_the_rings_have_room_for_it) {
  Config config = config_with_ring("4 KiB");
  ASSERT_TRUE(config.set("ring.bytes", "1 MiB").ok());
  EXPECT_EQ(config.get_number(kThreshold), 16384u);
  EXPECT_EQ(config.source(kThreshold), "default");
}

TEST(Settings, a_threshold_that_was_set_does_not_follow_and_is_refused_by_name_and_limit) {
  for (const bool is_first : {false, true}) {
    Config config = config_with_ring("32 KiB");
    if (!is_first) config = config_with_ring("4 KiB");
    ASSERT_TRUE(config.set(kThreshold, "4 KiB", "a file").ok());
    ASSERT_TRUE(config.set("ring.bytes", "4 KiB").ok());
    EXPECT_EQ(config.get_number(kThreshold), 4096u);
    EXPECT_EQ(config.source(kThreshold), "a file");
    EXPECT_EQ(config.validate().message(),
              "transfer.threshold_bytes = 4096 is more than half of ring.bytes = 4096");
  }
}

// 4.096 us * 2^timeout, and as often again as verbs.retry_count says.
TEST(Settings, a_device_gives_up_within_the_liveness_limit_unless_its_timeout_is_set) {
  constexpr const char* kTimeout = "verbs.timeout";
  Config config = config_with_ring("32 KiB");
  EXPECT_EQ(config.get_number(kTimeout), 18u);
  EXPECT_EQ(config.source(kTimeout), "default");
  ASSERT_TRUE(config.set("liveness.timeout_ms", "2000").ok());
  EXPECT_EQ(config.get_number(kTimeout), 15u);
  EXPECT_EQ(config.get(kTimeout), "15");
  EXPECT_EQ(config.source(kTimeout), "default (within liveness.timeout_ms)");
  ASSERT_TRUE(config.set("verbs.retry_count", "0").ok());
  EXPECT_EQ(config.get_number(kTimeout), 18u);
  ASSERT_TRUE(config.set("liveness.timeout_ms", "86400000").ok());
  EXPECT_EQ(config.get_number(kTimeout), 31u);
  ASSERT_TRUE(config.set("liveness.timeout_ms", "100").ok());
  ASSERT_TRUE(config.set("verbs.retry_count", "7").ok());
  EXPECT_EQ(config.get_number(kTimeout), 11u);
  ASSERT_TRUE(config.set(kTimeout, "18", "a file").ok());
  ASSERT_TRUE(config.set("liveness.timeout_ms", "200").ok());
  EXPECT_EQ(config.get_number(kTimeout), 18u);
  EXPECT_EQ(config.source(kTimeout), "a file");
}

TEST(Settings, of_what_is_no_node_of_a_cluster_are_valid_whatever_is_said_of_its_nodes) {
  Config config;
  EXPECT_TRUE(base::Settings::resolve_without_nodes(config).ok());
  EXPECT_FALSE(base::Settings::resolve(config).ok());
  for (const auto& [name, value] : {std::pair{"cluster.nodes", "no address"},
                                    {"cluster.node", "7"},
                                    {"cluster.node_limit", "2"},
                                    {"cluster.workers", "1,2,3"}})
    ASSERT_TRUE(config.set(name, value).ok());
  const auto settings = base::Settings::resolve_without_nodes(config);
  ASSERT_TRUE(settings.ok()) << settings.status().message();
  EXPECT_TRUE(settings->node_addresses.empty());
  EXPECT_EQ(settings->node_count(), 0u);
  ASSERT_TRUE(config.set("cluster.listen", "nowhere").ok());
  EXPECT_EQ(base::Settings::resolve_without_nodes(config).status().message(),
            "cluster.listen: 'nowhere' is not host:port");
}

}  // namespace
}  // namespace faro
