#include "lab/simulation/channels/channel_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "lab/simulation/run_plan.h"

namespace faro::simulation {
namespace {

// Far longer than mending takes, however often it is cut again, and however long everybody is late.
constexpr uint64_t kEnoughMs = 30'000;
// A peer that has linked with one whose address hostile bytes have changed cannot ask it whether it
// lives, and waits to the end. That has to come before the stall limit.
constexpr uint64_t kEnoughBesideHostileMs = 8'000;
// Longer than it takes if nothing else happens.
constexpr uint64_t kSomeMs = 2'000;
constexpr base::Nanoseconds kShortlyApart = 300 * base::kMillisecond;

constexpr const char* kFaultNames[] = {
    "death",       "death and return", "closed endpoint", "closed endpoint and return",
    "short stall", "long stall",       "half-open link",  "hostile bytes",
    "cut",         "kept apart"};
static_assert(std::size(kFaultNames) == kPeerFaultKinds);

/// Draws one plan; each part from the same sequence, in order.
class Drawing {
 public:
  explicit Drawing(uint64_t seed) : chance_(mix(seed, 0x6368616e)) { plan_.seed = seed; }

  ChannelPlan draw() {
    draw_world();
    plan_.peers.resize(chance_.one_in(4) ? chance_.between(5, 8) : chance_.between(2, 4));
    for (PeerPlan& peer : plan_.peers) draw_peer(peer);
    const uint64_t count = chance_.between(1, 6) * plan_.peer_count();
    for (uint32_t index = 0; index < count; ++index)
      plan_.conversations.push_back(draw_conversation(index));
    if (!chance_.one_in(3)) draw_faults();
    return std::move(plan_);
  }

 private:
  template <typename T, size_t n>
  T one_of(const T (&values)[n]) {
    return values[chance_.below(n)];
  }
  uint32_t below(uint64_t bound) { return static_cast<uint32_t>(chance_.below(bound)); }
  uint32_t between(uint64_t least, uint64_t most) {
    return static_cast<uint32_t>(chance_.between(least, most));
  }
  // Over several orders of magnitude.
  base::Nanoseconds moment() { return chance_.below(uint64_t{1} << chance_.between(10, 25)); }
  uint32_t another_than(uint32_t peer) {
    const uint32_t other = below(plan_.peer_count() - 1);
    return other + (other >= peer ? 1 : 0);
  }

  void draw_world() {
    plan_.knobs = draw_knobs(chance_);
    plan_.liveness_ms = one_of<uint64_t>({200, 400, 1000});
    // A heartbeat is late three times: when it is sent, on its way, and when it is read.
    plan_.knobs.late_most = plan_.liveness_ms * base::kMillisecond / 8;
    // Longer than anybody waits for a peer that is gone, and shorter than a sleep.
    plan_.knobs.stall_limit = 9'000 * base::kMillisecond;
    plan_.wait_yields = one_of<uint64_t>({0, 1, 3, 20});
    plan_.mend_ms = chance_.one_in(6)   ? one_of<uint64_t>({0, 1, 10})
                    : chance_.one_in(3) ? kSomeMs
                                        : kEnoughMs;
    plan_.knobs.rings_stand = chance_.one_in(3);
  }

  void draw_peer(PeerPlan& peer) {
    peer.pollers = between(1, 2);
    peer.channel_limit = chance_.one_in(4) ? between(2, 4) : 64;
    if (chance_.one_in(4)) peer.memory_limit_bytes = chance_.between(40 << 10, 160 << 10);
    if (chance_.one_in(3)) peer.ring_limit = between(1 << 10, 32 << 10);
    peer.has_task = chance_.one_in(3);
    if (chance_.one_in(6)) peer.starts_at = chance_.below(100 * base::kMillisecond);
  }

  SidePlan draw_side(bool dials) {
    SidePlan side;
    side.frames = chance_.one_in(6) ? 0 : chance_.one_in(8) ? between(50, 300) : between(1, 40);
    side.largest =
        static_cast<uint32_t>(one_of<uint64_t>({0, 16, 100, 1000, 4000, uint64_t{32} << 10}));
    side.holds = chance_.one_in(3) ? between(1, 12) : 0;
    side.ending = static_cast<SidePlan::Ending>(chance_.below(4));
    if (side.ending == SidePlan::Ending::drops && !chance_.one_in(2))
      side.ending = SidePlan::Ending::drains;
    if (side.ending == SidePlan::Ending::waits && dials) side.ending = SidePlan::Ending::drains;
    side.ends_after = between(0, 40);
    return side;
  }

  ConversationPlan draw_conversation(uint32_t index) {
    ConversationPlan plan;
    plan.index = index;
    plan.from = below(plan_.peer_count());
    plan.to = another_than(plan.from);
    // Both sides at once, now and then.
    if (index > 0 && chance_.one_in(6)) {
      const ConversationPlan& last = plan_.conversations.back();
      plan.from = last.to;
      plan.to = last.from;
      plan.at = last.at;
    } else {
      plan.at = moment();
    }
    plan.send_bytes = 4096u << below(5);
    plan.receive_bytes = 4096u << below(5);
    plan.is_refused = chance_.one_in(12);
    plan.sides[0] = draw_side(true);
    plan.sides[1] = draw_side(false);
    return plan;
  }

