// The words of a report:
//
//   words in all (this one included) | version | connect_ns | idle_cpu_ns
//   number of rounds  | per round:  4 numbers
//   number of workers | per worker: 12 numbers
//   number of links   | per link:   15 numbers, name (8 bytes, zero-filled)
//   number of lanes   | per lane:   8 numbers
//   6 numbers of the session
#include "lab/bench/node_report.h"

#include <algorithm>
#include <cstring>

namespace faro::bench {
namespace {

constexpr uint64_t kVersion = 2;
constexpr uint64_t kHeadWords = 4;
constexpr uint64_t kRoundWords = 4;
constexpr uint64_t kWorkerWords = 14;
constexpr uint64_t kLinkWords = 18;
constexpr uint64_t kLaneWords = 10;
constexpr uint64_t kSessionWords = 6;

template <class Round, class Visit>
void each_round_word(Round& r, Visit visit) {
  visit(r.elapsed_ns), visit(r.cpu_ns), visit(r.rows.count), visit(r.rows.checksum);
}

uint64_t name_word(const std::string& name) {
  char bytes[8] = {};
  std::memcpy(bytes, name.data(), std::min(name.size(), sizeof bytes));
  uint64_t word;
  std::memcpy(&word, bytes, 8);
  return word;
}

std::string name_of(uint64_t word) {
  char bytes[8];
  std::memcpy(bytes, &word, 8);
  return std::string(bytes, strnlen(bytes, sizeof bytes));
}

/// Hands out words while there are any; afterwards zeros, and `short_of_words` is set.
class Reader {
 public:
  explicit Reader(std::span<const uint64_t> words) : words_(words) {}
  uint64_t next() {
    if (at_ == words_.size()) {
      short_of_words_ = true;
      return 0;
    }
    return words_[at_++];
  }
  /// A number of entries of that many words each; 0 if there cannot be that many.
  size_t next_count(uint64_t words_each) {
    const uint64_t count = next();
    if (count > (words_.size() - at_) / words_each) {
      short_of_words_ = true;
      return 0;
    }
    return count;
  }
  bool short_of_words() const { return short_of_words_; }
  bool at_end() const { return at_ == words_.size(); }

 private:
  std::span<const uint64_t> words_;
  size_t at_ = 0;
  bool short_of_words_ = false;
};

}  // namespace

std::vector<uint64_t> encode(const NodeReport& report) {
  std::vector<uint64_t> words{0, kVersion, report.connect_ns, report.idle_cpu_ns};
  const auto put = [&words](const auto& value) { words.push_back(static_cast<uint64_t>(value)); };
  const auto put_metric = [&put](const char*, const auto& value) { put(value); };
  put(report.rounds.size());
  for (const NodeRound& round : report.rounds) each_round_word(round, put);
  const SessionMetrics& metrics = report.metrics;
  put(metrics.workers.size());
  for (const WorkerMetrics& worker : metrics.workers) each_worker_metric(worker, put_metric);
  put(metrics.links.size());
  for (const LinkMetrics& link : metrics.links) {
    each_link_metric(link, put_metric);
    put(name_word(link.transport));
  }
  put(metrics.lanes.size());
  for (const LaneMetrics& lane : metrics.lanes) each_lane_metric(lane, put_metric);
  each_session_metric(metrics, put_metric);
  words[0] = words.size();
  return words;
}

Result<NodeReport> decode(std::span<const uint64_t> words) {
  Reader reader(words);
  if (reader.next() != words.size()) {
    return Status(Code::protocol_error, "a benchmark report of another length than it says");
  }
  if (const uint64_t version = reader.next(); version != kVersion) {
    return Status(Code::protocol_error, "a benchmark report of version " + std::to_string(version) +
                                            " where " + std::to_string(kVersion) +
                                            " is understood");
  }
  const auto take = [&reader](auto& value) {
    value = static_cast<std::remove_reference_t<decltype(value)>>(reader.next());
  };
  const auto take_metric = [&take](const char*, auto& value) { take(value); };
  NodeReport report;
  take(report.connect_ns);
  take(report.idle_cpu_ns);
  report.rounds.resize(reader.next_count(kRoundWords));
  for (NodeRound& round : report.rounds) each_round_word(round, take);
  SessionMetrics& metrics = report.metrics;
  metrics.workers.resize(reader.next_count(kWorkerWords));
  for (WorkerMetrics& worker : metrics.workers) each_worker_metric(worker, take_metric);
  metrics.links.resize(reader.next_count(kLinkWords));
  for (LinkMetrics& link : metrics.links) {
    each_link_metric(link, take_metric);
    link.transport = name_of(reader.next());
  }
  metrics.lanes.resize(reader.next_count(kLaneWords));
  for (LaneMetrics& lane : metrics.lanes) each_lane_metric(lane, take_metric);
  each_session_metric(metrics, take_metric);
  if (reader.short_of_words() || !reader.at_end()) {
    return Status(Code::protocol_error,
                  "a benchmark report with counts that do not fit its length");
  }
  return report;
}

uint64_t report_word_limit(uint32_t node_count, uint32_t workers_per_node, uint32_t round_count) {
  const uint64_t workers = uint64_t{node_count} * workers_per_node;
  // A lane has a worker of the node at one end at least.
  const uint64_t lanes = 2 * uint64_t{workers_per_node} * workers;
  return kHeadWords + 4 + kRoundWords * round_count + kWorkerWords * workers_per_node +
         kLinkWords * node_count + kLaneWords * lanes + kSessionWords;
}

}  // namespace faro::bench
