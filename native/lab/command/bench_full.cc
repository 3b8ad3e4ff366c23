// Workloads of `faro-lab bench --full`, one line each:
//   pinned         4 × 1, 5 M integers, all on one processor: shm, tcp, sockets, the loop written by hand for this job
//                  (lab/bench/plain_loop.h); shm with the cheap hash
//   widths         4 × 1 on one processor, rows of 16 to 128 bytes: shm and that loop, and what the copies alone cost
//                  (lab/bench/copies.h)
//   tcp            8 × 1, 8 × 4, and 4 × 1 with rows of 100 bytes, on one processor: tcp, sockets
//   java           4 × 1, 5 M integers in JVMs on one processor, beside shm in C++: rows sent many at a time,
//                  one by one, as objects by a codec; tcp; Java NIO sockets. Only with --java
//   unpinned       4 × 2 and 8 × 1, 5 M integers: shm, tcp, sockets
//   variable-rows  rows of 100 bytes with a length each, 2 × 1 on one processor: written and read
//   run-time-width rows of 8 to 128 bytes, one at a time, a worker to itself on one processor: CPU of a width given at run
//                  time against that of a compiled type, at the sender (send, write, broadcast) and at the receiver
//   idle           8 × 1, every worker waits 10 s for nothing; then a small job to see that all is well
//   connect        8 × 2, from the first node that begins to the last that is connected, without and with a secret
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/return_if_error.h"
#include "command/build_json.h"
#include "command/exit_code.h"
#include "command/machine.h"
#include "command/temporary_secret.h"
#include "command/text.h"
#include "command/version.h"
#include "lab/bench/cpu_pin.h"
#include "lab/bench/run_time_width.h"
#include "lab/bench/two_stage.h"
#include "lab/bench/variable_rows.h"
#include "lab/command/bench_parts.h"
#include "lab/command/bench_report.h"

namespace faro::command::lab {
namespace {

using bench::Carrier;
using bench::Contestant;
using bench::ContestResult;
using bench::RunFigures;
using bench::TwoStageJob;

constexpr uint32_t kLaps = 7;
constexpr uint32_t kJavaWarmupRounds = 5;  // until the JIT compilers are done
constexpr uint64_t kIdleNs = 10'000'000'000;
constexpr uint64_t kSmallRows = 20'000;
constexpr uint64_t kWideBytes = 160'000'000;  // of all rows, where the width is varied
constexpr uint32_t kWideRowBytes = 100;       // from here on moving bytes is all that counts

/// A figure that has a goal.
struct Figure {
  std::string id;
  std::string what;
  std::string unit;  ///< behind both numbers: " ×", " ns"
  double goal = 0;
  bool at_least = true;  ///< else: at most
  double measured = 0;
  int decimals = 2;

  bool reached() const { return at_least ? measured >= goal : measured <= goal; }
};

/// All that is measured, one part after the other.
class FullBench {
 public:
  explicit FullBench(const BenchInputs& inputs) : inputs_(inputs), config_(inputs.config) {}

  /// Runs the parts that are named, all of them if none is. Errors: invalid_argument for a name that is none.
  Status run(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (std::none_of(kParts.begin(), kParts.end(),
                       [&](const Part& part) { return part.name == name; })) {
        return Status(Code::invalid_argument,
                      fmt::format("--part: '{}' is not one of {}", name, part_names()));
      }
    }
    for (const Part& part : kParts) {
      if (!names.empty() && std::find(names.begin(), names.end(), part.name) == names.end())
        continue;
      std::optional<Result<bench::CpuPin>> pin;
      if (part.is_pinned) pin.emplace(bench::CpuPin::pin(cpu_));
      if (pin && !*pin) return pin->status();
      is_pinned_ = part.is_pinned;
      FARO_RETURN_IF_ERROR((this->*part.run)());
    }
    line_.clear();
    return Status::Ok();
  }

  static std::string part_names() {
    std::vector<std::string_view> names;
    for (const Part& part : kParts) names.push_back(part.name);
    return fmt::format("{}", fmt::join(names, ", "));
  }

  const std::vector<ContestReport>& contests() const { return contests_; }
  const std::vector<Figure>& figures() const { return figures_; }
  bool verified() const { return others_verified_ && all_verified(contests_); }

 private:
  struct Part {
    std::string_view name;
    bool is_pinned;  // to one processor
    Status (FullBench::*run)();
  };
  static const std::array<Part, 9> kParts;

