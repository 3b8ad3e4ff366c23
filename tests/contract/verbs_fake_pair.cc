// The data path of verbs in the contract suite, over a device in memory: on every machine, and under the
// sanitizers. verbs_pair.cc has the real devices.
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/return_if_error.h"
#include "contract/connected_pair.h"
#include "contract/frames.h"
#include "contract/transport_pair.h"
#include "support/expect.h"
#include "support/fake_fabric.h"
#include "transport/verbs/device_watch.h"
#include "transport/verbs/mending_over.h"
#include "transport/verbs/path_map.h"
#include "transport/verbs/progress_exchange.h"
#include "transport/verbs/verbs_link.h"

namespace faro::test {
namespace {

using transport::Pulse;
using transport::verbs::CompletionPoller;
using transport::verbs::LinkParts;
using transport::verbs::PathMap;
using transport::verbs::PathParts;
using transport::verbs::RegisteredMemory;
using transport::verbs::Sharing;
using transport::verbs::VerbsLink;

struct Options {
  Sharing sharing = Sharing::link;
  uint32_t send_depth = 64;
  uint32_t receives[2] = {32, 32};
  uint32_t inline_bytes = 0;
  bool is_like_siw = false;
  uint32_t write_limit = 2 << 20;
  bool immediates = false;
  transport::verbs::Order order = transport::verbs::Order::chained;
};

constexpr uint32_t kKey = 77;

// What joins the two sides: a fabric for each queue pair, and others each time that the link is mended.
class Fabrics {
 public:
  Fabrics(uint32_t count, bool is_like_siw) : count_(count), is_like_siw_(is_like_siw) {}

  uint32_t count() const { return count_; }
  const std::shared_ptr<FakeFabric::Events>& events(int side) const { return events_[side]; }
  /// Those of a link's n-th connections, at both sides. Threads: any.
  std::vector<std::shared_ptr<FakeFabric>> each(uint32_t nth) {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<FakeFabric>> fabrics;
    made_[nth].resize(count_);
    for (std::weak_ptr<FakeFabric>& made : made_[nth]) {
      fabrics.push_back(made.lock());
      if (fabrics.back() == nullptr)
        fabrics.back() = std::make_shared<FakeFabric>(events_[0], events_[1], is_like_siw_);
      made = fabrics.back();
    }
    return fabrics;
  }

 private:
  const uint32_t count_;
  const bool is_like_siw_;
  const std::shared_ptr<FakeFabric::Events> events_[2] = {std::make_shared<FakeFabric::Events>(),
                                                          std::make_shared<FakeFabric::Events>()};
  std::mutex mutex_;
  std::map<uint32_t, std::vector<std::weak_ptr<FakeFabric>>> made_;
};

// The queue pairs of one side, and the other side's region.
class FakeConnecting {
 public:
  FakeConnecting(transport::LinkContext& context, int side, Fabrics& fabrics, uint32_t nth,
                 const Options& options)
      : context_(context), side_(side), fabrics_(fabrics.each(nth)), options_(options) {}

  Status start(const RegisteredMemory& incoming, const RegisteredMemory& messages) {
    for (uint32_t path = 0; path < fabrics_.size(); ++path) {
      auto queue_pair =
          fabric_of(path).open(side_, *context_.reactor, options_.send_depth,
                               {incoming.base(), incoming.bytes(), incoming.remote_key()});
      FARO_RETURN_IF_ERROR(transport::verbs::post_receives(
          queue_pair->queue_pair(), messages, path, options_.receives[side_], options_.send_depth));
      paths_.push_back({std::move(queue_pair), options_.inline_bytes, options_.is_like_siw,
                        !options_.is_like_siw});
    }
    return {};
  }
  Status on_message(std::span<const std::byte>) {
    return {Code::protocol_error, "a setup message, of which there are none"};
  }
  Status status() const { return {}; }
  bool connected() const {
    return std::all_of(fabrics_.begin(), fabrics_.end(),
                       [](const auto& fabric) { return fabric->connected(); });
  }
  wire::VerbsMemory peer() const {
    const FakeFabric::Region region = fabrics_[0]->region(1 - side_);
    wire::VerbsMemory memory{};
    memory.address = reinterpret_cast<uint64_t>(region.base);
    memory.key = region.key;
    memory.receives = options_.receives[1 - side_];
    memory.takes_immediates = options_.immediates ? 1 : 0;
    return memory;
  }
  std::vector<PathParts> take() { return std::move(paths_); }

