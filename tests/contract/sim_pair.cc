// The simulated transport in the contract suite.
#include <gtest/gtest.h>

#include <memory>

#include "contract/connected_pair.h"
#include "contract/transport_pair.h"
#include "lab/simulation/transport/sim_transport.h"
#include "lab/simulation/transport/sim_world.h"

namespace faro::test {
namespace {

struct SimParts {
  sim::World world{1};
  sim::SimFabric fabric{world};
  sim::SimTransport transport{fabric};
};

[[maybe_unused]] const bool added = add_transport({
    .name = "sim",
    .open =
        [](const PairShape& shape) {
          const auto parts = std::make_shared<SimParts>();
          const std::shared_ptr<transport::Transport> transport(parts, &parts->transport);
          return ConnectedPair::open(shape, {.transports = {transport, transport}, .pump = [parts] {
                                               const bool worked = parts->world.step();
                                               EXPECT_FALSE(parts->world.failed())
                                                   << parts->world.report();
                                               return worked;
                                             }});
        },
    .no_threads_because = "a simulated world runs in one thread",
    .no_loss_because =
        "a simulated link notices at its next transfer, like a queue pair; see sim_transport_test",
});

}  // namespace
}  // namespace faro::test