  std::optional<uint32_t> cpu() const { return is_pinned_ ? std::optional(cpu_) : std::nullopt; }

  Status run_contest_of(const std::vector<Contestant>& contestants, const std::string& title,
                        uint32_t warmup_rounds = 1) {
    bench::ContestOptions options;
    options.laps = kLaps;
    options.warmup_rounds = warmup_rounds;
    options.java_class_path = inputs_.java_class_path;
    options.config = config_;
    options.progress = contest_progress(line_, contestants, kLaps);
    line_.begin(title);
    FARO_ASSIGN_OR_RETURN(std::vector<ContestResult> results, run_contest(contestants, options));
    contests_.push_back({title, std::move(results), cpu(), kLaps});
    return Status::Ok();
  }

  Status run_pinned() {
    const TwoStageJob job{4, 1};
    TwoStageJob cheap = job;
    cheap.hash = bench::HashKind::multiplicative;
    const std::string title = fmt::format("{} on processor {}", shape_text(job), cpu_);
    FARO_RETURN_IF_ERROR(run_contest_of({{Carrier::faro_shm, job},
                                         {Carrier::faro_tcp, job},
                                         {Carrier::sockets, job},
                                         {Carrier::plain_loop, job}},
                                        title));
    const std::vector<ContestResult>& results = contests_.back().results;
    const RunFigures shm = results[0].median;
    const RunFigures tcp = results[1].median;
    const RunFigures sockets = results[2].median;
    const RunFigures plain = results[3].median;
    FARO_RETURN_IF_ERROR(run_contest_of({{Carrier::faro_shm, cheap}, {Carrier::sockets, cheap}},
                                        title + ", cheap hash"));
    const RunFigures shm_cheap = contests_.back().results[0].median;

    const std::string where = "4 × 1 on one processor: ";
    add({"shm_wall", where + "shm against sockets, wall", " ×", 6, true,
         times_faster(shm, sockets)});
    add({"shm_cpu", where + "shm against sockets, CPU", " ×", 6, true,
         times_less_cpu(shm, sockets)});
    add({"shm_hop", where + "shm, CPU per hop, finalizer hash", " ns", 2.2, false,
         shm.cpu_ns_per_hop()});
    add({"shm_hop_cheap", where + "shm, CPU per hop, cheap hash", " ns", 1.6, false,
         shm_cheap.cpu_ns_per_hop()});
    add({"shm_plain", where + "shm, CPU per hop against the plain loop", " ×", 1.1, false,
         times_less_cpu(plain, shm)});
    add({"tcp_wall", where + "tcp against sockets, wall", " ×", 3, true,
         times_faster(tcp, sockets)});
    add({"tcp_cpu", where + "tcp against sockets, CPU", " ×", 3, true,
         times_less_cpu(tcp, sockets)});
    return Status::Ok();
  }

  /// The rows of all widths are as many bytes, so that no part takes long.
  static TwoStageJob wide_job(uint32_t processes, uint32_t workers, uint32_t row_bytes) {
    return {processes, workers, kWideBytes / row_bytes / processes, row_bytes};
  }

  Status run_widths() {
    for (const uint32_t row_bytes : bench::kRowWidths) {
      const TwoStageJob job = wide_job(4, 1, row_bytes);
      FARO_RETURN_IF_ERROR(run_contest_of(
          {{Carrier::faro_shm, job}, {Carrier::plain_loop, job}, {Carrier::copies, job}},
          fmt::format("{} on processor {}, rows of {} bytes", shape_text(job), cpu_, row_bytes)));
      if (row_bytes < kWideRowBytes) continue;
      const std::vector<ContestResult>& results = contests_.back().results;
      add({fmt::format("shm_copies_{}", row_bytes),
           fmt::format("4 × 1 on one processor: shm, CPU per hop against the copies alone, rows of "
                       "{} bytes",
                       row_bytes),
           " ×", 1.1, false, times_less_cpu(results[2].median, results[0].median)});
    }
    return Status::Ok();
  }

