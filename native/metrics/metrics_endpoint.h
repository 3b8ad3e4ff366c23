// MetricsEndpoint: answers GET /metrics over HTTP or HTTPS with the counters of a node or an endpoint, for Prometheus.
//
// Its own thread touches only its sockets and the page, which reads the counters as any other process would. So a
// client that scrapes slowly, often, or with garbage can at most delay other scrapers. Requests are limited in
// size, number and time, one per connection. When there are too many connections the oldest is dropped.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/settings.h"
#include "base/unique_fd.h"
#include "faro/status.h"
#include "links/log_limiter.h"
#include "links/secret.h"
#include "metrics/scrape.h"
#include "tls/credentials.h"
#include "tls/socket.h"

namespace faro::metrics {

/// Who may read the counters. At addresses that other hosts reach one of the two is needed: with
/// credentials these are served by HTTPS, to whoever shows the token, or, if there is none, a
/// certificate of security.authority or one that security.peers names.
struct ScrapeAccess {
  std::shared_ptr<const links::Secret> token;     // asked for everywhere; null: none
  std::shared_ptr<tls::Credentials> credentials;  // null: no TLS

  /// Loads what metrics.token_file and security.tls say. Blocks: for files. Errors: config_invalid.
  static Result<ScrapeAccess> load(const base::Settings& settings);
};

class MetricsEndpoint {
 public:
  /// Makes the text of GET /metrics. Threads: the endpoint's own. Exceptions are logged.
  using Page = std::function<std::string()>;

  /// Listens at an address ("127.0.0.1:9464", "[::1]:9464", "0.0.0.0:9464") and starts the thread.
  /// Errors: config_invalid (an address that other hosts reach, where anyone could read them); address_in_use;
  /// system_error.
  static Result<std::unique_ptr<MetricsEndpoint>> start(const std::string& address,
                                                        ScrapeAccess access, Page page);
  /// Ends the thread; connections are cut off.
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

  /// The address, with the real port.
  const std::string& address() const noexcept { return address_; }
  /// "http://127.0.0.1:9464/metrics".
  std::string url() const;

 private:
  struct Connection {
    tls::Socket socket;
    base::Nanoseconds deadline = 0;
    Scrape scrape;
    size_t sent = 0;  // bytes of its answer
  };

  MetricsEndpoint(base::UniqueFd listener, std::string address, ScrapeAccess access,
                  base::UniqueFd stop, Page page);
  void run() noexcept;
  void round();
  void accept_some();
  /// Returns false when the connection has served its purpose and is to be closed.
  bool advance(Connection& connection);
  bool read_request(Connection& connection);
  std::shared_ptr<tls::Stream> make_stream(int fd) const;
  void log_refused(int fd, const std::string& why);

  const std::string address_;
  const ScrapeAccess access_;
  const base::UniqueFd listener_;
  const base::UniqueFd stop_;  // an eventfd
  const Page page_;
  std::list<Connection> connections_;  // the thread's; oldest first
  base::Nanoseconds accept_after_ = 0;
  links::LogLimiter log_limiter_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace faro::metrics
