// RDMA in the contract suite, by the plug-in as a session loads it. The sides use the devices that own
// the addresses of TEST_ADDRESSES (support/test_network.h), or both that of FARO_VERBS_ADDRESS. A machine without a device
// has no such cases; tests/softroce and verbs_fake_pair.cc have them everywhere.
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/return_if_error.h"
#include "contract/connected_pair.h"
#include "contract/transport_pair.h"
#include "support/test_network.h"
#include "transport/plugin/plugin_loader.h"

namespace faro::test {
namespace {

using TransportResult = Result<std::unique_ptr<transport::Transport>>;

// In addition to the environment's settings; none of them may be wrong.
TransportResult make(uint32_t side, const std::vector<const char*>& more) {
  Config config;
  FARO_RETURN_IF_ERROR(config.load_environment());
  if (names_addresses()) {
    FARO_RETURN_IF_ERROR(config.set("verbs.address", std::string_view(node_host(side))));
  }
  for (size_t i = 0; i + 1 < more.size(); i += 2)
    FARO_RETURN_IF_ERROR(config.set(more[i], std::string_view(more[i + 1])));
  FARO_ASSIGN_OR_RETURN(const base::Settings settings,
                        base::Settings::resolve_without_nodes(config));
  TransportResult loaded = transport::plugin::load_verbs(
      {settings, "127.0.0.1:0", [](LogLevel, std::string_view) noexcept {}});
  if (!loaded.ok()) return loaded;
  FARO_RETURN_IF_ERROR((*loaded)->available());
  return loaded;
}

bool has_device() {
  std::error_code none;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", none);
  return devices != std::filesystem::directory_iterator();
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
          .no_nodes_because = std::string_view(settings[1]) == "lane" ? kNoLanesToNodes : "",
          .no_loss_because = {}};
}

[[maybe_unused]] const bool verbs_added = [] {
  if (!has_device()) return false;
  add_transport(verbs("verbs_send", {"verbs.notify", "send"}));
  add_transport(verbs("verbs_immediate", {"verbs.notify", "immediate"}));
  add_transport(verbs("verbs_paper", {"verbs.order", "paper"}));
  add_transport(verbs("verbs_worker", {"verbs.queue_pairs", "worker"}));
  add_transport(verbs("verbs_lane", {"verbs.queue_pairs", "lane", "verbs.notify", "send"}));
  // Both sides run out of credits and of places all the time.
  add_transport(verbs("verbs_least", {"verbs.notify", "send", "verbs.receives", "4",
                                      "verbs.send_queue", "32", "verbs.inline_bytes", "0"}));
  return add_transport(
      verbs("verbs_least_immediate", {"verbs.notify", "immediate", "verbs.receives", "4",
                                      "verbs.send_queue", "32", "verbs.inline_bytes", "0"}));
}();

}  // namespace
}  // namespace faro::test
