// The receiving end of a ring whose bytes and written position a hostile peer writes, and that change between
// any two looks.
#include <array>
#include <atomic>
#include <memory>

#include "fuzz/fuzz_target.h"
#include "ring/consumer.h"

namespace faro::fuzz {
namespace {

using ring::Consumer;
using ring::Next;
using wire::Position;

constexpr uint32_t kRingBytes = 1024;
constexpr uint32_t kMoves = 64;  // of one input

class RingRun {
 public:
  explicit RingRun(Input input)
      : input_(input), start_(starts()[input_.below(3)]), written_(start_) {
    consumer_.start_at_for_test(start_);
    read_ = taken_ = start_;
  }

  void run() {
    for (uint32_t move = 0; move < kMoves && !input_.empty(); ++move) {
      step();
      check_positions();
    }
  }

 private:
  void step() {
    switch (input_.below(8)) {
      case 0:
        written_ += uint64_t{64} * (1 + input_.below(16));
        break;
      case 1:
        written_ = input_.number<uint64_t>();
        break;
      case 2: {
        const size_t offset = input_.number<uint16_t>();
        return overwrite(offset, input_.piece(kRingBytes));
      }
      case 3:
        return forge();
      case 4:
      case 5:
        return take();
      default:
        return release();
    }
  }

  // A ring is as good after years as at its start.
  static std::array<Position, 3> starts() {
    return {0, (uint64_t{1} << 32) - 512, ~uint64_t{0} - 4095};
  }

  void overwrite(size_t offset, std::span<const std::byte> bytes) {
    for (const std::byte each : bytes) memory_[offset++ % kRingBytes] = each;
  }

  // A frame where the next one is looked for, which may be a good one.
  void forge() {
    wire::FrameHeader header{};
    header.kind = static_cast<wire::FrameKind>(input_.below(10));
    if (header.kind > wire::kLastFrameKind) header.flags = wire::kMaySkipFrame;
    header.length = input_.number<uint16_t>();
    header.slot = input_.number<uint8_t>();
    header.row_count = input_.number<uint8_t>();
    if (header.kind == wire::FrameKind::pad)
      header.length = kRingBytes - static_cast<uint32_t>(consumer_.taken() % kRingBytes);
    overwrite(consumer_.taken() % kRingBytes, std::as_bytes(std::span(&header, 1)));
  }

  void take() {
    ring::FrameView view;
    const bool was_invalid = consumer_.why_invalid() != nullptr;
    const Next next = consumer_.next(view);
    require(!was_invalid || next == Next::invalid, "nothing comes after a broken rule");
    require((next == Next::invalid) == (consumer_.why_invalid() != nullptr),
            "a broken rule is named");
    if (next == Next::full) require(held_count_ == Consumer::kTracked, "full means that many");
    if (next != Next::frame) return;
    require(view.header.length >= sizeof view.header, "a frame has a header");
    require(view.header.kind != wire::FrameKind::pad, "a pad is not handed out");
    require(view.header.kind <= wire::kLastFrameKind, "nor is a frame of an unknown kind");
    require(view.header.field_bytes <= view.payload_bytes(), "fields lie in their frame");
    require(view.header.length <= kRingBytes / 2, "a frame is at most half the ring");
    const std::byte* const begin = view.payload - sizeof view.header;
    require(begin >= memory_.get() && begin + view.header.length <= memory_.get() + kRingBytes,
            "a frame lies in its ring");
    for (const Held& other : held()) {
      require(begin >= other.end || begin + view.header.length <= other.begin,
              "frames that are held do not overlap");
    }
    for (uint32_t i = 0; i < view.payload_bytes(); ++i)
      sum_ = sum_ + std::to_integer<int>(view.payload[i]);
    require(held_count_ < Consumer::kTracked, "no more frames than are tracked");
    held_[held_count_++] = {begin, begin + view.header.length, view.token};
  }

  void release() {
    if (held_count_ == 0) return;
    const uint32_t which = input_.number<uint8_t>() % held_count_;
    consumer_.release(held_[which].token);
    held_[which] = held_[--held_count_];
  }

  void check_positions() {
    // Pads to the end of what was known, and on to the end of what is known then.
    require(consumer_.read() - read_ <= 2 * kRingBytes, "the read position goes forward");
    require(consumer_.taken() - taken_ <= 2 * kRingBytes, "the taken position goes forward");
    read_ = consumer_.read();
    taken_ = consumer_.taken();
    require(taken_ - read_ <= kRingBytes, "what is held fits into the ring");
    require(read_ % wire::kFrameAlignment == 0, "positions are aligned");
    if (held_count_ == 0) require(read_ == taken_, "with nothing held everything was read");
  }

  struct Held {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
    uint32_t token = 0;
  };
  std::span<const Held> held() const { return {held_.data(), held_count_}; }

  Input input_;
  const Position start_;
  // It is an allocation of its own, so that AddressSanitizer sees what leaves it.
  const std::unique_ptr<std::byte[]> memory_ = std::make_unique<std::byte[]>(kRingBytes);
  std::atomic<Position> written_;
  Consumer consumer_{memory_.get(), kRingBytes, &written_};
  Position read_ = 0;
  Position taken_ = 0;
  std::array<Held, Consumer::kTracked> held_;
  uint32_t held_count_ = 0;
  volatile int sum_ = 0;  // every byte that is handed out is read
};

}  // namespace

void run_target(Input input) { RingRun(input).run(); }

}  // namespace faro::fuzz
