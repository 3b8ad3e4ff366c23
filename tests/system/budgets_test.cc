// Budgets against what is resident: the growth of the resident set per further object is at most 110 % of the growth of what
// is counted. Slopes, so that what a process has anyway does not matter: between 100 and 1000 channels, between workers with few
// rings and with many, between few blocks of overflow and many.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "faro/endpoint.h"
#include "faro/log.h"
#include "shuffle/overflow/overflow.h"
#include "shuffle/receive/in_ring.h"
#include "support/certificates.h"
#include "support/child.h"
#include "support/counted_memory.h"
#include "support/expect.h"
#include "support/resident.h"
#include "support/session_cluster.h"
#include "support/watchdog.h"

namespace faro::test {
namespace {

using Kind = ChannelEvent::Kind;

constexpr uint32_t kFew = 100, kMany = 1000;
constexpr uint32_t kAtOnce = 10;  // channels that are opened together
constexpr uint32_t kFrames = 8;   // over each channel, each way
constexpr std::chrono::seconds kHang{110};

struct Case {
  const char* name;
  const char* transport;
  bool has_tls;
  uint32_t ring_bytes;
  uint64_t most_kibibytes;  // resident per channel

  friend void PrintTo(const Case& each, std::ostream* to) { *to << each.name; }
};

/// What there is at one moment.
struct Amount {
  uint64_t resident = 0;
  uint64_t counted = 0;
};

/// One side: opens channels, or waits for as many, and has some frames travel each way over each.
class Side {
 public:
  Side(const Case& which, const NodeFiles& files) : which_(which) {
    Config config;
    const auto set = [&config](const char* name, const std::string& value) {
      if (!config.set(name, value).ok()) throw std::runtime_error(name);
    };
    set("transport", which.transport);
    set("counters.folder", "");
    set("liveness.timeout_ms", "60000");
    set("connect.timeout_ms", "60000");
    if (which.has_tls) {
      for (const auto& [name, value] : files.settings()) set(name.c_str(), value);
    }
    endpoint_ = value_of(Endpoint::open(config, {.name = "side", .channel_limit = kMany}));
  }

  const std::string& address() const { return endpoint_->address(); }

  void grow_to(uint32_t count, const std::string& dialled) {
    while (opened_ < count) {
      const uint32_t next = std::min(count, opened_ + kAtOnce);
      const ChannelSpec spec{.send_bytes = which_.ring_bytes, .receive_bytes = which_.ring_bytes};
      for (uint32_t i = opened_; !dialled.empty() && i < next; ++i)
        value_of(poller().connect(dialled, spec));
      while (opened_ < next || taken_ < uint64_t{next} * kFrames) serve();
    }
  }

  Amount look() const { return {resident_bytes(), value_of(endpoint_->metrics()).memory_bytes}; }

 private:
  Poller& poller() { return endpoint_->poller(0); }

  void serve() {
    if (poller().wait() != Outcome::done) throw std::runtime_error("the endpoint has closed");
    ChannelEvent some[16];
    for (const ChannelEvent& event : poller().poll(some)) {
      if (event.kind == Kind::opened) {
        ++opened_;
        send(event.channel);
      } else if (event.kind == Kind::frame) {
        ++taken_;
        poller().release(event.channel, event.token);
      } else if (event.kind == Kind::closed) {
        throw std::runtime_error(poller().status(event.channel).to_string());
      }
    }
  }
  // So that each page of a ring has carried something, in both directions.
  void send(ChannelId channel) {
    const size_t bytes = which_.ring_bytes / (2 * kFrames);
    for (uint32_t i = 0; i < kFrames; ++i) {
      std::span<std::byte> room;
      if (poller().claim(channel, bytes, bytes, room) != Outcome::done)
        throw std::runtime_error("no room");
      std::memset(room.data(), 1, bytes);
      (void)poller().commit(channel, bytes);
    }
    poller().post();
  }

