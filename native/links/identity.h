// Who this node is to its peers, and with whom it may be linked. The layer above knows: it is the one that
// numbers the nodes and has settings on which they must agree.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "faro/status.h"
#include "links/secret.h"
#include "wire/control.h"

namespace faro::links {

/// Why two nodes must not be linked. The text names both sides and both values, so that it reads
/// well on either.
struct Refusal {
  Status status;
  bool retry = false;     // the same dialling may succeed later
  bool ends_open = true;  // on the refusing side too: its cluster cannot become complete like this
  bool verified = true;   // false: by what somebody said who has not proved that it may join
};

/// Threads: network thread. Constant while there are handshakes.
class Identity {
 public:
  virtual ~Identity() = default;

  /// What this node tells that peer: one that it has dialled, or the number that the peer claims.
  virtual wire::Hello hello_to(uint32_t peer) const = 0;
  /// Compares what holds in every version. `from`: the other side's address, for messages.
  virtual std::optional<Refusal> compare_heads(const wire::HelloHead& theirs,
                                               const std::string& from) const = 0;
  /// Whether a HELLO of our version is of our cluster. `dialled`: the peer that was dialled, if this
  /// side did.
  virtual std::optional<Refusal> compare_clusters(const wire::Hello& theirs,
                                                  const std::string& from,
                                                  std::optional<uint32_t> dialled) const = 0;
  /// Compares the rest of it.
  virtual std::optional<Refusal> compare(const wire::Hello& theirs, const std::string& from,
                                         std::optional<uint32_t> dialled) const = 0;
  /// The host for which that peer's certificate has to be; empty: it can have none.
  virtual std::string host_of(const wire::HelloHead& theirs) const = 0;
  /// How messages call the sender of a HELLO.
  virtual std::string name_of(const wire::Hello& theirs, const std::string& from) const = 0;

  std::string name;                      // "node 0 (10.0.0.1:7000)"
  std::shared_ptr<const Secret> secret;  // null: whoever reaches this node may join
};

}  // namespace faro::links
