// FrameRun: a worker that is sent frames of every kind in every order, between its own calls. The sender is a
// worker of the same node, whose rings the target fills: what reads them is what reads those of a peer.
#pragma once

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/hand_reactor.h"
#include "fuzz/no_network.h"
#include "node/node_core.h"
#include "wire/open_fields.h"

namespace faro::fuzz {

using node::NodeCore;
using wire::FrameHeader;
using wire::FrameKind;

inline constexpr uint32_t kMoves = 96;  // of one input
inline constexpr uint32_t kReceiver = 0;
inline constexpr uint32_t kSender = 1;  // the fuzzed peer
inline constexpr uint32_t kRings = 2;   // of a lane
inline constexpr uint32_t kQueries = 3;
inline constexpr const char* kFormat = "(key BIGINT)";

inline base::Settings frame_settings(std::string_view lane_ends) {
  Config config;
  const std::pair<std::string_view, std::string_view> values[] = {
      {"cluster.nodes", "127.0.0.1:7000"},
      {"cluster.workers", "2"},
      {"transport", "tcp"},
      {"lane.ends", lane_ends},
      {"ring.bytes", "4 KiB"},
      {"transfer.threshold_bytes", "64"},
      {"shuffle.limit", "4"},
      {"row.limit_bytes", "16 KiB"},
      {"overflow.memory_bytes", "32 KiB"},
      {"overflow.file_bytes", "0"}};
  for (const auto& [name, value] : values) require(config.set(name, value).ok(), "a setting");
  return *base::Settings::resolve(config);
}

class FrameRun {
 public:
  /// `settings` outlive it. Where lanes end at workers and at the node, the peer fills rings to both, and the worker opens
  /// shuffles with each delivery.
  FrameRun(Input input, const base::Settings& settings)
      : input_(input), has_node_end_(settings.lanes_end_at_nodes()) {
    node::NodeEnvironment environment;
    environment.network = std::make_unique<NoNetwork>(reactor_);
    environment.make_waiter = [] { return std::make_unique<NoWaiter>(); };
    node_ = *NodeCore::open(settings, std::move(environment));
    for (QueryId& query : queries_) query = node_->queries().begin();
  }

  void run() {
    for (uint32_t move = 0; move < kMoves && !input_.empty(); ++move) {
      if (input_.flag()) {
        fuzzed_peer();
      } else {
        worker();
      }
      reactor_.run_tasks();
    }
    batches_.clear();
    shuffles_.clear();
    (void)node_->close();
    (void)node_->worker(kReceiver).wait_until([] { return true; }, Wait::none());  // hears of it
    require(node_->overflow().memory_bytes() == 0, "a closed node keeps no rows in overflow");
  }

 private:
  // Those to the worker, then those to the node.
  transport::Outgoing& ring(uint32_t number) {
    const ring::Layout layout = node_->membership().outgoing_layout(0);
    const uint32_t end = number < kRings ? kReceiver : layout.receiver_ends - 1;
    return node_->membership().link(0)->outgoing(layout.ring(kSender, end, number % kRings));
  }

  // --------------------------------------------------------------------------- the fuzzed peer

  void fuzzed_peer() {
    const uint32_t k = input_.below(has_node_end_ ? 2 * kRings : kRings);
    const bool to_node = k >= kRings;
    const auto slot = static_cast<uint16_t>(input_.below(to_node ? 9 : 5));
    const uint32_t kind = input_.below(8);
    switch (kind) {
      case 0:
      case 1: {
        wire::OpenPayload open{};
        open.query = shuffle::to_key(query());
        open.stage = k % kRings + kRings * input_.below(2);
        open.row_bytes = row_bytes();
        if (!input_.flag()) {  // else nobody opens it with these
          const auto lists = shuffle::StageLists::of(spec_of(kSender, delivery()));
          open.lists = lists.digest;
          open.sender_count = lists.sender_count;
          open.receiver_count = lists.receiver_count;
        }
        std::vector<std::byte> payload;
        append(payload, bytes_of(open));
        if (kind == 1) append_format(payload);
        const std::vector<std::byte> fields = to_node ? open_fields() : std::vector<std::byte>();
        append(payload, fields);
        return put(k, {0, FrameKind::open, 0, slot, 0, static_cast<uint32_t>(fields.size())},
                   payload);
      }
      case 2: {
        const wire::FinishPayload finish{input_.number<uint8_t>()};
        return put(k, {0, FrameKind::finish, 0, slot, 0, 0}, bytes_of(finish));
      }
      case 3:
      case 4: {
        const uint32_t rows = input_.below(8);
        return put(k, {0, FrameKind::data, 0, slot, rows, 0}, this->rows(rows));
      }
      case 5:
        return fragment(k, slot);
      case 6: {
        FrameHeader header{};
        const std::vector<std::byte> raw = input_.piece(sizeof header);
        if (!raw.empty()) std::memcpy(&header, raw.data(), raw.size());
        return put_as_it_is(k, header, input_.piece(256));
      }
      default: {  // changes what lies there
        const size_t ring_bytes = node_->membership().outgoing_layout(0).ring_bytes;
        const size_t at = input_.number<uint16_t>() % ring_bytes;
        const std::byte value{input_.number<uint8_t>()};
        if (first_claims_[k] != nullptr) first_claims_[k][at] = value;
      }
    }
  }

