#include "lab/simulation/channels/channel_checker.h"

#include <fmt/format.h>

namespace faro::simulation {
namespace {

std::string broken(const ConversationPlan& plan, const std::string& what) {
  return fmt::format("channel {} from {} to {}: {}", plan.index, plan.from, plan.to, what);
}

}  // namespace

std::string ChannelChecker::check(uint32_t conversation) const {
  const ConversationPlan& plan = plan_.conversations[conversation];
  const ConversationRecord& record = ledger_.conversations[conversation];
  if (ledger_.is_hostile(plan.from, plan.to)) return "";
  if (record.not_dialled) return check_cause(plan, *record.not_dialled);
  for (const uint32_t side : {0u, 1u}) {
    if (std::string wrong = check_side(plan, side); !wrong.empty()) return wrong;
  }
  const bool is_calm = !ledger_.ended[plan.from] && !ledger_.ended[plan.to] &&
                       !ledger_.disturbed[plan.from] && !ledger_.disturbed[plan.to] &&
                       !record.sides[0].dropped && !record.sides[1].dropped;
  const auto& dialling = record.sides[0].closed;
  const auto& accepting = record.sides[1].closed;
  if (is_calm && record.sides[1].opened && dialling && accepting &&
      dialling->ok() != accepting->ok()) {
    return broken(plan, fmt::format("it ended with {} for one side and with {} for the other",
                                    dialling->to_string(), accepting->to_string()));
  }
  return "";
}

std::string ChannelChecker::check_side(const ConversationPlan& plan, uint32_t side) const {
  const ConversationRecord& record = ledger_.conversations[plan.index];
  const SideRecord& own = record.sides[side];
  const SideRecord& other = record.sides[1 - side];
  const bool has_told = side == 0 ? record.dialled : own.opened;
  if (!own.closed) {
    const uint32_t peer = side == 0 ? plan.from : plan.to;
    return has_told && !ledger_.ended[peer] ? broken(plan, "one side was never told that it ended")
                                            : "";
  }
  if (std::string late = check_death(plan, side); !late.empty()) return late;
  if (!own.closed->ok()) return check_cause(plan, *own.closed);
  if (!own.opened || !other.opened) return broken(plan, "it was drained, and had not opened");
  if (own.received == other.committed && other.received == own.committed) return "";
  return broken(plan, fmt::format("it was drained; received were {} of {} and {} of {} frames",
                                  own.received, other.committed, other.received, own.committed));
}

// Mending takes longer than a death may stay unknown, so nobody has waited for that.
std::string ChannelChecker::check_death(const ConversationPlan& plan, uint32_t side) const {
  const SideRecord& own = ledger_.conversations[plan.index].sides[side];
  const uint32_t self = side == 0 ? plan.from : plan.to;
  const base::Nanoseconds died_at = ledger_.died_at[side == 0 ? plan.to : plan.from];
  const base::Nanoseconds limit = (2 * plan_.liveness_ms + 500) * 1'000'000;
  const bool is_bound = own.opened && own.opened_at < died_at && own.closed_at > died_at &&
                        !ledger_.ended[self] && !ledger_.disturbed[self] &&
                        !ledger_.is_apart(plan.from, plan.to);
  if (!is_bound || own.closed_at - died_at <= limit) return "";
  return broken(plan, fmt::format("one side learned that the other had died after {} ms",
                                  (own.closed_at - died_at) / 1'000'000));
}

std::string ChannelChecker::check_cause(const ConversationPlan& plan, const Status& cause) const {
  if (is_explained(plan, cause)) return "";
  return broken(plan, "nothing explains that it ended with " + cause.to_string());
}

bool ChannelChecker::is_explained(const ConversationPlan& plan, const Status& cause) const {
  const ConversationRecord& record = ledger_.conversations[plan.index];
  const PeerPlan& from = plan_.peers[plan.from];
  const PeerPlan& to = plan_.peers[plan.to];
  const bool has_ended = ledger_.ended[plan.from] || ledger_.ended[plan.to];
  const bool is_disturbed = ledger_.disturbed[plan.from] || ledger_.disturbed[plan.to];
  // A channel that has not opened at both sides is not mended; and a side that closes a broken one
  // at once tells nobody.
  const bool is_open = record.sides[0].opened && record.sides[1].opened;
  const bool is_dropped = record.sides[0].dropped || record.sides[1].dropped;
  const bool is_cut = ledger_.is_cut(plan.from, plan.to) && (!is_open || is_dropped);
  switch (cause.code()) {
    case Code::closed:
      return is_dropped || has_ended;
    case Code::peer_lost:
    case Code::connect_failed:
    case Code::deadline_exceeded:
      return has_ended || is_disturbed || is_cut;
    case Code::cancelled:
      return record.refused;
    case Code::resource_limit:
      return from.memory_limit_bytes != 0 || to.memory_limit_bytes != 0;
    case Code::limit_exceeded:
      return from.channel_limit < plan_.conversations.size() ||
             to.channel_limit < plan_.conversations.size();
    default:
      return false;
  }
}

std::string ChannelChecker::check_sound(uint32_t conversation) const {
  const ConversationPlan& plan = plan_.conversations[conversation];
  const ConversationRecord& record = ledger_.conversations[conversation];
  for (const SideRecord& side : record.sides) {
    if (!side.closed)
      return broken(plan, record.not_dialled ? record.not_dialled->to_string() : "it never ended");
    if (!side.closed->ok()) return broken(plan, side.closed->to_string());
  }
  return check(conversation);
}

}  // namespace faro::simulation
