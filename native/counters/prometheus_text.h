// The counters of a node or an endpoint in Prometheus' text format (version 0.0.4).
#pragma once

#include <cstddef>
#include <string>

#include "counters/counter_view.h"
#include "counters/endpoint_view.h"

namespace faro::counters {

/// Names follow from counters.def and the conventions of Prometheus: base units at the end, _total
/// behind totals. bytes_sent of a ring is faro_link_sent_bytes_total, summed up per link so that the
/// number of series grows with nodes and workers, not with pairs of them; blocked_ns of a worker is
/// faro_worker_blocked_seconds_total. Every series has the labels cluster and node.
std::string prometheus_text(const NodeView& node);

/// Channels that a page shows one by one. Each has 12 series.
inline constexpr size_t kMostChannelsOnPage = 1024;

/// The page of an endpoint. Names are made as those of a node are: bytes_sent of a ring is
/// faro_endpoint_sent_bytes_total, of all channels that ever were, and
/// faro_channel_sent_bytes_total for each that is open, up to kMostChannelsOnPage of them. The
/// label of a channel is its index, which is given again: so the number of series follows from how
/// many channels there are at once, and from how many peers. Every series has the labels cluster
/// and endpoint, which is its name, or else its address.
std::string prometheus_text(const EndpointView& endpoint);

}  // namespace faro::counters
