// Repartitions a key/value table: rows that were produced anywhere go to the worker that their key belongs to, which sums
// them up. Two nodes with two workers each, in one process for brevity; on a cluster each node opens one session.
#include <algorithm>
#include <cstdio>
#include <span>
#include <unordered_map>
#include <vector>

#include "cluster.h"
#include "faro/session.h"

struct KeyValue {
  uint64_t key, value;
};

// One worker: sends its part of the table and sums what comes, at the same time.
static uint64_t run(faro::Worker& worker, const faro::QueryId& query) {
  faro::QueryScope part(worker, query);  // whichever way this function is left, the query ends here
  faro::Shuffle shuffle =
      check(worker.open_shuffle({query, /*stage=*/0, sizeof(KeyValue), {}, {}}));
  const auto sender = check(shuffle.sender<KeyValue>());
  std::vector<KeyValue> table;
  for (uint64_t i = 0; i < 100000; ++i) table.push_back({i % 1000, worker.number()});

  std::span<const KeyValue> unsent = table;
  const auto produce = [&](const faro::ShuffleSender&) {
    if (unsent.empty()) return faro::Outcome::end_of_stream;
    const auto key = [](const KeyValue& row) { return row.key; };
    const auto some = unsent.first(std::min<size_t>(unsent.size(), 1000));
    const faro::Sent sent = sender.send_all(some, faro::FinalizerHash{}, key, faro::Wait::none());
    unsent = unsent.subspan(sent.rows);
    return sent.outcome;  // would_wait: called again when there is room
  };
  std::unordered_map<uint64_t, uint64_t> sums;
  const auto consume = [&](faro::Batch& batch) {
    for (const KeyValue& row : batch.rows<KeyValue>()) sums[row.key] += row.value;
  };
  check(worker.exchange(shuffle, produce, consume), worker);

  shuffle.close();
  check(part.end(), worker);
  for (const auto& [key, sum] : sums) {
    if (sum != 100 * (0 + 1 + 2 + 3)) std::exit(1);  // 100 rows of each of the four workers
  }
  return sums.size();
}

int main() {
  Cluster cluster(2, 2);
  const faro::QueryId query = cluster.session(0).begin_query();
  std::atomic<uint64_t> keys{0};
  cluster.on_every_worker([&](faro::Worker& worker) { keys += run(worker, query); });
  std::printf("%llu keys, each at one worker, sums as expected\n",
              static_cast<unsigned long long>(keys));
  return keys == 1000 ? 0 : 1;
}
