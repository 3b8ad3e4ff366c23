#include "lab/workload/row_generator.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "lab/workload/integer_rows.h"

namespace faro::workload {
namespace {

std::vector<uint32_t> resolve(const std::vector<uint32_t>& named, uint32_t count) {
  if (!named.empty()) return named;
  std::vector<uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

}  // namespace

RowGenerator::RowGenerator(uint64_t seed, StagePlan plan, uint32_t worker_count)
    : seed_(seed),
      plan_(std::move(plan)),
      senders_(resolve(plan_.senders, worker_count)),
      receivers_(resolve(plan_.receivers, worker_count)) {}

bool RowGenerator::sends(uint32_t worker) const {
  return std::find(senders_.begin(), senders_.end(), worker) != senders_.end();
}

uint32_t RowGenerator::receiver_of(uint32_t worker) const {
  return static_cast<uint32_t>(std::find(receivers_.begin(), receivers_.end(), worker) -
                               receivers_.begin());
}

uint64_t RowGenerator::key(uint32_t sender, uint64_t row) const {
  if (plan_.spread == Spread::one_key) return mix(seed_, plan_.stage);
  return mix(seed_, number(), sender, row);
}

uint64_t RowGenerator::length(uint32_t sender, uint64_t row) const {
  if (plan_.row_bytes != 0) return plan_.row_bytes;
  const uint64_t span = plan_.most_bytes - plan_.least_bytes + 1;
  return plan_.least_bytes + mix(seed_, number(), sender, row, 7) % span;
}

void RowGenerator::fill(uint32_t sender, uint64_t row, std::span<std::byte> bytes) const {
  const uint64_t base = mix(seed_, number(), sender, row, 8);
  uint64_t word = key(sender, row);
  for (size_t at = 0; at < bytes.size(); at += sizeof word) {
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
    word = (base + at) * 0x9E3779B97F4A7C15u;
  }
}

void RowGenerator::destinations(uint32_t sender, uint64_t row, std::vector<uint32_t>& to) const {
  const auto all = static_cast<uint32_t>(receivers_.size());
  to.clear();
  switch (plan_.spread) {
    case Spread::by_key:
    case Spread::one_key:
      to.push_back(destination_of<FinalizerHash>(key(sender, row), all));
      return;
    case Spread::broadcast:
      for (uint32_t r = 0; r < all; ++r) to.push_back(r);
      return;
    case Spread::multicast: {
      const uint64_t draw = key(sender, row);
      for (uint32_t r = 0; r < all; ++r) {
        if ((draw >> (r % 61) & 1) != 0) to.push_back(r);
      }
      if (to.empty()) to.push_back(static_cast<uint32_t>(draw % all));
      return;
    }
  }
}

bool RowGenerator::is_for(uint32_t receiver, uint32_t sender, uint64_t row) const {
  const auto all = static_cast<uint32_t>(receivers_.size());
  switch (plan_.spread) {
    case Spread::by_key:
    case Spread::one_key:
      return destination_of<FinalizerHash>(key(sender, row), all) == receiver;
    case Spread::broadcast:
      return true;
    case Spread::multicast: {
      std::vector<uint32_t> to;
      destinations(sender, row, to);
      return std::find(to.begin(), to.end(), receiver) != to.end();
    }
  }
  return false;
}

uint64_t RowGenerator::next_for(uint32_t receiver, uint32_t sender, uint64_t row) const {
  // With one key all rows are for one receiver: the others would look forever.
  if (plan_.spread == Spread::one_key && !is_for(receiver, sender, row)) return kNone;
  // By chance a row is for this receiver after a few receiver counts; the bound only keeps a broken
  // spread from going on forever.
  for (uint64_t tries = 0; tries < 1'000'000 && !is_for(receiver, sender, row); ++tries) ++row;
  return row;
}

}  // namespace faro::workload
