// The model of a network: that its switch does what real ones are known to do, and what policies are worth over it.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lab/network/loads.h"
#include "lab/network/network.h"
#include "lab/network/switch.h"
#include "lab/network/trials.h"

namespace faro::network {
namespace {

std::vector<uint32_t> sources_of_transfers(Switch& between) {
  std::vector<uint32_t> sources;
  between.begin_transfers([&](const Packet& packet) { sources.push_back(packet.source); });
  std::ranges::sort(sources);
  return sources;
}

void send(Switch& between, const Packet& packet) {
  between.take_credit(packet.source);
  ASSERT_TRUE(between.arrive(packet));
}

TEST(Switch, of_one_queue_per_input_keeps_a_packet_behind_one_that_waits) {
  Switch between({.queues = Queues::per_input}, 3, 1);
  send(between, {0, 2});
  send(between, {0, 1});
  send(between, {1, 2});
  const std::vector<uint32_t> first = sources_of_transfers(between);
  ASSERT_EQ(first.size(), 1u) << "one of two for output 2, and output 1 is idle";
  between.end({first[0], 2});
  EXPECT_EQ(sources_of_transfers(between).size(), first[0] == 0 ? 2u : 1u);
}

TEST(Switch, of_one_queue_per_output_lets_every_packet_wait_for_its_own_output) {
  Switch between({.queues = Queues::per_output}, 3, 1);
  send(between, {0, 2});
  send(between, {0, 1});
  send(between, {1, 2});
  EXPECT_EQ(sources_of_transfers(between), (std::vector<uint32_t>{0, 0}));
}

TEST(Switch, gives_credits_for_its_buffer_and_one_back_when_a_packet_has_passed) {
  Switch between({.buffer_packets = 2}, 2, 1);
  send(between, {0, 1});
  EXPECT_TRUE(between.has_credit(0));
  send(between, {0, 1});
  EXPECT_FALSE(between.has_credit(0));
  EXPECT_TRUE(between.has_credit(1));
  EXPECT_EQ(sources_of_transfers(between).size(), 1u);
  EXPECT_FALSE(between.has_credit(0));
  between.end({0, 1});
  EXPECT_TRUE(between.has_credit(0));
}

TEST(Switch, without_credits_loses_what_finds_its_queue_full) {
  for (const Queues queues : {Queues::per_input, Queues::per_output}) {
    Switch between({.queues = queues, .full = Full::loss, .buffer_packets = 2}, 3, 1);
    send(between, {0, 1});
    send(between, {0, 1});
    EXPECT_TRUE(between.has_credit(0));
    between.take_credit(0);
    EXPECT_FALSE(between.arrive({0, 1}));
    between.take_credit(2);
    EXPECT_EQ(between.arrive({2, 1}), queues == Queues::per_input);
  }
}

TEST(NetworkModel, has_the_throughput_of_saturated_inputs_that_is_known_since_1987) {
  EXPECT_NEAR(saturated_share(2, 50'000, 3), 0.750, 0.750 * 0.02);
  EXPECT_NEAR(saturated_share(3, 50'000, 3), 0.683, 0.683 * 0.02);
  EXPECT_NEAR(saturated_share(4, 50'000, 3), 0.655, 0.655 * 0.02);
  EXPECT_NEAR(saturated_share(8, 50'000, 3), 0.618, 0.618 * 0.02);
  EXPECT_NEAR(saturated_share(64, 10'000, 3), 0.586, 0.586 * 0.02);
}

Trial of_policy(Policy policy, uint32_t pauses_per_mille = 5) {
  Trial trial;
  trial.policy = policy;
  trial.shape.pauses_per_mille = pauses_per_mille;
  return trial;
}

TEST(NetworkModel, is_the_same_for_the_same_seed_and_another_for_another) {
  for (const Policy policy : kPolicies) {
    Trial trial = of_policy(policy);
    const double once = share_of_rate(trial, 3000);
    EXPECT_EQ(once, share_of_rate(trial, 3000)) << policy_name(policy);
    trial.shape.seed = 2;
    EXPECT_NE(once, share_of_rate(trial, 3000)) << policy_name(policy);
  }
}

TEST(NetworkModel, takes_the_least_time_where_nobody_meets) {
  const Network::Load load = make_load(Sizes::even, 8, 256, 1);
  EXPECT_EQ(bound_of(load, 8), 7u * 256);
  const Finish own_first = finish(of_policy(Policy::own_first, 0), load);
  EXPECT_TRUE(own_first.is_complete);
  // The last packet passes the switch after its card.
  EXPECT_NEAR(own_first.times_bound, 1 + 1.0 / (7 * 256), 1e-9);
}

TEST(NetworkModel, delivers_everything_by_each_policy_through_each_switch) {
  for (const Policy policy : kPolicies) {
    for (const Queues queues : {Queues::per_input, Queues::per_output}) {
      for (const Full full : {Full::credits, Full::loss}) {
        for (const uint32_t hosts : {2u, 3u, 9u}) {
          Trial trial = of_policy(policy);
          trial.shape.hosts = hosts;
          trial.shape.between = {queues, full, 8};
          trial.turn_bytes = 256 << 10;
          const Finish result = finish(trial, make_load(Sizes::spread, hosts, 300, hosts));
          EXPECT_TRUE(result.is_complete) << policy_name(policy) << ", " << hosts << " hosts";
          EXPECT_GE(result.times_bound, 1);
          EXPECT_TRUE(full == Full::loss || result.lost_per_packet == 0);
        }
      }
    }
  }
}

TEST(NetworkModel, shows_what_phases_are_worth_where_inputs_have_one_queue) {
  const double random = share_of_rate(of_policy(Policy::random), 20'000);
  const double own_first = share_of_rate(of_policy(Policy::own_first), 20'000);
  const double barrier = share_of_rate(of_policy(Policy::barrier), 20'000);
  const double phases = share_of_rate(of_policy(Policy::phases), 20'000);
  EXPECT_GE(phases / random, 1.5);
  EXPECT_GE(phases / own_first, 1.3);
  EXPECT_GE(phases, barrier - 0.005);
}

TEST(NetworkModel, shows_that_they_are_worth_nothing_where_outputs_have_queues) {
  Trial trial = of_policy(Policy::own_first);
  trial.shape.between = {Queues::per_output, Full::credits, 1u << 30};
  const double own_first = share_of_rate(trial, 20'000);
  trial.policy = Policy::phases;
  EXPECT_NEAR(share_of_rate(trial, 20'000) / own_first, 1, 0.02);
}

TEST(NetworkModel, shows_that_skewed_sizes_want_grants_rather_than_a_barrier) {
  for (const Sizes sizes : {Sizes::spread, Sizes::few, Sizes::skewed}) {
    const Network::Load load = make_load(sizes, 16, 512, 5);
    const auto times = [&](Policy policy) {
      Trial trial = of_policy(policy);
      trial.shape.hosts = 16;
      trial.turn_bytes = 1 << 20;
      return finish(trial, load).times_bound;
    };
    EXPECT_LE(times(Policy::grants), 1.2) << sizes_name(sizes);
    EXPECT_LE(times(Policy::phases), 0.85 * times(Policy::barrier)) << sizes_name(sizes);
  }
}

}  // namespace
}  // namespace faro::network
