// faro stat, top and explain on nodes that are processes of their own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "command_runner.h"
#include "counters/counter_file.h"
#include "counters/endpoint_file.h"
#include "faro/log.h"
#include "faro/nodes.h"
#include "support/child.h"
#include "support/endpoint_pair.h"
#include "support/held_address.h"
#include "support/query_end.h"
#include "support/session_cluster.h"
#include "support/temporary_folder.h"
#include "system/node_processes.h"

namespace faro::test {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kRowBytes = 64;
constexpr int kRows = 2000;  // many times the rings of 4 KiB

ShuffleSpec from_0_to_1(const QueryId& query) { return {query, 5, kRowBytes, {0}, {1}}; }

/// Two nodes of one worker each, both processes. Worker 0 sends to worker 1 in stage 5; worker 1 takes
/// one batch and keeps it until it is told to go on.
class TwoNodes {
 public:
  explicit TwoNodes(const std::string& folder) {
    start(0, folder, send_all);
    start(1, folder, receive_late);
    bound_.listeners.clear();
  }

  Child& node(uint32_t n) { return *nodes_[n]; }

  /// Until worker 1 holds its batch. Returns the query's name.
  std::string start_query() {
    const std::string query = node(0).hear().value_or("");
    node(1).say(query);
    EXPECT_EQ(node(1).hear().value_or("ended"), "holding");
    return query_in(query).to_string();
  }
  void go_on() { node(1).say("go on"); }
  /// Both nodes end their query and keep their session until `close`.
  void expect_done() {
    for (const auto& child : nodes_) EXPECT_EQ(child->hear().value_or("ended"), "done");
  }
  void close() {
    for (const auto& child : nodes_) child->say("close");
    for (const auto& child : nodes_) EXPECT_EQ(child->wait_for_end(), 0);
  }

 private:
  using Body = std::function<bool(Session&, const Child::Side&)>;

  void start(uint32_t n, const std::string& folder, const Body& body) {
    nodes_.push_back(std::make_unique<Child>([&](const Child::Side& parent) {
      set_log_level(LogLevel::off);
      const Result<Config> config =
          config_of(n, bound_.addresses, small_rings({{"counters.folder", folder}}));
      Result<std::unique_ptr<Session>> session =
          Session::open(*config, std::move(bound_.listeners[n]));
      if (!session.ok()) return 2;
      const bool done = body(**session, parent);
      parent.say(done ? "done" : "failed");
      parent.hear();
      return (*session)->close().ok() && done ? 0 : 1;
    }));
  }

  static bool send_all(Session& session, const Child::Side& parent) {
    const QueryId query = session.begin_query();
    parent.say(line_of(query));
    Worker& worker = session.worker(0);
    Result<Shuffle> shuffle = worker.open_shuffle(from_0_to_1(query));
    if (!shuffle.ok()) return false;
    const std::vector<std::byte> row(kRowBytes);
    for (int i = 0; i < kRows; ++i) {
      if (shuffle->sender()->send(0, row) != Outcome::done) return false;
    }
    if (shuffle->sender()->finish() != Outcome::done) return false;
    shuffle->close();
    return worker.end_query(query) == Outcome::done;
  }

  static bool receive_late(Session& session, const Child::Side& parent) {
    const QueryId query = query_in(parent.hear());
    Worker& worker = session.worker(0);
    Result<Shuffle> shuffle = worker.open_shuffle(from_0_to_1(query));
    if (!shuffle.ok()) return false;
    {
      Batch batch;
      if (shuffle->receiver()->receive(batch) != Outcome::done) return false;
      parent.say("holding");
      parent.hear();
    }
    Batch batch;
    Outcome outcome;
    while ((outcome = shuffle->receiver()->receive(batch)) == Outcome::done) {
    }
    if (outcome != Outcome::end_of_stream) return false;
    shuffle->close();
    return worker.end_query(query) == Outcome::done;
  }

