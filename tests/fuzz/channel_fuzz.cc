// A poller of an endpoint, whose peers write anything into the rings of its channels, at any time, and whose network opens
// and ends them at any time. Peers that keep to the rules must get every frame across.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "counters/endpoint_layout.h"
#include "endpoint/poller_core.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/hand_reactor.h"
#include "fuzz/no_network.h"
#include "ring/consumer.h"
#include "ring/producer.h"
#include "ring/ready_watch.h"
#include "transport/mirrored_ring.h"
#include "wire/frame.h"

namespace faro::fuzz {
namespace {

using Kind = ChannelEvent::Kind;
using wire::FrameKind;
using wire::Position;

constexpr uint32_t kMoves = 256;  // of one input
constexpr uint32_t kChannels = 3;
constexpr uint32_t kEvents = 80;       // of one batch, at most
constexpr uint32_t kRingBytes = 8192;  // more small frames than can be held
constexpr uint32_t kHeaderBytes = sizeof(wire::FrameHeader);

struct alignas(64) Line {
  std::array<std::byte, 64> bytes;
};

/// A ring's memory, of which AddressSanitizer sees the end.
class RingMemory {
 public:
  std::byte* base() { return lines_[0].bytes.data(); }
  std::span<const std::byte> bytes() { return {base(), kRingBytes}; }

 private:
  std::unique_ptr<Line[]> lines_ = std::make_unique<Line[]>(kRingBytes / sizeof(Line));
};

/// Both rings of a channel. The peer has its ends of them here, too.
class Rings final : public transport::DataLink {
 public:
  Rings(ring::ReadySet& ready, uint32_t ring) : ready_(ready), ring_(ring) {}

  const transport::Capabilities& capabilities() const override { return capabilities_; }
  transport::Outgoing& outgoing(uint32_t) override { return out_; }
  transport::Incoming& incoming(uint32_t) override { return in_; }
  void stop() noexcept override {}

  RingMemory& sent() { return sent_; }
  RingMemory& received() { return received_; }
  /// A broken rule was found.
  bool is_broken() const { return broken_; }
  /// The peer has broken none that this could know of.
  bool is_honest() const { return honest_; }

  // --- the peer

  /// Sends a frame. Returns false if there is no room for it.
  bool put(FrameKind kind, std::span<const std::byte> payload) {
    const auto length = static_cast<uint32_t>(kHeaderBytes + payload.size());
    const ring::Claim claim = peer_sends_.claim(length, length);
    if (claim.bytes == 0) return false;
    const wire::FrameHeader header{length, kind, 0, 0, 0, 0};
    std::memcpy(claim.data, &header, sizeof header);
    if (!payload.empty()) std::memcpy(claim.data + kHeaderBytes, payload.data(), payload.size());
    peer_sends_.commit(length);
    tell_written(peer_sends_.committed());
    return true;
  }
  /// Takes what was posted.
  void read() {
    ring::FrameView view;
    while (peer_receives_.next(view) == ring::Next::frame) {
      require(view.header.kind == FrameKind::message || view.header.kind == FrameKind::end,
              "channels carry messages and their end");
      peer_receives_.release(view.token);
    }
    require(peer_receives_.why_invalid() == nullptr, "what is sent is valid");
    peer_read_ = peer_receives_.read();
  }
  void overwrite(size_t offset, std::span<const std::byte> bytes) {
    honest_ = false;
    for (const std::byte each : bytes) received_.base()[offset++ % kRingBytes] = each;
  }
  void claim_written(Position position) {
    honest_ = false;
    tell_written(position);
  }
  void claim_read(Position position) {
    honest_ = false;
    peer_read_ = position;
  }
  void forge(FrameKind kind) {
    honest_ = false;
    put(kind, {});
  }

 private:
  class Out final : public transport::MirroredOutgoing {
   public:
    explicit Out(Rings& rings)
        : MirroredOutgoing(rings.sent_.base(), kRingBytes, &rings.peer_read_), rings_(rings) {}
    void post() override {
      mark_posted(producer_.committed());
      rings_.posted_ = producer_.committed();
    }

   private:
    void on_broken() override { rings_.broken_ = true; }
    Rings& rings_;
  };
  class In final : public transport::MirroredIncoming {
   public:
    explicit In(Rings& rings)
        : MirroredIncoming(rings.received_.base(), kRingBytes, &rings.written_), rings_(rings) {}

   private:
    void tell_read(Position read) override { rings_.read_ = read; }
    void on_invalid(const char* why) override {
      require(why != nullptr && !rings_.honest_, "no rule is broken by who keeps to them");
      rings_.broken_ = true;
    }
    Rings& rings_;
  };

