#include "links/link_table.h"

#include <algorithm>
#include <utility>

namespace faro::links {

using transport::tcp::host_of;

namespace {

// It was accepted, it could be mended, and the peer has not been told READY.
bool is_unopened(const Link& link) {
  return !link.context().initiator && link.choice() && link.choice()->number != 0 &&
         !link.history().may_be_up_to_peer();
}

}  // namespace

LinkTable::LinkTable(uint32_t peers, uint32_t ring_bytes)
    : peers_(peers),
      ring_bytes_(ring_bytes),
      never_linked_(std::make_shared<transport::AbsentLink>(ring_bytes)) {}

Link* LinkTable::find(const transport::StreamToken& token) const {
  const auto found =
      std::ranges::find_if(links_, [&](const auto& place) { return place.second->takes(token); });
  return found == links_.end() ? nullptr : found->second.get();
}

Link* LinkTable::find_to_mend(const wire::Hello& hello, const Identity& identity) const {
  const auto found = std::ranges::find_if(links_, [&](const auto& place) {
    const std::shared_ptr<Link>& link = place.second;
    return link->can_mend() && identity.is_same_peer(link->peer(), hello) &&
           link->peer().incarnation == hello.incarnation &&
           link->choice()->number == hello.mends->number;
  });
  return found == links_.end() ? nullptr : found->second.get();
}

bool LinkTable::end_unopened(const wire::Hello& hello, const Identity& identity) {
  const uint64_t number = hello.mends->number;
  const auto found = std::ranges::find_if(links_, [&](const auto& place) {
    return is_unopened(*place.second) && place.second->choice()->number == number &&
           identity.is_same_peer(place.second->peer(), hello);
  });
  if (found != links_.end()) {
    const std::shared_ptr<Link> link = found->second;
    link->fail(Status(Code::connect_failed, "a connection has broken while it was set up"));
  }
  return unopened_.has(number);
}

bool LinkTable::expects_stream_from(const std::string& host) const {
  bool expects = false;
  for_each([&](const Link& link) {
    expects = expects || (link.expects_stream() && host_of(link.control().peer_address()) == host);
  });
  return expects;
}

size_t LinkTable::expected_streams() const {
  size_t expected = 0;
  for_each([&](const Link& link) { expected += link.expects_stream(); });
  return expected;
}

bool LinkTable::all_detached() const {
  bool all = true;
  for_each([&](const Link& link) { all = all && !link.control().attached(); });
  return all;
}

Link& LinkTable::add(std::unique_ptr<Link> link) {
  std::shared_ptr<Link> added = retired_->keep(std::move(link));
  added->state_.set_watch(watch_);
  watch_.note_added(added->history().control().heard);
  parted_.reserve(parted_.size() + links_.size() + 1);
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Link>& place = links_[added->place()];
  place = std::move(added);
  return *place;
}

void LinkTable::count_mendings(uint32_t peer, counters::Counter& mended,
                               counters::Counter& mending_ns) {
  const auto place = links_.find(peer);
  if (place != links_.end()) place->second->state_.count_in(mended, mending_ns);
}

bool LinkTable::retire(uint32_t peer) {
  const auto place = links_.find(peer);
  const bool came_up = place->second->data() != nullptr;
  if (is_unopened(*place->second)) unopened_.note(place->second->choice()->number);
  if (place->second->share_ != nullptr) place->second->share_->note_ended();
  std::shared_ptr<transport::DataLink> absent;
  if (came_up)
    absent = std::make_shared<transport::AbsentLink>(ring_bytes_, *place->second->data());
  {
    const std::lock_guard lock(mutex_);
    if (came_up) absent_[peer].swap(absent);
    parted_.push_back(std::move(place->second));  // allocates nothing, as `add` has
    links_.erase(place);
  }
  if (came_up) changes_.fetch_add(1, std::memory_order_release);
  return came_up;
}

void LinkTable::destroy_retired() {
  std::erase_if(parted_, [](const std::shared_ptr<Link>& link) {
    return link.use_count() == 1 || link->made_ == nullptr || link->made_->close_connections();
  });
  retired_->destroy();
}

void LinkTable::clear() {
  {
    const std::lock_guard lock(mutex_);
    links_.clear();
  }
  parted_.clear();
  retired_->destroy();
}

std::shared_ptr<transport::DataLink> LinkTable::data(uint32_t peer) const {
  const std::lock_guard lock(mutex_);
  const auto place = links_.find(peer);
  if (place != links_.end() && place->second->data() != nullptr)
    return {place->second, place->second->data()};
  const auto absent = absent_.find(peer);
  return absent == absent_.end() ? never_linked_ : absent->second;
}

bool LinkTable::connected(uint32_t peer) const {
  const std::lock_guard lock(mutex_);
  const Link* const link = find(peer);
  return link != nullptr && link->state().connected();
}

std::set<uint32_t> LinkTable::linked() const {
  const std::lock_guard lock(mutex_);
  std::set<uint32_t> linked;
  for (const auto& [peer, link] : links_) {
    if (link->data() != nullptr) linked.insert(peer);
  }
  return linked;
}

std::optional<uint32_t> LinkTable::next_counting(uint32_t from) const noexcept {
  const std::lock_guard lock(mutex_);
  auto link = links_.lower_bound(from);
  while (link != links_.end() && link->second->data() == nullptr) ++link;
  const auto gone = absent_.lower_bound(from);
  if (link == links_.end() && gone == absent_.end()) return std::nullopt;
  if (link == links_.end()) return gone->first;
  return gone == absent_.end() ? link->first : std::min(link->first, gone->first);
}

uint32_t LinkTable::retired_count() const {
  const std::lock_guard lock(mutex_);
  return retired_->count() - static_cast<uint32_t>(links_.size());
}

}  // namespace faro::links