  Status run_tcp() {
    for (const TwoStageJob& job : {wide_job(8, 1, 8), wide_job(8, 4, 8), wide_job(4, 1, 100)}) {
      FARO_RETURN_IF_ERROR(run_contest_of({{Carrier::faro_tcp, job}, {Carrier::sockets, job}},
                                          fmt::format("{} on processor {}, rows of {} bytes",
                                                      shape_text(job), cpu_, job.row_bytes)));
      const std::vector<ContestResult>& results = contests_.back().results;
      add({fmt::format("tcp_cpu_{}x{}_{}", job.process_count, job.workers_per_process,
                       job.row_bytes),
           fmt::format("{} × {} on one processor, rows of {} bytes: tcp against sockets, CPU",
                       job.process_count, job.workers_per_process, job.row_bytes),
           " ×", 1, true, times_less_cpu(results[0].median, results[1].median)});
    }
    return Status::Ok();
  }

  Status run_java() {
    if (inputs_.java_class_path.empty()) return Status::Ok();
    const TwoStageJob job{4, 1};
    FARO_RETURN_IF_ERROR(run_contest_of(
        {{Carrier::faro_shm, job},
         {Carrier::java_shm, job},
         {Carrier::java_shm_one, job},
         {Carrier::java_shm_codec, job},
         {Carrier::java_tcp, job},
         {Carrier::java_nio, job}},
        fmt::format("{} on processor {}, Java", shape_text(job), cpu_), kJavaWarmupRounds));
    const std::vector<ContestResult>& results = contests_.back().results;
    const RunFigures& cpp = results[0].median;
    const ContestResult& shm = results[1];
    const RunFigures& one = results[2].median;
    const RunFigures& codec = results[3].median;
    const RunFigures& tcp = results[4].median;
    const ContestResult& nio = results[5];

    const std::string where = "4 × 1 on one processor, Java: ";
    add({"java_shm_wall", where + "shm against NIO sockets, wall", " ×", 6, true,
         times_faster(shm.median, nio.median)});
    add({"java_shm_cpu", where + "shm against NIO sockets, CPU", " ×", 6, true,
         times_less_cpu(shm.median, nio.median)});
    add({"java_hop_many", where + "shm, CPU per hop against C++, rows sent many at a time", " ×",
         1.25, false, times_less_cpu(cpp, shm.median)});
    add({"java_hop_one", where + "shm, CPU per hop against C++, rows sent one by one", " ×", 1.25,
         false, times_less_cpu(cpp, one)});
    add({"java_hop_codec", where + "shm, CPU per hop against C++, objects by a codec", " ×", 2,
         false, times_less_cpu(cpp, codec)});
    add({"java_tcp_wall", where + "tcp against NIO sockets, wall", " ×", 3, true,
         times_faster(tcp, nio.median)});
    add({"java_tcp_cpu", where + "tcp against NIO sockets, CPU", " ×", 3, true,
         times_less_cpu(tcp, nio.median)});
    add({"java_cold", where + "first round in fresh JVMs, shm against NIO sockets", " ×", 0.5,
         false, times_faster(*nio.cold, *shm.cold)});
    return Status::Ok();
  }

  Status run_unpinned() {
    FARO_RETURN_IF_ERROR(run_unpinned(4, 2));
    return run_unpinned(8, 1);
  }

  Status run_unpinned(uint32_t processes, uint32_t workers) {
    const TwoStageJob job{processes, workers};
    FARO_RETURN_IF_ERROR(run_contest_of(
        {{Carrier::faro_shm, job}, {Carrier::faro_tcp, job}, {Carrier::sockets, job}},
        shape_text(job)));
    const std::vector<ContestResult>& results = contests_.back().results;
    add({fmt::format("shm_wall_{}x{}", processes, workers),
         fmt::format("{} × {}: shm against sockets, wall", processes, workers), " ×", 4, true,
         times_faster(results[0].median, results[2].median)});
    return Status::Ok();
  }

  Status run_variable() {
    const bench::VariableRowsJob job;
    bench::FaroOptions faro;
    faro.config = config_;
    FARO_RETURN_IF_ERROR(faro.config.set("transport", "shm"));
    bench::RunOptions options;
    options.timed_rounds = kLaps;
    options.progress = [this](const bench::Progress& progress) {
      line_.update(static_cast<double>(progress.round) / progress.round_count, "");
    };
    line_.begin("rows of 100 bytes on one processor");
    FARO_ASSIGN_OR_RETURN(const bench::FaroRun run, run_variable_rows(job, faro, options));
    const RunFigures median = median_of(run.rounds);
    note_verified(median.verified());
    add({"variable_rows",
         fmt::format("rows of {} bytes with a length each, written and read on one processor",
                     job.kRowBytes),
         " GB/s", 8, true, static_cast<double>(job.byte_count()) / median.cpu_seconds * 1e-9});
    return Status::Ok();
  }

