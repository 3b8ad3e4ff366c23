#include "session/cluster_membership.h"

#include <cassert>
#include <exception>
#include <utility>

#include "base/each.h"
#include "base/log.h"
#include "base/return_if_error.h"
#include "base/thread.h"

namespace faro::session {
namespace {

// The network thread's name in tools.
constexpr const char* kThreadName = "faro-net";

}  // namespace

Result<std::unique_ptr<Membership>> Membership::open(const base::Settings& settings,
                                                     std::unique_ptr<links::Network> network,
                                                     Observer& observer,
                                                     const Cancellation& cancellation) {
  auto membership = std::make_unique<ClusterMembership>(settings, std::move(network), observer);
  FARO_RETURN_IF_ERROR(membership->open(cancellation));
  return std::unique_ptr<Membership>(std::move(membership));
}

ClusterMembership::ClusterMembership(const base::Settings& settings,
                                     std::unique_ptr<links::Network> network, Observer& observer)
    : settings_(settings),
      network_(std::move(network)),
      topology_(settings_, network_->local_address()),
      transports_(*network_),
      resources_(settings_, topology_, *network_),
      links_(topology_.size(), static_cast<uint32_t>(settings_.ring_bytes)),
      roster_(settings_, observer, topology_, *network_, transports_, resources_, links_) {}

ClusterMembership::~ClusterMembership() { close(); }

Status ClusterMembership::open(const Cancellation& cancellation) {
  FARO_RETURN_IF_ERROR(roster_.open(cancellation));
  return network_->wants_thread() ? start_thread() : Status::Ok();
}

// The peers already know that this node is open, so if the thread cannot start it has to leave again.
Status ClusterMembership::start_thread() {
  auto thread = base::start_thread(kThreadName, [this] { run(); });
  if (!thread.ok()) {
    close();
    return thread.status();
  }
  thread_ = std::move(*thread);
  return Status::Ok();
}

void ClusterMembership::run() noexcept {
  network_thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  while (!roster_.closed()) go_on(base::kForever);
}

// Memory runs out, or an observer throws: the affected link ends (Link::Doing), time limits are checked again, and
// peers keep hearing from this node.
bool ClusterMembership::go_on(base::Nanoseconds until) noexcept {
  base::Each each;
  bool worked = true;
  each.run([&] {
    try {
      worked = roster_.round(until);
    } catch (const std::exception& error) {
      base::log(LogLevel::error, "{}: the network thread met an exception: {}",
                topology_.own().name, error.what());
    }
  });
  return worked;
}

bool ClusterMembership::do_work() {
  // A simulated network never waits outside of open and close. Instead, it learns when to be called again.
  return go_on(network_->wants_thread() ? clock().now_ns() : base::kForever);
}

void ClusterMembership::send(uint32_t node, std::span<const std::byte> message) {
  assert(node < topology_.size() && message.size() <= kMessageLimit);
  network_->reactor().defer(
      [this, node, bytes = std::vector<std::byte>(message.begin(), message.end())] {
        roster_.send(node, bytes);
      });
}

void ClusterMembership::fail_link(uint32_t node, std::shared_ptr<transport::DataLink> link,
                                  const Status& cause) {
  network_->reactor().defer(
      [this, node, link = std::move(link), cause] { roster_.fail_link(node, link.get(), cause); });
}

void ClusterMembership::close() {
  if (network_thread_.load(std::memory_order_relaxed) == std::this_thread::get_id()) {
    // Called from a callback: waiting for this thread would never end. The destructor waits instead.
    network_->reactor().defer([this] { roster_.begin_closing(); });
    return;
  }
  std::lock_guard lock(close_mutex_);
  if (closed_) return;
  if (thread_.joinable()) {
    network_->reactor().defer([this] { roster_.begin_closing(); });
    thread_.join();
  } else {
    roster_.begin_closing();
    while (!roster_.closed()) {
      const base::Nanoseconds before = clock().now_ns();
      const bool worked = go_on(roster_.closing_deadline());
      // The simulated network no longer runs: no time passes, so nothing can arrive.
      if (!worked && !network_->wants_thread() && clock().now_ns() == before)
        roster_.finish_closing();
    }
  }
  closed_ = true;
}

}  // namespace faro::session
