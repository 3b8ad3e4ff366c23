// One of two nodes of a session, with one worker each, which send each other rows of many lengths and compare what comes.
//
//   query_peer NODE ADDRESS,ADDRESS FIFO [WORD]...
//
//   FIFO      carries the number of a query from the node that begins it to the other one
//
//   cut       this node breaks its connections in the middle, five times, and goes on when they have been mended
//   added     each node opens its session alone, is then told of the other one, and drained in the end: both nodes say so
//   stays     nobody needs the link for a while: its connections are still there, and there is another query
//   rests     twice, nobody needs the link, and it is let go. Then one node alone needs it, node 0 first, node 1 the second
//             time, and has it made again for another query
//   outlives  the other node leaves after a query, and dies after the next one: this node is told, says which of the two it
//             was, and has a query with each of the three processes
//   dies      in the end, by a signal that nothing can catch
//
// Settings come from the environment. It says "open", and goes on when a byte comes, or when its standard input ends; it says
// "query done" after each query; after all of them it waits for another byte. In the end it says how many rows have come.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
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
  std::set<std::string_view> words;

  uint32_t other() const { return 1 - node; }
  bool has(std::string_view word) const { return words.count(word) != 0; }
};

static Plan read_plan(int argc, char** argv) {
  if (argc < 4) fail("query_peer NODE ADDRESS,ADDRESS FIFO [WORD]...");
  Plan plan{.node = static_cast<uint32_t>(std::atoi(argv[1])), .fifo = argv[3]};
  const std::string list = argv[2];
  plan.addresses[0] = list.substr(0, list.find(','));
  plan.addresses[1] = list.substr(list.find(',') + 1);
  const std::set<std::string_view> known{"cut", "added", "stays", "rests", "outlives", "dies"};
  for (int at = 4; at < argc; ++at) {
    if (known.count(argv[at]) == 0) fail("unknown argument: " + std::string(argv[at]));
    plan.words.insert(argv[at]);
  }
  return plan;
}

static void await_input() {
  char unused;
  (void)!read(STDIN_FILENO, &unused, 1);
}

static void await(const std::function<bool()>& condition, const std::string& what) {
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) fail(what + " within the time limit");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// What the session has told of the other node, and that node 1 is drained.
struct Told {
  std::atomic<uint32_t> left{0}, lost{0}, returned{0};
  std::atomic<bool> drained{false};

  bool nothing() const { return left == 0 && lost == 0 && returned == 0; }
};

/// Threads: one. What the session tells comes from another one.
class Node {
 public:
  explicit Node(const Plan& plan) : plan_(plan), session_(open(plan)) {
    session_->listen(
        {.node_lost = [this](uint32_t, const faro::Status&) { ++told_.lost; },
         .node_left = [this](uint32_t) { ++told_.left; },
         .node_returned = [this](uint32_t) { ++told_.returned; },
         .node_drained = [this](uint32_t node) { told_.drained = told_.drained || node == 1; }});
  }

  /// All that there is to do with the other node. Returns what is to be said of it.
  std::string run() {
    if (plan_.has("added")) add_other();
    run_query(0);
    if (plan_.has("stays")) stay_linked();
    if (plan_.has("rests")) rest();
    if (plan_.has("outlives")) outlive();
    return std::to_string(rows_) + " rows over " + way_of(transport_);
  }

  void drain() {
    check(faro::Nodes(*session_).drain(1));
    await([this] { return told_.drained.load(); }, "node 1 is not drained");
  }
  void close() { check(session_->close()); }

 private:
  static std::unique_ptr<faro::Session> open(const Plan& plan) {
    faro::Config config = environment();
    const std::string& own = plan.addresses[plan.node];
    const std::string alone = plan.node == 0 ? own + ",-" : "-," + own;
    const std::string all = plan.addresses[0] + "," + plan.addresses[1];
    check(config.set("cluster.nodes", plan.has("added") ? alone : all));
    check(config.set("cluster.node", static_cast<uint64_t>(plan.node)));
    if (plan.has("added")) check(config.set("cluster.node_limit", static_cast<uint64_t>(kNodes)));
    return check(faro::Session::open(config));
  }

  void add_other() {
    check(faro::Nodes(*session_).add({plan_.other(), plan_.addresses[plan_.other()]}));
    check(session_->await_node(plan_.other(), faro::Wait::at_most(kLimit)));
  }

