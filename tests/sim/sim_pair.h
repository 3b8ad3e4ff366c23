// SimPair: both ends of one simulated link, without a session.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lab/simulation/transport/sim_transport.h"
#include "lab/simulation/transport/sim_waiter.h"
#include "lab/simulation/transport/sim_world.h"
#include "ring/doorbell.h"
#include "ring/layout.h"
#include "ring/ready_set.h"
#include "support/expect.h"
#include "support/send_frame.h"

namespace faro::test {

/// Threads: its world's.
class SimPair {
 public:
  struct Side : transport::LinkEvents {
    explicit Side(uint32_t worker_count) : doorbells(worker_count), ready_group(worker_count) {
      for (uint32_t w = 0; w < worker_count; ++w) {
        ready.push_back(std::make_unique<ring::ReadySet>(64));
        ends.push_back({ready[w].get(), &doorbells[w]});
      }
    }
    void on_link_failed(const Status& status) override {
      ++failures;
      cause = status;
    }

    std::vector<ring::DoorbellLine> doorbells;
    std::vector<std::unique_ptr<ring::ReadySet>> ready;
    std::vector<transport::WorkerEnd> ends;
    std::vector<uint32_t> ready_group;
    transport::LinkContext context;
    std::unique_ptr<transport::DataLink> link;
    int failures = 0;
    Status cause;
  };

  /// `forth`: rings from side 0 to side 1. Reports what goes wrong to the test.
  SimPair(sim::World& world, const ring::Layout& forth, const ring::Layout& back)
      : fabric_(world), transports_{sim::SimTransport(fabric_, 0), sim::SimTransport(fabric_, 1)} {
    sides_[0] = std::make_unique<Side>(forth.sender_workers);
    sides_[1] = std::make_unique<Side>(forth.receiver_ends);
    std::array<std::unique_ptr<transport::LinkSetup>, 2> setups;
    std::array<std::vector<std::byte>, 2> sent;
    for (uint32_t i = 0; i < 2; ++i) {
      transport::LinkContext& context = sides_[i]->context;
      context.peer_node = 1 - i;
      context.peer_name = "node " + std::to_string(1 - i);
      context.initiator = i == 0;
      context.outgoing = i == 0 ? forth : back;
      context.incoming = i == 0 ? back : forth;
      context.workers = sides_[i]->ends;
      context.ready_group = sides_[i]->ready_group;
      context.events = sides_[i].get();
      context.agreed.signs = true;
      context.send = [&sent, i](std::span<const std::byte> message) {
        sent[i].assign(message.begin(), message.end());
      };
      setups[i] = transports_[i].begin(context);
      EXPECT_TRUE(setups[i]->start().ok());
    }
    for (uint32_t i = 0; i < 2; ++i) {
      const Status status = setups[i]->on_message(sent[1 - i]);
      EXPECT_TRUE(is_ok(status));
      EXPECT_TRUE(setups[i]->ready());
      sides_[i]->link = setups[i]->take();
      sides_[i]->context.send = nullptr;
    }
  }

  /// Gives both ends another connection.
  void mend() {
    std::array<std::unique_ptr<transport::LinkMending>, 2> mendings;
    for (uint32_t i = 0; i < 2; ++i) {
      mendings[i] = transports_[i].mend(sides_[i]->context, *sides_[i]->link);
      EXPECT_TRUE(is_ok(mendings[i]->start()));
    }
    for (const auto& mending : mendings) EXPECT_TRUE(is_ok(mending->finish()));
  }

  sim::SimFaults& faults() { return fabric_.faults(); }
  Side& side(uint32_t i) { return *sides_[i]; }
  transport::DataLink& link(uint32_t i) { return *sides_[i]->link; }
  /// Number of incoming ring `ring` of side `i` in its worker's ready set.
  uint32_t ready_number(uint32_t i, uint32_t ring) {
    const ring::Layout& layout = side(i).context.incoming;
    return side(i).ready_group[layout.receiver_of(ring)] * ring::ReadySet::kRingsPerGroup +
           layout.index_at_receiver(ring);
  }

 private:
  sim::SimFabric fabric_;
  std::array<sim::SimTransport, 2> transports_;
  std::array<std::unique_ptr<Side>, 2> sides_;
};

}  // namespace faro::test
