#include "endpoint/channel_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/error.h"
#include "faro/hash.h"
#include "links/agreement.h"
#include "transport/tcp/socket_address.h"

namespace faro::endpoint {
namespace {

links::Refusal mismatch(std::string text) {
  return {Status(Code::configuration_mismatch, std::move(text)), false, false};
}

// What both ends of a channel have to agree on; nodes of a session compare more.
bool is_agreed(std::string_view name) {
  constexpr std::string_view kAgreed[] = {"liveness.timeout_ms", "security.tls",
                                          "verbs.queue_pairs", "verbs.mtu"};
  return std::ranges::find(kAgreed, name) != std::end(kAgreed);
}

}  // namespace

wire::Hello ChannelIdentity::hello_to(uint32_t dialled) const {
  const ChannelSpec& spec = asked[dialled];
  wire::Hello said = hello;
  if (spec.ends_when_broken) said.head.features &= ~wire::kMends;
  said.rings = {spec.send_bytes, spec.receive_bytes};
  said.greeting = spec.greeting;
  return said;
}

std::optional<links::Refusal> ChannelIdentity::compare_heads(const wire::HelloHead& theirs,
                                                             const std::string& from) const {
  if (theirs.version != hello.head.version) {
    return mismatch(fmt::format("{} speaks protocol version {}, {} speaks version {}", name,
                                hello.head.version, from, theirs.version));
  }
  const uint64_t unknown = wire::unknown_requirements(theirs.features);
  if (unknown == 0) return std::nullopt;
  return mismatch(fmt::format("{} requires features {:#x} of the protocol, which {} does not know",
                              from, unknown, name));
}

std::optional<links::Refusal> ChannelIdentity::compare_clusters(const wire::Hello& theirs,
                                                                const std::string& from,
                                                                std::optional<uint32_t>) const {
  const std::string their_name = name_of(theirs, from);
  if (theirs.purpose != wire::Purpose::channel) {
    return mismatch(
        fmt::format("{} is an endpoint, and {} a node of a session: they have no "
                    "channels and no shuffles in common",
                    name, their_name));
  }
  if (theirs.cluster_id == hello.cluster_id) return std::nullopt;
  return mismatch(fmt::format("cluster.id is {} on {} and {} on {}", hello.cluster_id, name,
                              theirs.cluster_id, their_name));
}

std::optional<links::Refusal> ChannelIdentity::compare(const wire::Hello& theirs,
                                                       const std::string& from,
                                                       std::optional<uint32_t>) const {
  const std::string found =
      links::differences({hello.settings, name}, {theirs.settings, name_of(theirs, from)});
  if (found.empty()) return std::nullopt;
  return mismatch(found + " (both ends of a channel must agree)");
}

std::string ChannelIdentity::host_of(const wire::Hello& theirs) const {
  return transport::tcp::host_of(theirs.address);
}

std::string ChannelIdentity::name_of(const wire::Hello& theirs, const std::string& from) const {
  const std::string& at = theirs.address.empty() ? from : theirs.address;
  return theirs.name.empty() ? at : fmt::format("{} ({})", theirs.name, at);
}

Result<ChannelIdentity> make_channel_identity(const base::Settings& settings,
                                              const EndpointSpec& spec, links::Network& network) {
  ChannelIdentity identity;
  const std::string& address = network.local_address();
  identity.name = spec.name.empty() ? address : fmt::format("{} ({})", spec.name, address);
  FARO_RETURN_IF_ERROR(links::load_proof(settings, network, identity));
  identity.asked.resize(spec.channel_limit);
  wire::Hello& hello = identity.hello;
  hello.purpose = wire::Purpose::channel;
  hello.head.features = wire::kSigns;
  if (settings.link_mend_ms != 0) hello.head.features |= wire::kMends | wire::kMendsVerbs;
  hello.head.cluster_hash = hash_bytes(settings.cluster_id.data(), settings.cluster_id.size());
  hello.cluster_id = settings.cluster_id;
  hello.name = spec.name;
  hello.address = address;
  hello.host_identity = network.host_identity();
  hello.settings = links::agreed_settings(settings, is_agreed);
  if (!network.draw_random(std::as_writable_bytes(std::span(&hello.incarnation, 1))))
    return Status(Code::system_error, "the system has no random numbers (getrandom)");
  return identity;
}

}  // namespace faro::endpoint
