// The data path of verbs in the contract suite, over a device in memory: on every machine, and under the
// sanitizers. verbs_pair.cc has the real devices.
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/return_if_error.h"
#include "contract/connected_pair.h"
#include "contract/transport_pair.h"
#include "support/fake_fabric.h"
#include "transport/verbs/channel_map.h"
#include "transport/verbs/device_watch.h"
#include "transport/verbs/verbs_link.h"

namespace faro::test {
namespace {

using transport::verbs::ChannelMap;
using transport::verbs::CompletionPoller;
using transport::verbs::LinkParts;
using transport::verbs::RegisteredMemory;
using transport::verbs::Sharing;

struct Options {
  Sharing sharing = Sharing::link;
  uint32_t send_depth = 64;
  uint32_t receives[2] = {32, 32};
  uint32_t inline_bytes = 0;
  bool raises_sigpipe = false;  // like Linux's siw
  uint32_t write_limit = 2 << 20;
  bool immediates = false;
  transport::verbs::Order order = transport::verbs::Order::chained;
};

constexpr uint32_t kKey = 77;

// What joins the two sides: a fabric for each queue pair.
struct Fabrics {
  std::shared_ptr<FakeFabric::Events> events[2] = {std::make_shared<FakeFabric::Events>(),
                                                   std::make_shared<FakeFabric::Events>()};
  std::vector<std::shared_ptr<FakeFabric>> each;

  Fabrics(uint32_t count, bool raises_sigpipe) {
    for (uint32_t n = 0; n < count; ++n)
      each.push_back(std::make_shared<FakeFabric>(events[0], events[1], raises_sigpipe));
  }
};

class FakeSetup final : public transport::LinkSetup {
 public:
  FakeSetup(transport::LinkContext& context, int side, std::shared_ptr<Fabrics> fabrics,
            std::shared_ptr<CompletionPoller> poller,
            std::shared_ptr<transport::DeferredSends> deferred, const Options& options)
      : context_(context),
        side_(side),
        fabrics_(std::move(fabrics)),
        poller_(std::move(poller)),
        deferred_(std::move(deferred)),
        options_(options) {}

  Status start() override {
    const auto make = [](uint64_t bytes, RegisteredMemory& memory) -> Status {
      FARO_ASSIGN_OR_RETURN(memory, RegisteredMemory::unregistered_for_test(bytes, kKey));
      return {};
    };
    const uint32_t receives = options_.receives[side_];
    FARO_RETURN_IF_ERROR(make(context_.outgoing.region_bytes(), parts_.outgoing));
    FARO_RETURN_IF_ERROR(make(context_.incoming.region_bytes(), parts_.incoming));
    const uint32_t channels = static_cast<uint32_t>(fabrics_->each.size());
    FARO_RETURN_IF_ERROR(
        make(channels * LinkParts::message_bytes(receives, options_.send_depth), parts_.messages));
    for (uint32_t channel = 0; channel < channels; ++channel) {
      auto endpoint =
          fabric_of(channel).open(side_, *context_.reactor, options_.send_depth,
                                  {parts_.incoming.base(), parts_.incoming.bytes(), kKey});
      FARO_RETURN_IF_ERROR(transport::verbs::post_receives(endpoint->queue_pair(), parts_.messages,
                                                           channel, receives, options_.send_depth));
      parts_.channels.push_back(
          {std::move(endpoint), options_.inline_bytes, options_.raises_sigpipe});
    }
    return {};
  }
  Status on_message(std::span<const std::byte>) override { return {}; }
  Status on_stream(transport::DataStream) override { return {}; }
  Status status() const override { return status_; }
  bool ready() const override {
    return std::all_of(fabrics_->each.begin(), fabrics_->each.end(),
                       [](const auto& fabric) { return fabric->connected(); });
  }
  std::unique_ptr<transport::DataLink> take() override {
    parts_.peer_address = reinterpret_cast<uint64_t>(fabrics_->each[0]->region(1 - side_).base);
    parts_.peer_key = kKey;
    parts_.send_depth = options_.send_depth;
    parts_.sharing = options_.sharing;
    parts_.write_limit = options_.write_limit;
    parts_.receives = options_.receives[side_];
    parts_.peer_receives = options_.receives[1 - side_];
    parts_.immediates = options_.immediates;
    parts_.order = options_.order;
    auto link = std::make_unique<transport::verbs::VerbsLink>(context_, poller_, deferred_,
                                                              std::move(parts_));
    status_ = link->start();
    if (!status_.ok()) return nullptr;
    return link;
  }

 private:
  // The numbers that the two sides give their ends differ, as with rdma_cm.
  FakeFabric& fabric_of(uint32_t channel) const {
    const size_t count = fabrics_->each.size();
    return *fabrics_->each[side_ == 0 ? channel : count - 1 - channel];
  }

