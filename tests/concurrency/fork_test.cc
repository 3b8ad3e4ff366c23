// A forked child that exits, or destroys what it has copies of, does not disturb its parent: endpoints and what programs hold of
// them, batches, rows that were claimed, in C++ and in C. session_files_test has sessions.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/over_fork.h"
#include "faro/c.h"
#include "faro/log.h"
#include "support/burst.h"
#include "support/session_cluster.h"
#include "support/temporary_folder.h"

namespace {
bool exits_in_child = false;
}

// Asked by LeakSanitizer as a process exits. A child lacks the parent's threads, so that what these refer to looks leaked.
extern "C" [[gnu::visibility("default")]] int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return exits_in_child ? 1 : 0; }

namespace faro::test {
namespace {

using Kind = ChannelEvent::Kind;

void expect_in_child(const std::function<int()>& body) {
  Child child([&](const Child::Side&) {
    alarm(20);  // a wait for a thread that is not there does not end
    return body();
  });
  EXPECT_EQ(child.wait_for_end(), 0);
}

/// A server and a client with a channel.
class EndpointInAForkedChild : public testing::TestWithParam<std::string> {
 protected:
  EndpointInAForkedChild() {
    EXPECT_TRUE(is_ok(config_.set("counters.folder", folder_.path())));
    EXPECT_TRUE(is_ok(config_.set("metrics.listen", "127.0.0.1:0")));
    server_.emplace(config_, EndpointSpec{.name = "server"});
    client_.emplace(config_, EndpointSpec{.name = "client"});
    connect();
    files_ = files();
    EXPECT_EQ(files_, 2);
  }

  void connect() {
    id_ = client_->connect(*server_);
    client_->expect(Kind::opened);
    at_server_ = server_->expect(Kind::opened).channel;
  }
  /// The channel that there is goes on, over its first connections, and there may be others.
  void expect_undisturbed() {
    for (EndpointSide* const side : {&*client_, &*server_}) {
      const auto metrics = side->endpoint().metrics();
      ASSERT_TRUE(is_ok(metrics));
      for (const auto& channel : metrics->channels) EXPECT_EQ(channel.traffic.mended, 0u);
    }
    ASSERT_TRUE(client_->send(id_, "frame"));
    server_->expect_frame("frame");
    ASSERT_TRUE(server_->send(at_server_, "answer"));
    client_->expect_frame("answer");
    connect();
    EXPECT_EQ(files(), files_) << "the counters of the parent";
  }
  long files() const {
    const std::filesystem::directory_iterator all(folder_.path());
    return std::distance(begin(all), end(all));
  }

