#include "session/cluster_identity.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "faro/hash.h"

namespace faro::session {
namespace {

// Up to this length a difference is shown completely; the user corrects one at a time anyway.
constexpr size_t kDifferencesNamed = 4;
constexpr size_t kValueShown = 80;

std::map<std::string_view, std::string_view> parse_settings(std::string_view text) {
  std::map<std::string_view, std::string_view> values;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos) values[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return values;
}

// A name or value as messages show it: the peer's are untrusted.
std::string shown(std::string_view value) {
  const std::string text = base::printable(std::string(value.substr(0, kValueShown)));
  return text.empty() ? "''" : text;
}

// The default of a setting on which all nodes must agree; none: this version does not know it.
std::optional<std::string_view> default_of(std::string_view name) {
  for (const SettingInfo& row : Config::table()) {
    if (row.cluster_wide && row.name == name) return row.default_value;
  }
  return std::nullopt;
}

// Which settings differ; empty: none. Who does not list a setting has its default.
std::string differences(const ClusterIdentity& ours, const wire::Hello& theirs,
                        const std::string& their_name) {
  const auto our_values = parse_settings(ours.hello.settings);
  const auto their_values = parse_settings(theirs.settings);
  std::map<std::string_view, std::string_view> listed = our_values;
  listed.insert(their_values.begin(), their_values.end());
  std::string text;
  size_t found = 0;
  for (const auto& [name, value] : listed) {
    const std::optional<std::string_view> known = default_of(name);
    const auto value_in = [&](const auto& values) {
      const auto entry = values.find(name);
      return entry != values.end() ? entry->second : known.value_or("");
    };
    const std::string_view our_value = value_in(our_values);
    const std::string_view their_value = value_in(their_values);
    if (known && our_value == their_value) continue;
    if (++found > kDifferencesNamed) break;
    if (!text.empty()) text += "; ";
    text += fmt::format("{} is {} on {} and {} on {}", shown(name),
                        known ? shown(our_value) : "unknown, so its default,", ours.name,
                        shown(their_value), their_name);
  }
  return text;
}

links::Refusal mismatch(std::string text, bool ends_open = true) {
  return {Status(Code::configuration_mismatch, std::move(text)), false, ends_open};
}

// The settings on which nodes must agree and that do not have their default, in the order of settings.def.
std::string cluster_wide_text(const base::Settings& settings) {
  std::string text;
#define FARO_NUMBER(field, name, value, unit, least, most, cluster_wide, help) \
  if (cluster_wide && settings.field != (value))                               \
    text += fmt::format("{}={}\n", name, settings.field);
#define FARO_TEXT(field, name, value, cluster_wide, help) \
  if (cluster_wide && settings.field != (value))          \
    text += fmt::format("{}={}\n", name, settings.field);
#include "base/settings.def"
#undef FARO_NUMBER
#undef FARO_TEXT
  return text;
}

// Whether any peer that reaches this node could join, although the user has not asked for that.
bool is_left_open(const base::Settings& settings, const ClusterIdentity& identity,
                  const links::Network& network) {
  return identity.secret == nullptr && network.credentials() == nullptr &&
         settings.security_open == 0 && network.open_to_others();
}

}  // namespace

wire::Hello hello_of(const base::Settings& settings) {
  wire::Hello hello;
  hello.head.node = static_cast<uint32_t>(settings.node);
  hello.head.cluster_hash = hash_bytes(settings.cluster_id.data(), settings.cluster_id.size());
  hello.node_count = settings.node_count();
  hello.cluster_id = settings.cluster_id;
  hello.settings = cluster_wide_text(settings);
  return hello;
}

std::optional<links::Refusal> ClusterIdentity::compare_heads(const wire::HelloHead& theirs,
                                                             const std::string& from) const {
  const wire::HelloHead& head = hello.head;
  const bool same_cluster = theirs.cluster_hash == head.cluster_hash;
  if (theirs.version != head.version) {
    // A node of our own cluster, or another program that happens to speak an older or newer Faro?
    return mismatch(
        fmt::format(
            "{} speaks protocol version {} (features {:#x}), node {} ({}) speaks version {} "
            "(features {:#x})",
            name, head.version, head.features, theirs.node, from, theirs.version, theirs.features),
        same_cluster);
  }
  if (const uint64_t unknown = wire::unknown_requirements(theirs.features); unknown != 0) {
    return mismatch(
        fmt::format("node {} ({}) requires features {:#x} of the protocol, which {} does not know",
                    theirs.node, from, unknown, name),
        same_cluster);
  }
  return std::nullopt;
}

std::optional<links::Refusal> ClusterIdentity::compare_clusters(
    const wire::Hello& theirs, const std::string& from, std::optional<uint32_t> dialled) const {
  if (theirs.purpose != wire::Purpose::session) {
    const bool is_channel = theirs.purpose == wire::Purpose::channel;
    return mismatch(
        fmt::format("{} opens {}, but {} is a session",
                    theirs.name.empty() ? from : fmt::format("{} ({})", theirs.name, from),
                    is_channel ? "a channel"
                               : fmt::format("a link of the unknown purpose {}",
                                             static_cast<int>(theirs.purpose)),
                    name),
        dialled.has_value());
  }
  if (theirs.cluster_id == hello.cluster_id) return std::nullopt;
  // A node of another cluster is no concern of ours, unless we dialled it.
  return mismatch(fmt::format("cluster.id is {} on {} and {} on {}", hello.cluster_id, name,
                              theirs.cluster_id, name_of(theirs, from)),
                  dialled.has_value());
}

std::optional<links::Refusal> ClusterIdentity::compare(const wire::Hello& theirs,
                                                       const std::string& from,
                                                       std::optional<uint32_t> dialled) const {
  const std::string their_name = name_of(theirs, from);
  if (theirs.incarnation == hello.incarnation) {
    return mismatch(fmt::format(
        "{} reaches itself at {}: two entries of cluster.nodes name the same process", name, from));
  }
  if (dialled && theirs.head.node != *dialled) {
    return mismatch(fmt::format("{} is node {}, but cluster.nodes of {} says node {} is there",
                                from, theirs.head.node, name, *dialled));
  }
  if (!dialled && theirs.expected_node != hello.head.node) {
    return mismatch(fmt::format("{} is node {}, but cluster.nodes of {} says node {} is there",
                                hello.address, hello.head.node, their_name, theirs.expected_node));
  }
  if (theirs.node_count != hello.node_count) {
    return mismatch(
        fmt::format("cluster.nodes has {} entries on {} and {} on {} (all nodes must agree)",
                    hello.node_count, name, theirs.node_count, their_name));
  }
  if (theirs.head.node == hello.head.node || theirs.head.node >= hello.node_count) {
    return mismatch(fmt::format("{} and the process at {} both say that they are node {}", name,
                                from, theirs.head.node));
  }
  if (const std::string different = differences(*this, theirs, their_name); !different.empty()) {
    return mismatch(different + " (all nodes must agree)");
  }
  return std::nullopt;
}

wire::Hello ClusterIdentity::hello_to(uint32_t peer) const {
  wire::Hello said = hello;
  said.expected_node = peer;
  return said;
}

// The address at which it says it listens is more useful than the port that it dialled from.
std::string ClusterIdentity::name_of(const wire::Hello& theirs, const std::string& from) const {
  return fmt::format("node {} ({})", theirs.head.node,
                     theirs.address.empty() ? from : theirs.address);
}

Result<ClusterIdentity> make_identity(const base::Settings& settings, const Topology& topology,
                                      links::Network& network) {
  ClusterIdentity identity;
  identity.name = topology.own().name;
  FARO_ASSIGN_OR_RETURN(identity.secret, links::load_secret(settings));
  if (is_left_open(settings, identity, network)) {
    return base::error(
        Code::config_invalid,
        "{} listens where other machines may reach it, and the cluster has no secret: anyone who "
        "reaches the port could join. Give all nodes the same secret by security.secret_file (a "
        "file) or the environment variable FARO_SECRET, or certificates by security.tls, or set "
        "security.open = 1 if the network keeps others out",
        identity.name);
  }
  for (const Node& node : topology.nodes()) identity.hosts.push_back(topology.host(node.number));
  wire::Hello& hello = identity.hello;
  hello = hello_of(settings);
  hello.address = network.local_address();
  hello.host_identity = network.host_identity();
  if (!network.draw_random(std::as_writable_bytes(std::span(&hello.incarnation, 1)))) {
    return Status(Code::system_error, "the system has no random numbers (getrandom)");
  }
  return identity;
}

}  // namespace faro::session
