#include "faro/config.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <set>

#include "base/cpu_list.h"
#include "base/error.h"
#include "base/log.h"
#include "base/private_file.h"
#include "base/processor.h"
#include "base/settings.h"
#include "base/toml.h"
#include "base/variable_names.h"
#include "base/whole_file.h"

extern char** environ;

namespace faro {
namespace {

// FARO_… variables that are no settings.
constexpr std::string_view kOtherVariables[] = {"FARO_LOG_LEVEL", "FARO_CONFIG", "FARO_SECRET"};

std::string environment_name(std::string_view name) {
  std::string result = "FARO_";
  for (char c : name) {
    result += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return result;
}

std::string_view unit_name(Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return " bytes";
    case Unit::milliseconds:
      return " ms";
    case Unit::microseconds:
      return " us";
    case Unit::number:
      break;
  }
  return "";
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Digits with an optional KiB, MiB or GiB; nullopt when malformed or beyond 64 bits.
std::optional<uint64_t> parse_number(std::string_view text, Unit unit) {
  text = trim(text);
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest == text.data()) return std::nullopt;
  const std::string_view suffix = trim(std::string_view(rest, static_cast<size_t>(end - rest)));
  if (suffix.empty()) return number;
  if (unit != Unit::bytes) return std::nullopt;
  int shift = 0;
  if (suffix == "KiB") {
    shift = 10;
  } else if (suffix == "MiB") {
    shift = 20;
  } else if (suffix == "GiB") {
    shift = 30;
  } else {
    return std::nullopt;
  }
  if (number > (UINT64_MAX >> shift)) return std::nullopt;
  return number << shift;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= text.size() && !text.empty()) {
    size_t comma = text.find(',', begin);
    if (comma == std::string::npos) comma = text.size();
    parts.emplace_back(trim(std::string_view(text).substr(begin, comma - begin)));
    begin = comma + 1;
  }
  return parts;
}

struct TableStorage {
  std::vector<SettingInfo> rows;
  std::vector<std::string> texts;  // owns what the string_views of rows point to
};

const TableStorage& storage() {
  static const TableStorage table = [] {
    TableStorage made;
    made.texts.reserve(256);  // never grows: the views below stay valid
    auto keep = [&made](std::string text) -> std::string_view {
      return made.texts.emplace_back(std::move(text));
    };
#define FARO_NUMBER(field, name, value, unit, least, most, cluster_wide, help)                \
  made.rows.push_back({name, keep(environment_name(name)), true,                              \
                       keep(std::to_string(static_cast<uint64_t>(value))), unit, least, most, \
                       cluster_wide, help});
#define FARO_TEXT(field, name, value, cluster_wide, help) \
  made.rows.push_back(                                    \
      {name, keep(environment_name(name)), false, value, Unit::number, 0, 0, cluster_wide, help});
#include "base/settings.def"
#undef FARO_NUMBER
#undef FARO_TEXT
    return made;
  }();
  return table;
}

std::optional<size_t> index_of(std::string_view name) {
  const auto& rows = Config::table();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].name == name) return i;
  }
  return std::nullopt;
}

// Sources of a value that nobody has set.
constexpr std::string_view kDefault = "default";
constexpr std::string_view kHalfOfRing = "default (half of ring.bytes)";
constexpr std::string_view kQuarterOfTurn = "default (a quarter of network.turn_bytes)";
constexpr std::string_view kWithinLiveness = "default (within liveness.timeout_ms)";

// How many attempts of a queue pair end within the limit, if each waits for that timeout as its device counts it.
uint64_t device_attempts(uint64_t limit_ms, uint64_t timeout) {
  return limit_ms * uint64_t{1'000'000} / (uint64_t{4096} << timeout);
}

// The longest timeout with which that many attempts do.
uint64_t device_timeout(uint64_t limit_ms, uint64_t attempts) {
  constexpr uint64_t kLongest = 31;
  uint64_t timeout = 1;
  while (timeout < kLongest && device_attempts(limit_ms, timeout + 1) >= attempts) ++timeout;
  return timeout;
}

template <typename... Args>
Status invalid(fmt::format_string<Args...> text, Args&&... args) {
  return base::error(Code::config_invalid, text, std::forward<Args>(args)...);
}

// What is to be said of a variable FARO_… that is neither a setting nor another one of Faro's.
Status judge_foreign(std::string_view name) {
  if (base::is_service_variable(name)) return Status::Ok();
  if (base::begins_with_section(name)) {
    return invalid("environment variable {} is no setting; `faro config` lists all", name);
  }
  base::log(LogLevel::warning,
            "environment variable {} is no setting and is passed over; `faro config` lists all",
            name);
  return Status::Ok();
}

