#include "lab/command/seed_ranges.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <utility>

#include "command/build_json.h"

namespace faro::command::lab {
namespace {

Json to_json(const SeedRange& range) {
  Json json{{"seed", range.seed},
            {"runs", range.runs},
            {"build", range.build},
            {"done", range.done},
            {"seconds", range.seconds},
            {"hash", range.hash},
            {"events", range.coverage.events}};
  for (const auto& [name, buckets] : range.coverage.sizes) {
    Json& histogram = json["sizes"][name] = Json::object();
    for (const auto& [bucket, count] : buckets) histogram[std::to_string(bucket)] = count;
  }
  return json;
}

SeedRange from_json(const Json& json) {
  SeedRange range;
  json.at("seed").get_to(range.seed);
  json.at("runs").get_to(range.runs);
  json.at("build").get_to(range.build);
  json.at("done").get_to(range.done);
  json.at("seconds").get_to(range.seconds);
  json.at("hash").get_to(range.hash);
  for (const auto& [group, names] : json.at("events").items()) {
    for (const auto& [name, count] : names.items())
      range.coverage.count(group, name, count.get<uint64_t>());
  }
  if (json.contains("sizes")) {
    for (const auto& [name, buckets] : json.at("sizes").items()) {
      for (const auto& [bucket, count] : buckets.items())
        range.coverage.sizes[name][std::stoull(bucket)] = count.get<uint64_t>();
    }
  }
  return range;
}

}  // namespace

Result<SeedRanges> SeedRanges::load(std::string path) {
  SeedRanges ranges(std::move(path));
  std::ifstream file(ranges.path_);
  if (!file) return ranges;  // it does not exist yet; save reports if it cannot be written
  try {
    const Json json = Json::parse(file);
    for (const Json& range : json.at("ranges")) ranges.ranges_.push_back(from_json(range));
  } catch (const std::exception& error) {
    return Status(Code::config_invalid,
                  fmt::format("--resume {}: not a file of ranges: {}", ranges.path_, error.what()));
  }
  return ranges;
}

SeedRange& SeedRanges::find_or_add(uint64_t seed, uint64_t runs, const std::string& build) {
  const auto found = std::find_if(ranges_.begin(), ranges_.end(), [&](const SeedRange& range) {
    return range.seed == seed && range.runs == runs && range.build == build;
  });
  if (found != ranges_.end()) return *found;
  SeedRange& range = ranges_.emplace_back();
  range.seed = seed;
  range.runs = runs;
  range.build = build;
  return range;
}

Status SeedRanges::save() const {
  Json json{{"ranges", Json::array()}};
  for (const SeedRange& range : ranges_) json["ranges"].push_back(to_json(range));
  const std::string unfinished = path_ + ".new";
  std::ofstream file(unfinished);
  file << json.dump(1) << '\n';
  file.close();
  if (file && std::rename(unfinished.c_str(), path_.c_str()) == 0) return Status::Ok();
  return Status(Code::system_error, fmt::format("--resume {}: cannot be written", path_));
}

}  // namespace faro::command::lab
