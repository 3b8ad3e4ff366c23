// A broadcast join: the small table goes to every worker, which joins it with its part of the large one; the matches are
// gathered at worker 0. Two shuffles of one query: the rows of the first travel once to each node, over lanes that end there,
// those of the second over lanes to workers.
#include <span>
#include <unordered_map>
#include <vector>

#include "cluster.h"

struct Order {
  uint64_t customer, amount;
};
struct Customer {
  uint64_t id, discount;
};

static void run(faro::Worker& worker, const faro::QueryId& query, std::atomic<uint64_t>& total) {
  const bool is_first = worker.number() == 0;
  faro::QueryScope part(worker, query);
  faro::ShuffleSpec build{query, 0, sizeof(Customer), {0}, {}};  // stage 0: worker 0 sends to all
  build.delivery = faro::Delivery::replicate;                    // who are one receiver, number 0
  faro::ShuffleSpec gather{query, 1, sizeof(Order), {}, {0}};    // stage 1: all send to worker 0
  faro::Shuffle customers = check(worker.open_shuffle(build));
  faro::Shuffle matches = check(worker.open_shuffle(gather));

  // The build side: worker 0 sends the small table and receives it, the others only receive.
  std::unordered_map<uint64_t, uint64_t> discounts;
  faro::ExchangePart building{&customers, {}, [&](faro::Batch& batch) {
                                for (const Customer& row : batch.rows<Customer>())
                                  discounts.emplace(row.id, row.discount);
                              }};
  std::vector<Customer> table;
  size_t sent = 0;
  if (is_first) {
    for (uint64_t id = 0; id < 5000; ++id) table.push_back({id, id % 10});
    building.produce = [&, to_all = check(customers.sender<Customer>())](const auto&) {
      if (sent == table.size()) return faro::Outcome::end_of_stream;
      const faro::Sent more =
          to_all.broadcast_all(std::span(table).subspan(sent), faro::Wait::none());
      sent += more.rows;
      return more.outcome;
    };
  }
  check(worker.exchange({&building, 1}), worker);

  // The probe side: all send their matches, and worker 0 takes them meanwhile.
  const auto to_first = check(matches.sender<Order>());
  uint64_t customer = 0;  // of the next order
  const auto probe = [&](const faro::ShuffleSender&) {
    for (int i = 0; i < 1000; ++i, ++customer) {
      if (customer == 20000) return faro::Outcome::end_of_stream;
      const auto found = discounts.find(customer);
      if (found == discounts.end()) continue;
      const Order match{customer, 100 - found->second};
      const faro::Outcome outcome = to_first.send(0, match, faro::Wait::none());
      if (outcome != faro::Outcome::done) return outcome;  // this order comes again
    }
    return faro::Outcome::done;
  };
  faro::ExchangePart probing{&matches, probe, {}};
  if (is_first) {
    probing.consume = [&](faro::Batch& batch) {
      for (const Order& row : batch.rows<Order>()) total += row.amount;
    };
  }
  check(worker.exchange({&probing, 1}), worker);

  customers.close();
  matches.close();
  check(part.end(), worker);
}

int main() {
  Cluster cluster(3, 2, "both");
  const faro::QueryId query = cluster.session(0).begin_query();
  std::atomic<uint64_t> total{0};
  cluster.on_every_worker([&](faro::Worker& worker) { run(worker, query, total); });
  std::printf("sum of the joined orders: %llu\n", static_cast<unsigned long long>(total));
  return total == 6 * 5000 * 100 - 6 * 500 * 45 ? 0 : 1;
}
