// How a device, its port and its GID are found by name, on a copy of what the kernel shows of them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/expect.h"
#include "support/temporary_folder.h"
#include "transport/verbs/device_address.h"

namespace faro::transport::verbs {
namespace {

class DeviceAddressTest : public testing::Test {
 protected:
  void SetUp() override {
    gid("roce0", 1, 0, "fe80:0000:0000:0000:5054:00ff:fe12:3456", "RoCE v2");
    gid("roce0", 1, 1, "0000:0000:0000:0000:0000:ffff:0a01:0001", "IB/RoCE v1");
    gid("roce0", 1, 3, "0000:0000:0000:0000:0000:ffff:0a01:0001", "RoCE v2");
    gid("roce0", 1, 5, "0000:0000:0000:0000:0000:ffff:c0a8:0102", "RoCE v2");
    gid("roce0", 2, 0, "0000:0000:0000:0000:0000:ffff:0a02:0001", "RoCE v2");
    gid("iwarp0", 1, 0, "0250:5612:3456:0000:0000:0000:0000:0000", "IB/RoCE v1");
  }

  void gid(const std::string& device, int port, int index, const char* value, const char* type) {
    const std::string folder =
        sysfs_.path() + "/class/infiniband/" + device + "/ports/" + std::to_string(port);
    std::filesystem::create_directories(folder + "/gids");
    std::filesystem::create_directories(folder + "/gid_attrs/types");
    std::ofstream(folder + "/gids/" + std::to_string(index)) << value << '\n';
    std::ofstream(folder + "/gid_attrs/types/" + std::to_string(index)) << type << '\n';
  }
  std::string find(const std::string& name, std::optional<uint32_t> index = std::nullopt) {
    const auto address = device_address(name, index, sysfs_.path());
    return address.ok() ? *address : std::string(address.status().message());
  }
  const test::TemporaryFolder sysfs_;
};

TEST_F(DeviceAddressTest, the_first_ipv4_gid_of_roce_v2_is_taken) {
  EXPECT_EQ(find("roce0"), "10.1.0.1");
  EXPECT_EQ(find("roce0:2"), "10.2.0.1");
}

TEST_F(DeviceAddressTest, an_index_chooses_another_gid) {
  EXPECT_EQ(find("roce0", 5), "192.168.1.2");
  EXPECT_EQ(find("roce0", 3), "10.1.0.1");
}

TEST_F(DeviceAddressTest, an_index_of_anything_else_is_an_error) {
  for (const uint32_t index : {0u, 1u, 2u, 4000u})
    test::expect_contains(find("roce0", index), "is no IPv4");
  test::expect_contains(find("lo", 0), "needs an RDMA device");
}

TEST_F(DeviceAddressTest, a_device_without_addresses_says_what_to_name_instead) {
  test::expect_contains(find("iwarp0"), "name the network interface instead");
}

TEST_F(DeviceAddressTest, a_network_interface_has_addresses_of_its_own) {
  EXPECT_EQ(find("lo"), "127.0.0.1");
}

TEST_F(DeviceAddressTest, what_does_not_exist_is_an_error) {
  test::expect_contains(find("roce0:7"), "has no port 7");
  test::expect_contains(find("nothing9"), "no RDMA device and no network interface");
}

TEST_F(DeviceAddressTest, only_mapped_gids_have_an_ipv4_address) {
  EXPECT_EQ(ipv4_of_gid("0000:0000:0000:0000:0000:ffff:0a01:0203"), "10.1.2.3");
  for (const char* gid : {"", "fe80::1", "nonsense", "0000:0000:0000:0000:0000:0000:0a01:0203"})
    EXPECT_EQ(ipv4_of_gid(gid), std::nullopt) << gid;
}

}  // namespace
}  // namespace faro::transport::verbs
