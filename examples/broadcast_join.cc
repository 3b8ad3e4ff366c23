// A broadcast join: the small table goes to every worker, which joins it with its part of the large one; the matches are
// gathered at worker 0. Two shuffles of one query, at the same time over the same rings.
#include <unordered_map>

#include "cluster.h"

struct Order {
  uint64_t customer, amount;
};
struct Customer {
  uint64_t id, discount;
};

static void run(faro::Worker& worker, const faro::QueryId& query, std::atomic<uint64_t>& total) {
  faro::ShuffleSpec build{query, 0, sizeof(Customer), {0}, {}};  // stage 0: worker 0 sends to all
  faro::ShuffleSpec gather{query, 1, sizeof(Order), {}, {0}};    // stage 1: all send to worker 0
  faro::Shuffle customers = check(worker.open_shuffle(build));
  faro::Shuffle matches = check(worker.open_shuffle(gather));
  if (worker.number() == 0) {
    const auto sender = check(customers.sender<Customer>());
    std::vector<Customer> all;
    for (uint64_t id = 0; id < 5000; ++id) all.push_back({id, id % 10});
    check(sender.broadcast_all(all).outcome, sender);
    check(sender.finish(), sender);
  }
  std::unordered_map<uint64_t, uint64_t> discounts;
  const auto build_side = check(customers.receiver());
  faro::Batch batch;
  while (check(build_side.receive(batch), build_side)) {
    for (const Customer& row : batch.rows<Customer>()) discounts.emplace(row.id, row.discount);
  }
  const auto sender = check(matches.sender<Order>());
  for (uint64_t i = 0; i < 20000; ++i) {  // this worker's part of the orders
    const auto found = discounts.find(i);
    if (found != discounts.end()) check(sender.send(0, Order{i, 100 - found->second}), sender);
  }
  check(sender.finish(), sender);
  if (worker.number() == 0) {
    const auto receiver = check(matches.receiver());
    while (check(receiver.receive(batch), receiver)) {
      for (const Order& row : batch.rows<Order>()) total += row.amount;
    }
  }
  customers.close();
  matches.close();
  check(worker.end_query(query), worker);
}

int main() {
  Cluster cluster(3, 1);
  const faro::QueryId query = cluster.session(0).begin_query();
  std::atomic<uint64_t> total{0};
  cluster.on_every_worker([&](faro::Worker& worker) { run(worker, query, total); });
  std::printf("sum of the joined orders: %llu\n", static_cast<unsigned long long>(total));
  return total == 3 * 5000 * 100 - 3 * 500 * 45 ? 0 : 1;
}
