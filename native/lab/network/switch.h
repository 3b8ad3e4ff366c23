// Switch: what stands between the hosts. Each input and each output passes one packet in a packet's time.
//
//   one queue per input (FIFO)                 one queue per output
//     input 0  ──[ 2 1 2 ]──╲   ╱── output 0     input 0  ──╲   ╱──[     ]── output 0
//     input 1  ──[ 0 0 2 ]────╳──── output 1     input 1  ────╳────[ 1   ]── output 1
//     input 2  ──[ 1 2   ]──╱   ╲── output 2     input 2  ──╱   ╲──[ 2 2 ]── output 2
//
// In the first two of three inputs have a packet for output 2 in front: one waits, and all behind it wait too, although output 0
// is free. That is what a schedule can avoid. In the second a packet waits only for its own output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "lab/workload/chance.h"

namespace faro::network {

enum class Queues { per_input, per_output };
/// What a sender learns of a full switch: nothing, and the packet is lost; or it has credits, and waits.
enum class Full { credits, loss };

struct SwitchShape {
  Queues queues = Queues::per_input;
  Full full = Full::credits;
  /// The buffer of an input, or, with one queue per output and loss, of an output.
  uint32_t buffer_packets = 16;
};

struct Packet {
  uint32_t source = 0;
  uint32_t target = 0;
};

/// Threads: one.
class Switch {
 public:
  Switch(const SwitchShape& shape, uint32_t ports, uint64_t seed);

  /// Whether `input` may begin to send a packet. Always with loss.
  bool has_credit(uint32_t input) const noexcept;
  /// A packet is on its way to its input.
  void take_credit(uint32_t input) noexcept { ++inputs_[input].taken; }
  /// False: it is lost.
  bool arrive(const Packet& packet);
  /// Begins what can begin, once all that happens at this moment has happened: visit(packet) for each packet that passes an
  /// output from now on, until end(packet).
  template <typename Visit>
  void begin_transfers(Visit&& visit) {
    for (const uint32_t output : touched_) {
      outputs_[output].is_touched = false;
      if (!outputs_[output].is_busy && !outputs_[output].waiting.empty()) visit(begin(output));
    }
    touched_.clear();
  }
  void end(const Packet& packet);

 private:
  struct Input {
    std::deque<uint32_t> targets;
    uint32_t taken = 0;  // of its buffer, or on the way to it
  };
  struct Output {
    std::deque<uint32_t>
        waiting;  // inputs whose first packet is for it; or the sources of its packets, oldest first
    bool is_busy = false;
    bool is_touched = false;
  };

  Packet begin(uint32_t output);
  void touch(uint32_t output);
  void wait(uint32_t source, uint32_t output);

  const SwitchShape shape_;
  workload::Chance chance_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<uint32_t> touched_;
};

}  // namespace faro::network