Status apply_toml(const toml::table& table, const std::string& prefix, const std::string& path,
                  Config& config) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const auto* inner = node.as_table()) {
      FARO_RETURN_IF_ERROR(apply_toml(*inner, name + ".", path, config));
    } else if (const auto number = node.value_exact<int64_t>()) {
      if (*number < 0) return invalid("{}: {} = {} must not be negative", path, name, *number);
      FARO_RETURN_IF_ERROR(config.set(name, static_cast<uint64_t>(*number), path));
    } else if (const auto text = node.value_exact<std::string>()) {
      FARO_RETURN_IF_ERROR(config.set(name, std::string_view(*text), path));
    } else {
      return invalid("{}: {} must be a string or a whole number", path, name);
    }
  }
  return Status::Ok();
}

}  // namespace

const std::vector<SettingInfo>& Config::table() { return storage().rows; }

Config::Config() {
  for (const SettingInfo& row : table()) {
    Value value;
    value.text = std::string(row.default_value);
    if (row.numeric) value.number = *parse_number(value.text, row.unit);
    value.source = kDefault;
    values_.push_back(std::move(value));
  }
}

Status Config::set(std::string_view name, std::string_view text, std::string_view source) {
  const auto index = index_of(name);
  if (!index) return invalid("unknown setting {}; `faro config` lists all", name);
  const SettingInfo& row = table()[*index];
  Value value;
  value.text = std::string(trim(text));
  value.source = std::string(source);
  if (row.numeric) {
    const auto number = parse_number(text, row.unit);
    if (!number) {
      return invalid("{} = '{}' is not a number{}", row.name, text,
                     row.unit == Unit::bytes ? " of bytes (digits, KiB, MiB or GiB)" : "");
    }
    if (*number < row.least || *number > row.most) {
      return invalid("{} = {} is outside {} … {}{}", row.name, *number, row.least, row.most,
                     unit_name(row.unit));
    }
    value.number = *number;
    value.text = std::to_string(*number);
  }
  values_[*index] = std::move(value);
  follow();
  return Status::Ok();
}

// Defaults that depend on others: a threshold that nobody has set is never above what the rings allow, and a device that
// nobody has told how long to wait gives up as soon as a peer counts as silent.
void Config::follow() {
  const auto is_set = [this](std::string_view name, std::string_view how) {
    const std::string& source = values_[*index_of(name)].source;
    return source != kDefault && source != how;
  };
  const auto follows = [&](std::string_view name, std::string_view how, auto&& of_usual) {
    if (is_set(name, how)) return;
    const SettingInfo& row = table()[*index_of(name)];
    Value& value = values_[*index_of(name)];
    const uint64_t usual = *parse_number(row.default_value, row.unit);
    value.number = of_usual(usual);
    value.text = std::to_string(value.number);
    value.source = value.number == usual ? kDefault : how;
  };
  follows("transfer.threshold_bytes", kHalfOfRing,
          [this](uint64_t usual) { return std::min(usual, get_number("ring.bytes") / 2); });
  follows("network.schedule_from", kQuarterOfTurn,
          [this](uint64_t) { return std::max<uint64_t>(get_number("network.turn_bytes") / 4, 1); });
  // Packets are sent again as often as they can be, unless a timeout that was set is too long for that.
  const uint64_t limit_ms = get_number("liveness.timeout_ms");
  follows("verbs.retry_count", kWithinLiveness, [&](uint64_t usual) {
    const uint64_t timeout = get_number("verbs.timeout");
    if (!is_set("verbs.timeout", kWithinLiveness) || timeout == 0) return usual;
    const uint64_t attempts = std::max<uint64_t>(device_attempts(limit_ms, timeout), 1);
    return std::min(usual, attempts - 1);
  });
  follows("verbs.timeout", kWithinLiveness,
          [&](uint64_t) { return device_timeout(limit_ms, get_number("verbs.retry_count") + 1); });
}

