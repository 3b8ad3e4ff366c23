// Bugs that are planted on purpose are found by the simulation, each within 2000 seeds. This program has
// its own build of the files that can have one (base/planted.h); without a plant it must find nothing.
#include "base/planted.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <optional>
#include <string>

#include "lab/simulation/channels/channel_run.h"
#include "lab/simulation/churn/churn_run.h"
#include "lab/simulation/operators/aggregation_run.h"
#include "lab/simulation/operators/join_run.h"
#include "sim/node_lanes_run.h"

namespace faro {

namespace {
std::optional<base::Plant> the_plant;
}

bool base::with_plants::planted(Plant plant) noexcept { return the_plant == plant; }

namespace test {
namespace {

constexpr uint64_t kSeeds = 2000;

/// The seed that finds it, and how; 0 if none does.
uint64_t first_seed_that_finds(std::optional<base::Plant> plant, uint64_t seeds,
                               simulation::RunReport (&run)(uint64_t seed),
                               std::string& violation) {
  the_plant = plant;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    simulation::RunReport report = run(seed);
    if (report.violation.empty()) continue;
    violation = std::move(report.violation);
    return seed;
  }
  return 0;
}

void expect_found(base::Plant plant,
                  simulation::RunReport (&run)(uint64_t seed) = simulation::run_cluster_seed) {
  std::string violation;
  const uint64_t seed = first_seed_that_finds(plant, kSeeds, run, violation);
  EXPECT_NE(seed, 0u) << "not found in " << kSeeds << " seeds";
  std::printf("found by seed %llu: %s\n", static_cast<unsigned long long>(seed), violation.c_str());
}

TEST(PlantedBugs, without_a_plant_nothing_is_found) {
  std::string violation;
  for (auto* const run :
       {simulation::run_cluster_seed, simulation::run_channel_seed, run_node_lanes_seed,
        simulation::run_aggregation_seed, simulation::run_join_seed})
    EXPECT_EQ(first_seed_that_finds(std::nullopt, 100, *run, violation), 0u) << violation;
}

TEST(PlantedBugs, a_lost_notification_is_found) { expect_found(base::Plant::lost_notification); }

TEST(PlantedBugs, a_read_position_that_is_told_too_early_is_found) {
  expect_found(base::Plant::read_position_too_early);
}

TEST(PlantedBugs, a_slot_that_is_reused_too_early_is_found) {
  expect_found(base::Plant::slot_reused_too_early);
}

TEST(PlantedBugs, a_last_look_at_the_end_of_a_node_that_is_left_out_is_found) {
  expect_found(base::Plant::last_look_left_out, run_node_lanes_seed);
}

TEST(PlantedBugs, a_release_at_the_end_of_a_node_that_nobody_is_told_of_is_found) {
  expect_found(base::Plant::release_untried, run_node_lanes_seed);
}

TEST(PlantedBugs, a_full_ring_that_nobody_looks_at_again_is_found) {
  expect_found(base::Plant::full_for_ever);
}

TEST(PlantedBugs, a_rung_worker_that_does_not_look_is_found) {
  expect_found(base::Plant::rung_does_not_look, run_node_lanes_seed);
}

TEST(PlantedBugs, an_end_of_stream_before_the_last_rows_of_a_node_are_handed_out_is_found) {
  expect_found(base::Plant::finished_too_early);
}

TEST(PlantedBugs, a_sender_that_believes_the_first_worker_of_a_node_that_stops_is_found) {
  expect_found(base::Plant::first_stop_believed, run_node_lanes_seed);
}

TEST(PlantedBugs, rows_that_wait_for_a_worker_which_has_left_them_are_found) {
  expect_found(base::Plant::left_unnoticed);
}

TEST(PlantedBugs, a_row_that_a_woken_worker_does_not_take_and_no_other_is_woken_for_is_found) {
  expect_found(base::Plant::not_passed_on, run_node_lanes_seed);
}

TEST(PlantedBugs, a_frame_for_all_workers_of_a_node_that_the_first_gives_back_is_found) {
  expect_found(base::Plant::read_by_one);
}

TEST(PlantedBugs, a_copy_for_all_workers_of_a_node_that_is_charged_for_each_is_found) {
  expect_found(base::Plant::charged_per_reader, run_node_lanes_seed);
}

TEST(PlantedBugs, a_skipped_overflow_is_found) { expect_found(base::Plant::skipped_overflow); }

TEST(PlantedBugs, a_member_of_a_group_that_is_skipped_is_found) {
  expect_found(base::Plant::skipped_member);
}

TEST(PlantedBugs, marks_that_are_kept_from_a_former_life_are_found) {
  expect_found(base::Plant::kept_marks);
}

TEST(PlantedBugs, a_row_that_is_lost_by_its_commit_is_found) {
  expect_found(base::Plant::lost_commit);
}

TEST(PlantedBugs, a_frame_that_is_given_back_while_it_is_held_is_found) {
  expect_found(base::Plant::frame_given_back, simulation::run_channel_seed);
}

TEST(PlantedBugs, a_drained_channel_that_is_left_too_early_is_found) {
  expect_found(base::Plant::left_too_early, simulation::run_channel_seed);
}

TEST(PlantedBugs, a_drained_channel_that_is_left_before_the_other_side_knows_is_found) {
  expect_found(base::Plant::left_unacknowledged, simulation::run_channel_seed);
}

TEST(PlantedBugs, a_message_that_is_resent_though_it_has_come_is_found) {
  expect_found(base::Plant::resent_twice);
  expect_found(base::Plant::resent_twice, simulation::run_channel_seed);
}

TEST(PlantedBugs, a_frame_that_is_resent_though_it_has_come_is_found) {
  expect_found(base::Plant::frame_resent);
  expect_found(base::Plant::frame_resent, simulation::run_channel_seed);
}

TEST(PlantedBugs, a_hot_key_whose_build_rows_are_at_some_workers_only_is_found) {
  expect_found(base::Plant::hot_key_at_some_workers, simulation::run_join_seed);
}

TEST(PlantedBugs, silence_that_nobody_notices_is_found) {
  expect_found(base::Plant::silence_unnoticed);
  expect_found(base::Plant::silence_unnoticed, simulation::run_channel_seed);
}

TEST(PlantedBugs, a_link_that_is_mended_for_ever_is_found) {
  expect_found(base::Plant::mended_for_ever);
}

TEST(PlantedBugs, a_former_incarnation_that_is_believed_to_live_is_found) {
  expect_found(base::Plant::old_incarnation_believed);
  expect_found(base::Plant::old_incarnation_believed, simulation::run_channel_seed);
}

TEST(PlantedBugs, a_drained_node_that_is_let_go_of_too_early_is_found) {
  expect_found(base::Plant::drained_too_early);
}

TEST(PlantedBugs, an_index_that_is_given_again_while_frames_are_held_is_found) {
  expect_found(base::Plant::index_given_again, simulation::run_channel_seed);
}

TEST(PlantedBugs, a_link_that_is_given_back_while_frames_are_held_is_found) {
  expect_found(base::Plant::link_given_back, simulation::run_channel_seed);
}

TEST(PlantedBugs, a_partition_that_is_freed_before_its_last_state_is_found) {
  expect_found(base::Plant::partition_freed, simulation::run_aggregation_seed);
  expect_found(base::Plant::partition_freed, simulation::run_join_seed);
}

TEST(PlantedBugs, a_spilled_partition_that_is_forgotten_is_found) {
  expect_found(base::Plant::partition_forgotten, simulation::run_aggregation_seed);
  expect_found(base::Plant::partition_forgotten, simulation::run_join_seed);
}

TEST(PlantedBugs, a_row_that_matches_by_its_key_though_the_condition_failed_is_found) {
  expect_found(base::Plant::matched_by_key, simulation::run_join_seed);
}

TEST(PlantedBugs, a_pass_that_is_left_out_is_found) {
  expect_found(base::Plant::pass_left_out, simulation::run_join_seed);
}

TEST(PlantedBugs, a_turn_that_is_lost_with_its_node_is_found) {
  expect_found(base::Plant::turn_lost);
}

TEST(PlantedBugs, an_empty_round_that_never_ends_is_found) {
  expect_found(base::Plant::round_without_end);
}

TEST(PlantedBugs, rows_of_a_sleeper_that_are_held_and_forgotten_are_found) {
  expect_found(base::Plant::sleeper_forgotten);
}

TEST(PlantedBugs, a_turn_that_is_believed_twice_is_found) {
  expect_found(base::Plant::turn_believed_twice);
}

TEST(PlantedBugs, room_that_is_not_told_is_found) {
  expect_found(base::Plant::lost_room, simulation::run_channel_seed);
}

}  // namespace
}  // namespace test
}  // namespace faro
