// faro::Endpoint and Poller, over EndpointCore.
#include "faro/endpoint.h"

#include <new>
#include <utility>

#include "base/error.h"
#include "base/return_if_error.h"
#include "base/settings.h"
#include "endpoint/endpoint_core.h"
#include "endpoint/ring_sizes.h"
#include "links/socket_network.h"
#include "links/transports.h"
#include "ring/futex_waiter.h"

namespace faro {
namespace {

// Where it listens is where peers reach it.
std::string address_of(const base::Settings& settings) {
  return settings.listen.empty() ? "127.0.0.1:0" : settings.listen;
}

}  // namespace

Endpoint::Endpoint(std::unique_ptr<endpoint::EndpointCore> core) : core_(std::move(core)) {
  for (uint32_t index = 0; index < core_->poller_count(); ++index)
    pollers_.push_back(std::unique_ptr<Poller>(new Poller(core_->poller(index))));
}

Endpoint::~Endpoint() {
  close();
  if (core_->forked()) (void)core_.release();
}

Result<std::unique_ptr<Endpoint>> Endpoint::open(const Config& config, EndpointSpec spec) {
  try {
    FARO_ASSIGN_OR_RETURN(const auto settings, base::Settings::resolve_without_nodes(config));
    FARO_ASSIGN_OR_RETURN(auto network,
                          links::SocketNetwork::create(settings, address_of(settings)));
    network->answer_others(spec.answer_to_others);
    FARO_ASSIGN_OR_RETURN(
        auto core, endpoint::EndpointCore::open(settings, std::move(spec), std::move(network), [] {
          return std::make_unique<ring::FutexWaiter>();
        }));
    return std::unique_ptr<Endpoint>(new Endpoint(std::move(core)));
  } catch (const std::bad_alloc&) {
    return Status(Code::resource_limit, "the process has no memory left to open an endpoint");
  }
}

Result<std::vector<uint64_t>> Endpoint::channel_memory(const Config& config,
                                                       std::span<const ChannelSpec> channels) {
  try {
    for (const ChannelSpec& each : channels) {
      if (!endpoint::is_ring(each.send_bytes) || !endpoint::is_ring(each.receive_bytes)) {
        return base::error(Code::invalid_argument,
                           "rings of {} and {} bytes: both have to be powers of two from {} to {}",
                           each.send_bytes, each.receive_bytes, endpoint::kLeastRingBytes,
                           endpoint::kMostRingBytes);
      }
    }
    FARO_ASSIGN_OR_RETURN(const auto settings, base::Settings::resolve_without_nodes(config));
    FARO_ASSIGN_OR_RETURN(
        const auto transports,
        links::make_transports(settings, {.local_address = address_of(settings)}));
    std::vector<transport::Transport*> usable;
    for (const auto& each : transports) usable.push_back(each.get());
    std::vector<uint64_t> memory;
    for (const ChannelSpec& each : channels)
      memory.push_back(
          endpoint::most_memory(usable, settings, each.send_bytes, each.receive_bytes) +
          each.greeting.size());
    return memory;
  } catch (const std::bad_alloc&) {
    return Status(Code::resource_limit, "the process has no memory left to open transports");
  }
}

const std::string& Endpoint::address() const noexcept { return core_->address(); }
uint32_t Endpoint::poller_count() const noexcept { return core_->poller_count(); }
Poller& Endpoint::poller(uint32_t index) noexcept { return *pollers_[index]; }
Result<EndpointMetrics> Endpoint::metrics() const {
  try {
    return core_->metrics();
  } catch (const std::bad_alloc&) {
    return Status(Code::resource_limit, "the process has no memory left to read the counters");
  }
}
void Endpoint::close() noexcept { core_->close(); }

Result<ChannelId> Poller::connect(std::string_view address, const ChannelSpec& spec) {
  return core_->connect(address, spec);
}
std::span<ChannelEvent> Poller::poll(std::span<ChannelEvent> events) noexcept {
  return core_->poll(events);
}
void Poller::release(ChannelId channel, uint32_t token) noexcept { core_->release(channel, token); }
Outcome Poller::claim(ChannelId channel, size_t least, size_t most,
                      std::span<std::byte>& space) noexcept {
  return core_->claim(channel, least, most, space);
}
Outcome Poller::commit(ChannelId channel, size_t bytes, Notice notice) noexcept {
  return core_->commit(channel, bytes, notice);
}
void Poller::post() noexcept { core_->post(); }
Outcome Poller::wait(Wait limit, WakeFor reasons) noexcept { return core_->wait(limit, reasons); }
void Poller::wake() noexcept { core_->waiting().wake(); }
Result<int> Poller::descriptor() { return core_->waiting().descriptor(); }
Outcome Poller::arm(WakeFor reasons) noexcept { return core_->arm(reasons); }
bool Poller::try_enter() noexcept { return core_->waiting().try_enter(); }
void Poller::leave() noexcept { core_->waiting().leave(); }
void Poller::close(ChannelId channel, Closing closing) noexcept { core_->close(channel, closing); }
bool Poller::is_open(ChannelId channel) const noexcept { return core_->is_open(channel); }
Result<ChannelInfo> Poller::info(ChannelId channel) const { return core_->info(channel); }
Result<ChannelRings> Poller::rings(ChannelId channel) const { return core_->rings(channel); }
Status Poller::status(ChannelId channel) const { return core_->status(channel); }

}  // namespace faro
