#include "command/session_probe.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/return_if_error.h"
#include "command/temporary_secret.h"
#include "faro/session.h"

namespace faro::command {
namespace {

constexpr uint32_t kNodes = 2;
constexpr uint64_t kRowsPerNode = 20'000;  // several rings full
constexpr Wait kWait = Wait::at_most(std::chrono::seconds(5));

double seconds_since(uint64_t start_ns) {
  return static_cast<double>(base::SystemClock::instance().now_ns() - start_ns) * 1e-9;
}

/// Calls work(node) for both nodes at the same time. Errors: that of the first node that has one.
template <class Work>
Status on_both(Work work) {
  std::array<Status, kNodes> statuses;
  std::thread other([&] { statuses[1] = work(1u); });
  statuses[0] = work(0u);
  other.join();
  for (const Status& status : statuses) FARO_RETURN_IF_ERROR(status);
  return Status::Ok();
}

Status outcome_status(Outcome outcome, const Shuffle& shuffle, const char* doing) {
  if (outcome == Outcome::failed) return shuffle.status();
  return Status(Code::deadline_exceeded,
                fmt::format("{} rows answered {}", doing, outcome_name(outcome)));
}

struct Received {
  uint64_t count = 0;
  uint64_t sum = 0;
};

/// Every node sends each number n of its own to node n % 2, and takes what comes.
Status shuffle_rows(Worker& worker, const QueryId& query, Received& received) {
  FARO_ASSIGN_OR_RETURN(Shuffle shuffle, worker.open_shuffle({query, 1, sizeof(uint64_t), {}, {}}));
  FARO_ASSIGN_OR_RETURN(const RowSender<uint64_t> sender, shuffle.sender<uint64_t>());
  FARO_ASSIGN_OR_RETURN(const ShuffleReceiver receiver, shuffle.receiver());
  const uint64_t first = worker.number() * kRowsPerNode;
  for (uint64_t n = first; n < first + kRowsPerNode; ++n) {
    const Outcome outcome = sender.send(static_cast<uint32_t>(n % kNodes), n, kWait);
    if (outcome != Outcome::done) return outcome_status(outcome, shuffle, "sending");
  }
  if (const Outcome outcome = sender.finish(kWait); outcome != Outcome::done) {
    return outcome_status(outcome, shuffle, "finishing");
  }
  Batch batch;
  Outcome outcome;
  while ((outcome = receiver.receive(batch, kWait)) == Outcome::done) {
    for (const uint64_t n : batch.rows<uint64_t>()) {
      ++received.count;
      received.sum += n;
    }
  }
  batch.release();
  if (outcome != Outcome::end_of_stream) return outcome_status(outcome, shuffle, "taking");
  shuffle.close();
  outcome = worker.end_query(query, kWait);
  if (outcome == Outcome::done) return Status::Ok();
  if (outcome == Outcome::failed) return worker.status();
  return Status(Code::deadline_exceeded,
                fmt::format("ending the query answered {}", outcome_name(outcome)));
}

}  // namespace

Result<SessionProbe> probe_session(const Config& config, const std::string& host) {
  std::vector<ListeningSocket> listeners;
  std::vector<std::string> addresses;
  for (uint32_t node = 0; node < kNodes; ++node) {
    FARO_ASSIGN_OR_RETURN(ListeningSocket listener, ListeningSocket::bind(host + ":0"));
    addresses.push_back(listener.address());
    listeners.push_back(std::move(listener));
  }
  Config shared = config;
  FARO_RETURN_IF_ERROR(shared.set("cluster.nodes", fmt::format("{}", fmt::join(addresses, ","))));
  FARO_RETURN_IF_ERROR(shared.set("cluster.workers", 1));
  FARO_RETURN_IF_ERROR(shared.set("connect.timeout_ms", 5000));
  FARO_RETURN_IF_ERROR(shared.set("close.timeout_ms", 2000));
  // A certificate is for where the cluster's nodes listen, which is not here.
  FARO_RETURN_IF_ERROR(shared.set("security.tls", "off"));
  // Other machines may be able to reach the address, and no one else should join. Not by a file: there may be no room for one.
  if (!has_secret(config)) {
    FARO_ASSIGN_OR_RETURN(const std::string secret, random_secret());
    FARO_RETURN_IF_ERROR(
        shared.set_bytes("security.secret_file", std::as_bytes(std::span(secret))));
  }

  SessionProbe probe;
  std::array<std::unique_ptr<Session>, kNodes> sessions;
  uint64_t start_ns = base::SystemClock::instance().now_ns();
  const Status connected = on_both([&](uint32_t node) -> Status {
    Config mine = shared;
    FARO_RETURN_IF_ERROR(mine.set("cluster.node", uint64_t{node}));
    FARO_ASSIGN_OR_RETURN(sessions[node], Session::open(mine, std::move(listeners[node])));
    return Status::Ok();
  });
  FARO_RETURN_IF_ERROR(connected);
  probe.connect_seconds = seconds_since(start_ns);

  std::array<Received, kNodes> received;
  start_ns = base::SystemClock::instance().now_ns();
  const QueryId query = sessions[0]->begin_query();
  Status status = on_both([&](uint32_t node) {
    Status done = shuffle_rows(sessions[node]->worker(0), query, received[node]);
    // Otherwise the other node would wait for rows that this one does not send.
    if (!done.ok()) (void)sessions[node]->cancel_query(query, done.message());
    return done;
  });
  probe.shuffle_seconds = seconds_since(start_ns);
  probe.row_count = kNodes * kRowsPerNode;
  for (const LinkMetrics& link : sessions[0]->metrics().links) {
    if (link.node == 1) probe.transport = link.transport;
  }
  const Status closed = on_both([&](uint32_t node) { return sessions[node]->close(); });
  FARO_RETURN_IF_ERROR(status);
  FARO_RETURN_IF_ERROR(closed);

  for (uint32_t node = 0; node < kNodes; ++node) {
    // Half of 0 … 2 * kRowsPerNode - 1: the even numbers, or the odd ones.
    const uint64_t sum = kRowsPerNode * (kRowsPerNode - 1) + node * kRowsPerNode;
    if (received[node].count != kRowsPerNode || received[node].sum != sum) {
      return Status(
          Code::internal_error,
          fmt::format("node {} received {} rows with sum {} where {} with sum {} were sent", node,
                      received[node].count, received[node].sum, kRowsPerNode, sum));
    }
  }
  return probe;
}

}  // namespace faro::command