 private:
  // The numbers that the two sides give their ends differ, as with rdma_cm.
  FakeFabric& fabric_of(uint32_t path) const {
    return *fabrics_[side_ == 0 ? path : fabrics_.size() - 1 - path];
  }

  transport::LinkContext& context_;
  const int side_;
  const std::vector<std::shared_ptr<FakeFabric>> fabrics_;
  const Options options_;
  std::vector<PathParts> paths_;
};

class FakeSetup final : public transport::LinkSetup {
 public:
  FakeSetup(transport::LinkContext& context, int side, Fabrics& fabrics, uint32_t nth,
            std::shared_ptr<CompletionPoller> poller,
            std::shared_ptr<transport::DeferredSends> deferred, const Options& options)
      : context_(context),
        side_(side),
        poller_(std::move(poller)),
        deferred_(std::move(deferred)),
        options_(options),
        path_count_(fabrics.count()),
        connecting_(context, side, fabrics, nth, options) {}

  Status start() override {
    const auto make = [](uint64_t bytes, RegisteredMemory& memory) -> Status {
      FARO_ASSIGN_OR_RETURN(memory, RegisteredMemory::unregistered_for_test(bytes, kKey));
      return {};
    };
    FARO_RETURN_IF_ERROR(make(context_.outgoing.region_bytes(), parts_.outgoing));
    FARO_RETURN_IF_ERROR(make(context_.incoming.region_bytes(), parts_.incoming));
    FARO_RETURN_IF_ERROR(
        make(path_count_ * LinkParts::message_bytes(options_.receives[side_], options_.send_depth),
             parts_.messages));
    return connecting_.start(parts_.incoming, parts_.messages);
  }
  Status on_message(std::span<const std::byte>) override { return {}; }
  Status on_stream(transport::DataStream) override { return {}; }
  Status status() const override { return status_; }
  bool ready() const override { return connecting_.connected(); }
  std::unique_ptr<transport::DataLink> take() override {
    const wire::VerbsMemory peer = connecting_.peer();
    parts_.paths = connecting_.take();
    parts_.peer_address = peer.address;
    parts_.peer_key = peer.key;
    parts_.send_depth = options_.send_depth;
    parts_.sharing = options_.sharing;
    parts_.write_limit = options_.write_limit;
    parts_.receives = options_.receives[side_];
    parts_.peer_receives = peer.receives;
    parts_.immediates = options_.immediates;
    parts_.order = options_.order;
    auto link = std::make_unique<VerbsLink>(context_, poller_, deferred_, std::move(parts_));
    status_ = link->start();
    if (!status_.ok()) return nullptr;
    return link;
  }

 private:
  transport::LinkContext& context_;
  const int side_;
  const std::shared_ptr<CompletionPoller> poller_;
  const std::shared_ptr<transport::DeferredSends> deferred_;
  const Options options_;
  const uint32_t path_count_;
  LinkParts parts_;
  FakeConnecting connecting_;
  Status status_;
};

using FakeMending = transport::verbs::MendingOver<FakeConnecting>;

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
        poller_(std::make_shared<CompletionPoller>(fabrics_->events(side), false)) {}

