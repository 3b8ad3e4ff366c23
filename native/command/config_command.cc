#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <string>

#include "command/build_json.h"
#include "command/commands.h"
#include "command/setting_flags.h"
#include "command/subcommand.h"
#include "command/text.h"

namespace faro::command {
namespace {

constexpr size_t kHelpColumns = 96;

struct Flags {
  SettingFlags settings;
  bool json = false;
};

std::string_view unit_text(const SettingInfo& info) {
  constexpr std::string_view kNames[] = {"number", "bytes", "ms", "µs"};  // by Unit
  return info.numeric ? kNames[static_cast<size_t>(info.unit)] : "text";
}

std::string limit_text(uint64_t limit, Unit unit) {
  if (limit == UINT64_MAX) return "∞";
  return unit == Unit::bytes ? exact_bytes_text(limit) : std::to_string(limit);
}

std::string value_text(const SettingInfo& info, std::string_view text) {
  if (!info.numeric) return text.empty() ? "(empty)" : std::string(text);
  if (info.unit == Unit::bytes) return exact_bytes_text(std::stoull(std::string(text)));
  return info.unit == Unit::number ? std::string(text)
                                   : fmt::format("{} {}", text, unit_text(info));
}

std::string range_text(const SettingInfo& info) {
  if (!info.numeric) return "";
  return fmt::format("{} … {}", limit_text(info.least, info.unit),
                     limit_text(info.most, info.unit));
}

void print_table(const Config& config) {
  Table table("lllll");
  table.add({"setting", "value", "default", "range", "from"});
  for (const SettingInfo& info : Config::table()) {
    const std::string value = value_text(info, config.get(info.name));
    const std::string default_value = value_text(info, info.default_value);
    const std::string source = config.source(info.name);
    table.add({std::string(info.name), value, value == default_value ? "=" : default_value,
               range_text(info), source});
    for (const std::string& line : wrapped(info.help, kHelpColumns)) {
      table.add_line("    " + line +
                     (info.cluster_wide && line == wrapped(info.help, kHelpColumns).back()
                          ? "  [cluster]"
                          : ""));
    }
  }
  fmt::print(
      "{}\n=: the default. [cluster]: all nodes must agree on the value; the handshake compares "
      "it.\n"
      "Sizes are digits with KiB, MiB or GiB. A setting comes from the file (--file, FARO_CONFIG), "
      "the\n"
      "environment (ring.bytes is FARO_RING_BYTES) or --set; the later one wins.\n",
      table.text());
}

void print_json(const Config& config) {
  Json settings = Json::array();
  for (const SettingInfo& info : Config::table()) {
    Json one;
    one["name"] = info.name;
    one["environment"] = info.environment;
    const auto value = [&info](const std::string& text) -> Json {
      if (!info.numeric) return text;
      return std::stoull(text);
    };
    one["value"] = value(config.get(info.name));
    one["default"] = value(std::string(info.default_value));
    one["unit"] = unit_text(info);
    if (info.numeric) {
      one["least"] = info.least;
      one["most"] = info.most;
    }
    one["from"] = config.source(info.name);
    one["cluster_wide"] = info.cluster_wide;
    one["help"] = info.help;
    settings.push_back(std::move(one));
  }
  fmt::print("{}\n", json_text(Json{{"settings", std::move(settings)}}, true));
}

int run(const Flags& flags) {
  const Result<Config> config = flags.settings.load_valid();
  if (!config) return report_error("faro config", config.status());
  if (flags.json) {
    print_json(config.value());
  } else {
    print_table(config.value());
  }
  return kExitOk;
}

}  // namespace

void add_config_command(CLI::App& app, int& exit_code) {
  auto [command, flags] =
      add_subcommand(app, exit_code, "config",
                     "All settings: value, default, range, and where each value comes from", run);
  flags.settings.add_to(command);
  command.add_flag("--json", flags.json, "Print JSON");
}

}  // namespace faro::command
