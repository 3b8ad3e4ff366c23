// The data path of verbs in the contract suite, over a device in memory: on every machine, and under the
// sanitizers. verbs_pair.cc has the real devices.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "contract/connected_pair.h"
#include "contract/transport_pair.h"
#include "support/fake_fabric.h"
#include "transport/verbs/verbs_link.h"

namespace faro::test {
namespace {

using transport::verbs::CompletionPoller;
using transport::verbs::LinkParts;
using transport::verbs::RegisteredMemory;

struct Options {
  uint32_t send_depth = 64;
  uint32_t receives[2] = {32, 32};
  uint32_t inline_bytes = 0;
  uint32_t write_limit = 2 << 20;
  bool immediates = false;
  transport::verbs::Order order = transport::verbs::Order::chained;
};

constexpr uint32_t kKey = 77;

class FakeSetup final : public transport::LinkSetup {
 public:
  FakeSetup(transport::LinkContext& context, int side, std::shared_ptr<FakeFabric> fabric,
            std::shared_ptr<CompletionPoller> poller,
            std::shared_ptr<transport::DeferredSends> deferred, const Options& options)
      : context_(context),
        side_(side),
        fabric_(std::move(fabric)),
        poller_(std::move(poller)),
        deferred_(std::move(deferred)),
        options_(options) {}

  Status start() override {
    const auto make = [](uint64_t bytes, RegisteredMemory& memory) -> Status {
      auto made = RegisteredMemory::unregistered_for_test(bytes, kKey);
      if (!made.ok()) return made.status();
      memory = std::move(*made);
      return {};
    };
    const uint32_t receives = options_.receives[side_];
    FARO_RETURN_IF_ERROR(make(context_.outgoing.region_bytes(), parts_.outgoing));
    FARO_RETURN_IF_ERROR(make(context_.incoming.region_bytes(), parts_.incoming));
    FARO_RETURN_IF_ERROR(
        make(LinkParts::message_bytes(receives, options_.send_depth), parts_.messages));
    parts_.endpoint = fabric_->open(side_, *context_.reactor, options_.send_depth,
                                    {parts_.incoming.base(), parts_.incoming.bytes(), kKey});
    for (uint32_t i = 0; i < receives; ++i)
      transport::verbs::post_receive(parts_.endpoint->queue_pair(), parts_.messages, i);
    return {};
  }
  Status on_message(std::span<const std::byte>) override { return {}; }
  Status on_stream(transport::DataStream) override { return {}; }
  Status status() const override { return status_; }
  bool ready() const override { return fabric_->connected(); }
  std::unique_ptr<transport::DataLink> take() override {
    parts_.peer_address = reinterpret_cast<uint64_t>(fabric_->region(1 - side_).base);
    parts_.peer_key = kKey;
    parts_.send_depth = options_.send_depth;
    parts_.inline_bytes = options_.inline_bytes;
    parts_.write_limit = options_.write_limit;
    parts_.receives = options_.receives[side_];
    parts_.peer_receives = options_.receives[1 - side_];
    parts_.immediates = options_.immediates;
    parts_.order = options_.order;
    transport::add_ready_groups(context_);
    auto link = std::make_unique<transport::verbs::VerbsLink>(context_, poller_, deferred_,
                                                              std::move(parts_));
    status_ = link->start();
    if (!status_.ok()) return nullptr;
    return link;
  }

 private:
  transport::LinkContext& context_;
  const int side_;
  const std::shared_ptr<FakeFabric> fabric_;
  const std::shared_ptr<CompletionPoller> poller_;
  const std::shared_ptr<transport::DeferredSends> deferred_;
  const Options options_;
  LinkParts parts_;
  Status status_;
};

class FakeTransport final : public transport::Transport {
 public:
  FakeTransport(int side, std::shared_ptr<FakeFabric> fabric, const Options& options)
      : side_(side),
        fabric_(std::move(fabric)),
        options_(options),
        poller_(std::make_shared<CompletionPoller>(fabric_->events(side), false)) {}
  ~FakeTransport() override { EXPECT_EQ(fabric_->faults(), ""); }

  const transport::Capabilities& capabilities() const override { return capabilities_; }
  Status available() const override { return {}; }
  uint64_t memory_bytes(const ring::Layout&, const ring::Layout&) const override { return 0; }
  std::unique_ptr<transport::LinkSetup> begin(transport::LinkContext& context) override {
    return std::make_unique<FakeSetup>(context, side_, fabric_, poller_, deferred_, options_);
  }
  bool poll() noexcept override { return poller_->poll(); }
  void flush() noexcept override { deferred_->flush(); }
  void worker_sleeps() noexcept override { poller_->worker_sleeps(); }
  void worker_wakes() noexcept override { poller_->worker_wakes(); }

 private:
  const int side_;
  const std::shared_ptr<FakeFabric> fabric_;
  const Options options_;
  const transport::Capabilities capabilities_{.name = "verbs"};
  const std::shared_ptr<CompletionPoller> poller_;
  const std::shared_ptr<transport::DeferredSends> deferred_ =
      std::make_shared<transport::DeferredSends>();
};

TransportUnderTest fake(const char* name, const Options& options) {
  return {.name = name,
          .open =
              [options](const PairShape& shape) {
                const auto fabric = std::make_shared<FakeFabric>();
                return ConnectedPair::open(
                    shape, {.transports = {std::make_shared<FakeTransport>(0, fabric, options),
                                           std::make_shared<FakeTransport>(1, fabric, options)},
                            .pump = {}});
              },
          .no_threads_because = {},
          .no_loss_because = {}};
}

[[maybe_unused]] const bool added[] = {
    add_transport(fake("verbs_in_memory", {.inline_bytes = 256})),
    add_transport(fake("verbs_in_memory_immediate", {.immediates = true})),
    add_transport(fake("verbs_in_memory_paper", {.order = transport::verbs::Order::paper})),
    add_transport(fake("verbs_in_memory_least", {.receives = {4, 4}})),
    add_transport(
        fake("verbs_in_memory_least_immediate", {.receives = {4, 7}, .immediates = true})),
};

}  // namespace
}  // namespace faro::test