  transport::LinkContext& context_;
  const int side_;
  const std::shared_ptr<Fabrics> fabrics_;
  const std::shared_ptr<CompletionPoller> poller_;
  const std::shared_ptr<transport::DeferredSends> deferred_;
  const Options options_;
  LinkParts parts_;
  Status status_;
};

// A device that says that it has failed when it is told to.
class FakeDevice final : public transport::verbs::DeviceEvents {
 public:
  void fail() { eventfd_write(event_.get(), 1); }
  int trouble_descriptor() const noexcept override { return event_.get(); }
  bool take_trouble() noexcept override {
    eventfd_t count = 0;
    return eventfd_read(event_.get(), &count) == 0;
  }

 private:
  const base::UniqueFd event_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

class FakeTransport final : public transport::Transport {
 public:
  FakeTransport(int side, std::shared_ptr<Fabrics> fabrics, const Options& options)
      : side_(side),
        fabrics_(std::move(fabrics)),
        options_(options),
        poller_(std::make_shared<CompletionPoller>(fabrics_->events[side], false)) {}
  ~FakeTransport() override {
    for (const auto& fabric : fabrics_->each) EXPECT_EQ(fabric->faults(), "");
  }

  const transport::Capabilities& capabilities() const override { return capabilities_; }
  Status available() const override { return {}; }
  uint64_t memory_bytes(const ring::Layout&, const ring::Layout&) const override { return 0; }
  std::unique_ptr<transport::LinkSetup> begin(transport::LinkContext& context) override {
    EXPECT_TRUE(watch_.start(*context.reactor).ok());
    return std::make_unique<FakeSetup>(context, side_, fabrics_, poller_, deferred_, options_);
  }
  FakeDevice& device() { return device_; }
  bool poll() noexcept override { return poller_->poll(); }
  void flush() noexcept override { deferred_->flush(); }
  void worker_sleeps() noexcept override { poller_->worker_sleeps(); }
  void worker_wakes() noexcept override { poller_->worker_wakes(); }

 private:
  const int side_;
  const std::shared_ptr<Fabrics> fabrics_;
  const Options options_;
  const transport::Capabilities capabilities_{.name = "verbs"};
  const std::shared_ptr<CompletionPoller> poller_;
  const std::shared_ptr<transport::DeferredSends> deferred_ =
      std::make_shared<transport::DeferredSends>();
  FakeDevice device_;
  transport::verbs::DeviceWatch watch_{device_, [this] {
                                         poller_->fail_all({Code::peer_lost, "the device failed"});
                                       }};
};

TransportUnderTest fake(const char* name, const Options& options) {
  return {.name = name, .open = [options](const PairShape& shape) {
            const auto fabrics = std::make_shared<Fabrics>(
                ChannelMap::count(options.sharing, shape.forth), options.raises_sigpipe);
            return ConnectedPair::open(
                shape, {.transports = {std::make_shared<FakeTransport>(0, fabrics, options),
                                       std::make_shared<FakeTransport>(1, fabrics, options)}});
          }};
}

[[maybe_unused]] const bool added[] = {
    add_transport(fake("verbs_in_memory", {.inline_bytes = 256, .raises_sigpipe = true})),
    add_transport(fake("verbs_in_memory_immediate", {.immediates = true})),
    add_transport(fake("verbs_in_memory_paper", {.order = transport::verbs::Order::paper})),
    add_transport(fake("verbs_in_memory_least", {.receives = {4, 4}})),
    add_transport(
        fake("verbs_in_memory_least_immediate", {.receives = {4, 7}, .immediates = true})),
    add_transport(fake("verbs_in_memory_worker", {.sharing = Sharing::worker})),
    add_transport(fake("verbs_in_memory_lane", {.sharing = Sharing::lane, .receives = {4, 4}})),
    add_transport(fake("verbs_in_memory_lane_immediate",
                       {.sharing = Sharing::lane, .receives = {7, 4}, .immediates = true})),
};

// No software driver of Linux reports a failed device (native/transport/verbs/README.md, Failures).
TEST(VerbsInMemory, a_device_that_fails_takes_its_links_along_and_their_peers_hear_of_it) {
  for (const Sharing sharing : {Sharing::link, Sharing::lane}) {
    const PairShape shape = PairShape::symmetric(2, 1, 4096);
    const Options options{.sharing = sharing};
    const auto fabrics = std::make_shared<Fabrics>(ChannelMap::count(sharing, shape.forth), false);
    auto own = std::make_shared<FakeTransport>(0, fabrics, options);
    FakeDevice& device = own->device();
    auto opened = ConnectedPair::open(
        shape,
        {.transports = {std::move(own), std::make_shared<FakeTransport>(1, fabrics, options)}});
    ASSERT_TRUE(is_ok(opened));
    TransportPair& pair = **opened;
    while (pair.pump()) {
    }
    EXPECT_EQ(pair.failures(0) + pair.failures(1), 0);
    device.fail();
    while (pair.pump()) {
    }
    EXPECT_EQ(pair.failures(0), 1);
    EXPECT_EQ(pair.failure(0).message(), "the device failed");
    EXPECT_EQ(pair.failures(1), 1);
    EXPECT_EQ(pair.failure(1).code(), Code::peer_lost);
    device.fail();
    while (pair.pump()) {
    }
    EXPECT_EQ(pair.failures(0), 1) << "of one device, once";
  }
}

}  // namespace
}  // namespace faro::test
