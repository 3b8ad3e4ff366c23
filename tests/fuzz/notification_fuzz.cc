// A link over RDMA whose peer writes anything into its own rings here, sends any message and any immediate, and resumes from
// anywhere when the link is mended. The device itself keeps to its rules: it fills receives in order and completes what was
// posted.
#include <endian.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "fuzz/fuzz_target.h"
#include "fuzz/link_end.h"
#include "transport/verbs/credits.h"
#include "transport/verbs/verbs_link.h"
#include "wire/verbs_message.h"

namespace faro::fuzz {
namespace {

using transport::verbs::CompletionPoller;
using transport::verbs::LinkParts;
using transport::verbs::RegisteredMemory;
using transport::verbs::VerbsLink;

constexpr uint32_t kMoves = 96;  // of one input
constexpr uint32_t kSendDepth = 16;
constexpr uint32_t kReceives = 8;
constexpr uint32_t kKey = 77;
constexpr uint64_t kPeerAddress = uint64_t{1} << 40;  // of its region; nobody looks there

/// A queue pair to nowhere: what is posted is looked at and kept until the target completes it.
class Device final : public transport::verbs::QueuePair {
 public:
  /// Memory that may be sent from, and that may be received into.
  struct Limits {
    std::span<const std::byte> outgoing, messages;
    uint64_t peer_bytes;
  };

  explicit Device(const Limits& limits) : limits_(limits) {
    owned_.self = this;
    owned_.context.ops.post_send = [](ibv_qp* pair, ibv_send_wr* request, ibv_send_wr**) {
      return of(pair->context).post_send(request);
    };
    owned_.context.ops.post_recv = [](ibv_qp* pair, ibv_recv_wr* request, ibv_recv_wr**) {
      return of(pair->context).post_receive(*request);
    };
    owned_.context.ops.poll_cq = [](ibv_cq* queue, int most, ibv_wc* completions) {
      return of(queue->context).poll(most, completions);
    };
    owned_.context.ops.req_notify_cq = [](ibv_cq*, int) { return 0; };
    pair_.context = queue_.context = &owned_.context;
  }

  ibv_qp* queue_pair() noexcept override { return &pair_; }
  ibv_cq* completion_queue() noexcept override { return &queue_; }
  void disconnect() noexcept override { connected_ = false; }
  void set_handler(Handler*) noexcept override {}

  /// The peer sends; nothing happens if there is no receive for it, as credits see to.
  void arrives(std::span<const std::byte> message) {
    ibv_wc completion{};
    if (!take_receive(completion, IBV_WC_RECV)) return;
    const size_t bytes = std::min<size_t>(message.size(), wire::kVerbsMessageBytes);
    std::copy_n(message.begin(), bytes, received_into_);
    completion.byte_len = static_cast<uint32_t>(bytes);
    completions_.push_back(completion);
  }
  void arrives(uint32_t immediate) {
    ibv_wc completion{};
    if (!take_receive(completion, IBV_WC_RECV_RDMA_WITH_IMM)) return;
    completion.imm_data = htobe32(immediate);
    completions_.push_back(completion);
  }
  /// Everything that was posted is out.
  void completes() {
    for (const ibv_send_wr& request : sends_) {
      ++unreported_;
      if ((request.send_flags & IBV_SEND_SIGNALED) == 0) continue;
      ibv_wc completion{};
      completion.wr_id = request.wr_id;
      completions_.push_back(completion);
      places_ -= std::exchange(unreported_, 0u);
    }
    sends_.clear();
  }

 private:
  struct Owned {
    ibv_context context{};
    Device* self = nullptr;
  };
  static Device& of(ibv_context* context) { return *reinterpret_cast<Owned*>(context)->self; }
  static bool within(std::span<const std::byte> memory, const ibv_sge& piece) {
    const auto* const at = reinterpret_cast<const std::byte*>(piece.addr);
    return at >= memory.data() && at + piece.length <= memory.data() + memory.size();
  }

