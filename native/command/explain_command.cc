#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string>
#include <thread>

#include "command/commands.h"
#include "command/explain.h"
#include "command/explain_channels.h"
#include "command/node_watch.h"
#include "command/stat_report.h"
#include "command/subcommand.h"

namespace faro::command {
namespace {

struct Flags {
  NodeWatch watch;
  std::string query;
  double interval_s = 0.5;
  bool json = false;
};

std::string text_of(const std::vector<ExplainedQuery>& queries,
                    const std::vector<ExplainedChannel>& channels, const std::string& query) {
  if (!queries.empty() || !channels.empty()) {
    const bool both = !queries.empty() && !channels.empty();
    return explain_text(queries) + (both ? "\n" : "") + explain_channels_text(channels);
  }
  if (!query.empty()) return fmt::format("no query {} runs on the nodes of this host\n", query);
  return "no query runs on the nodes of this host, and no channel of its endpoints waits\n";
}

/// Whether a worker or a channel has waited for as long as it was watched.
bool anything_waits(const std::vector<ExplainedQuery>& queries,
                    const std::vector<ExplainedChannel>& channels, double watched_s) {
  const auto lasts = [watched_s](const auto& wait) { return wait.seconds >= watched_s; };
  return std::ranges::any_of(channels, lasts) ||
         std::ranges::any_of(queries, [&](const ExplainedQuery& query) {
           return std::ranges::any_of(query.waits, lasts);
         });
}

/// ISSUER:NUMBER, as Faro writes a query. Answers what is wrong, or nothing.
std::string check_query(const std::string& text) {
  const auto is_number = [](std::string_view digits, auto number) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  const size_t colon = text.find(':');
  const std::string_view all = text;
  if (colon != std::string::npos && is_number(all.substr(0, colon), uint32_t{}) &&
      is_number(all.substr(colon + 1), uint64_t{}))
    return {};
  return fmt::format("{} is no query: expected ISSUER:NUMBER, for instance 0:5", text);
}

int run(Flags& flags) {
  Result<Sample> sample = flags.watch.look();
  if (sample.ok() && !sample->empty()) {
    std::this_thread::sleep_for(std::chrono::duration<double>(flags.interval_s));
    sample = flags.watch.look();
  }
  if (!sample.ok()) return report_error("faro explain", sample.status());
  if (sample->empty()) return report_error("faro explain", flags.watch.none());
  const std::vector<ExplainedQuery> queries = explain(sample->nodes, flags.query);
  std::vector<ExplainedChannel> channels;
  if (flags.query.empty()) channels = explain_channels(sample->endpoints);
  if (flags.json) {
    Json json = explain_json(queries);
    json["channels"] = explain_channels_json(channels);
    fmt::print("{}\n", json_text(json, true));
  } else {
    fmt::print("{}", text_of(queries, channels, flags.query));
  }
  return anything_waits(queries, channels, flags.interval_s) ? kExitWaits : kExitOk;
}

}  // namespace

void add_explain_command(CLI::App& app, int& exit_code) {
  auto [command, flags] =
      add_subcommand(app, exit_code, "explain",
                     "Why a query is stuck: which worker waits for what on which peer; and what\n"
                     "channels of endpoints wait for",
                     run);
  flags.watch.add_to(command);
  command.add_option("--query", flags.query, "Only this query")
      ->check(check_query)
      ->type_name("ISSUER:NUMBER");
  command
      .add_option("--interval", flags.interval_s, "Seconds to watch which workers make progress")
      ->check(CLI::Range(0.01, 60.0))
      ->type_name("SECONDS");
  command.add_flag("--json", flags.json, "Print JSON");
  command.footer(std::string(kExitCodeHelp) + kWaitsHelp);
}

}  // namespace faro::command