Status Config::set_bytes(std::string_view name, std::span<const std::byte> bytes) {
  constexpr std::string_view kFiles[] = {"security.secret_file", "security.certificate",
                                         "security.key", "security.authority"};
  if (std::find(std::begin(kFiles), std::end(kFiles), name) == std::end(kFiles)) {
    return invalid("{} cannot be given as bytes, only {}", name, fmt::join(kFiles, ", "));
  }
  if (bytes.empty()) return invalid("{}: no bytes were given", name);
  auto copy = std::make_unique<std::vector<std::byte>>(bytes.begin(), bytes.end());
  Value value;
  value.text = "(given as bytes)";
  value.source = "set";
  value.bytes = {copy.release(), [](std::vector<std::byte>* last) {
                   base::overwrite(*last);
                   delete last;
                 }};
  values_[*index_of(name)] = std::move(value);
  return Status::Ok();
}

Status Config::set(std::string_view name, uint64_t number, std::string_view source) {
  return set(name, std::string_view(std::to_string(number)), source);
}

Status Config::set(std::string_view name, int number) {
  if (number < 0) return invalid("{} = {} must not be negative", name, number);
  return set(name, static_cast<uint64_t>(number));
}

Status Config::load_environment() {
  std::set<std::string, std::less<>> known(std::begin(kOtherVariables), std::end(kOtherVariables));
  Config changed = *this;
  for (const SettingInfo& row : table()) {
    known.emplace(row.environment);
    if (const char* text = std::getenv(std::string(row.environment).c_str())) {
      if (Status status = changed.set(row.name, text, "environment"); !status.ok()) {
        return invalid("{}: {}", row.environment, status.message());
      }
    }
  }
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    const std::string_view name = variable.substr(0, variable.find('='));
    if (name.starts_with("FARO_") && known.find(name) == known.end())
      FARO_RETURN_IF_ERROR(judge_foreign(name));
  }
  *this = std::move(changed);
  return Status::Ok();
}

Status Config::load_file(const std::string& path) {
  constexpr size_t kMostBytes = 1024 * 1024;
  const auto bytes = base::read_whole_file(path, base::FileKind::any_but_folder, kMostBytes);
  if (!bytes.ok()) return invalid("{}: {}", path, bytes.status().message());
  if (bytes->size() > kMostBytes) return invalid("{}: more than {} bytes", path, kMostBytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    return invalid("{}: line {}: {}", path, parsed.error().source().begin.line,
                   parsed.error().description());
  }
  Config changed = *this;
  FARO_RETURN_IF_ERROR(apply_toml(parsed.table(), "", path, changed));
  *this = std::move(changed);
  return Status::Ok();
}

std::string Config::get(std::string_view name) const {
  const auto index = index_of(name);
  return index ? values_[*index].text : std::string();
}

uint64_t Config::get_number(std::string_view name) const {
  const auto index = index_of(name);
  return index ? values_[*index].number : 0;
}

std::string Config::source(std::string_view name) const {
  const auto index = index_of(name);
  return index ? values_[*index].source : std::string();
}

Status Config::validate() const { return base::Settings::resolve(*this).status(); }

namespace base {

Status check_address(std::string_view name, const std::string& address, std::string_view whose) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return invalid("{}: '{}'{} is not host:port", name, address, whose);
  const std::string port = address.substr(colon + 1);
  const bool digits = !port.empty() && port.find_first_not_of("0123456789") == std::string::npos;
  if (digits && port.size() <= 5 && std::stoul(port) <= 65535) return Status::Ok();
  return invalid("{}: '{}'{}: the port '{}' is outside 0 … 65535", name, address, whose, port);
}

