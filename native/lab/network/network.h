// Network: hosts with a card each, a switch between them, and a clock. Everything follows from its shape, what is to be sent, and
// the policy that decides who sends to whom; the same of these is the same run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

#include "base/clock.h"
#include "lab/network/sending.h"
#include "lab/network/switch.h"
#include "lab/workload/chance.h"

namespace faro::network {

struct NetworkShape {
  uint32_t hosts = 8;
  SwitchShape between;
  uint32_t packet_bytes = 4096;
  /// 4 GB/s is what a link of InfiniBand 4×QDR carries.
  uint32_t bytes_per_ns = 4;
  base::Nanoseconds note_ns = 1'000;
  /// After how many of 1000 packets a card pauses, for one to three packets' time.
  uint32_t pauses_per_mille = 0;
  /// With loss: when a lost packet is noticed, and sent again.
  base::Nanoseconds retry_ns = 1'000'000;
  uint64_t seed = 1;

  base::Nanoseconds packet_ns() const noexcept { return packet_bytes / bytes_per_ns; }
};

/// Threads: one.
class Network {
 public:
  /// In Load: there is always more.
  static constexpr uint32_t kEndless = UINT32_MAX;
  /// Packets from each host to each, host by host.
  using Load = std::vector<uint32_t>;

  Network(const NetworkShape& shape, Load load, Sending& sending);

  /// Runs until everything has arrived, or nobody sends any more, or until `until`.
  void run(base::Nanoseconds until = base::kForever);

  // For policies.
  const NetworkShape& shape() const noexcept { return shape_; }
  uint32_t hosts() const noexcept { return shape_.hosts; }
  base::Nanoseconds now_ns() const noexcept { return now_; }
  /// Packets that are still to be sent.
  uint32_t left(uint32_t host, uint32_t target) const noexcept {
    return load_[size_t{host} * shape_.hosts + target];
  }
  void tell(uint32_t from, uint32_t to, const Note& note);
  void set_alarm(uint32_t host, base::Nanoseconds at);
  /// Asks the policy for the next packet of `host`.
  void wake(uint32_t host);

  // What came of it.
  uint64_t delivered() const noexcept { return delivered_; }
  uint64_t lost() const noexcept { return lost_; }
  uint64_t told() const noexcept { return told_; }
  base::Nanoseconds last_delivery_ns() const noexcept { return last_delivery_; }

 private:
  enum class What : uint32_t { sent, pause_over, passed, retry, note, alarm };
  struct Event {
    base::Nanoseconds at;
    uint64_t order;
    What what;
    uint32_t host;
    uint32_t other;
    Note note;
    bool operator>(const Event& event) const noexcept {
      return at != event.at ? at > event.at : order > event.order;
    }
  };
  struct Card {
    bool is_busy = false;
    bool is_woken = false;
  };

  void add(base::Nanoseconds at, What what, uint32_t host, uint32_t other = 0, Note note = {});
  /// Begins what can begin at this moment.
  void settle();
  void begin_packet(uint32_t host);
  void happen(const Event& event);
  void on_sent(uint32_t host, uint32_t target);
  uint32_t& left_of(uint32_t host, uint32_t target) noexcept {
    return load_[size_t{host} * shape_.hosts + target];
  }

  const NetworkShape shape_;
  Load load_;
  Sending& sending_;
  Switch switch_;
  workload::Chance chance_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Card> cards_;
  std::vector<uint32_t> woken_;
  base::Nanoseconds now_ = 0;
  base::Nanoseconds last_delivery_ = 0;
  uint64_t order_ = 0;
  uint64_t delivered_ = 0;
  uint64_t lost_ = 0;
  uint64_t told_ = 0;
};

}  // namespace faro::network
