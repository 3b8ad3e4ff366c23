// pod_session <port of the harness> <node> <addresses>: a node of one worker, which runs the queries that it is told to.
//
// A query has two stages: each worker makes rows, which go to the worker that they belong to; that one makes another row of each,
// which goes to the worker that this one belongs to. Every worker knows which rows it has to get, and tells their number and sum.
#include "faro/session.h"
#include "driver.h"

namespace {

using pod::mix;

/// Rows that belong to `worker` of two in the second stage.
struct Tally {
  uint64_t count = 0, sum = 0;
  void add(uint64_t row) {
    ++count;
    sum += row;
  }
  bool operator==(const Tally&) const = default;
};

Tally expected(uint32_t worker, uint64_t rows) {
  Tally tally;
  for (uint64_t i = 0; i < 2 * rows; ++i)
    if (const uint64_t row = mix(mix(i)); row % 2 == worker) tally.add(row);
  return tally;
}

class Node {
 public:
  Node(pod::Driver& driver, faro::Session& session)
      : driver_(driver), session_(session), worker_(session.worker(0)) {}

  /// Runs a query, as run() does. If it fails all are told why, and the node stays.
  void run_or_fail(const faro::QueryId& query, uint64_t rows, bool pauses) {
    try {
      run(query, rows, pauses);
    } catch (const pod::Failure& failure) {
      (void)worker_.end_query(query, failure.status);
      driver_.say("failed " + failure.status.to_string());
    }
  }

 private:
  /// `rows`: of each worker, which sends all of the first stage before it receives any. With `pauses` it says "halfway" then, and
  /// goes on when it is told to.
  void run(const faro::QueryId& query, uint64_t rows, bool pauses) {
    faro::Shuffle first = open(query, 0);
    faro::Shuffle second = open(query, 1);
    const auto out = pod::check(first.sender<uint64_t>());
    const uint64_t from = session_.node() * rows;
    for (uint64_t i = 0; i < rows; ++i) {
      if (pauses && i == rows / 2) {
        driver_.say("halfway");
        driver_.hear();
      }
      send(out, mix(from + i));
    }
    done(out.finish(), out);

    const auto onward = pod::check(second.sender<uint64_t>());
    std::vector<uint64_t> batch;
    while (receive(first, batch))
      for (const uint64_t row : batch) send(onward, mix(row));
    done(onward.finish(), onward);
    Tally tally;
    while (receive(second, batch))
      for (const uint64_t row : batch) tally.add(row);

    first.close();
    second.close();
    done(worker_.end_query(query), worker_);
    const bool is_right = tally == expected(session_.node(), rows);
    driver_.say((is_right ? "verified " : "wrong ") + std::to_string(tally.count) + " " +
                std::to_string(tally.sum));
  }

  template <typename Object>
  bool done(faro::Outcome outcome, const Object& of) {
    if (outcome == faro::Outcome::failed) pod::check(of.status());
    return outcome == faro::Outcome::done;
  }

  faro::Shuffle open(const faro::QueryId& query, uint32_t stage) {
    faro::ShuffleSpec spec;
    spec.query = query;
    spec.stage = stage;
    spec.row_bytes = sizeof(uint64_t);
    return pod::check(worker_.open_shuffle(spec));
  }

  void send(const faro::RowSender<uint64_t>& sender, uint64_t row) {
    done(sender.send(static_cast<uint32_t>(row % 2), row), sender);
  }

  /// A copy of the next batch, which is released; false: there is none.
  bool receive(const faro::Shuffle& shuffle, std::vector<uint64_t>& rows) {
    const auto receiver = pod::check(shuffle.receiver());
    faro::Batch batch;
    if (!done(receiver.receive(batch), receiver)) return false;
    rows.clear();
    for (const uint64_t row : batch.rows<uint64_t>()) {
      if (row % 2 != session_.node()) driver_.say("wrong worker");
      rows.push_back(row);
    }
    return true;
  }

  pod::Driver& driver_;
  faro::Session& session_;
  faro::Worker& worker_;
};

std::string encoded(const faro::QueryId& query) {
  std::ostringstream text;  // as QueryId.encoded in Java
  text << query.issuer << ":" << query.counter << ":" << std::hex << query.incarnation;
  return text.str();
}

faro::QueryId parsed(const std::string& text) {
  faro::QueryId query;
  std::istringstream parts(text);
  char colon = 0;
  parts >> query.issuer >> colon >> query.counter >> colon >> std::hex >> query.incarnation;
  return query;
}

void serve(pod::Driver& driver, const char* number, const char* addresses) {
  const pod::Termination termination(driver);
  faro::Config config;
  pod::check(config.load_environment());
  pod::check(config.set("cluster.node", number));
  pod::check(config.set("cluster.nodes", addresses));
  const auto session = pod::check(faro::Session::open(config));
  faro::SessionListener listener;
  listener.node_left = [&](uint32_t) { driver.say("peer left"); };
  listener.node_lost = [&](uint32_t, const faro::Status& cause) {
    driver.say("peer lost " + cause.to_string());
  };
  session->listen(listener);
  driver.say("open");
  Node node(driver, *session);
  for (;;) {
    const std::vector<std::string> told = driver.hear();
    if (told.empty() || told[0] == "close") break;
    if (told[0] == "begin") driver.say("query " + encoded(session->begin_query()));
    if (told[0] == "run") node.run_or_fail(parsed(told[1]), std::stoull(told[2]), told.size() > 3);
  }
  pod::check(session->close());
}

}  // namespace

int main(int, char** words) {
  return pod::run(words[1], [&](pod::Driver& driver) { serve(driver, words[2], words[3]); });
}