namespace {

// Where nodes can be added, numbers that no node has yet have an empty address.
Status complete_addresses(Settings& settings) {
  std::vector<std::string>& addresses = settings.node_addresses;
  if (addresses.size() > settings.node_limit) {
    return invalid("cluster.nodes has {} entries, above cluster.node_limit = {}", addresses.size(),
                   settings.node_limit);
  }
  for (std::string& address : addresses) {
    if (address == "-") address.clear();
  }
  if (addresses[settings.node].empty())
    return invalid("cluster.nodes has no address for node {}, this one", settings.node);
  addresses.resize(settings.node_limit);
  return Status::Ok();
}

Status check_cluster(const Config& config, Settings& settings) {
  settings.node_addresses = split(settings.nodes);
  const size_t named = settings.node_addresses.size();
  if (named == 0) return invalid("cluster.nodes is empty; name at least one node");
  if (settings.node >= named) {
    return invalid("cluster.node = {} but cluster.nodes has {} entries (0 … {})", settings.node,
                   named, named - 1);
  }
  const bool has_limit = settings.node_limit > 0;
  if (has_limit) FARO_RETURN_IF_ERROR(complete_addresses(settings));
  const size_t node_count = settings.node_addresses.size();
  std::set<std::string> seen;
  for (size_t i = 0; i < node_count; ++i) {
    const std::string& address = settings.node_addresses[i];
    if (address.empty() && has_limit) continue;
    FARO_RETURN_IF_ERROR(check_address("cluster.nodes", address, fmt::format(" (node {})", i)));
    const bool any_port = address.size() > 2 && address.compare(address.size() - 2, 2, ":0") == 0;
    if (!any_port && !seen.insert(address).second) {
      return invalid("cluster.nodes: two nodes have the address {}", address);
    }
  }
  const std::vector<std::string> workers = split(settings.workers);
  if (workers.size() != 1 && has_limit) {
    return invalid("cluster.workers = {} has {} numbers; with cluster.node_limit it has one",
                   settings.workers, workers.size());
  }
  if (workers.size() != 1 && workers.size() != node_count) {
    return invalid("cluster.workers = {} has {} numbers for {} nodes", settings.workers,
                   workers.size(), node_count);
  }
  for (size_t i = 0; i < node_count; ++i) {
    const std::string& text = workers[workers.size() == 1 ? 0 : i];
    const auto number = parse_number(text, Unit::number);
    if (!number || *number < 1 || *number > 4096) {
      return invalid("cluster.workers = {}: '{}' is outside 1 … 4096",
                     config.get("cluster.workers"), text);
    }
    settings.workers_per_node.push_back(static_cast<uint32_t>(*number));
  }
  return Status::Ok();
}

Status check_choice(std::string_view name, std::string_view value,
                    std::initializer_list<std::string_view> choices) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return Status::Ok();
  return invalid("{} = {} is none of {}", name, value, fmt::join(choices, ", "));
}

Status check_kernel(const std::string& kernel) {
  FARO_RETURN_IF_ERROR(
      check_choice("kernel.scatter", kernel, {"auto", "scalar", "avx2", "avx512"}));
  if (kernel == "avx2" && !has_avx2())
    return invalid("kernel.scatter = avx2, which this processor does not have");
  if (kernel == "avx512" && !has_avx512())
    return invalid("kernel.scatter = avx512, of which this processor lacks F, DQ or VL");
  return Status::Ok();
}

Status check_verbs_device(const Settings& settings) {
  if (!settings.verbs_address.empty() && !settings.verbs_device.empty()) {
    return invalid("verbs.address = {} and verbs.device = {}: only one can choose",
                   settings.verbs_address, settings.verbs_device);
  }
  const std::string& index = settings.verbs_gid_index;
  if (index.empty()) return Status::Ok();
  if (settings.verbs_device.empty()) {
    return invalid("verbs.gid_index = {} without verbs.device", index);
  }
  const auto number = parse_number(index, Unit::number);
  if (number && *number < 65536) return Status::Ok();
  return invalid("verbs.gid_index = {} is no number from 0 to 65535", index);
}

Status check_verbs_path(const Settings& settings) {
  const uint64_t mtu = settings.verbs_mtu;
  if (mtu != 0 && (mtu < 256 || (mtu & (mtu - 1)) != 0)) {
    return invalid("verbs.mtu = {} is none of 0, 256, 512, 1024, 2048, 4096", mtu);
  }
  const std::string& level = settings.verbs_service_level;
  if (level.empty()) return Status::Ok();
  const auto number = parse_number(level, Unit::number);
  if (number && *number < 16) return Status::Ok();
  return invalid("verbs.service_level = {} is no number from 0 to 15", level);
}

// A lane to a node has a stream for each of the node's workers and each shuffle that its sender has open. Their numbers have 16 bits.
Status check_lane_ends(const Settings& settings) {
  FARO_RETURN_IF_ERROR(check_choice("lane.ends", settings.lane_ends, {"workers", "node", "both"}));
  if (!settings.lanes_end_at_nodes()) return Status::Ok();
  if (settings.verbs_queue_pairs == "lane") {
    return invalid(
        "verbs.queue_pairs = lane with lane.ends = {}: a lane to a node has no lane in the "
        "opposite "
        "direction; choose link or worker",
        settings.lane_ends);
  }
  constexpr uint64_t kStreams = uint64_t{UINT16_MAX} + 1;
  for (const uint32_t workers : settings.workers_per_node) {
    if (workers * settings.shuffle_limit <= kStreams) continue;
    return invalid(
        "shuffle.limit = {} with lane.ends = {}: it is at most {} for cluster.workers = {}",
        settings.shuffle_limit, settings.lane_ends, kStreams / workers, workers);
  }
  return Status::Ok();
}

