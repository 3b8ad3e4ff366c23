// What this node says about itself to its peers, and with which peers it may be linked. The layer above
// implements this: it numbers the nodes and knows the settings on which they must agree.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/settings.h"
#include "faro/status.h"
#include "links/network.h"
#include "links/secret.h"
#include "wire/control.h"

namespace faro::links {

/// Why two nodes must not be linked. The text names both sides and both values, so that it makes sense on either
/// side.
struct Refusal {
  Status status;
  bool retry = false;     // dialling again later may succeed
  bool ends_open = true;  // on the refusing side too: its cluster cannot become complete like this
  bool verified = true;  // false: the reason comes from a peer that has not proved that it may join
  bool expected = false;  // nothing is wrong: not logged as a warning

  /// It is for a side that has to reach the very peer, and so must not be kept from it by others
  /// that answer at its address.
  bool is_final() const { return verified && !retry; }
};

/// Threads: network thread. Constant while there are handshakes.
class Identity {
 public:
  virtual ~Identity() = default;

  /// The incarnation of this node.
  virtual uint64_t incarnation() const = 0;
  /// What this node tells a peer that it dials, by the number that the layer above has given it.
  virtual wire::Hello hello_to(uint32_t dialled) const = 0;
  /// What it tells a peer that has dialled it.
  virtual wire::Hello answer_to(const wire::HelloHead& theirs) const = 0;
  /// Compares what holds in every version. `from`: the other side's address, for messages.
  virtual std::optional<Refusal> compare_heads(const wire::HelloHead& theirs,
                                               const std::string& from) const = 0;
  /// Whether a HELLO of our version is of our cluster. `dialled`: the peer that was dialled, if this
  /// side did.
  virtual std::optional<Refusal> compare_clusters(const wire::Hello& theirs,
                                                  const std::string& from,
                                                  std::optional<uint32_t> dialled) const = 0;
  /// Compares the rest of the HELLO.
  virtual std::optional<Refusal> compare(const wire::Hello& theirs, const std::string& from,
                                         std::optional<uint32_t> dialled) const = 0;
  /// The host that the certificate of a peer that has dialled must name; empty: no certificate fits.
  virtual std::string host_of(const wire::Hello& theirs) const = 0;
  /// Whether both HELLOs are of one peer, as far as it has been proved who they are: another one cannot mend its link.
  virtual bool is_same_peer(const wire::Hello& linked, const wire::Hello& theirs) const = 0;
  /// The name of a HELLO's sender in messages.
  virtual std::string name_of(const wire::Hello& theirs, const std::string& from) const = 0;

  std::string name;                      // "node 0 (10.0.0.1:7000)"
  std::shared_ptr<const Secret> secret;  // null: any peer that reaches this node may join
};

/// Takes the secret that `settings` name. Errors: those of load_secret; config_invalid if peers on other machines could
/// link without proving anything, and the user has not asked for that.
Status load_proof(const base::Settings& settings, const Network& network, Identity& identity);

}  // namespace faro::links
