// Scrape: one HTTP request for counters and the answer to it, without sockets.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "links/secret.h"

namespace faro::metrics {

/// Threads: one. The input is untrusted: it takes at most kRequestLimit bytes and one more piece.
class Scrape {
 public:
  /// Prometheus' request has some hundred bytes.
  static constexpr size_t kRequestLimit = 8192;

  /// `token`: what the request has to show (Authorization: Bearer); null: nothing.
  explicit Scrape(std::shared_ptr<const links::Secret> token) : token_(std::move(token)) {}

  /// Takes the next piece of the request, of any size, until there is an answer. `page` makes the text of
  /// GET /metrics; it is called at most once.
  void add(std::string_view bytes, const std::function<std::string()>& page);
  bool answered() const noexcept { return !answer_.empty(); }
  /// It has been answered by 401: it has not shown the token.
  bool refused() const noexcept { return refused_; }
  /// The whole response, headers included; empty until then.
  const std::string& answer() const noexcept { return answer_; }

 private:
  std::string answer_to(std::string_view request, const std::function<std::string()>& page);

  const std::shared_ptr<const links::Secret> token_;
  bool refused_ = false;
  std::string request_;
  std::string answer_;
};

}  // namespace faro::metrics
