// What `faro doctor` says of the CPUs of network cards, in a folder as the kernel's.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "command/doctor_checks.h"
#include "support/expect.h"
#include "support/temporary_folder.h"

namespace faro::test {
namespace {

using command::Check;
using command::Health;

class DoctorCpus : public testing::Test {
 protected:
  void add_card(const std::string& name, const std::string& cpus) {
    const std::filesystem::path device =
        std::filesystem::path(sysfs_.path()) / "class" / name / "device";
    std::filesystem::create_directories(device);
    std::ofstream(device / "local_cpulist") << cpus << '\n';
  }
  std::vector<Check> check(const std::string& cpus) {
    Config config;
    EXPECT_TRUE(config.set("network.cpus", cpus).ok());
    return command::check_network_cpus(config, sysfs_.path());
  }

  TemporaryFolder sysfs_;
};

TEST_F(DoctorCpus, are_told_of_each_card) {
  EXPECT_TRUE(check("").empty()) << "a machine without any";
  add_card("net/eth1", "16-31,48-63");
  add_card("net/eth0", "0-15,32-47");
  add_card("infiniband/mlx5_0", "16-31,48-63");
  std::filesystem::create_directories(std::filesystem::path(sysfs_.path()) / "class/net/lo");
  const std::vector<Check> checks = check("");
  ASSERT_EQ(checks.size(), 3u);
  EXPECT_EQ(checks[0].name, "CPUs of mlx5_0");
  EXPECT_EQ(checks[0].found, "16-31,48-63; the network thread runs on any (network.cpus is empty)");
  EXPECT_EQ(checks[1].name, "CPUs of eth0");
  EXPECT_EQ(checks[2].name, "CPUs of eth1");
  for (const Check& each : checks) EXPECT_EQ(each.health, Health::ok);
}

TEST_F(DoctorCpus, that_the_network_thread_has_are_compared_with_those_of_a_card) {
  add_card("net/eth0", "0-15");
  add_card("infiniband/mlx5_0", "16-31");
  std::vector<Check> checks = check("16-19");
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[0].found, "16-31; the network thread runs there (network.cpus = 16-19)");
  EXPECT_EQ(checks[1].found, "0-15; the network thread runs elsewhere, on 16-19");
  for (const Check& each : checks)
    EXPECT_EQ(each.health, Health::ok) << "it is at one of the cards";
  checks = check("15-16");
  for (const Check& each : checks) EXPECT_EQ(each.health, Health::warning) << each.name;
  expect_contains(checks[0].remedy, "set network.cpus to some of 16-31");
}

}  // namespace
}  // namespace faro::test
