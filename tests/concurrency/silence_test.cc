// Packets that vanish while both processes live: of one connection of a link or of both, all of them or only large ones,
// at once, while nothing is sent, while the link is set up or mended. Their kernels are told nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "support/certificates.h"
#include "support/log_lines.h"
#include "support/mended_counts.h"
#include "support/mended_pair.h"
#include "support/watchdog.h"

namespace faro::test {
namespace {

using Where = Darkness::Where;
using Steady = std::chrono::steady_clock;

constexpr const char* kUnheard = "on the data connection for liveness.timeout_ms = 2000";

class Silence : public testing::TestWithParam<std::string> {
 protected:
  Silence() { set_log_level(LogLevel::info); }
  ~Silence() override { set_log_level(LogLevel::warning); }

  SettingList with(SettingList more = {}) {
    SettingList all = {{"transport", "tcp"},
                       {"liveness.timeout_ms", "2000"},
                       {"link.mend_ms", "20000"},
                       {"counters.folder", counts_.folder()}};
    if (GetParam() == "tls") all = join(all, files_.settings("on"));
    return join(all, more);
  }
  static SettingList join(SettingList first, const SettingList& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }
  /// Tells what it took; what it may take at most depends on the machine.
  void record_seconds_since(Steady::time_point begin) {
    const std::chrono::duration<double> took = Steady::now() - begin;
    RecordProperty("seconds", fmt::format("{:.2f}", took.count()));
    fmt::print("noticed and mended after {:.2f} s\n", took.count());
  }

