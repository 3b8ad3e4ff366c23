#include "endpoint/poller_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/error.h"
#include "base/kept_addresses.h"
#include "base/planted.h"
#include "wire/frame.h"

namespace faro::endpoint {
namespace {

constexpr uint32_t kHeaderBytes = sizeof(wire::FrameHeader);

// Ended channels whose causes are kept.
constexpr size_t kClosedKept = 1024;

// Whether a claim may find room now. One that is open must not be moved: then the next claim finds out.
bool may_have_room(Channel& channel) {
  return channel.claimed.bytes != 0 ||
         channel.out->claim(channel.wanted_least, channel.wanted_most).bytes != 0;
}

// Keeps why a call was refused; without the words if there is no memory for them.
template <typename... Args>
void refuse(Channel& channel, Code code, fmt::format_string<Args...> text,
            Args&&... args) noexcept {
  channel.misuse = Status(code, "");
  try {
    channel.misuse = base::error(code, text, std::forward<Args>(args)...);
  } catch (const std::bad_alloc&) {
  }
}

// Whether a claim finds room, now or later.
bool can_send(const Channel& channel) {
  return channel.sending == Channel::Sending::opening || channel.sending == Channel::Sending::open;
}

// To say that nothing more comes, whatever the poller waits for.
bool needs_room(const Channel& channel) { return channel.sending == Channel::Sending::ends; }

// Whether there is something to tell, or to do, of a channel that is to be visited, beside frames: also if it has ended and can
// be forgotten.
bool has_more_than_frames(const Channel* channel) {
  return (!channel->told_opened && channel->link != nullptr) || channel->end.has_value() ||
         channel->owes_taken || channel->owes_closing;
}

bool has(WakeFor reasons, WakeFor reason) {
  return (static_cast<uint8_t>(reasons) & static_cast<uint8_t>(reason)) != 0;
}
ring::WokenFor woken_for(WakeFor reasons) {
  return has(reasons, WakeFor::frames) ? ring::WokenFor::all : ring::WokenFor::all_but_frames;
}

void remove(std::vector<Channel*>& list, bool& is_listed, Channel& channel) {
  if (std::exchange(is_listed, false)) std::erase(list, &channel);
}

// What the network thread does not know yet: if memory runs out, it is told at the next visit.
void tell_what_is_owed(ChannelNetwork& network, Channel& channel) {
  if (channel.owes_taken) network.end_taken(channel.id);
  channel.owes_taken = false;
  if (channel.owes_closing) network.close(channel.id, *channel.owes_closing);
  channel.owes_closing.reset();
}

}  // namespace

/// The part of the caller's events that is not filled yet.
class PollerCore::Room {
 public:
  explicit Room(std::span<ChannelEvent> events) : events_(events) {}
  bool full() const { return taken_ == events_.size(); }
  ChannelEvent& add(const Channel& channel, ChannelEvent::Kind kind) {
    ChannelEvent& event = events_[taken_++];
    event = {channel.id, kind, 0, {}};
    return event;
  }
  std::span<ChannelEvent> taken() const { return events_.first(taken_); }

