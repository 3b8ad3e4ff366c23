#include "metrics/metrics_endpoint.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"
#include "links/listening_socket.h"
#include "transport/tcp/socket_address.h"

namespace faro::metrics {
namespace {

// Prometheus scrapes from one place, now and then.
constexpr size_t kConnectionLimit = 8;
constexpr base::Nanoseconds kConnectionTime = 5'000'000'000;
constexpr base::Nanoseconds kAcceptPause = 100'000'000;

// At most 15 characters.
constexpr const char* kThreadName = "faro-metrics";

base::Nanoseconds now() { return base::SystemClock::instance().now_ns(); }

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address.starts_with("[::1]:");
}

}  // namespace

Result<ScrapeAccess> ScrapeAccess::load(const base::Settings& settings) {
  ScrapeAccess access;
  if (!settings.metrics_token_file.empty()) {
    FARO_ASSIGN_OR_RETURN(
        access.token, links::load_secret_file(settings.metrics_token_file, "metrics.token_file"));
  }
  FARO_ASSIGN_OR_RETURN(access.credentials, tls::Credentials::load(settings));
  return access;
}

Result<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::start(const std::string& address,
                                                                ScrapeAccess access, Page page) {
  Result<links::ListeningSocket> listener = links::ListeningSocket::bind(address);
  if (!listener.ok()) {
    return base::error(listener.status().code(), "metrics.listen: {}", listener.status().message());
  }
  const std::string bound = listener->address();
  if (is_loopback(bound)) {
    access.credentials = nullptr;
  } else if (access.token == nullptr && access.credentials == nullptr) {
    return base::error(Code::config_invalid,
                       "metrics.listen = {}: whoever reaches this address could read the counters; "
                       "name a file with a token by metrics.token_file, set security.tls = on, or "
                       "listen on a loopback address",
                       address);
  }
  base::UniqueFd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.valid()) return base::error(Code::system_error, "eventfd: {}", std::strerror(errno));
  std::unique_ptr<MetricsEndpoint> endpoint(new MetricsEndpoint(
      std::move(*listener).take(), bound, std::move(access), std::move(stop), std::move(page)));
  FARO_ASSIGN_OR_RETURN(endpoint->thread_,
                        base::start_thread(kThreadName, [self = endpoint.get()] { self->run(); }));
  return endpoint;
}

MetricsEndpoint::MetricsEndpoint(base::UniqueFd listener, std::string address, ScrapeAccess access,
                                 base::UniqueFd stop, Page page)
    : address_(std::move(address)),
      access_(std::move(access)),
      listener_(std::move(listener)),
      stop_(std::move(stop)),
      page_(std::move(page)) {}

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
    const bool sends = connection.scrape.answered() && !connection.socket.send_waits_for_input();
    const short events = sends ? POLLOUT : POLLIN;
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
  std::shared_ptr<tls::Stream> stream = make_stream(socket.get());
  if (access_.credentials != nullptr && stream == nullptr) return;  // no memory
  connections_.push_back({tls::Socket(std::move(socket), std::move(stream)),
                          now() + kConnectionTime, Scrape(access_.token)});
}

std::shared_ptr<tls::Stream> MetricsEndpoint::make_stream(int fd) const {
  if (access_.credentials == nullptr) return nullptr;
  return access_.token == nullptr ? access_.credentials->accept(fd)
                                  : access_.credentials->accept_anyone(fd);
}

void MetricsEndpoint::log_refused(int fd, const std::string& why) {
  uint64_t suppressed = 0;
  if (!log_limiter_.allows(why, now(), suppressed)) return;
  transport::tcp::SocketAddress peer;
  peer.length = sizeof peer.storage;
  const bool is_known =
      getpeername(fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer.length) == 0;
  base::log(LogLevel::warning, "{}: refused a request from {}: {}{}", url(),
            is_known ? transport::tcp::to_string(peer) : "a client that has gone", why,
            suppressed == 0 ? "" : fmt::format(" ({} more since the last line)", suppressed));
}

std::string MetricsEndpoint::url() const {
  return fmt::format("{}://{}/metrics", access_.credentials == nullptr ? "http" : "https",
                     address_);
}

bool MetricsEndpoint::advance(Connection& connection) {
  const Scrape& scrape = connection.scrape;
  if (!scrape.answered() && !read_request(connection)) return false;
  while (connection.sent < scrape.answer().size()) {
    const ssize_t sent =
        connection.socket.send(std::as_bytes(std::span(scrape.answer())).subspan(connection.sent));
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    connection.sent += static_cast<size_t>(sent);
  }
  return !scrape.answered();
}

bool MetricsEndpoint::read_request(Connection& connection) {
  tls::Socket& socket = connection.socket;
  do {
    char bytes[1024];
    const ssize_t got = socket.receive(std::as_writable_bytes(std::span(bytes)));
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got < 0 && errno == EPROTO) log_refused(socket.get(), socket.tls()->failure().to_string());
    if (got <= 0) return false;
    connection.scrape.add({bytes, static_cast<size_t>(got)}, page_);
  } while (!connection.scrape.answered() && socket.pending() > 0);
  if (connection.scrape.refused())
    log_refused(socket.get(), "it does not show the token of metrics.token_file");
  return true;
}

}  // namespace faro::metrics
