#include "session/metrics_endpoint.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"
#include "counters/prometheus_text.h"
#include "links/listener.h"

namespace faro::session {
namespace {

// Prometheus scrapes from one place, now and then.
constexpr size_t kConnectionLimit = 8;
constexpr base::Nanoseconds kConnectionTime = 5'000'000'000;
constexpr base::Nanoseconds kAcceptPause = 100'000'000;

// At most 15 characters.
constexpr const char* kThreadName = "faro-metrics";

base::Nanoseconds now() { return base::SystemClock::instance().now_ns(); }

}  // namespace

Result<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::start(
    const std::string& address, std::span<const std::byte> counters) {
  Result<links::Listener> listener = links::Listener::bind(address);
  if (!listener.ok()) {
    return base::error(listener.status().code(), "metrics.listen: {}", listener.status().message());
  }
  const std::string bound = listener->address();
  if (!bound.starts_with("127.") && !bound.starts_with("[::1]:")) {
    return base::error(Code::config_invalid,
                       "metrics.listen = {}: only a loopback address is allowed, because clients "
                       "are not authenticated; to serve others put a proxy in front of it",
                       address);
  }
  base::UniqueFd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.valid()) return base::error(Code::system_error, "eventfd: {}", std::strerror(errno));
  FARO_ASSIGN_OR_RETURN(auto view, counters::CounterView::over(counters));
  std::unique_ptr<MetricsEndpoint> endpoint(
      new MetricsEndpoint(std::move(*listener).take(), bound, std::move(stop), std::move(view)));
  FARO_ASSIGN_OR_RETURN(endpoint->thread_,
                        base::start_thread(kThreadName, [self = endpoint.get()] { self->run(); }));
  return endpoint;
}

MetricsEndpoint::MetricsEndpoint(base::UniqueFd listener, std::string address, base::UniqueFd stop,
                                 std::unique_ptr<counters::CounterView> view)
    : address_(std::move(address)),
      listener_(std::move(listener)),
      stop_(std::move(stop)),
      view_(std::move(view)) {}

MetricsEndpoint::~MetricsEndpoint() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t wrote = write(stop_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

void MetricsEndpoint::run() noexcept {
  while (!stopping_) {
    try {
      round();
    } catch (const std::exception& error) {
      connections_.clear();  // out of memory: releases what it holds
      base::log(LogLevel::warning, "the metrics endpoint at {} met an exception: {}", address_,
                error.what());
    }
  }
}

void MetricsEndpoint::round() {
  std::vector<pollfd> polled = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  base::Nanoseconds deadline = base::kForever;
  const base::Nanoseconds before = now();
  if (before < accept_after_) {
    polled[1].events = 0;
    deadline = accept_after_;
  }
  for (const Connection& connection : connections_) {
    const short events = connection.scrape.answered() ? POLLOUT : POLLIN;
    polled.push_back({connection.socket.get(), events, 0});
    deadline = std::min(deadline, connection.deadline);
  }
  int timeout_ms = -1;
  if (deadline != base::kForever)
    timeout_ms = deadline > before ? static_cast<int>((deadline - before) / 1'000'000 + 1) : 0;
  if (poll(polled.data(), polled.size(), timeout_ms) < 0) return;
  if (polled[0].revents != 0) {
    stopping_ = true;
    return;
  }
  size_t i = 2;
  const base::Nanoseconds after = now();
  for (auto connection = connections_.begin(); connection != connections_.end(); ++i) {
    const bool late = after >= connection->deadline;
    const bool done = late || (polled[i].revents != 0 && !advance(*connection));
    connection = done ? connections_.erase(connection) : std::next(connection);
  }
  if (polled[1].revents != 0) accept_some();
}

void MetricsEndpoint::accept_some() {
  base::UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid()) {
    // Usually the process has no descriptors left. Pause, because poll would report the waiting client again at once.
    accept_after_ = now() + kAcceptPause;
    return;
  }
  if (connections_.size() >= kConnectionLimit) connections_.pop_front();
  Connection& added = connections_.emplace_back();
  added.socket = std::move(socket);
  added.deadline = now() + kConnectionTime;
}

bool MetricsEndpoint::advance(Connection& connection) const {
  const Scrape& scrape = connection.scrape;
  if (!scrape.answered() && !read_request(connection)) return false;
  while (connection.sent < scrape.answer().size()) {
    const ssize_t sent = send(connection.socket.get(), scrape.answer().data() + connection.sent,
                              scrape.answer().size() - connection.sent, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    connection.sent += static_cast<size_t>(sent);
  }
  return !scrape.answered();
}

bool MetricsEndpoint::read_request(Connection& connection) const {
  char bytes[1024];
  const ssize_t got = recv(connection.socket.get(), bytes, sizeof bytes, 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  connection.scrape.add({bytes, static_cast<size_t>(got)},
                        [this] { return counters::prometheus_text(view_->read()); });
  return true;
}

}  // namespace faro::session
