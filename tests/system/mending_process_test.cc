// Links between processes, one of which is killed: the other knows at once that it is dead, though their connection was broken before, and
// was not to be given up for an hour.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "faro/log.h"
#include "support/child.h"
#include "support/cutting_proxy.h"
#include "support/expect.h"
#include "support/query_end.h"
#include "support/session_cluster.h"
#include "system/node_processes.h"

namespace faro::test {
namespace {

class MendingProcesses : public testing::TestWithParam<const char*> {
 protected:
  /// What ends sooner than these was noticed neither by silence nor after a time.
  Result<std::unique_ptr<Session>> open(uint32_t node, const std::string& addresses,
                                        ListeningSocket&& listener) const {
    set_log_level(LogLevel::off);
    auto config = config_of(node, addresses,
                            small_rings({{"transport", GetParam()},
                                         {"cluster.id", "mended"},
                                         {"liveness.timeout_ms", "3600000"},
                                         {"link.mend_ms", "3600000"}}));
    if (!config.ok()) return config.status();
    return Session::open(*config, std::move(listener));
  }
  /// Why a query fails for which the other node does nothing, and dies of `kill`.
  template <typename Kill>
  static Status failure_of_query(Session& session, const Kill& kill) {
    const QueryId id = session.begin_query();
    Worker& worker = session.worker(0);
    Status failure;
    {
      Shuffle shuffle = value_of(worker.open_shuffle({id, 0, sizeof(uint64_t), {}, {}}));
      kill();
      Batch batch;
      const Outcome outcome =
          shuffle.receiver()->receive(batch, Wait::at_most(std::chrono::seconds(40)));
      EXPECT_EQ(outcome, Outcome::failed) << "it waits";
      failure = shuffle.status();
    }
    Status cause;
    (void)end_query(worker, id, failure, cause);
    worker.release_ownership();
    return cause;
  }
};

INSTANTIATE_TEST_SUITE_P(over, MendingProcesses, testing::Values("shm", "tcp"),
                         [](const auto& over) { return std::string(over.param); });

// Node 1 has dialled. If it is killed, node 0 asks where it listened; if node 0 is, node 1 dials again.
TEST_P(MendingProcesses,
       that_are_killed_are_lost_at_once_though_their_connection_was_broken_before) {
  for (const uint32_t victim : {0u, 1u}) {
    for (const bool breaks : {false, true}) {
      SCOPED_TRACE(fmt::format("node {} is killed, breaks: {}", victim, breaks));
      BoundNodes bound(2);
      const std::string target = bound.listeners[0].address();
      const std::string last = bound.listeners[1].address();
      Child child([&](const Child::Side& parent) {
        ListeningSocket own = std::move(bound.listeners[victim]);
        bound.listeners.clear();
        const auto session = open(victim, parent.hear(), std::move(own));
        parent.say(session.ok() ? "open" : session.status().to_string());
        parent.hear();
        return 0;
      });
      ListeningSocket own = std::move(bound.listeners[1 - victim]);
      bound.listeners.clear();  // or it would not be refused at the other's
      CuttingProxy proxy(target);
      proxy.end_with_target();
      const std::string addresses[2] = {target + "," + last, proxy.address() + "," + last};
      child.say(addresses[victim]);
      const auto session = open(1 - victim, addresses[1 - victim], std::move(own));
      ASSERT_TRUE(is_ok(session));
      ASSERT_EQ(child.hear(), "open");  // or its link would not be mended
      const Status cause = failure_of_query(**session, [&] {
        if (breaks) proxy.separate();
        child.signal(SIGKILL);
        EXPECT_EQ(child.wait_for_end(), -SIGKILL);
        proxy.reunite();
      });
      EXPECT_EQ(cause.code(), Code::peer_lost) << cause.to_string();
      expect_contains(cause.message(), fmt::format("node {} ", victim));
      expect_contains(cause.message(), "refused");
    }
  }
}

}  // namespace
}  // namespace faro::test
