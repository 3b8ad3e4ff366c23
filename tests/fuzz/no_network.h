// What stands for the network and for sleeping in targets that have neither.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "fuzz/hand_reactor.h"
#include "links/network.h"
#include "ring/waiter.h"

namespace faro::fuzz {

/// A network of one: nobody else is there. The reactor outlives it.
class NoNetwork final : public links::Network {
 public:
  explicit NoNetwork(HandReactor& reactor) : reactor_(reactor) {}
  transport::Reactor& reactor() override { return reactor_; }
  const std::string& local_address() const override { return address_; }
  const std::string& host_identity() const override { return address_; }
  void set_acceptor(Acceptor*) override {}
  void connect(const std::string&,
               std::function<void(Result<std::unique_ptr<links::ControlConnection>>)>) override {}
  bool run_once(base::Nanoseconds) override { return reactor_.run_tasks(); }
  void wake() override {}
  bool wants_thread() const override { return false; }
  bool draw_random(std::span<std::byte> bytes) override {
    std::fill(bytes.begin(), bytes.end(), std::byte{7});
    return true;
  }

 private:
  HandReactor& reactor_;
  const std::string address_ = "127.0.0.1:7000";
};

class NoWaiter final : public ring::Waiter {
 public:
  void yield() noexcept override {}
  void sleep(ring::Doorbell&, uint64_t) noexcept override {}
};

}  // namespace faro::fuzz
