// SilentListener: somebody who listens where a node should be.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "support/held_address.h"

namespace faro::test {

/// Listens on loopback, at a port that the system chose; accepts, and says nothing by itself.
///
/// Threads: one. Blocks: accept_one.
class SilentListener {
 public:
  SilentListener() { EXPECT_EQ(listen(held_.socket(), 16), 0); }

  const std::string& address() const { return held_.address(); }
  /// Waits for somebody to connect, and keeps the connection.
  int accept_one() {
    accepted_.emplace_back(accept4(held_.socket(), nullptr, nullptr, SOCK_CLOEXEC));
    return accepted_.back().get();
  }

 private:
  const HeldAddress held_{"127.0.0.1:0"};
  std::vector<base::UniqueFd> accepted_;
};

}  // namespace faro::test
