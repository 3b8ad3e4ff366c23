// StandingRings: mends a link whose rings need no connection, as over shared memory: there is nothing to do.
#pragma once

#include <unistd.h>

#include <span>

#include "transport/transport.h"

namespace faro::transport {

/// Threads: network thread.
class StandingRings final : public LinkMending {
 public:
  Status start() override { return Status::Ok(); }
  Status on_message(std::span<const std::byte>) override {
    return {Code::protocol_error, "a setup message for rings that stand"};
  }
  Status on_stream(DataStream stream) override {
    if (stream.fd >= 0) ::close(stream.fd);
    return {Code::protocol_error, "a data connection for rings that stand"};
  }
  Status status() const override { return Status::Ok(); }
  bool ready() const override { return true; }
  Status finish() override { return Status::Ok(); }
};

}  // namespace faro::transport