  void run_query(uint32_t issuer) {
    const faro::QueryId query = agree_on_query(issuer);
    faro::Worker& worker = session_->worker(0);
    exchange(worker, query);
    transport_ = session_->metrics().links.at(plan_.other()).transport;
    connections_.note();  // while the query needs them
    if (worker.end_query(query, faro::Wait::at_most(kLimit)) != faro::Outcome::done)
      fail("end_query: " + worker.status().to_string());
    say("query done");
  }

  /// Where the link is needed and was let go, the node that begins the query has it made alone.
  faro::QueryId agree_on_query(uint32_t issuer) {
    faro::QueryId query;
    if (plan_.node != issuer) {
      std::ifstream fifo(plan_.fifo, std::ios::binary);
      if (!fifo.read(reinterpret_cast<char*>(&query), sizeof query))
        fail("the other node has not told its query");
    } else {
      query = session_->begin_query();
    }
    if (plan_.has("added")) check(session_->declare_query(query, {0, 1}));
    if (plan_.node != issuer) return query;
    await([this] { return session_->has_node(plan_.other()); }, "the other node is not linked");
    std::ofstream(plan_.fifo, std::ios::binary)
        .write(reinterpret_cast<const char*>(&query), sizeof query);
    return query;
  }

  /// Each row has to come as it was sent, in the order of its sender.
  void exchange(faro::Worker& worker, const faro::QueryId& query) {
    faro::Shuffle shuffle = check(worker.open_shuffle({.query = query, .stage = 3}));
    const faro::ShuffleSender sender = check(shuffle.sender());
    const faro::ShuffleReceiver receiver = check(shuffle.receiver());
    std::vector<std::byte> row;
    for (uint64_t number = 0; number < kRows; ++number) {
      if (plan_.has("cut") && number % (kRows / kCuts) == kRows / kCuts / 2) {
        connections_.cut();
        connections_.await_mended();
      }
      row.resize(length_of(number));
      write_bytes(row, plan_.node, number);
      for (uint32_t to = 0; to < kNodes; ++to) {
        if (sender.send(to, row, faro::Wait::at_most(kLimit)) != faro::Outcome::done)
          fail("send: " + sender.status().to_string());
      }
    }
    if (sender.finish(faro::Wait::at_most(kLimit)) != faro::Outcome::done)
      fail("finish: " + sender.status().to_string());
    receive_all(receiver);
  }

  void receive_all(const faro::ShuffleReceiver& receiver) {
    uint64_t come[kNodes] = {};
    faro::Batch batch;
    faro::Outcome outcome;
    while ((outcome = receiver.receive(batch, faro::Wait::at_most(kLimit))) ==
           faro::Outcome::done) {
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
    rows_ += come[0] + come[1];
  }

  void stay_linked() {
    std::this_thread::sleep_for(kPause);
    if (!session_->has_node(plan_.other()) || !connections_.some_stand() || !told_.nothing())
      fail("the link was not kept");
    run_query(0);
  }

  void rest() {
    for (uint32_t issuer = 0; issuer < kNodes; ++issuer) {
      await([this] { return is_let_go(); }, "the link was not let go");
      // The other node has the link made again only when it begins a query.
      if (plan_.node == issuer && session_->has_node(plan_.other())) fail("it is said to be there");
      if (!told_.nothing()) fail("the other node was told of, and had only let the link go");
      run_query(issuer);
    }
  }
  /// A worker has to make a call before what it has used is given back.
  bool is_let_go() {
    (void)session_->worker(0).wait_until([] { return true; });
    return !connections_.some_stand();
  }

  void outlive() {
    await([this] { return told_.left == 1; }, "the other node has not left");
    say("node_left");
    await([this] { return told_.returned == 1; }, "the other node has not returned");
    run_query(0);
    await([this] { return told_.lost == 1; }, "the other node is not lost");
    say("node_lost");
    await([this] { return told_.returned == 2; }, "the other node has not returned");
    run_query(0);
    if (told_.left != 1 || told_.lost != 1) fail("the other node was told of more than once");
  }

  const Plan& plan_;
  Told told_;
  const std::unique_ptr<faro::Session> session_;
  Connections connections_;
  std::string transport_;
  uint64_t rows_ = 0;  // that have come
};

int main(int argc, char** argv) {
  const Plan plan = read_plan(argc, argv);
  Node node(plan);
  say("open");
  await_input();
  const std::string found = node.run();
  await_input();
  if (plan.has("dies")) std::raise(SIGKILL);
  if (plan.has("added")) node.drain();
  node.close();
  say(found);
}
