// ConnectedPair: both ends of a link, set up through the transport interface as a session would do
// it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/unique_fd.h"
#include "contract/transport_pair.h"
#include "support/test_reactor.h"
#include "tls/credentials.h"
#include "tls/socket.h"
#include "transport/shm/node_doorbells.h"
#include "wire/preamble.h"

namespace faro::test {

class ConnectedPair final : public TransportPair {
 public:
  /// How the two sides get their transports: one each, as they belong to a node.
  struct Parts {
    std::shared_ptr<transport::Transport> transports[2];
    std::function<bool()> pump = {};  // progress other than by descriptors; may be empty
    std::shared_ptr<tls::Credentials> credentials = {};  // of side 1, for data connections with TLS
    bool signs = true;                                   // both sides send signs of life
  };

  /// Errors: the first one of either side's setup; deadline_exceeded.
  static Result<std::unique_ptr<TransportPair>> open(const PairShape& shape, Parts parts);
  ~ConnectedPair() override;

  transport::DataLink& link(int side) override { return *sides_[side].link; }
  ring::ReadySet& ready_set(int side, uint32_t end) override {
    return *sides_[side].context.end(end).ready;
  }
  ring::DoorbellLine& doorbell(int side, uint32_t worker) override {
    return sides_[side].doorbells.line(worker);
  }
  uint32_t first_ready(int side, uint32_t worker) override {
    return sides_[side].ready_groups[worker] * ring::ReadySet::kRingsPerGroup;
  }
  bool pump() override;
  void run_network_threads() override;
  void flush(int side) override { sides_[side].transport->flush(); }
  bool poll(int side) override { return sides_[side].transport->poll(); }
  void worker_sleeps(int side) override { sides_[side].transport->worker_sleeps(); }
  void worker_wakes(int side) override { sides_[side].transport->worker_wakes(); }
  void drop(int side) override;
  Status mend() override;
  int failures(int side) override { return sides_[side].failures.load(); }
  Status failure(int side) override;

 private:
  struct Side final : transport::LinkEvents {
    void on_link_failed(const Status& cause) override;

    TestReactor reactor;
    std::shared_ptr<transport::Transport> transport;
    std::vector<std::unique_ptr<ring::ReadySet>> ready_sets;  // of the workers, then of the node
    transport::shm::NodeDoorbells doorbells;
    std::vector<transport::WorkerEnd> workers;
    std::vector<ring::DoorbellLine*> all_doorbells;
    transport::ReceivingEnd node_end;
    std::vector<uint32_t> ready_groups;
    std::deque<std::vector<std::byte>> messages;  // setup messages to the other side
    transport::LinkContext context;
    std::unique_ptr<transport::LinkSetup> setup;
    std::unique_ptr<transport::DataLink> link;
    std::unique_ptr<transport::LinkMending> mending;
    transport::LinkExchange* exchange = nullptr;  // setup or mending
    std::thread thread;
    std::atomic<int> failures{0};
    std::mutex mutex;
    Status failure;
  };

  ConnectedPair() = default;
  Status listen();
  Status accept_stream();
  Status prepare(int side, const PairShape& shape);
  Status connect();
  Status exchange();
  void stop_network_threads();
  /// Runs `body` on the network thread of that side, or here if it has none. Blocks: until it has run.
  template <typename Body>
  std::invoke_result_t<Body> on(int side, Body body);

  base::UniqueFd listener_;
  tls::Socket stream_{base::UniqueFd()};  // accepted, its preamble not read yet
  std::array<std::byte, sizeof(wire::Preamble)> preamble_{};
  size_t preamble_bytes_ = 0;
  std::shared_ptr<tls::Credentials> credentials_;
  std::string address_;
  std::function<bool()> pump_;
  Side sides_[2];
  std::atomic<bool> stopping_{false};
};

}  // namespace faro::test
