// The counter file: what is counted is read by others; stale, foreign and broken files do no harm.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "counters/counter_file.h"
#include "counters/counter_view.h"
#include "counters/descriptions.h"
#include "counters/prometheus_text.h"
#include "support/child.h"
#include "support/expect.h"
#include "support/temporary_folder.h"

namespace faro::counters {
namespace {

using test::Child;
using test::TemporaryFolder;

/// Node 1 of three with 2, 3 and 1 workers.
Shape some_shape() {
  Shape shape;
  shape.cluster = "test";
  shape.node = 1;
  shape.workers_per_node = {2, 3, 1};
  shape.rings_per_lane = 2;
  shape.ring_bytes = 4096;
  shape.threshold_bytes = 1024;
  return shape;
}

std::unique_ptr<CounterFile> make(const std::string& folder) {
  return test::value_of(CounterFile::make(some_shape(), folder, 1));
}

/// A copy of exactly its size, on the heap: the address sanitizer watches its ends.
std::vector<uint64_t> copy_of(const CounterFile& file) {
  std::vector<uint64_t> copy(file.memory().size() / 8);
  std::memcpy(copy.data(), file.memory().data(), copy.size() * 8);
  return copy;
}

NodeView read(const std::string& path) { return test::value_of(CounterView::open(path))->read(); }

TEST(Counters, have_ids_and_names_that_are_used_once) {
  std::set<uint32_t> ids;
  std::set<std::pair<Scope, std::string>> names;
  for (const Description& row : descriptions()) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.name.data();
    EXPECT_TRUE(names.emplace(row.scope, row.name.data()).second) << row.name.data();
  }
}

// What other versions and other tools rely on: a change of these is a new kLayoutVersion.
TEST(Counters, keep_their_ids_and_places) {
  struct Place {
    const char* name;
    uint32_t offset;
  };
  const std::map<uint32_t, Place> expected = {{1, {"overflow_memory_bytes", 0}},
                                              {8, {"open", 56}},
                                              {20, {"connected", 0}},
                                              {29, {"mending_ns", 72}},
                                              {40, {"rows_sent", 0}},
                                              {45, {"blocked_ns", 40}},
                                              {52, {"held_frames", 96}},
                                              {61, {"bytes_sent", 8}},
                                              {63, {"no_room", 24}},
                                              {81, {"bytes_received", 8}},
                                              {83, {"unreleased_bytes", 24}},
                                              {100, {"listening", 0}},
                                              {108, {"ticks", 64}},
                                              {124, {"asleep_ns", 32}},
                                              {140, {"held_frames", 0}},
                                              {143, {"mending_ns", 24}},
                                              {161, {"untaken_streams", 8}},
                                              {171, {"untaken_ns", 8}},
                                              {180, {"rows_in", 0}},
                                              {190, {"peak_bytes", 80}}};
  size_t found = 0;
  for (const Description& row : descriptions()) {
    const auto place = expected.find(row.id);
    if (place == expected.end()) continue;
    ++found;
    EXPECT_STREQ(row.name.data(), place->second.name);
    EXPECT_EQ(row.offset, place->second.offset) << row.name.data();
  }
  EXPECT_EQ(found, expected.size());
}

TEST(Counters, are_described_in_the_page_of_the_layout) {
  std::ifstream file(FARO_COUNTERS_PAGE);
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  for (const Description& row : descriptions()) {
    const std::string line = "| " + std::to_string(row.id) + " | `" + row.name.data() + "` |";
    EXPECT_NE(page.find(line), std::string::npos) << line;
  }
}

TEST(CounterFile, shows_others_what_is_counted) {
  TemporaryFolder folder;
  const auto file = make(folder.path());
  count(file->worker(2).rows_sent, 17);
  count(file->outgoing(0, 5, 0).bytes_sent, 100);
  count(file->outgoing(0, 5, 1).bytes_sent, 11);
  set(file->incoming(2, 0, 1).unreleased_bytes, 64);
  for (uint32_t n = 0; n < 3; ++n) {
    Peer peer;
    peer.first_worker = some_shape().first_worker(n);
    peer.worker_count = some_shape().workers_per_node[n];
    std::strcpy(peer.name.data(), ("node " + std::to_string(n) + " (host:1)").c_str());
    std::strcpy(peer.transport.data(), "shm");
    file->set_peer(n, peer);
  }
  EXPECT_FALSE(read(file->path()).open);
  file->opened();

  const NodeView node = read(file->path());
  EXPECT_TRUE(node.alive);
  EXPECT_TRUE(node.open);
  EXPECT_EQ(node.cluster, "test");
  EXPECT_EQ(node.pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(node.peers[2].name, "node 2 (host:1)");
  EXPECT_EQ(node.peers[2].transport, "shm");
  ASSERT_EQ(node.workers.size(), 3u);
  EXPECT_EQ(node.workers[2].number, 4u);
  EXPECT_EQ(node.workers[2].counters.rows_sent, 17u);
  uint64_t lanes = 0;
  for (const OutgoingLane& lane : node.outgoing) {
    const bool counted = lane.sender == 2 && lane.receiver == 5;
    EXPECT_EQ(lane.counters.bytes_sent, counted ? 111u : 0u) << "both rings of one lane";
    ++lanes;
  }
  EXPECT_EQ(lanes, 3u * 6);
  for (const IncomingLane& lane : node.incoming) {
    const bool counted = lane.sender == 0 && lane.receiver == 4;
    EXPECT_EQ(lane.counters.unreleased_bytes, counted ? 64u : 0u);
  }
}

uint64_t taken_by(const std::string& path) {
  struct stat state {};
  EXPECT_EQ(stat(path.c_str(), &state), 0);
  return static_cast<uint64_t>(state.st_blocks) * 512;
}

TEST(CounterFile, lanes_on_demand_take_room_when_they_are_used) {
  constexpr uint32_t kWorkers = 8;
  constexpr uint64_t kPages =
      uint64_t{2} * kWorkers * 2;  // of one node's lanes, at most: two per worker and direction
  TemporaryFolder folder;
  Shape shape = some_shape();
  shape.node = 0;
  shape.workers_per_node.assign(1000, kWorkers);
  const auto file = test::value_of(CounterFile::make(shape, folder.path(), 1));
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t before = taken_by(file->path());
  EXPECT_LT(before, uint64_t{1} << 20) << "of " << CounterFile::bytes(shape);
  const uint32_t first = shape.first_worker(500);
  EXPECT_TRUE(test::is_ok(file->reserve_lanes(first, kWorkers)));
  const uint64_t after = taken_by(file->path());
  EXPECT_GT(after, before);
  EXPECT_LE(after, before + kPages * page);
  Peer peer;
  peer.first_worker = first;
  peer.worker_count = kWorkers;
  std::strcpy(peer.name.data(), "node 500");
  std::strcpy(peer.transport.data(), "shm");
  file->set_peer(500, peer);
  std::strcpy(peer.name.data(), "node 501");
  std::strcpy(peer.transport.data(), "none");
  file->set_peer(501, peer);
  file->opened();
  count(file->outgoing(7, first + 7, 1).bytes_sent, 100);
  EXPECT_EQ(taken_by(file->path()), after) << "there was room for what it counted";

  const NodeView node = read(file->path());
  EXPECT_EQ(taken_by(file->path()), after) << "reading takes none";
  ASSERT_EQ(node.outgoing.size(), kWorkers * kWorkers);
  ASSERT_EQ(node.incoming.size(), kWorkers * kWorkers);
  EXPECT_EQ(node.outgoing.back().receiver, first + 7);
  EXPECT_EQ(node.outgoing.back().counters.bytes_sent, 100u);
  EXPECT_EQ(node.outgoing.front().counters.bytes_sent, 0u);
}

TEST(CounterFile, shows_what_a_worker_waits_for) {
  TemporaryFolder folder;
  const auto file = make(folder.path());
  WaitRecord wait;
  wait.kind = WaitKind::rows;
  wait.query = {7, 8, 1, 0};
  wait.stage = 3;
  file->awaited(1, 0)[0].store(0b100001);
  file->wait(1, 0).store(wait);
  const WorkerView worker = read(file->path()).workers[1];
  ASSERT_EQ(worker.waits.size(), 1u);
  EXPECT_EQ(worker.waits[0].kind, WaitKind::rows);
  EXPECT_EQ(worker.waits[0].query, wait.query);
  EXPECT_EQ(worker.waits[0].stage, 3u);
  EXPECT_EQ(worker.waits[0].awaited, (std::vector<uint32_t>{0, 5}));
  file->wait(1, 0).store({});
  EXPECT_TRUE(read(file->path()).workers[1].waits.empty());
}

TEST(CounterFile, shows_all_that_a_worker_waits_for) {
  TemporaryFolder folder;
  const auto file = make(folder.path());
  for (uint32_t slot = 0; slot < kWaitSlots; ++slot) {
    file->awaited(1, slot)[0].store(uint64_t{1} << slot % 4);
    file->wait(1, slot).store({WaitKind::rows, 0, {7, 8, 1, 0}, slot});
  }
  const std::vector<WorkerView> workers = read(file->path()).workers;
  EXPECT_TRUE(workers[0].waits.empty());
  ASSERT_EQ(workers[1].waits.size(), kWaitSlots);
  for (uint32_t slot = 0; slot < kWaitSlots; ++slot) {
    EXPECT_EQ(workers[1].waits[slot].stage, slot);
    EXPECT_EQ(workers[1].waits[slot].awaited, std::vector<uint32_t>{slot % 4});
  }
  file->wait(1, 2).store({});
  EXPECT_EQ(read(file->path()).workers[1].waits.size(), 2u) << "what is behind it has ended";
}

// The header has room for 63 bytes of it, which here end in the middle of a character.
TEST(NodePage, shows_a_cluster_whose_name_is_no_text_as_the_format_wants_it) {
  Shape shape = some_shape();
  shape.cluster = "bad\xff\r\n\x1b[2J\"\\ " + std::string(49, 'x') + "ä";
  const auto file = test::value_of(CounterFile::make(shape, "", 1));
  const auto view = test::value_of(CounterView::over(file->memory()));
  const NodeView node = view->read();
  EXPECT_EQ(node.cluster, "bad?   [2J\"\\ " + std::string(49, 'x') + "?");
  test::expect_contains(prometheus_text(node), R"({cluster="bad?   [2J\"\\ x)");
}

TEST(CounterFile, is_for_its_user_alone_and_goes_with_its_session) {
  TemporaryFolder folder;
  auto file = make(folder.path());
  struct stat state {};
  ASSERT_EQ(stat(file->path().c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0600u);
  const std::string path = file->path();
  file->remove_name();
  EXPECT_TRUE(folder.empty());
  auto successor = make(folder.path());
  EXPECT_EQ(successor->path(), path) << "the name is free again";
  file.reset();
  EXPECT_FALSE(folder.empty()) << "a name that was given up is another's";
}

TEST(CounterFile, of_two_sessions_of_a_process_are_two) {
  TemporaryFolder folder;
  const auto one = make(folder.path());
  const auto two = make(folder.path());
  EXPECT_NE(one->path(), two->path());
  EXPECT_TRUE(read(one->path()).alive) << "looking for stale files gives no lock up";
  EXPECT_TRUE(read(two->path()).alive);
}

TEST(CounterFile, without_a_folder_is_memory) {
  const auto file = make("");
  EXPECT_EQ(file->path(), "");
  count(file->worker(0).waits);
  const auto view = test::value_of(CounterView::over(file->memory()));
  EXPECT_EQ(view->read().workers[0].counters.waits, 1u);
}

TEST(CounterFile, cannot_be_made_where_there_is_no_folder) {
  const auto file = CounterFile::make(some_shape(), "/dev/shm/faro-no-such-folder", 1);
  test::expect_error(file.status(), Code::config_invalid, {"faro-no-such-folder"});
}

TEST(CounterFile,
     of_a_killed_process_can_be_read_and_goes_with_the_next_session_that_opens_or_closes) {
  for (const bool opens : {true, false}) {
    TemporaryFolder folder;
    Child child([&folder](const Child::Side& parent) {
      const auto file = make(folder.path());
      count(file->worker(0).rows_sent, 3);
      parent.say(file->path());
      parent.hear();
      return 0;
    });
    const std::string path = child.hear().value_or("");
    auto other = make(folder.path());
    EXPECT_TRUE(read(path).alive) << "a session that opens leaves the files of others";
    make(folder.path()).reset();
    EXPECT_TRUE(read(path).alive) << "and so does one that closes";
    child.signal(SIGKILL);
    child.wait_for_end();
    const NodeView dead = read(path);
    EXPECT_FALSE(dead.alive);
    EXPECT_EQ(dead.workers[0].counters.rows_sent, 3u);
    if (opens) {
      other = make(folder.path());
    } else {
      other.reset();
    }
    EXPECT_NE(access(path.c_str(), F_OK), 0) << "the stale file is still there";
  }
}

TEST(CounterView, refuses_links_and_what_is_no_counter_file) {
  TemporaryFolder folder;
  const auto file = make(folder.path());
  const std::string link = folder.path() + "/link.counters";
  ASSERT_EQ(symlink(file->path().c_str(), link.c_str()), 0);
  EXPECT_EQ(CounterView::open(link).status().code(), Code::system_error);
  EXPECT_EQ(CounterView::open(folder.path()).status().code(), Code::system_error);
  const std::string text = folder.path() + "/text.counters";
  std::ofstream(text) << std::string(4096, 'x');
  EXPECT_EQ(CounterView::open(text).status().code(), Code::invalid_argument);
  std::ofstream(text, std::ios::trunc) << "short";
  EXPECT_EQ(CounterView::open(text).status().code(), Code::invalid_argument);
}

TEST(CounterView, reads_no_more_than_a_file_really_takes) {
  TemporaryFolder folder;
  const std::string forged = folder.path() + "/faro-1-0.counters";
  std::ofstream(forged) << std::string(4096, 'x');
  ASSERT_EQ(truncate(forged.c_str(), off_t{2} << 30), 0);
  test::expect_error(CounterView::open(forged).status(), Code::invalid_argument,
                     {"claims 2147483648 bytes"});
}

TEST(CounterView, of_a_file_without_room_for_more_than_its_lanes_is_refused) {
  TemporaryFolder folder;
  const auto file = make(folder.path());
  const std::string forged = folder.path() + "/faro-1-0.counters";
  std::ofstream(forged).write(reinterpret_cast<const char*>(file->memory().data()), sizeof(Header));
  ASSERT_EQ(truncate(forged.c_str(), static_cast<off_t>(file->memory().size())), 0);
  test::expect_error(CounterView::open(forged).status(), Code::invalid_argument, {"and takes"});
}

// A header and a peer that claim millions of lanes, which are a hole in the file.
TEST(CounterView, shows_no_more_lanes_than_a_file_has_space_for) {
  TemporaryFolder folder;
  Shape shape = some_shape();
  shape.workers_per_node.assign(2000, 16);
  shape.node = 0;
  const auto file = test::value_of(CounterFile::make(shape, folder.path(), 1));
  ASSERT_TRUE(test::is_ok(file->reserve_lanes(0, 16)));
  Peer self{.incarnation = 1, .first_worker = 0, .worker_count = 16 * 2000};
  self.transport = {'t', 'c', 'p'};
  file->set_peer(0, self);
  const NodeView shown = read(file->path());
  EXPECT_GE(shown.outgoing.size(), 16u * 16);
  EXPECT_LE(shown.outgoing.size(), 100'000u);
}

TEST(CounterView, of_a_file_that_was_cut_short_shows_it_as_it_was_and_ended) {
  TemporaryFolder folder;
  const auto file = make(folder.path());
  count(file->worker(0).rows_sent, 3);
  const auto view = test::value_of(CounterView::open(file->path()));
  EXPECT_TRUE(view->read().alive);
  ASSERT_EQ(truncate(file->path().c_str(), 100), 0);
  const NodeView shown = view->read();
  EXPECT_FALSE(shown.alive);
  EXPECT_EQ(shown.workers[0].counters.rows_sent, 3u);
  // Its node counts on: the space must be there again.
  ASSERT_EQ(truncate(file->path().c_str(), static_cast<off_t>(file->memory().size())), 0);
}

TEST(CounterView, of_another_user_is_for_root_alone_and_only_if_it_is_named) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  TemporaryFolder folder;
  const auto file = make(folder.path());
  ASSERT_EQ(chown(file->path().c_str(), 12345, 12345), 0);
  EXPECT_EQ(CounterView::open(file->path()).status().code(), Code::system_error);
  EXPECT_TRUE(test::is_ok(CounterView::open(file->path(), true)));
}

TEST(CounterFile, has_the_node_s_end_only_where_lanes_end_there) {
  const auto without = make("");
  const NodeView plain = test::value_of(CounterView::over(without->memory()))->read();
  EXPECT_FALSE(plain.lanes.end_at_nodes);
  EXPECT_EQ(prometheus_text(plain).find("node_end"), std::string::npos);

  Shape shape = some_shape();
  shape.lanes_end_at_workers = false;
  shape.lanes_end_at_nodes = true;
  const auto file = test::value_of(CounterFile::make(shape, "", 1));
  EXPECT_EQ(CounterFile::bytes(shape),
            CounterFile::bytes(some_shape()) - 3 * (6 - 3) * 2 * 64 + 4 * 64 + kUntakenSlots * 128);
  count(file->node_end().untaken_frames, 7);
  count(file->reader(2).streams, 3);
  const QueryId query{5, 6, 1, 0};
  UntakenStream stream;
  stream.query = query;
  stream.stage = 9;
  stream.frames = 7;
  file->untaken(1).store(stream);
  Peer peer;
  peer.worker_count = 2;
  std::strcpy(peer.transport.data(), "shm");
  file->set_peer(0, peer);
  set(file->incoming(2, 1, 1).unreleased_bytes, 64);
  set(file->incoming(2, 1, 1).last_stage, stage_word(query, 9));
  const NodeView node = test::value_of(CounterView::over(file->memory()))->read();
  EXPECT_TRUE(node.lanes.end_at_nodes);
  EXPECT_EQ(node.node_end.untaken_frames, 7u);
  EXPECT_EQ(node.workers[2].at_node_end.streams, 3u);
  ASSERT_EQ(node.untaken.size(), 1u) << "those without frames are none";
  EXPECT_EQ(node.untaken[0].query, query);
  for (const IncomingLane& lane : node.incoming) {
    const bool holds = lane.sender == 1 && lane.receiver == 4;
    ASSERT_EQ(lane.held.size(), holds ? 1u : 0u);
    if (!holds) continue;
    EXPECT_EQ(lane.held[0].ring, 1u);
    EXPECT_EQ(lane.held[0].bytes, 64u);
    EXPECT_TRUE(is_stage_of(lane.held[0].last_stage, query));
    EXPECT_FALSE(is_stage_of(lane.held[0].last_stage, {6, 6, 1, 0}));
  }
  const std::string page = prometheus_text(node);
  test::expect_contains(page, "faro_node_end_untaken_frames{cluster=\"test\",node=\"1\"} 7\n");
  test::expect_contains(
      page, "faro_worker_node_end_streams{cluster=\"test\",node=\"1\",worker=\"4\"} 3\n");
}

TEST(CounterFile, shows_operators_one_by_one_while_they_live_and_all_that_were_added_up) {
  constexpr uint64_t kAggregation = 1, kJoin = 2;
  TemporaryFolder folder;
  const auto file = make(folder.path());
  OperatorSlots slots = file->operators(2);
  const QueryId query{5, 6, 1, 0};
  OperatorRecord* const one = slots.take({query, 9, kJoin, 77});
  OperatorRecord* const other = slots.take({query, 3, kAggregation, 78});
  ASSERT_TRUE(one != nullptr && other != nullptr);
  OperatorValues of_one, of_other, now;
  now.rows_in = 40;
  now.held_bytes = 64;
  slots.count(one, kJoin, now, of_one);
  slots.count(other, kAggregation, now, of_other);
  now.rows_in = 50;
  now.held_bytes = 32;
  slots.count(one, kJoin, now, of_one);

  const auto view = test::value_of(CounterView::open(file->path()));
  NodeView node = view->read();
  EXPECT_TRUE(node.workers[0].operators.empty());
  ASSERT_EQ(node.workers[2].operators.size(), 2u);
  const OperatorView& shown = node.workers[2].operators[0];
  EXPECT_EQ(shown.query, query);
  EXPECT_EQ(shown.stage, 9u);
  EXPECT_EQ(shown.kind, kJoin);
  EXPECT_EQ(shown.since_ns, 77u);
  EXPECT_EQ(shown.counters.rows_in, 50u);
  EXPECT_EQ(shown.counters.held_bytes, 32u);

  OperatorValues of_third;  // for which there is no room
  now.rows_in = 1000;
  slots.count(nullptr, kJoin, now, of_third);
  OperatorSlots::free(one);
  node = view->read();
  ASSERT_EQ(node.workers[2].operators.size(), 1u);
  EXPECT_EQ(node.workers[2].operators[0].stage, 3u);
  EXPECT_EQ(node.workers[2].operator_totals[kAggregation - 1].rows_in, 40u);
  EXPECT_EQ(node.workers[2].operator_totals[kJoin - 1].rows_in, 1050u);
  EXPECT_EQ(node.workers[2].operator_totals[kJoin - 1].held_bytes, 64u);
  EXPECT_EQ(node.workers[1].operator_totals[kJoin - 1].rows_in, 0u);
  const std::string page = prometheus_text(node);
  const std::string of_worker = R"({cluster="test",node="1",worker="4",kind=)";
  test::expect_contains(page, "faro_operator_rows_in_total" + of_worker + "\"join\"} 1050\n");
  test::expect_contains(page, "faro_operator_held_bytes" + of_worker + "\"aggregation\"} 64\n");

  OperatorRecord* const again = slots.take({query, 4, kJoin, 79});
  EXPECT_EQ(again, one);
  node = view->read();
  EXPECT_EQ(node.workers[2].operators[0].counters.rows_in, 0u) << "nothing of the one before";
  for (uint32_t taken = 2; taken < kOperatorSlots; ++taken)
    EXPECT_NE(slots.take({query, 4, kJoin, 79}), nullptr);
  EXPECT_EQ(slots.take({query, 4, kJoin, 79}), nullptr);
}

TEST(CounterView, names_both_versions_of_a_layout_it_does_not_know) {
  const auto file = make("");
  std::vector<uint64_t> copy = copy_of(*file);
  reinterpret_cast<Header*>(copy.data())->version = 77;
  test::expect_error(CounterView::over(std::as_bytes(std::span(copy))).status(),
                     Code::invalid_argument, {"version 77"});
}

// Every byte of the header, one at a time: refused, or read without leaving the memory (which the
// sanitizers see).
TEST(CounterView, never_leaves_the_memory_of_a_file_whose_header_lies) {
  const auto file = make("");
  int refused = 0;
  for (size_t byte = 0; byte < sizeof(Header); ++byte) {
    for (const unsigned value : {0x00u, 0x01u, 0x7fu, 0xffu}) {
      std::vector<uint64_t> copy = copy_of(*file);
      reinterpret_cast<unsigned char*>(copy.data())[byte] = static_cast<unsigned char>(value);
      const auto view = CounterView::over(std::as_bytes(std::span(copy)));
      if (view.ok()) {
        (void)(*view)->read();
      } else {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace faro::counters
