// `faro stat` and Prometheus read the counter files of other processes: files of a real node and of a real endpoint, of
// which the input changes any bytes, also between two looks.
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

#include "counters/counter_file.h"
#include "counters/counter_view.h"
#include "counters/endpoint_file.h"
#include "counters/endpoint_view.h"
#include "counters/prometheus_text.h"
#include "fuzz/fuzz_target.h"

namespace faro::fuzz {
namespace {

using counters::CounterFile;
using counters::EndpointFile;
using counters::EndpointView;
using counters::NodeView;

// What can be shown of a file is bounded by its size; an entry of a view takes at most that many times
// the bytes of its record.
constexpr size_t kGrowth = 4;

counters::Shape shape() {
  counters::Shape shape;
  shape.cluster = "faro";
  shape.workers_per_node = {2, 1};
  shape.rings_per_lane = 2;
  shape.ring_bytes = 4096;
  shape.threshold_bytes = 1024;
  shape.lanes_end_at_workers = false;
  shape.lanes_end_at_nodes = true;
  return shape;
}

/// The file of a node that has opened, as bytes; made once.
std::span<const std::byte> file_of_node() {
  static const std::unique_ptr<CounterFile> file = [] {
    auto made = std::move(*CounterFile::make(shape(), "", 1));
    for (uint32_t node = 0; node < 2; ++node) {
      counters::Peer peer;
      std::string_view("node 0 (h0:7000)").copy(peer.name.data(), peer.name.size() - 1);
      peer.first_worker = 2 * node;
      peer.worker_count = 2 - node;
      made->set_peer(node, peer);
    }
    made->opened();
    return made;
  }();
  return file->memory();
}

/// The file of an endpoint with two channels.
std::span<const std::byte> file_of_endpoint() {
  static const std::unique_ptr<EndpointFile> file = [] {
    auto made = std::move(*EndpointFile::make({.cluster = "faro",
                                               .name = "e",
                                               .address = "h0:7000",
                                               .poller_count = 2,
                                               .channel_limit = 100},
                                              "", 1));
    made->listens(1);
    for (uint32_t index = 0; index < 2; ++index) {
      counters::ChannelState state;
      state.life = counters::ChannelLife::open;
      std::string_view("e2").copy(state.peer.data(), state.peer.size() - 1);
      (*made->channel(index))->state.store(state);
    }
    return made;
  }();
  return file->memory();
}

/// A copy that ends where the file ends, for AddressSanitizer.
class Copy {
 public:
  explicit Copy(std::span<const std::byte> bytes)
      : bytes_(bytes.size()),
        memory_(static_cast<std::byte*>(::operator new (bytes.size(), std::align_val_t{64}))) {
    std::memcpy(memory_.get(), bytes.data(), bytes.size());
  }
  std::span<std::byte> memory() const { return {memory_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{64}); }
  };
  const size_t bytes_;
  const std::unique_ptr<std::byte, Free> memory_;
};

// Where: in the header, which has the sizes, or anywhere.
void change(Input& input, std::span<std::byte> memory) {
  const size_t most = input.flag() ? memory.size() : sizeof(counters::Header);
  size_t at = input.number<uint16_t>() % most;
  for (const std::byte each : input.take(1 + input.below(16))) memory[at++ % memory.size()] = each;
}

void check(const NodeView& view, size_t file_bytes) {
  const size_t entries = view.peers.size() + view.workers.size() + view.outgoing.size() +
                         view.incoming.size() + view.queries.size() + view.untaken.size();
  require(entries <= file_bytes * kGrowth / 64, "a small file makes no large view");
  require(view.node < view.peers.size(), "a node is one of its cluster");
  require(printable(view.cluster), "what is shown is printable");
  for (const auto& peer : view.peers)
    require(printable(peer.name) && printable(peer.transport), "what is shown is printable");
  for (const auto& worker : view.workers) {
    for (const auto& wait : worker.waits) {
      for (const uint32_t awaited : wait.awaited)
        require(awaited < file_bytes * 8, "those who are awaited stand in the file");
    }
  }
}

void check(const EndpointView& view, size_t file_bytes) {
  const size_t entries = view.pollers.size() + view.channels.size();
  require(entries <= file_bytes / 64, "a small file makes no large view");
  require(printable(view.cluster) && printable(view.full_name()), "what is shown is printable");
  for (const auto& channel : view.channels) {
    require(channel.life != counters::ChannelLife::none, "a channel that is shown is one");
    require(printable(channel.peer) && printable(channel.address) && printable(channel.transport) &&
                printable(channel.failure),
            "what is shown is printable");
  }
}

template <typename View>
void check_page(const View& view) {
  const std::string page = counters::prometheus_text(view);
  size_t lines = 0;
  for (std::string_view rest = page; !rest.empty(); ++lines) {
    const size_t end = rest.find('\n');
    require(end != std::string_view::npos, "every line ends");
    const std::string_view line = rest.substr(0, end);
    require(line.starts_with("# ") || line.starts_with("faro_"), "a line is one of the format");
    rest.remove_prefix(end + 1);
  }
  require(lines > 10, "a page has lines");
}

/// `open`: makes a reader of such files as `good`.
template <typename Open>
void read_changed(Input input, std::span<const std::byte> good, Open&& open) {
  // Perhaps cut short.
  const uint16_t cut = input.number<uint16_t>();
  const Copy file(good.first(good.size() - cut % good.size()));
  for (uint32_t changes = input.below(16); changes > 0; --changes) change(input, file.memory());
  const auto opened = open(file.memory());
  if (!opened.ok()) {
    return require(
        opened.status().code() == Code::invalid_argument && !opened.status().message().empty(),
        "why it is no counter file is said");
  }
  for (int look = 0; look < 2; ++look) {
    const auto view = (*opened)->read();
    check(view, file.memory().size());
    check_page(view);
    if (input.empty()) return;
    change(input, file.memory());
  }
}

}  // namespace

void run_target(Input input) {
  using Memory = std::span<const std::byte>;
  read_changed(input, file_of_node(),
               [](Memory memory) { return counters::CounterView::over(memory); });
  read_changed(input, file_of_endpoint(), [](Memory memory) {
    return counters::EndpointCounterView::over([memory] { return memory; });
  });
}

}  // namespace faro::fuzz
