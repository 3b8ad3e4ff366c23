#include "counters/prometheus_text.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "counters/descriptions.h"

namespace faro::counters {
namespace {

/// A label's value, with what the format wants escaped.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

struct Name {
  std::string text;
  bool nanoseconds = false;  ///< values are to be divided
};

Name name_of(const Description& row) {
  std::string_view name = row.name.data();
  constexpr std::string_view kPrefixes[] = {"", "link_", "worker_", "link_", "link_"};
  Name made;
  made.text = fmt::format("faro_{}", kPrefixes[static_cast<size_t>(row.scope)]);
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

class Text {
 public:
  explicit Text(const NodeView& node)
      : node_(node),
        labels_(fmt::format("cluster=\"{}\",node=\"{}\"", escaped(node.cluster), node.node)) {}

  void add(const Description& row, std::string_view help_text) {
    const Name name = name_of(row);
    fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name.text,
                   help_text, row.kind == Kind::total ? "counter" : "gauge");
    switch (row.scope) {
      case Scope::node:
        return series(name, "", value_at(node_.counters, row));
      case Scope::peer:
        for (const PeerView& peer : node_.peers) {
          if (node_.has(peer)) series(name, link_labels(peer), value_at(peer.counters, row));
        }
        return;
      case Scope::worker:
        for (const WorkerView& worker : node_.workers)
          series(name, fmt::format(",worker=\"{}\"", worker.number),
                 value_at(worker.counters, row));
        return;
      case Scope::outgoing:
        return per_link(name, row, node_.outgoing, &OutgoingLane::receiver);
      case Scope::incoming:
        return per_link(name, row, node_.incoming, &IncomingLane::sender);
    }
  }

  std::string take() && { return std::move(text_); }

 private:
  static std::string link_labels(const PeerView& peer) {
    return fmt::format(",peer=\"{}\",transport=\"{}\"", peer.node, escaped(peer.transport));
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
      series(name, link_labels(peer), sum);
    }
  }

  void series(const Name& name, std::string_view more_labels, uint64_t value) {
    fmt::format_to(std::back_inserter(text_), "{}{{{}{}}} ", name.text, labels_, more_labels);
    if (name.nanoseconds) {
      fmt::format_to(std::back_inserter(text_), "{:.9f}\n", static_cast<double>(value) / 1e9);
    } else {
      fmt::format_to(std::back_inserter(text_), "{}\n", value);
    }
  }

  const NodeView& node_;
  const std::string labels_;
  std::string text_;
};

}  // namespace

std::string prometheus_text(const NodeView& node) {
  Text text(node);
  for (size_t row = 0; row < descriptions().size(); ++row) text.add(descriptions()[row], help(row));
  return std::move(text).take();
}

}  // namespace faro::counters
