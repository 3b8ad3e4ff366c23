#include "lab/simulation/channels/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace faro::simulation {
namespace {

// Every byte of a frame follows from this.
uint64_t frame_key(uint64_t seed, uint32_t conversation, uint32_t side, uint32_t sequence) {
  return mix(seed, conversation, side, sequence);
}

void fill(std::span<std::byte> bytes, uint64_t key) {
  Chance words(key);
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t word = words.next();
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
  }
}

bool is_filled(std::span<const std::byte> bytes, uint64_t key) {
  Chance words(key);
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t word = words.next();
    if (std::memcmp(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at)) != 0)
      return false;
  }
  return true;
}

struct Greeting {
  uint64_t proof;
  uint32_t index;
  uint32_t zero;
};

}  // namespace

std::vector<std::byte> greeting_of(uint64_t seed, uint32_t index) {
  const Greeting greeting{mix(seed, index), index, 0};
  const auto bytes = std::as_bytes(std::span(&greeting, 1));
  return {bytes.begin(), bytes.end()};
}

uint32_t index_of(uint64_t seed, std::span<const std::byte> greeting, uint32_t limit) {
  Greeting said{};
  if (greeting.size() != sizeof said) return limit;
  std::memcpy(&said, greeting.data(), sizeof said);
  return said.index < limit && said.proof == mix(seed, said.index) ? said.index : limit;
}

Conversation::Conversation(const ConversationPlan& plan, uint64_t seed, uint32_t side,
                           ChannelLedger& ledger, endpoint::PollerCore& poller, ChannelId channel)
    : plan_(plan),
      seed_(seed),
      side_(side),
      ledger_(ledger),
      poller_(poller),
      channel_(channel),
      is_checked_(!ledger.is_hostile(plan.from, plan.to)),
      chance_(mix(seed, plan.index, side, 0x73696465)) {}

std::string Conversation::broken(const std::string& what) const {
  return fmt::format("channel {} from {} to {}, {} side: {}", plan_.index, plan_.from, plan_.to,
                     side_ == 0 ? "dialling" : "accepting", what);
}

uint32_t Conversation::frame_bytes(uint32_t of_side, uint32_t sequence) const {
  const uint64_t most = std::min<uint64_t>(plan_.sides[of_side].largest, UINT32_MAX);
  return static_cast<uint32_t>(mix(seed_, plan_.index, of_side, sequence, 0x73697a65) % (most + 1));
}

// The sender may have had to make it smaller, as its rings were.
bool Conversation::is_frame(std::span<const std::byte> data, uint32_t sequence) const {
  return data.size() <= frame_bytes(1 - side_, sequence) &&
         is_filled(data, frame_key(seed_, plan_.index, 1 - side_, sequence) ^ data.size());
}

std::string Conversation::take(const ChannelEvent& event, base::Nanoseconds now) {
  SideRecord& own_record = record();
  if (is_over_) return broken("an event behind its last one");
  switch (event.kind) {
    case ChannelEvent::Kind::opened: {
      if (own_record.opened) return broken("it opened twice");
      own_record.opened = true;
      own_record.opened_at = now;
      const auto info = poller_.info(channel_);
      if (!info.ok()) return broken("it opened, and nothing is known of it");
      least_frame_bytes_ = info->least_frame_bytes;
      return "";
    }
    case ChannelEvent::Kind::room:
      if (!waits_for_room_) return broken("room, which nobody waits for");
      waits_for_room_ = false;
      return "";
    case ChannelEvent::Kind::frame: {
      if (!own_record.opened) return broken("a frame before it opened");
      const uint32_t sequence = own_record.received++;
      ++ledger_.frames;
      ledger_.bytes += event.data.size();
      if (is_checked_ && sequence >= others().committed)
        return broken(fmt::format("frame {}, of {} that were sent", sequence, others().committed));
      if (is_checked_ && !is_frame(event.data, sequence))
        return broken(fmt::format("frame {} is not what was sent, or not in order", sequence));
      held_.push_back({event.token, sequence, event.data});
      ledger_.held += held_.size() > 1 ? 1 : 0;
      return held_.size() > own().holds ? release_one() : "";
    }
    case ChannelEvent::Kind::closed:
      own_record.closed = poller_.status(channel_);
      own_record.closed_at = now;
      is_over_ = true;
      return "";
  }
  return broken("an event of no kind");
}

// In any order.
std::string Conversation::release_one() {
  const size_t at = chance_.below(held_.size());
  const Held frame = held_[at];
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(at));
  const bool is_intact = !is_checked_ || is_frame(frame.data, frame.sequence);
  poller_.release(channel_, frame.token);
  return is_intact ? "" : broken(fmt::format("frame {} changed while it was held", frame.sequence));
}

std::string Conversation::let_go() {
  std::string wrong;
  while (!held_.empty() && wrong.empty()) wrong = release_one();
  return wrong;
}

bool Conversation::send() {
  SideRecord& own_record = record();
  if (!own_record.opened || is_over_ || has_ended_ || waits_for_room_) return false;
  bool has_done = false;
  for (uint64_t most = chance_.between(1, 8); most > 0 && own_record.committed < own().frames;
       --most) {
    const uint32_t sequence = own_record.committed;
    const uint32_t bytes = std::min(frame_bytes(side_, sequence), least_frame_bytes_);
    std::span<std::byte> claimed;
    const Outcome outcome =
        poller_.claim(channel_, bytes, bytes + chance_.below(bytes + 1), claimed);
    if (outcome != Outcome::done) {
      waits_for_room_ = outcome == Outcome::would_wait;
      if (waits_for_room_) ++ledger_.room_waits;
      return has_done;
    }
    has_done = true;
    if (chance_.one_in(8)) continue;  // claimed in vain
    fill(claimed.first(bytes), frame_key(seed_, plan_.index, side_, sequence) ^ bytes);
    // Before the commit: it may be there before this goes on.
    ++own_record.committed;
    if (poller_.commit(channel_, bytes) != Outcome::done) {
      --own_record.committed;
      return has_done;
    }
    if (chance_.one_in(4)) poller_.post();
  }
  return has_done;
}

bool Conversation::advance() {
  if (is_over_) return false;
  const bool has_done = send();
  return end_if_due() || has_done;
}

bool Conversation::end_if_due() {
  const SideRecord& own_record = record();
  if (has_ended_ || !own_record.opened) return false;
  const uint32_t seen = own_record.committed + own_record.received;
  switch (own().ending) {
    case SidePlan::Ending::waits:
      return false;
    case SidePlan::Ending::drains:
      if (!has_sent_all()) return false;
      break;
    case SidePlan::Ending::drains_late: {
      // The other side may never send that many.
      const uint32_t wanted = std::min(own().ends_after, plan_.sides[1 - side_].frames);
      const bool other_drops = plan_.sides[1 - side_].ending == SidePlan::Ending::drops;
      if (!has_sent_all() || (own_record.received < wanted && !other_drops)) return false;
      break;
    }
    case SidePlan::Ending::drops:
      if (seen < own().ends_after && !has_sent_all()) return false;
      record().dropped = true;
      has_ended_ = true;
      poller_.close(channel_, Closing::now);
      return true;
  }
  has_ended_ = true;
  poller_.close(channel_, Closing::drain);
  return true;
}

}  // namespace faro::simulation
