// Two processes with an event loop each: one thread serves both workers of its node by epoll, and repartitions rows among
// all four. For engines whose threads must not block inside a call.
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster.h"

static constexpr uint64_t kRows = 300000;  // of each worker
static constexpr uint32_t kLocalWorkers = 2;

// A worker's part of the query, which never waits.
class Part {
 public:
  Part(faro::Worker& worker, const faro::QueryId& query) : worker_(worker), scope_(worker, query) {
    shuffle_ = check(worker.open_shuffle({query, /*stage=*/0, sizeof(uint64_t), {}, {}}));
    sender_ = check(shuffle_.sender<uint64_t>());
    exchange_ = {&shuffle_, [this](const auto&) { return send(); },
                 [this](faro::Batch& batch) { receive(batch); }};
  }

  // Goes on as far as it can. Unless it is over then, the worker's descriptor will be readable when it should go on.
  void go_on() {
    while (!is_over_ && tried(worker_.arm([this] { return turn(); }))) {
    }
  }

  bool is_over() const { return is_over_; }
  uint64_t rows = 0, sum = 0;  // received

 private:
  // Tries everything that there is to do, and says whether anything was done.
  bool turn() {
    if (shuffle_.is_open()) {
      const faro::Outcome outcome = worker_.exchange({&exchange_, 1}, faro::Wait::none());
      if (outcome != faro::Outcome::end_of_stream) return tried(outcome);
      shuffle_.close();
    }
    return is_over_ = tried(scope_.end(faro::Wait::none()));
  }
  bool tried(faro::Outcome outcome) const {
    return outcome != faro::Outcome::would_wait && check(outcome, worker_);
  }
  faro::Outcome send() {
    for (int i = 0; i < 500; ++i, ++sent_) {
      if (sent_ == kRows) return faro::Outcome::end_of_stream;
      const uint64_t row = sent_ * 4 + worker_.number();  // no two are the same
      const faro::Outcome outcome =
          sender_.send(faro::partition(faro::FinalizerHash{}(row), sender_.receiver_count()), row,
                       faro::Wait::none());
      if (outcome != faro::Outcome::done) return outcome;
    }
    return faro::Outcome::done;
  }
  void receive(const faro::Batch& batch) {
    rows += batch.row_count();
    for (const uint64_t row : batch.rows<uint64_t>()) sum += row;
  }

  faro::Worker& worker_;
  faro::QueryScope scope_;
  faro::Shuffle shuffle_;
  faro::RowSender<uint64_t> sender_;
  faro::ExchangePart exchange_;
  uint64_t sent_ = 0;
  bool is_over_ = false;
};

struct Received {
  uint64_t rows = 0, sum = 0;
};

// The event loop of a node.
static Received serve(faro::Session& session, const faro::QueryId& query) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  std::vector<std::unique_ptr<Part>> parts;
  for (uint32_t w = 0; w < kLocalWorkers; ++w) {
    epoll_event interest{};
    interest.events = EPOLLIN;
    interest.data.u32 = w;
    epoll_ctl(epoll, EPOLL_CTL_ADD, check(session.worker(w).ready_descriptor()), &interest);
    parts.push_back(std::make_unique<Part>(session.worker(w), query));
    parts[w]->go_on();
  }
  while (!parts[0]->is_over() || !parts[1]->is_over()) {
    epoll_event ready[kLocalWorkers];
    const int count = epoll_wait(epoll, ready, kLocalWorkers, -1);
    for (int i = 0; i < count; ++i) parts[ready[i].data.u32]->go_on();
  }
  close(epoll);
  return {parts[0]->rows + parts[1]->rows, parts[0]->sum + parts[1]->sum};
}

int main() {
  std::vector<faro::ListeningSocket> listeners = bind_listeners(2);
  const std::string nodes = addresses(listeners);
  int to_child[2], to_parent[2];
  if (pipe(to_child) != 0 || pipe(to_parent) != 0) return 1;
  const pid_t child = fork();  // before there is a session
  if (child < 0) return 1;
  const uint32_t node = child == 0 ? 1 : 0;
  const auto session = open_node(node, nodes, std::move(listeners[node]), kLocalWorkers);
  faro::QueryId query;  // travels with the plan
  if (child == 0) {
    if (read(to_child[0], &query, sizeof query) != sizeof query) return 1;
    const Received here = serve(*session, query);
    return write(to_parent[1], &here, sizeof here) == sizeof here ? 0 : 1;
  }
  query = session->begin_query();
  if (write(to_child[1], &query, sizeof query) != sizeof query) return 1;
  const Received here = serve(*session, query);
  Received there;
  int status = 1;
  if (read(to_parent[0], &there, sizeof there) != sizeof there ||
      waitpid(child, &status, 0) != child)
    return 1;
  const uint64_t rows = 4 * kRows;
  std::printf("%llu rows over 2 processes, received by one thread in each\n",
              static_cast<unsigned long long>(here.rows + there.rows));
  return status == 0 && here.rows + there.rows == rows &&
                 here.sum + there.sum == rows * (rows - 1) / 2
             ? 0
             : 1;
}
