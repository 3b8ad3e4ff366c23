#include "lab/simulation/transport/sim_trace.h"

#include <fmt/format.h>

namespace faro::sim {

void Trace::record(uint64_t step, Nanoseconds now, Kind kind, uint64_t number,
                   std::string_view name) {
  if (decisions_.size() == kLength) decisions_.pop_front();
  decisions_.push_back({step, now, name});
  for (const uint64_t part : {now, uint64_t{static_cast<uint8_t>(kind)}, number}) {
    hash_ = (hash_ ^ part) * 0x9E3779B97F4A7C15u;
    hash_ ^= hash_ >> 29;
  }
}

std::string Trace::text() const {
  std::string text = fmt::format("the last {} decisions:\n", decisions_.size());
  for (const Decision& each : decisions_)
    text += fmt::format("  {} {:.3f} ms {}\n", each.step, at_ms(each.now), each.name);
  return text;
}

}  // namespace faro::sim
