#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <string>
#include <thread>

#include "command/commands.h"
#include "command/explain.h"
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

int run(Flags& flags) {
  Result<std::vector<NodeChange>> nodes = flags.watch.look();
  if (nodes.ok() && !nodes->empty()) {
    std::this_thread::sleep_for(std::chrono::duration<double>(flags.interval_s));
    nodes = flags.watch.look();
  }
  if (!nodes.ok()) return report_error("explain", nodes.status());
  if (nodes->empty()) return report_error("explain", flags.watch.none());
  const std::vector<ExplainedQuery> queries = explain(*nodes, flags.query);
  if (flags.json) {
    fmt::print("{}\n", json_text(explain_json(queries), true));
  } else if (queries.empty()) {
    fmt::print("no {} on the nodes of this host\n",
               flags.query.empty() ? "query runs" : "query " + flags.query + " runs");
  } else {
    fmt::print("{}", explain_text(queries));
  }
  return kExitOk;
}

}  // namespace

void add_explain_command(CLI::App& app, int& exit_code) {
  auto [command, flags] =
      add_subcommand(app, exit_code, "explain",
                     "Why a query is stuck: which worker waits for what on which peer", run);
  flags.watch.add_to(command);
  command.add_option("--query", flags.query, "Only this query")->type_name("ISSUER:NUMBER");
  command
      .add_option("--interval", flags.interval_s, "Seconds to watch which workers make progress")
      ->check(CLI::Range(0.01, 60.0))
      ->type_name("SECONDS");
  command.add_flag("--json", flags.json, "Print JSON");
}

}  // namespace faro::command
