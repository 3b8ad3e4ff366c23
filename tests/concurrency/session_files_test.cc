// What a session does with the files, limits and processes around it: folders that are missing, a file size limit, exit and
// fork; and settings that name no address.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "faro/log.h"
#include "support/child.h"
#include "support/session_cluster.h"
#include "support/temporary_folder.h"

namespace faro::test {
namespace {

std::vector<std::byte> filled(size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

TEST(SessionSettings, a_port_that_does_not_exist_is_refused_by_name) {
  const struct {
    const char* key;
    const char* value;
  } cases[] = {{"cluster.nodes", "127.0.0.1:65536"},  {"cluster.nodes", "127.0.0.1:70000"},
               {"cluster.nodes", "127.0.0.1:-1"},     {"cluster.nodes", "127.0.0.1:http"},
               {"cluster.nodes", "127.0.0.1:"},       {"cluster.listen", "127.0.0.1:70000"},
               {"metrics.listen", "127.0.0.1:70000"}, {"cluster.nodes", ":7000"}};
  for (const auto& each : cases) {
    Config config;
    ASSERT_TRUE(config.set("cluster.nodes", "127.0.0.1:7000").ok());
    ASSERT_TRUE(config.set(each.key, each.value).ok());
    expect_error(Session::open(config).status(), Code::config_invalid, {each.key, each.value});
  }
  expect_error(ListeningSocket::bind("127.0.0.1:65536").status(), Code::config_invalid,
               {"127.0.0.1:65536"});
}

TEST(SessionFolders, that_are_missing_are_found_at_open_with_key_value_and_reason) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/file";
  { const std::unique_ptr<FILE, int (*)(FILE*)> made(fopen(file.c_str(), "w"), fclose); }
  for (const std::string key : {"overflow.folder", "counters.folder"}) {
    const SessionCluster missing(1, {{key, folder.path() + "/none"}});
    expect_error(missing.status(), Code::config_invalid,
                 {key + " = " + folder.path() + "/none", "No such file or directory"});
    const SessionCluster no_folder(1, {{key, file}});
    expect_error(no_folder.status(), Code::config_invalid, {key, "Not a directory"});
  }
  // No file will ever be made there.
  const SessionCluster unused(
      1, {{"overflow.folder", folder.path() + "/none"}, {"overflow.file_bytes", "0"}});
  EXPECT_TRUE(is_ok(unused.status()));
}

/// Sends to itself until that fails, and says why.
Status fill_overflow(SessionCluster& cluster) {
  const QueryId query = cluster[0].begin_query();
  FARO_ASSIGN_OR_RETURN(const Shuffle shuffle,
                        cluster[0].worker(0).open_shuffle({query, 0, 1000, {}, {}}));
  for (int i = 0; i < 100'000; ++i) {
    if (shuffle.sender()->send(0, filled(1000, i)) == Outcome::failed) return shuffle.status();
  }
  return Status::Ok();
}

TEST(FileSizeLimit, is_an_error_that_names_it_and_kills_nobody) {
  const TemporaryFolder folder;
  Child child([&](const Child::Side& parent) {
    std::string log;
    set_log_sink([&log](LogLevel, std::string_view line) { log += line; });
    constexpr rlim_t kLimit = 4096;
    const rlimit limit{kLimit, kLimit};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    SessionCluster cluster(1, small_rings({{"overflow.memory_bytes", "0"},
                                           {"counters.folder", folder.path()},
                                           {"overflow.folder", folder.path()}}));
    parent.say(cluster.status().to_string());
    if (!cluster.status().ok()) return 2;
    parent.say(log);
    parent.say(fill_overflow(cluster).to_string());
    set_log_sink({});
    return 0;
  });
  EXPECT_EQ(child.hear(), "ok");
  expect_contains(child.hear().value_or("nothing"), "`ulimit -f` is 4096 bytes");
  const std::string failed = child.hear().value_or("nothing");
  expect_contains(failed, "overflow_exhausted");
  expect_contains(failed, "`ulimit -f` is 4096 bytes");
  EXPECT_EQ(child.wait_for_end(), 0);
}

TEST(Exit, takes_the_counters_file_along) {
  const TemporaryFolder folder;
  Child child([&](const Child::Side&) {
    const SettingList settings = {{"counters.folder", folder.path()}};
    // A session that nobody closes, such as a JVM's after System.exit.
    static auto* const cluster = new SessionCluster(1, settings);
    if (!cluster->status().ok() || std::filesystem::is_empty(folder.path())) _exit(1);
    std::exit(0);
    return 0;
  });
  EXPECT_EQ(child.wait_for_end(), 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

/// Rows go from node 0 to node 1 and arrive.
void expect_connected(SessionCluster& cluster) {
  const QueryId query = cluster[0].begin_query();
  const ShuffleSpec spec{query, 0, 8, {0}, {1}};
  Result<Shuffle> from = cluster.worker(0).open_shuffle(spec);
  Result<Shuffle> to = cluster.worker(1).open_shuffle(spec);
  ASSERT_TRUE(from.ok() && to.ok());
  EXPECT_EQ(from->sender()->send(0, filled(8, 1)), Outcome::done);
  EXPECT_EQ(from->sender()->finish(), Outcome::done);
  Batch batch;
  EXPECT_EQ(to->receiver()->receive(batch), Outcome::done) << to->status().to_string();
  EXPECT_EQ(batch.row_count(), 1u);
  batch.release();
  EXPECT_EQ(to->receiver()->receive(batch), Outcome::end_of_stream) << to->status().to_string();
}

TEST(Fork, a_child_that_exits_or_destroys_a_session_does_not_disturb_its_parent) {
  for (const char* const transport : {"shm", "tcp"}) {
    const TemporaryFolder folder;
    auto cluster = std::make_unique<SessionCluster>(
        2, small_rings({{"transport", transport}, {"counters.folder", folder.path()}}));
    ASSERT_TRUE(is_ok(cluster->status()));
    expect_connected(*cluster);
    const QueryId query = (*cluster)[0].begin_query();
    Shuffle open = std::move(*cluster->worker(0).open_shuffle({query, 0, 8, {0}, {1}}));
    const Child destroys([&](const Child::Side&) {
      open.close();
      for (uint32_t node = 0; node < 2; ++node) {
        if (!cluster->session(node)->close().ok()) return 1;
        cluster->session(node).reset();
      }
      return 0;
    });
    EXPECT_EQ(const_cast<Child&>(destroys).wait_for_end(), 0);
    const Child exits([&](const Child::Side&) {
      std::exit(0);
      return 0;
    });
    EXPECT_EQ(const_cast<Child&>(exits).wait_for_end(), 0);
    expect_connected(*cluster);
    EXPECT_EQ(open.sender()->send(0, filled(8, 1)), Outcome::done) << open.status().to_string();
    EXPECT_FALSE(std::filesystem::is_empty(folder.path())) << "the counters of the parent";
  }
}

TEST(Messages, name_a_stage_that_is_negative_as_it_was_given) {
  SessionCluster cluster(1, small_rings());
  const ShuffleSpec spec{cluster[0].begin_query(), static_cast<uint32_t>(-1), 0, {}, {}};
  expect_error(cluster.worker(0).open_shuffle(spec).status(), Code::invalid_argument,
               {"stage -1 "});
}

TEST(Messages, do_not_claim_what_nobody_knows_about_a_query) {
  SessionCluster cluster(1, small_rings());
  QueryId query = cluster[0].begin_query();
  ShuffleSpec spec{query, 0, 0, {}, {}};
  spec.query.counter += 5;
  expect_contains(cluster.worker(0).open_shuffle(spec).status().message(), "was never begun");
  spec.query = query;
  spec.query.incarnation ^= 1;
  expect_contains(cluster.worker(0).open_shuffle(spec).status().message(),
                  "was begun by another process");
  spec.query = query;
  spec.query.issuer = 7;
  expect_contains(cluster.worker(0).open_shuffle(spec).status().message(),
                  "was never begun: the nodes of this cluster are 0 … 0");
  spec.query = {};
  expect_contains(cluster.worker(0).open_shuffle(spec).status().message(), "count from 1");
}

TEST(Messages, name_the_host_of_a_missing_node_that_cannot_be_resolved) {
  ListeningSocket own = ListeningSocket::bind("127.0.0.1:0").value();
  const std::string addresses = own.address() + ",no-such-host.invalid:7000";
  const Config config = config_of(0, addresses, {{"connect.timeout_ms", "2000"}}).value();
  set_log_level(LogLevel::off);
  const Status status = Session::open(config, std::move(own)).status();
  set_log_level(LogLevel::warning);
  expect_error(status, Code::connect_failed, {"'no-such-host.invalid:7000' cannot be resolved"});
}

}  // namespace
}  // namespace faro::test
