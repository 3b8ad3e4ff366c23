// UnauthenticatedPeers: hundreds of connections to a node's listener that never become a node's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/raw_peer.h"

namespace faro::test {

/// Threads: one. Owns: the connections; they end with it.
class UnauthenticatedPeers {
 public:
  /// A third says nothing, a third garbage, a third half of a HELLO.
  void come_to(const std::string& address, int count) {
    for (int i = 0; i < count; ++i) {
      RawPeer& peer = peers_.emplace_back(address);
      if (i % 3 == 1) peer.send_text("GET / HTTP/1.1\r\nHost: somebody else\r\n\r\n");
      if (i % 3 == 2) {
        peer.send_preamble();
        const uint32_t promised_bytes = 100;
        peer.send_bytes(std::as_bytes(std::span(&promised_bytes, 1)));
        peer.send_text("half of what was promised");
      }
    }
  }
  void leave() { peers_.clear(); }

 private:
  std::vector<RawPeer> peers_;
};

}  // namespace faro::test
