// two_stage_mpi: the two-stage job over MPI, a rank for each worker. --form
//   isend       frames of 16 KiB by MPI_Isend to receives that were posted ahead
//   alltoallv   in steps: every rank generates a block, MPI_Alltoallv, n*3/2, MPI_Alltoallv
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "frame_worker.h"
#include "peer_program.h"

namespace faro::evaluate {
namespace {

/// Two frames under way to each receiver and stage, four receives posted ahead for each stage, whose
/// number is the tag. Larger than what MPI sends eagerly: a sender waits until its receiver takes more.
class MpiCarrier final : public FrameCarrier {
 public:
  explicit MpiCarrier(uint32_t ranks) : ranks_(ranks), sends_(kStages * ranks) {
    for (uint32_t stage = 0; stage < kStages; ++stage) {
      receives_[stage].resize(kPosted);
      for (Frame& frame : receives_[stage]) post(stage, frame);
    }
  }
  ~MpiCarrier() override {
    for (auto& posted : receives_) {
      for (Frame& frame : posted) {
        MPI_Cancel(&frame.request);
        MPI_Wait(&frame.request, MPI_STATUS_IGNORE);
      }
    }
  }

  std::byte* try_open(uint32_t stage, uint32_t to) override {
    Sends& sends = sends_[stage * ranks_ + to];
    Frame& frame = sends.frames[sends.next];
    int done = 0;
    MPI_Test(&frame.request, &done, MPI_STATUS_IGNORE);
    return done != 0 ? frame.memory.data() : nullptr;
  }
  bool try_send(uint32_t stage, uint32_t to, size_t bytes) override {
    Sends& sends = sends_[stage * ranks_ + to];
    Frame& frame = sends.frames[sends.next];
    sends.next = (sends.next + 1) % kUnderWay;
    MPI_Isend(frame.memory.data(), static_cast<int>(bytes), MPI_BYTE, static_cast<int>(to),
              static_cast<int>(stage), MPI_COMM_WORLD, &frame.request);
    return true;
  }
  Arrived try_receive(uint32_t stage) override {
    Frame& frame = receives_[stage][oldest_[stage]];
    int done = 0;
    MPI_Status status;
    MPI_Test(&frame.request, &done, &status);
    if (done == 0) return {};
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    return {true, {frame.memory.data(), static_cast<size_t>(bytes)}};
  }
  void release(uint32_t stage) override {
    post(stage, receives_[stage][oldest_[stage]]);
    oldest_[stage] = (oldest_[stage] + 1) % kPosted;
  }

  /// Everything that was sent is on its way. Blocks.
  void wait_for_sends() {
    for (Sends& sends : sends_) {
      for (Frame& frame : sends.frames) MPI_Wait(&frame.request, MPI_STATUS_IGNORE);
    }
  }

 private:
  static constexpr size_t kUnderWay = 2;
  static constexpr size_t kPosted = 4;

  struct Frame {
    std::vector<std::byte> memory = std::vector<std::byte>(kFrameBytes);
    MPI_Request request = MPI_REQUEST_NULL;
  };
  struct Sends {
    Frame frames[kUnderWay];
    size_t next = 0;
  };

  void post(uint32_t stage, Frame& frame) {
    MPI_Irecv(frame.memory.data(), kFrameBytes, MPI_BYTE, MPI_ANY_SOURCE, static_cast<int>(stage),
              MPI_COMM_WORLD, &frame.request);
  }

  const uint32_t ranks_;
  std::vector<Sends> sends_;
  std::vector<Frame> receives_[kStages];
  size_t oldest_[kStages] = {};
};

/// One stage of a step: rows sorted by receiver, and what came.
class Exchange {
 public:
  explicit Exchange(uint32_t ranks)
      : ranks_(ranks),
        send_counts_(ranks),
        receive_counts_(ranks),
        send_begins_(ranks),
        receive_begins_(ranks) {}

  /// Blocks: until all ranks have come here.
  std::vector<uint64_t>& run(const uint64_t* rows, size_t count) {
    receivers_.resize(count);
    sorted_.resize(count);
    partition_all(FinalizerHash{}, std::span<const uint64_t>(rows, count), ranks_,
                  receivers_.data());
    std::fill(send_counts_.begin(), send_counts_.end(), 0);
    for (const uint32_t receiver : receivers_) ++send_counts_[receiver];
    std::exclusive_scan(send_counts_.begin(), send_counts_.end(), send_begins_.begin(), 0);
    at_ = send_begins_;
    for (size_t i = 0; i < count; ++i) sorted_[static_cast<size_t>(at_[receivers_[i]]++)] = rows[i];
    MPI_Alltoall(send_counts_.data(), 1, MPI_INT, receive_counts_.data(), 1, MPI_INT,
                 MPI_COMM_WORLD);
    std::exclusive_scan(receive_counts_.begin(), receive_counts_.end(), receive_begins_.begin(), 0);
    received_.resize(static_cast<size_t>(receive_begins_.back() + receive_counts_.back()));
    MPI_Alltoallv(sorted_.data(), send_counts_.data(), send_begins_.data(), MPI_UINT64_T,
                  received_.data(), receive_counts_.data(), receive_begins_.data(), MPI_UINT64_T,
                  MPI_COMM_WORLD);
    return received_;
  }