  int post_send(ibv_send_wr* request) {
    for (; request != nullptr; request = request->next) {
      require(connected_, "nothing is posted to a connection that has ended");
      const ibv_sge& piece = *request->sg_list;
      if (request->opcode == IBV_WR_SEND) {
        require(within(limits_.messages, piece), "a message lies where messages lie");
      } else {
        const uint64_t at = request->wr.rdma.remote_addr;
        require(within(limits_.outgoing, piece), "what is written lies in an outgoing ring");
        require(request->wr.rdma.rkey == kKey && at >= kPeerAddress &&
                    at + piece.length <= kPeerAddress + limits_.peer_bytes,
                "what is written goes into the peer's region");
      }
      require(++places_ <= kSendDepth, "no more is posted than the send queue holds");
      sends_.push_back(*request);
    }
    return 0;
  }
  int post_receive(const ibv_recv_wr& request) {
    require(within(limits_.messages, *request.sg_list), "receives lie where messages lie");
    receives_.push_back({request.wr_id, *request.sg_list});
    require(receives_.size() <= kReceives, "a receive is posted anew once");
    return 0;
  }
  bool take_receive(ibv_wc& completion, ibv_wc_opcode opcode) {
    if (receives_.empty() || !connected_) return false;
    completion.wr_id = receives_.front().id;
    completion.opcode = opcode;
    received_into_ = reinterpret_cast<std::byte*>(receives_.front().piece.addr);
    receives_.pop_front();
    return true;
  }
  int poll(int most, ibv_wc* completions) {
    int count = 0;
    for (; count < most && !completions_.empty(); ++count) {
      completions[count] = completions_.front();
      completions_.pop_front();
    }
    return count;
  }

  struct Receive {
    uint64_t id;
    ibv_sge piece;
  };

  const Limits limits_;
  Owned owned_;
  ibv_qp pair_{};
  ibv_cq queue_{};
  bool connected_ = true;
  uint32_t places_ = 0;      // taken of the send queue
  uint32_t unreported_ = 0;  // of these: out, and no completion yet that covers them
  std::deque<ibv_send_wr> sends_;
  std::deque<Receive> receives_;
  std::byte* received_into_ = nullptr;
  std::deque<ibv_wc> completions_;
};

class NoEvents final : public transport::verbs::CompletionEvents {
 public:
  int descriptor() const noexcept override { return -1; }
  transport::verbs::VerbsPath* next() noexcept override { return nullptr; }
};

class NotificationRun {
 public:
  explicit NotificationRun(Input input) : input_(input) {
    const uint8_t shape = input_.number<uint8_t>();
    LinkParts parts;
    parts.outgoing = memory(LinkEnd::kRings.region_bytes());
    parts.incoming = memory(LinkEnd::kRings.region_bytes());
    parts.messages = memory(LinkParts::message_bytes(kReceives, kSendDepth));
    region_ = {parts.incoming.base(), parts.incoming.bytes()};
    inline_bytes_ = (shape & 1) != 0 ? 256 : 0;
    acknowledges_writes_ = (shape & 8) != 0;
    end_.context().agreed.signs = (shape & 16) != 0;
    parts.paths = connect(parts);
    parts.peer_address = kPeerAddress;
    parts.peer_key = kKey;
    parts.send_depth = kSendDepth;
    parts.write_limit = 2 << 20;
    parts.receives = kReceives;
    parts.peer_receives = transport::verbs::Credits::kLeastReceives + (shape >> 5);
    if ((shape & 4) != 0) parts.order = transport::verbs::Order::paper;
    parts.immediates = (shape & 6) == 2;  // not in paper order, as VerbsOptions sees to
    link_ = std::make_unique<VerbsLink>(
        end_.context(), poller_, std::make_shared<transport::DeferredSends>(), std::move(parts));
    require(link_->start().ok(), "the link starts");
  }

  void run() {
    for (uint32_t move = 0; move < kMoves && !input_.empty() && device_ != nullptr; ++move) {
      step();
      poller_->poll();
      end_.reactor().run_tasks();
    }
  }

 private:
  static RegisteredMemory memory(uint64_t bytes) {
    return std::move(*RegisteredMemory::unregistered_for_test(bytes, kKey));
  }

  /// Another queue pair, with its receives.
  std::vector<transport::verbs::PathParts> connect(const LinkParts& parts) {
    auto device =
        std::make_unique<Device>(Device::Limits{{parts.outgoing.base(), parts.outgoing.bytes()},
                                                {parts.messages.base(), parts.messages.bytes()},
                                                LinkEnd::kRings.region_bytes()});
    device_ = device.get();
    require(post_receives(device->queue_pair(), parts.messages, 0, kReceives, kSendDepth).ok(),
            "receives are posted");
    std::vector<transport::verbs::PathParts> paths;
    paths.push_back({std::move(device), inline_bytes_, false, acknowledges_writes_});
    return paths;
  }

