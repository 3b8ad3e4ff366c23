#include "links/diallers.h"

#include <algorithm>
#include <utility>

namespace faro::links {

template <typename Visit>
void Diallers::for_each_unlinked(Visit&& visit) const {
  for (const auto& dialler : diallers_) {
    if (links_.find(dialler->peer()) == nullptr) visit(*dialler);
  }
}

void Diallers::add(uint32_t peer, std::string address) {
  diallers_.push_back(
      std::make_unique<Dialler>(owner_, network_, identity_, peer, std::move(address)));
}

void Diallers::remove(uint32_t peer) {
  std::erase_if(diallers_, [&](const auto& dialler) { return dialler->peer() == peer; });
}

void Diallers::advance(base::Nanoseconds now) {
  for_each_unlinked([&](Dialler& dialler) { dialler.advance(now); });
}

base::Nanoseconds Diallers::next_deadline() const {
  base::Nanoseconds next = base::kForever;
  for_each_unlinked(
      [&](const Dialler& dialler) { next = std::min(next, dialler.next_deadline()); });
  return next;
}

void Diallers::retry(uint32_t peer, const Status& cause) {
  const auto found = std::find_if(diallers_.begin(), diallers_.end(),
                                  [&](const auto& dialler) { return dialler->peer() == peer; });
  if (found != diallers_.end()) (*found)->retry(cause);
}

void Diallers::stop(const Refusal& why) {
  for (const auto& dialler : diallers_) dialler->stop(why);
}

}  // namespace faro::links
