#include <fmt/format.h>
#include <sys/mman.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/return_if_error.h"
#include "base/settings.h"
#include "command/build_json.h"
#include "command/commands.h"
#include "command/machine.h"
#include "command/plan.h"
#include "command/plan_proposal.h"
#include "command/session_probe.h"
#include "command/setting_flags.h"
#include "command/subcommand.h"
#include "command/text.h"
#include "faro/shuffle.h"
#include "links/limits.h"
#include "session/topology.h"
#include "transport/plugin/plugin_loader.h"

namespace faro::command {
namespace {

constexpr uint32_t kNodeLimit = 4096;
constexpr size_t kTouchBytes = size_t{64} << 20;

struct Flags {
  SettingFlags settings;
  uint32_t nodes = 0;
  std::string workers;
  uint32_t per_host = 1;
  uint32_t groups = 0;
  std::string ring;
  std::string transport;
  std::string budget;
  bool json = false;
};

/// What a worker has open at a time in a stage, and what it would have if threads were connected with threads.
struct OpenFrames {
  uint64_t to_others = 0;
  uint64_t to_own = 0;
  uint64_t thread_buffers = 0;
  uint64_t thread_connections = 0;  ///< 0: nodes have different numbers of workers
};
OpenFrames open_frames(const base::Settings& settings, uint32_t node) {
  OpenFrames frames;
  uint64_t workers = 0;
  for (uint32_t to = 0; to < settings.node_count(); ++to) {
    const uint64_t ends = session::rings_between(settings, node, to).receiver_ends;
    (to == node ? frames.to_own : frames.to_others) += ends;
    workers += settings.workers_per_node[to];
  }
  const uint64_t threads = settings.workers_per_node[node];
  if (workers == threads * settings.node_count()) {
    frames.thread_buffers = workers - 1;
    frames.thread_connections = workers * workers - threads;
  }
  return frames;
}

/// One requirement against one limit.
struct Verdict {
  enum class Kind : uint8_t { fits, does_not_fit, note };
  std::string id;
  std::string what;
  uint64_t need = 0;
  std::optional<uint64_t> have;  ///< nullopt: no limit
  bool is_bytes = true;
  Kind kind = Kind::fits;
  std::string remark;
};

/// An estimate of the time to connect, and what it was computed from.
struct ConnectEstimate {
  double seconds = 0;
  double per_link_seconds = 0;  ///< measured here with two nodes in this process
  double bytes_per_second = 0;  ///< fresh memory touched by one thread, measured here
  std::string why_not;          ///< empty if it could be estimated
};

/// Loads verbs if links between machines go by it: if it is asked for, or if auto would take it on this
/// machine, as far as the address of its node is known. Errors: transport_unavailable.
Status choose_verbs(const Flags& flags, const base::Settings& settings,
                    std::unique_ptr<transport::Transport>& verbs) {
  const bool forced = settings.transport == "verbs";
  const bool knows_device =
      flags.nodes == 0 || !settings.verbs_address.empty() || !settings.verbs_device.empty();
  if (!forced && (settings.transport != "auto" || !knows_device)) return Status::Ok();
  auto loaded = transport::plugin::load_verbs({settings, settings.node_addresses[settings.node],
                                               [](LogLevel, std::string_view) noexcept {}});
  if (!loaded) return forced ? loaded.status() : Status::Ok();
  if (forced || (*loaded)->available().ok()) verbs = std::move(loaded).value();
  return Status::Ok();
}

/// The budget of a node; 0: none was given.
Result<uint64_t> read_budget(const Flags& flags) {
  Config size;
  FARO_RETURN_IF_ERROR(set_from_flag(size, "--budget", "memory.limit_bytes", flags.budget));
  const uint64_t bytes = size.get_number("memory.limit_bytes");
  if (!flags.budget.empty() && bytes == 0)
    return Status(Code::invalid_argument, "--budget: 0 is none");
  return bytes;
}

/// `verbs` is what the input refers to. `proposal`: with --budget, of which the input has the settings.
Result<PlanInput> read_input(const Flags& flags, std::unique_ptr<transport::Transport>& verbs,
                             std::optional<PlanProposal>& proposal) {
  FARO_ASSIGN_OR_RETURN(const uint64_t budget, read_budget(flags));
  FARO_ASSIGN_OR_RETURN(Config config, flags.settings.load());
  FARO_RETURN_IF_ERROR(set_from_flag(config, "--ring", "ring.bytes", flags.ring));
  FARO_RETURN_IF_ERROR(set_from_flag(config, "--workers", "cluster.workers", flags.workers));
  FARO_RETURN_IF_ERROR(set_from_flag(config, "--transport", "transport", flags.transport));
  if (flags.nodes > 0) {
    const std::vector<std::string> nodes(flags.nodes, "node:0");
    FARO_RETURN_IF_ERROR(
        config.set("cluster.nodes", fmt::format("{}", fmt::join(nodes, ",")), "--nodes"));
  } else if (config.get("cluster.nodes").empty()) {
    return Status(Code::invalid_argument, "--nodes is missing: how many nodes has the cluster?");
  }
  PlanInput input;
  FARO_ASSIGN_OR_RETURN(input.settings, base::Settings::resolve(config));
  FARO_RETURN_IF_ERROR(choose_verbs(flags, input.settings, verbs));
  input.verbs = verbs.get();
  input.groups = flags.groups;
  input.nodes_per_host = input.settings.transport == "shm"
                             ? input.settings.node_count()
                             : std::min(flags.per_host, input.settings.node_count());
  if (budget == 0) return input;
  FARO_ASSIGN_OR_RETURN(proposal, propose(config, input, budget));
  FARO_ASSIGN_OR_RETURN(input.settings, base::Settings::resolve(proposal->config));
  return input;
}

/// "open shuffles 2.5 GiB (shuffle.limit), frames in rings 329 MiB (…)".
std::string parts_text(const std::vector<PlanPart>& parts) {
  std::string text;
  for (const PlanPart& part : parts)
    text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", part.what, bytes_text(part.bytes),
                        part.setting);
  return text;
}

/// What the budget is compared with, and what of it cannot be kept.
std::vector<Verdict> judge_budget(const NodePlan& node, uint64_t budget) {
  const auto verdict = [budget](std::string id, std::string what, uint64_t need,
                                Verdict::Kind not_kept, const std::vector<PlanPart>& parts) {
    Verdict one{std::move(id), std::move(what), need, budget, true, Verdict::Kind::fits, ""};
    if (need <= budget) return one;
    one.kind = not_kept;
    one.remark = "cannot be kept: " + parts_text(parts);
    return one;
  };
  return {verdict("budget", "budget, at open (a node)", node.open_bytes(),
                  Verdict::Kind::does_not_fit, parts_at_open(node)),
          verdict("budget_at_most", "budget, with all of queries (a node)", node.most_bytes(),
                  Verdict::Kind::note, parts_of_queries(node))};
}

std::vector<Verdict> judge(const PlanInput& input, const ClusterPlan& plan) {
  // The worst machine: it has the largest node.
  const uint32_t first = plan.largest() / input.nodes_per_host * input.nodes_per_host;
  const NodePlan machine = plan.sum(first, input.nodes_per_host);
  const NodePlan& node = plan.nodes[plan.largest()];
  const links::MachineLimits limits = links::machine_limits();
  const ProcessLimits process = read_process_limits();
  const auto known = [](uint64_t limit) -> std::optional<uint64_t> {
    if (limit == UINT64_MAX) return std::nullopt;
    return limit;
  };
  std::vector<Verdict> verdicts;
  const auto require = [&verdicts](std::string id, std::string what, uint64_t need,
                                   std::optional<uint64_t> have, bool is_bytes,
                                   std::string remedy) {
    Verdict one{std::move(id), std::move(what), need, have, is_bytes, Verdict::Kind::fits, ""};
    if (have && need > *have) {
      one.kind = Verdict::Kind::does_not_fit;
      one.remark = std::move(remedy);
    }
    verdicts.push_back(std::move(one));
  };
  const auto note = [&verdicts](std::string id, std::string what, uint64_t need,
                                std::optional<uint64_t> have, std::string remark) {
    verdicts.push_back(
        {std::move(id), std::move(what), need, have, true, Verdict::Kind::note, std::move(remark)});
  };

  const std::string smaller = "lower ring.bytes, or use fewer rings per lane or fewer workers";
  require("memory", "available memory", machine.open_bytes(), known(limits.available_bytes), true,
          smaller);
  require("cgroup", "memory control group", machine.open_bytes(), known(limits.cgroup_bytes), true,
          smaller);
  require("memory_limit", "memory.limit_bytes (a node)", node.open_bytes(),
          input.settings.memory_limit_bytes == 0
              ? std::nullopt
              : std::optional<uint64_t>(input.settings.memory_limit_bytes),
          true, "raise the setting, or " + smaller);
  require("most_memory", "memory with all of operators, overflow", machine.most_bytes(),
          known(std::min(limits.available_bytes, limits.cgroup_bytes)), true,
          "lower operator.memory_bytes, overflow.memory_bytes or shuffle.limit");
  if (input.groups > 0) {
    require("group_blocks", "blocks of groups (a node)", node.overflow.block_bytes,
            input.settings.overflow_memory_bytes, true,
            "raise overflow.memory_bytes, or lower ring.bytes");
  }
  const FolderState folder = look_at_folder(input.settings.overflow_folder);
  require("overflow_folder", fmt::format("space in {}", input.settings.overflow_folder),
          machine.overflow.file_bytes, folder.writable ? folder.free_bytes : 0, true,
          folder.writable ? "set another overflow.folder, or lower overflow.file_bytes"
                          : fmt::format("it cannot be written: {}", folder.why_not));
  require("open_files", "open files (a node)", node.descriptors, known(limits.descriptors), false,
          "raise RLIMIT_NOFILE (ulimit -n)");
  if (node.verbs.links > 0) {
    require("memlock", "memlock (a node)", node.verbs.bytes, known(limits.pinned_bytes), true,
            "raise RLIMIT_MEMLOCK (ulimit -l unlimited)");
  } else {
    note("memlock", "memlock (a node)", node.rings.remote_bytes(), process.memlock_bytes,
         "only RDMA pins memory; shm and tcp do not");
  }
  if (input.settings.schedule != "off") {
    const uint64_t peers = std::max(1u, input.settings.node_count() - 1);
    note("turn", "a turn, in the rings to a node", input.settings.turn_bytes,
         node.rings.outgoing_bytes / peers,
         "what the rings hold ends a turn of network.turn_bytes sooner");
  }
  note("dev_shm", "/dev/shm", machine.shm.bytes, process.shm_folder_bytes,
       "segments are memfds: they count as memory, and not against /dev/shm");
  return verdicts;
}

/// Bytes per second at which a thread gets fresh, zeroed memory. 0 if there is none.
double touch_rate() {
  const uint64_t start_ns = base::SystemClock::instance().now_ns();
  void* memory = mmap(nullptr, kTouchBytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  const uint64_t end_ns = base::SystemClock::instance().now_ns();
  if (memory == MAP_FAILED) return 0;
  munmap(memory, kTouchBytes);
  return static_cast<double>(kTouchBytes) / (static_cast<double>(end_ns - start_ns) * 1e-9);
}

ConnectEstimate estimate_connect(const PlanInput& input, const ClusterPlan& plan) {
  ConnectEstimate estimate;
  estimate.bytes_per_second = touch_rate();
  if (plan.nodes[plan.largest()].verbs.links > 0) {
    estimate.why_not = "of verbs, only between the addresses of RDMA devices: `faro doctor`";
    return estimate;
  }
  Config config;
  const NodePlan& node = plan.nodes[plan.largest()];
  const char* transport = node.tcp.links > 0 ? "tcp" : "shm";
  if (const Status status = config.set("transport", transport); !status.ok()) {
    estimate.why_not = std::string(status.message());
    return estimate;
  }
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Result<SessionProbe> probe = probe_session(config, "127.0.0.1");
    if (!probe) {
      estimate.why_not = probe.status().to_string();
      return estimate;
    }
    const double seconds = probe.value().connect_seconds;
    estimate.per_link_seconds =
        attempt == 0 ? seconds : std::min(estimate.per_link_seconds, seconds);
  }
  // Machines work at the same time, the nodes of one share its processors.
  const double processors = std::max(1u, read_machine().processors);
  const double share = std::max(1.0, input.nodes_per_host / processors);
  const double links = std::max<uint32_t>(1, node.links());
  estimate.seconds = share * links * estimate.per_link_seconds;
  if (estimate.bytes_per_second > 0) {
    estimate.seconds += share * static_cast<double>(node.open_bytes()) / estimate.bytes_per_second;
  }
  return estimate;
}

bool fits(const std::vector<Verdict>& verdicts) {
  return std::none_of(verdicts.begin(), verdicts.end(),
                      [](const Verdict& one) { return one.kind == Verdict::Kind::does_not_fit; });
}

std::string workers_text(const base::Settings& settings) {
  const auto& workers = settings.workers_per_node;
  const bool same = std::all_of(workers.begin(), workers.end(),
                                [&](uint32_t count) { return count == workers.front(); });
  return same ? counted(workers.front(), "worker")
              : fmt::format("{} workers", fmt::join(workers, "+"));
}

void print_proposal(const PlanProposal& proposal) {
  fmt::print("proposed for {} per node\n", exact_bytes_text(proposal.budget_bytes));
  Table table("lll");
  for (const ProposedSetting& change : proposal.changes)
    table.add({"  " + change.name, change.value, fmt::format("instead of {}", change.before)});
  if (proposal.changes.empty()) table.add_line("  the settings as they are");
  fmt::print("{}\n", table.text());
}

// Between two of the largest nodes.
uint64_t ring_bytes_of(const base::Settings& settings, const ClusterPlan& plan) {
  return session::rings_between(settings, plan.largest(), plan.largest()).ring_bytes;
}

void print_plan(const PlanInput& input, const ClusterPlan& plan,
                const std::vector<Verdict>& verdicts, const ConnectEstimate& estimate) {
  const base::Settings& settings = input.settings;
  const NodePlan& node = plan.nodes[plan.largest()];
  const NodePlan all = plan.sum(0, settings.node_count());
  fmt::print("{} × {}, {} per machine; a lane of {} × {}\n\n",
             counted(settings.node_count(), "node"), workers_text(settings),
             counted(input.nodes_per_host, "node"), settings.rings_per_lane,
             exact_bytes_text(ring_bytes_of(settings, plan)));

  Table memory("lrrl");
  memory.add({"rings alone", "per node", "cluster", ""});
  const auto line = [&memory](const char* what, uint64_t one, uint64_t cluster,
                              const char* remark) {
    memory.add({std::string("  ") + what, bytes_text(one), bytes_text(cluster), remark});
  };
  const auto by_ends = [&settings](const char* at_workers, const char* at_nodes, const char* both) {
    if (!settings.lanes_end_at_nodes()) return at_workers;
    return settings.lanes_end_at_workers() ? both : at_nodes;
  };
  line("outgoing rings", node.rings.outgoing_bytes, all.rings.outgoing_bytes,
       by_ends("(m-1)·n²·B, to workers of other nodes", "(m-1)·n·B, to other nodes",
               "(m-1)·n·(n+1)·B, to workers of other nodes, and to the nodes"));
  line("incoming rings", node.rings.incoming_bytes, all.rings.incoming_bytes,
       "as much; over shm they are the senders' outgoing ones");
  line("local rings", node.rings.local_bytes, all.rings.local_bytes,
       by_ends("n²·B, between workers of a node", "n·B, to the node itself",
               "n·(n+1)·B, between workers of a node, and to the node itself"));
  memory.add_line("allocated at open, all of it");
  if (node.shm.links > 0)
    line("shm segments", node.shm.bytes, all.shm.bytes, "incoming rings, positions, ready words");
  if (node.tcp.links > 0) line("tcp rings", node.tcp.bytes, all.tcp.bytes, "outgoing and incoming");
  if (node.verbs.links > 0)
    line("verbs rings", node.verbs.bytes, all.verbs.bytes,
         "outgoing and incoming, messages; pinned");
  line("local rings", node.local_bytes, all.local_bytes, "");
  line("links beside their rings", node.state_bytes, all.state_bytes,
       "connections, TLS, positions, tables of lanes");
  line("counters", node.counter_bytes, all.counter_bytes,
       "64 bytes per ring and direction; the counter file");
  memory.add({"  ready words, doorbells", bytes_text(node.ready_bytes + node.doorbell_bytes),
              bytes_text(all.ready_bytes + all.doorbell_bytes),
              "8 bytes per 64 rings, 64 bytes per worker"});
  memory.add({"  total", bytes_text(node.open_bytes()), bytes_text(all.open_bytes()), ""});
  memory.add_line("at most, while queries run");
  memory.add({"  open shuffles", bytes_text(node.shuffle_bytes), bytes_text(all.shuffle_bytes),
              fmt::format("shuffle.limit = {} at every worker", settings.shuffle_limit)});
  line("frames in rings", node.frame_bytes, all.frame_bytes,
       "as many small ones as rings can hold");
  line("operators", node.operator_bytes, all.operator_bytes,
       "operator.memory_bytes: aggregations and joins");
  line("overflow in memory", node.overflow.memory_bytes, all.overflow.memory_bytes,
       "overflow.memory_bytes");
  if (input.groups > 0) {
    memory.add(
        {"    blocks of groups", bytes_text(node.overflow.block_bytes),
         bytes_text(all.overflow.block_bytes),
         fmt::format("of that: {} per worker, a frame each", counted(input.groups, "group"))});
  }
  line("tables of the file", node.overflow.table_bytes, all.overflow.table_bytes,
       "overflow.file_bytes / 128");
  line("overflow file", node.overflow.file_bytes, all.overflow.file_bytes,
       "overflow.file_bytes, on disk");
  fmt::print("{}\n", memory.text());

  Table links("lrrl");
  links.add({"connections", "per node", "cluster", ""});
  links.add({"  links over shm", grouped(node.shm.links), grouped(all.shm.links / 2), ""});
  links.add({"  links over tcp", grouped(node.tcp.links), grouped(all.tcp.links / 2), ""});
  links.add({"  links over verbs", grouped(node.verbs.links), grouped(all.verbs.links / 2), ""});
  const OpenFrames frames = open_frames(settings, plan.largest());
  links.add({"  open frames", fmt::format("{} + {}", grouped(frames.to_others), frames.to_own), "",
             "of a worker in a stage: to other nodes, and to its own"});
  if (frames.thread_connections > 0) {
    links.add({"  an exchange of threads", grouped(frames.thread_buffers),
               grouped(frames.thread_connections),
               "beside that: n·t-1 buffers of a worker, n²t²-t connections"});
  }
  links.add({"  file descriptors", grouped(node.descriptors), "",
             "at most, while connecting; then two per link"});
  fmt::print("{}\n", links.text());

  if (estimate.why_not.empty()) {
    fmt::print(
        "time to connect: about {}\n"
        "  estimated: links × {} (two nodes connected in this process just now, shared by {} per\n"
        "  machine) + memory at {}B/s (fresh pages, measured just now)\n\n",
        seconds_text(estimate.seconds), seconds_text(estimate.per_link_seconds),
        counted(input.nodes_per_host, "node"), scaled(estimate.bytes_per_second));
  } else {
    fmt::print("time to connect: unknown, because two nodes could not be connected here ({})\n\n",
               estimate.why_not);
  }

  Table table("lrrll");
  table.add({fmt::format("on this machine, with {}", counted(input.nodes_per_host, "node")), "need",
             "have", "", ""});
  for (const Verdict& one : verdicts) {
    const auto number = [&one](uint64_t value) {
      return one.is_bytes ? bytes_text(value) : grouped(value);
    };
    const char* verdict = one.kind == Verdict::Kind::fits           ? "fits"
                          : one.kind == Verdict::Kind::does_not_fit ? "DOES NOT FIT"
                                                                    : "-";
    table.add({"  " + one.what, number(one.need), one.have ? number(*one.have) : "no limit",
               verdict, one.remark});
  }
  fmt::print("{}\n{}\n", table.text(),
             fits(verdicts) ? "It fits on this machine." : "It does not fit on this machine.");
}

Json node_json(const NodePlan& node) {
  return {{"outgoing_ring_bytes", node.rings.outgoing_bytes},
          {"incoming_ring_bytes", node.rings.incoming_bytes},
          {"local_ring_bytes", node.rings.local_bytes},
          {"shm_bytes", node.shm.bytes},
          {"tcp_bytes", node.tcp.bytes},
          {"verbs_bytes", node.verbs.bytes},
          {"local_bytes", node.local_bytes},
          {"ready_bytes", node.ready_bytes},
          {"doorbell_bytes", node.doorbell_bytes},
          {"counter_bytes", node.counter_bytes},
          {"state_bytes", node.state_bytes},
          {"open_bytes", node.open_bytes()},
          {"shuffle_bytes", node.shuffle_bytes},
          {"frame_bytes", node.frame_bytes},
          {"operator_bytes", node.operator_bytes},
          {"overflow_memory_bytes", node.overflow.memory_bytes},
          {"group_block_bytes", node.overflow.block_bytes},
          {"overflow_table_bytes", node.overflow.table_bytes},
          {"overflow_file_bytes", node.overflow.file_bytes},
          {"most_bytes", node.most_bytes()},
          {"descriptors", node.descriptors}};
}

Json plan_json(const PlanInput& input, const ClusterPlan& plan,
               const std::vector<Verdict>& verdicts, const ConnectEstimate& estimate) {
  Json json;
  json["nodes"] = input.settings.node_count();
  json["workers_per_node"] = input.settings.workers_per_node;
  json["nodes_per_machine"] = input.nodes_per_host;
  json["ring_bytes"] = ring_bytes_of(input.settings, plan);
  json["rings_per_lane"] = input.settings.rings_per_lane;
  const NodePlan& node = plan.nodes[plan.largest()];
  json["node"] = node_json(node);
  json["node"]["shm_links"] = node.shm.links;
  json["node"]["tcp_links"] = node.tcp.links;
  json["node"]["verbs_links"] = node.verbs.links;
  json["cluster"] = node_json(plan.sum(0, input.settings.node_count()));
  json["cluster"]["links"] = plan.link_count();
  const OpenFrames frames = open_frames(input.settings, plan.largest());
  json["open_frames"] = {{"to_others", frames.to_others}, {"to_own_node", frames.to_own}};
  if (frames.thread_connections > 0) {
    json["exchange_of_threads"] = {{"connections", frames.thread_connections},
                                   {"buffers_per_worker", frames.thread_buffers}};
  }
  if (estimate.why_not.empty()) {
    json["connect"] = {{"seconds", estimate.seconds},
                       {"per_link_seconds", estimate.per_link_seconds},
                       {"bytes_per_second", estimate.bytes_per_second}};
  } else {
    json["connect"] = {{"error", estimate.why_not}};
  }
  json["limits"] = Json::array();
  for (const Verdict& one : verdicts) {
    Json limit{{"id", one.id}, {"what", one.what}, {"need", one.need}};
    limit["have"] = one.have ? Json(*one.have) : Json(nullptr);
    limit["verdict"] = one.kind == Verdict::Kind::fits           ? "fits"
                       : one.kind == Verdict::Kind::does_not_fit ? "does_not_fit"
                                                                 : "note";
    limit["remark"] = one.remark;
    json["limits"].push_back(std::move(limit));
  }
  json["fits"] = fits(verdicts);
  return json;
}

Json proposal_json(const PlanProposal& proposal) {
  Json json;
  json["budget_bytes"] = proposal.budget_bytes;
  json["settings"] = Json::object();
  for (const ProposedSetting& change : proposal.changes)
    json["settings"][change.name] = change.value;
  return json;
}

int run(const Flags& flags) {
  std::unique_ptr<transport::Transport> verbs;
  std::optional<PlanProposal> proposal;
  const Result<PlanInput> input = read_input(flags, verbs, proposal);
  if (!input) return report_error("faro plan", input.status());
  const ClusterPlan plan = make_plan(input.value(), state_sizes_of_this_build());
  std::vector<Verdict> verdicts = judge(input.value(), plan);
  if (proposal) {
    std::ranges::move(judge_budget(plan.nodes[plan.largest()], proposal->budget_bytes),
                      std::back_inserter(verdicts));
  }
  const ConnectEstimate estimate = estimate_connect(input.value(), plan);
  if (flags.json) {
    Json json = plan_json(input.value(), plan, verdicts, estimate);
    if (proposal) json["proposal"] = proposal_json(*proposal);
    fmt::print("{}\n", json_text(json, true));
  } else {
    if (proposal) print_proposal(*proposal);
    print_plan(input.value(), plan, verdicts, estimate);
  }
  return fits(verdicts) ? kExitOk : kExitFailed;
}

}  // namespace