  const Case which_;
  std::unique_ptr<Endpoint> endpoint_;
  uint32_t opened_ = 0;
  uint64_t taken_ = 0;
};

/// With a sanitizer's allocator the resident set says nothing of the library's.
constexpr bool is_measurable() {
#if defined(FARO_SANITIZE_ADDRESS) || defined(FARO_SANITIZE_THREAD)
  return false;
#else
  return true;
#endif
}

void lift_descriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

class ResidentChannels : public testing::TestWithParam<Case> {
 protected:
  // In the child's process: "<resident> <counted>" for each number of channels that the test names.
  int run(const Child::Side& test) {
    set_log_level(LogLevel::off);
    steady_allocator();
    lift_descriptors();
    Watchdog watchdog(kHang, [] { return std::string("a side"); });
    try {
      Side side(GetParam(), files_);
      test.say(side.address());
      const std::string dialled = test.hear();
      for (const uint32_t count : {kFew, kMany}) {
        side.grow_to(count, dialled == "nobody" ? "" : dialled);
        test.say("there");
        test.hear();  // that the other one is, too
        const Amount now = side.look();
        test.say(fmt::format("{} {}", now.resident, now.counted));
        test.hear();
      }
    } catch (const std::exception& error) {
      test.say(error.what());
      return 1;
    }
    return 0;
  }

  NodeFiles files_ = Authority().issue();
};

Amount amount_in(const std::string& line) {
  Amount amount;
  if (std::sscanf(line.c_str(), "%lu %lu", &amount.resident, &amount.counted) != 2)
    throw std::runtime_error("instead of an amount: " + line);
  return amount;
}

TEST_P(ResidentChannels, GrowByNoMoreThanIsCounted) {
  if (!is_measurable()) GTEST_SKIP() << "a sanitizer has its own allocator";
  std::vector<std::unique_ptr<Child>> sides;
  for (int i = 0; i < 2; ++i)
    sides.push_back(std::make_unique<Child>([this](const Child::Side& test) { return run(test); }));
  const auto hear = [&](size_t i) { return sides[i]->hear().value_or("(it has ended)"); };
  const std::string address = hear(0);
  ASSERT_TRUE(hear(1).starts_with("127.0.0.1"));
  sides[0]->say("nobody");
  sides[1]->say(address);
  Amount few[2], many[2];
  for (Amount* const amounts : {few, many}) {
    for (size_t i : {0, 1}) ASSERT_EQ(hear(i), "there");
    for (size_t i : {0, 1}) sides[i]->say("look");
    for (size_t i : {0, 1}) amounts[i] = amount_in(hear(i));
    for (size_t i : {0, 1}) sides[i]->say("go on");
  }
  for (size_t i : {0, 1}) {
    EXPECT_EQ(sides[i]->wait_for_end(), 0);
    const uint64_t resident = (many[i].resident - few[i].resident) / (kMany - kFew);
    const uint64_t counted = (many[i].counted - few[i].counted) / (kMany - kFew);
    const char* const side = i == 0 ? "accepting" : "dialling";
    std::printf("%s, %s side: %lu bytes resident per channel, %lu counted\n", GetParam().name, side,
                resident, counted);
    EXPECT_LE(resident * 100, counted * 110) << side;
    EXPECT_LE(resident, GetParam().most_kibibytes * 1024) << side;
  }
}

INSTANTIATE_TEST_SUITE_P(Over, ResidentChannels,
                         testing::Values(Case{"tcp_4KiB", "tcp", false, 4 << 10, 20},
                                         Case{"shm_4KiB", "shm", false, 4 << 10, 24},
                                         Case{"tls_4KiB", "tcp", true, 4 << 10, 60},
                                         Case{"tcp_16KiB", "tcp", false, 16 << 10, 20 + 24},
                                         Case{"shm_16KiB", "shm", false, 16 << 10, 24 + 12},
                                         Case{"tls_16KiB", "tcp", true, 16 << 10, 60 + 24},
                                         Case{"shm_and_tls_4KiB", "shm", true, 4 << 10, 44}),
                         [](const auto& each) { return std::string(each.param.name); });

// ------------------------------------------------------------------------------------------ sessions

struct SessionCase {
  const char* name;
  const char* transport;
  bool has_tls;
  const char* ring_bytes;

  friend void PrintTo(const SessionCase& each, std::ostream* to) { *to << each.name; }
};

class ResidentSessions : public testing::TestWithParam<SessionCase> {
 protected:
  static constexpr uint32_t kNodes = 2;  // in one process

