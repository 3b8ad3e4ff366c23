#include "counters/descriptions.h"

#include <cstddef>

namespace faro::counters {
namespace {

constexpr Description describe(uint32_t id, Scope scope, Kind kind, size_t offset,
                               std::string_view name) {
  Description row{id, scope, kind, static_cast<uint32_t>(offset), {}};
  name.copy(row.name.data(), row.name.size() - 1);
  return row;
}

#define FARO_NODE_COUNTER(id, name, kind, help) \
  describe(id, Scope::node, Kind::kind, offsetof(NodeValues, name), #name),
#define FARO_PEER_COUNTER(id, name, kind, help) \
  describe(id, Scope::peer, Kind::kind, offsetof(PeerValues, name), #name),
#define FARO_WORKER_COUNTER(id, name, kind, help) \
  describe(id, Scope::worker, Kind::kind, offsetof(WorkerValues, name), #name),
#define FARO_OUTGOING_COUNTER(id, name, kind, help) \
  describe(id, Scope::outgoing, Kind::kind, offsetof(OutgoingValues, name), #name),
#define FARO_INCOMING_COUNTER(id, name, kind, help) \
  describe(id, Scope::incoming, Kind::kind, offsetof(IncomingValues, name), #name),
#define FARO_ENDPOINT_COUNTER(id, name, kind, help) \
  describe(id, Scope::endpoint, Kind::kind, offsetof(EndpointValues, name), #name),
#define FARO_POLLER_COUNTER(id, name, kind, help) \
  describe(id, Scope::poller, Kind::kind, offsetof(PollerValues, name), #name),
#define FARO_CHANNEL_COUNTER(id, name, kind, help) \
  describe(id, Scope::channel, Kind::kind, offsetof(ChannelValues, name), #name),
#define FARO_NODE_END_COUNTER(id, name, kind, help) \
  describe(id, Scope::node_end, Kind::kind, offsetof(NodeEndValues, name), #name),
#define FARO_READER_COUNTER(id, name, kind, help) \
  describe(id, Scope::reader, Kind::kind, offsetof(ReaderValues, name), #name),
#define FARO_OPERATOR_COUNTER(id, name, kind, help) \
  describe(id, Scope::an_operator, Kind::kind, offsetof(OperatorValues, name), #name),
constexpr Description kRows[] = {
#include "counters/counters.def"
};

#define FARO_HELP(id, name, kind, help) help,
#define FARO_NODE_COUNTER FARO_HELP
#define FARO_PEER_COUNTER FARO_HELP
#define FARO_WORKER_COUNTER FARO_HELP
#define FARO_OUTGOING_COUNTER FARO_HELP
#define FARO_INCOMING_COUNTER FARO_HELP
#define FARO_ENDPOINT_COUNTER FARO_HELP
#define FARO_POLLER_COUNTER FARO_HELP
#define FARO_CHANNEL_COUNTER FARO_HELP
#define FARO_NODE_END_COUNTER FARO_HELP
#define FARO_READER_COUNTER FARO_HELP
#define FARO_OPERATOR_COUNTER FARO_HELP
constexpr std::string_view kHelp[] = {
#include "counters/counters.def"
};

}  // namespace

std::span<const Description> descriptions() { return kRows; }
std::string_view help(size_t row) { return kHelp[row]; }

}  // namespace faro::counters
