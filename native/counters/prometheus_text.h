// The counters of a node in Prometheus' text format (version 0.0.4).
#pragma once

#include <string>

#include "counters/counter_view.h"

namespace faro::counters {

/// Names follow from counters.def and the conventions of Prometheus: base units at the end, _total
/// behind totals. bytes_sent of a ring is faro_link_sent_bytes_total, summed up per link so that the
/// number of series grows with nodes and workers, not with pairs of them; blocked_ns of a worker is
/// faro_worker_blocked_seconds_total. Every series has the labels cluster and node.
std::string prometheus_text(const NodeView& node);

}  // namespace faro::counters
