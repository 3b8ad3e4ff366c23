// `faro-lab bench channel`: what a channel costs, beside the least that there is; --peers: what peers cost.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "command/exit_code.h"
#include "command/setting_flags.h"
#include "command/subcommand.h"
#include "command/text.h"
#include "lab/bench/channel_peers.h"
#include "lab/bench/channels.h"
#include "lab/command/bench_parts.h"

namespace faro::command::lab {
namespace {

using bench::ChannelCarrier;
using bench::ChannelFigures;
using bench::ChannelJob;

struct Flags {
  SettingFlags settings;
  ChannelJob job;
  bench::PeersJob peers{.peer_count = 0};
};

struct Row {
  std::string name;
  ChannelFigures frames;
  ChannelFigures trips;
};

Result<Row> measure(const std::string& name, const ChannelJob& job, ChannelCarrier carrier,
                    const Config& config) {
  Row row;
  row.name = name;
  FARO_ASSIGN_OR_RETURN(row.frames, run_frames(job, carrier, config));
  FARO_ASSIGN_OR_RETURN(row.trips, run_trips(job, carrier, config));
  return row;
}

// The one that is asked for, or those that every machine has.
std::vector<std::string> transports_of(const Config& config) {
  const std::string only = config.get("transport");
  return only == "auto" ? std::vector<std::string>{"shm", "tcp"} : std::vector{only};
}

Result<std::vector<Row>> measure_all(const Flags& flags, const Config& config) {
  std::vector<Row> rows;
  const auto add = [&](const std::string& name, ChannelCarrier carrier,
                       const Config& each) -> Status {
    FARO_ASSIGN_OR_RETURN(auto row, measure(name, flags.job, carrier, each));
    rows.push_back(std::move(row));
    return Status::Ok();
  };
  FARO_RETURN_IF_ERROR(add("copies; futex", ChannelCarrier::copies, config));
  FARO_RETURN_IF_ERROR(add("bare ring", ChannelCarrier::bare_ring, config));
  for (const std::string& transport : transports_of(config)) {
    Config each = config;
    FARO_RETURN_IF_ERROR(each.set("transport", transport));
    FARO_RETURN_IF_ERROR(add(transport, ChannelCarrier::channel, each));
  }
  FARO_RETURN_IF_ERROR(add("socket", ChannelCarrier::socket, config));
  return rows;
}

std::string table_of(const ChannelJob& job, const std::vector<Row>& rows) {
  const auto frames = static_cast<double>(job.frame_count);
  const auto trips = static_cast<double>(job.trip_count);
  Table table("lrrrrl");
  table.add({"", "GB/s", "CPU us/frame", "us/round trip", "CPU us/trip", ""});
  for (const Row& row : rows) {
    const bool verified = row.frames.verified && row.trips.verified;
    table.add({row.name,
               fmt::format("{:.2f}", frames * job.frame_bytes / row.frames.seconds * 1e-9),
               fmt::format("{:.2f}", row.frames.cpu_seconds / frames * 1e6),
               fmt::format("{:.2f}", row.trips.seconds / trips * 1e6),
               fmt::format("{:.2f}", row.trips.cpu_seconds / trips * 1e6),
               verified ? "verified" : "WRONG"});
  }
  return table.text();
}

// ---------------------------------------------------------------------------------------------- peers

struct PeersRow {
  std::string name;
  bench::PeersFigures peers;
  bench::SetUpFigures set_up;
};

constexpr uint32_t kSetUps = 100;

Result<std::vector<PeersRow>> measure_peers(const bench::PeersJob& job, const Config& config) {
  std::vector<PeersRow> rows;
  for (const char* transport : {"shm", "tcp"}) {
    Config each = config;
    FARO_RETURN_IF_ERROR(each.set("transport", transport));
    PeersRow row;
    row.name = transport;
    FARO_ASSIGN_OR_RETURN(row.peers, run_idle_peers(job, each));
    FARO_ASSIGN_OR_RETURN(row.set_up, bench::run_set_ups(kSetUps, each));
    rows.push_back(std::move(row));
  }
  return rows;
}

int run_peers(const Flags& flags, const Config& config) {
  if (const Status status = flags.peers.validate(); !status.ok())
    return bench_error(flag_error("--peers", status.message()));
  const auto rows = measure_peers(flags.peers, config);
  if (!rows) return bench_error(rows.status());
  Table table("lrrrrl");
  table.add({"", "MiB", "CPU %", "ms/channel", "ms/session", ""});
  bool verified = true;
  for (const PeersRow& row : *rows) {
    const bool is_right = row.peers.verified && row.set_up.verified;
    table.add(
        {row.name, fmt::format("{:.1f}", static_cast<double>(row.peers.memory_bytes) / (1 << 20)),
         fmt::format("{:.2f}", 100 * row.peers.cpu_share),
         fmt::format("{:.2f}", 1e3 * row.set_up.channel_seconds),
         fmt::format("{:.2f}", 1e3 * row.set_up.session_seconds), is_right ? "verified" : "WRONG"});
    verified = verified && is_right;
  }
  fmt::print(
      "An endpoint with {} peers, rings of {} each way, that say nothing for {} s; from dial to "
      "the first "
      "frame of a channel, and until a session of two nodes is open: medians of {}.\n\n{}",
      grouped(flags.peers.peer_count), exact_bytes_text(flags.peers.ring_bytes),
      flags.peers.idle_ms / 1000, kSetUps, table.text());
  return verified ? kExitOk : kExitFailed;
}

int run(const Flags& flags) {
  if (flags.peers.peer_count != 0) {
    const Result<Config> config = flags.settings.load();
    return config ? run_peers(flags, *config) : bench_error(config.status());
  }
  if (const Status status = flags.job.validate(); !status.ok()) return bench_error(status);
  const Result<Config> config = flags.settings.load();
  if (!config) return bench_error(config.status());
  const auto rows = measure_all(flags, *config);
  if (!rows) return bench_error(rows.status());
  fmt::print(
      "{} frames of {} one way, {} per post; {} empty frames there and back; medians of {}.\n\n{}",
      grouped(flags.job.frame_count), exact_bytes_text(flags.job.frame_bytes),
      flags.job.frames_per_post, grouped(flags.job.trip_count), counted(flags.job.rounds, "run"),
      table_of(flags.job, *rows));
  for (const Row& row : *rows) {
    if (!row.frames.verified || !row.trips.verified) return kExitFailed;
  }
  return kExitOk;
}

}  // namespace

void add_channel_command(CLI::App& bench, int& exit_code) {
  auto [command, flags] = add_subcommand(bench, exit_code, "channel",
                                         "What a channel between two endpoints costs, beside "
                                         "copies, a bare ring, a futex and a socket",
                                         run);
  command.option_defaults()->always_capture_default();
  command.add_option("--frame", flags.job.frame_bytes, "Bytes of a frame, a multiple of 8")
      ->type_name("BYTES");
  command.add_option("--ring", flags.job.ring_bytes, "Bytes of a ring, a power of two")
      ->type_name("BYTES");
  command.add_option("--count", flags.job.frame_count, "Frames of a run")->type_name("N");
  command
      .add_option("--batch", flags.job.frames_per_post,
                  "Frames per post of a channel, and per writev of the socket")
      ->type_name("N");
  command.add_option("--trips", flags.job.trip_count, "Round trips of a run")->type_name("N");
  command
      .add_option("--peers", flags.peers.peer_count,
                  "Measure that many peers that say nothing, and set-ups, instead; 0: frames")
      ->type_name("N");
  add_repetitions_flag(command, flags.job.rounds);
  command.option_defaults()->always_capture_default(false);
  flags.settings.add_to(command);
}

}  // namespace faro::command::lab