  BoundNodes bound_{2};
  std::vector<std::unique_ptr<Child>> nodes_;
};

json look(const std::vector<std::string>& arguments, const std::string& folder) {
  std::vector<std::string> words = arguments;
  words.insert(words.end(), {"--json", "--folder", folder, "--interval", "0.05"});
  const CommandResult result = run_faro(words);
  const bool explains_a_wait = arguments.front() == "explain" && result.exit_code == 4;
  EXPECT_TRUE(result.exit_code == 0 || explains_a_wait) << result.exit_code << result.errors;
  return json::parse(result.output, nullptr, false);
}

json explain(const std::string& folder) { return look({"explain"}, folder); }
json stat_once(const std::string& folder) { return look({"stat", "--once"}, folder); }

/// Looks until `enough` or too long; the last look.
json look_until(const std::function<json()>& look_once,
                const std::function<bool(const json&)>& enough) {
  const auto deadline = Clock::now() + std::chrono::seconds(20);
  json seen;
  do {
    seen = look_once();
  } while (!enough(seen) && Clock::now() < deadline);
  return seen;
}

/// Until one query is explained, with that many waits, or causes.
json explain_until(const std::string& folder, const char* list, size_t count) {
  return look_until([&] { return explain(folder); },
                    [&](const json& explained) {
                      return explained["queries"].size() == 1 &&
                             explained["queries"][0][list].size() == count;
                    });
}

TEST(Explain, names_the_worker_the_stage_and_the_peer_that_does_not_drain) {
  TemporaryFolder folder;
  TwoNodes nodes(folder.path());
  const std::string query = nodes.start_query();
  const json seen = explain_until(folder.path(), "waits", 1);
  ASSERT_EQ(seen["queries"].size(), 1u) << seen;
  const json& one = seen["queries"][0];
  EXPECT_EQ(one["query"], query);
  EXPECT_EQ(one["nodes"], json({0, 1}));
  ASSERT_EQ(one["waits"].size(), 1u) << seen;
  EXPECT_EQ(one["waits"][0]["worker"], 0);
  EXPECT_EQ(one["waits"][0]["pid"], nodes.node(0).pid());
  EXPECT_EQ(one["waits"][0]["for"], "room towards worker 1, stage 5 of query " + query);
  ASSERT_EQ(one["causes"].size(), 1u) << seen;
  const std::string cause = one["causes"][0]["text"];
  EXPECT_TRUE(contains(cause, "worker 1 of node 1 (127.0.0.1:")) << cause;
  EXPECT_TRUE(contains(cause, "(pid " + std::to_string(nodes.node(1).pid()) + ")")) << cause;
  EXPECT_TRUE(contains(cause,
                       "does not drain: it makes no call of Faro; holds 1 frame; "
                       "not released: "))
      << cause;
  EXPECT_TRUE(contains(cause, " from worker 0")) << cause;

  const CommandResult text = run_faro({"explain", "--folder", folder.path()});
  EXPECT_TRUE(contains(text.output, "→ worker 1 of node 1")) << text.output;
  nodes.go_on();
  nodes.expect_done();
  EXPECT_TRUE(explain(folder.path())["queries"].empty()) << "the query has ended on all nodes";
  nodes.close();
}

TEST(Explain, names_the_worker_that_sends_nothing_to_one_that_polls) {
  TemporaryFolder folder;
  SessionCluster cluster(2, small_rings({{"counters.folder", folder.path()}}));
  ASSERT_TRUE(is_ok(cluster.status()));
  const QueryId query = cluster[0].begin_query();
  std::thread receiver([&] {
    Result<Shuffle> shuffle = cluster.worker(1).open_shuffle(from_0_to_1(query));
    Batch batch;
    EXPECT_EQ(shuffle->receiver()->receive(batch), Outcome::failed) << "cancelled";
  });
  const json seen = explain_until(folder.path(), "causes", 1);
  (void)cluster[0].cancel_query(query, "seen enough");
  receiver.join();
  ASSERT_EQ(seen["queries"].size(), 1u) << seen;
  EXPECT_EQ(seen["queries"][0]["waits"][0]["for"],
            "rows from worker 0, stage 5 of query " + query.to_string());
  const std::string cause = seen["queries"][0]["causes"][0]["text"];
  EXPECT_TRUE(contains(cause, "worker 0 of node 0")) << cause;
  EXPECT_TRUE(contains(cause, " sends nothing: it makes no call of Faro")) << cause;
}

TEST(Explain, names_a_process_that_is_stopped) {
  TemporaryFolder folder;
  TwoNodes nodes(folder.path());
  nodes.start_query();
  nodes.node(1).signal(SIGSTOP);
  const json seen = look_until(
      [&] { return explain(folder.path()); },
      [](const json& explained) {
        return explained["queries"].size() == 1 && explained["queries"][0]["causes"].size() == 1 &&
               contains(explained["queries"][0]["causes"][0]["text"], "is stopped");
      });
  const CommandResult table =
      run_faro({"stat", "--once", "--folder", folder.path(), "--interval", "0.05"});
  nodes.node(1).signal(SIGCONT);
  ASSERT_EQ(seen["queries"].size(), 1u) << seen;
  ASSERT_EQ(seen["queries"][0]["causes"].size(), 1u) << seen;
  const std::string cause = seen["queries"][0]["causes"][0]["text"];
  EXPECT_TRUE(contains(cause, "node 1 (127.0.0.1:")) << cause;
  EXPECT_TRUE(contains(cause, "kill -CONT " + std::to_string(nodes.node(1).pid()))) << cause;
  EXPECT_TRUE(contains(table.output, "1 (stopped)")) << table.output;
  nodes.go_on();
  nodes.expect_done();
  nodes.close();
}

// The outcome waits for all: not only the first of them is named.
TEST(Explain, names_every_node_that_has_not_ended_its_part) {
  TemporaryFolder folder;
  SessionCluster cluster(3, small_rings({{"counters.folder", folder.path()}}));
  ASSERT_TRUE(is_ok(cluster.status()));
  const QueryId query = cluster[0].begin_query();
  for (uint32_t w = 0; w < 3; ++w) ASSERT_TRUE(cluster[w].declare_query(query, {0, 1, 2}).ok());
  std::vector<std::thread> enders;
  const auto end_at = [&](uint32_t w) {
    enders.emplace_back([&, w] { EXPECT_EQ(cluster.worker(w).end_query(query), Outcome::done); });
  };
  end_at(0);
  const json seen = explain_until(folder.path(), "causes", 2);
  end_at(1);
  end_at(2);
  for (std::thread& ender : enders) ender.join();
  ASSERT_EQ(seen["queries"].size(), 1u) << seen;
  ASSERT_EQ(seen["queries"][0]["causes"].size(), 2u) << seen;
  for (uint32_t w = 1; w < 3; ++w) {
    const std::string cause = seen["queries"][0]["causes"][w - 1]["text"];
    EXPECT_TRUE(contains(cause, "worker " + std::to_string(w) + " of node")) << cause;
    EXPECT_TRUE(contains(cause, "has not ended its part: it makes no call")) << cause;
  }
}

// Node 0 remembers the process of node 1 that was lost; node 2, which came later, never knew it.
TEST(Explain, knows_a_node_that_has_returned_while_another_is_missing) {
  TemporaryFolder folder;
  SessionCluster cluster(3, small_rings({{"counters.folder", folder.path()}}));
  ASSERT_TRUE(is_ok(cluster.status()));
  cluster.session(1).reset();
  const Status returned = cluster.restart(2);
  ASSERT_TRUE(is_ok(returned));
  Session& first = cluster[0];
  Session& last = cluster[2];
  const QueryId query = first.begin_query();
  for (Session* session : {&first, &last}) ASSERT_TRUE(session->declare_query(query, {0, 2}).ok());
  std::thread ender([&] { EXPECT_EQ(first.worker(0).end_query(query), Outcome::done); });
  const auto names_the_worker = [](const json& explained) {
    return explained["queries"].size() == 1 && explained["queries"][0]["causes"].size() == 1 &&
           contains(explained["queries"][0]["causes"][0]["text"], "it makes no call");
  };
  const json seen = look_until([&] { return explain(folder.path()); }, names_the_worker);
  EXPECT_EQ(last.worker(0).end_query(query), Outcome::done);
  ender.join();
  EXPECT_TRUE(names_the_worker(seen)) << seen;
}

TEST(Stat, shows_what_moved_who_waits_and_who_does_not_drain) {
  TemporaryFolder folder;
  TwoNodes nodes(folder.path());
  nodes.start_query();
  const auto waits = [](const json& seen) {
    return seen["nodes"].size() == 2 && seen["nodes"][0]["workers"][0]["wait"]["kind"] == "room" &&
           seen["nodes"][0]["workers"][0]["wait"]["seconds"] > 0.1;
  };
  json seen = look_until([&] { return stat_once(folder.path()); }, waits);
  ASSERT_TRUE(waits(seen)) << seen;
  const json& sender = seen["nodes"][0]["workers"][0];
  EXPECT_EQ(sender["wait"]["worker"], 1);
  EXPECT_EQ(sender["wait"]["stage"], 5);
  EXPECT_GT(sender["blocked_share"], 0.9);
  const json& receiver = seen["nodes"][1]["workers"][0];
  EXPECT_EQ(receiver["counters"]["held_frames"], 1);
  EXPECT_EQ(receiver["wait"]["kind"], "none");
  EXPECT_EQ(seen["nodes"][0]["queries"].size(), 1u);
  EXPECT_EQ(seen["nodes"][0]["links"][1]["transport"], "shm");
  EXPECT_EQ(seen["nodes"][0]["links"][1]["counters"]["connected"], 1);

  const CommandResult table =
      run_faro({"stat", "--once", "--folder", folder.path(), "--interval", "0.05"});
  EXPECT_TRUE(contains(table.output, "! worker 1 does not drain: 1 worker waits")) << table.output;
  EXPECT_TRUE(contains(table.output, "0 → 1")) << table.output;
  EXPECT_TRUE(contains(table.output, " % ")) << "threshold fill: " << table.output;
  const json& to_1 = seen["nodes"][0]["outgoing_lanes"][1];
  EXPECT_EQ(to_1["receiver"], 1);
  const double threshold_bytes = seen["nodes"][0]["threshold_bytes"];
  const double bytes_sent = to_1["counters"]["bytes_sent"];
  const double transfers = to_1["counters"]["transfers"];
  EXPECT_GT(transfers, 0);
  EXPECT_NEAR(to_1["threshold_fill"], bytes_sent / transfers / threshold_bytes, 1e-9);
  EXPECT_TRUE(seen["nodes"][0]["outgoing_lanes"][0]["threshold_fill"].is_null()) << "an idle lane";

  nodes.go_on();
  nodes.expect_done();
  seen = stat_once(folder.path());
  EXPECT_EQ(seen["nodes"][0]["workers"][0]["counters"]["rows_sent"], kRows);
  EXPECT_EQ(seen["nodes"][1]["workers"][0]["counters"]["rows_received"], kRows);
  EXPECT_EQ(seen["nodes"][1]["workers"][0]["counters"]["held_frames"], 0);
  for (const json& lane : seen["nodes"][1]["incoming_lanes"])
    EXPECT_EQ(lane["counters"]["unreleased_bytes"], 0) << lane;
  EXPECT_EQ(seen["nodes"][0]["workers"][0]["wait"]["kind"], "none");

  const std::string pid = std::to_string(nodes.node(1).pid());
  seen = look({"stat", "--once", "--pid", pid}, folder.path());
  ASSERT_EQ(seen["nodes"].size(), 1u);
  EXPECT_EQ(seen["nodes"][0]["node"], 1);
  nodes.close();
  EXPECT_TRUE(folder.empty()) << "a closed session leaves no file";
}

/// Two endpoints over tcp. The server takes no frame until it is told to.
class TwoEndpoints {
 public:
  explicit TwoEndpoints(const std::string& folder)
      : server_(config(folder), {.name = "server"}), client_(config(folder), {.name = "client"}) {
    channel_ = client_.connect(server_, {.send_bytes = 4096, .receive_bytes = 4096});
    client_.expect(ChannelEvent::Kind::opened);
    server_.expect(ChannelEvent::Kind::opened);
  }
  EndpointSide& server() { return server_; }
  EndpointSide& client() { return client_; }
  ChannelId channel() const { return channel_; }
  void fill() {
    while (client_.send(channel_, std::string(500, 'x'))) {
    }
  }

