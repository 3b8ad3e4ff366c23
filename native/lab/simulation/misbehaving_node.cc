#include "lab/simulation/misbehaving_node.h"

#include <algorithm>
#include <array>
#include <vector>

#include "node/session_access.h"
#include "shuffle/query/query.h"

namespace faro::simulation {
namespace {

constexpr uint32_t kRowBytes = 24;

}  // namespace

MisbehavingNode::MisbehavingNode(Cluster& cluster, const RunPlan& plan, Ledger& ledger,
                                 uint32_t node, uint64_t seed)
    : cluster_(cluster),
      plan_(plan),
      ledger_(ledger),
      node_(node),
      chance_(mix(plan.seed, node, seed)) {}

QueryId MisbehavingNode::some_id() {
  session::Membership& membership = SessionAccess::core(cluster_.session(node_)).membership();
  const uint64_t way = chance_.below(8);
  if (way < 6) {
    QueryId id = ledger_.queries[chance_.below(ledger_.queries.size())].id;
    if (way == 5) id.counter += chance_.between(1, 3);
    return id;
  }
  const uint32_t issuer = some_node();
  return {chance_.between(1, 1'000'000), membership.peers().incarnation(issuer), issuer, 0};
}

bool MisbehavingNode::is_own(const QueryId& id) const {
  for (size_t q = 0; q < ledger_.queries.size(); ++q) {
    if (ledger_.queries[q].id == id) return plan_.concerns(plan_.queries[q], node_);
  }
  return false;
}

wire::QueryMessage MisbehavingNode::some_message() {
  constexpr std::array kCodes = {Code::ok, Code::query_failed, Code::query_cancelled,
                                 Code::peer_lost};
  wire::QueryMessage message;
  message.kind = static_cast<wire::QueryMessageKind>(chance_.between(1, 5));
  message.query = shuffle::to_key(some_id());
  message.first = static_cast<uint32_t>(chance_.below(6));  // a node, or a stage
  message.second = static_cast<int32_t>(kCodes[chance_.below(kCodes.size())]);
  if (message.kind == wire::QueryMessageKind::stop)
    message.second = static_cast<int32_t>(chance_.below(plan_.worker_count()));
  message.number = chance_.one_in(2) ? UINT64_MAX : chance_.below(4);
  message.text = "a lie";
  return message;
}

void MisbehavingNode::tell(uint32_t count) {
  session::Membership& membership = SessionAccess::core(cluster_.session(node_)).membership();
  for (; count > 0; --count) {
    const uint32_t to = some_node();
    if (to == node_) continue;
    const wire::QueryMessage message = some_message();
    const std::vector<std::byte> bytes = wire::encode(message);
    for (uint64_t times = chance_.between(1, 2); times > 0; --times) membership.send(to, bytes);
    ++ledger_.happened.lies;
    remember(message, to);
  }
}

// The one lie about its own part that makes a query end with data too early: in the issuer's eyes it has ended.
void MisbehavingNode::remember(const wire::QueryMessage& message, uint32_t to) {
  if (message.kind != wire::QueryMessageKind::ended ||
      message.second != static_cast<int32_t>(Code::ok))
    return;
  const QueryId id = shuffle::to_id(message.query);
  if (id.issuer != to) return;
  for (Ledger::QueryRecord& record : ledger_.queries) {
    if (record.id == id) record.said_to_end.insert(node_);
  }
}

void MisbehavingNode::send_rows(Worker& worker) {
  ShuffleSpec spec;
  spec.query = some_id();
  if (is_own(spec.query)) return;
  spec.stage = static_cast<uint32_t>(chance_.below(8));
  spec.row_bytes = kRowBytes;
  spec.senders = {worker.number()};
  for (uint32_t other = 0; other < plan_.worker_count(); ++other) {
    if (plan_.node_of(other) != node_) spec.receivers.push_back(other);
  }
  Result<Shuffle> shuffle = worker.open_shuffle(spec);
  if (!shuffle.ok()) return;
  const Result<ShuffleSender> sender = shuffle->sender();
  ++ledger_.happened.lying_shuffles;
  const std::vector<std::byte> row(kRowBytes, std::byte{0xEE});
  for (uint64_t rows = chance_.below(20); rows > 0; --rows)
    (void)sender->send(static_cast<uint32_t>(chance_.below(spec.receivers.size())), row,
                       Wait::none());
  (void)sender->flush();
  if (chance_.one_in(2)) (void)sender->finish(Wait::none());
  shuffle->close();
}

}  // namespace faro::simulation
