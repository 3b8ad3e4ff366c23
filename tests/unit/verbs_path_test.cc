// The settings of a queue pair's path: what is refused, and what becomes of them.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/return_if_error.h"
#include "base/settings.h"
#include "faro/config.h"
#include "support/expect.h"
#include "transport/verbs/verbs_options.h"

namespace faro::transport::verbs {
namespace {

Result<base::Settings> resolve(const char* name, const char* value) {
  Config config;
  FARO_RETURN_IF_ERROR(config.set(name, std::string_view(value)));
  return base::Settings::resolve_without_nodes(config);
}

PathOptions path_of(const char* name, const char* value) {
  return VerbsOptions(resolve(name, value).value()).connection.path;
}

TEST(VerbsPathTest, an_mtu_is_a_size_that_packets_can_have) {
  for (const char* good : {"0", "256", "512", "1KiB", "2048", "4096"})
    EXPECT_TRUE(resolve("verbs.mtu", good).ok()) << good;
  for (const char* bad : {"1", "128", "1000", "1500", "8192"}) {
    SCOPED_TRACE(bad);
    test::expect_error(resolve("verbs.mtu", bad).status(), Code::config_invalid, {"verbs.mtu"});
  }
}

TEST(VerbsPathTest, there_are_sixteen_service_levels) {
  for (const char* good : {"", "0", "15"})
    EXPECT_TRUE(resolve("verbs.service_level", good).ok()) << good;
  for (const char* bad : {"16", "-1", "x", "3x"}) {
    SCOPED_TRACE(bad);
    test::expect_error(resolve("verbs.service_level", bad).status(), Code::config_invalid,
                       {"verbs.service_level"});
  }
}

TEST(VerbsPathTest, nodes_have_to_agree_on_the_mtu) {
  const auto row = std::ranges::find(Config::table(), "verbs.mtu", &SettingInfo::name);
  ASSERT_NE(row, Config::table().end());
  EXPECT_TRUE(row->cluster_wide);
}

TEST(VerbsPathTest, an_mtu_beyond_that_of_the_port_is_refused_with_both) {
  EXPECT_TRUE(check_mtu(path_of("verbs.mtu", "0"), IBV_MTU_256, "rxe1").ok());
  EXPECT_TRUE(check_mtu(path_of("verbs.mtu", "1024"), IBV_MTU_1024, "rxe1").ok());
  test::expect_error(check_mtu(path_of("verbs.mtu", "2048"), IBV_MTU_1024, "rxe1"),
                     Code::transport_unavailable, {"2048", "1024", "rxe1"});
}

TEST(VerbsPathTest, what_is_not_set_stays_as_rdma_cm_has_it) {
  ibv_qp_attr attributes{};
  attributes.path_mtu = IBV_MTU_4096;
  attributes.ah_attr.sl = 5;
  apply_path(path_of("verbs.min_rnr_timer", "9"), attributes);
  EXPECT_EQ(attributes.path_mtu, IBV_MTU_4096);
  EXPECT_EQ(attributes.ah_attr.sl, 5);
  EXPECT_EQ(attributes.min_rnr_timer, 9);
}

TEST(VerbsPathTest, what_is_set_replaces_what_rdma_cm_has) {
  ibv_qp_attr attributes{};
  attributes.path_mtu = IBV_MTU_4096;
  attributes.ah_attr.sl = 5;
  apply_path(path_of("verbs.service_level", "0"), attributes);
  EXPECT_EQ(attributes.ah_attr.sl, 0);
  apply_path(path_of("verbs.mtu", "256"), attributes);
  EXPECT_EQ(attributes.path_mtu, IBV_MTU_256);
  apply_path(path_of("verbs.mtu", "2048"), attributes);
  EXPECT_EQ(attributes.path_mtu, IBV_MTU_2048);
}

}  // namespace
}  // namespace faro::transport::verbs