  void tell_written(Position position) {
    written_ = position;
    ready_.mark(ring_);
  }

  static constexpr transport::Capabilities capabilities_{.name = "fuzz"};
  ring::ReadySet& ready_;
  const uint32_t ring_;
  RingMemory sent_;
  RingMemory received_;
  std::atomic<Position> written_{0};    // by the peer, and how far this side has
  std::atomic<Position> read_{0};       // read it
  std::atomic<Position> posted_{0};     // by this side, and how far the peer has
  std::atomic<Position> peer_read_{0};  // read it
  bool broken_ = false;
  bool honest_ = true;
  Out out_{*this};
  In in_{*this};
  ring::Producer peer_sends_{received_.base(), kRingBytes, &read_};
  ring::Consumer peer_receives_{sent_.base(), kRingBytes, &posted_};
};

/// What this side knows of one channel.
struct Known {
  struct Held {
    std::span<const std::byte> bytes;
    uint32_t token;
  };
  ChannelId id;
  std::shared_ptr<Rings> rings;  // null until it was opened
  bool told_end = false;         // to the poller
  bool has_opened = false, has_closed = false, is_forgotten = false;
  bool starves = false;    // a claim found no room, and no room was told of since
  bool peer_ends = false;  // it has sent END
  bool end_taken = false;
  uint8_t sent = 0;      // by an honest peer: how many frames, and
  uint8_t received = 0;  // how many of them have come
  std::vector<Held> held;
  std::vector<uint32_t> released;  // tokens
};

class ChannelRun final : private endpoint::ChannelNetwork {
 public:
  explicit ChannelRun(Input input) : input_(input) {
    poller_ = std::move(*endpoint::PollerCore::make(
        *this, std::make_unique<links::Transports>(network_), reactor_.clock(),
        std::make_unique<NoWaiter>(), watch_, {}, kChannels));
  }

  void run() {
    for (uint32_t move = 0; move < kMoves && !input_.empty(); ++move) {
      switch (input_.below(3)) {
        case 0:
          network();
          break;
        case 1:
          peer();
          break;
        default:
          worker();
      }
    }
    end_everything();
  }

 private:
  // ---------------------------------------------------------------- what the poller asks of the network

  Result<ChannelId> connect(endpoint::PollerCore&, std::string_view, const ChannelSpec&) override {
    return take_place();
  }
  void close(ChannelId id, Closing) override { (void)known(id); }
  void end_taken(ChannelId id) override {
    Known& channel = known(id);
    require(!channel.rings->is_honest() || channel.peer_ends, "an END was sent");
    require(!std::exchange(channel.end_taken, true), "an END is taken once");
  }
  void fail(ChannelId id, const Status& cause) override {
    require(!known(id).rings->is_honest(), "it is a peer that breaks rules");
    require(!cause.ok() && !cause.message().empty(), "and which one is said");
  }
  void forget(ChannelId id) override {
    Known& channel = known(id);
    require(channel.held.empty(), "nothing is held of what is forgotten");
    channel.is_forgotten = true;
  }

  // ---------------------------------------------------------------------------------------- the network

  void network() {
    const uint32_t place = input_.below(kChannels);
    std::optional<Known>& channel = channels_[place];
    if (!channel || channel->is_forgotten) {
      if (input_.flag()) {
        (void)poller_->connect("127.0.0.1:7000", {});
      } else {
        open(channels_[take_place().index].value());
      }
    } else if (channel->told_end) {
      return;
    } else if (channel->rings == nullptr && input_.flag()) {
      open(*channel);
    } else if (input_.below(4) == 0 && channel->rings != nullptr) {
      poller_->tell({.id = channel->id,
                     .cause = Status(Code::closed, "it carried nothing"),
                     .is_idle = true});
    } else {
      end(*channel);
    }
  }
  // The first that is free: there is one.
  ChannelId take_place() {
    uint32_t index = 0;
    while (channels_[index] && !channels_[index]->is_forgotten) ++index;
    channels_[index].emplace();
    return channels_[index]->id = {index, ++generation_};
  }
  void open(Known& channel) {
    const uint32_t ring = channel.id.index * ring::ReadySet::kRingsPerGroup;
    channel.rings = std::make_shared<Rings>(*poller_->end()[0].ready, ring);
    ChannelInfo info;
    info.send_bytes = info.receive_bytes = kRingBytes;
    poller_->tell({.id = channel.id,
                   .link = channel.rings,
                   .info = std::move(info),
                   .record = &records_[channel.id.index]});
  }
  void end(Known& channel) {
    channel.told_end = true;
    const bool in_order = input_.flag();
    poller_->tell({.id = channel.id,
                   .cause = in_order ? Status::Ok() : Status(Code::peer_lost, "it is gone")});
  }

