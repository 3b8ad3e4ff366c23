// Bursts of a size that takes seconds. tests/system/bursts_test.cc has them at full size.
#include "support/burst.h"

namespace faro::test {
namespace {

class Burst : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(over, Burst, testing::Values("shm", "tcp", "tls", "tls_shm"),
                         [](const auto& over) { return over.param; });

TEST_P(Burst, of_channels_opens) { expect_burst_opens(GetParam(), 300); }

TEST_P(Burst, of_channels_opens_and_is_mended) { expect_burst_is_mended(GetParam(), 100); }

TEST_P(Burst, of_channels_opens_though_connections_break_meanwhile) {
  expect_burst_opens_over_cuts(GetParam(), 300);
}

TEST_P(Burst, of_nodes_opens_a_session) { expect_session_opens(GetParam(), 12); }

}  // namespace
}  // namespace faro::test
