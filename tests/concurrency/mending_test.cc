// Links whose connections break while both processes live: nothing is lost, whichever connection is cut and wherever.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "counters/counter_view.h"
#include "counters/folder.h"
#include "support/certificates.h"
#include "support/mended_pair.h"
#include "support/temporary_folder.h"
#include "support/watchdog.h"

namespace faro::test {
namespace {

using Of = Cut::Of;
using Way = Cut::Way;

class Mending : public testing::TestWithParam<std::string> {
 protected:
  SettingList with(SettingList more = {}) const {
    more.emplace_back("transport", GetParam());
    return more;
  }
  /// Rows go through the proxy, too.
  bool has_data() const { return GetParam() == "tcp"; }
  /// The step between places to cut at, so that it takes seconds: control connections at every byte
  /// over shared memory; elsewhere they carry almost the same. Data connections have headers of 16
  /// bytes and frames of multiples of 64, and the step meets every byte of these.
  uint64_t step(Of of) const {
#if defined(FARO_SANITIZE_ADDRESS) || defined(FARO_SANITIZE_THREAD)
    return of == Of::data ? 13 : 11;
#else
    if (of == Of::data) return 5;
    if (GetParam() == "shm") return 1;
    return GetParam() == "tcp" ? 3 : 61;
#endif
  }

  Watchdog watchdog_{std::chrono::seconds(250), [] { return std::string(); }};
};

INSTANTIATE_TEST_SUITE_P(Transports, Mending, testing::ValuesIn(transports_to_test({"shm", "tcp"})),
                         [](const auto& each) { return each.param; });

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

// The handshake of a mending, its RESUMEs, LINK, SETUPs and READY, and the messages of a query; over tcp also the RESUMEs of the
// rings and the frames behind them.
TEST_P(Mending, is_done_whichever_of_its_bytes_is_the_last) {
  MendedPair pair(with({{"link.mend_ms", "60000"}}));
  pair.expect_complete(10);
  CuttingProxy& proxy = pair.proxy();
  const auto mend = [&](const std::vector<Cut>& cuts) {
    proxy.separate();
    proxy.cut(cuts);
    proxy.reunite();
    do {
      pair.expect_complete(5);
    } while (proxy.left() != 0 && !HasFailure());
  };
  for (const Of of : {Of::control, Of::data}) {
    if (of == Of::data && !has_data()) continue;
    for (const Way way : {Way::to_listener, Way::to_dialler}) {
      const uint64_t before = proxy.passed(of, way);
      mend({});
      const uint64_t length = proxy.passed(of, way) - before;
      EXPECT_GT(length, 100u);
      for (uint64_t bytes = 1; bytes <= length && !HasFailure(); bytes += step(of)) {
        SCOPED_TRACE(fmt::format("{} bytes of {}, way {}", bytes,
                                 of == Of::control ? "control" : "data", static_cast<int>(way)));
        mend({{of, way, bytes}});
      }
    }
  }
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

/// What the nodes of a pair show of the link to each other.
class ShownLinks {
 public:
  explicit ShownLinks(const std::string& folder) {
    for (const std::string& path : counters::counter_files_in(folder))
      views_.push_back(value_of(counters::CounterView::open(path)));
  }
  std::vector<counters::PeerValues> read() {
    std::vector<counters::PeerValues> links;
    for (const auto& view : views_) {
      const counters::NodeView node = view->read();
      links.push_back(node.peers[1 - node.node].counters);
    }
    return links;
  }

 private:
  std::vector<std::unique_ptr<counters::CounterView>> views_;
};

TEST_P(Mending, is_counted_and_seen_while_it_goes_on) {
  TemporaryFolder folder;
  MendedPair pair(with({{"link.mend_ms", "60000"}, {"counters.folder", folder.path()}}));
  pair.expect_complete(10);
  ShownLinks shown(folder.path());
  for (const counters::PeerValues& link : shown.read()) {
    EXPECT_EQ(link.mended, 0u);
    EXPECT_EQ(link.mending_ns, 0u);
  }
  pair.proxy().cut({{Of::control, Way::to_listener, 1}});
  while (pair.proxy().left() != 0 && !HasFailure()) pair.expect_complete(300);
  pair.expect_complete(300);
  for (const counters::PeerValues& link : shown.read()) {
    EXPECT_GE(link.mended, 1u);
    EXPECT_EQ(link.mending_ns, 0u);
    EXPECT_EQ(link.connected, 1u);
  }
  pair.proxy().separate();
  const auto are_mended = [&] {
    for (const counters::PeerValues& link : shown.read())
      if (link.mending_ns == 0) return false;
    return true;
  };
  while (!are_mended()) std::this_thread::yield();  // the watchdog ends what hangs
}

// The handshakes of TLS are cut, too.
TEST_P(Mending, goes_on_with_tls) {
  const Authority authority;
  const NodeFiles files = authority.issue();
  MendedPair pair(with(files.settings(GetParam() == "verbs" ? "control" : "on")));
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
  const auto begin = std::chrono::steady_clock::now();
  pair.proxy().separate();
  // The side whose limit ends first tells the other that there is no such link, if that just asks.
  uint32_t limited = 0;
  const std::vector<Status> ends = pair.query(1000);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(200));
  for (const Status& end : ends) {
    EXPECT_EQ(end.code(), Code::peer_lost);
    const bool is_limit = contains(end.to_string(), "was not mended within link.mend_ms = 200");
    limited += is_limit ? 1 : 0;
    EXPECT_TRUE(is_limit || contains(end.to_string(), "does not have that link"))
        << end.to_string();
    // Why it was broken.
    if (is_limit) expect_contains(end.message(), "connection");
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