 private:
  const uint32_t ranks_;
  std::vector<int> send_counts_, receive_counts_, send_begins_, receive_begins_, at_;
  std::vector<uint32_t> receivers_;
  std::vector<uint64_t> sorted_;
  std::vector<uint64_t> received_;
};

/// Threads: one.
class Rank {
 public:
  explicit Rank(const bench::TwoStageJob& job)
      : job_(job), exchanges_{Exchange(job.worker_count()), Exchange(job.worker_count())} {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    rank_ = static_cast<uint32_t>(rank);
  }

  /// On rank 0 what the round took, elsewhere a part of it. Blocks.
  template <typename Work>
  bench::RoundTotals round(const Work& work) {
    MPI_Barrier(MPI_COMM_WORLD);
    const RoundClock clock;
    const workload::Totals rows = work();
    // In this order: what a rank takes while it waits for the others is not counted.
    uint64_t mine[] = {clock.cpu_taken_ns(), rows.count, rows.checksum};
    uint64_t end_ns = RoundClock::now_ns();
    uint64_t start_ns = clock.start_ns();
    uint64_t sums[3] = {};
    uint64_t first_ns = 0;
    uint64_t last_ns = 0;
    MPI_Reduce(mine, sums, 3, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&start_ns, &first_ns, 1, MPI_UINT64_T, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&end_ns, &last_ns, 1, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    bench::RoundTotals totals;
    totals.seconds = static_cast<double>(last_ns - first_ns) * 1e-9;
    totals.cpu_seconds = static_cast<double>(sums[0]) * 1e-9;
    totals.rows = {sums[1], sums[2]};
    return totals;
  }

  workload::Totals frames(MpiCarrier& carrier, FrameWorker& worker) {
    worker.begin();
    while (!worker.over()) {
      if (!worker.turn()) sched_yield();
    }
    carrier.wait_for_sends();
    return worker.totals();
  }

  workload::Totals steps() {
    using Loops = workload::RowLoops<sizeof(uint64_t)>;
    // About a frame for each receiver. All ranks take as many steps as the one that has most to do.
    const uint64_t block = kFrameBytes / sizeof(uint64_t) * job_.worker_count();
    const uint64_t most =
        (job_.rows_per_process + job_.workers_per_process - 1) / job_.workers_per_process;
    workload::IntegerRange rest = job_.range_of(rank_);
    std::vector<uint64_t> generated(block);
    std::vector<uint64_t> forwarded;
    workload::RowSum sink;
    uint64_t damage = 0;
    for (uint64_t done = 0; done < most; done += block) {
      const uint64_t count = std::min(block, rest.size());
      Loops::generate(rest.begin, count, generated.data());
      rest.begin += count;
      const std::vector<uint64_t>& first = exchanges_[0].run(generated.data(), count);
      forwarded.resize(first.size());
      Loops::transform(first.data(), first.size(), forwarded.data(), damage);
      const std::vector<uint64_t>& second = exchanges_[1].run(forwarded.data(), forwarded.size());
      sink += Loops::sum(second.data(), second.size());
    }
    sink.damage |= damage;
    return sink.totals();
  }

  uint32_t number() const noexcept { return rank_; }

 private:
  const bench::TwoStageJob job_;
  uint32_t rank_ = 0;
  Exchange exchanges_[kStages];
};

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string whole(text, static_cast<size_t>(length));
  return whole.substr(0, whole.find(','));
}

int run(const PeerFlags& flags, const std::string& form) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (static_cast<uint32_t>(ranks) != flags.job.worker_count() ||
      (form != "isend" && form != "alltoallv")) {
    std::fprintf(stderr, "mpirun -np <processes × workers> two_stage_mpi --form isend|alltoallv\n");
    return 2;
  }
  Rank rank(flags.job);
  MpiCarrier carrier(flags.job.worker_count());
  FrameWorker worker(flags.job, rank.number(), carrier);
  std::vector<bench::RoundTotals> rounds;
  for (uint32_t round = 0; round < flags.rounds; ++round) {
    rounds.push_back(
        rank.round([&] { return form == "isend" ? rank.frames(carrier, worker) : rank.steps(); }));
  }
  return rank.number() == 0 ? print_rounds(flags.job, library_version(), rounds) : 0;
}

}  // namespace
}  // namespace faro::evaluate

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int code = faro::evaluate::run(faro::evaluate::read_flags(argc, argv),
                                       faro::evaluate::flag(argc, argv, "form", "isend"));
  MPI_Finalize();
  return code;
}
