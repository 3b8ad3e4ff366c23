#include "lab/bench/one_stage_worker.h"

#include <algorithm>
#include <utility>

namespace faro::bench {

Status OneStageWorker::open(const QueryId& query) {
  ShuffleSpec spec;
  spec.query = query;
  spec.row_bytes = row_bytes();
  Result<Shuffle> shuffle = worker_.open_shuffle(spec);
  if (!shuffle) return shuffle.status();
  shuffle_ = std::move(shuffle).value();
  Result<ShuffleSender> sender = shuffle_.sender();
  if (!sender) return sender.status();
  sender_ = *sender;
  Result<ShuffleReceiver> receiver = shuffle_.receiver();
  if (!receiver) return receiver.status();
  receiver_ = *receiver;
  sink_.reset();
  rest_.begin = worker_.number() * rows_;
  rest_.end = rest_.begin + rows_;
  finished_ = ended_ = failed_ = false;
  return begin();
}

Status OneStageWorker::close() {
  const Status status = failed_ ? shuffle_.status() : Status::Ok();
  shuffle_.close();
  return status;
}

bool OneStageWorker::turn() {
  bool moved = consume();
  if (!moved) moved = send();
  progress_.store(sink_.count(), std::memory_order_relaxed);
  return moved || over();
}

bool OneStageWorker::consume() {
  bool moved = false;
  while (!ended_) {
    const Outcome outcome = receiver_.receive(batch_, Wait::none());
    if (outcome != Outcome::done) {
      ended_ = outcome == Outcome::end_of_stream;
      failed_ |= outcome == Outcome::failed;
      return moved || ended_;
    }
    check(batch_, sink_);
    batch_.release();
    moved = true;
  }
  return moved;
}

bool OneStageWorker::send() {
  if (finished_) return false;
  Outcome outcome = Outcome::done;
  bool moved = produce(outcome);
  if (outcome == Outcome::done && is_sent()) {
    outcome = sender_.finish(Wait::none());
    finished_ = outcome == Outcome::done;
    moved |= finished_;
  }
  failed_ |= outcome == Outcome::failed;
  return moved;
}

Result<FaroRun> run_one_stage(const OneStageJob& job, const FaroOptions& faro,
                              const RunOptions& options, const MakeRoundWorker& make_worker) {
  TwoStageJob shape;  // for the shape of the process group only
  shape.process_count = job.process_count;
  shape.workers_per_process = job.workers_per_process;
  ClusterOptions cluster;
  cluster.group = group_options(shape, options);
  cluster.config = faro.config;
  cluster.hosts = faro.hosts;
  Result<ClusterRun> ran = run_cluster(cluster, make_worker, options.progress);
  if (!ran) return ran.status();

  RunFigures expected;
  expected.rows = job.sent;
  expected.hops = expected.expected_count = job.received;
  for (uint64_t n = 0; n < job.sent; ++n) expected.expected_checksum += mix(n);
  expected.expected_checksum *= job.received / std::max<uint64_t>(1, job.sent);
  FaroRun run;
  for (size_t round = options.warmup_rounds; round < ran->rounds.size(); ++round) {
    const RoundTotals& totals = ran->rounds[round];
    RunFigures figures = expected;
    figures.seconds = totals.seconds;
    figures.cpu_seconds = totals.cpu_seconds;
    figures.count = totals.count;
    figures.checksum = totals.checksum;
    figures.verified =
        figures.count == figures.expected_count && figures.checksum == figures.expected_checksum;
    run.rounds.push_back(figures);
  }
  run.nodes = std::move(ran->nodes);
  run.connect_seconds = ran->connect_seconds;
  return run;
}

}  // namespace faro::bench
