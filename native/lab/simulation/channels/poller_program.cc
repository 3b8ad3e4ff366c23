#include "lab/simulation/channels/poller_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace faro::simulation {
namespace {

constexpr base::Nanoseconds kMicrosecond = 1'000;

Wait wait_for(base::Nanoseconds time) {
  return Wait::at_most(std::chrono::nanoseconds(static_cast<int64_t>(time)));
}

}  // namespace

void end_dial(Peers& peers, ChannelLedger& ledger, uint32_t conversation) {
  ConversationRecord& record = ledger.conversations[conversation];
  if (std::exchange(record.is_over, true)) return;
  if (--ledger.dials_left == 0) peers.wake_all();
}

PollerProgram::PollerProgram(Peers& peers, const ChannelPlan& plan, ChannelLedger& ledger,
                             uint32_t peer, uint32_t poller, base::Nanoseconds begin)
    : peers_(peers),
      plan_(plan),
      ledger_(ledger),
      peer_(peer),
      index_(poller),
      begin_(begin),
      core_(peers.core(peer)),
      poller_(core_.poller(poller)),
      chance_(mix(plan.seed, peer, poller, peers.world().now())) {}

void PollerProgram::check(const std::string& wrong) {
  if (!wrong.empty()) peers_.world().violation(wrong);
}

// A peer stays to answer others until all that is planned is over, and nothing of it is left here.
bool PollerProgram::has_to_end() {
  if (peers_.is_ending(peer_)) return true;
  return ledger_.dials_left == 0 && channels_.empty() && core_.channel_count() == 0;
}

void PollerProgram::run() {
  while (!has_to_end()) {
    dial();
    const bool has_polled = poll();
    let_go(false);
    if (!advance() && !has_polled) wait();
  }
  let_go(true);
  for (auto& [index, conversation] : channels_) check(conversation->let_go());
  has_ended_ = true;
}

base::Nanoseconds PollerProgram::next_dial() const {
  base::Nanoseconds next = base::kForever;
  for (const ConversationPlan& one : plan_.conversations) {
    const ConversationRecord& record = ledger_.conversations[one.index];
    if (one.from == peer_ && one.index % core_.poller_count() == index_ && !record.dialled)
      next = std::min(next, begin_ + one.at);
  }
  return next;
}

void PollerProgram::dial() {
  for (const ConversationPlan& one : plan_.conversations) {
    ConversationRecord& record = ledger_.conversations[one.index];
    const bool is_own = one.from == peer_ && one.index % core_.poller_count() == index_;
    if (!is_own || record.dialled || peers_.world().now() < begin_ + one.at) continue;
    record.dialled = true;
    const auto channel =
        poller_.connect(Peers::address(one.to), {.send_bytes = one.send_bytes,
                                                 .receive_bytes = one.receive_bytes,
                                                 .greeting = greeting_of(plan_.seed, one.index)});
    if (!channel.ok()) {
      record.not_dialled = channel.status();
      end_dial(peers_, ledger_, one.index);
      continue;
    }
    channels_[channel->index] =
        std::make_unique<Conversation>(one, plan_.seed, 0, ledger_, poller_, *channel);
  }
}

bool PollerProgram::poll() {
  std::array<ChannelEvent, 16> events;
  const auto told = poller_.poll(std::span(events).first(chance_.between(1, events.size())));
  for (const ChannelEvent& event : told) take(event);
  return !told.empty();
}

void PollerProgram::take(const ChannelEvent& event) {
  peers_.world().note_progress();
  std::unique_ptr<Conversation>& conversation = channels_[event.channel.index];
  if (conversation == nullptr) {
    const auto info = poller_.info(event.channel);
    const auto count = static_cast<uint32_t>(plan_.conversations.size());
    const uint32_t index = info.ok() ? index_of(plan_.seed, info->greeting, count) : count;
    if (event.kind != ChannelEvent::Kind::opened || index == count)
      return check(fmt::format("peer {}: an event of an unknown channel", peer_));
    conversation = std::make_unique<Conversation>(plan_.conversations[index], plan_.seed, 1,
                                                  ledger_, poller_, event.channel);
  }
  if (conversation->channel() != event.channel)
    return check(fmt::format("peer {}: an event of a channel that has closed", peer_));
  check(conversation->take(event, peers_.world().now()));
  if (!conversation->is_over()) return;
  const ConversationPlan& over = conversation->plan();
  const bool dialled = over.from == peer_;
  if (conversation->holds()) over_.push_back(std::move(conversation));
  channels_.erase(event.channel.index);
  if (dialled) end_dial(peers_, ledger_, over.index);
}

// Channels that have closed are let go at any time later. The frames stay until then.
void PollerProgram::let_go(bool all) {
  std::erase_if(over_, [&](const std::unique_ptr<Conversation>& conversation) {
    if (!all && !chance_.one_in(4)) return false;
    check(conversation->let_go());
    return true;
  });
}

bool PollerProgram::advance() {
  bool has_done = false;
  for (auto& [index, conversation] : channels_) has_done |= conversation->advance();
  const uint64_t limit = plan_.peers[peer_].memory_limit_bytes;
  if (limit != 0 && core_.memory_taken_bytes() > limit)
    check(fmt::format("peer {}: links take {} bytes, more than memory.limit_bytes = {}", peer_,
                      core_.memory_taken_bytes(), limit));
  return has_done;
}

void PollerProgram::wait() {
  const auto holds = [](const auto& entry) { return entry.second->holds(); };
  const base::Nanoseconds now = peers_.world().now();
  const base::Nanoseconds dials_at = next_dial();
  Wait limit = Wait::forever();
  if (!over_.empty() || std::any_of(channels_.begin(), channels_.end(), holds)) {
    limit = wait_for(chance_.between(1, 300 * kMicrosecond));
  } else if (ledger_.dials_left == 0) {
    limit = wait_for(chance_.between(1, 2 * base::kMillisecond));
  } else if (dials_at != base::kForever) {
    limit = wait_for(dials_at > now ? dials_at - now : 0);
  }
  const Outcome outcome = poller_.wait(limit);
  if (outcome == Outcome::failed && !peers_.is_ending(peer_))
    check(fmt::format("peer {}: a wait failed, and its endpoint is open", peer_));
  if (outcome != Outcome::deadline) return;
  let_go(true);
  for (auto& [index, conversation] : channels_) {
    if (conversation->holds()) check(conversation->let_go());
  }
}

void PollerProgram::run_task() {
  Chance chance(mix(plan_.seed, peer_, index_, 0x7461736b));
  while (!has_ended_) {
    peers_.world().wait_until(
        [] { return false; },
        peers_.world().now() + chance.below(uint64_t{1} << chance.between(10, 24)),
        "the task's time");
    if (has_ended_ || !poller_.waiting().try_enter()) continue;
    ++ledger_.entered;
    bool has_sent_all = false;
    for (auto& [index, conversation] : channels_)
      has_sent_all |= conversation->send() && conversation->has_sent_all();
    poller_.post();
    poller_.waiting().leave();
    if (has_sent_all) poller_.waiting().wake();  // it ends them
  }
}

}  // namespace faro::simulation
