// Authentication: how the two sides of a connection prove who they are, between HELLO and LINK.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "faro/status.h"
#include "wire/control.h"

namespace faro::links {

/// One side of one authentication: a state machine that is fed the peer's payloads and answers with
/// its own. The dialling side begins. The link continues when both sides have sent everything and accept what
/// the other has sent; a peer's claim never replaces our own content(). Threads: network thread.
/// Blocks: never.
class Authentication {
 public:
  virtual ~Authentication() = default;
  virtual wire::AuthMethod method() const = 0;
  /// Takes what the peer sent (empty in the dialling side's first turn) and appends the answer.
  /// Any error refuses the link.
  virtual Status advance(std::span<const std::byte> received, std::vector<std::byte>& answer) = 0;
  /// This side has sent its last answer.
  virtual bool said_all() const = 0;
  /// The peer has shown that it may join.
  virtual bool content() const = 0;
};

/// Any peer that reaches the port and knows the cluster's id may join. For loopback, and for networks that
/// keep others out.
class NoAuthentication final : public Authentication {
 public:
  wire::AuthMethod method() const override { return wire::AuthMethod::none; }
  Status advance(std::span<const std::byte> received, std::vector<std::byte>&) override {
    if (!received.empty())
      return Status(Code::protocol_error, "authentication data where none is expected");
    return Status::Ok();
  }
  bool said_all() const override { return true; }
  bool content() const override { return true; }
};

}  // namespace faro::links
