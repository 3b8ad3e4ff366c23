#include "session/identity.h"

#include <fmt/format.h>

#include <span>
#include <utility>

namespace faro::session {
namespace {

// Whether anybody who reaches this node would be let in, which the user has not asked for.
bool is_left_open(const base::Settings& settings, const LocalIdentity& identity,
                  const Network& network) {
  return identity.secret == nullptr && network.credentials() == nullptr &&
         settings.security_open == 0 && network.open_to_others();
}

}  // namespace

Result<LocalIdentity> make_identity(const base::Settings& settings, const Topology& topology,
                                    Network& network) {
  LocalIdentity identity;
  identity.name = topology.own().name;
  auto secret = load_secret(settings);
  if (!secret.ok()) return secret.status();
  identity.secret = std::move(*secret);
  if (is_left_open(settings, identity, network)) {
    return Status(
        Code::config_invalid,
        fmt::format("{} listens where other machines may reach it, and the cluster has no secret: "
                    "whoever reaches the port could join. Give all nodes the same secret by "
                    "security.secret_file (a file) or the environment variable FARO_SECRET, or "
                    "certificates by security.tls, or set security.open = 1 if the network keeps "
                    "strangers out",
                    identity.name));
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
