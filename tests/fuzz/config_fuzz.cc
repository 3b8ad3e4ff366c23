// Configuration files and the environment.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "base/unique_fd.h"
#include "faro/config.h"
#include "fuzz/fuzz_target.h"

extern char** environ;

namespace faro::fuzz {
namespace {

std::vector<std::string> values_of(const Config& config) {
  std::vector<std::string> values;
  for (const SettingInfo& row : Config::table()) {
    values.push_back(config.get(row.name));
    values.push_back(config.source(row.name));
  }
  return values;
}

void check_values(const Config& config) {
  Config again;
  for (const SettingInfo& row : Config::table()) {
    if (row.numeric) {
      const uint64_t number = config.get_number(row.name);
      require(number >= row.least && number <= row.most, "numbers stay within their limits");
    }
    require(again.set(row.name, config.get(row.name), "again").ok(), "what is shown can be set");
    require(again.get(row.name) == config.get(row.name), "and is the same");
  }
}

void check_failure(const Status& status, bool unchanged) {
  require(status.code() == Code::config_invalid && !status.message().empty(), "an error says why");
  require(unchanged, "what failed changes nothing");
}

// From a file without a name: the parser opens one.
void load_file(Config& config, std::string_view text) {
  static const base::UniqueFd file(memfd_create("configuration", MFD_CLOEXEC));
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  require(ftruncate(file.get(), 0) == 0 &&
              pwrite(file.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()),
          "the fuzzer can write its file");
  const std::vector<std::string> before = values_of(config);
  const Status loaded = config.load_file(path);
  if (!loaded.ok()) check_failure(loaded, values_of(config) == before);
}

// Lines of name=value.
void load_environment(Config& config, std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, std::min(text.find('\0'), end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::vector<char*> entries;
  for (std::string& line : lines) entries.push_back(line.data());
  entries.push_back(nullptr);
  char** const real = std::exchange(environ, entries.data());
  const Status loaded = config.load_environment();
  environ = real;
  if (!loaded.ok()) check_failure(loaded, true);
}

}  // namespace

// The file, a line of only "%%", the environment.
void run_target(Input input) {
  constexpr std::string_view kMiddle = "\n%%\n";
  const std::string_view text = text_of(input.rest());
  const size_t middle = std::min(text.find(kMiddle), text.size());
  Config config;
  load_file(config, text.substr(0, middle));
  load_environment(config, text.substr(std::min(middle + kMiddle.size(), text.size())));
  check_values(config);
  const auto settings = base::Settings::resolve(config);
  if (!settings.ok()) return check_failure(settings.status(), true);
  require(settings->node < settings->node_count() &&
              settings->node_addresses.size() == settings->workers_per_node.size(),
          "a node is part of its cluster");
  require(settings->threshold_bytes <= settings->ring_bytes / 2, "a threshold can be reached");
}

}  // namespace faro::fuzz