  Status run_run_time_width() {
    using Way = bench::RowWay;
    for (const uint32_t row_bytes : bench::kRowWidths) {
      const bench::RunTimeWidthJob job{row_bytes, kWideBytes / 10 / row_bytes, 2 * kLaps};
      line_.begin(fmt::format("rows of {} bytes, width given at run time", row_bytes));
      FARO_ASSIGN_OR_RETURN(const bench::RunTimeWidthFigures all,
                            bench::run_run_time_width(job, config_));
      note_verified(all.verified);
      const auto add_ratio = [&](std::string_view id, std::string_view what, double ns,
                                 double typed_ns) {
        add({fmt::format("run_time_width_{}_{}", id, row_bytes),
             fmt::format(
                 "rows of {} bytes, width given at run time: {}, CPU against a compiled type",
                 row_bytes, what),
             " ×", 1.2, false, ns / typed_ns});
      };
      const double typed_ns = all.sent(Way::typed);
      add_ratio("send", "send", all.sent(Way::bytes), typed_ns);
      add_ratio("write", "write", all.sent(Way::in_place), typed_ns);
      add_ratio("broadcast", "broadcast", all.sent(Way::bytes_broadcast),
                all.sent(Way::typed_broadcast));
      add_ratio("receive", "each_row", all.received(Way::bytes), all.received(Way::typed));
    }
    return Status::Ok();
  }

  Status run_idle() {
    const TwoStageJob job{8, 1, kSmallRows};
    const bench::FaroOptions faro{.config = config_, .idle_ns = kIdleNs};
    bench::RunOptions options;
    options.warmup_rounds = 0;
    options.progress = [this](const bench::Progress& progress) {
      line_.update(progress.seconds / (static_cast<double>(kIdleNs) * 1e-9), "");
    };
    line_.begin("8 idle processes, 10 s");
    FARO_ASSIGN_OR_RETURN(const bench::FaroRun run, run_faro(job, faro, options));
    note_verified(median_of(run.rounds).verified());
    uint64_t most_ns = 0;
    for (const bench::NodeReport& node : run.nodes) most_ns = std::max(most_ns, node.idle_cpu_ns);
    add({"idle", "idle session of 8 processes: CPU of the busiest in 10 s", " ms", 1, false,
         static_cast<double>(most_ns) * 1e-6});
    return Status::Ok();
  }

  Status run_connect() {
    if (has_secret(config_)) {
      return Status(Code::invalid_argument,
                    "--part connect compares no secret with one of its own: unset FARO_SECRET and "
                    "security.secret_file");
    }
    FARO_ASSIGN_OR_RETURN(const TemporarySecret secret, TemporarySecret::make());
    Config guarded = config_;
    FARO_RETURN_IF_ERROR(guarded.set("security.secret_file", std::string_view(secret.path())));
    constexpr uint32_t kNodes = 8;
    const std::vector<Carrier> carriers = {Carrier::faro_shm, Carrier::faro_tcp};
    FARO_ASSIGN_OR_RETURN(const auto open,
                          connect_ms(config_, carriers, kNodes, "connecting 8 × 2"));
    FARO_ASSIGN_OR_RETURN(const auto closed,
                          connect_ms(guarded, carriers, kNodes, "connecting 8 × 2 with a secret"));
    FARO_ASSIGN_OR_RETURN(const auto open_link,
                          connect_ms(config_, carriers, 2, "connecting 2 × 2"));
    FARO_ASSIGN_OR_RETURN(const auto closed_link,
                          connect_ms(guarded, carriers, 2, "connecting 2 × 2 with a secret"));
    for (size_t i = 0; i < carriers.size(); ++i) {
      const std::string name(carrier_name(carriers[i]));
      add({"connect_" + name, "connect 8 processes × 2 workers, " + name, " ms", 100, false,
           open[i], 1});
      add({"connect_secret_" + name, "the same with a secret, " + name, " ms", 100, false,
           closed[i], 1});
      add({"authentication_" + name, "authentication of one link, of 2 × 2, " + name, " ms", 5,
           false, std::max(0.0, closed_link[i] - open_link[i]), 3});
    }
    return Status::Ok();
  }