  const transport::Capabilities& capabilities() const override {
    return transport::verbs::kVerbsCapabilities;
  }
  Status available() const override { return {}; }
  uint64_t memory_bytes(const ring::Layout&, const ring::Layout&) const override { return 0; }
  std::unique_ptr<transport::LinkSetup> begin(transport::LinkContext& context) override {
    EXPECT_TRUE(watch_.start(*context.reactor).ok());
    return std::make_unique<FakeSetup>(context, side_, *fabrics_, connections_++, poller_,
                                       deferred_, options_);
  }
  std::unique_ptr<transport::LinkMending> mend(transport::LinkContext& context,
                                               transport::DataLink& link) override {
    return std::make_unique<FakeMending>(context, static_cast<VerbsLink&>(link), context, side_,
                                         *fabrics_, connections_++, options_);
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
  uint32_t connections_ = 0;  // of its link, until now
  const std::shared_ptr<CompletionPoller> poller_;
  const std::shared_ptr<transport::DeferredSends> deferred_ =
      std::make_shared<transport::DeferredSends>();
  FakeDevice device_;
  transport::verbs::DeviceWatch watch_{
      device_, [this] {
        poller_->fail_all({Code::system_error, "the device failed"});
      }};
};

TransportUnderTest fake(const char* name, const Options& options) {
  return {.name = name,
          .open =
              [options](const PairShape& shape) {
                const auto fabrics = std::make_shared<Fabrics>(
                    PathMap::count(options.sharing, shape.forth, shape.back), options.is_like_siw);
                return ConnectedPair::open(
                    shape, {.transports = {std::make_shared<FakeTransport>(0, fabrics, options),
                                           std::make_shared<FakeTransport>(1, fabrics, options)}});
              },
          .no_nodes_because = options.sharing == Sharing::lane ? kNoLanesToNodes : ""};
}

[[maybe_unused]] const bool verbs_fake_added[] = {
    add_transport(fake("verbs_in_memory", {.inline_bytes = 256, .is_like_siw = true})),
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
    const auto fabrics =
        std::make_shared<Fabrics>(PathMap::count(sharing, shape.forth, shape.back), false);
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
    EXPECT_EQ(pair.failure(0).to_string(), "system_error: the device failed");
    EXPECT_EQ(pair.failures(1), 1);
    EXPECT_EQ(pair.failure(1).code(), Code::peer_lost);
    device.fail();
    while (pair.pump()) {
    }
    EXPECT_EQ(pair.failures(0), 1) << "of one device, once";
  }
}

std::unique_ptr<TransportPair> opened(const PairShape& shape, const Options& options) {
  auto pair = fake("", options).open(shape);
  EXPECT_TRUE(is_ok(pair));
  return pair.ok() ? std::move(*pair) : nullptr;
}

TEST(VerbsInMemory, every_impossible_position_to_resume_from_is_refused) {
  const auto pair = opened(PairShape::symmetric(1, 1, 4096), {});
  ASSERT_NE(pair, nullptr);
  auto [sent, received] = FrameSequences{{31, 1024, 128}};
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(sent.try_send(pair->link(0).outgoing(0)));
  pair->link(0).outgoing(0).post();
  auto& link = static_cast<VerbsLink&>(pair->link(0));
  link.give_up_connections();
  EXPECT_TRUE(is_ok(link.accept_progress(0, {1024, 512})));
  constexpr wire::VerbsProgress kBad[] = {
      {1088, 512},            // more than was sent
      {512, 576},             // more read than has come
      {512, 448},             // fewer bytes read than before
      {1023, 512},            // odd positions
      {1024, 513},            //
      {~uint64_t{63}, 512},   // the end of all positions
      {1024, ~uint64_t{63}},  //
      {0, 0},                 // as if anew
  };
  for (const wire::VerbsProgress& bad : kBad) {
    const Status refused = link.accept_progress(0, bad);
    EXPECT_EQ(refused.code(), Code::protocol_error) << bad.arrived << ", " << bad.read;
  }
  EXPECT_TRUE(is_ok(link.accept_progress(0, {576, 512}))) << "it may have lost some again";
}

TEST(VerbsInMemory, resumes_name_all_rings_in_their_order) {
  constexpr uint32_t kWorkers = 16;  // 512 rings
  const PairShape shape = PairShape::symmetric(kWorkers, 2, 4096);
  const auto pair = opened(shape, {});
  ASSERT_NE(pair, nullptr);
  std::vector<std::vector<std::byte>> messages;
  transport::LinkContext context;
  context.outgoing = context.incoming = shape.forth;
  context.send = [&](std::span<const std::byte> message) {
    messages.emplace_back(message.begin(), message.end());
  };
  auto& link = static_cast<VerbsLink&>(pair->link(0));
  link.give_up_connections();
  transport::verbs::ProgressExchange(context, link).tell();
  ASSERT_EQ(messages.size(), 3u);
  const auto takes = [&](transport::verbs::ProgressExchange& exchange, size_t message) {
    const auto resume = wire::load_verbs_resume(messages[message]);
    EXPECT_TRUE(resume);
    return exchange.on_resume(*resume, messages[message]);
  };
  transport::verbs::ProgressExchange exchange(context, link);
  for (const size_t message : {0u, 1u, 2u}) {
    EXPECT_FALSE(exchange.complete());
    expect_error(takes(exchange, message == 0 ? 1 : message - 1), Code::protocol_error, {"RESUME"});
    EXPECT_TRUE(is_ok(takes(exchange, message)));
  }
  EXPECT_TRUE(exchange.complete());
  expect_error(takes(exchange, 2), Code::protocol_error, {"RESUME of 2 rings from ring 510 on"});
}

TEST(VerbsInMemory, a_link_that_has_failed_for_good_is_not_mended) {
  const auto pair = opened(PairShape::symmetric(1, 1, 4096), {});
  ASSERT_NE(pair, nullptr);
  static_cast<VerbsLink&>(pair->link(0)).fail({Code::protocol_error, "nonsense"});
  expect_error(pair->mend(), Code::protocol_error, {"nonsense"});
  EXPECT_EQ(pair->failures(0), 1);
}

// Its connection breaks, then the worker finds what had come before to be nonsense.
TEST(VerbsInMemory, a_link_that_fails_for_good_while_it_is_broken_is_not_mended) {
  const auto pair = opened(PairShape::symmetric(1, 1, 4096), {});
  ASSERT_NE(pair, nullptr);
  auto& link = static_cast<VerbsLink&>(pair->link(0));
  link.fail({Code::peer_lost, "broken"});
  link.fail({Code::protocol_error, "nonsense"});
  expect_error(pair->mend(), Code::protocol_error, {"nonsense"});
  EXPECT_EQ(pair->failures(0), 1);
  EXPECT_EQ(pair->failure(0).code(), Code::peer_lost);
}

/// A pair whose fabrics the test has.
struct OpenedPair {
  static inline const PairShape kPair = PairShape::symmetric(1, 1, 4096);

