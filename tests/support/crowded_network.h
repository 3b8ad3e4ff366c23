// CrowdedNetwork: a network with outsiders behind the addresses of nodes.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "links/attempt_limiter.h"
#include "support/cluster.h"

namespace faro::test {

/// A network around which others of the host of whoever has connected fail to join, again and again.
class CrowdedNetwork final : public ForwardingNetwork, private links::Network::Acceptor {
 public:
  using ForwardingNetwork::ForwardingNetwork;
  void set_acceptor(links::Network::Acceptor* acceptor) override {
    acceptor_ = acceptor;
    ForwardingNetwork::set_acceptor(acceptor == nullptr ? nullptr : this);
  }

 private:
  void on_connection(std::unique_ptr<links::ControlConnection> connection) override {
    const std::string from = connection->peer_address();
    acceptor_->on_connection(std::move(connection));
    const base::Nanoseconds before = base::SystemClock::instance().now_ns();
    for (int i = 0; i < 10 * links::AttemptLimiter::kAtOnce; ++i)
      acceptor_->on_unauthenticated(from, Status(Code::authentication_failed, "a wrong proof"));
    EXPECT_GT(acceptor_->may_try_at(from), before);
  }
  void on_data_stream(const links::StreamToken& token, transport::DataStream stream) override {
    acceptor_->on_data_stream(token, std::move(stream));
  }
  base::Nanoseconds may_try_at(const std::string& from) override {
    return acceptor_->may_try_at(from);
  }
  size_t may_try_together(const std::string& from) override {
    return acceptor_->may_try_together(from);
  }
  void on_turn(const std::string& from) override { acceptor_->on_turn(from); }
  void on_unauthenticated(const std::string& from, const Status& cause) override {
    acceptor_->on_unauthenticated(from, cause);
  }

  links::Network::Acceptor* acceptor_ = nullptr;
};

}  // namespace faro::test
