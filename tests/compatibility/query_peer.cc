// One of two nodes of a session, with one worker each, which send each other rows of many lengths and compare what comes.
//
//   query_peer NODE ADDRESS,ADDRESS FIFO [cut | added | twice]...
//
//   FIFO    carries the queries' numbers from node 0 to node 1
//   cut     this node breaks its connections in the middle, five times, and goes on when they have been mended
//   added   each node opens its session alone, is then told of the other one, and drained in the end: both nodes say so
//   twice   after a pause, in which nobody needs the link, there is another query
//
// Settings come from the environment. It says "open", goes on when its standard input ends, and says in the end how many rows have come.
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "connections.h"
#include "faro/nodes.h"
#include "faro/session.h"
#include "peer.h"

using namespace compatibility;

static constexpr uint32_t kNodes = 2;
static constexpr uint64_t kRows = 6'000;  // of each node, to each
static constexpr uint64_t kCuts = 5;
static constexpr std::chrono::seconds kLimit{20};
static constexpr std::chrono::seconds kPause{4};

/// Most rows share a frame; every thousandth is larger than one.
static size_t length_of(uint64_t number) {
  return number % 1'000 == 999 ? 100'000 : number * 31 % 300;
}

struct Plan {
  uint32_t node = 0;
  std::string addresses[kNodes];
  std::string fifo;
  bool cuts = false, added = false, twice = false;

  uint32_t other() const { return 1 - node; }
};

static Plan read_plan(int argc, char** argv) {
  if (argc < 4) fail("query_peer NODE ADDRESS,ADDRESS FIFO [cut | added | twice]...");
  Plan plan{.node = static_cast<uint32_t>(std::atoi(argv[1])), .fifo = argv[3]};
  const std::string list = argv[2];
  plan.addresses[0] = list.substr(0, list.find(','));
  plan.addresses[1] = list.substr(list.find(',') + 1);
  for (int at = 4; at < argc; ++at) {
    const std::string_view word = argv[at];
    plan.cuts = plan.cuts || word == "cut";
    plan.added = plan.added || word == "added";
    plan.twice = plan.twice || word == "twice";
    if (word != "cut" && word != "added" && word != "twice")
      fail("unknown argument: " + std::string(word));
  }
  return plan;
}

static std::unique_ptr<faro::Session> open_session(const Plan& plan) {
  faro::Config config = environment();
  const std::string& own = plan.addresses[plan.node];
  const std::string alone = plan.node == 0 ? own + ",-" : "-," + own;
  const std::string all = plan.addresses[0] + "," + plan.addresses[1];
  check(config.set("cluster.nodes", plan.added ? alone : all));
  check(config.set("cluster.node", static_cast<uint64_t>(plan.node)));
  if (plan.added) check(config.set("cluster.node_limit", static_cast<uint64_t>(kNodes)));
  return check(faro::Session::open(config));
}

static faro::QueryId agree_on_query(const Plan& plan, faro::Session& session) {
  faro::QueryId query;
  if (plan.node == 0) {
    query = session.begin_query();
    std::ofstream(plan.fifo, std::ios::binary)
        .write(reinterpret_cast<const char*>(&query), sizeof query);
  } else {
    std::ifstream fifo(plan.fifo, std::ios::binary);
    if (!fifo.read(reinterpret_cast<char*>(&query), sizeof query))
      fail("node 0 has not told its query");
  }
  if (plan.added) check(session.declare_query(query, {0, 1}));
  return query;
}

/// Rows that have come, each of them as it was sent, in the order of its sender.
static uint64_t exchange(const Plan& plan, faro::Worker& worker, const faro::QueryId& query) {
  faro::Shuffle shuffle = check(worker.open_shuffle({.query = query, .stage = 3}));
  const faro::ShuffleSender sender = check(shuffle.sender());
  const faro::ShuffleReceiver receiver = check(shuffle.receiver());
  Connections connections;
  std::vector<std::byte> row;
  for (uint64_t number = 0; number < kRows; ++number) {
    if (plan.cuts && number % (kRows / kCuts) == kRows / kCuts / 2) {
      connections.cut();
      connections.await_mended();
    }
    row.resize(length_of(number));
    write_bytes(row, plan.node, number);
    for (uint32_t to = 0; to < kNodes; ++to) {
      if (sender.send(to, row, faro::Wait::at_most(kLimit)) != faro::Outcome::done)
        fail("send: " + sender.status().to_string());
    }
  }
  if (sender.finish(faro::Wait::at_most(kLimit)) != faro::Outcome::done)
    fail("finish: " + sender.status().to_string());

  uint64_t come[kNodes] = {};
  faro::Batch batch;
  faro::Outcome outcome;
  while ((outcome = receiver.receive(batch, faro::Wait::at_most(kLimit))) == faro::Outcome::done) {
    uint64_t& number = come[batch.sender()];
    for (const std::span<const std::byte> each : batch.each_row()) {
      if (each.size() != length_of(number) || !has_bytes(each, batch.sender(), number))
        fail("row " + std::to_string(number) + " of node " + std::to_string(batch.sender()) +
             " is wrong");
      ++number;
    }
  }
  if (outcome != faro::Outcome::end_of_stream) fail("receive: " + receiver.status().to_string());
  if (come[0] != kRows || come[1] != kRows) fail("rows are missing");
  return come[0] + come[1];
}

/// Returns how many rows have come.
static uint64_t run_query(const Plan& plan, faro::Session& session) {
  const faro::QueryId query = agree_on_query(plan, session);
  faro::Worker& worker = session.worker(0);
  const uint64_t rows = exchange(plan, worker, query);
  if (worker.end_query(query, faro::Wait::at_most(kLimit)) != faro::Outcome::done)
    fail("end_query: " + worker.status().to_string());
  return rows;
}

int main(int argc, char** argv) {
  const Plan plan = read_plan(argc, argv);
  std::atomic<bool> drained{false};
  const std::unique_ptr<faro::Session> session = open_session(plan);
  session->listen({.node_drained = [&drained](uint32_t node) { drained = drained || node == 1; }});
  say("open");
  for (char unused; read(STDIN_FILENO, &unused, 1) > 0;) {
  }
  faro::Nodes nodes(*session);
  if (plan.added) check(nodes.add({plan.other(), plan.addresses[plan.other()]}));
  if (plan.added) check(session->await_node(plan.other(), faro::Wait::at_most(kLimit)));

  uint64_t rows = run_query(plan, *session);
  if (plan.twice) {
    std::this_thread::sleep_for(kPause);
    rows += run_query(plan, *session);
  }
  const std::string transport = session->metrics().links.at(plan.other()).transport;

  if (plan.added) {
    check(nodes.drain(1));
    const auto deadline = std::chrono::steady_clock::now() + kLimit;
    while (!drained) {
      if (std::chrono::steady_clock::now() > deadline) fail("node 1 is not drained");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  check(session->close());
  say(std::to_string(rows) + " rows over " + way_of(transport));
}