  void draw_faults() {
    for (uint64_t count = chance_.one_in(2) ? 1 : chance_.between(2, 5); count > 0; --count) {
      PeerFault fault;
      fault.kind = chance_.one_in(4) ? PeerFaultKind::cut
                                     : static_cast<PeerFaultKind>(chance_.below(kPeerFaultKinds));
      fault.at = moment();
      fault.peer = below(plan_.peer_count());
      fault.other = another_than(fault.peer);
      fault.count = between(1, fault.kind == PeerFaultKind::hostile ? 8 : 4);
      if (fault.kind == PeerFaultKind::cut || fault.kind == PeerFaultKind::apart) {
        // Between two who talk, at about that time.
        const ConversationPlan& one =
            plan_.conversations[chance_.below(plan_.conversations.size())];
        fault.peer = one.from;
        fault.other = one.to;
        fault.at = one.at + chance_.below(uint64_t{1} << chance_.between(10, 22));
      }
      const base::Nanoseconds limit = plan_.liveness_ms * base::kMillisecond;
      switch (fault.kind) {
        case PeerFaultKind::short_stall:
          fault.lasting = chance_.between(1, limit / 4);
          break;
        case PeerFaultKind::long_stall:
        case PeerFaultKind::half_open:
          fault.lasting = chance_.between(2 * limit, 3 * limit);
          break;
        case PeerFaultKind::death_return:
        case PeerFaultKind::close_return:
          fault.lasting = moment();
          break;
        case PeerFaultKind::apart:
          fault.lasting = chance_.between(base::kMillisecond, kShortlyApart);
          if (plan_.mend_ms != kEnoughMs && chance_.one_in(2))
            fault.lasting = chance_.between(3'000 * base::kMillisecond, 4'000 * base::kMillisecond);
          break;
        default:
          break;
      }
      plan_.faults.push_back(fault);
    }
    const bool is_hostile = std::ranges::any_of(
        plan_.faults, [](const PeerFault& fault) { return fault.kind == PeerFaultKind::hostile; });
    if (is_hostile && plan_.mend_ms == kEnoughMs) plan_.mend_ms = kEnoughBesideHostileMs;
  }

  Chance chance_;
  ChannelPlan plan_;
};

double in_ms(base::Nanoseconds time) { return static_cast<double>(time) / 1e6; }

std::string describe(const SidePlan& side) {
  constexpr const char* kEndings[] = {"drains", "waits", "drops", "drains late"};
  return fmt::format("{} frames up to {}, holds {}, {} after {}", side.frames, side.largest,
                     side.holds, kEndings[static_cast<size_t>(side.ending)], side.ends_after);
}

}  // namespace

const char* fault_name(PeerFaultKind kind) noexcept {
  return kFaultNames[static_cast<size_t>(kind)];
}

bool ChannelPlan::is_mended(const PeerFault& fault) const {
  if (mend_ms >= kEnoughBesideHostileMs) return true;
  return mend_ms == kSomeMs && faults.size() == 1 && fault.lasting <= kShortlyApart &&
         fault.count <= 1;
}

ChannelPlan draw_channel_plan(uint64_t seed) { return Drawing(seed).draw(); }

std::string describe(const ChannelPlan& plan) {
  std::string text =
      fmt::format("seed {}: {} peers, liveness.timeout_ms={} link.mend_ms={} wait.yields={}{}\n",
                  plan.seed, plan.peer_count(), plan.liveness_ms, plan.mend_ms, plan.wait_yields,
                  plan.knobs.rings_stand ? ", rings stand" : "");
  for (uint32_t p = 0; p < plan.peer_count(); ++p) {
    const PeerPlan& peer = plan.peers[p];
    text += fmt::format(
        "  peer {}: {} pollers, {} channels, memory {}, rings {}, starts at {:.3f} ms{}\n", p,
        peer.pollers, peer.channel_limit, peer.memory_limit_bytes, peer.ring_limit,
        in_ms(peer.starts_at), peer.has_task ? ", has a task" : "");
  }
  for (const ConversationPlan& one : plan.conversations) {
    text += fmt::format("  at {:.3f} ms: channel {} from {} to {}, rings {} and {}{}\n",
                        in_ms(one.at), one.index, one.from, one.to, one.send_bytes,
                        one.receive_bytes, one.is_refused ? ", refused" : "");
    for (const SidePlan& side : one.sides) text += "    " + describe(side) + '\n';
  }
  for (const PeerFault& fault : plan.faults) {
    text += fmt::format("  at {:.3f} ms: {}, peer {}, other {}, {} times, {:.3f} ms\n",
                        in_ms(fault.at), fault_name(fault.kind), fault.peer, fault.other,
                        fault.count, in_ms(fault.lasting));
  }
  return text;
}

}  // namespace faro::simulation