  const TemporaryFolder folder_;
  Config config_ = burst_config(GetParam());
  std::optional<EndpointSide> server_;
  std::optional<EndpointSide> client_;
  ChannelId id_{};
  ChannelId at_server_{};
  long files_ = 0;
};

INSTANTIATE_TEST_SUITE_P(over, EndpointInAForkedChild,
                         testing::Values("shm", "tcp", "tls", "tls_shm"),
                         [](const auto& over) { return over.param; });

TEST_P(EndpointInAForkedChild, may_be_closed_and_destroyed) {
  expect_in_child([&] {
    server_->endpoint().close();
    server_.reset();
    client_.reset();
    return 0;
  });
  expect_undisturbed();
}

TEST_P(EndpointInAForkedChild, may_stand_in_a_global_when_the_child_exits) {
  static std::optional<EndpointSide> server;
  static std::optional<EndpointSide> client;
  server = std::move(server_);
  client = std::move(client_);
  expect_in_child([&]() -> int {
    exits_in_child = true;
    std::exit(0);
  });
  server_ = std::move(server);
  client_ = std::move(client);
  expect_undisturbed();
}

TEST_P(EndpointInAForkedChild, may_be_destroyed_with_rings_and_descriptors_that_were_asked_for) {
  ASSERT_TRUE(is_ok(server_->poller().descriptor()));
  auto rings = server_->poller().rings(at_server_);
  ASSERT_TRUE(is_ok(rings));
  expect_in_child([&] {
    server_.reset();
    rings->memory.reset();
    client_.reset();
    return 0;
  });
  expect_undisturbed();
  rings->memory.reset();
}

TEST_P(EndpointInAForkedChild, may_be_that_of_a_child_of_a_child) {
  expect_in_child([&] {
    Child grandchild([&](const Child::Side&) {
      server_.reset();
      client_.reset();
      return 0;
    });
    return grandchild.wait_for_end();
  });
  expect_undisturbed();
}

TEST_P(EndpointInAForkedChild, leaves_room_for_one_of_the_childs_own) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer lets a child of several threads start none";
#endif
  expect_in_child([&] {
    server_.reset();
    EndpointSide server(config_, {.name = "another server"});
    EndpointSide client(config_, {.name = "another client"});
    const ChannelId id = client.connect(server);
    client.expect(Kind::opened);
    server.expect(Kind::opened);
    return client.send(id, "frame") && files() == files_ + 2 ? 0 : 1;
  });
  expect_undisturbed();
}

TEST(HandlesOfC, of_a_forked_child_may_be_destroyed) {
  Config config;
  ASSERT_TRUE(is_ok(config.set("transport", "tcp")));
  faro_config* const config_of_c = faro_config_create();
  faro_config_set(config_of_c, "transport", "tcp");
  faro_endpoint* server = nullptr;
  ASSERT_EQ(faro_endpoint_open(config_of_c, nullptr, &server), FARO_CODE_OK);
  faro_config_destroy(config_of_c);
  expect_in_child([&] {
    faro_endpoint_close(server);
    faro_endpoint_destroy(server);
    return 0;
  });
  EndpointSide client(config, {.name = "client"});
  client.connect(faro_endpoint_address(server));
  client.expect(Kind::opened);
  faro_endpoint_destroy(server);
}

// Over shared memory a child shares the rings with its parent and the peers.
TEST(BatchOfAForkedChild, is_not_released_and_claims_are_not_aborted) {
  SessionCluster cluster(2, small_rings({{"transport", "shm"}}));
  ASSERT_TRUE(is_ok(cluster.status()));
  const QueryId query = cluster[0].begin_query();
  const ShuffleSpec spec{query, 0, 8, {0}, {1}};
  Shuffle from = std::move(*cluster.worker(0).open_shuffle(spec));
  Shuffle to = std::move(*cluster.worker(1).open_shuffle(spec));
  const auto row = [](uint64_t value) {
    std::vector<std::byte> bytes(8);
    std::memcpy(bytes.data(), &value, bytes.size());
    return bytes;
  };
  ASSERT_EQ(from.sender()->send(0, row(1)), Outcome::done);
  ASSERT_EQ(from.sender()->flush(), Outcome::done);
  Batch batch;
  ASSERT_EQ(to.receiver()->receive(batch), Outcome::done);
  RowClaim claim;
  ASSERT_EQ(from.sender()->claim(0, 8, claim), Outcome::done);
  std::memcpy(claim.data().data(), row(2).data(), 8);
  expect_in_child([&] {
    { const Batch ended = std::move(batch); }
    { const RowClaim ended = std::move(claim); }
    return 0;
  });
  ASSERT_TRUE(is_ok(claim.commit()));
  // As many as the rings hold: what the child had given back would be written over.
  uint64_t sent = 2;
  while (sent < 50'000 && from.sender()->send(0, row(sent + 1), Wait::none()) == Outcome::done)
    ++sent;
  ASSERT_EQ(batch.rows<uint64_t>().front(), 1u);
  uint64_t next = 2;
  while (next <= sent / 2) {  // those behind may lie in an open frame
    if (to.receiver()->receive(batch, Wait::none()) != Outcome::done) continue;
    for (const uint64_t value : batch.rows<uint64_t>()) ASSERT_EQ(value, next++);
  }
}

TEST(Birthplace, is_another_one_in_each_forked_child) {
  const base::Birthplace here;
  EXPECT_FALSE(here.forked());
  EXPECT_FALSE(base::Birthplace().forked());
  expect_in_child([&] {
    const base::Birthplace in_child;
    if (!here.forked() || in_child.forked()) return 1;
    Child grandchild([&](const Child::Side&) {
      return here.forked() && in_child.forked() && !base::Birthplace().forked() ? 0 : 1;
    });
    return grandchild.wait_for_end();
  });
  EXPECT_FALSE(here.forked());
}

}  // namespace
}  // namespace faro::test
