#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "command/build_json.h"
#include "command/commands.h"
#include "command/doctor_checks.h"
#include "command/setting_flags.h"
#include "command/subcommand.h"
#include "command/text.h"

namespace faro::command {
namespace {

struct Flags {
  SettingFlags settings;
  bool json = false;
};

struct HealthText {
  const char* name;
  const char* mark;  ///< at the beginning of a line
};
/// By Health.
constexpr HealthText kHealthTexts[] = {
    {"ok", "ok"}, {"warning", "!"}, {"failed", "NO"}, {"absent", "-"}};

const HealthText& text_of(Health health) { return kHealthTexts[static_cast<size_t>(health)]; }

void add_checks(Table& table, const std::vector<Check>& checks) {
  for (const Check& check : checks) {
    table.add({"", text_of(check.health).mark, check.name, check.found});
    if (!check.remedy.empty()) table.add({"", "", "", "→ " + check.remedy});
  }
}

void print_report(const std::vector<TransportReport>& transports,
                  const std::vector<Check>& machine) {
  Table table("llll");
  for (const TransportReport& transport : transports) {
    table.add_line(
        fmt::format("{}: {}", transport.name, transport.works ? "works" : "not available"));
    add_checks(table, transport.checks);
    table.add_line("");
  }
  table.add_line("this machine");
  add_checks(table, machine);
  fmt::print("{}", table.text());
}

Json checks_json(const std::vector<Check>& checks) {
  Json json = Json::array();
  for (const Check& check : checks) {
    json.push_back({{"name", check.name},
                    {"health", text_of(check.health).name},
                    {"found", check.found},
                    {"remedy", check.remedy}});
  }
  return json;
}

void print_json(const std::vector<TransportReport>& transports, const std::vector<Check>& machine) {
  Json json;
  json["transports"] = Json::array();
  for (const TransportReport& transport : transports) {
    json["transports"].push_back({{"name", transport.name},
                                  {"works", transport.works},
                                  {"summary", transport.summary},
                                  {"checks", checks_json(transport.checks)}});
  }
  json["machine"] = checks_json(machine);
  fmt::print("{}\n", json_text(json, true));
}

/// Whether a session with these settings has what it needs: the transport that they name, or some,
/// and nothing of the machine or of the security asked for that says no.
bool is_fit(const Config& config, const std::vector<TransportReport>& transports,
            const std::vector<Check>& machine) {
  const std::string named = config.get("transport");
  const bool is_any = std::ranges::any_of(transports, [&](const TransportReport& transport) {
    return transport.works && (named == "auto" || named == transport.name);
  });
  return is_any && std::ranges::none_of(
                       machine, [](const Check& check) { return check.health == Health::failed; });
}

int run(const Flags& flags) {
  const Result<Config> config = flags.settings.load_valid();
  if (!config) return report_error("faro doctor", config.status());
  const std::vector<TransportReport> transports = {
      check_shm(config.value()), check_tcp(config.value()), check_verbs(config.value())};
  std::vector<Check> machine = check_machine(config.value());
  for (const auto checks : {check_security, check_system}) {
    for (Check& check : checks(config.value())) machine.push_back(std::move(check));
  }
  for (Check& check : check_network_cpus(config.value())) machine.push_back(std::move(check));
  (flags.json ? print_json : print_report)(transports, machine);
  return is_fit(config.value(), transports, machine) ? kExitOk : kExitFailed;
}

}  // namespace

void add_doctor_command(CLI::App& app, int& exit_code) {
  auto [command, flags] =
      add_subcommand(app, exit_code, "doctor",
                     "Which transports work here, and how to fix those that do not", run);
  flags.settings.add_to(command);
  command.add_flag("--json", flags.json, "Print JSON");
}

}  // namespace faro::command