  /// The median time until a cluster of two workers per node is connected, for each carrier.
  Result<std::vector<double>> connect_ms(const Config& config, const std::vector<Carrier>& carriers,
                                         uint32_t nodes, const std::string& title) {
    const TwoStageJob job{nodes, 2, kSmallRows};
    bench::ContestOptions options;
    options.laps = kLaps;
    options.warmup_rounds = 0;
    options.config = config;
    std::vector<Contestant> contestants;
    for (const Carrier carrier : carriers) contestants.push_back({carrier, job});
    options.progress = contest_progress(line_, contestants, kLaps);
    line_.begin(title);
    FARO_ASSIGN_OR_RETURN(std::vector<ContestResult> results, run_contest(contestants, options));
    std::vector<double> medians;
    for (ContestResult& result : results) {
      note_verified(result.median.verified());
      std::vector<double>& seconds = result.connect_seconds;
      std::sort(seconds.begin(), seconds.end());
      medians.push_back(seconds[seconds.size() / 2] * 1e3);
    }
    return medians;
  }

  void add(Figure figure) { figures_.push_back(std::move(figure)); }
  void note_verified(bool verified) { others_verified_ = others_verified_ && verified; }

  const BenchInputs& inputs_;
  const Config config_;
  ProgressLine line_;
  std::vector<ContestReport> contests_;
  std::vector<Figure> figures_;
  bool others_verified_ = true;
  const uint32_t cpu_ = bench::CpuPin::first_allowed();
  bool is_pinned_ = false;
};

const std::array<FullBench::Part, 9> FullBench::kParts = {{
    {"pinned", true, &FullBench::run_pinned},
    {"widths", true, &FullBench::run_widths},
    {"tcp", true, &FullBench::run_tcp},
    {"java", true, &FullBench::run_java},
    {"unpinned", false, &FullBench::run_unpinned},
    {"variable-rows", true, &FullBench::run_variable},
    {"run-time-width", true, &FullBench::run_run_time_width},
    {"idle", false, &FullBench::run_idle},
    {"connect", false, &FullBench::run_connect},
}};

std::string figure_table(const std::vector<Figure>& figures) {
  Table table("lrrl");
  table.add({"figure", "goal", "measured", "reached"});
  for (const Figure& figure : figures) {
    table.add({figure.what,
               fmt::format("{} {}{}", figure.at_least ? "≥" : "≤", figure.goal, figure.unit),
               fmt::format("{:.{}f}{}", figure.measured, figure.decimals, figure.unit),
               figure.reached() ? "yes" : "no"});
  }
  return table.text();
}

void print_json(const FullBench& bench, const Machine& machine) {
  Json all = origin_json(machine);
  all["figures"] = Json::array();
  for (const Figure& figure : bench.figures()) {
    all["figures"].push_back({{"id", figure.id},
                              {"what", figure.what},
                              {"goal", figure.goal},
                              {"goal_is", figure.at_least ? "at least" : "at most"},
                              {"measured", figure.measured},
                              {"unit", figure.unit},
                              {"reached", figure.reached()}});
  }
  all["verified"] = bench.verified();
  all["contests"] = Json::array();
  for (const ContestReport& report : bench.contests()) {
    all["contests"].push_back(contest_json(report));
  }
  fmt::print("{}\n", json_text(all, true));
}

}  // namespace

std::string full_bench_parts() { return FullBench::part_names(); }

int run_full_bench(const BenchInputs& inputs, const std::vector<std::string>& parts) {
  FullBench bench(inputs);
  if (const Status status = bench.run(parts); !status.ok()) return bench_error(status);
  const Machine machine = read_machine();
  if (inputs.json) {
    print_json(bench, machine);
  } else {
    if (!bench.contests().empty()) {
      fmt::print(
          "Two-stage shuffle of 5,000,000 integers per process, or of 160 MB where a width is "
          "named; "
          "medians\nof {} interleaved runs.\n\n"
          "{}\n",
          kLaps, contest_table(bench.contests()));
    }
    fmt::print("{}\n{}\n{}\n{}\n", figure_table(bench.figures()),
               bench.verified() ? "All results verified: count and checksum of all rows."
                                : "NOT all results are as expected.",
               machine_text(machine), version_text());
  }
  return bench.verified() ? kExitOk : kExitFailed;
}

}  // namespace faro::command::lab
