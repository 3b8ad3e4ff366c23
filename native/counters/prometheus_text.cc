#include "counters/prometheus_text.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "counters/descriptions.h"

namespace faro::counters {
namespace {

/// A label's value, as the format wants it: UTF-8, with some characters escaped. Line breaks have
/// become blanks.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : base::printable(std::string(text))) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

struct Name {
  std::string text;
  bool nanoseconds = false;  ///< values are to be divided
};

std::string_view prefix_of(Scope scope) {
  constexpr std::string_view kPrefixes[] = {
      "",         "link_",     "worker_",          "link_",    "link_", "endpoint_", "poller_",
      "channel_", "node_end_", "worker_node_end_", "operator_"};
  return kPrefixes[static_cast<size_t>(scope)];
}

Name name_of(const Description& row, std::string_view prefix) {
  std::string_view name = row.name.data();
  Name made;
  made.text = fmt::format("faro_{}", prefix);
  constexpr std::string_view kBytes = "bytes_";
  constexpr std::string_view kNs = "_ns";
  if (name.starts_with(kBytes)) {
    made.text += fmt::format("{}_bytes", name.substr(kBytes.size()));
  } else if (name.ends_with(kNs)) {
    made.nanoseconds = true;
    made.text += fmt::format("{}_seconds", name.substr(0, name.size() - kNs.size()));
  } else {
    made.text += name;
  }
  if (row.kind == Kind::total) made.text += "_total";
  return made;
}

/// Names with their help, and their series.
class Page {
 public:
  /// `labels`: that all series have.
  explicit Page(std::string labels) : labels_(std::move(labels)) {}

  Name begin(const Description& row, std::string_view help_text, std::string_view prefix) {
    Name name = name_of(row, prefix);
    fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name.text,
                   help_text, row.kind == Kind::total ? "counter" : "gauge");
    return name;
  }

  void series(const Name& name, std::string_view more_labels, uint64_t value) {
    fmt::format_to(std::back_inserter(text_), "{}{{{}{}}} ", name.text, labels_, more_labels);
    if (name.nanoseconds) {
      fmt::format_to(std::back_inserter(text_), "{:.9f}\n", static_cast<double>(value) / 1e9);
    } else {
      fmt::format_to(std::back_inserter(text_), "{}\n", value);
    }
  }

  std::string take() && { return std::move(text_); }

 private:
  const std::string labels_;
  std::string text_;
};

/// The page of a node.
class NodePage {
 public:
  explicit NodePage(const NodeView& node)
      : node_(node),
        page_(fmt::format("cluster=\"{}\",node=\"{}\"", escaped(node.cluster), node.node)) {}

  void add(const Description& row, std::string_view help_text) {
    if (!shows(row.scope)) return;
    const Name name = page_.begin(row, help_text, prefix_of(row.scope));
    switch (row.scope) {
      case Scope::node:
        return page_.series(name, "", value_at(node_.counters, row));
      case Scope::peer:
        for (const PeerView& peer : node_.peers) {
          if (node_.has(peer)) page_.series(name, link_labels(peer), value_at(peer.counters, row));
        }
        return;
      case Scope::worker:
        for (const WorkerView& worker : node_.workers)
          page_.series(name, worker_label(worker), value_at(worker.counters, row));
        return;
      case Scope::node_end:
        return page_.series(name, "", value_at(node_.node_end, row));
      case Scope::reader:
        for (const WorkerView& worker : node_.workers)
          page_.series(name, worker_label(worker), value_at(worker.at_node_end, row));
        return;
      case Scope::an_operator:
        for (const WorkerView& worker : node_.workers) per_kind(name, row, worker);
        return;
      case Scope::outgoing:
        return per_link(name, row, node_.outgoing, &OutgoingLane::receiver);
      default:
        return per_link(name, row, node_.incoming, &IncomingLane::sender);
    }
  }

  std::string take() && { return std::move(page_).take(); }

 private:
  bool shows(Scope scope) const {
    if (scope == Scope::node_end || scope == Scope::reader) return node_.lanes.end_at_nodes;
    return scope <= Scope::incoming || scope == Scope::an_operator;
  }

