// Links whose connections break while both processes live: nothing is lost, whichever connection is cut and wherever.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "faro/session.h"
#include "support/certificates.h"
#include "support/cutting_proxy.h"
#include "support/expect.h"
#include "support/query_end.h"
#include "support/session_cluster.h"
#include "support/watchdog.h"

namespace faro::test {
namespace {

using Of = Cut::Of;
using Way = Cut::Way;

/// Two nodes of one worker each. Node 1 dials node 0 through a proxy.
class MendedPair {
 public:
  /// `own`: what one of them has beside that.
  explicit MendedPair(const SettingList& settings, const std::array<SettingList, 2>& own = {}) {
    std::vector<Listener> listeners;
    for (int node = 0; node < 2; ++node) listeners.push_back(*Listener::bind("127.0.0.1:0"));
    const std::string last = listeners[1].address();
    proxy_.emplace(listeners[0].address());
    EXPECT_TRUE(proxy_->is_ready());
    const std::string addresses[2] = {listeners[0].address() + "," + last,
                                      proxy_->address() + "," + last};
    SettingList all = small_rings(settings);
    all.emplace_back("cluster.id", last);
    both([&](uint32_t node) {
      SettingList some = all;
      some.insert(some.end(), own[node].begin(), own[node].end());
      const auto config = config_of(node, addresses[node], some);
      ASSERT_TRUE(is_ok(config));
      auto session = Session::open(*config, std::move(listeners[node]));
      ASSERT_TRUE(is_ok(session));
      sessions_[node] = std::move(*session);
    });
  }
  ~MendedPair() {
    both([&](uint32_t node) { sessions_[node].reset(); });
  }

  CuttingProxy& proxy() { return *proxy_; }
  Session& session(uint32_t node) { return *sessions_[node]; }
  std::unique_ptr<Session>& held(uint32_t node) { return sessions_[node]; }

  /// A query in which each worker sends that many numbers to each; what its end says at either node.
  std::vector<Status> query(uint64_t rows) {
    const QueryId id = session(0).begin_query();
    std::vector<Status> ends(2);
    both([&](uint32_t node) { ends[node] = run_part(node, id, rows); });
    return ends;
  }
  /// A worker's part of one.
  Status run_part(uint32_t node, const QueryId& id, uint64_t rows) {
    Worker& worker = session(node).worker(0);
    Status failure;
    {
      auto opened = worker.open_shuffle({id, 0, sizeof(uint64_t), {}, {}});
      failure = opened.ok() ? exchange(*opened, rows) : opened.status();
    }
    Status cause;
    (void)end_query(worker, id, failure, cause);
    worker.release_ownership();
    return cause;
  }
  void expect_complete(uint64_t rows) {
    for (const Status& end : query(rows)) EXPECT_TRUE(is_ok(end));
  }

 private:
  template <typename Body>
  static void both(Body&& body) {
    std::thread other([&body] { body(1u); });
    body(0u);
    other.join();
  }

  /// Takes rows while it sends, so that neither of the workers waits for the other.
  static Status exchange(Shuffle& shuffle, uint64_t rows) {
    uint64_t sum = 0;
    uint64_t count = 0;
    const auto take = [&](Wait wait) {
      Batch batch;
      const Outcome outcome = shuffle.receiver()->receive(batch, wait);
      if (outcome != Outcome::done) return outcome;
      for (const std::span<const std::byte> row : batch.each_row()) {
        uint64_t number = 0;
        std::memcpy(&number, row.data(), sizeof number);
        sum += number;
        ++count;
      }
      return outcome;
    };
    const auto until_done = [&](const auto& attempt) {
      Outcome outcome = attempt();
      while (outcome != Outcome::done && outcome != Outcome::failed) {
        if (take(Wait::none()) == Outcome::failed) return false;
        outcome = attempt();
      }
      return outcome == Outcome::done;
    };
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint32_t to = 0; to < 2; ++to) {
        const auto bytes = std::as_bytes(std::span(&row, 1));
        if (!until_done([&] { return shuffle.sender()->send(to, bytes, Wait::none()); }))
          return shuffle.status();
      }
    }
    if (!until_done([&] { return shuffle.sender()->finish(Wait::none()); }))
      return shuffle.status();
    Outcome outcome = Outcome::done;
    while (outcome == Outcome::done) outcome = take(Wait::forever());
    if (outcome == Outcome::failed) return shuffle.status();
    EXPECT_EQ(count, 2 * rows);
    EXPECT_EQ(sum, rows * (rows - 1));
    return Status::Ok();
  }

  std::optional<CuttingProxy> proxy_;
  std::unique_ptr<Session> sessions_[2];
};

class Mending : public testing::TestWithParam<const char*> {
 protected:
  SettingList with(SettingList more = {}) const {
    more.emplace_back("transport", GetParam());
    return more;
  }
  bool has_data() const { return std::string(GetParam()) == "tcp"; }