  // The connection breaks, and there is another one. The peer is somewhere before the last WRITTEN and READ that it might
  // have been sent.
  void mends() {
    link_->give_up_connections();
    device_ = nullptr;
    const uint32_t key = link_->parts().incoming.remote_key();
    require(link_->renew_key().ok() && link_->parts().incoming.remote_key() != key,
            "a mended link has another key");
    for (uint32_t ring = 0; ring < 2; ++ring) {
      const wire::VerbsProgress own = link_->progress(ring);
      require(own.read <= own.arrived && own.arrived <= own.read + LinkEnd::kRings.ring_bytes,
              "what is unread lies in the ring");
      const wire::Position arrived = uint64_t{64} * input_.below(80);
      const wire::Position read = arrived - uint64_t{64} * input_.below(80);
      // The layer above ends the link.
      if (!link_->accept_progress(ring, {arrived, read}).ok()) return;
      positions_[0][ring] = own.arrived;
      positions_[1][ring] = read;
    }
    wire::VerbsMemory memory{};
    memory.address = kPeerAddress;
    memory.key = kKey;
    memory.receives = link_->parts().peer_receives;
    memory.takes_immediates = input_.flag() ? 1 : 0;
    notes_ = returns_ = 0;
    if (!link_->take_connections(connect(link_->parts()), memory).ok()) device_ = nullptr;
    end_.forget_failure();
  }

  void step() {
    const uint32_t ring = input_.below(2);
    switch (input_.below(12)) {
      case 0:
        return device_->arrives(input_.piece(wire::kVerbsMessageBytes));
      case 1:
      case 2:
        return sends();
      case 3:
        return device_->arrives(input_.flag()
                                    ? input_.number<uint32_t>()
                                    : (ring << 6) | input_.below(64));  // 64 units to a ring
      case 4:
        return writes(ring);
      case 5:
        return end_.send(*link_, ring, input_);
      case 6:
        return end_.receive(*link_, ring);
      case 7:
        return end_.release(*link_, input_.number<uint8_t>());
      case 8:
        return link_->incoming(ring).flush_releases();
      case 10:
        return mends();
      case 11:
        return beats();
      default:
        return device_->completes();
    }
  }

  // What was asked then is answered when the device has come so far.
  void beats() {
    const transport::Pulse pulse = link_->take_pulse();
    require(pulse != transport::Pulse::heard || !end_.failed(),
            "nothing is heard of what has failed");
    require(pulse != transport::Pulse::unknown || !acknowledges_writes_,
            "a device says what it hears");
  }

  // A message with records and credits near the right ones.
  void sends() {
    struct {
      wire::VerbsHead head;
      wire::VerbsRecord records[3];
    } message{};
    message.head.record_count = input_.below(4);
    message.head.notes = notes_ += input_.below(3);
    message.head.returns = returns_ += input_.below(2);
    for (uint32_t i = 0; i < message.head.record_count; ++i) {
      const uint32_t ring = input_.below(3);
      const bool read = input_.flag();
      const wire::Position position = positions_[read][ring % 2] += uint64_t{64} * input_.below(64);
      message.records[i] =
          read ? wire::verbs_read(ring, position) : wire::verbs_written(ring, position);
    }
    const size_t bytes =
        sizeof message.head + message.head.record_count * sizeof(wire::VerbsRecord);
    device_->arrives(std::as_bytes(std::span(&message, 1)).first(bytes));
  }

  // RDMA WRITE: anywhere in its region, at any time.
  void writes(uint32_t ring) {
    size_t at = LinkEnd::kRings.base_offset(ring) + size_t{64} * input_.below(64);
    wire::FrameHeader header{};
    header.length = input_.number<uint16_t>();
    header.kind = static_cast<wire::FrameKind>(input_.below(7));
    header.row_count = input_.below(3);
    std::memcpy(region_.data() + at, &header, sizeof header);
    at += sizeof header;
    for (const std::byte each : input_.piece(64)) region_[at++ % region_.size()] = each;
  }

  Input input_;
  LinkEnd end_;
  const std::shared_ptr<CompletionPoller> poller_ =
      std::make_shared<CompletionPoller>(std::make_shared<NoEvents>(), false);
  std::span<std::byte> region_;
  uint32_t inline_bytes_ = 0;
  bool acknowledges_writes_ = true;
  Device* device_ = nullptr;  // the link's; null: it has ended
  std::unique_ptr<VerbsLink> link_;
  uint32_t notes_ = 0;
  uint32_t returns_ = 0;
  wire::Position positions_[2][2] = {};  // WRITTEN and READ, of two rings
};

}  // namespace

void run_target(Input input) { NotificationRun(input).run(); }

}  // namespace faro::fuzz
