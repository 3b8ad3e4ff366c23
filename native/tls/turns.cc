#include "tls/turns.h"

#include <algorithm>
#include <list>
#include <new>
#include <utility>

namespace faro::tls {

struct Turns::Ask {
  std::string peer;
  std::function<void()> begins;
  bool has_come = false;
  base::Nanoseconds counts_until = 0;  // 0: it does not count
};

struct Turns::Asks {
  explicit Asks(const base::Clock& clock_to_use) : clock(clock_to_use) {}

  bool has_room(const std::string& peer) const {
    const auto found = under_way.find(peer);
    return counting.size() < kInAll && (found == under_way.end() || found->second < kPerPeer);
  }

  void count(Ask& ask, base::Nanoseconds time) {
    if (ask.counts_until == 0) counting.push_back(&ask);
    ask.counts_until = clock.now_ns() + time;
  }

  void come(Ask& ask) {
    ++under_way[ask.peer];
    count(ask, kConnectingCounts);
    ask.has_come = true;
  }

  // The next of these that there is room for; null: none.
  std::shared_ptr<Ask> next_of(std::list<std::weak_ptr<Ask>>& those) const {
    for (auto at = those.begin(); at != those.end();) {
      const std::shared_ptr<Ask> ask = at->lock();
      if (ask != nullptr && !has_room(ask->peer)) {
        ++at;
        continue;
      }
      at = those.erase(at);
      if (ask != nullptr) return ask;
    }
    return nullptr;
  }

  // Without memory to begin, one has had its turn.
  void give_on() noexcept {
    try {
      while (counting.size() < kInAll) {
        std::shared_ptr<Ask> next = next_of(first);
        if (next == nullptr) next = next_of(last);
        if (next == nullptr) return;
        come(*next);
        next->begins();
      }
    } catch (const std::bad_alloc&) {
    }
  }

  void end(const Ask& ask) noexcept {
    std::erase(counting, &ask);
    const auto found = under_way.find(ask.peer);
    if (--found->second == 0) under_way.erase(found);
    give_on();
  }

  const base::Clock& clock;
  std::unordered_map<std::string, size_t> under_way;  // by peer
  std::deque<Ask*> counting;
  std::list<std::weak_ptr<Ask>> first;  // that wait
  std::list<std::weak_ptr<Ask>> last;
};

Turns::Turns(const base::Clock& clock) : asks_(std::make_shared<Asks>(clock)) {}

Turns::Turn Turns::take(const std::string& peer, Order order, std::function<void()> begins) {
  auto ask = std::make_shared<Ask>(Ask{peer, std::move(begins)});
  if (asks_->has_room(peer)) {
    asks_->come(*ask);
  } else {
    (order == Order::first ? asks_->first : asks_->last).push_back(ask);
  }
  return {asks_, std::move(ask)};
}

void Turns::advance() {
  const base::Nanoseconds now = asks_->clock.now_ns();
  std::erase_if(asks_->counting, [&](Ask* ask) {
    if (now < ask->counts_until) return false;
    ask->counts_until = 0;
    return true;
  });
  asks_->give_on();
}

base::Nanoseconds Turns::next_deadline() const {
  base::Nanoseconds next = base::kForever;
  if (asks_->first.empty() && asks_->last.empty()) return next;
  for (const Ask* const ask : asks_->counting) next = std::min(next, ask->counts_until);
  return next;
}

bool Turns::Turn::has_come() const noexcept { return ask_ != nullptr && ask_->has_come; }

void Turns::Turn::connected() noexcept {
  if (has_come() && ask_->counts_until != 0) asks_->count(*ask_, kHandshakeCounts);
}

void Turns::Turn::end() noexcept {
  const std::shared_ptr<Ask> ended = std::move(ask_);
  const std::shared_ptr<Asks> asks = std::move(asks_);
  if (ended != nullptr && ended->has_come) asks->end(*ended);
}

Turns::Turn& Turns::Turn::operator=(Turn&& other) noexcept {
  if (this == &other) return *this;
  end();
  asks_ = std::move(other.asks_);
  ask_ = std::move(other.ask_);
  return *this;
}

}  // namespace faro::tls
