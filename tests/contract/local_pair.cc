// The local link in the contract suite: the workers of side 0, then those of side 1, are the
// workers of one node. Both ends use one mapping, so that the thread sanitizer sees what the
// shared-memory data path does.
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/return_if_error.h"
#include "contract/transport_pair.h"
#include "transport/shm/local_link.h"
#include "transport/shm/node_doorbells.h"

namespace faro::test {
namespace {

class LocalPair final : public TransportPair {
 public:
  static Result<std::unique_ptr<TransportPair>> open(const PairShape& shape) {
    std::unique_ptr<LocalPair> pair(new LocalPair(shape));
    FARO_RETURN_IF_ERROR(pair->connect());
    return std::unique_ptr<TransportPair>(std::move(pair));
  }

  transport::DataLink& link(int side) override { return sides_[side]; }
  ring::ReadySet& ready_set(int side, uint32_t worker) override {
    return *ready_sets_[number(side, worker)];
  }
  ring::DoorbellLine& doorbell(int side, uint32_t worker) override {
    return doorbells_.line(number(side, worker));
  }
  uint32_t first_ready(int side, uint32_t /*worker*/) override {
    return number(1 - side, 0) * rings_.rings_per_lane;
  }
  bool pump() override { return false; }
  void run_network_threads() override {}
  void drop(int /*side*/) override {}
  int failures(int side) override { return sides_[side].failures.load(); }
  Status failure(int side) override {
    const std::lock_guard lock(mutex_);
    return sides_[side].failure;
  }

 private:
  /// What one side sees: only the rings from and to the other.
  struct Side final : transport::DataLink {
    const transport::Capabilities& capabilities() const override {
      return pair->link_->capabilities();
    }
    transport::Outgoing& outgoing(uint32_t ring) override {
      return pair->link_->outgoing(pair->local_ring(side, out, ring));
    }
    transport::Incoming& incoming(uint32_t ring) override {
      return pair->link_->incoming(pair->local_ring(1 - side, in, ring));
    }
    void stop() noexcept override { pair->link_->stop(); }

    LocalPair* pair = nullptr;
    int side = 0;
    ring::Layout out;
    ring::Layout in;
    std::atomic<int> failures{0};
    Status failure;
  };
  /// Both ends of a local link fail together; the suite looks at the receiving one.
  struct Events final : transport::LinkEvents {
    explicit Events(LocalPair& owner) : pair(owner) {}
    void on_link_failed(const Status& cause) override {
      const std::lock_guard lock(pair.mutex_);
      for (Side& side : pair.sides_) {
        if (side.failures.fetch_add(1) == 0) side.failure = cause;
      }
    }
    LocalPair& pair;
  };

  explicit LocalPair(const PairShape& shape) : events_(*this) {
    first_side_workers_ = shape.forth.sender_workers;
    rings_ = shape.forth;
    rings_.sender_workers = rings_.receiver_ends = first_side_workers_ + shape.forth.receiver_ends;
    for (int side = 0; side < 2; ++side) {
      sides_[side].pair = this;
      sides_[side].side = side;
      sides_[side].out = side == 0 ? shape.forth : shape.back;
      sides_[side].in = side == 0 ? shape.back : shape.forth;
    }
  }
  Status connect() {
    FARO_ASSIGN_OR_RETURN(doorbells_, transport::shm::NodeDoorbells::make(rings_.sender_workers));
    std::vector<transport::WorkerEnd> workers;
    for (uint32_t w = 0; w < rings_.sender_workers; ++w) {
      ready_sets_.push_back(
          std::make_unique<ring::ReadySet>((rings_.rings_of_receiver() + 63) / 64));
      workers.push_back({ready_sets_.back().get(), &doorbells_.line(w)});
    }
    FARO_ASSIGN_OR_RETURN(link_, transport::shm::make_local_link(rings_, workers, &events_));
    for (uint32_t w = 0; w < rings_.sender_workers; ++w) link_->attach_ready(*ready_sets_[w], 0, w);
    return {};
  }
  uint32_t number(int side, uint32_t worker) const {
    return side == 0 ? worker : first_side_workers_ + worker;
  }
  uint32_t local_ring(int from_side, const ring::Layout& layout, uint32_t ring) const {
    return rings_.ring(number(from_side, layout.sender_of(ring)),
                       number(1 - from_side, layout.receiver_of(ring)),
                       ring % layout.rings_per_lane);
  }

  uint32_t first_side_workers_;
  ring::Layout rings_;
  transport::shm::NodeDoorbells doorbells_;
  std::vector<std::unique_ptr<ring::ReadySet>> ready_sets_;
  Side sides_[2];
  std::mutex mutex_;
  Events events_;
  std::unique_ptr<transport::DataLink> link_;
};

[[maybe_unused]] const bool local_added = add_transport({
    .name = "local",
    .open = LocalPair::open,
    .no_nodes_because = "both sides are workers of one node",
    .no_loss_because = "both ends are in one process",
});

}  // namespace
}  // namespace faro::test