  QueryId query() {
    QueryId id = queries_[input_.below(kQueries)];
    if (input_.below(16) == 15) id.counter = input_.number<uint64_t>();
    return id;
  }
  uint32_t row_bytes() {
    constexpr std::array<uint32_t, 4> kWidths = {0, 8, 24, 600};
    return kWidths[input_.below(kWidths.size())];
  }
  // Rows of one width, or with a length each, as it comes.
  std::vector<std::byte> rows(uint32_t count) {
    std::vector<std::byte> bytes;
    const uint32_t width = row_bytes();
    for (uint32_t row = 0; row < count; ++row) {
      const uint32_t length = width != 0 ? width : input_.below(100);
      if (width == 0) append(bytes, bytes_of(length));
      bytes.resize(bytes.size() + length);
    }
    return bytes;
  }
  Delivery delivery() { return static_cast<Delivery>(has_node_end_ ? input_.below(3) : 0); }
  // For the worker alone, the other, or both; or any bytes.
  std::vector<std::byte> open_fields() {
    if (input_.below(8) == 7) return input_.piece(32);
    std::vector<std::byte> fields;
    const std::vector<uint32_t> workers = input_.flag() ? std::vector<uint32_t>{kReceiver, kSender}
                                                        : std::vector<uint32_t>{kReceiver};
    wire::OpenFields::write(fields, static_cast<wire::OpenDelivery>(delivery()), workers, 2);
    return fields;
  }
  // That of the worker, or any other.
  void append_format(std::vector<std::byte>& open) {
    if (input_.flag()) {
      const std::string bytes = shuffle::RowFormat::of(kFormat).open_bytes();
      append(open, std::as_bytes(std::span(bytes)));
    } else {
      append(open, bytes_of(wire::OpenFormat{input_.number<uint8_t>()}));
      append(open, input_.piece(wire::kOpenFormatTextLimit + 1));
    }
  }
  void fragment(uint32_t k, uint16_t slot) {
    wire::FragmentPayload head{};
    if (input_.flag()) assembled_ = 0;
    head.row_bytes = input_.flag() ? 2880 : input_.number<uint32_t>();
    head.offset = input_.below(8) == 7 ? input_.number<uint64_t>() : assembled_;
    const uint32_t bytes = input_.flag() ? 960 - 40 * input_.below(2) : 1 + input_.below(200);
    assembled_ += bytes;
    std::vector<std::byte> payload;
    append(payload, bytes_of(head));
    payload.resize(payload.size() + bytes);
    put(k, {0, FrameKind::fragment, 0, slot, assembled_ == head.row_bytes ? 1u : 0u, 0}, payload);
  }

  void put(uint32_t k, FrameHeader header, std::span<const std::byte> payload) {
    header.length = static_cast<uint32_t>(sizeof header + payload.size());
    put_as_it_is(k, header, payload);
  }
  void put_as_it_is(uint32_t k, const FrameHeader& header, std::span<const std::byte> payload) {
    const size_t bytes = sizeof header + payload.size();
    if (bytes > ring(k).frame_limit()) return;
    const auto length = static_cast<uint32_t>(bytes);
    const transport::Claim claim = ring(k).claim(length, length);
    if (claim.bytes == 0) return;
    if (first_claims_[k] == nullptr) first_claims_[k] = claim.data;
    std::memcpy(claim.data, &header, sizeof header);
    if (!payload.empty()) std::memcpy(claim.data + sizeof header, payload.data(), payload.size());
    ring(k).commit(length);
    ring(k).post();
  }