  const MendedCounts counts_;
  const Authority authority_;
  const NodeFiles files_ = authority_.issue();
  LogLines log_;
  Watchdog watchdog_{std::chrono::seconds(100), [] { return std::string(); }};
};

INSTANTIATE_TEST_SUITE_P(Connections, Silence, testing::Values("plain", "tls"),
                         [](const auto& each) { return each.param; });

TEST_P(Silence, of_the_data_connection_is_noticed_and_mended_while_rows_are_sent) {
  MendedPair pair(with());
  pair.expect_complete(10);
  Steady::time_point begin;
  pair.before_row = [&](uint64_t row) {
    if (row != 1000 || begin != Steady::time_point()) return;
    begin = Steady::now();
    pair.proxy().darken({Where::data});
  };
  const QueryId id = pair.session(0).begin_query();
  Status other;
  std::thread node([&] { other = pair.run_part(1, id, 2000); });
  EXPECT_TRUE(is_ok(pair.run_part(0, id, 2000)));
  node.join();
  EXPECT_TRUE(is_ok(other));
  record_seconds_since(begin);
  EXPECT_GE(log_.count(kUnheard), 1u);
}

TEST_P(Silence, of_the_data_connection_is_noticed_and_mended_while_nothing_is_sent) {
  MendedPair pair(with());
  pair.expect_complete(10);
  const auto begin = Steady::now();
  pair.proxy().darken({Where::data});
  counts_.wait_until_mended(1);
  record_seconds_since(begin);
  pair.before_row = nullptr;
  pair.expect_complete(1000);
  EXPECT_GE(log_.count(kUnheard), 1u);
}

TEST_P(Silence, of_the_control_connection_or_of_both_fails_by_name) {
  for (const Where where : {Where::control, Where::both}) {
    MendedPair pair(with());
    pair.expect_complete(10);
    pair.proxy().darken({where, true});
    std::array<bool, 2> says{};
    const std::vector<Status> ends = pair.query(1'000'000);
    for (size_t node = 0; node < 2; ++node) {
      EXPECT_EQ(ends[node].code(), Code::peer_lost) << ends[node].to_string();
      says[node] = contains(ends[node].to_string(), "heard nothing from") &&
                   contains(ends[node].to_string(), "for liveness.timeout_ms = 2000");
    }
    EXPECT_TRUE(says[0] || says[1]) << ends[0].to_string() << "; " << ends[1].to_string();
  }
}

// Nothing comes while it is mended, either.
TEST_P(Silence, of_each_further_data_connection_ends_the_link_with_the_last_cause) {
  MendedPair pair(with({{"link.mend_ms", "4000"}}));
  pair.expect_complete(10);
  pair.proxy().darken({Where::data, true});
  std::string said;
  for (const Status& end : pair.query(100'000)) {
    EXPECT_EQ(end.code(), Code::peer_lost) << end.to_string();
    said += end.to_string();
  }
  expect_contains(said, kUnheard);
  expect_contains(said, "the link was not mended within link.mend_ms = 4000: the peer answers");
}

TEST_P(Silence, is_not_what_a_slow_path_shows) {
  MendedPair pair(with());
  pair.expect_complete(10);
  pair.proxy().slow_down(40'000);
  pair.expect_complete(20'000);
  EXPECT_EQ(counts_.mended(), (std::array<uint64_t, 2>{}));
}

TEST_P(Silence, while_the_link_is_set_up_ends_by_name) {
  for (const Where where : {Where::control, Where::data, Where::both}) {
    const auto darken = [&](CuttingProxy& proxy) { proxy.darken({where, true}); };
    const MendedPair pair(with({{"connect.timeout_ms", "2000"}}), {}, darken);
    for (const uint32_t node : {0u, 1u}) {
      EXPECT_FALSE(pair.answers[node].ok());
      expect_contains(pair.answers[node].to_string(), "node");
      expect_contains(pair.answers[node].to_string(), "connect.timeout_ms = 2000");
    }
  }
}

// The connections that are to replace those that were cut.
TEST_P(Silence, while_the_link_is_mended_ends_by_name) {
  for (const Where where : {Where::control, Where::data, Where::both}) {
    MendedPair pair(with({{"link.mend_ms", "3000"}}));
    pair.expect_complete(10);
    pair.proxy().separate();
    pair.proxy().darken({where, true});
    pair.proxy().reunite();
    for (const Status& end : pair.query(100'000)) {
      EXPECT_EQ(end.code(), Code::peer_lost) << end.to_string();
      expect_contains(end.to_string(), "link.mend_ms = 3000");
    }
  }
}

/// With TLS the proxy cannot see where a preamble ends.
class SilenceInTheClear : public Silence {};

INSTANTIATE_TEST_SUITE_P(Connections, SilenceInTheClear, testing::Values("plain"),
                         [](const auto& each) { return each.param; });

constexpr uint64_t kPreamble = sizeof(wire::Preamble);

TEST_P(SilenceInTheClear, of_a_data_connection_that_was_mended_is_mended_again) {
  MendedPair pair(with());
  pair.expect_complete(10);
  pair.proxy().darken({.where = Where::data, .stays = true, .after = kPreamble});
  counts_.wait_until_mended(1);
  pair.proxy().brighten();
  pair.expect_complete(1000);
  EXPECT_GE(counts_.mended()[0], 2u);
}

TEST_P(SilenceInTheClear, of_every_data_connection_is_not_mended_for_ever) {
  MendedPair pair(with());
  pair.expect_complete(10);
  pair.proxy().darken({.where = Where::data, .stays = true, .after = kPreamble});
  std::string said;
  for (const Status& end : pair.query(100'000)) {
    EXPECT_EQ(end.code(), Code::peer_lost) << end.to_string();
    said += end.to_string();
  }
  expect_contains(said,
                  "it has broken 3 times although it was mended, and nothing has got further");
}

// Handshakes and signs of life come through, and so does what the peer has to say. Each row is larger than what comes
// through: a frame of a few small rows, which a slow machine sends, would not be.
TEST_P(Silence, of_large_packets_alone_is_not_mended_for_ever) {
  MendedPair pair(with({{"ring.bytes", "256 KiB"}, {"transfer.threshold_bytes", "64 KiB"}}));
  pair.expect_complete(10);
  pair.proxy().darken({Where::data, true, 8000});
  pair.row_bytes = 20'000;
  std::string said;
  for (const Status& end : pair.query(1000)) {
    EXPECT_EQ(end.code(), Code::peer_lost) << end.to_string();
    said += end.to_string();
  }
  expect_contains(said,
                  "it has broken 3 times although it was mended, and nothing has got further");
  // Why, at last.
  EXPECT_TRUE(contains(said, kUnheard) || contains(said, "has broken on its side")) << said;
}

}  // namespace
}  // namespace faro::test
