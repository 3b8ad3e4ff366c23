// RDMA in the contract suite, by the plug-in as a session loads it. The sides are at the addresses of
// TEST_ADDRESSES (support/test_network.h), or else both at the first one that an RDMA device owns.
#include <arpa/inet.h>
#include <ifaddrs.h>

#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "contract/connected_pair.h"
#include "contract/transport_pair.h"
#include "support/test_network.h"
#include "transport/plugin/plugin_loader.h"

namespace faro::test {
namespace {

using TransportResult = Result<std::unique_ptr<transport::Transport>>;

// In addition to the environment's settings; none of them may be wrong. The peer is told the address
// of the device, as the listener of the pair is elsewhere.
TransportResult make_at(const std::string& address, const std::vector<const char*>& more) {
  Config config;
  FARO_RETURN_IF_ERROR(config.load_environment());
  FARO_RETURN_IF_ERROR(config.set("cluster.nodes", address + ":0"));
  FARO_RETURN_IF_ERROR(config.set("verbs.address", std::string_view(address)));
  for (size_t i = 0; i + 1 < more.size(); i += 2)
    FARO_RETURN_IF_ERROR(config.set(more[i], std::string_view(more[i + 1])));
  const Result<base::Settings> settings = base::Settings::resolve(config);
  if (!settings.ok()) return settings.status();
  TransportResult loaded = transport::plugin::load_verbs(
      {*settings, settings->node_addresses[0], [](LogLevel, std::string_view) noexcept {}});
  if (!loaded.ok()) return loaded;
  FARO_RETURN_IF_ERROR((*loaded)->available());
  return loaded;
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return addresses;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN];
    const auto* address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
    if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof text) != nullptr)
      addresses.emplace_back(text);
  }
  return addresses;
}

TransportResult make(uint32_t side, const std::vector<const char*>& more) {
  if (names_addresses()) return make_at(node_host(side), more);
  TransportResult made = Status(Code::transport_unavailable, "this machine has no IPv4 address");
  for (const std::string& address : own_addresses()) {
    made = make_at(address, more);
    if (made.ok()) break;
  }
  return made;
}

TransportUnderTest verbs(const char* name, std::vector<const char*> settings) {
  return {.name = name,
          .open = [settings](const PairShape& shape) -> Result<std::unique_ptr<TransportPair>> {
            ConnectedPair::Parts parts;
            for (uint32_t side = 0; side < std::size(parts.transports); ++side) {
              TransportResult made = make(side, settings);
              if (!made.ok()) return made.status();
              parts.transports[side] = std::move(*made);
            }
            return ConnectedPair::open(shape, std::move(parts));
          },
          .unavailable_because =
              [settings] {
                const TransportResult made = make(0, settings);
                return made.ok() ? std::string() : std::string(made.status().message());
              },
          .many_frames = 20'000,  // the devices of tests are software
          .no_threads_because = {},
          .no_loss_because = {}};
}

[[maybe_unused]] const bool added[] = {
    add_transport(verbs("verbs_send", {"verbs.notify", "send"})),
    add_transport(verbs("verbs_immediate", {"verbs.notify", "immediate"})),
    add_transport(verbs("verbs_paper", {"verbs.order", "paper"})),
    // Both sides run out of credits and of places all the time.
    add_transport(verbs("verbs_least", {"verbs.notify", "send", "verbs.receives", "4",
                                        "verbs.send_queue", "32", "verbs.inline_bytes", "0"})),
    add_transport(
        verbs("verbs_least_immediate", {"verbs.notify", "immediate", "verbs.receives", "4",
                                        "verbs.send_queue", "32", "verbs.inline_bytes", "0"})),
};

}  // namespace
}  // namespace faro::test