  std::shared_ptr<Fabrics> fabrics;
  std::unique_ptr<TransportPair> pair;

  explicit OpenedPair(const Options& options = {}, const PairShape& shape = kPair,
                      bool signs = true)
      : fabrics(std::make_shared<Fabrics>(PathMap::count(options.sharing, shape.forth, shape.back),
                                          options.is_like_siw)) {
    const auto side = [&](int number) {
      return std::make_shared<FakeTransport>(number, fabrics, options);
    };
    auto opened = ConnectedPair::open(shape, {.transports = {side(0), side(1)}, .signs = signs});
    EXPECT_TRUE(is_ok(opened));
    if (opened.ok()) pair = std::move(*opened);
  }
  VerbsLink& link(int side) { return static_cast<VerbsLink&>(pair->link(side)); }
  uint32_t key(int side) { return link(side).parts().incoming.remote_key(); }
  /// What the link of side 0 shows with the next heartbeat of both.
  Pulse pulse() {
    while (pair->pump()) {
    }
    (void)link(1).take_pulse();
    return link(0).take_pulse();
  }
  /// From now on nothing arrives over that queue pair of the link's n-th.
  void darken(uint32_t nth, uint32_t queue_pair) { fabrics->each(nth)[queue_pair]->set_dark(true); }
};

TEST(VerbsInMemory, a_path_that_goes_dark_shows_nothing_until_it_carries_again) {
  for (const bool is_like_siw : {false, true}) {
    for (const Sharing sharing : {Sharing::link, Sharing::lane}) {
      OpenedPair opened({.sharing = sharing, .is_like_siw = is_like_siw},
                        PairShape::symmetric(2, 1, 4096));
      ASSERT_NE(opened.pair, nullptr);
      for (int i = 0; i < 20; ++i) ASSERT_EQ(opened.pulse(), Pulse::heard) << i;
      const auto fabrics = opened.fabrics->each(0);
      fabrics.back()->set_dark(true);  // one of several is enough
      (void)opened.pulse();            // what was asked before, perhaps
      for (int i = 0; i < 20; ++i) ASSERT_EQ(opened.pulse(), Pulse::none) << i;
      fabrics.back()->set_dark(false);
      EXPECT_EQ(opened.pulse(), Pulse::heard);
      EXPECT_EQ(opened.pair->failures(0), 0);
    }
  }
}

// A peer whose workers compute takes messages with its heartbeats, or not even then; and there are few credits.
TEST(VerbsInMemory, a_peer_that_takes_few_messages_lives) {
  for (const bool is_like_siw : {false, true}) {
    OpenedPair opened({.send_depth = 16, .receives = {4, 4}, .is_like_siw = is_like_siw});
    ASSERT_NE(opened.pair, nullptr);
    auto [sent, received] = FrameSequences{{31, 1024, 128}};
    (void)opened.link(0).take_pulse();
    for (int i = 0; i < 100; ++i) {
      if (sent.try_send(opened.pair->link(0).outgoing(0))) opened.pair->link(0).outgoing(0).post();
      for (int turn = 0; turn < 20; ++turn) opened.pair->poll(0);
      if (is_like_siw) {
        ASSERT_EQ(opened.link(1).take_pulse(), Pulse::heard) << i;
      }
      ASSERT_EQ(opened.link(0).take_pulse(), Pulse::heard) << i;
    }
  }
}

TEST(VerbsInMemory, a_peer_that_sends_no_signs_of_life_shows_nothing_where_devices_do_not) {
  OpenedPair opened({.is_like_siw = true}, OpenedPair::kPair, false);
  ASSERT_NE(opened.pair, nullptr);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(opened.pulse(), Pulse::unknown);
}

TEST(VerbsInMemory, a_link_that_breaks_three_times_in_the_dark_is_given_up) {
  OpenedPair opened;
  ASSERT_NE(opened.pair, nullptr);
  for (uint32_t times = 0; times < 3; ++times) {
    (void)opened.pulse();
    opened.darken(times, 0);
    for (uint32_t beats = 0; beats <= transport::MendingTally::kBeatsPerLimit; ++beats)
      EXPECT_NE(opened.pulse(), Pulse::stuck) << times;
    ASSERT_TRUE(is_ok(opened.pair->mend()));
  }
  EXPECT_EQ(opened.pulse(), Pulse::stuck);
}

TEST(VerbsInMemory, a_mended_link_has_another_key_and_a_write_with_the_old_one_is_refused) {
  OpenedPair opened;
  ASSERT_NE(opened.pair, nullptr);
  std::vector<uint32_t> keys[2];
  for (uint32_t times = 0; times <= 3; ++times) {
    if (times != 0) {
      ASSERT_TRUE(is_ok(opened.pair->mend()));
    }
    const auto fabric = opened.fabrics->each(times).front();
    for (const int side : {0, 1}) {
      const uint32_t key = opened.key(side);
      EXPECT_EQ(key, kKey + times);
      EXPECT_EQ(fabric->would_take_write(side, key), IBV_WC_SUCCESS);
      for (const uint32_t old : keys[side])
        EXPECT_EQ(fabric->would_take_write(side, old), IBV_WC_REM_ACCESS_ERR);
      keys[side].push_back(key);
    }
  }
}

/// Connects nothing, and notes when the peer would be told of it.
class NotedConnecting {
 public:
  explicit NotedConnecting(std::function<void(uint32_t)> told) : told_(std::move(told)) {}
  Status start(const RegisteredMemory& incoming, const RegisteredMemory&) {
    told_(incoming.remote_key());
    return {};
  }
  Status on_message(std::span<const std::byte>) { return {}; }
  Status status() const { return {}; }
  bool connected() const { return false; }
  wire::VerbsMemory peer() const { return {}; }
  std::vector<PathParts> take() { return {}; }

