// The rings of a simulated link. Every operation is a place where the seed may let others run
// first: that is where a real thread would be interrupted.
#include <memory>
#include <utility>
#include <vector>

#include "lab/simulation/transport/sim_transport.h"
#include "transport/mirrored_ring.h"

namespace faro::sim {
namespace {

class SimOutgoing final : public transport::MirroredOutgoing {
 public:
  SimOutgoing(SimPort& port, uint32_t ring)
      : MirroredOutgoing(port.outgoing_base(ring), port.outgoing().ring_bytes,
                         port.peer_read(ring)),
        port_(port),
        ring_(ring) {
    port_.count_transfers(ring, &counters_->transfers);
  }

  void count_in(transport::OutgoingCounters& counters) override {
    MirroredOutgoing::count_in(counters);
    port_.count_transfers(ring_, &counters.transfers);
  }
  ring::Claim claim(uint32_t least_bytes, uint32_t most_bytes) override {
    port_.world().maybe_yield();
    return MirroredOutgoing::claim(least_bytes, most_bytes);
  }
  void commit(uint32_t length) override {
    port_.world().maybe_yield();
    MirroredOutgoing::commit(length);
  }
  void post() override {
    port_.world().maybe_yield();
    const Position to = producer_.committed();
    mark_posted(to);
    port_.transfer(ring_, to);
  }

 private:
  void on_broken() override {
    port_.fail(Status(Code::protocol_error, "the peer told an impossible read position"));
  }

  SimPort& port_;
  const uint32_t ring_;
};

class SimIncoming final : public transport::MirroredIncoming {
 public:
  SimIncoming(SimPort& port, uint32_t ring)
      : MirroredIncoming(port.incoming_base(ring), port.incoming().ring_bytes, port.written(ring)),
        port_(port),
        ring_(ring) {}

  ring::Next next(ring::FrameView& view) override {
    port_.world().maybe_yield();
    return MirroredIncoming::next(view);
  }
  void release(uint32_t token) override {
    port_.world().maybe_yield();
    MirroredIncoming::release(token);
  }

 private:
  void tell_read(Position read) override { port_.tell_read(ring_, read); }
  void on_invalid(const char* why) override { port_.fail(Status(Code::protocol_error, why)); }

  SimPort& port_;
  const uint32_t ring_;
};

class SimLink final : public transport::DataLink {
 public:
  explicit SimLink(std::shared_ptr<SimPort> port) : port_(std::move(port)) {
    for (uint32_t r = 0; r < port_->outgoing().ring_count(); ++r) {
      outgoing_.push_back(std::make_unique<SimOutgoing>(*port_, r));
    }
    for (uint32_t r = 0; r < port_->incoming().ring_count(); ++r) {
      incoming_.push_back(std::make_unique<SimIncoming>(*port_, r));
    }
    port_->turns().enter();
  }
  ~SimLink() override {
    port_->stop();
    port_->turns().remove();
  }

  SimPort& port() { return *port_; }

  const transport::Capabilities& capabilities() const override { return sim_capabilities(); }
  transport::Outgoing& outgoing(uint32_t ring) override { return *outgoing_[ring]; }
  transport::Incoming& incoming(uint32_t ring) override { return *incoming_[ring]; }
  transport::Pulse take_pulse() noexcept override { return port_->take_pulse(); }
  void stop() noexcept override { port_->stop(); }

 private:
  std::shared_ptr<SimPort> port_;
  std::vector<std::unique_ptr<SimOutgoing>> outgoing_;
  std::vector<std::unique_ptr<SimIncoming>> incoming_;
};

}  // namespace

const transport::Capabilities& sim_capabilities() {
  static constexpr transport::Capabilities kCapabilities{.name = "sim", .mends = true};
  return kCapabilities;
}

const transport::Capabilities& SimTransport::capabilities() const { return sim_capabilities(); }

std::unique_ptr<transport::DataLink> make_sim_link(std::shared_ptr<SimPort> port) {
  return std::make_unique<SimLink>(std::move(port));
}

SimPort& port_of(transport::DataLink& link) { return static_cast<SimLink&>(link).port(); }

}  // namespace faro::sim
