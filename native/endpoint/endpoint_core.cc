#include "endpoint/endpoint_core.h"

#include <new>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "endpoint/ring_sizes.h"
#include "links/limits.h"
#include "links/transports.h"

namespace faro::endpoint {
namespace {

Status check_ring(std::string_view name, uint32_t bytes) {
  if (bytes == 0 || is_ring(bytes)) return Status::Ok();
  return base::error(Code::invalid_argument,
                     "{} = {} is neither 0 nor a power of two from {} to {}", name, bytes,
                     kLeastRingBytes, kMostRingBytes);
}

Status check(std::string_view address, const ChannelSpec& spec) {
  FARO_RETURN_IF_ERROR(check_ring("send_bytes", spec.send_bytes));
  FARO_RETURN_IF_ERROR(check_ring("receive_bytes", spec.receive_bytes));
  if (spec.greeting.size() > wire::Hello::kGreetingLimit) {
    return base::error(Code::invalid_argument, "a greeting of {} bytes is longer than {}",
                       spec.greeting.size(), wire::Hello::kGreetingLimit);
  }
  if (address.rfind(':') == std::string_view::npos || address.rfind(':') == 0)
    return base::error(Code::invalid_argument, "'{}' is not host:port", address);
  return Status::Ok();
}

Status check(const EndpointSpec& spec) {
  constexpr uint32_t kPollerLimit = 64;
  constexpr uint32_t kChannelLimit = 65536;
  if (spec.name.size() > wire::Hello::kNameLimit) {
    return base::error(Code::invalid_argument, "the name of an endpoint has {} bytes, more than {}",
                       spec.name.size(), wire::Hello::kNameLimit);
  }
  if (spec.poller_count == 0 || spec.poller_count > kPollerLimit) {
    return base::error(Code::invalid_argument, "poller_count = {} is outside 1 … {}",
                       spec.poller_count, kPollerLimit);
  }
  if (spec.channel_limit == 0 || spec.channel_limit > kChannelLimit) {
    return base::error(Code::invalid_argument, "channel_limit = {} is outside 1 … {}",
                       spec.channel_limit, kChannelLimit);
  }
  constexpr size_t kAnswerLimit = 4096;
  if (spec.answer_to_others.size() > kAnswerLimit) {
    return base::error(Code::invalid_argument, "answer_to_others has {} bytes, more than {}",
                       spec.answer_to_others.size(), kAnswerLimit);
  }
  return Status::Ok();
}

}  // namespace

Result<std::unique_ptr<EndpointCore>> EndpointCore::open(const base::Settings& settings,
                                                         EndpointSpec spec,
                                                         std::unique_ptr<links::Network> network,
                                                         const MakeWaiter& make_waiter) {
  FARO_RETURN_IF_ERROR(check(spec));
  std::unique_ptr<EndpointCore> core(
      new EndpointCore(settings, std::move(spec), std::move(network)));
  FARO_RETURN_IF_ERROR(core->start(make_waiter));
  return core;
}

EndpointCore::EndpointCore(const base::Settings& settings, EndpointSpec spec,
                           std::unique_ptr<links::Network> network)
    : settings_(settings),
      spec_(std::move(spec)),
      network_(std::move(network)),
      ids_(spec_.channel_limit),
      // The destructor waits for its thread: nothing else has to keep this.
      ready_watch_(
          {.keep_alive = [] { return nullptr; },
           .closed_status = [] { return Status(Code::closed, "the endpoint was closed"); }}),
      counts_(settings_, *network_),
      links_(settings_, spec_, *network_, ids_, counts_, pollers_),
      thread_(links_, *network_, network_->local_address(), settings_.network_cpus) {}

// A link that is let go is destroyed with the table of links, and with nothing else.
EndpointCore::~EndpointCore() {
  close();
  ready_watch_.join();
  for (const auto& poller : pollers_) poller->let_go();
}

Status EndpointCore::start(const MakeWaiter& make_waiter) {
  const PollerWait::Limits limits{.yields = static_cast<uint32_t>(settings_.wait_yields),
                                  .sleep_ns = settings_.wait_sleep_ms * 1'000'000};
  if (network_->wants_thread()) {
    const Status fits = links::check_budget(settings_.memory_limit_bytes, links::machine_limits());
    if (!fits.ok()) base::log(LogLevel::warning, "endpoint '{}': {}", spec_.name, fits.message());
  }
  FARO_RETURN_IF_ERROR(counts_.open(spec_));
  for (uint32_t poller = 0; poller < spec_.poller_count; ++poller) {
    auto transports = std::make_unique<links::Transports>(*network_);
    FARO_RETURN_IF_ERROR(transports->make(settings_));
    FARO_ASSIGN_OR_RETURN(
        auto made, PollerCore::make(static_cast<ChannelNetwork&>(*this), std::move(transports),
                                    network_->reactor().clock(), make_waiter(), ready_watch_,
                                    limits, spec_.channel_limit));
    made->waiting().count_in(counts_.poller(poller));
    pollers_.push_back(std::move(made));
  }
  FARO_RETURN_IF_ERROR(links_.open());
  return thread_.start();
}

Result<ChannelId> EndpointCore::connect(PollerCore& poller, std::string_view address,
                                        const ChannelSpec& spec) {
  FARO_RETURN_IF_ERROR(check(address, spec));
  const auto id = ids_.take();
  if (!id) {
    return base::error(Code::limit_exceeded,
                       "there are {} channels, as many as channel_limit allows",
                       spec_.channel_limit);
  }
  network_->reactor().defer([this, id = *id, &poller, address = std::string(address), spec] {
    links_.connect(id, poller, address, spec);
  });
  return *id;
}

void EndpointCore::close(ChannelId channel, Closing closing) {
  network_->reactor().defer([this, channel, closing] { links_.close(channel, closing); });
}

void EndpointCore::end_taken(ChannelId channel) {
  network_->reactor().defer([this, channel] { links_.end_taken(channel); });
}

void EndpointCore::fail(ChannelId channel, const Status& cause) {
  network_->reactor().defer([this, channel, cause] { links_.fail(channel, cause); });
}

void EndpointCore::forget(ChannelId channel) {
  network_->reactor().defer([this, channel] { links_.forget(channel); });
  if (has_ended_.load(std::memory_order_seq_cst)) give_links_back();
}

// All that no poller uses any more. In place of the network thread, which has ended.
void EndpointCore::give_links_back() noexcept {
  const std::lock_guard lock(ended_mutex_);
  has_ended_.store(true, std::memory_order_seq_cst);
  try {
    links_.finish_closing();
  } catch (const std::bad_alloc&) {
    // The destructor does the rest.
  }
}

}  // namespace faro::endpoint
