// `faro-lab bench kernels`: what each kernel takes to hash a row and to scatter it (shuffle/kernels/kernels.h), for all
// widths and several numbers of receivers, in one thread and in memory alone.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "command/build_json.h"
#include "command/machine.h"
#include "command/subcommand.h"
#include "command/text.h"
#include "lab/bench/two_stage_job.h"
#include "lab/command/bench_parts.h"
#include "lab/command/bench_report.h"
#include "shuffle/kernels/kernels.h"

namespace faro::command::lab {
namespace {

using shuffle::KernelTime;

struct Flags {
  std::string hash = "finalizer";
  bool json = false;
};

constexpr uint32_t kReceivers[] = {2, 4, 6, 8, 16, 32, 64};

struct Measured {
  uint32_t row_bytes = 0;
  uint32_t receivers = 0;
  std::vector<KernelTime> times;
};

std::vector<Measured> measure(KeyHash hash) {
  std::vector<Measured> all;
  for (const uint32_t row_bytes : shuffle::kKernelWidths) {
    for (const uint32_t receivers : kReceivers)
      all.push_back({row_bytes, receivers, shuffle::calibrate(hash, row_bytes, receivers)});
  }
  return all;
}

std::string table_of(const std::vector<Measured>& all) {
  std::string columns = "rr";
  std::vector<std::string> titles = {"bytes", "receivers"};
  for (const KernelTime& time : all.front().times) {
    columns += 'r';
    titles.emplace_back(kernel_name(time.kernel));
  }
  columns += 'l';
  titles.emplace_back("taken");
  Table table(columns);
  table.add(titles);
  for (const Measured& one : all) {
    std::vector<std::string> cells = {fmt::format("{}", one.row_bytes),
                                      fmt::format("{}", one.receivers)};
    for (const KernelTime& time : one.times)
      cells.push_back(fmt::format("{:.2f}", time.ns_per_row));
    cells.emplace_back(kernel_name(shuffle::fastest_of(one.times)));
    table.add(cells);
  }
  return table.text();
}

Json json_of(const std::vector<Measured>& all) {
  Json json = origin_json(read_machine());
  json["results"] = Json::array();
  for (const Measured& one : all) {
    Json result = {{"row_bytes", one.row_bytes}, {"receivers", one.receivers}};
    for (const KernelTime& time : one.times)
      result["ns_per_row"][std::string(kernel_name(time.kernel))] = time.ns_per_row;
    result["taken"] = kernel_name(shuffle::fastest_of(one.times));
    json["results"].push_back(std::move(result));
  }
  return json;
}

int run(const Flags& flags) {
  const Result<bench::HashKind> hash = bench::parse_hash(flags.hash);
  if (!hash) return bench_error(hash.status());
  const std::vector<Measured> all =
      measure(*hash == bench::HashKind::finalizer ? KeyHash::finalizer : KeyHash::multiplicative);
  if (flags.json) {
    fmt::print("{}\n", json_text(json_of(all), true));
  } else {
    fmt::print("ns to hash a row ({}) and append it to the rows of its receiver.\n\n{}\n{}\n",
               flags.hash, table_of(all), machine_text(read_machine()));
  }
  return kExitOk;
}

}  // namespace

void add_kernels_command(CLI::App& bench, int& exit_code) {
  auto [command, flags] =
      add_subcommand(bench, exit_code, "kernels",
                     "The cost of each way to hash and scatter rows on this processor", run);
  command.add_option("--hash", flags.hash, "finalizer or multiplicative")
      ->capture_default_str()
      ->type_name("NAME");
  command.add_flag("--json", flags.json, "Print JSON");
}

}  // namespace faro::command::lab