 private:
  static Config config(const std::string& folder) {
    Config config;
    for (const auto& [key, value] :
         {std::pair{"transport", "tcp"}, {"counters.folder", folder.c_str()}})
      EXPECT_TRUE(is_ok(config.set(key, value)));
    return config;
  }

  EndpointSide server_, client_;
  ChannelId channel_;
};

TEST(Explain, says_what_a_channel_waits_for_and_who_does_not_release) {
  TemporaryFolder folder;
  TwoEndpoints endpoints(folder.path());
  EXPECT_TRUE(explain(folder.path())["channels"].empty()) << "nothing waits yet";
  endpoints.fill();
  const ChannelEvent held = endpoints.server().expect(ChannelEvent::Kind::frame);
  const json seen = explain(folder.path());
  const std::string pid = " (pid " + std::to_string(getpid()) + ")";
  const std::string server = "server (" + endpoints.server().address() + ")";
  ASSERT_EQ(seen["channels"].size(), 2u) << seen;
  const json& sends = seen["channels"][0];
  EXPECT_EQ(sends["endpoint"], "client (" + endpoints.client().address() + ")");
  EXPECT_EQ(sends["peer"], server);
  EXPECT_EQ(sends["for"], "room: the peer has not released enough of its frames");
  EXPECT_GT(sends["seconds"], 0);
  ASSERT_EQ(sends["causes"].size(), 1u) << seen;
  const std::string cause = sends["causes"][0];
  EXPECT_TRUE(contains(cause, "poller 0 of " + server + pid + ": it makes no call of poll; holds"))
      << cause;
  EXPECT_TRUE(contains(seen["channels"][1]["for"], "its frames to be released here: it holds"))
      << seen;
  const CommandResult text = run_faro({"explain", "--folder", folder.path()});
  EXPECT_TRUE(contains(text.output, "  → poller 0 of " + server)) << text.output;
  endpoints.server().poller().release(held.channel, held.token);
}

// Files as a node and an endpoint write them while links are mended; mending_test has real ones.
TEST(Explain, says_that_a_link_of_a_query_is_being_mended) {
  TemporaryFolder folder;
  counters::Shape shape;
  shape.cluster = "c";
  shape.workers_per_node = {1, 1};
  shape.rings_per_lane = 1;
  const auto file = value_of(counters::CounterFile::make(shape, folder.path(), 1));
  for (uint32_t node = 0; node < 2; ++node) {
    counters::Peer peer{.incarnation = node + 1, .first_worker = node, .worker_count = 1};
    ("node " + std::to_string(node) + " (h:1)").copy(peer.name.data(), peer.name.size() - 1);
    file->set_peer(node, peer);
    counters::set(file->peer(node).connected, 1);
  }
  const QueryId query{0, 1, 1, 0};
  file->query(0).store({.id = query, .life = counters::QueryLife::running, .since_ns = 1});
  file->opened();
  EXPECT_TRUE(explain(folder.path())["queries"][0]["causes"].empty());
  counters::set(file->peer(1).mending_ns, 1);
  const json seen = explain(folder.path());
  ASSERT_EQ(seen["queries"][0]["causes"].size(), 1u) << seen;
  const std::string cause = seen["queries"][0]["causes"][0]["text"];
  EXPECT_TRUE(contains(cause, "the link of node 0 (h:1) to node 1 (h:1) has been broken for "))
      << cause;
  const CommandResult table =
      run_faro({"stat", "--once", "--folder", folder.path(), "--interval", "0.05"});
  EXPECT_TRUE(contains(table.output, "1 of 1, 1 broken")) << table.output;
}

/// The counters of a node whose worker, of the same number, waits for what is said, with nobody to be linked with yet.
std::unique_ptr<counters::CounterFile> unlinked_node(const std::string& folder, uint32_t node,
                                                     const counters::WaitRecord& wait) {
  counters::Shape shape;
  shape.cluster = "c";
  shape.node = node;
  shape.workers_per_node = {1, 1};
  shape.rings_per_lane = 1;
  auto file = value_of(counters::CounterFile::make(shape, folder, 1));
  for (uint32_t n = 0; n < 2; ++n) {
    counters::Peer peer{.incarnation = n + 1, .first_worker = n, .worker_count = 1};
    ("node " + std::to_string(n) + " (h:1)").copy(peer.name.data(), peer.name.size() - 1);
    file->set_peer(n, peer);
    counters::set(file->peer(n).connected, n == node ? 1 : 0);
  }
  file->query(0).store({.id = wait.query, .life = counters::QueryLife::running, .since_ns = 1});
  file->wait(0, 0).store(wait);
  file->opened();
  return file;
}

/// Who is to blame for what a query waits for, as one line.
std::string causes_in(const std::string& folder) {
  std::string causes;
  const json seen = explain(folder);
  for (const json& cause : seen["queries"][0]["causes"])
    causes += (causes.empty() ? "" : "; ") + std::string(cause["text"]);
  return causes;
}

TEST(Explain, blames_nobody_for_what_waits_for_a_link_that_is_not_made_yet) {
  const QueryId query{0, 1, 1, 0};
  // Worker 1 makes no call, and need not: nothing can come to it.
  const counters::WaitRecord none{.query = query};
  counters::WaitRecord wait{.since_ns = 1, .query = query, .in_call = 1, .due_ns = UINT64_MAX};
  for (const auto kind :
       {counters::WaitKind::room, counters::WaitKind::rows, counters::WaitKind::outcome}) {
    SCOPED_TRACE(static_cast<int>(kind));
    TemporaryFolder folder;
    wait.kind = kind;
    wait.peer = 1;
    const auto zero = unlinked_node(folder.path(), 0, wait);
    const auto one = unlinked_node(folder.path(), 1, none);
    counters::set(zero->awaited(0, 0)[0], 2);  // worker 1
    zero->query(0).store({.id = query,
                          .life = counters::QueryLife::running,
                          .since_ns = 1,
                          .nodes_pending = 1,
                          .first_node_pending = 1});
    const std::string yet = causes_in(folder.path());
    EXPECT_TRUE(
        contains(yet, "node 0 (h:1) is not linked with node 1 (h:1): the link is being made"))
        << yet;
    EXPECT_FALSE(contains(yet, "makes no call of Faro")) << yet;

    counters::Peer peer{.incarnation = 2, .first_worker = 1, .worker_count = 1};
    std::string("node 1 (h:1)").copy(peer.name.data(), peer.name.size() - 1);
    std::string("tcp").copy(peer.transport.data(), peer.transport.size() - 1);
    zero->set_peer(1, peer);
    const std::string again = causes_in(folder.path());
    EXPECT_TRUE(contains(again, "the link was let go or lost, and is being made again")) << again;

    counters::set(zero->peer(1).connected, 1);
    const std::string linked = causes_in(folder.path());
    EXPECT_FALSE(contains(linked, "is not linked")) << linked;
    if (kind == counters::WaitKind::room) {
      EXPECT_TRUE(contains(linked, "makes no call of Faro")) << linked;
    }
  }
}

// It was told to look again at this time at the latest, and has not: its thread does something
// else.
TEST(Explain, blames_an_event_loop_that_does_not_come_back) {
  TemporaryFolder folder;
  const counters::WaitRecord wait{.kind = counters::WaitKind::rows,
                                  .since_ns = 1,
                                  .query = {0, 1, 1, 0},
                                  .in_call = 1,
                                  .due_ns = 1};
  const auto zero = unlinked_node(folder.path(), 0, wait);
  counters::set(zero->awaited(0, 0)[0], 2);  // worker 1
  counters::set(zero->peer(1).connected, 1);
  const std::string causes = causes_in(folder.path());
  EXPECT_TRUE(contains(causes, "worker 0 of node 0 (h:1)")) << causes;
  EXPECT_TRUE(contains(causes, "waits: it makes no call of Faro")) << causes;
}

TEST(Explain, names_the_node_that_is_not_there_to_be_linked) {
  TemporaryFolder folder;
  const HeldAddress absent("127.0.0.1:0");
  SessionCluster cluster(1, small_rings({{"counters.folder", folder.path()},
                                         {"cluster.node_limit", "2"},
                                         {"connect.timeout_ms", "86400000"}}));
  ASSERT_TRUE(is_ok(cluster.status()));
  ASSERT_TRUE(is_ok(Nodes(cluster[0]).add({1, absent.address()})));
  const QueryId query = cluster[0].begin_query();
  const std::vector<uint32_t> workers = {0, cluster[0].first_worker(1)};
  ASSERT_TRUE(is_ok(cluster[0].declare_query(query, workers)));
  std::thread sends([&] {
    Worker& worker = cluster.worker(0);
    {
      Shuffle shuffle =
          value_of(worker.open_shuffle({query, 5, kRowBytes, {workers[0]}, {workers[1]}}));
      const std::vector<std::byte> row(kRowBytes);
      Outcome outcome = Outcome::done;
      while (outcome == Outcome::done) outcome = shuffle.sender()->send(0, row);
      EXPECT_EQ(outcome, Outcome::failed);
    }
    Status cause;
    (void)end_query(worker, query, cause);
    worker.release_ownership();
  });
  const json seen = explain_until(folder.path(), "waits", 1);
  EXPECT_TRUE(is_ok(Nodes(cluster[0]).remove(1)));
  sends.join();
  ASSERT_EQ(seen["queries"][0]["causes"].size(), 1u) << seen;
  const std::string cause = seen["queries"][0]["causes"][0]["text"];
  EXPECT_TRUE(contains(
      cause, "is not linked with node 1 (" + absent.address() + "): the link is being made"))
      << cause;
}

TEST(Explain, says_what_a_channel_waits_for_at_each_step_of_its_life) {
  TemporaryFolder folder;
  const auto file = value_of(counters::EndpointFile::make(
      {.cluster = "c", .name = "e", .address = "h:1", .channel_limit = 4}, folder.path(), 1));
  file->listens(1);
  counters::ChannelRecord& record = **file->channel(0);
  counters::ChannelState state;
  state.dialled = 1;
  state.incarnation = 77;
  std::string("h:2").copy(state.address.data(), 8);
  const auto waits_for = [&](counters::ChannelLife life, const char* failure) {
    state.life = life;
    state.failure = {};
    std::string(failure).copy(state.failure.data(), state.failure.size() - 1);
    record.state.store(state);
    const json seen = explain(folder.path())["channels"];
    return seen.empty() ? std::string() : std::string(seen[0]["for"]);
  };
  using Life = counters::ChannelLife;
  EXPECT_EQ(waits_for(Life::opening, ""), "h:2 to answer");
  EXPECT_EQ(waits_for(Life::opening, "refused"),
            "h:2 to answer; the last attempt has failed: refused");
  EXPECT_EQ(waits_for(Life::open, ""), "");
  EXPECT_EQ(waits_for(Life::draining, ""), "both sides to have taken all frames: it is drained");
  EXPECT_EQ(waits_for(Life::ended, "lost"),
            "its poller to poll and to release, as it has ended: lost");
  counters::set(record.counters.room_ns, 1);
  EXPECT_EQ(waits_for(Life::open, ""), "room: the peer has not released enough of its frames");
  counters::set(record.counters.mending_ns, 1);
  EXPECT_EQ(waits_for(Life::open, ""), "its connection, which has broken, to be mended");
  counters::set(record.counters.mending_ns, 0);
  const json seen = explain(folder.path())["channels"];
  EXPECT_EQ(seen[0]["causes"][0],
            "h:2 is on another host, or of another user: run `faro explain` there");
}

TEST(Stat, shows_endpoints_with_their_pollers_and_channels) {
  TemporaryFolder folder;
  TwoEndpoints endpoints(folder.path());
  endpoints.fill();
  json seen = stat_once(folder.path());
  EXPECT_TRUE(seen["nodes"].empty());
  ASSERT_EQ(seen["endpoints"].size(), 2u) << seen;
  const json& client = seen["endpoints"][0];
  EXPECT_EQ(client["name"], "client");
  EXPECT_EQ(client["counters"]["channels_open"], 1);
  EXPECT_GT(client["pollers"][0]["polls"], 0);
  ASSERT_EQ(client["channels"].size(), 1u);
  const json& channel = client["channels"][0];
  EXPECT_EQ(channel["peer"], "server");
  EXPECT_EQ(channel["state"], "open");
  EXPECT_EQ(channel["transport"], "tcp");
  EXPECT_GT(channel["outgoing"]["frames_sent"], 3);
  EXPECT_GT(channel["outgoing"]["no_room"], 0);
  EXPECT_GT(channel["counters"]["room_ns"], 0);
  EXPECT_EQ(channel["outgoing"]["per_second"]["frames_sent"], 0.0);
  EXPECT_EQ(client["all_channels"]["outgoing"]["frames_sent"], channel["outgoing"]["frames_sent"]);

  const CommandResult table =
      run_faro({"stat", "--once", "--folder", folder.path(), "--interval", "0.05"});
  EXPECT_TRUE(contains(table.output, "client (" + endpoints.client().address() + ")"))
      << table.output;
  EXPECT_TRUE(contains(table.output, "→ server (")) << table.output;
  EXPECT_TRUE(contains(table.output, ": room: the peer has not released")) << table.output;
  EXPECT_FALSE(contains(table.output, "lane")) << "there is no node: " << table.output;
  endpoints.server().endpoint().close();
  seen = stat_once(folder.path());
  ASSERT_EQ(seen["endpoints"].size(), 1u) << seen;
}

TEST(Stat, shows_nodes_and_endpoints_side_by_side) {
  TemporaryFolder folder;
  SessionCluster cluster(1, {{"counters.folder", folder.path()}});
  ASSERT_TRUE(is_ok(cluster.status()));
  TwoEndpoints endpoints(folder.path());
  const CommandResult table =
      run_faro({"stat", "--once", "--folder", folder.path(), "--interval", "0.05"});
  EXPECT_TRUE(contains(table.output, "nothing moves on any lane")) << table.output;
  EXPECT_TRUE(contains(table.output, "nothing moves on any channel")) << table.output;
}

TEST(Stat, shows_a_killed_node_only_if_its_file_is_named) {
  TemporaryFolder folder;
  TwoNodes nodes(folder.path());
  nodes.start_query();
  json seen = stat_once(folder.path());
  ASSERT_EQ(seen["nodes"].size(), 2u);
  const std::string file = seen["nodes"][1]["file"];
  nodes.node(1).signal(SIGKILL);
  nodes.node(1).wait_for_end();
  EXPECT_EQ(nodes.node(0).hear().value_or("ended"), "failed") << "its peer is lost";
  seen = stat_once(folder.path());
  ASSERT_EQ(seen["nodes"].size(), 1u) << seen;
  EXPECT_EQ(seen["nodes"][0]["node"], 0);
  EXPECT_EQ(seen["nodes"][0]["links"][1]["counters"]["connected"], 0);
  EXPECT_EQ(seen["nodes"][0]["counters"]["queries_failed"], 1);
  seen = look({"stat", "--once", "--counter-file", file}, folder.path());
  ASSERT_EQ(seen["nodes"].size(), 1u) << seen;
  EXPECT_EQ(seen["nodes"][0]["alive"], false);
  EXPECT_EQ(seen["nodes"][0]["workers"][0]["counters"]["held_frames"], 1);
}

TEST(Stat, says_where_it_looked_if_there_is_nothing) {
  TemporaryFolder folder;
  const CommandResult result = run_faro({"stat", "--once", "--folder", folder.path()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.errors, folder.path())) << result.errors;
}

TEST(Stat, says_of_a_file_of_another_version_which_it_has) {
  TemporaryFolder folder;
  counters::Header header;
  header.magic = counters::kMagic;
  header.version = counters::kLayoutVersion + 1;
  const std::string path = folder.path() + "/faro-1-0.counters";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(&header), sizeof header);
  const CommandResult result = run_faro({"stat", "--once", "--folder", folder.path()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.errors, path + " has version " + std::to_string(header.version)))
      << result.errors;
}