 private:
  const std::function<void(uint32_t)> told_;
};

// What the peer has sent before finds neither a queue pair nor a key. So it cannot land on what was told since.
TEST(VerbsInMemory, queue_pairs_and_key_are_dead_before_the_peer_is_told_others) {
  OpenedPair opened;
  ASSERT_NE(opened.pair, nullptr);
  const auto fabric = opened.fabrics->each(0).front();
  EXPECT_TRUE(fabric->is_open(0));
  const uint32_t key = opened.key(0);
  std::vector<uint32_t> keys;  // of the link, when the peer was told something
  transport::LinkContext context;
  context.outgoing = context.incoming = PairShape::symmetric(1, 1, 4096).forth;
  const auto told = [&](uint32_t of_then) {
    EXPECT_FALSE(fabric->is_open(0));
    keys.push_back(of_then);
  };
  context.send = [&](std::span<const std::byte> message) {
    EXPECT_TRUE(wire::load_verbs_resume(message));
    told(opened.key(0));
  };
  transport::verbs::MendingOver<NotedConnecting> mending(context, opened.link(0), told);
  EXPECT_FALSE(fabric->is_open(0));
  EXPECT_TRUE(keys.empty());
  ASSERT_TRUE(is_ok(mending.start()));
  EXPECT_EQ(keys, (std::vector<uint32_t>{key + 1, key + 1})) << "of its memory, and its rings";
}

}  // namespace
}  // namespace faro::test
