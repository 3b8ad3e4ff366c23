#include "transport/verbs/verbs_transport.h"

#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "transport/verbs/device_address.h"
#include "transport/verbs/verbs_setup.h"

namespace faro::transport::verbs {

VerbsTransport::VerbsTransport(const plugin::Request& request)
    : options_(request.settings),
      address_is_set_(!request.settings.verbs_address.empty() ||
                      !request.settings.verbs_device.empty()) {
  available_ = open(request);
}

// host:port, of the address that chooses the device.
Result<std::string> VerbsTransport::chosen_address(const plugin::Request& request) {
  const base::Settings& settings = request.settings;
  if (!settings.verbs_address.empty()) return settings.verbs_address + ":0";
  if (settings.verbs_device.empty()) return request.local_address;
  std::optional<uint32_t> gid_index;
  if (!settings.verbs_gid_index.empty())
    gid_index =
        static_cast<uint32_t>(std::stoul(settings.verbs_gid_index));  // checked with the settings
  Result<std::string> address = device_address(settings.verbs_device, gid_index);
  if (!address.ok()) return address;
  return *address + ":0";
}

Status VerbsTransport::open(const plugin::Request& request) {
  const base::Settings& settings = request.settings;
  FARO_ASSIGN_OR_RETURN(const auto address, chosen_address(request));
  FARO_ASSIGN_OR_RETURN(const auto addresses, tcp::resolve(address));
  FARO_ASSIGN_OR_RETURN(manager_, ConnectionManager::open(addresses.front()));
  Device& device = *manager_->device();
  if (request.unmap != nullptr) device.unmap_by(request.unmap);
  if (settings.verbs_notify == "immediate" && !device.has_immediates()) {
    return base::error(Code::transport_unavailable,
                       "verbs.notify = immediate, but {} is iWARP and has no WRITE WITH IMMEDIATE",
                       device.name());
  }
  ibv_port_attr port{};
  if (!device.is_iwarp() && ibv_query_port(device.context(), manager_->device_port(), &port) == 0) {
    FARO_RETURN_IF_ERROR(check_mtu(options_.connection.path, port.active_mtu, device.name()));
  }
  poller_ = std::make_shared<CompletionPoller>(manager_->device(), options_.busy_poll);
  manager_->set_on_device_lost([this](const Status& cause) { poller_->fail_all(cause); });
  request.log(LogLevel::info, fmt::format("verbs: {} port {} ({}), which owns {}", device.name(),
                                          manager_->device_port(),
                                          device.is_iwarp() ? "iWARP" : "InfiniBand or RoCE",
                                          tcp::to_string(addresses.front())));
  return {};
}

const Capabilities& VerbsTransport::capabilities() const { return kVerbsCapabilities; }

uint64_t VerbsTransport::memory_bytes(const ring::Layout& outgoing,
                                      const ring::Layout& incoming) const {
  const ConnectionOptions& queues = options_.connection;
  const auto pinned = [this](uint64_t bytes) {
    return verbs::pinned_bytes(bytes, options_.huge_pages);
  };
  return pinned(outgoing.region_bytes()) + pinned(incoming.region_bytes()) +
         pinned(PathMap::count(options_.sharing, outgoing, incoming) *
                LinkParts::message_bytes(queues.receives, queues.send_depth));
}

uint64_t VerbsTransport::state_bytes(const ring::Layout& outgoing,
                                     const ring::Layout& incoming) const {
  return VerbsLink::bytes(outgoing, incoming, PathMap::count(options_.sharing, outgoing, incoming));
}

std::unique_ptr<LinkSetup> VerbsTransport::begin(LinkContext& context) {
  return std::make_unique<VerbsSetup>(context, *manager_, poller_, deferred_, options_,
                                      address_is_set_);
}

std::unique_ptr<LinkMending> VerbsTransport::mend(LinkContext& context, DataLink& link) {
  return std::make_unique<VerbsMending>(context, *manager_, options_, address_is_set_,
                                        static_cast<VerbsLink&>(link));
}

}  // namespace faro::transport::verbs
