// ProgressExchange: what the two sides of a link that is mended tell each other, so that it goes on where it stopped:
// RESUMEs, over the control connection, with the progress of all rings in their order.
#pragma once

#include <cstdint>
#include <span>

#include "transport/transport.h"
#include "transport/verbs/verbs_link.h"
#include "wire/verbs_message.h"

namespace faro::transport::verbs {

/// Threads: network thread. Blocks: never.
class ProgressExchange {
 public:
  /// Both outlive it.
  ProgressExchange(LinkContext& context, VerbsLink& link) : context_(context), link_(link) {}

  /// Tells the peer. The link's connections are given up.
  void tell();
  /// The peer tells: a RESUME, and all of its bytes. Errors: protocol_error.
  Status on_resume(const wire::VerbsResume& resume, std::span<const std::byte> message);
  /// The peer has told of every ring.
  bool complete() const { return heard_ == context_.outgoing.ring_count(); }

 private:
  LinkContext& context_;
  VerbsLink& link_;
  uint32_t heard_ = 0;  // outgoing rings
};

}  // namespace faro::transport::verbs