  Watchdog watchdog_{std::chrono::seconds(100), [] { return std::string(); }};
};

INSTANTIATE_TEST_SUITE_P(Transports, Mending, testing::Values("shm", "tcp"),
                         [](const auto& each) { return std::string(each.param); });

TEST_P(Mending, no_row_is_lost_wherever_a_connection_is_cut) {
  MendedPair pair(with());
  pair.expect_complete(10);
  for (const Way way : {Way::to_listener, Way::to_dialler}) {
    // Inside of a length, a message, a header, a payload, between them, and behind several rings full.
    for (const uint64_t bytes : {1u, 3u, 4u, 5u, 17u, 64u, 300u}) {
      SCOPED_TRACE(fmt::format("{} bytes, way {}", bytes, static_cast<int>(way)));
      pair.proxy().cut({{Of::control, way, bytes}});
      while (pair.proxy().left() != 0 && !HasFailure()) pair.expect_complete(300);
    }
    if (!has_data()) continue;
    for (const uint64_t bytes : {1u, 15u, 16u, 17u, 80u, 1000u, 4096u, 10000u, 30000u}) {
      SCOPED_TRACE(fmt::format("{} bytes of data, way {}", bytes, static_cast<int>(way)));
      pair.proxy().cut({{Of::data, way, bytes}});
      while (pair.proxy().left() != 0 && !HasFailure()) pair.expect_complete(3000);
    }
  }
  pair.expect_complete(1000);
}

// Most of the next cuts come while the link is mended from the last one, at every place of that.
TEST_P(Mending, a_hundred_cuts_in_a_row_lose_no_query) {
  MendedPair pair(with({{"link.mend_ms", "60000"}}));
  pair.expect_complete(10);
  std::vector<Cut> cuts;
  for (uint64_t i = 0; i < 100; ++i) {
    const Way way = i % 3 == 0 ? Way::to_dialler : Way::to_listener;
    const Of of = has_data() && i % 2 == 0 ? Of::data : Of::control;
    const uint64_t beyond = i % 4 == 3 ? 450 : 0;  // what mending takes
    cuts.push_back({of, way, 1 + beyond + (of == Of::data ? 37 * i : 5 * i)});
  }
  pair.proxy().cut(cuts);
  while (pair.proxy().left() != 0 && !HasFailure()) pair.expect_complete(300);
  pair.expect_complete(1000);
}

// The handshakes of TLS are cut, too.
TEST_P(Mending, goes_on_with_tls) {
  const Authority authority;
  const NodeFiles files = authority.issue();
  MendedPair pair(with(files.settings()));
  pair.expect_complete(10);
  for (const Way way : {Way::to_listener, Way::to_dialler}) {
    for (const uint64_t bytes : {2000u, 100u, 3000u, 600u, 1500u}) {
      SCOPED_TRACE(fmt::format("{} bytes, way {}", bytes, static_cast<int>(way)));
      pair.proxy().cut({{Of::any, way, bytes}});
      while (pair.proxy().left() != 0 && !HasFailure()) pair.expect_complete(300);
    }
  }
  pair.expect_complete(1000);
}

// The side that accepted the link cannot wait for the other to dial: it asks.
TEST_P(Mending, ends_at_once_when_the_other_process_is_gone) {
  MendedPair pair(with({{"link.mend_ms", "3600000"}}));
  pair.expect_complete(10);
  pair.proxy().separate();
  const QueryId id = pair.session(0).begin_query();
  Status end;
  std::thread waits([&] { end = pair.run_part(0, id, 10); });
  pair.held(1).reset();
  waits.join();
  EXPECT_EQ(end.code(), Code::peer_lost) << end.to_string();
}

TEST_P(Mending, takes_link_mend_ms_at_most) {
  MendedPair pair(with({{"link.mend_ms", "200"}}));
  pair.expect_complete(10);
  pair.proxy().separate();
  // The side whose limit ends first tells the other that there is no such link, if that just asks.
  uint32_t limited = 0;
  for (const Status& end : pair.query(1000)) {
    EXPECT_EQ(end.code(), Code::peer_lost);
    const bool is_limit = contains(end.to_string(), "was not mended within link.mend_ms = 200");
    limited += is_limit ? 1 : 0;
    EXPECT_TRUE(is_limit || contains(end.to_string(), "does not have that link"))
        << end.to_string();
  }
  EXPECT_GE(limited, 1u);
}

TEST_P(Mending, is_not_done_if_a_side_does_not_offer_it) {
  for (const size_t node : {0u, 1u}) {
    std::array<SettingList, 2> own;
    own[node] = {{"link.mend_ms", "0"}};
    MendedPair pair(with({}), own);
    pair.expect_complete(10);
    pair.proxy().separate();
    for (const Status& end : pair.query(1000)) {
      expect_error(end, Code::peer_lost, {"is lost"});
      EXPECT_FALSE(contains(end.to_string(), "was not mended")) << end.to_string();
    }
  }
}

}  // namespace
}  // namespace faro::test
