// Shared memory in the contract suite.
#include "contract/connected_pair.h"
#include "contract/transport_pair.h"
#include "transport/shm/shm_transport.h"

namespace faro::test {
namespace {

[[maybe_unused]] const bool shm_added = add_transport({
    .name = "shm",
    .open =
        [](const PairShape& shape) {
          const auto make = [] { return std::make_shared<transport::shm::ShmTransport>(); };
          return ConnectedPair::open(shape, {.transports = {make(), make()}});
        },
    .no_loss_because =
        "a process that vanishes is noticed by the control connection, not by shared memory",
});

}  // namespace
}  // namespace faro::test