 private:
  std::span<ChannelEvent> events_;
  size_t taken_ = 0;
};

Result<std::unique_ptr<PollerCore>> PollerCore::make(
    ChannelNetwork& network, std::unique_ptr<links::Transports> transports,
    const base::Clock& clock, std::unique_ptr<ring::Waiter> waiter, ring::ReadyWatch& ready_watch,
    const PollerWait::Limits& limits, uint32_t channel_limit) {
  FARO_ASSIGN_OR_RETURN(auto doorbells, transport::shm::NodeDoorbells::make(1));
  return std::unique_ptr<PollerCore>(new PollerCore(network, std::move(transports), clock, limits,
                                                    std::move(waiter), ready_watch,
                                                    std::move(doorbells), channel_limit));
}

PollerCore::PollerCore(ChannelNetwork& network, std::unique_ptr<links::Transports> transports,
                       const base::Clock& clock, PollerWait::Limits limits,
                       std::unique_ptr<ring::Waiter> waiter, ring::ReadyWatch& ready_watch,
                       transport::shm::NodeDoorbells doorbells, uint32_t channel_limit)
    : network_(network),
      transports_(std::move(transports)),
      wait_(*transports_, clock, std::move(waiter), limits, std::move(doorbells), ready_watch),
      ready_(channel_limit),
      end_{&ready_, &wait_.line()},
      channels_(channel_limit) {
  active_.reserve(2 * size_t{channel_limit});  // those visited stay until the visit is over
  for (auto* const list : {&starving_, &unposted_, &touched_}) list->reserve(channel_limit);
}

Channel* PollerCore::find(ChannelId id) const noexcept {
  if (id.index >= channels_.size()) return nullptr;
  Channel* const channel = channels_[id.index].get();
  return channel != nullptr && channel->id == id ? channel : nullptr;
}

// ----------------------------------------------------------------------- what the network thread tells

void PollerCore::tell(ChannelNews news) {
  mailbox_.put(std::move(news));
  wait_.ring();
}

void PollerCore::shut() noexcept {
  shut_.store(true, std::memory_order_seq_cst);
  wait_.wake();
}

void PollerCore::let_go() noexcept {
  mailbox_.take();
  news_.clear();
  active_.clear();
  starving_.clear();
  unposted_.clear();
  touched_.clear();
  channels_.clear();
}

// One at a time: if memory runs out, the others are taken the next time.
void PollerCore::take_news() {
  if (news_.empty()) {
    news_ = mailbox_.take();
    std::reverse(news_.begin(), news_.end());
  }
  for (; !news_.empty(); news_.pop_back()) {
    ChannelNews& news = news_.back();
    if (news.link != nullptr) {
      open(news);
    } else if (news.is_idle) {
      drain_idle(news);
    } else if (Channel* const channel = find(news.id)) {
      channel->end = std::move(news.cause.ok() ? channel->idle : news.cause);
      channel->sending = Channel::Sending::ended;
      activate(*channel);
    }
  }
}

// Not one that only waits: for room, or for its frames to be released.
void PollerCore::drain_idle(ChannelNews& news) {
  Channel* const channel = find(news.id);
  const bool is_quiet = channel != nullptr && channel->sending == Channel::Sending::open &&
                        !channel->held.any() && !channel->is_starving &&
                        channel->claimed.bytes == 0;
  if (!is_quiet) return;
  channel->idle = std::move(news.cause);
  close(channel->id, Closing::drain);
}

void PollerCore::open(ChannelNews& news) {
  std::unique_ptr<Channel>& place = channels_[news.id.index];
  if (place == nullptr) {  // a peer has dialled it
    place = std::make_unique<Channel>();
    place->id = news.id;
  }
  Channel& channel = *place;
  channel.link = std::move(news.link);
  channel.out = &channel.link->outgoing(0);
  channel.in = &channel.link->incoming(0);
  channel.record = news.record;
  channel.info = std::move(news.info);
  channel.info.least_frame_bytes = channel.out->frame_limit() - kHeaderBytes;
  channel.sending = Channel::Sending::open;
  channel.link->attach_ready(ready_, news.id.index, 0);
  activate(channel);
}

// ------------------------------------------------------------------------------------------- events

std::span<ChannelEvent> PollerCore::poll(std::span<ChannelEvent> events) noexcept {
  Room room(events);
  try {
    over_.clear();
    if (!news_.empty() || mailbox_.has_news()) take_news();
    ready_.take([this](uint32_t ring) {
      // A hostile shm peer can set any bit of its link's words.
      const uint32_t index = ring / ring::ReadySet::kRingsPerGroup;
      if (Channel* const channel = channels_[index].get()) activate(*channel);
    });
    visit_starving(room);
    visit_active(room);
  } catch (const std::bad_alloc&) {
    // What was not told yet is told the next time.
  }
  counters::count(wait_.counters().polls);
  counters::count(wait_.counters().events, room.taken().size());
  return room.taken();
}

void PollerCore::visit_active(Room& room) {
  const size_t count = active_.size();
  size_t visited = 0;
  while (visited < count && !room.full()) {
    Channel& channel = *active_[visited++];
    channel.is_active = false;
    try {
      if (visit(channel, room) == Visit::unfinished) activate(channel);
      if (channel.told_closed && !channel.held.any()) forget(channel);
    } catch (const std::bad_alloc&) {
      activate(channel);  // the rest of it the next time
      break;
    }
  }
  active_.erase(active_.begin(), active_.begin() + static_cast<ptrdiff_t>(visited));
}

PollerCore::Visit PollerCore::visit(Channel& channel, Room& room) {
  if (channel.told_closed) return Visit::finished;
  tell_what_is_owed(network_, channel);
  if (!channel.told_opened && channel.link != nullptr) {
    channel.told_opened = true;
    room.add(channel, ChannelEvent::Kind::opened);
  }
  if (channel.in != nullptr && take_frames(channel, room) == Visit::unfinished)
    return Visit::unfinished;
  if (!channel.end || channel.is_full) return Visit::finished;
  if (room.full()) return Visit::unfinished;
  finish(channel);
  room.add(channel, ChannelEvent::Kind::closed);
  return Visit::finished;
}

PollerCore::Visit PollerCore::take_frames(Channel& channel, Room& room) {
  transport::FrameView view;
  while (!channel.peer_ended) {
    if (room.full()) return Visit::unfinished;
    const transport::Next next = channel.in->next(view);
    channel.is_full = next == transport::Next::full;
    if (next != transport::Next::frame) return Visit::finished;
    touch(channel);
    if (view.header.kind == wire::FrameKind::message) {
      ChannelEvent& event = room.add(channel, ChannelEvent::Kind::frame);
      event.token = view.token;
      event.data = {view.payload, view.payload_bytes()};
      channel.held.take(view.token);
      if (base::planted(base::Plant::frame_given_back)) channel.in->release(view.token);
      continue;
    }
    channel.in->release(view.token);
    channel.peer_ended = true;
    if (view.header.kind == wire::FrameKind::end) {
      channel.owes_taken = true;
      begin_end(channel);
      tell_what_is_owed(network_, channel);
    } else {
      network_.fail(channel.id,
                    Status(Code::protocol_error, "it sent a frame of a shuffle over a channel"));
    }
  }
  return Visit::finished;
}

void PollerCore::visit_starving(Room& room) {
  for (size_t i = 0; i < starving_.size() && !room.full();) {
    Channel& channel = *starving_[i];
    const bool ends = needs_room(channel);
    const bool is_over = channel.sending == Channel::Sending::ended;
    if (ends ? try_end(channel) : is_over || may_have_room(channel)) {
      if (!ends && !is_over && !base::planted(base::Plant::lost_room))
        room.add(channel, ChannelEvent::Kind::room);
      sate(channel);
    } else {
      ++i;
    }
  }
}

void PollerCore::finish(Channel& channel) {
  if (channel.link != nullptr) over_.emplace_back(channel.id, channel.info);
  closed_.emplace_back(channel.id, *channel.end);
  if (closed_.size() > kClosedKept) closed_.pop_front();
  channel.told_closed = true;
  ready_.clear_external(channel.id.index);
  sate(channel);
  remove(unposted_, channel.is_unposted, channel);
  if (!base::planted(base::Plant::link_given_back)) return;
  remove(touched_, channel.is_touched, channel);
  channel.link.reset();
}

// Its memory first: the network thread, which destroys the link, is told by the call that tells it to forget.
void PollerCore::forget(Channel& channel) {
  remove(touched_, channel.is_touched, channel);
  channel.link.reset();
  network_.forget(channel.id);
  if (std::exchange(channel.is_active, false)) std::erase(active_, &channel);
  channels_[channel.id.index].reset();
}

void PollerCore::activate(Channel& channel) noexcept {
  if (channel.is_active) return;
  active_.push_back(&channel);
  channel.is_active = true;
}

void PollerCore::touch(Channel& channel) noexcept {
  if (channel.is_touched) return;
  touched_.push_back(&channel);
  channel.is_touched = true;
}

void PollerCore::release(ChannelId id, uint32_t token) noexcept {
  Channel* const channel = find(id);
  if (channel == nullptr || !channel->held.release(token)) return;
  const bool is_gone = base::planted(base::Plant::link_given_back) && channel->link == nullptr;
  if (!is_gone && !base::planted(base::Plant::frame_given_back)) channel->in->release(token);
  if (!is_gone) touch(*channel);
  if (channel->is_full) activate(*channel);
  try {
    if (channel->told_closed && !channel->held.any()) forget(*channel);
  } catch (const std::bad_alloc&) {
    activate(*channel);  // forgotten at its next visit
  }
}

// ------------------------------------------------------------------------------------------- frames

Outcome PollerCore::claim(ChannelId id, size_t least, size_t most,
                          std::span<std::byte>& space) noexcept {
  space = {};
  Channel* const channel = find(id);
  if (channel == nullptr || !can_send(*channel)) return Outcome::failed;
  channel->claimed = {};
  channel->misuse = Status::Ok();
  if (channel->sending == Channel::Sending::opening) return Outcome::would_wait;
  if (least > channel->info.least_frame_bytes) {
    refuse(*channel, Code::invalid_argument,
           "a frame of {} bytes: this channel takes {} at the most", least,
           channel->info.least_frame_bytes);
    return Outcome::failed;
  }
  const auto needed = static_cast<uint32_t>(kHeaderBytes + least);
  const size_t limit = channel->info.send_bytes / 2;
  const auto wanted =
      static_cast<uint32_t>(kHeaderBytes + std::min(std::max(least, most), limit - kHeaderBytes));
  channel->claimed = channel->out->claim(needed, wanted);
  if (channel->claimed.bytes == 0) {
    starve(*channel, needed, wanted);
    return Outcome::would_wait;
  }
  channel->granted = std::min<size_t>(channel->claimed.bytes - kHeaderBytes, std::max(least, most));
  space = {channel->claimed.data + kHeaderBytes, channel->granted};
  return Outcome::done;
}

Outcome PollerCore::commit(ChannelId id, size_t bytes, Notice notice) noexcept {
  Channel* const channel = find(id);
  if (channel == nullptr || !can_send(*channel)) return Outcome::failed;
  if (channel->claimed.bytes == 0) {
    refuse(*channel, Code::wrong_state, "a commit without a claim");
    return Outcome::failed;
  }
  if (bytes > channel->granted) {
    refuse(*channel, Code::invalid_argument, "a commit of {} bytes, of {} claimed", bytes,
           channel->granted);
    return Outcome::failed;
  }
  channel->misuse = Status::Ok();
  const auto length = static_cast<uint32_t>(kHeaderBytes + bytes);
  wire::store_header(channel->claimed.data, {length, wire::FrameKind::message, 0, 0, 0, 0});
  channel->out->commit(length);
  channel->claimed = {};
  channel->is_loud |= notice == Notice::loud;
  if (!channel->is_unposted) {
    unposted_.push_back(channel);
    channel->is_unposted = true;
  }
  return Outcome::done;
}

void PollerCore::post() noexcept {
  for (Channel* const channel : unposted_) {
    channel->is_unposted = false;
    // A wait for room is one until the peer has read all that it has.
    if (std::exchange(channel->is_loud, false) || channel->is_starving) {
      channel->out->post();
    } else {
      channel->out->post_quietly();
    }
  }
  unposted_.clear();
}

// The peer can only make room by reading what it has: so it gets all that is committed, quiet or not.
void PollerCore::starve(Channel& channel, uint32_t least, uint32_t most) noexcept {
  channel.out->post();
  channel.wanted_least = least;
  channel.wanted_most = most;
  counters::count(channel.record->outgoing.no_room);
  if (channel.is_starving) return;
  starving_.push_back(&channel);
  channel.is_starving = true;
  counters::set(channel.record->counters.room_ns, wait_.now());
}

void PollerCore::sate(Channel& channel) noexcept {
  if (!channel.is_starving) return;
  counters::set(channel.record->counters.room_ns, 0);
  remove(starving_, channel.is_starving, channel);
}

// ------------------------------------------------------------------------------------------- ending

void PollerCore::close(ChannelId id, Closing closing) noexcept {
  Channel* const channel = find(id);
  if (channel == nullptr || channel->end) return;
  const bool has_rings = channel->link != nullptr;
  channel->owes_closing = has_rings ? closing : Closing::now;
  if (has_rings && closing == Closing::drain) begin_end(*channel);
  try {
    tell_what_is_owed(network_, *channel);
  } catch (const std::bad_alloc&) {
    activate(*channel);
  }
}

void PollerCore::begin_end(Channel& channel) {
  if (channel.sending != Channel::Sending::open) return;
  channel.sending = Channel::Sending::ends;
  channel.claimed = {};
  refuse(channel, Code::closed, "the channel is being drained");
  if (!try_end(channel)) starve(channel, kHeaderBytes, kHeaderBytes);
}

bool PollerCore::try_end(Channel& channel) noexcept {
  const ring::Claim claim = channel.out->claim(kHeaderBytes, kHeaderBytes);
  if (claim.bytes == 0) return false;
  wire::store_header(claim.data, {kHeaderBytes, wire::FrameKind::end, 0, 0, 0, 0});
  channel.out->commit(kHeaderBytes);
  channel.out->post();
  channel.sending = Channel::Sending::ended;
  return true;
}

// ------------------------------------------------------------------------------------------ waiting

Outcome PollerCore::wait(Wait limit, WakeFor reasons) noexcept {
  if (!limit.is_none() && !limit.is_forever() && limit.limit().count() < 0) return Outcome::failed;
  before_wait(reasons);
  const auto found = [&] { return look(reasons) || shut_.load(std::memory_order_seq_cst); };
  return unless_shut(wait_.wait(limit, woken_for(reasons), found), reasons);
}

Outcome PollerCore::arm(WakeFor reasons) noexcept {
  before_wait(reasons);
  const auto found = [&] { return look(reasons) || shut_.load(std::memory_order_seq_cst); };
  return unless_shut(wait_.arm(woken_for(reasons), found), reasons);
}

void PollerCore::before_wait(WakeFor reasons) noexcept {
  post();
  for (Channel* const channel : touched_) {
    channel->is_touched = false;
    channel->in->flush_releases();
    counters::set(channel->record->counters.held_frames, channel->held.count());
  }
  touched_.clear();
  over_.clear();
  transports_->flush();
  if (has(reasons, WakeFor::room)) return;
  for (Channel* const channel : starving_) {
    if (!needs_room(*channel)) channel->out->forgo_room();
  }
}

bool PollerCore::look(WakeFor reasons) noexcept {
  if (!news_.empty() || mailbox_.has_news()) return true;
  if (has(reasons, WakeFor::frames) ? !active_.empty() || ready_.any()
                                    : std::ranges::any_of(active_, has_more_than_frames)) {
    return true;
  }
  return std::ranges::any_of(starving_, [&](Channel* channel) {
    return (has(reasons, WakeFor::room) || needs_room(*channel)) && may_have_room(*channel);
  });
}

// What was told before it shut is seen by this look.
Outcome PollerCore::unless_shut(Outcome outcome, WakeFor reasons) noexcept {
  if (!shut_.load(std::memory_order_seq_cst)) return outcome;
  return look(reasons) ? Outcome::done : Outcome::failed;
}

// -------------------------------------------------------------------------------------- information

Result<ChannelId> PollerCore::connect(std::string_view address, const ChannelSpec& spec) {
  if (shut_.load(std::memory_order_acquire)) return Status(Code::closed, "the endpoint was closed");
  auto channel = std::make_unique<Channel>();
  FARO_ASSIGN_OR_RETURN(const ChannelId id, network_.connect(*this, address, spec));
  channel->id = id;
  channels_[id.index] = std::move(channel);
  return id;
}

bool PollerCore::is_open(ChannelId id) const noexcept {
  const Channel* const channel = find(id);
  return channel != nullptr && can_send(*channel);
}

Result<ChannelInfo> PollerCore::info(ChannelId id) const {
  const Channel* const channel = find(id);
  const bool is_open = channel != nullptr && channel->link != nullptr && !channel->told_closed;
  if (is_open) return channel->info;
  const auto is_it = [&](const auto& over) { return over.first == id; };
  const auto found = std::ranges::find_if(over_, is_it);
  if (found == over_.end()) return Status(Code::closed, "there is no such open channel");
  return found->second;
}

Result<ChannelRings> PollerCore::rings(ChannelId id) const {
  const Channel* const channel = find(id);
  const bool is_over = channel != nullptr && channel->told_closed && !channel->held.any();
  if (channel == nullptr || channel->link == nullptr || is_over)
    return Status(Code::closed, "there are no rings of such a channel");
  const auto outgoing = channel->out->memory();
  const auto incoming = channel->in->memory();
  struct Addresses {
    std::shared_ptr<const void> outgoing, incoming;
  };
  auto addresses = std::make_shared<Addresses>();
  addresses->outgoing = base::keep_addresses(outgoing);
  addresses->incoming = base::keep_addresses(incoming);
  return ChannelRings{outgoing, incoming, channel->link, std::move(addresses)};
}

Status PollerCore::status(ChannelId id) const {
  if (const Channel* const channel = find(id)) return channel->end.value_or(channel->misuse);
  const auto found = std::find_if(closed_.begin(), closed_.end(),
                                  [&](const auto& closed) { return closed.first == id; });
  if (found != closed_.end()) return found->second;
  return {Code::closed, "there is no such channel"};
}

}  // namespace faro::endpoint
