// Settings that follow another one as long as nobody sets them, which of them are looked at, and which variables are none.
#include "faro/config.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu_list.h"
#include "base/settings.h"
#include "base/variable_names.h"
#include "support/expect.h"
#include "support/log_lines.h"

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

TEST(Settings, rings_of_which_a_node_has_few_are_twice_as_large_unless_ring_bytes_is_set) {
  const auto large_ring_bytes = [](const Config& config) {
    const auto settings = base::Settings::resolve(config);
    EXPECT_TRUE(settings.ok()) << settings.status().to_string();
    return settings.ok() ? settings->large_ring_bytes : 0;
  };
  Config config;
  ASSERT_TRUE(config.set("cluster.nodes", "127.0.0.1:0").ok());
  EXPECT_EQ(large_ring_bytes(config), 65536u);
  EXPECT_EQ(large_ring_bytes(config_with_ring("32 KiB")), 32768u);
  EXPECT_EQ(large_ring_bytes(config_with_ring("4 KiB")), 4096u);
}

TEST(Settings, where_lanes_end_is_refused_by_name_where_it_does_not_go) {
  const auto refused = [](std::initializer_list<std::pair<const char*, const char*>> settings) {
    Config config;
    EXPECT_TRUE(config.set("cluster.nodes", "127.0.0.1:0").ok());
    for (const auto& [name, value] : settings)
      EXPECT_TRUE(config.set(name, std::string_view(value)).ok()) << name;
    return std::string(config.validate().message());
  };
  EXPECT_EQ(refused({}), "");
  EXPECT_EQ(refused({{"lane.ends", "node"}, {"verbs.queue_pairs", "worker"}}), "");
  EXPECT_EQ(refused({{"lane.ends", "both"}}), "");
  EXPECT_EQ(refused({{"lane.ends", "anywhere"}}),
            "lane.ends = anywhere is none of workers, node, both");
  EXPECT_EQ(refused({{"lane.ends", "node"}, {"verbs.queue_pairs", "lane"}}),
            "verbs.queue_pairs = lane with lane.ends = node: a lane to a node has no lane in the "
            "opposite direction; choose link or worker");
  // Streams of 16 workers and as many shuffles each have 65536 numbers.
  EXPECT_EQ(refused({{"lane.ends", "node"}, {"cluster.workers", "16"}, {"shuffle.limit", "4096"}}),
            "");
  EXPECT_EQ(
      refused({{"lane.ends", "node"}, {"cluster.workers", "17"}, {"shuffle.limit", "4096"}}),
      "shuffle.limit = 4096 with lane.ends = node: it is at most 3855 for cluster.workers = 17");
  EXPECT_EQ(refused({{"cluster.workers", "17"}, {"shuffle.limit", "4096"}}), "");
}

TEST(Settings, cpus_of_the_network_thread_are_a_list) {
  const auto refused = [](const char* cpus) {
    Config config;
    EXPECT_TRUE(config.set("cluster.nodes", "127.0.0.1:0").ok());
    EXPECT_TRUE(config.set("network.cpus", std::string_view(cpus)).ok());
    return std::string(config.validate().message());
  };
  for (const char* const good : {"", "0", "0-3,8", "8,0-3", "1023"}) EXPECT_EQ(refused(good), "");
  for (const char* const bad :
       {"3-1", "1,", ",1", "1-", "-1", "one", "0-3 8", "1024", "0-1024", "4294967296"}) {
    EXPECT_EQ(refused(bad), "network.cpus = " + std::string(bad) +
                                " is no list of CPUs, such as 0-3,8, from 0 to 1023");
  }
  EXPECT_EQ(base::cpu_list_text(*base::parse_cpu_list("8,0-3,2,10,9")), "0-3,8-10");
  EXPECT_EQ(base::cpu_list_text(*base::parse_cpu_list("")), "");
}

