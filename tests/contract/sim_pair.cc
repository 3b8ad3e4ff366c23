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
  sim::SimTransport transports[2] = {{fabric, 0}, {fabric, 1}};
};

[[maybe_unused]] const bool sim_added = add_transport({
    .name = "sim",
    .open =
        [](const PairShape& shape) {
          const auto parts = std::make_shared<SimParts>();
          const auto of = [&](int side) {
            return std::shared_ptr<transport::Transport>(parts, &parts->transports[side]);
          };
          return ConnectedPair::open(shape, {.transports = {of(0), of(1)}, .pump = [parts] {
                                               const bool worked = parts->world.step();
                                               EXPECT_FALSE(parts->world.failed())
                                                   << parts->world.report();
                                               return worked;
                                             }});
        },
    .no_threads_because = "a simulated world runs in one thread",
    .rings_for_all_room_because = "the simulated transport tells senders of all room, so that "
                                  "needless wake-ups are drawn, too",
    .no_loss_because =
        "a simulated link notices at its next transfer, like a queue pair; see sim_transport_test",
});

}  // namespace
}  // namespace faro::test
