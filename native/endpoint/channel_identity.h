// ChannelIdentity: what an endpoint says of itself to peers, and with which of them it may have channels.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"
#include "faro/endpoint.h"
#include "faro/status.h"
#include "links/identity.h"
#include "links/network.h"

namespace faro::endpoint {

/// A peer is known by a name and an incarnation. Whoever proves to know the secret or shows a certificate may link.
class ChannelIdentity final : public links::Identity {
 public:
  uint64_t incarnation() const override { return hello.incarnation; }
  wire::Hello hello_to(uint32_t dialled) const override;
  wire::Hello answer_to(const wire::HelloHead&) const override { return hello; }
  std::optional<links::Refusal> compare_heads(const wire::HelloHead& theirs,
                                              const std::string& from) const override;
  std::optional<links::Refusal> compare_clusters(const wire::Hello& theirs, const std::string& from,
                                                 std::optional<uint32_t> dialled) const override;
  std::optional<links::Refusal> compare(const wire::Hello& theirs, const std::string& from,
                                        std::optional<uint32_t> dialled) const override;
  std::string host_of(const wire::Hello& theirs) const override;
  bool is_same_peer(const wire::Hello& linked, const wire::Hello& theirs) const override {
    return linked.address == theirs.address;
  }
  std::string name_of(const wire::Hello& theirs, const std::string& from) const override;

  wire::Hello hello;
  std::vector<ChannelSpec> asked;  // by the index of the channel: what this side asks for
};

/// The whole identity but the transports that it offers. Draws the incarnation. Errors: those of links::load_proof;
/// system_error.
Result<ChannelIdentity> make_channel_identity(const base::Settings& settings,
                                              const EndpointSpec& spec, links::Network& network);

}  // namespace faro::endpoint
