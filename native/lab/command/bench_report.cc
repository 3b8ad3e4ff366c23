#include "lab/command/bench_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace faro::command::lab {

using bench::RunFigures;

std::string shape_text(const bench::TwoStageJob& job) {
  return fmt::format("{} × {}", counted(job.process_count, "process"),
                     counted(job.workers_per_process, "worker"));
}

const CarrierResult* baseline_of(const std::vector<CarrierResult>& results) {
  const auto found = std::find_if(results.begin(), results.end(), [](const CarrierResult& one) {
    return one.carrier == bench::Carrier::sockets;
  });
  return found == results.end() ? nullptr : &*found;
}

double times_faster(const RunFigures& run, const RunFigures& baseline) {
  const double ns = run.wall_ns_per_hop();
  return ns > 0 ? baseline.wall_ns_per_hop() / ns : 0;
}

bool all_verified(const TwoStageReport& report) {
  return std::ranges::all_of(report.results, [](const CarrierResult& result) {
    return result.median.verified() && (!result.cold || result.cold->verified());
  });
}

std::string verdict_text(const RunFigures& run) {
  if (run.verified()) return "verified";
  const workload::Totals& expected = run.expected.totals;
  if (run.totals.count != expected.count) {
    return fmt::format("WRONG: {} rows arrived instead of {}", grouped(run.totals.count),
                       grouped(expected.count));
  }
  return fmt::format("WRONG: checksum {:016x} instead of {:016x}", run.totals.checksum,
                     expected.checksum);
}

void put_totals(Json& result, const RunFigures& run) {
  result["verified"] = run.verified();
  result["count"] = run.totals.count;
  result["expected_count"] = run.expected.totals.count;
  result["checksum"] = fmt::format("{:016x}", run.totals.checksum);
  result["expected_checksum"] = fmt::format("{:016x}", run.expected.totals.checksum);
}

Json runs_json(const std::vector<RunFigures>& runs) {
  Json json = Json::array();
  for (const RunFigures& each : runs)
    json.push_back({{"seconds", each.seconds}, {"cpu_seconds", each.cpu_seconds}});
  return json;
}

std::string table_of(const TwoStageReport& report) {
  Table table("lrrrrrrl");
  table.add({"", "seconds", "rows/s", "CPU ns/hop", "vs sockets", "cold s", "cold CPU", "result"});
  table.add({report.title});
  const CarrierResult* baseline = baseline_of(report.results);
  for (const CarrierResult& one : report.results) {
    const RunFigures& run = one.median;
    table.add(
        {fmt::format("  {}", carrier_name(one.carrier)), fmt::format("{:.4f}", run.seconds),
         scaled(run.rows_per_second()), fmt::format("{:.2f}", run.cpu_ns_per_hop()),
         baseline == nullptr ? "-" : fmt::format("{:.2f} ×", times_faster(run, baseline->median)),
         one.cold ? fmt::format("{:.4f}", one.cold->seconds) : "-",
         one.cold ? fmt::format("{:.2f}", one.cold->cpu_ns_per_hop()) : "-", verdict_text(run)});
  }
  return table.text();
}

static Json metrics_json(const SessionMetrics& metrics) {
  const auto put_in = [](Json& json) {
    return [&json](const char* name, const auto& value) { json[name] = value; };
  };
  Json json;
  bench::each_session_metric(metrics, put_in(json));
  for (const char* const list : {"workers", "links", "lanes"}) json[list] = Json::array();
  for (const WorkerMetrics& worker : metrics.workers)
    bench::each_worker_metric(worker, put_in(json["workers"].emplace_back()));
  for (const LinkMetrics& link : metrics.links) {
    Json& one = json["links"].emplace_back();
    bench::each_link_metric(link, put_in(one));
    one["transport"] = link.transport;
  }
  for (const LaneMetrics& lane : metrics.lanes)
    bench::each_lane_metric(lane, put_in(json["lanes"].emplace_back()));
  return json;
}

Json nodes_json(const std::vector<bench::NodeReport>& nodes) {
  Json json = Json::array();
  for (const bench::NodeReport& node : nodes) json.push_back(metrics_json(node.metrics));
  return json;
}

Json report_json(const TwoStageReport& report) {
  Json json;
  json["title"] = report.title;
  json["laps"] = report.laps;
  json["pinned_cpu"] = report.pinned_cpu ? Json(*report.pinned_cpu) : Json(nullptr);
  json["results"] = Json::array();
  const CarrierResult* baseline = baseline_of(report.results);
  for (const CarrierResult& one : report.results) {
    const bench::TwoStageJob& job = one.job;
    const RunFigures& run = one.median;
    Json result;
    result["transport"] = carrier_name(one.carrier);
    result["processes"] = job.process_count;
    result["workers"] = job.workers_per_process;
    result["rows_per_process"] = job.rows_per_process;
    result["row_bytes"] = job.row_bytes;
    result["hash"] = hash_name(job.hash);
    result["seconds"] = run.seconds;
    result["rows_per_second"] = run.rows_per_second();
    result["wall_ns_per_hop"] = run.wall_ns_per_hop();
    result["cpu_ns_per_hop"] = run.cpu_ns_per_hop();
    result["times_faster_than_sockets"] =
        baseline == nullptr ? Json(nullptr) : Json(times_faster(run, baseline->median));
    put_totals(result, run);
    result["runs"] = runs_json(one.runs);
    if (one.cold) {
      result["cold"] = {{"seconds", one.cold->seconds},
                        {"cpu_ns_per_hop", one.cold->cpu_ns_per_hop()}};
    }
    if (!one.connect_seconds.empty()) {
      result["connect_seconds"] = one.connect_seconds;
      result["nodes"] = nodes_json(one.nodes);
      uint64_t idle_cpu_ns = 0;
      for (const bench::NodeReport& node : one.nodes)
        idle_cpu_ns = std::max(idle_cpu_ns, node.idle_cpu_ns);
      result["idle_cpu_ns"] = idle_cpu_ns;  // of the busiest node; 0 without --idle
    }
    json["results"].push_back(std::move(result));
  }
  return json;
}

}  // namespace faro::command::lab
