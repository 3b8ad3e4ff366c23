// Bursts at full size, and what TLS may cost then. tests/concurrency/bursts_test.cc has smaller ones.
#include "support/burst.h"

namespace faro::test {
namespace {

class LargeBurst : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(over, LargeBurst, testing::Values("shm", "tcp", "tls", "tls_shm"),
                         [](const auto& over) { return over.param; });

TEST_P(LargeBurst, of_1000_channels_opens) { expect_burst_opens(GetParam(), 1000); }

TEST_P(LargeBurst, of_2000_channels_opens) { expect_burst_opens(GetParam(), 2000); }

TEST_P(LargeBurst, of_1000_channels_opens_and_is_mended) {
  expect_burst_is_mended(GetParam(), 1000);
}

TEST_P(LargeBurst, of_1000_channels_opens_though_connections_break_meanwhile) {
  expect_burst_opens_over_cuts(GetParam(), 1000);
}

TEST_P(LargeBurst, of_300_channels_is_mended_within_the_usual_time) {
  expect_burst_is_mended(GetParam(), 300);
}

TEST_P(LargeBurst, of_60_nodes_opens_a_session) { expect_session_opens(GetParam(), 60); }

TEST_P(LargeBurst, of_100_nodes_opens_a_session) { expect_session_opens(GetParam(), 100); }

}  // namespace
}  // namespace faro::test
