// two_stage_copied: the two-stage job with all workers in one thread, each frame copied once by memcpy
// to its receiver. What any carrier that copies frames costs at least: no processes, nothing to wait
// for, nobody to tell.
#include <cstring>
#include <memory>
#include <vector>

#include "frame_queue.h"
#include "frame_worker.h"
#include "peer_program.h"

namespace faro::evaluate {
namespace {

/// Frames of one worker: filled in its own memory, copied into the receiver's queue of its sender.
class CopyingCarrier final : public FrameCarrier {
 public:
  CopyingCarrier(uint32_t worker, std::vector<std::unique_ptr<CopyingCarrier>>& all, uint32_t count)
      : worker_(worker),
        all_(all),
        incoming_(kStages * count),
        open_(kStages * count * kFrameBytes),
        count_(count) {}

  std::byte* try_open(uint32_t stage, uint32_t to) override {
    return open_.data() + (size_t{stage} * count_ + to) * kFrameBytes;
  }
  bool try_send(uint32_t stage, uint32_t to, size_t bytes) override {
    FrameQueue& queue = all_[to]->incoming_[stage * count_ + worker_];
    std::byte* const memory = queue.try_open();
    if (memory == nullptr) return false;
    std::memcpy(memory, try_open(stage, to), bytes);
    queue.push(bytes);
    return true;
  }
  Arrived try_receive(uint32_t stage) override {
    for (uint32_t looked = 0; looked < count_; ++looked) {
      const Arrived frame = current(stage).front();
      if (frame.any) return frame;
      next_[stage] = (next_[stage] + 1) % count_;
    }
    return {};
  }
  void release(uint32_t stage) override { current(stage).pop(); }

 private:
  FrameQueue& current(uint32_t stage) { return incoming_[stage * count_ + next_[stage]]; }

  const uint32_t worker_;
  std::vector<std::unique_ptr<CopyingCarrier>>& all_;
  std::vector<FrameQueue> incoming_;  // by stage and sender
  std::vector<std::byte> open_;       // by stage and receiver
  const uint32_t count_;
  uint32_t next_[kStages] = {};  // the sender that is looked at first
};

int run(const PeerFlags& flags) {
  const bench::TwoStageJob& job = flags.job;
  std::vector<std::unique_ptr<CopyingCarrier>> carriers;
  std::vector<std::unique_ptr<FrameWorker>> workers;
  for (uint32_t worker = 0; worker < job.worker_count(); ++worker) {
    carriers.push_back(std::make_unique<CopyingCarrier>(worker, carriers, job.worker_count()));
    workers.push_back(std::make_unique<FrameWorker>(job, worker, *carriers.back()));
  }
  std::vector<bench::RoundTotals> rounds;
  for (uint32_t round = 0; round < flags.rounds; ++round) {
    const RoundClock clock;
    for (auto& worker : workers) worker->begin();
    for (bool over = false; !over;) {
      over = true;
      for (auto& worker : workers) {
        // A worker goes on as a process would: as long as there is something to do.
        while (worker->turn()) {
        }
        over &= worker->over();
      }
    }
    bench::RoundTotals totals;
    totals.seconds = static_cast<double>(RoundClock::now_ns() - clock.start_ns()) * 1e-9;
    totals.cpu_seconds = static_cast<double>(clock.cpu_taken_ns()) * 1e-9;
    for (auto& worker : workers) {
      totals.rows += worker->totals();
    }
    rounds.push_back(totals);
  }
  return print_rounds(job, "libc", rounds);
}

}  // namespace
}  // namespace faro::evaluate

int main(int argc, char** argv) {
  return faro::evaluate::run(faro::evaluate::read_flags(argc, argv));
}
