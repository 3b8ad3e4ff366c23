#include "session/cluster_identity.h"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "faro/hash.h"
#include "links/agreement.h"

namespace faro::session {
namespace {

links::Refusal mismatch(std::string text, bool ends_open = true) {
  return {Status(Code::configuration_mismatch, std::move(text)), false, ends_open};
}

}  // namespace

wire::Hello hello_of(const base::Settings& settings) {
  wire::Hello hello;
  hello.head.features = wire::kSigns | wire::kRests;
  if (settings.link_mend_ms != 0) hello.head.features |= wire::kMends | wire::kMendsVerbs;
  if (settings.large_ring_bytes != settings.ring_bytes) hello.head.features |= wire::kLargeRings;
  if (settings.schedule != "off") hello.head.features |= wire::kTurns;
  hello.head.node = static_cast<uint32_t>(settings.node);
  hello.head.cluster_hash = hash_bytes(settings.cluster_id.data(), settings.cluster_id.size());
  hello.node_count = settings.node_count();
  hello.cluster_id = settings.cluster_id;
  hello.settings = links::agreed_settings(settings, [](std::string_view) { return true; });
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
  const std::string different =
      links::differences({hello.settings, name}, {theirs.settings, their_name});
  const bool differ_in_limit = different.find("cluster.node_limit") != std::string::npos;
  if (theirs.node_count != hello.node_count && !differ_in_limit) {
    return mismatch(
        fmt::format("cluster.nodes has {} entries on {} and {} on {} (all nodes must agree)",
                    hello.node_count, name, theirs.node_count, their_name));
  }
  if (!differ_in_limit &&
      (theirs.head.node == hello.head.node || theirs.head.node >= hello.node_count)) {
    return mismatch(fmt::format("{} and the process at {} both say that they are node {}", name,
                                from, theirs.head.node));
  }
  if (!different.empty()) return mismatch(different + " (all nodes must agree)");
  // It dials again, and is admitted when it was added here.
  if (host_of_node(theirs.head.node).empty()) {
    return links::Refusal{
        base::error(Code::connect_failed, "{} was not told of {}", name, their_name), true, false};
  }
  return std::nullopt;
}

wire::Hello ClusterIdentity::hello_to(uint32_t dialled) const {
  wire::Hello said = hello;
  said.expected_node = dialled;
  return said;
}

// The address at which it says it listens is more useful than the port that it dialled from.
std::string ClusterIdentity::name_of(const wire::Hello& theirs, const std::string& from) const {
  return fmt::format("node {} ({})", theirs.head.node,
                     theirs.address.empty() ? from : theirs.address);
}

Result<ClusterIdentity> make_identity(const base::Settings& settings, const Peers& peers,
                                      links::Network& network) {
  ClusterIdentity identity;
  identity.name = peers.topology().own().name;
  FARO_RETURN_IF_ERROR(links::load_proof(settings, network, identity));
  identity.host_of_node = [&peers](uint32_t node) { return peers.host(node); };
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
