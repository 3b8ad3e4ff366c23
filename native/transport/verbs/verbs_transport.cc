#include "transport/verbs/verbs_transport.h"

#include <fmt/format.h>

#include <utility>

#include "transport/verbs/verbs_setup.h"

namespace faro::transport::verbs {

VerbsTransport::VerbsTransport(const plugin::Request& request)
    : options_(request.settings), address_is_set_(!request.settings.verbs_address.empty()) {
  available_ = open(request);
}

Status VerbsTransport::open(const plugin::Request& request) {
  const base::Settings& settings = request.settings;
  // An address without a port; one is needed to be resolved.
  const std::string address =
      address_is_set_ ? settings.verbs_address + ":0" : request.local_address;
  const auto addresses = tcp::resolve(address);
  if (!addresses.ok()) return addresses.status();
  auto manager = ConnectionManager::open(addresses->front());
  if (!manager.ok()) return manager.status();
  manager_ = std::move(*manager);
  const Device& device = *manager_->device();
  capabilities_.write_with_immediate = device.has_immediates();
  if (settings.verbs_notify == "immediate" && !device.has_immediates()) {
    return {Code::transport_unavailable,
            fmt::format("verbs.notify = immediate, but {} is iWARP and has no WRITE WITH IMMEDIATE",
                        device.name())};
  }
  poller_ = std::make_shared<CompletionPoller>(manager_->device(), options_.busy_poll);
  request.log(LogLevel::info, fmt::format("verbs: {} port {} ({}), which owns {}", device.name(),
                                          manager_->device_port(),
                                          device.is_iwarp() ? "iWARP" : "InfiniBand or RoCE",
                                          tcp::to_string(addresses->front())));
  return {};
}

uint64_t VerbsTransport::memory_bytes(const ring::Layout& outgoing,
                                      const ring::Layout& incoming) const {
  const ConnectionOptions& queues = options_.connection;
  const auto pinned = [this](uint64_t bytes) {
    return verbs::pinned_bytes(bytes, options_.huge_pages);
  };
  return pinned(outgoing.region_bytes()) + pinned(incoming.region_bytes()) +
         pinned(LinkParts::message_bytes(queues.receives, queues.send_depth));
}

std::unique_ptr<LinkSetup> VerbsTransport::begin(LinkContext& context) {
  return std::make_unique<VerbsSetup>(context, *manager_, poller_, deferred_, options_, address_is_set_);
}

}  // namespace faro::transport::verbs
