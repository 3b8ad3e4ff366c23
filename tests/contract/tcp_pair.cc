// TCP in the contract suite.
#include "contract/connected_pair.h"
#include "contract/transport_pair.h"
#include "transport/tcp/tcp_transport.h"

namespace faro::test {
namespace {

[[maybe_unused]] const bool added = add_transport({
    .name = "tcp",
    .open =
        [](const PairShape& shape) {
          const auto make = [] { return std::make_shared<transport::tcp::TcpTransport>(); };
          return ConnectedPair::open(shape, {.transports = {make(), make()}, .pump = {}});
        },
    .no_threads_because = {},
    .no_loss_because = {},
});

}  // namespace
}  // namespace faro::test