  // ------------------------------------------------------------------------------------------- the peer

  void peer() {
    std::optional<Known>& channel = channels_[input_.below(kChannels)];
    if (!channel || channel->is_forgotten || channel->rings == nullptr) return;
    Rings& rings = *channel->rings;
    switch (input_.below(12)) {
      case 0: {
        const size_t offset = input_.number<uint16_t>();
        return rings.overwrite(offset, input_.piece(kRingBytes));
      }
      case 1:
        return rings.claim_written(input_.flag() ? input_.number<uint64_t>()
                                                 : uint64_t{64} * input_.below(64));
      case 2:
        return rings.claim_read(input_.number<uint16_t>());
      case 3:
        return rings.forge(static_cast<FrameKind>(input_.below(10)));
      case 4:
        if (!channel->peer_ends && rings.put(FrameKind::end, {})) channel->peer_ends = true;
        break;
      case 5:
      case 6:
        if (rings.is_honest()) rings.read();
        break;
      default:
        return send(*channel);
    }
  }
  // One frame, or many small ones. Each begins with its number.
  void send(Known& channel) {
    const bool is_one = input_.below(4) != 3;
    const uint32_t count = is_one ? 1 : 1 + input_.below(kEvents);
    std::vector<std::byte> payload(count > 1 ? 1 : 1 + 2 * input_.below(240));
    for (uint32_t i = 0; i < count && !channel.peer_ends; ++i) {
      payload[0] = std::byte{channel.sent};
      if (channel.rings->put(FrameKind::message, payload)) ++channel.sent;
    }
  }

  // ----------------------------------------------------------------------------------------- the poller

  void worker() {
    switch (input_.below(8)) {
      case 0:
      case 1:
      case 2:
        return (void)poll(1 + input_.below(kEvents));
      case 3:
        return wait();
      case 4:
        return release();
      case 5:
        poller_->post();
        break;
      case 6:
        if (Known* const channel = any())
          poller_->close(channel->id, input_.flag() ? Closing::drain : Closing::now);
        break;
      default:
        claim();
    }
  }
  Known* any() {
    std::optional<Known>& channel = channels_[input_.below(kChannels)];
    return channel ? &*channel : nullptr;  // one that is forgotten, too
  }

  bool poll(size_t most) {
    std::array<ChannelEvent, kEvents> events;
    const auto taken = poller_->poll(std::span(events).first(most));
    for (const ChannelEvent& event : taken) {
      require(exists(event.channel), "events are of channels that exist");
      take(*channels_[event.channel.index], event);
    }
    for (const std::optional<Known>& channel : channels_)
      require(!channel || !channel->is_forgotten || channel->has_closed,
              "what is forgotten has closed");
    return !taken.empty();
  }
  void take(Known& channel, const ChannelEvent& event) {
    require(!channel.has_closed, "nothing comes behind the end of a channel");
    switch (event.kind) {
      case Kind::opened:
        require(channel.rings != nullptr && !std::exchange(channel.has_opened, true),
                "a channel opens once");
        break;
      case Kind::room:
        require(std::exchange(channel.starves, false), "room is told to whom found none");
        break;
      case Kind::frame:
        require(channel.has_opened, "frames come behind the opening");
        return take_frame(channel, event);
      case Kind::closed:
        require(channel.told_end, "a channel ends when it was ended");
        require(channel.rings == nullptr || !channel.rings->is_honest() ||
                    channel.received == channel.sent,
                "what an honest peer has sent comes before the end");
        channel.has_closed = true;
    }
  }
  void take_frame(Known& channel, const ChannelEvent& event) {
    const auto ring = channel.rings->received().bytes();
    require(event.data.data() >= ring.data() + kHeaderBytes &&
                event.data.data() + event.data.size() <= ring.data() + ring.size(),
            "a frame lies in its ring");
    for (const Known::Held& other : channel.held) {
      require(event.data.data() - kHeaderBytes >= other.bytes.data() + other.bytes.size() ||
                  event.data.data() + event.data.size() <= other.bytes.data() - kHeaderBytes,
              "frames that are held do not overlap");
    }
    for (const std::byte each : event.data) sum_ = sum_ + std::to_integer<int>(each);
    if (channel.rings->is_honest())
      require(event.data[0] == std::byte{channel.received}, "frames come once, and in order");
    ++channel.received;
    channel.held.push_back({event.data, event.token});
  }