TEST(Settings, a_schedule_that_cannot_be_is_refused_by_name) {
  const auto refused = [](const char* name, const char* value, const char* transport = "auto") {
    Config config = config_with_ring("32 KiB");
    EXPECT_TRUE(config.set("transport", transport).ok());
    EXPECT_TRUE(config.set("network.schedule", "phases").ok());
    const Status set = config.set(name, value);
    return std::string((set.ok() ? config.validate() : set).message());
  };
  EXPECT_EQ(refused("network.turn_ms", "10"), "");
  EXPECT_EQ(refused("network.schedule", "grants"),
            "network.schedule = grants is none of off, phases");
  EXPECT_EQ(refused("network.turn_bytes", "0"),
            "network.turn_bytes = 0 is outside 1 … 1073741824 bytes");
  EXPECT_EQ(refused("network.turn_ms", "0"), "network.turn_ms = 0 is outside 1 … 60000 ms");
  EXPECT_EQ(refused("network.schedule_from", "0"),
            "network.schedule_from = 0 is outside 1 … 1073741824 bytes");
  EXPECT_EQ(refused("network.schedule_from", "5 MiB"),
            "network.schedule_from = 5242880 is more than a turn, network.turn_bytes = 4194304");
  EXPECT_EQ(refused("network.turn_ms", "10", "verbs"),
            "network.schedule = phases with transport = verbs: only tcp has turns. Choose "
            "transport tcp or auto, or network.schedule = off");
}

