#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

int run(Flags& flags) {
  Result<Sample> sample = flags.watch.look();
  if (sample.ok() && !sample->empty()) {
    std::this_thread::sleep_for(std::chrono::duration<double>(flags.interval_s));
    sample = flags.watch.look();
  }
  if (!sample.ok()) return report_error("explain", sample.status());
  if (sample->empty()) return report_error("explain", flags.watch.none());
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
  return kExitOk;
}

}  // namespace

void add_explain_command(CLI::App& app, int& exit_code) {
  auto [command, flags] =
      add_subcommand(app, exit_code, "explain",
                     "Why a query is stuck: which worker waits for what on which peer; and what\n"
                     "channels of endpoints wait for",
                     run);
  flags.watch.add_to(command);
  command.add_option("--query", flags.query, "Only this query")->type_name("ISSUER:NUMBER");
  command
      .add_option("--interval", flags.interval_s, "Seconds to watch which workers make progress")
      ->check(CLI::Range(0.01, 60.0))
      ->type_name("SECONDS");
  command.add_flag("--json", flags.json, "Print JSON");
}

}  // namespace faro::command