  SettingList settings(uint32_t workers) const {
    SettingList made = {
        {"transport", GetParam().transport},   {"cluster.workers", std::to_string(workers)},
        {"ring.bytes", GetParam().ring_bytes}, {"ring.per_lane", "1"},
        {"transfer.threshold_bytes", "1 KiB"}, {"counters.folder", ""}};
    if (GetParam().has_tls) {
      for (const auto& each : files_.settings()) made.push_back(each);
    }
    return made;
  }
  Amount amount_with(uint32_t workers) const {
    Child child([&](const Child::Side& test) {
      set_log_level(LogLevel::off);
      steady_allocator();
      Watchdog watchdog(kHang, [] { return std::string("two nodes"); });
      SessionCluster cluster(kNodes, settings(workers));
      if (!cluster.status().ok()) return test.say(cluster.status().to_string()), 1;
      test.say(fmt::format("{} {}", resident_bytes(),
                           kNodes * counted_by_a_node(settings(workers), kNodes)));
      return 0;
    });
    return amount_in(child.hear().value_or("(it has ended)"));
  }

  NodeFiles files_ = Authority().issue();
};

TEST_P(ResidentSessions, GrowWithTheirWorkersByNoMoreThanIsCounted) {
  if (!is_measurable()) GTEST_SKIP() << "a sanitizer has its own allocator";
  const Amount few = amount_with(2), many = amount_with(14);
  const uint64_t resident = many.resident - few.resident, counted = many.counted - few.counted;
  std::printf("%s: %lu KiB resident, %lu counted\n", GetParam().name, resident >> 10,
              counted >> 10);
  EXPECT_LE(resident * 100, counted * 110);
}

INSTANTIATE_TEST_SUITE_P(Over, ResidentSessions,
                         testing::Values(SessionCase{"tcp_4KiB", "tcp", false, "4 KiB"},
                                         SessionCase{"shm_4KiB", "shm", false, "4 KiB"},
                                         SessionCase{"tls_4KiB", "tcp", true, "4 KiB"},
                                         SessionCase{"tcp_16KiB", "tcp", false, "16 KiB"}),
                         [](const auto& each) { return std::string(each.param.name); });

// ------------------------------------------------------------------------------------------ overflow

class ResidentOverflow : public testing::TestWithParam<uint64_t> {};

// With the node that whoever holds a block has for it.
TEST_P(ResidentOverflow, GrowsByNoMoreThanIsCounted) {
  if (!is_measurable()) GTEST_SKIP() << "a sanitizer has its own allocator";
  Child child([bytes = GetParam()](const Child::Side& test) {
    steady_allocator();
    constexpr uint64_t kLimit = uint64_t{64} << 20;
    shuffle::Overflow overflow({.memory_bytes = kLimit}, shuffle::make_spill_file("/tmp", 0));
    shuffle::OverflowUsage usage;
    const std::vector<std::byte> rows(bytes, std::byte{1});
    std::vector<std::unique_ptr<shuffle::FrameNode>> nodes(kLimit / 256);
    size_t count = 0;
    for (const uint64_t until : {kLimit / 16, kLimit / 2}) {
      while (overflow.memory_bytes() < until) {
        auto& node = nodes[count++] = std::make_unique<shuffle::FrameNode>();
        if (!overflow.store(usage, rows, 0, node->stored).ok()) return 1;
      }
      test.say(fmt::format("{} {}", resident_bytes(), overflow.memory_bytes()));
    }
    for (const auto& node : nodes) {
      if (node != nullptr) overflow.free(node->stored);
    }
    return 0;
  });
  const Amount few = amount_in(child.hear().value_or("(it has ended)"));
  const Amount many = amount_in(child.hear().value_or("(it has ended)"));
  EXPECT_EQ(child.wait_for_end(), 0);
  const uint64_t resident = many.resident - few.resident, counted = many.counted - few.counted;
  std::printf("%lu KiB resident, %lu counted\n", resident >> 10, counted >> 10);
  EXPECT_LE(resident * 100, counted * 110);
}

INSTANTIATE_TEST_SUITE_P(OfBytes, ResidentOverflow, testing::Values(1, 100, 3000, 65536, 200'000),
                         [](const auto& each) { return std::to_string(each.param); });

}  // namespace
}  // namespace faro::test