// A folder that is there, and takes no files.
TEST(Session, whose_counters_have_no_place_works_without) {
  std::string warning;
  set_log_sink([&warning](LogLevel, std::string_view line) { warning += line; });
  Session* opened = nullptr;
  {
    SessionCluster cluster(1, {{"counters.folder", "/proc"}});
    ASSERT_TRUE(is_ok(cluster.status()));
    opened = &cluster[0];
    EXPECT_EQ(opened->metrics().workers.size(), 1u);
  }
  set_log_sink(nullptr);
  EXPECT_TRUE(contains(warning, "counters.folder")) << warning;
}

TEST(Top, needs_a_terminal) {
  TemporaryFolder folder;
  SessionCluster cluster(1, {{"counters.folder", folder.path()}});
  ASSERT_TRUE(is_ok(cluster.status()));
  const CommandResult result = run_faro({"top", "--folder", folder.path()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.errors, "needs a terminal; `faro stat`")) << result.errors;
}

/// `faro top` on a terminal of its own.
class TopOnTerminal {
 public:
  explicit TopOnTerminal(const std::string& folder) : master_(posix_openpt(O_RDWR | O_NOCTTY)) {
    if (grantpt(master_) != 0 || unlockpt(master_) != 0) std::abort();
    const std::string name = ptsname(master_);
    // Kept open, so that what the command leaves can be read after its end.
    slave_ = open(name.c_str(), O_RDWR | O_NOCTTY);
    pid_ = fork();
    if (pid_ == 0) {
      setsid();
      for (int fd = 0; fd < 3; ++fd) dup2(slave_, fd);
      execl(FARO_COMMAND_PATH, "faro", "top", "--folder", folder.c_str(), "--interval", "0.05",
            nullptr);
      _exit(127);
    }
  }
  ~TopOnTerminal() {
    if (pid_ > 0) kill(pid_, SIGKILL), waitpid(pid_, nullptr, 0);
    ::close(master_);
    ::close(slave_);
  }
  void type(char key) { ASSERT_EQ(write(master_, &key, 1), 1); }
  /// Everything shown until `part` is there, or for too long.
  std::string read_until(const std::string& part) {
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    while (!contains(shown_, part) && Clock::now() < deadline) {
      pollfd polled{master_, POLLIN, 0};
      if (poll(&polled, 1, 100) <= 0) continue;
      char bytes[4096];
      const ssize_t got = read(master_, bytes, sizeof bytes);
      if (got <= 0) break;
      shown_.append(bytes, static_cast<size_t>(got));
    }
    return shown_;
  }
  int exit_code() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  int master_;
  int slave_ = -1;
  pid_t pid_ = -1;
  std::string shown_;
};

TEST(Top, shows_nodes_until_q_and_gives_the_screen_back) {
  for (const char key : {'q', '\x03'}) {
    TemporaryFolder folder;
    SessionCluster cluster(1, {{"counters.folder", folder.path()}, {"cluster.id", "on-top"}});
    ASSERT_TRUE(is_ok(cluster.status()));
    TopOnTerminal top(folder.path());
    EXPECT_TRUE(contains(top.read_until("on-top"), "rows/s out") ||
                contains(top.read_until("rows/s out"), "on-top"));
    top.type(key);
    EXPECT_EQ(top.exit_code(), 0);
    EXPECT_TRUE(contains(top.read_until("\x1b[?1049l"), "\x1b[?1049l")) << "the former screen";
  }
}

TEST(Top, shows_the_channels_of_endpoints) {
  TemporaryFolder folder;
  TwoEndpoints endpoints(folder.path());
  endpoints.fill();
  TopOnTerminal top(folder.path());
  EXPECT_TRUE(contains(top.read_until("→ server ("), "client (")) << "the endpoint and its channel";
  top.type('q');
  EXPECT_EQ(top.exit_code(), 0);
}

}  // namespace
}  // namespace faro::test
