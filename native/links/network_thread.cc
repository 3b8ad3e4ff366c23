#include "links/network_thread.h"

#include <exception>
#include <utility>

#include "base/cpu_list.h"
#include "base/each.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"

namespace faro::links {
namespace {

// The thread's name in tools.
constexpr const char* kThreadName = "faro-net";

}  // namespace

// Peers may already know that this node is open, so if the thread cannot start it has to leave again.
Status NetworkThread::start() {
  if (!network_.wants_thread()) return Status::Ok();
  auto thread = base::start_thread(kThreadName, [this] { run(); });
  if (!thread.ok()) {
    close();
    return thread.status();
  }
  thread_ = std::move(*thread);
  Status pinned = pin();
  if (!pinned.ok()) close();
  return pinned;
}

Status NetworkThread::pin() {
  if (cpus_.empty()) return Status::Ok();
  const std::vector<uint32_t> cpus = base::parse_cpu_list(cpus_).value_or(std::vector<uint32_t>{});
  const Status pinned = base::pin_thread(thread_, cpus);
  if (pinned.ok()) return pinned;
  return base::error(Code::config_invalid, "network.cpus = {}: {}", cpus_, pinned.message());
}

void NetworkThread::run() noexcept {
  id_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  while (!rounds_.closed()) go_on(base::kForever);
}

// Memory runs out, or an observer throws: the affected link ends (Link::Doing), time limits are checked again, and
// peers keep hearing from this node.
bool NetworkThread::go_on(base::Nanoseconds until) noexcept {
  base::Each each;
  bool worked = true;
  each.run([&] {
    try {
      worked = rounds_.round(until);
    } catch (const std::exception& error) {
      base::log(LogLevel::error, "{}: the network thread met an exception: {}", name_,
                error.what());
    }
  });
  return worked;
}

bool NetworkThread::do_work() {
  // A simulated network never waits outside of open and close. Instead, it learns when to be called again.
  return go_on(network_.wants_thread() ? network_.reactor().clock().now_ns() : base::kForever);
}

void NetworkThread::close() {
  if (id_.load(std::memory_order_relaxed) == std::this_thread::get_id()) {
    // Called from a callback: waiting for this thread would never end. The destructor waits instead.
    network_.reactor().defer([this] { rounds_.begin_closing(); });
    return;
  }
  const std::lock_guard lock(close_mutex_);
  if (closed_) return;
  if (thread_.joinable()) {
    network_.reactor().defer([this] { rounds_.begin_closing(); });
    thread_.join();
  } else {
    const base::Clock& clock = network_.reactor().clock();
    rounds_.begin_closing();
    while (!rounds_.closed()) {
      const base::Nanoseconds before = clock.now_ns();
      const bool worked = go_on(rounds_.closing_deadline());
      // The simulated network no longer runs: no time passes, so nothing can arrive.
      if (!worked && !network_.wants_thread() && clock.now_ns() == before) rounds_.finish_closing();
    }
  }
  closed_ = true;
}

}  // namespace faro::links