  template <typename Value>
  static std::span<const std::byte> bytes_of(const Value& value) {
    return std::as_bytes(std::span(&value, 1));
  }
  static void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
  }

  // -------------------------------------------------------------------------------- the worker

  void worker() {
    shuffle::LocalWorker& worker = node_->worker(kReceiver);
    switch (input_.below(12)) {
      case 0:
      case 1:
        return open_shuffle();
      case 2:
      case 3:
      case 4:
        return poll();
      case 5:
        if (Batch* const batch = any(batches_)) batch->release();
        break;
      case 6:
        if (Batch* const batch = any(batches_); batch != nullptr && !batch->empty())
          (void)batch->detach();
        break;
      case 7:
        if (Shuffle* const shuffle = any(shuffles_)) {
          if (const auto receiver = shuffle->receiver(); receiver.ok()) (void)receiver->stop();
        }
        break;
      case 8:
        if (!shuffles_.empty()) shuffles_.erase(shuffles_.begin());
        break;
      case 9:
        (void)worker.end_query(query(), Status::Ok(), Wait::none());
        break;
      case 10:
        (void)node_->queries().cancel(query(), Status(Code::query_cancelled, "enough"));
        break;
      default:
        reactor_.advance(uint64_t{1'000'000} << input_.below(16));
        node_->on_tick(reactor_.clock().now_ns());
        (void)worker.wait_until([] { return false; }, Wait::none());
    }
  }

  static ShuffleSpec spec_of(uint32_t sender, Delivery delivery) {
    ShuffleSpec spec;
    spec.senders = {sender};
    spec.receivers = {kReceiver};
    spec.delivery = delivery;
    return spec;
  }

  void open_shuffle() {
    if (shuffles_.size() == 6) return;
    const QueryId id = query();
    const uint32_t stage = input_.below(2 * kRings);
    const uint32_t width = row_bytes();
    const uint32_t how = input_.below(8);
    ShuffleSpec spec = spec_of(how % 4 == 3 ? kReceiver : kSender, delivery());
    if (how >= 4) spec.format = kFormat;
    spec.query = id;
    spec.stage = stage;
    spec.row_bytes = width;
    auto opened = node_->worker(kReceiver).open_shuffle(spec);
    if (opened.ok()) shuffles_.push_back(std::move(*opened));
  }

  void poll() {
    Shuffle* const shuffle = any(shuffles_);
    if (shuffle == nullptr || batches_.size() == 16) return;
    const Result<ShuffleReceiver> receiver = shuffle->receiver();
    if (!receiver.ok()) return;
    Batch batch;
    const Outcome outcome = receiver->receive(batch, Wait::none());
    if (outcome == Outcome::failed) {
      require(!shuffle->status().ok() && !shuffle->status().message().empty(),
              "why an operation failed is said");
    }
    require((outcome == Outcome::done) == !batch.empty(), "done means rows");
    if (batch.empty()) return;
    check_rows(batch);
    batches_.push_back(std::move(batch));
  }

  void check_rows(const Batch& batch) {
    require(batch.sender() == 0, "the sender is the first one named");
    require(batch.row_count() > 0, "a batch has rows");
    const std::span<const std::byte> bytes = batch.bytes();
    if (batch.row_bytes() != 0) {
      require(bytes.size() == uint64_t{batch.row_count()} * batch.row_bytes(),
              "rows of one width fill their batch");
    }
    uint32_t count = 0;
    for (const std::span<const std::byte> row : batch.each_row()) {
      require(row.data() >= bytes.data() && row.data() + row.size() <= bytes.data() + bytes.size(),
              "a row lies in its batch");
      for (const std::byte each : row) sum_ = sum_ + std::to_integer<int>(each);
      require(++count <= batch.row_count(), "no more rows than were said");
    }
  }

  template <typename Thing>
  Thing* any(std::vector<Thing>& things) {
    return things.empty() ? nullptr : &things[input_.number<uint8_t>() % things.size()];
  }

  Input input_;
  const bool has_node_end_;
  HandReactor reactor_;
  std::shared_ptr<NodeCore> node_;
  std::array<QueryId, kQueries> queries_;
  std::array<std::byte*, 2 * kRings> first_claims_{};  // from each on, a whole ring is mapped
  std::vector<Shuffle> shuffles_;
  std::vector<Batch> batches_;
  uint64_t assembled_ = 0;  // of the row that is sent in fragments
  volatile int sum_ = 0;    // every byte that is handed out is read
};

}  // namespace faro::fuzz
