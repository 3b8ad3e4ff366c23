// A data connection over TCP, on which a peer sends anything, in pieces of any size.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/link_end.h"
#include "transport/mirrored_ring.h"
#include "transport/tcp/tcp_link.h"
#include "wire/data_message.h"

namespace faro::fuzz {
namespace {

using transport::tcp::NodeTurns;
using transport::tcp::RingRegion;
using transport::tcp::TcpLink;
using transport::tcp::TcpReceiver;

constexpr uint32_t kMoves = 48;  // of one input; each may take a few system calls

// The links to other nodes, over which nothing goes: without them there are no turns.
struct QuietPath final : transport::schedule::Turns::Path {
  void send_due() noexcept override {}
};

class TcpStreamRun {
 public:
  explicit TcpStreamRun(Input input) : input_(input) {
    const uint8_t offers = input_.number<uint8_t>();
    end_.context().agreed.signs = (offers & 1) != 0;
    end_.context().agreed.turns = (offers & 2) != 0;
    link_ = std::make_unique<TcpLink>(
        end_.context(),
        TcpLink::Shared{receiver_, std::make_shared<transport::DeferredSends>(), turns_}, connect(),
        nullptr, RingRegion(LinkEnd::kRings), RingRegion(LinkEnd::kRings));
    require(link_->start().ok(), "the link starts");
    if ((offers & 6) != 6) return;
    for (const uint32_t other : {2, 3}) turns_->turns().enter(other, others_, 0);
  }

  void run() {
    for (uint32_t move = 0; move < kMoves && !input_.empty(); ++move) {
      step();
      check_gaps();
    }
    peer_.reset();
    end_.reactor().tell_all(EPOLLIN | EPOLLRDHUP | EPOLLHUP);
    require(end_.failed(), "a connection that ends fails its link");
  }

 private:
  /// The peer's end becomes peer_; the other one is returned.
  int connect() {
    int sockets[2];
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets) == 0,
            "the fuzzer has sockets");
    peer_.reset(sockets[0]);
    return sockets[1];
  }
  /// The connection breaks, and there is another one.
  void mends() {
    says_signs_only_ = false;
    link_->give_up_connection();
    if (link_->take_connection(connect(), nullptr).ok()) {
      end_.forget_failure();
    } else {
      require(end_.failed(), "only what has failed for good is not mended");
    }
  }

  void step() {
    const uint32_t ring = input_.below(2);
    switch (input_.below(14)) {
      case 0:
        return says(input_.piece(8192));
      case 1:
        return says_message({ring | (input_.flag() ? wire::kReadMessage : 0),
                             input_.number<uint32_t>(), input_.number<uint64_t>()});
      case 2:
      case 3:
        return writes(ring);
      case 4:
        read_[ring] += uint64_t{64} * input_.below(64);
        says_message(wire::read_message(ring, read_[ring]));
        break;
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
      case 11: {
        const uint32_t unread = 64 * input_.below(8);
        return says_message(wire::resume_message(ring, unread, uint64_t{64} * input_.below(64)));
      }
      case 12:
        return end_.context().agreed.turns && input_.flag() ? says_turn() : says_sign();
      case 13:
        return beats();
      default:
        return drain();
    }
  }

  // Over a connection that has carried nothing else, and begins with no RESUME, it is clear what it has to come to.
  void says_sign() {
    const wire::DataMessage sign = wire::sign_message();
    says_in_pieces(std::as_bytes(std::span(&sign, 1)));
    if (says_signs_only_)
      require(end_.failed() != end_.context().agreed.signs,
              "signs of life come where they were offered");
  }
  void says_turn() {
    const uint32_t words = input_.number<uint32_t>();
    says_message({wire::kTurnMessage, words, input_.number<uint64_t>()});
  }
  void beats() {
    const transport::Pulse pulse = link_->take_pulse();
    require(pulse != transport::Pulse::heard || std::exchange(said_, false),
            "nobody is heard who has said nothing");
    require(pulse != transport::Pulse::none || end_.context().agreed.signs || end_.failed(),
            "who sends no signs of life is not called silent");
  }

  // Frames, as the protocol wants them if the input does.
  void writes(uint32_t ring) {
    const uint32_t length =
        64 * (input_.below(8) == 7 ? input_.number<uint16_t>() : 1 + input_.below(16));
    std::vector<std::byte> frames(std::min<size_t>(length, 3 * 4096), std::byte{0xaa});
    wire::FrameHeader header{};
    header.length = input_.flag() ? length : input_.number<uint16_t>();
    header.kind = static_cast<wire::FrameKind>(1 + input_.below(5));
    header.row_count = 1;
    if (!frames.empty()) std::memcpy(frames.data(), &header, sizeof header);
    says_message(wire::written_message(ring, length, written_[ring]));
    written_[ring] += length;
    says(frames);
  }
  void says_message(const wire::DataMessage& message) {
    says(std::as_bytes(std::span(&message, 1)));
  }
  void says(std::span<const std::byte> bytes) {
    says_signs_only_ = false;
    says_in_pieces(bytes);
  }
  // Two, which the node reads as they come.
  void says_in_pieces(std::span<const std::byte> bytes) {
    const size_t middle = input_.number<uint8_t>();
    if (middle < bytes.size()) {
      says_at_once(bytes.first(middle));
      bytes = bytes.subspan(middle);
    }
    says_at_once(bytes);
  }
  void says_at_once(std::span<const std::byte> bytes) {
    said_ = said_ || !bytes.empty();
    (void)::send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    receiver_->poll();
  }
  // Behind each ring there are 64 bytes that belong to none (ring::Layout).
  void check_gaps() {
    for (uint32_t ring = 0; ring < 2; ++ring) {
      const auto& mirrored = static_cast<transport::MirroredIncoming&>(link_->incoming(ring));
      const std::span<const std::byte> memory = mirrored.memory();
      for (size_t i = 0; i < 64; ++i)
        require(memory.data()[memory.size() + i] == std::byte{0},
                "nothing is written beyond a ring");
    }
  }
  // The peer takes what the node has sent, so that it can send more.
  void drain() {
    std::array<std::byte, 4096> bytes;
    while (recv(peer_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
    end_.reactor().tell_all(EPOLLOUT);
  }

  Input input_;
  LinkEnd end_;
  QuietPath others_;
  const std::shared_ptr<NodeTurns> turns_ = std::make_shared<NodeTurns>(
      transport::schedule::PhaseSettings{.turn_bytes = 256, .from_bytes = 64}, 1, 4);
  const std::shared_ptr<TcpReceiver> receiver_ = std::make_shared<TcpReceiver>(&turns_->turns());
  base::UniqueFd peer_;
  std::unique_ptr<TcpLink> link_;
  std::array<uint64_t, 2> written_{};
  std::array<uint64_t, 2> read_{};
  bool said_ = false;  // anything, since the node has noticed
  bool says_signs_only_ = true;
};

}  // namespace

void run_target(Input input) { TcpStreamRun(input).run(); }

}  // namespace faro::fuzz
