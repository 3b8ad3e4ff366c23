#include "lab/network/switch.h"

#include <utility>

namespace faro::network {

Switch::Switch(const SwitchShape& shape, uint32_t ports, uint64_t seed)
    : shape_(shape), chance_(seed), inputs_(ports), outputs_(ports) {}

bool Switch::has_credit(uint32_t input) const noexcept {
  return shape_.full == Full::loss || inputs_[input].taken < shape_.buffer_packets;
}

bool Switch::arrive(const Packet& packet) {
  Input& input = inputs_[packet.source];
  const bool is_fifo = shape_.queues == Queues::per_input;
  if (shape_.full == Full::loss) {
    const size_t queued = is_fifo ? input.targets.size() : outputs_[packet.target].waiting.size();
    if (queued >= shape_.buffer_packets) {
      --input.taken;
      return false;
    }
  }
  if (is_fifo) input.targets.push_back(packet.target);
  if (!is_fifo || input.targets.size() == 1) wait(packet.source, packet.target);
  return true;
}

void Switch::wait(uint32_t source, uint32_t output) {
  outputs_[output].waiting.push_back(source);
  touch(output);
}

void Switch::touch(uint32_t output) {
  if (std::exchange(outputs_[output].is_touched, true)) return;
  touched_.push_back(output);
}

// Any of several inputs may be the next.
Packet Switch::begin(uint32_t output) {
  Output& to = outputs_[output];
  to.is_busy = true;
  if (shape_.queues == Queues::per_input && to.waiting.size() > 1)
    std::swap(to.waiting.front(), to.waiting[chance_.below(to.waiting.size())]);
  const uint32_t source = to.waiting.front();
  to.waiting.pop_front();
  return {source, output};
}

void Switch::end(const Packet& packet) {
  Input& input = inputs_[packet.source];
  --input.taken;
  outputs_[packet.target].is_busy = false;
  touch(packet.target);
  if (shape_.queues == Queues::per_output) return;
  input.targets.pop_front();
  if (!input.targets.empty()) wait(packet.source, input.targets.front());
}

}  // namespace faro::network
