#include "contract/busy_workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "contract/frames.h"
#include "ring/doorbell.h"
#include "support/expect.h"

namespace faro::test {
namespace {

using ring::Next;

// Sends and receives on all its rings and sleeps when it can do
// neither.
class BusyWorker {
 public:
  /// `reads`: it reads the network itself when it finds nothing, as the workers of a session do.
  BusyWorker(TransportPair& pair, const PairShape& shape, int side, uint32_t worker,
             uint64_t frames_per_ring, bool reads)
      : pair_(pair),
        side_(side),
        worker_(worker),
        frames_per_ring_(frames_per_ring),
        reads_(reads) {
    const ring::Layout& out = side == 0 ? shape.forth : shape.back;
    const ring::Layout& in = side == 0 ? shape.back : shape.forth;
    for (uint32_t r = 0; r < out.ring_count(); ++r) {
      if (out.sender_of(r) == worker)
        sending_.push_back({&pair.link(side).outgoing(r), sequence(side, r, out)});
    }
    receiving_.resize(in.rings_of_receiver());
    for (uint32_t r = 0; r < in.ring_count(); ++r) {
      if (in.receiver_of(r) != worker) continue;
      receiving_[in.index_at_receiver(r)] = {&pair.link(side).incoming(r),
                                             sequence(1 - side, r, in)};
    }
  }

  /// Empty, or what went wrong.
  std::string run() {
    ring::Doorbell doorbell(&pair_.doorbell(side_, worker_));
    while (error_.empty() && !done()) {
      if (work() || (reads_ && pair_.poll(side_))) continue;
      for (Receiving& each : receiving_) each.end->flush_releases();
      pair_.flush(side_);
      if (reads_) pair_.worker_sleeps(side_);
      doorbell.arm();
      const base::Nanoseconds before = base::SystemClock::instance().now_ns();
      const bool worked = work();
      pair_.flush(side_);
      if (worked || done()) {
        doorbell.disarm();
      } else {
        doorbell.sleep(kLimit);
      }
      if (reads_) pair_.worker_wakes(side_);
      if (base::SystemClock::instance().now_ns() - before >= kLimit)
        return "slept forever: a wake-up was lost";
    }
    for (Receiving& each : receiving_) each.end->flush_releases();
    pair_.flush(side_);
    return error_;
  }

 private:
  struct Sending {
    transport::Outgoing* end = nullptr;
    FrameSequence sequence{0, 64};
  };
  struct Receiving {
    transport::Incoming* end = nullptr;
    FrameSequence sequence{0, 64};
  };

  static FrameSequence sequence(int from_side, uint32_t ring, const ring::Layout& layout) {
    return FrameSequence(static_cast<uint64_t>(from_side) * 1000 + ring, layout.ring_bytes / 4);
  }
  bool done() const {
    for (const Sending& each : sending_) {
      if (each.sequence.count() < frames_per_ring_) return false;
    }
    for (const Receiving& each : receiving_) {
      if (each.sequence.count() < frames_per_ring_) return false;
    }
    return true;
  }
  bool work() {
    bool worked = false;
    for (Sending& each : sending_) {
      while (each.sequence.count() < frames_per_ring_ && each.sequence.try_send(*each.end))
        worked = true;
      each.end->post_soon();
    }
    pair_.ready_set(side_, worker_).take([&](uint32_t number) {
      Receiving& ring = receiving_[number - pair_.first_ready(side_, worker_)];
      transport::FrameView view;
      Next next;
      while ((next = ring.end->next(view)) == Next::frame) {
        if (error_.empty()) error_ = ring.sequence.check(view);
        ring.end->release(view.token);
        worked = true;
      }
      if (next == Next::invalid && error_.empty()) error_ = "an invalid frame";
    });
    return worked;
  }

  TransportPair& pair_;
  const int side_;
  const uint32_t worker_;
  const uint64_t frames_per_ring_;
  const bool reads_;
  std::vector<Sending> sending_;
  std::vector<Receiving> receiving_;
  std::string error_;
};

uint64_t received(TransportPair& pair, const PairShape& shape) {
  uint64_t frames = 0;
  for (int side = 0; side < 2; ++side) {
    const uint32_t rings = (side == 0 ? shape.back : shape.forth).ring_count();
    for (uint32_t r = 0; r < rings; ++r)
      frames += pair.link(side).incoming(r).counters().frames_received.load();
  }
  return frames;
}

}  // namespace

void run_busy_workers(TransportPair& pair, const PairShape& shape, uint64_t many_frames, bool reads,
                      uint32_t mends) {
  pair.run_network_threads();
  const uint64_t per_ring = many_frames / 2 / shape.forth.ring_count();
  const uint64_t all = per_ring * (shape.forth.ring_count() + shape.back.ring_count());
  const uint32_t workers[] = {shape.forth.sender_workers, shape.forth.receiver_ends};
  std::vector<std::string> errors(workers[0] + workers[1]);
  std::atomic<size_t> running{errors.size()};
  std::vector<std::thread> threads;
  for (int side = 0; side < 2; ++side) {
    for (uint32_t w = 0; w < workers[side]; ++w) {
      threads.emplace_back([&, side, w, error = &errors[threads.size()]] {
        *error = BusyWorker(pair, shape, side, w, per_ring, reads).run();
        running.fetch_sub(1);
      });
    }
  }
  // Without a connection they cannot end, so each of these breaks one that is in use.
  for (uint32_t mend = 1; mend <= mends; ++mend) {
    while (received(pair, shape) < all * mend / (mends + 1) && running.load() == errors.size())
      std::this_thread::yield();
    if (running.load() != errors.size()) break;
    EXPECT_TRUE(is_ok(pair.mend())) << "mend " << mend;
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  EXPECT_EQ(received(pair, shape), all);
}

}  // namespace faro::test