  void per_kind(const Name& name, const Description& row, const WorkerView& worker) {
    constexpr std::string_view kKinds[kOperatorKinds] = {"aggregation", "join"};
    for (uint32_t kind = 0; kind < kOperatorKinds; ++kind) {
      page_.series(name, fmt::format("{},kind=\"{}\"", worker_label(worker), kKinds[kind]),
                   value_at(worker.operator_totals[kind], row));
    }
  }

  static std::string link_labels(const PeerView& peer) {
    return fmt::format(",peer=\"{}\",transport=\"{}\"", peer.node, escaped(peer.transport));
  }

  static std::string worker_label(const WorkerView& worker) {
    return fmt::format(",worker=\"{}\"", worker.number);
  }

  /// `other`: which end of a lane is at the peer.
  template <typename Lane>
  void per_link(const Name& name, const Description& row, const std::vector<Lane>& lanes,
                uint32_t Lane::*other) {
    for (const PeerView& peer : node_.peers) {
      if (!node_.has(peer)) continue;
      uint64_t sum = 0;
      for (const Lane& lane : lanes) {
        if (lane.*other >= peer.first_worker && lane.*other - peer.first_worker < peer.worker_count)
          sum += value_at(lane.counters, row);
      }
      page_.series(name, link_labels(peer), sum);
    }
  }

  const NodeView& node_;
  Page page_;
};

/// The page of an endpoint: what all channels have counted, and the first open ones one by one.
class EndpointPage {
 public:
  explicit EndpointPage(const EndpointView& endpoint)
      : endpoint_(endpoint),
        page_(fmt::format("cluster=\"{}\",endpoint=\"{}\"", escaped(endpoint.cluster),
                          escaped(endpoint.name.empty() ? endpoint.address : endpoint.name))) {}

  void add(const Description& row, std::string_view help_text) {
    switch (row.scope) {
      case Scope::endpoint:
        return page_.series(page_.begin(row, help_text, prefix_of(row.scope)), "",
                            value_at(endpoint_.counters, row));
      case Scope::poller: {
        const Name name = page_.begin(row, help_text, prefix_of(row.scope));
        for (size_t p = 0; p < endpoint_.pollers.size(); ++p)
          page_.series(name, fmt::format(",poller=\"{}\"", p), value_at(endpoint_.pollers[p], row));
        return;
      }
      case Scope::outgoing:
        return per_channel(row, help_text, [](const ChannelCounts& of) { return of.sent; });
      case Scope::incoming:
        return per_channel(row, help_text, [](const ChannelCounts& of) { return of.received; });
      case Scope::channel:
        return per_channel(row, help_text, [](const ChannelCounts& of) { return of.counters; });
      default:
        return;
    }
  }

  std::string take() && { return std::move(page_).take(); }

 private:
  template <typename Part>
  void per_channel(const Description& row, std::string_view help_text, Part&& part) {
    if (row.kind == Kind::total) {
      const Name all = page_.begin(row, help_text, prefix_of(Scope::endpoint));
      page_.series(all, "", value_at(part(endpoint_.all), row));
    }
    const Name name = page_.begin(row, help_text, prefix_of(Scope::channel));
    size_t shown = 0;
    for (const ChannelView& channel : endpoint_.channels) {
      if (!channel.is_open()) continue;
      if (++shown > kMostChannelsOnPage) break;
      page_.series(
          name,
          fmt::format(",channel=\"{}\",peer=\"{}\",address=\"{}\",transport=\"{}\"", channel.index,
                      escaped(channel.peer), escaped(channel.address), escaped(channel.transport)),
          value_at(part(channel.counts), row));
    }
  }

  const EndpointView& endpoint_;
  Page page_;
};

template <typename OfView, typename View>
std::string text_of_page(const View& view) {
  OfView page(view);
  for (size_t row = 0; row < descriptions().size(); ++row) page.add(descriptions()[row], help(row));
  return std::move(page).take();
}

}  // namespace

std::string prometheus_text(const NodeView& node) { return text_of_page<NodePage>(node); }
std::string prometheus_text(const EndpointView& endpoint) {
  return text_of_page<EndpointPage>(endpoint);
}

}  // namespace faro::counters