  void wait() {
    constexpr std::array<WakeFor, 4> kReasons = {WakeFor::nothing, WakeFor::frames, WakeFor::room,
                                                 WakeFor::frames_and_room};
    const WakeFor reasons = kReasons[input_.below(4)];
    const Outcome outcome = poller_->wait(Wait::none(), reasons);
    if (outcome == Outcome::would_wait && reasons == WakeFor::frames_and_room)
      require(!poll(1), "who would wait has nothing to be told");
  }

  // One that is held, all, or one that was released before.
  void release() {
    Known* const channel = any();
    if (channel == nullptr) return;
    const size_t which = input_.number<uint8_t>();
    const uint32_t how = input_.below(4);
    if (how == 3 && !channel->released.empty()) {
      poller_->release(channel->id, channel->released[which % channel->released.size()]);
    } else if (how == 2) {
      release_all(*channel);
    } else if (!channel->held.empty()) {
      release_one(*channel, which % channel->held.size());
    }
    check_room_of(*channel);
  }
  void release_all(Known& channel) {
    while (!channel.held.empty()) release_one(channel, 0);
  }
  void release_one(Known& channel, size_t which) {
    const uint32_t token = channel.held[which].token;
    channel.held.erase(channel.held.begin() + static_cast<ptrdiff_t>(which));
    channel.released.push_back(token);
    poller_->release(channel.id, token);
  }
  // The peer does not get the room of frames that are held.
  static void check_room_of(const Known& channel) {
    uint64_t bytes = 0;
    for (const Known::Held& held : channel.held)
      bytes += wire::padded(static_cast<uint32_t>(kHeaderBytes + held.bytes.size()));
    require(bytes == 0 || bytes <= channel.rings->incoming(0).unreleased_bytes(),
            "frames that are held keep their room");
  }

  void claim() {
    Known* const channel = any();
    if (channel == nullptr) return;
    const size_t least = 2 * input_.number<uint8_t>();
    std::span<std::byte> room;
    const Outcome claimed = poller_->claim(channel->id, least, least + input_.below(64), room);
    require((claimed == Outcome::done) == (room.data() != nullptr),
            "a claim that is done has room");
    if (claimed != Outcome::done) {
      channel->starves |= claimed == Outcome::would_wait;
      return;
    }
    const auto ring = channel->rings->sent().bytes();
    require(room.size() >= least && room.data() >= ring.data() + kHeaderBytes &&
                room.data() + room.size() <= ring.data() + ring.size(),
            "a claim lies in its ring");
    std::fill(room.begin(), room.end(), std::byte{1});
    const bool too_many = input_.below(8) == 0;
    const Notice notice = input_.flag() ? Notice::loud : Notice::quiet;
    const Outcome outcome =
        poller_->commit(channel->id, too_many ? kRingBytes : room.size(), notice);
    require((outcome == Outcome::done) != too_many, "what was claimed is committed");
    require(outcome == Outcome::done || !poller_->status(channel->id).ok(), "or why not is said");
  }

  // --------------------------------------------------------------------------------------------- the end

  bool exists(ChannelId id) const {
    return id.index < kChannels && channels_[id.index] && channels_[id.index]->id == id;
  }
  Known& known(ChannelId id) {
    require(exists(id) && !channels_[id.index]->is_forgotten, "a channel is one that exists");
    return *channels_[id.index];
  }

  void end_everything() {
    for (std::optional<Known>& channel : channels_) {
      if (channel && !channel->told_end) end(*channel);
    }
    bool more = true;
    while (more) {
      more = poll(kEvents);
      for (std::optional<Known>& channel : channels_) {
        if (!channel || channel->held.empty()) continue;
        release_all(*channel);
        more = true;
      }
    }
    for (const std::optional<Known>& channel : channels_)
      require(!channel || channel->is_forgotten, "a channel that was ended is told of, and gone");
    poller_->let_go();
  }

  Input input_;
  HandReactor reactor_;
  NoNetwork network_{reactor_};
  ring::ReadyWatch watch_{{[] { return nullptr; }, [] { return Status::Ok(); }}};
  std::array<counters::ChannelRecord, kChannels> records_;
  std::array<std::optional<Known>, kChannels> channels_;  // by index
  uint32_t generation_ = 0;
  volatile int sum_ = 0;  // every byte that is handed out is read
  std::unique_ptr<endpoint::PollerCore> poller_;
};

}  // namespace

void run_target(Input input) { ChannelRun(input).run(); }

}  // namespace faro::fuzz
