// Finds an address for the name of a device or interface. rdma_cm chooses device, port and GID by the address that a
// node binds to, so a node needs an address of the device that it wants.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "faro/status.h"

namespace faro::transport::verbs {

/// The first IPv4 address of
///   a RoCE device, "mlx5_0" or "mlx5_0:2" (its second port): among its RoCEv2 GIDs, or that of the
///     GID `gid_index`, which has to be one;
///   a network interface, "eth1": the way to name a device of iWARP or InfiniBand.
/// `sysfs`: where /sys is. Threads: any. Blocks: for a few small files.
/// Errors: transport_unavailable, with what was found instead.
Result<std::string> device_address(const std::string& name, std::optional<uint32_t> gid_index,
                                   const std::string& sysfs = "/sys");

/// The IPv4 address in a GID as sysfs writes it, "0000:…:ffff:0a01:0001"; nothing if it has none.
std::optional<std::string> ipv4_of_gid(const std::string& gid);

}  // namespace faro::transport::verbs
