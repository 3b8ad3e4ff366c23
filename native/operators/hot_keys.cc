#include "faro/detail/hot_keys.h"

#include <algorithm>

namespace faro::detail {
namespace {

// A few votes are chance.
constexpr uint64_t kLeastVotes = 8;

}  // namespace

double HotKeys::decide(uint64_t rows_of_hot) noexcept {
  const uint64_t least = std::max(kLeastVotes, votes_ / rows_of_hot);
  uint64_t of_hot = 0;
  for (size_t i = 0; i < kPlaces; ++i) {
    const bool is_hot = places_[i].count >= least;
    hot_[i] = is_hot ? places_[i].tag + uint64_t{1} : 0;
    if (is_hot) of_hot += places_[i].count;
  }
  const double share = votes_ == 0 ? 0 : static_cast<double>(of_hot) / static_cast<double>(votes_);
  any_ = of_hot > 0;
  places_ = {};
  votes_ = 0;
  return share;
}

}  // namespace faro::detail
