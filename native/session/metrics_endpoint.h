// MetricsEndpoint: answers GET /metrics over HTTP with a node's counters, for Prometheus.
//
// Its own thread touches only its sockets and the counters, which it reads as any other process would. So a
// client that scrapes slowly, often, or with garbage can at most delay other scrapers. Requests are limited in
// size, number and time, one per connection. When there are too many connections the oldest is dropped.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "counters/counter_view.h"
#include "faro/status.h"
#include "session/scrape.h"

namespace faro::session {

class MetricsEndpoint {
 public:
  /// Listens at a loopback address ("127.0.0.1:9464", "[::1]:9464") and starts the thread. `counters`
  /// outlives it.
  /// Errors: config_invalid (not a loopback address, which anyone could read); address_in_use;
  /// system_error.
  static Result<std::unique_ptr<MetricsEndpoint>> start(const std::string& address,
                                                        std::span<const std::byte> counters);
  /// Ends the thread; connections are cut off.
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

  /// The address, with the real port.
  const std::string& address() const noexcept { return address_; }

 private:
  struct Connection {
    base::UniqueFd socket;
    base::Nanoseconds deadline = 0;
    Scrape scrape;
    size_t sent = 0;  // bytes of its answer
  };

  MetricsEndpoint(base::UniqueFd listener, std::string address, base::UniqueFd stop,
                  std::unique_ptr<counters::CounterView> view);
  void run() noexcept;
  void round();
  void accept_some();
  /// Returns false when the connection has served its purpose and is to be closed.
  bool advance(Connection& connection) const;
  bool read_request(Connection& connection) const;

  const std::string address_;
  const base::UniqueFd listener_;
  const base::UniqueFd stop_;  // an eventfd
  const std::unique_ptr<counters::CounterView> view_;
  std::list<Connection> connections_;  // the thread's; oldest first
  base::Nanoseconds accept_after_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace faro::session
