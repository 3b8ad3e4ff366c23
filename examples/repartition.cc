// Repartitions a key/value table: rows that were produced anywhere go to the worker that their key belongs to, which sums
// them up. Two nodes with two workers each, in one process for brevity; on a cluster each node opens one session.
#include <cstdio>
#include <thread>
#include <unordered_map>

#include "cluster.h"
#include "faro/session.h"

struct KeyValue {
  uint64_t key, value;
};

// One worker: sends its part of the table, then sums what it receives. All of it is pushed while others still produce.
static uint64_t run(faro::Worker& worker, const faro::QueryId& query) {
  faro::ShuffleSpec spec;
  spec.query = query;
  spec.row_bytes = sizeof(KeyValue);
  faro::Shuffle shuffle = check(worker.open_shuffle(spec));
  const auto sender = check(shuffle.sender<KeyValue>());
  const auto receiver = check(shuffle.receiver());
  for (uint64_t i = 0; i < 100000; ++i) {
    const KeyValue row{i % 1000, worker.number()};
    const uint64_t hash = faro::FinalizerHash{}(row.key);
    check(sender.send(faro::partition(hash, sender.receiver_count()), row), sender);
  }
  check(sender.finish(), sender);

  std::unordered_map<uint64_t, uint64_t> sums;
  faro::Batch batch;
  while (check(receiver.receive(batch), receiver)) {
    for (const KeyValue& row : batch.rows<KeyValue>()) sums[row.key] += row.value;
  }
  shuffle.close();
  check(worker.end_query(query), worker);
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
