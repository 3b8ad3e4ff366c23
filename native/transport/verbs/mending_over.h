// MendingOver: the steps by which a link over RDMA gets other queue pairs, in their order.
//
//   constructed   its queue pairs are destroyed
//   start         the peer's key is taken away
//                 the peer is told: other queue pairs, another key, and how far each ring is
//   finish        the link goes on from where the peer is
//
// What the peer had sent before finds neither a queue pair nor a key. So it cannot land on what was told since.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "base/return_if_error.h"
#include "transport/transport.h"
#include "transport/verbs/progress_exchange.h"
#include "transport/verbs/verbs_link.h"
#include "wire/verbs_message.h"

namespace faro::transport::verbs {

/// Closes a data connection: a link over RDMA has none of the session's. Errors: protocol_error.
Status refuse_stream(const DataStream& stream);

/// `Connecting`: VerbsConnecting, or what a test has in its place.
/// Threads, Blocks: as VerbsSetup.
template <typename Connecting>
class MendingOver : public LinkMending {
 public:
  /// Context and link outlive it. `connecting`: what its constructor takes.
  template <typename... Arguments>
  MendingOver(LinkContext& context, VerbsLink& link, Arguments&&... connecting)
      : link_(link), progress_(context, link), connecting_(std::forward<Arguments>(connecting)...) {
    link_.give_up_connections();
  }

  Status start() override {
    FARO_RETURN_IF_ERROR(link_.renew_key());
    FARO_RETURN_IF_ERROR(connecting_.start(link_.parts().incoming, link_.parts().messages));
    progress_.tell();
    return {};
  }
  Status on_message(std::span<const std::byte> message) override {
    if (const auto resume = wire::load_verbs_resume(message))
      return progress_.on_resume(*resume, message);
    return connecting_.on_message(message);
  }
  Status on_stream(DataStream stream) override { return refuse_stream(stream); }
  Status status() const override { return connecting_.status(); }
  bool ready() const override { return connecting_.connected() && progress_.complete(); }
  Status finish() override {
    const wire::VerbsMemory peer = connecting_.peer();
    return link_.take_connections(connecting_.take(), peer);
  }

 private:
  VerbsLink& link_;
  ProgressExchange progress_;
  Connecting connecting_;
};

}  // namespace faro::transport::verbs
