#include "endpoint/channel_link_factory.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "transport/tcp/socket_address.h"

namespace faro::endpoint {
namespace {

// An IPv4 peer may show itself as an IPv6 one.
std::string without_mapping(std::string host) {
  constexpr std::string_view kMapped = "::ffff:";
  const bool is_mapped = host.starts_with(kMapped) && host.find('.') != host.npos;
  return is_mapped ? host.substr(kMapped.size()) : host;
}

bool is_numeric(const std::string& host) {
  return host.find(':') != host.npos || host.find_first_not_of("0123456789.") == host.npos;
}

}  // namespace

std::string listening_address(const std::string& said, const std::string& from) {
  const std::string says = transport::tcp::host_of(said);
  const std::string comes = transport::tcp::host_of(from);
  const bool is_anywhere = says == "0.0.0.0" || says == "::";
  if (is_anywhere) return from.substr(0, from.rfind(':')) + said.substr(said.rfind(':'));
  const bool is_told = !is_numeric(says) || without_mapping(says) == without_mapping(comes);
  return is_told ? said : "";
}

ChannelLinkFactory::ChannelLinkFactory(links::Link::Owner& owner, const base::Settings& settings,
                                       const ChannelIdentity& identity, links::Network& network,
                                       uint32_t channel_limit)
    : owner_(owner),
      settings_(settings),
      identity_(identity),
      network_(network),
      budget_(std::make_shared<links::MemoryBudget>(settings.memory_limit_bytes,
                                                    network.wants_thread())),
      ready_groups_(channel_limit) {
  std::iota(ready_groups_.begin(), ready_groups_.end(), 0);
}

Status ChannelLinkFactory::open(const links::Transports& transports) {
  FARO_ASSIGN_OR_RETURN(rings_, RingSizes::make(settings_, transports.usable()));
  return Status::Ok();
}

std::unique_ptr<links::Link> ChannelLinkFactory::make(
    uint32_t index, PollerCore& poller, const std::string& dialled, const ChannelSpec& wanted,
    std::unique_ptr<links::ControlConnection> connection, const wire::Hello& hello) {
  const std::string& from = connection->peer_address();
  transport::LinkContext context;
  context.peer_node = index;
  context.peer_name = identity_.name_of(hello, from);
  context.initiator = !dialled.empty();
  context.peer_address = context.initiator ? from : hello.address;
  context.peer_host =
      context.initiator ? transport::tcp::host_of(dialled) : identity_.host_of(hello);
  context.outgoing = one_ring(wanted.send_bytes);
  context.incoming = one_ring(wanted.receive_bytes);
  context.workers = poller.end();
  context.ready_group = std::span(ready_groups_).subspan(index, 1);
  context.reactor = &network_.reactor();
  context.liveness = settings_.liveness_timeout_ms * base::kMillisecond;
  context.mending = {
      .limit = settings_.link_mend_ms * base::kMillisecond,
      .address = context.initiator ? dialled : listening_address(hello.address, from)};
  // Two endpoints may have many links, and either may have accepted them: counted by each, two would have one number.
  const auto number = std::as_writable_bytes(std::span(&context.mending.number, 1));
  if (wanted.ends_when_broken || !network_.draw_random(number)) context.mending.number = 0;
  wire::Hello kept = hello;
  kept.greeting = {};  // the channel's
  kept.settings = {};  // compared
  return std::make_unique<links::Link>(owner_, std::move(context), std::move(connection), kept);
}

Status ChannelLinkFactory::set_up(links::LinkTable& links, links::Link& link, PollerCore& poller,
                                  size_t greeting_bytes) {
  links.destroy_retired();  // their memory may be what this one needs
  const auto& choice = link.choice();
  FARO_ASSIGN_OR_RETURN(transport::Transport* const transport,
                        choice ? poller.transports().chosen(choice->transport, link.peer())
                               : poller.transports().choose(link.peer()));
  ring::Layout outgoing = link.context().outgoing;
  ring::Layout incoming = link.context().incoming;
  if (choice && choice->rings) {
    outgoing.ring_bytes = std::min(outgoing.ring_bytes, choice->rings->to_acceptor_bytes);
    incoming.ring_bytes = std::min(incoming.ring_bytes, choice->rings->to_dialler_bytes);
  }
  FARO_ASSIGN_OR_RETURN(
      auto share,
      budget_->take({.memory_bytes =
                         channel_bytes(*transport, outgoing, incoming, settings_) + greeting_bytes,
                     .descriptors = links::kDescriptorsPerLink,
                     .pinned_bytes = transport->pinned_bytes(outgoing, incoming)}));
  link.keep(std::move(share));
  const transport::DoorbellMemory doorbells = poller.waiting().memory();
  if (choice) {
    link.begin(*transport, doorbells);
    return Status::Ok();
  }
  transport::StreamToken token;
  if (!network_.draw_random(token))
    return Status(Code::system_error, "the system has no random numbers (getrandom)");
  link.choose(*transport, token, doorbells,
              wire::ChannelRings{.to_acceptor_bytes = incoming.ring_bytes,
                                 .to_dialler_bytes = outgoing.ring_bytes});
  return Status::Ok();
}

}  // namespace faro::endpoint