TEST(Settings, turns_are_for_a_quarter_of_their_bytes_or_more_unless_that_is_set) {
  constexpr const char* kFrom = "network.schedule_from";
  Config config = config_with_ring("32 KiB");
  EXPECT_EQ(config.get_number(kFrom), uint64_t{1} << 20);
  EXPECT_EQ(config.source(kFrom), "default");
  ASSERT_TRUE(config.set("network.turn_bytes", "64 KiB").ok());
  EXPECT_EQ(config.get_number(kFrom), uint64_t{16} << 10);
  EXPECT_EQ(config.source(kFrom), "default (a quarter of network.turn_bytes)");
  ASSERT_TRUE(config.set("network.turn_bytes", "3").ok());
  EXPECT_EQ(config.get_number(kFrom), 1u);
  ASSERT_TRUE(config.set(kFrom, "2").ok());
  ASSERT_TRUE(config.set("network.turn_bytes", "64 KiB").ok());
  EXPECT_EQ(config.get_number(kFrom), 2u);
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

TEST(Settings, a_device_sends_again_only_as_often_as_the_liveness_limit_allows_unless_that_is_set) {
  constexpr const char* kRetries = "verbs.retry_count";
  Config config = config_with_ring("32 KiB");
  ASSERT_TRUE(config.set("liveness.timeout_ms", "2000").ok());
  EXPECT_EQ(config.get_number(kRetries), 7u);
  EXPECT_EQ(config.source(kRetries), "default");
  // 268 ms, seven times.
  ASSERT_TRUE(config.set("verbs.timeout", "16").ok());
  EXPECT_EQ(config.get_number(kRetries), 6u);
  EXPECT_EQ(config.get(kRetries), "6");
  EXPECT_EQ(config.source(kRetries), "default (within liveness.timeout_ms)");
  ASSERT_TRUE(config.set("verbs.timeout", "20").ok()) << "4.3 s";
  EXPECT_EQ(config.get_number(kRetries), 0u);
  ASSERT_TRUE(config.set("verbs.timeout", "0").ok()) << "that of rdma_cm";
  EXPECT_EQ(config.get_number(kRetries), 7u);
  ASSERT_TRUE(config.set(kRetries, "5", "a file").ok());
  ASSERT_TRUE(config.set("verbs.timeout", "20").ok());
  EXPECT_EQ(config.get_number(kRetries), 5u);
  EXPECT_EQ(config.source(kRetries), "a file");
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

// ------------------------------------------------------------------------------- the environment

/// Variables of the environment for as long as it lives.
class Variables {
 public:
  explicit Variables(std::vector<std::string> names) : names_(std::move(names)) {
    for (const std::string& name : names_) setenv(name.c_str(), "10.0.0.5", 1);
  }
  ~Variables() {
    for (const std::string& name : names_) unsetenv(name.c_str());
  }

 private:
  const std::vector<std::string> names_;
};

const std::vector<std::string> kOfServices = {"FARO_SERVICE_HOST",
                                              "FARO_SERVICE_PORT",
                                              "FARO_SERVICE_PORT_HTTP",
                                              "FARO_SERVICE_PORT_DATA_2",
                                              "FARO_PORT",
                                              "FARO_PORT_7000_TCP",
                                              "FARO_PORT_7000_TCP_ADDR",
                                              "FARO_PORT_7000_TCP_PORT",
                                              "FARO_PORT_7000_TCP_PROTO",
                                              "FARO_PORT_53_UDP_ADDR",
                                              "FARO_PORT_9_SCTP",
                                              "FARO_RING_SERVICE_HOST",
                                              "FARO_RING_SERVICE_PORT_RING_BYTES",
                                              "FARO_TCP_PORT",
                                              "FARO_SECURITY_PORT_7000_TCP_PROTO",
                                              "FARO_TRANSPORT_SERVICE_PORT",
                                              "FARO_WORKERS_2_PORT_80_TCP"};

TEST(Environment, passes_over_what_container_runtimes_make_for_a_service) {
  const Variables variables(kOfServices);
  const test::LogLines log;
  Config config;
  EXPECT_TRUE(test::is_ok(config.load_environment()));
  EXPECT_EQ(log.warnings(), 0u);
  for (const SettingInfo& row : Config::table())
    EXPECT_NE(config.source(row.name), "environment") << row.name;
}

TEST(Environment, refuses_what_begins_with_a_section_of_the_settings_and_is_none_of_them) {
  for (const char* name :
       {"FARO_SECURITY_TSL", "FARO_SECURITY", "FARO_SECURITY_", "FARO_RING_BYTE",
        "FARO_RING_BYTES_", "FARO_CLUSTER_NODE_S", "FARO_TRANSPORT_", "FARO_TRANSPORT_TCP",
        "FARO_VERBS_PORT_7_TCP_MTU", "FARO_RING_SERVICE_PORT_", "FARO_RING_PORT_TCP",
        "FARO_RING_PORT_7000", "FARO_RING_PORTS", "FARO_RING_PORT_7000_",
        "FARO_RING_PORT_7000_TCP_HOST", "FARO_RING_SERVICE_HOSTS"}) {
    const Variables variables({name});
    Config config;
    test::expect_error(config.load_environment(), Code::config_invalid, {name, "is no setting"});
  }
}

TEST(Environment, warns_of_anything_else_and_passes_over_it) {
  const Variables variables({"FARO_HOME", "FARO_VERSION", "FARO_RINGS", "FARO_SECRETS"});
  const test::LogLines log;
  Config config;
  EXPECT_TRUE(test::is_ok(config.load_environment()));
  EXPECT_EQ(log.warnings(), 4u);
  EXPECT_EQ(log.count("environment variable FARO_HOME is no setting and is passed over"), 1u);
}

TEST(Environment, that_is_refused_has_changed_nothing) {
  const Variables variables({"FARO_CLUSTER_ID", "FARO_RING_BYTE"});
  Config config;
  EXPECT_FALSE(config.load_environment().ok());
  EXPECT_EQ(config.source("cluster.id"), "default");
}

TEST(Environment, has_no_setting_of_a_name_that_container_runtimes_make) {
  for (const std::string& name : kOfServices) EXPECT_TRUE(base::is_service_variable(name)) << name;
  for (const SettingInfo& row : Config::table())
    EXPECT_FALSE(base::is_service_variable(row.environment)) << row.name;
  for (const char* other : {"FARO_LOG_LEVEL", "FARO_CONFIG", "FARO_SECRET", "FAROS_PORT", "FARO"})
    EXPECT_FALSE(base::is_service_variable(other)) << other;
}

}  // namespace
}  // namespace faro
