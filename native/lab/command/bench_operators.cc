// `faro-lab bench operators`: an aggregation beside every fixed table and beside a tree, by number of groups; a join beside itself
// without lists of hot keys, beside the same rows materialised first, and beside one thread by hand.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "command/build_json.h"
#include "command/machine.h"
#include "command/setting_flags.h"
#include "command/subcommand.h"
#include "command/text.h"
#include "lab/bench/cpu_pin.h"
#include "lab/bench/joins.h"
#include "lab/bench/operators.h"
#include "lab/command/bench_parts.h"
#include "lab/command/bench_report.h"

namespace faro::command::lab {
namespace {

struct Flags {
  SettingFlags settings;
  bench::AggregationJob job;
  std::vector<uint64_t> groups = {16,      256,     4'096,   16'000,    40'000,    100'000,
                                  200'000, 300'000, 600'000, 1'000'000, 2'500'000, 4'000'000};
  std::string keys = "uniform";
  std::string transport = "shm";
  std::optional<uint32_t> pin;
  bool joins = false;
  std::vector<uint64_t> ratios = {1, 4};
  bool json = false;
};

/// What all contestants took with one number of groups.
struct Point {
  uint64_t groups = 0;
  std::vector<bench::AggregationFigures> figures;
};

/// The first contestant whose result is wrong; where there is none, the first.
template <typename Figures>
const bench::RunFigures& worst(const std::vector<Figures>& all) {
  const auto found =
      std::ranges::find_if(all, [](const Figures& each) { return !each.median.verified(); });
  return (found == all.end() ? all.front() : *found).median;
}
template <typename AnyPoint>
bool verified(const std::vector<AnyPoint>& points) {
  return std::ranges::all_of(points,
                             [](const AnyPoint& point) { return worst(point.figures).verified(); });
}

std::string table_text(const std::vector<Point>& points) {
  Table table("r" + std::string(points.front().figures.size(), 'r') + "rl");
  std::vector<std::string> heads{"groups"};
  for (const bench::AggregationFigures& each : points.front().figures)
    heads.push_back(each.contestant.name());
  heads.insert(heads.end(), {"of the best", ""});
  table.add(heads);
  for (const Point& point : points) {
    std::vector<std::string> cells{grouped(point.groups)};
    for (const bench::AggregationFigures& each : point.figures)
      cells.push_back(fmt::format("{:.1f}", each.median.cpu_ns_per_hop()));
    cells.push_back(fmt::format("{:.2f}", times_best(point.figures)));
    cells.push_back(verdict_text(worst(point.figures)));
    table.add(cells);
  }
  return table.text();
}

Json points_json(const std::vector<Point>& points) {
  Json json = Json::array();
  for (const Point& point : points) {
    Json of_point{{"groups", point.groups}, {"times_best", times_best(point.figures)}};
    of_point["contestants"] = Json::array();
    for (const bench::AggregationFigures& each : point.figures) {
      Json one{{"name", each.contestant.name()}, {"cpu_ns_per_row", each.median.cpu_ns_per_hop()}};
      put_totals(one, each.median);
      one["runs"] = runs_json(each.rounds);
      of_point["contestants"].push_back(std::move(one));
    }
    json.push_back(std::move(of_point));
  }
  return json;
}

/// What all contestants took with that many probe rows for each build row.
struct JoinPoint {
  uint64_t ratio = 0;
  std::vector<bench::JoinFigures> figures;
};

/// Rows that were joined at the worker to which most came, over the mean of all.
double most_times_mean(const bench::RunFigures& run, uint32_t workers) {
  return run.totals.count > 0 ? run.most_rows * workers / static_cast<double>(run.totals.count) : 0;
}

std::string table_text(const std::vector<JoinPoint>& points, uint32_t workers) {
  Table table("r" + std::string(points.front().figures.size(), 'r') + "l");
  std::vector<std::string> heads{"build : probe"};
  for (const bench::JoinFigures& each : points.front().figures)
    heads.emplace_back(name_of(each.contestant));
  heads.emplace_back("");
  table.add(heads);
  for (const JoinPoint& point : points) {
    std::vector<std::string> cells{fmt::format("1 : {}", point.ratio)};
    for (const bench::JoinFigures& each : point.figures)
      cells.push_back(fmt::format("{:.1f} ({:.2f})", each.median.cpu_ns_per_hop(),
                                  most_times_mean(each.median, workers)));
    cells.push_back(verdict_text(worst(point.figures)));
    table.add(cells);
  }
  return table.text();
}

Json points_json(const std::vector<JoinPoint>& points, uint32_t workers) {
  Json json = Json::array();
  for (const JoinPoint& point : points) {
    Json of_point{{"probe_rows_of_a_build_row", point.ratio}};
    of_point["contestants"] = Json::array();
    for (const bench::JoinFigures& each : point.figures) {
      Json one{{"name", name_of(each.contestant)},
               {"cpu_ns_per_row", each.median.cpu_ns_per_hop()},
               {"most_rows_times_mean", most_times_mean(each.median, workers)}};
      put_totals(one, each.median);
      one["runs"] = runs_json(each.rounds);
      of_point["contestants"].push_back(std::move(one));
    }
    json.push_back(std::move(of_point));
  }
  return json;
}

Result<std::vector<JoinPoint>> run_joins(const Flags& flags, const Config& config) {
  std::vector<JoinPoint> points;
  for (const uint64_t ratio : flags.ratios) {
    const bench::JoinJob job{flags.job.process_count, flags.job.workers_per_process,
                             flags.job.rows,          flags.job.rows * ratio,
                             flags.job.rounds,        flags.job.shape,
                             flags.job.exponent};
    Result<std::vector<bench::JoinFigures>> figures = run_join(job, {.config = config});
    if (!figures) return figures.status();
    points.push_back({ratio, std::move(*figures)});
  }
  return points;
}

Result<std::vector<Point>> run_points(const Flags& flags, const Config& config) {
  std::vector<Point> points;
  for (const uint64_t groups : flags.groups) {
    bench::AggregationJob job = flags.job;
    job.groups = groups;
    Result<std::vector<bench::AggregationFigures>> figures =
        run_aggregation(job, bench::aggregation_contestants(), {.config = config});
    if (!figures) return figures.status();
    points.push_back({groups, std::move(*figures)});
  }
  return points;
}

Json head_json(const Flags& flags) {
  Json json = origin_json(read_machine());
  json["processes"] = flags.job.process_count;
  json["workers"] = flags.job.workers_per_process;
  json["rows"] = flags.job.rows;
  json["transport"] = flags.transport;
  return json;
}

int print_joins(const Flags& flags, const std::vector<JoinPoint>& points) {
  if (flags.json) {
    Json json = head_json(flags);
    json["keys"] = flags.keys;
    json["exponent"] = flags.job.exponent;
    json["results"] = points_json(points, flags.job.worker_count());
    fmt::print("{}\n", json_text(json, true));
  } else {
    fmt::print(
        "CPU ns per row of 4 + 4 bytes of either side; in brackets probe rows joined at the worker "
        "to which most came, over the mean: {} × {} over {}, {} build rows, keys of probe rows {}; "
        "medians of {}, by turns.\n\n{}",
        counted(flags.job.process_count, "process"),
        counted(flags.job.workers_per_process, "worker"), flags.transport, grouped(flags.job.rows),
        flags.keys, counted(flags.job.rounds, "run"), table_text(points, flags.job.worker_count()));
  }
  return verified(points) ? kExitOk : kExitFailed;
}

int run(const Flags& given) {
  Flags flags = given;
  const Result<bench::KeyShape> shape = bench::parse_key_shape(flags.keys);
  if (!shape) return bench_error(flag_error("--keys", shape.status().message()));
  flags.job.shape = *shape;
  if (const Status status = check_transports({flags.transport}); !status.ok())
    return bench_error(status);
  Result<Config> config = flags.settings.load();
  if (!config) return bench_error(config.status());
  if (const Status status = config->set("transport", flags.transport); !status.ok())
    return bench_error(status);
  std::optional<bench::CpuPin> pin;
  if (flags.pin) {
    Result<bench::CpuPin> pinned = bench::CpuPin::pin(*flags.pin);
    if (!pinned) return bench_error(flag_error("--pin", pinned.status().message()));
    pin.emplace(std::move(pinned).value());
  }
  if (flags.joins) {
    const Result<std::vector<JoinPoint>> points = run_joins(flags, *config);
    return points ? print_joins(flags, *points) : bench_error(points.status());
  }
  const Result<std::vector<Point>> points = run_points(flags, *config);
  if (!points) return bench_error(points.status());
  const bench::AggregationJob& job = flags.job;
  if (flags.json) {
    Json json = head_json(flags);
    json["keys"] = flags.keys;
    json["exponent"] = job.exponent;
    json["results"] = points_json(*points);
    fmt::print("{}\n", json_text(json, true));
  } else {
    fmt::print(
        "CPU ns per row of 4 + 4 bytes: {} × {} over {}, {} rows, keys {}; medians of {}, by "
        "turns.\n\n{}",
        counted(job.process_count, "process"), counted(job.workers_per_process, "worker"),
        flags.transport, grouped(job.rows), flags.keys, counted(job.rounds, "run"),
        table_text(*points));
  }
  return verified(*points) ? kExitOk : kExitFailed;
}

}  // namespace

void add_operators_command(CLI::App& bench, int& exit_code) {
  auto [command, flags] = add_subcommand(
      bench, exit_code, "operators",
      "An aggregation beside every fixed table and beside a tree, by number of groups; or a join",
      run);
  bench::AggregationJob& job = flags.job;
  command.option_defaults()->always_capture_default();
  add_number(command, "--processes", job.process_count, "Each a node", 1, 4096);
  add_number(command, "--workers", job.workers_per_process, "Per process", 1, 4096);
  add_number(command, "--rows", job.rows, "Of all workers", 1, uint64_t{1} << 36);
  command.add_option("--groups", flags.groups, "Of which keys are drawn; one or several")
      ->delimiter(',')
      ->type_name("N");
  command.add_option("--keys", flags.keys, bench::kKeyShapes)->type_name("NAME");
  command.add_option("--exponent", job.exponent, "Of zipf")->type_name("X");
  command.add_option("--ratios", flags.ratios, "With --joins: probe rows for each build row")
      ->delimiter(',')
      ->type_name("N");
  add_repetitions_flag(command, job.rounds);
  command.add_option("--transport", flags.transport, "auto, shm, tcp or verbs")->type_name("NAME");
  command.option_defaults()->always_capture_default(false);
  command.add_option("--pin", flags.pin, "Keep all processes on this processor")->type_name("N");
  command.add_flag("--joins", flags.joins,
                   "A join instead, of --rows build rows, beside the same rows materialised first\n"
                   "and beside one thread by hand without a shuffle; where --keys, of the probe\n"
                   "rows, are zipf or frequent also beside the join without hot keys");
  flags.settings.add_to(command);
  command.add_flag("--json", flags.json, "Print JSON");
}

}  // namespace faro::command::lab
