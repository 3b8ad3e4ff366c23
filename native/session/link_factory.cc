#include "session/link_factory.h"

#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

namespace faro::session {

LinkFactory::LinkFactory(links::Link::Owner& owner, const base::Settings& settings,
                         const Peers& peers, links::Network& network, links::Transports& transports,
                         Resources& resources)
    : owner_(owner),
      settings_(settings),
      peers_(peers),
      topology_(peers.topology()),
      network_(network),
      transports_(transports),
      resources_(resources) {}

std::unique_ptr<links::Link> LinkFactory::make(uint32_t peer, bool initiator, std::string address,
                                               std::unique_ptr<links::ControlConnection> connection,
                                               const wire::Hello& hello) {
  transport::LinkContext context;
  context.peer_node = peer;
  context.peer_name = peers_.full_name(peer);
  context.initiator = initiator;
  context.peer_address = std::move(address);
  context.peer_host = peers_.host(peer);
  context.outgoing = topology_.outgoing(peer);
  context.incoming = topology_.incoming(peer);
  if ((hello.head.features & wire::kLargeRings) == 0) {
    context.outgoing.ring_bytes = static_cast<uint32_t>(settings_.ring_bytes);
    context.incoming.ring_bytes = static_cast<uint32_t>(settings_.ring_bytes);
  }
  context.workers = resources_.workers();
  context.node_end = resources_.node_end();
  context.ready_group = resources_.ready_groups(peer);
  context.reactor = &network_.reactor();
  context.liveness = settings_.liveness_timeout_ms * base::kMillisecond;
  // The last node's entry may leave the port to the system; then it says where it listens.
  context.mending = {
      .limit = settings_.link_mend_ms * base::kMillisecond,
      .address = has_any_port(peers_.address(peer)) ? hello.address : peers_.address(peer),
      .number = ++made_};
  return std::make_unique<links::Link>(owner_, std::move(context), std::move(connection), hello);
}

Result<Resources::LinkNeed> LinkFactory::need(const links::LinkTable& links) const {
  Resources::LinkNeed need;
  Status failure;
  links.for_each([&](const links::Link& link) {
    const auto transport = transport_of(link);
    if (transport.ok()) {
      need.add(settings_, **transport, link.context().outgoing, link.context().incoming);
      need.memory_bytes += resources_.lane_bytes_on_demand(link.place());
    } else if (failure.ok()) {
      failure = transport.status();
    }
  });
  if (!failure.ok()) return failure;
  return need;
}

bool LinkFactory::can_set_up(const links::Link& link) {
  return link.state().is(links::LinkState::admitted) &&
         (!link.context().initiator || link.choice());
}

bool LinkFactory::is_awaited(const links::LinkTable& links) {
  bool any = false;
  links.for_each([&](const links::Link& link) { any = any || can_set_up(link); });
  return any;
}

Status LinkFactory::set_up(links::Link& link, bool checks_room) {
  const bool is_chosen = link.choice().has_value();
  const auto transport =
      is_chosen ? transports_.chosen(link.choice()->transport, link.peer()) : transport_of(link);
  if (!transport.ok() && is_chosen) {
    return base::error(Code::transport_unavailable, "{} chose transport {}: {}", link.name(),
                       link.choice()->transport, transport.status().message());
  }
  if (!transport.ok()) return transport.status();
  transport::StreamToken token;
  if (!is_chosen && !network_.draw_random(token)) {
    return Status(Code::system_error, "the system has no random numbers (getrandom)");
  }
  Resources::LinkNeed need;
  need.add(settings_, **transport, link.context().outgoing, link.context().incoming);
  FARO_ASSIGN_OR_RETURN(auto share, resources_.take_link(link.place(), need, checks_room));
  link.keep(std::move(share));
  note_turns(link, **transport);
  if (is_chosen) {
    link.begin(**transport, resources_.doorbell_memory());
  } else {
    link.choose(**transport, token, resources_.doorbell_memory());
  }
  return Status::Ok();
}

void LinkFactory::note_turns(const links::Link& link, const transport::Transport& transport) {
  if (told_of_turns_ || settings_.schedule == "off" || transport.capabilities().name != "verbs")
    return;
  told_of_turns_ = true;
  base::log(
      LogLevel::warning,
      "{}: network.schedule = {} has no effect on rows to {}, whose link is by verbs: only tcp "
      "has turns. Choose transport = tcp, or network.schedule = off. (Told once)",
      topology_.own().name, settings_.schedule, link.name());
}

Result<transport::Transport*> LinkFactory::transport_of(const links::Link& link) const {
  auto transport = transports_.choose(link.peer());
  if (transport.ok()) return transport;
  return base::error(Code::transport_unavailable,
                     "transport = {}: none works between {} and {}: {}", settings_.transport,
                     topology_.own().name, link.name(), transport.status().message());
}

}  // namespace faro::session
