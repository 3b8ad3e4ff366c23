// A link through shared memory whose peer writes anything anywhere it can: the header of the segment
// that it hands over, read positions there, and in our segment written positions, hints and rings.

#include <memory>
#include <utility>
#include <vector>

#include "fuzz/fuzz_target.h"
#include "fuzz/link_end.h"
#include "support/data_header.h"
#include "transport/shm/shm_datapath.h"

namespace faro::fuzz {
namespace {

using transport::shm::Segment;
using transport::shm::SegmentHeader;
using transport::shm::ShmLink;

constexpr ring::Layout kRings = LinkEnd::kRings;  // the same in both directions
constexpr uint32_t kMoves = 128;                  // of one input

/// A segment as the peer sees it, which stays: making one takes longer than a run. What a run writes
/// there is undone by the next one.
class PeerSegment {
 public:
  PeerSegment() {
    segment_ = *Segment::make_shared(kRings, "the peer's segment", fd_);
    bytes_ = {reinterpret_cast<std::byte*>(&segment_->written(0)) - sizeof(SegmentHeader),
              segment_->layout().bytes()};
    std::memcpy(&header_, bytes_.data(), sizeof header_);
  }
  int fd() const { return fd_.get(); }
  std::span<std::byte> bytes() const { return bytes_; }
  const Segment& segment() const { return *segment_; }
  const SegmentHeader& header() const { return header_; }
  void clear() const {
    std::memset(bytes_.data(), 0, bytes_.size());
    std::memcpy(bytes_.data(), &header_, sizeof header_);
  }

 private:
  base::UniqueFd fd_;
  std::shared_ptr<Segment> segment_;
  std::span<std::byte> bytes_;
  SegmentHeader header_;
};

class SharedMemoryRun {
 public:
  explicit SharedMemoryRun(Input input) : input_(input) {}

  void run() {
    static const PeerSegment theirs;
    theirs.clear();
    if (!map(theirs)) return;
    static const PeerSegment ours;  // handed to the peer, which therefore can write all of it
    ours.clear();
    ShmLink::Parts parts;
    parts.outgoing = outgoing_;
    parts.incoming = std::shared_ptr<const Segment>(&ours.segment(), [](const Segment*) {});
    parts.peer_doorbells = {&doorbell_};
    parts.events = end_.context().events;
    ShmLink link(std::move(parts));
    for (uint32_t move = 0; move < kMoves && !input_.empty(); ++move) step(link, theirs, ours);
    require(!end_.failed() || (end_.cause().code() == Code::protocol_error &&
                               end_.cause().message().starts_with("shared memory, ")),
            "a link that fails says whose fault it was");
  }

 private:
  // The header is another one if the input says so. Whether the segment was taken.
  bool map(const PeerSegment& theirs) {
    const std::vector<std::byte> changes = input_.piece(sizeof(SegmentHeader));
    const uint32_t at = input_.below(sizeof(SegmentHeader));
    for (size_t i = 0; i < changes.size(); ++i)
      theirs.bytes()[(at + i) % sizeof(SegmentHeader)] ^= changes[i];
    auto mapped = Segment::map_peer(theirs.fd(), kRings, "the outgoing rings of a link");
    const bool same = std::memcmp(theirs.bytes().data(), &theirs.header(),
                                  offsetof(SegmentHeader, optional)) == 0;
    require(mapped.ok() == same, "a segment is taken if and only if it is what was agreed on");
    if (mapped.ok()) {
      outgoing_ = std::move(*mapped);
      return true;
    }
    require(mapped.status().code() == Code::protocol_error, "a wrong segment breaks the protocol");
    require(mapped.status().message().starts_with("the outgoing rings of a link: "),
            "and is named");
    return false;
  }

  void step(ShmLink& link, const PeerSegment& theirs, const PeerSegment& ours) {
    const uint32_t ring = input_.below(kRings.ring_count());
    switch (input_.below(10)) {
      case 0:
        ours.segment().written(ring).position += uint64_t{64} * input_.below(20);
        break;
      case 1:
        ours.segment().written(ring).position = input_.number<uint64_t>();
        break;
      case 2:
        theirs.segment().read(ring).position += uint64_t{64} * input_.below(20);
        break;
      case 3:
        theirs.segment().read(ring).position = input_.number<uint64_t>();
        break;
      case 4:
        return scribble(input_.flag() ? ours.bytes() : theirs.bytes());
      case 5:
        return forge(ours, ring);
      case 6:
        return send(link.outgoing(ring), {outgoing_->ring(ring), kRings.ring_bytes});
      case 7:
      case 8:
        return end_.receive(link, ring, {ours.segment().ring(ring), kRings.ring_bytes});
      default:
        return end_.release(link, input_.number<uint8_t>());
    }
  }

  void scribble(std::span<std::byte> memory) {
    size_t at = input_.number<uint16_t>();
    for (const std::byte each : input_.piece(64)) memory[at++ % memory.size()] = each;
  }

  // A frame where one may be looked for.
  void forge(const PeerSegment& ours, uint32_t ring) {
    wire::FrameHeader header{};
    header.kind = static_cast<wire::FrameKind>(input_.below(10));
    if (header.kind > wire::kLastFrameKind) header.flags = wire::kMaySkipFrame;
    header.length = input_.number<uint16_t>();
    header.row_count = input_.number<uint8_t>();
    const size_t offset = size_t{64} * input_.below(kRings.ring_bytes / 64);
    std::memcpy(ours.segment().ring(ring) + offset, &header, sizeof header);
  }

  void send(transport::Outgoing& ring, std::span<std::byte> memory) {
    const uint32_t least = 16 + input_.below(64) * 16;
    const transport::Claim claim = ring.claim(least, 1024);
    if (claim.bytes == 0) return;
    require_inside(claim, least, memory);
    test::put_data_header(claim.data, least);
    ring.commit(least);
    if (input_.flag()) ring.post();
  }

  Input input_;
  LinkEnd end_;
  std::shared_ptr<Segment> outgoing_;
  ring::DoorbellLine doorbell_{};
};

}  // namespace

void run_target(Input input) { SharedMemoryRun(input).run(); }

}  // namespace faro::fuzz