void add_plan_command(CLI::App& app, int& exit_code) {
  auto [command, flags] = add_subcommand(
      app, exit_code, "plan",
      "What a cluster of m nodes and n workers needs, compared with this machine's limits", run);
  add_number(command, "--nodes", flags.nodes, "Of the cluster (default: those of cluster.nodes)", 1,
             kNodeLimit);
  command
      .add_option("--workers", flags.workers,
                  "Per node: one number, or one per node separated by commas\n"
                  "(default: cluster.workers)")
      ->type_name("N");
  add_number(command, "--nodes-per-host", flags.per_host,
             "Nodes on one machine (default: 1); auto chooses shm between them", 1, kNodeLimit);
  add_number(command, "--groups", flags.groups,
             "Groups of several receivers to which each worker sends at a time (default: none)", 0,
             ShuffleSpec::kGroupLimit);
  command.add_option("--ring", flags.ring, "Size of one ring, as ring.bytes: 32KiB")
      ->type_name("SIZE");
  command.add_option("--transport", flags.transport, "auto, shm, tcp or verbs")->type_name("NAME");
  command
      .add_option("--budget", flags.budget,
                  "Proposes settings under which a node takes no more: 1GiB. What is set stays")
      ->type_name("SIZE");
  flags.settings.add_to(command);
  command.add_flag("--json", flags.json, "Print JSON");
}

}  // namespace faro::command
