// What a worker waits for, in words.
#pragma once

#include <string>

#include "counters/counter_view.h"

namespace faro::command {

/// Nanoseconds since then; 0 if it lies ahead.
uint64_t age_ns(const counters::NodeView& node, uint64_t since_ns);

/// "room towards worker 3, stage 0 of query 0:1"; "room towards node 1" where lanes end at nodes. `node`: whose worker waits.
std::string wait_text(const counters::NodeView& node, const counters::WaitView& wait);
/// All that a worker waits for, parted by semicolons; empty if that is nothing.
std::string waits_text(const counters::NodeView& node, const counters::WorkerView& worker);
/// The node of a worker, as `node` knows it; null: it knows none.
const counters::PeerView* peer_with(const counters::NodeView& node, uint64_t worker);

/// "rows", "room", "outcome", "condition", "overflow", "none".
const char* wait_name(counters::WaitKind kind);

/// Numbers as people write them: "1, 2, 5 and 7 more".
std::string few_of(const std::vector<uint32_t>& numbers);

}  // namespace faro::command
