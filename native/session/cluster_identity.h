// ClusterIdentity: the identity of a node in a cluster of numbered nodes that agree on their settings.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/settings.h"
#include "faro/status.h"
#include "links/identity.h"
#include "links/network.h"
#include "session/peers.h"

namespace faro::session {

class ClusterIdentity final : public links::Identity {
 public:
  uint64_t incarnation() const override { return hello.incarnation; }
  wire::Hello hello_to(uint32_t dialled) const override;
  wire::Hello answer_to(const wire::HelloHead& theirs) const override {
    return hello_to(theirs.node);
  }
  std::optional<links::Refusal> compare_heads(const wire::HelloHead& theirs,
                                              const std::string& from) const override;
  std::optional<links::Refusal> compare_clusters(const wire::Hello& theirs, const std::string& from,
                                                 std::optional<uint32_t> dialled) const override;
  std::optional<links::Refusal> compare(const wire::Hello& theirs, const std::string& from,
                                        std::optional<uint32_t> dialled) const override;
  std::string host_of(const wire::Hello& theirs) const override {
    return theirs.head.node < hello.node_count ? host_of_node(theirs.head.node) : std::string();
  }
  bool is_same_peer(const wire::Hello& linked, const wire::Hello& theirs) const override {
    return linked.head.node == theirs.head.node && linked.address == theirs.address;
  }
  std::string name_of(const wire::Hello& theirs, const std::string& from) const override;

  wire::Hello hello;  // expected_node is filled in per peer
  /// For which the certificate of a node has to be; empty: no node has the number.
  std::function<std::string(uint32_t)> host_of_node;
};

/// What `settings` say about this node. The caller fills in incarnation, address, host and transports.
wire::Hello hello_of(const base::Settings& settings);

/// The whole identity except the transports that it offers (hello.transports). `peers` outlive it. Draws the incarnation. Errors:
/// those of links::load_proof; system_error.
Result<ClusterIdentity> make_identity(const base::Settings& settings, const Peers& peers,
                                      links::Network& network);

}  // namespace faro::session