Status check_schedule(const Settings& settings) {
  FARO_RETURN_IF_ERROR(check_choice("network.schedule", settings.schedule, {"off", "phases"}));
  if (settings.schedule_from_bytes > settings.turn_bytes) {
    return invalid("network.schedule_from = {} is more than a turn, network.turn_bytes = {}",
                   settings.schedule_from_bytes, settings.turn_bytes);
  }
  if (settings.schedule == "phases" && settings.transport == "verbs") {
    return invalid(
        "network.schedule = phases with transport = verbs: only tcp has turns. Choose transport "
        "tcp or auto, or network.schedule = off");
  }
  return Status::Ok();
}

// All that is not about the nodes of a cluster.
Status check_others(const Settings& settings) {
  if (!settings.listen.empty())
    FARO_RETURN_IF_ERROR(check_address("cluster.listen", settings.listen, ""));
  if (!settings.metrics_listen.empty())
    FARO_RETURN_IF_ERROR(check_address("metrics.listen", settings.metrics_listen, ""));
  if ((settings.ring_bytes & (settings.ring_bytes - 1)) != 0) {
    return invalid("ring.bytes = {} is not a power of two", settings.ring_bytes);
  }
  if (settings.threshold_bytes > settings.ring_bytes / 2) {
    return invalid("transfer.threshold_bytes = {} is more than half of ring.bytes = {}",
                   settings.threshold_bytes, settings.ring_bytes);
  }
  FARO_RETURN_IF_ERROR(
      check_choice("transport", settings.transport, {"auto", "shm", "verbs", "tcp"}));
  FARO_RETURN_IF_ERROR(check_choice("security.tls", settings.tls, {"off", "on", "control"}));
  FARO_RETURN_IF_ERROR(check_schedule(settings));
  FARO_RETURN_IF_ERROR(check_choice("connect.wait_for", settings.wait_for, {"all", "none"}));
  if (settings.tls == "on" && settings.transport == "verbs") {
    return invalid(
        "security.tls = on with transport = verbs: rows over verbs cannot be encrypted. Choose "
        "transport tcp, or auto, which uses shm and tcp then, or security.tls = control, with "
        "which rows travel in the clear");
  }
  FARO_RETURN_IF_ERROR(
      check_choice("verbs.notify", settings.verbs_notify, {"auto", "send", "immediate"}));
  FARO_RETURN_IF_ERROR(check_choice("verbs.order", settings.verbs_order, {"chained", "paper"}));
  FARO_RETURN_IF_ERROR(
      check_choice("verbs.queue_pairs", settings.verbs_queue_pairs, {"link", "worker", "lane"}));
  FARO_RETURN_IF_ERROR(check_verbs_device(settings));
  FARO_RETURN_IF_ERROR(check_kernel(settings.kernel_scatter));
  if (!parse_cpu_list(settings.network_cpus)) {
    return invalid("network.cpus = {} is no list of CPUs, such as 0-3,8, from 0 to {}",
                   settings.network_cpus, kCpuLimit - 1);
  }
  return check_verbs_path(settings);
}

}  // namespace

Settings Settings::read(const Config& config) {
  Settings settings;
#define FARO_NUMBER(field, name, value, unit, least, most, cluster_wide, help) \
  settings.field = config.get_number(name);
#define FARO_TEXT(field, name, value, cluster_wide, help) settings.field = config.get(name);
#include "base/settings.def"
#undef FARO_NUMBER
#undef FARO_TEXT
  for (size_t i = 0; i < config.values_.size(); ++i) {
    if (const Bytes& bytes = config.values_[i].bytes; bytes != nullptr)
      settings.given.emplace(Config::table()[i].name, bytes);
  }
  // What a transfer costs is paid per transfer. One lane fills no large one unless its rings are larger, nor do the few that end at
  // nodes.
  const bool is_set = config.source("ring.bytes") != kDefault;
  settings.large_ring_bytes = is_set ? settings.ring_bytes : 2 * settings.ring_bytes;
  return settings;
}

Result<Settings> Settings::resolve(const Config& config) {
  Settings settings = read(config);
  FARO_RETURN_IF_ERROR(check_cluster(config, settings));
  FARO_RETURN_IF_ERROR(check_others(settings));
  FARO_RETURN_IF_ERROR(check_lane_ends(settings));
  return settings;
}

Result<Settings> Settings::resolve_without_nodes(const Config& config) {
  Settings settings = read(config);
  FARO_RETURN_IF_ERROR(check_others(settings));
  return settings;
}

}  // namespace base
}  // namespace faro
