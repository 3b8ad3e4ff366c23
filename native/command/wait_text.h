// What a worker waits for, in words.
#pragma once

#include <string>

#include "counters/counter_view.h"

namespace faro::command {

/// Nanoseconds since then; 0 if it lies ahead.
uint64_t age_ns(const counters::NodeView& node, uint64_t since_ns);

/// "room towards worker 3, stage 0 of query 0:1".
std::string wait_text(const counters::WaitView& wait);
/// All that a worker waits for, parted by semicolons; empty if that is nothing.
std::string waits_text(const counters::WorkerView& worker);

/// "rows", "room", "outcome", "condition", "overflow", "none".
const char* wait_name(counters::WaitKind kind);

/// Numbers as people write them: "1, 2, 5 and 7 more".
std::string few_of(const std::vector<uint32_t>& numbers);

}  // namespace faro::command
