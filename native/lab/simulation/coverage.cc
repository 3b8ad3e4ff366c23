#include "lab/simulation/coverage.h"

#include <fmt/format.h>

#include <bit>

namespace faro::simulation {
namespace {

uint64_t bucket_of(uint64_t value) { return value <= 16 ? value : std::bit_floor(value); }

std::string short_number(uint64_t number) {
  if (number < 10'000) return std::to_string(number);
  if (number < 10'000'000) return fmt::format("{}k", number / 1000);
  return fmt::format("{}M", number / 1'000'000);
}

template <typename Map>
auto& entry_of(Map& map, std::string_view name) {
  const auto found = map.find(name);
  return found != map.end() ? found->second : map[std::string(name)];
}

}  // namespace

void Coverage::add(std::string_view name, uint64_t value) {
  ++entry_of(sizes, name)[bucket_of(value)];
}

void Coverage::count(std::string_view group, std::string_view name, uint64_t times) {
  entry_of(entry_of(events, group), name) += times;
}

uint64_t Coverage::counted(std::string_view group, std::string_view name) const {
  const auto found = events.find(group);
  if (found == events.end()) return 0;
  const auto event = found->second.find(name);
  return event == found->second.end() ? 0 : event->second;
}

void Coverage::merge(const Coverage& other) {
  for (const auto& [name, buckets] : other.sizes) {
    for (const auto& [bucket, count] : buckets) sizes[name][bucket] += count;
  }
  for (const auto& [group, names] : other.events) {
    for (const auto& [name, count] : names) events[group][name] += count;
  }
}

std::string Coverage::to_string() const {
  std::string text;
  for (const auto& [name, buckets] : sizes) {
    text += fmt::format("{:<24}", name);
    for (const auto& [bucket, count] : buckets)
      text += fmt::format(" {}{}:{}", short_number(bucket), bucket > 16 ? "+" : "", count);
    text += '\n';
  }
  for (const auto& [group, names] : events) {
    text += fmt::format("{:<24}", group);
    const char* comma = " ";
    for (const auto& [name, count] : names) {
      text += fmt::format("{}{} {}", comma, name, count);
      comma = ", ";
    }
    text += '\n';
  }
  return text;
}

void cover_turns(Coverage& coverage, const sim::TurnWatch::Counts& counts) {
  if (counts.bytes == 0) return;
  coverage.count("runs with", "turns", counts.turn_sends > 0);
  coverage.count("runs with", "two that send to one in their turns", counts.shared_sends > 0);
  coverage.count("sent in turns", "times", counts.turn_sends);
  coverage.count("sent in turns", "while another did", counts.shared_sends);
  coverage.count("sent in turns", "bytes", counts.turn_bytes);
  coverage.count("sent in turns", "bytes without", counts.bytes - counts.turn_bytes);
}

}  // namespace faro::simulation
