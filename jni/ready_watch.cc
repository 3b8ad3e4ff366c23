#include "jni/ready_watch.h"

#include <algorithm>

namespace faro::jni {

bool ReadyWatch::add(shuffle::LocalWorker& worker, base::Nanoseconds sleep_ns) {
  {
    std::lock_guard lock(mutex_);
    if (stopped_) {
      worker.wait_loop().woken();
      return false;
    }
    sleepers_.push_back({&worker, base::deadline_after(now(), sleep_ns)});
  }
  ring::ring_doorbell(changed_);
  return true;
}

void ReadyWatch::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  ring::ring_doorbell(changed_);
}

bool ReadyWatch::stopped() const {
  std::lock_guard lock(mutex_);
  return stopped_;
}

std::vector<uint32_t> ReadyWatch::wait() {
  ring::Doorbell changed(&changed_);
  for (;;) {
    changed.arm();  // before the list is looked at: whoever changes it later rings
    if (std::vector<uint32_t> ready = take_ready(); !ready.empty()) return ready;
    std::vector<ring::DoorbellLine*> lines{&changed_};
    base::Nanoseconds until = base::kForever;
    {
      std::lock_guard lock(mutex_);
      if (stopped_) return {};
      for (const Sleeper& sleeper : sleepers_) {
        lines.push_back(&sleeper.worker->wait_loop().doorbell_line());
        until = std::min(until, sleeper.until);
      }
    }
    const base::Nanoseconds time = now();
    ring::sleep_on_any(lines, until == base::kForever ? until : until - std::min(time, until));
  }
}

std::vector<uint32_t> ReadyWatch::take_ready() {
  std::vector<uint32_t> ready;
  const base::Nanoseconds time = now();
  std::lock_guard lock(mutex_);
  std::erase_if(sleepers_, [&](const Sleeper& sleeper) {
    // Acquire: what was published before the ring is seen by whoever is told (partner: the exchange
    // in ring_doorbell).
    const std::atomic<uint32_t>& sleeping = sleeper.worker->wait_loop().doorbell_line().sleeping;
    if (!stopped_ && time < sleeper.until && sleeping.load(std::memory_order_acquire) == 1)
      return false;
    sleeper.worker->wait_loop().woken();
    ready.push_back(sleeper.worker->local_index());
    return true;
  });
  return ready;
}

}  // namespace faro::jni
