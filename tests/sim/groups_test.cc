// Rows that are sent to groups of receivers (ShuffleSpec::groups): who gets them, in which frames, and what a member
// without room keeps from the others. By the simulated clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "faro/session.h"
#include "faro/shuffle.h"
#include "shuffle/overflow/overflow.h"
#include "sim/query_on_nodes.h"
#include "support/expect.h"

namespace faro::test {
namespace {

using Groups = std::vector<std::vector<uint32_t>>;
using shuffle::Overflow;

constexpr uint32_t kFrame = 4096 / 4;                 // a block
constexpr uint64_t kRowsInBlock = (kFrame - 16) / 8;  // of 8 bytes
constexpr uint64_t kCharged = kFrame + Overflow::kAllocatorBytes + Overflow::kDescriptionBytes;

std::span<const std::byte> bytes_of(const uint64_t& row) {
  return std::as_bytes(std::span(&row, 1));
}

/// Node 0 sends, to nodes from 1 on: receiver r is worker r + 1. Rows are integers of 8 bytes, unless a test says otherwise.
class GroupsOfReceivers : public QueryOnNodes {
 protected:
  using Rows = std::vector<uint64_t>;

  void start(uint32_t receivers, NumberSettings settings = {}) {
    settings.merge(NumberSettings{{"overflow.memory_bytes", 1 << 20}});
    QueryOnNodes::start(receivers + 1, settings);
    for (uint32_t r = 0; r < receivers; ++r) receivers_.push_back(r + 1);
    got_.resize(receivers);
  }
  ShuffleSpec spec(uint32_t stage, Groups groups = {}) const {
    ShuffleSpec what{query_, stage, row_bytes_, {0}, receivers_};
    what.groups = std::move(groups);
    return what;
  }
  static Shuffle open_as(Worker& worker, const ShuffleSpec& what) {
    Result<Shuffle> opened = worker.open_shuffle(what);
    EXPECT_TRUE(is_ok(opened));
    return opened.ok() ? std::move(*opened) : Shuffle();
  }
  /// The sender's part: it ends as `send` leaves it.
  void spawn_sender(Groups groups, std::function<void(Shuffle& shuffle)> send) {
    spawn(0, [=, this](Worker& worker) {
      Shuffle shuffle = open_as(worker, spec(0, groups));
      send(shuffle);
      EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
      shuffle.close();
    });
  }
  /// A receiver that takes all. It does not know of groups.
  void spawn_receiver(uint32_t receiver, base::Nanoseconds begins = 0) {
    spawn(receiver + 1, [=, this](Worker& worker) {
      Shuffle shuffle = open_as(worker, spec(0));
      sleep_until(begins);
      take_all(shuffle, receiver);
    });
  }
  void spawn_receivers() {
    for (uint32_t r = 0; r < receivers_.size(); ++r) spawn_receiver(r);
  }
  /// Receivers that get nothing, since the query fails.
  void spawn_receivers_that_fail() {
    for (const uint32_t worker_of : receivers_) {
      spawn(
          worker_of,
          [this](Worker& worker) {
            Shuffle shuffle = open_as(worker, spec(0));
            Batch batch;
            EXPECT_EQ(shuffle.receiver()->receive(batch), Outcome::failed);
            shuffle.close();
          },
          Outcome::failed);
    }
  }
  void take_all(Shuffle& shuffle, uint32_t receiver) {
    Batch batch;
    while (shuffle.receiver()->receive(batch) == Outcome::done) note(receiver, batch);
    shuffle.close();
  }
  void note(uint32_t receiver, const Batch& batch) {
    for (const std::span<const std::byte> row : batch.each_row()) {
      uint64_t value = 0;
      std::memcpy(&value, row.data(), std::min(row.size(), sizeof value));
      got_[receiver].push_back(value);
    }
  }
  /// The rows of one group: tens of thousands tell which.
  Rows of_group(uint32_t receiver, uint64_t group) const {
    Rows rows;
    std::ranges::copy_if(got_[receiver], std::back_inserter(rows),
                         [&](uint64_t row) { return row / 10'000 == group; });
    return rows;
  }
  static Rows sequence(uint64_t group, uint64_t count) {
    Rows rows(count);
    std::iota(rows.begin(), rows.end(), group * 10'000);
    return rows;
  }
  /// That the receiver got that many rows of the group, in order.
  void expect_rows(uint32_t receiver, uint64_t group, uint64_t count) {
    EXPECT_EQ(of_group(receiver, group), sequence(group, count))
        << "receiver " << receiver << ", group " << group;
  }
  void expect_nothing_charged() {
    for (uint32_t node = 0; node < cluster_->node_count(); ++node)
      EXPECT_EQ(metrics(node).overflow_memory_bytes, 0u) << node;
  }
  static void send_rows_to(Shuffle& shuffle, uint32_t group, uint64_t count, uint64_t from = 0) {
    const RowSender<uint64_t> sender = *shuffle.sender<uint64_t>();
    for (uint64_t i = from; i < from + count; ++i)
      ASSERT_EQ(sender.send(group, group * 10'000 + i), Outcome::done);
  }

  uint32_t row_bytes_ = 8;
  std::vector<uint32_t> receivers_;  // worker numbers
  std::vector<Rows> got_;            // by receiver, in order
};

TEST_F(GroupsOfReceivers, every_member_gets_the_rows_once_and_in_order) {
  start(3);
  spawn_sender({{0, 1, 2}, {2, 0}}, [](Shuffle& shuffle) {
    EXPECT_EQ(shuffle.sender()->receiver_count(), 2u);
    send_rows_to(shuffle, 0, 3000);
    send_rows_to(shuffle, 1, 700);
  });
  spawn_receivers();
  run();
  for (uint32_t r = 0; r < 3; ++r) expect_rows(r, 0, 3000);
  for (const uint32_t r : {0, 2}) expect_rows(r, 1, 700);
  EXPECT_EQ(got_[1].size(), 3000u);
  expect_nothing_charged();
}

// Rows alternate, and their receivers keep up. A frame has a block's worth of rows, as if the other group were not there.
TEST_F(GroupsOfReceivers, that_overlap_do_not_cut_each_others_frames) {
  start(3);
  constexpr uint64_t kBlocks = 20;
  std::vector<SentMetrics> sent;
  spawn(0, [&](Worker& worker) {
    Shuffle shuffle = open_as(worker, spec(0, {{0, 1}, {1, 2}}));
    const RowSender<uint64_t> sender = *shuffle.sender<uint64_t>();
    for (uint64_t i = 0; i < kBlocks * kRowsInBlock; ++i) {
      for (const uint32_t group : {0, 1})
        ASSERT_EQ(sender.send(group, group * 10'000 + i, Wait::none()), Outcome::done);
      if (i % kRowsInBlock == 0) cluster_->sleep(1'000'000);
    }
    EXPECT_EQ(sender.finish(), Outcome::done);
    sent = shuffle.metrics().sent;
    shuffle.close();
  });
  spawn_receivers();
  run();
  expect_rows(1, 0, kBlocks * kRowsInBlock);
  expect_rows(1, 1, kBlocks * kRowsInBlock);
  EXPECT_EQ(sent[1].rows, 2 * kBlocks * kRowsInBlock);
  EXPECT_EQ(sent[1].frames, 2 * kBlocks);
  for (const uint32_t r : {0, 2}) EXPECT_EQ(sent[r].frames, kBlocks) << r;
}

TEST_F(GroupsOfReceivers, of_one_are_receivers_and_take_no_block) {
  start(2);
  spawn_sender({{1}, {0}}, [](Shuffle& shuffle) { send_rows_to(shuffle, 0, 1000); });
  spawn_receivers();
  run();
  EXPECT_EQ(got_[0].size(), 0u);
  expect_rows(1, 0, 1000);
  EXPECT_EQ(metrics(0).overflow_memory_peak_bytes, 0u);
}

// Many partitions may belong to few receivers.
TEST_F(GroupsOfReceivers, of_one_receiver_again_do_not_cut_its_frames_either) {
  start(1);
  std::vector<SentMetrics> sent;
  spawn(0, [&](Worker& worker) {
    Shuffle shuffle = open_as(worker, spec(0, {{0}, {0}, {0}}));
    EXPECT_EQ(metrics(0).overflow_memory_bytes, 2 * kCharged);
    const RowSender<uint64_t> sender = *shuffle.sender<uint64_t>();
    for (uint64_t i = 0; i < 4 * kRowsInBlock; ++i) {
      for (const uint32_t group : {1, 2})
        ASSERT_EQ(sender.send(group, group * 10'000 + i, Wait::none()), Outcome::done);
      if (i % kRowsInBlock == 0) cluster_->sleep(1'000'000);
    }
    send_rows_to(shuffle, 0, 10);
    EXPECT_EQ(sender.finish(), Outcome::done);
    sent = shuffle.metrics().sent;
    shuffle.close();
  });
  spawn_receivers();
  run();
  for (const uint64_t group : {1, 2}) expect_rows(0, group, 4 * kRowsInBlock);
  expect_rows(0, 0, 10);
  EXPECT_EQ(sent[0].frames, 4u + 4u + 1u);
}

TEST_F(GroupsOfReceivers, take_a_block_each_from_the_opening_to_the_close) {
  start(2);
  spawn(0, [&](Worker& worker) {
    Shuffle shuffle = open_as(worker, spec(0, {{0, 1}, {1}, {1, 0}}));
    EXPECT_EQ(metrics(0).overflow_memory_bytes, 2 * kCharged);
    send_rows_to(shuffle, 0, 1000);
    EXPECT_EQ(metrics(0).overflow_memory_peak_bytes, 2 * kCharged);
    EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
    shuffle.close();
    EXPECT_EQ(metrics(0).overflow_memory_bytes, 0u);
  });
  spawn_receivers();
  run();
}

// A receiver in no group, in one and in two: each has one end of stream, behind all rows.
TEST_F(GroupsOfReceivers, end_once_for_each_receiver) {
  start(3);
  spawn_sender({{0, 1}, {1}}, [](Shuffle& shuffle) {
    send_rows_to(shuffle, 0, 5);
    send_rows_to(shuffle, 1, 6);
  });
  spawn_receivers();
  run();
  EXPECT_EQ(got_[0].size(), 5u);
  EXPECT_EQ(got_[1].size(), 11u);
  EXPECT_EQ(got_[2].size(), 0u);
}

// --- a member without room

// Receiver 0 does not look for half a second, a small part of the drain delay.
TEST_F(GroupsOfReceivers, wait_for_a_member_without_room_which_keeps_nothing_from_the_others) {
  start(2);
  uint64_t sent = 0;
  spawn_sender({{0, 1}}, [&](Shuffle& shuffle) {
    const RowSender<uint64_t> sender = *shuffle.sender<uint64_t>();
    for (int looks = 0; looks < 5; ++looks) {
      while (sender.send(0, sent, Wait::none()) == Outcome::done) ++sent;
      cluster_->sleep(1'000'000);  // receiver 1 keeps up
    }
    EXPECT_GE(shuffle.metrics().sent[0].no_room, 1u);
    EXPECT_EQ(sender.send(0, sent, Wait::at_most(std::chrono::milliseconds(1))), Outcome::deadline);
    sleep_until(kSecond / 4);
    // All that was written has gone to the other.
    EXPECT_EQ(shuffle.metrics().sent[1].rows, sent);
    EXPECT_LT(shuffle.metrics().sent[0].rows, sent);
    EXPECT_EQ(sender.send(0, sent), Outcome::done);
    ++sent;
  });
  spawn_receiver(0, kSecond / 2);
  spawn_receiver(1);
  run();
  EXPECT_LT(passed(), kSecond);
  for (uint32_t r = 0; r < 2; ++r) expect_rows(r, 0, sent);
  EXPECT_EQ(at(0).frames_out_overflow, 0u);
}

TEST_F(GroupsOfReceivers, that_are_flushed_go_to_those_that_have_room) {
  start(2);
  spawn_sender({{0, 1}, {0}}, [&](Shuffle& shuffle) {
    const RowSender<uint64_t> sender = *shuffle.sender<uint64_t>();
    uint64_t filled = 10'000;
    while (sender.send(1, filled, Wait::none()) == Outcome::done) ++filled;
    send_rows_to(shuffle, 0, 3);
    EXPECT_EQ(sender.flush(), Outcome::done);
    EXPECT_EQ(shuffle.metrics().sent[1].rows, 3u);
    const auto has_come = [&] { return got_[1].size() == 3; };
    while (!has_come()) cluster_->sleep(1'000'000);
    EXPECT_LT(passed(), kSecond / 2);
    EXPECT_EQ(sender.send(0, 3), Outcome::done);
  });
  spawn_receiver(0, kSecond / 2);
  spawn(2, [&](Worker& worker) {
    Shuffle shuffle = open_as(worker, spec(0));
    take_all(shuffle, 1);
  });
  run();
  expect_rows(1, 0, 4);
  expect_rows(0, 0, 4);
}

// Receiver 1 gets FINISH while receiver 0 has no room for the rows before it.
TEST_F(GroupsOfReceivers, finish_to_those_that_have_room_first) {
  start(2);
  base::Nanoseconds ended = 0;
  spawn_sender({{0, 1}}, [&](Shuffle& shuffle) {
    const RowSender<uint64_t> sender = *shuffle.sender<uint64_t>();
    for (uint64_t i = 0; sender.send(0, i, Wait::none()) == Outcome::done; ++i) {
    }
    EXPECT_EQ(sender.finish(Wait::none()), Outcome::would_wait);
  });
  spawn_receiver(0, kSecond / 2);
  spawn(2, [&](Worker& worker) {
    Shuffle shuffle = open_as(worker, spec(0));
    take_all(shuffle, 1);
    ended = passed();
  });
  run();
  EXPECT_LT(ended, kSecond / 4);
  EXPECT_EQ(got_[0], got_[1]);
}

// The sender holds a batch of its own, so it must not wait (HC-1): what has no room is queued for receiver 0 alone.
TEST_F(GroupsOfReceivers, are_queued_for_the_member_without_room_alone_while_batches_are_held) {
  start(2);
  constexpr uint64_t kRows = 20 * kRowsInBlock;
  std::vector<SentMetrics> sent;
  spawn(0, [&](Worker& worker) {
    Shuffle own = open(worker, query_, 1, 8, {0}, {0});
    Shuffle shuffle = open_as(worker, spec(0, {{0, 1}}));
    EXPECT_EQ(own.sender()->send(0, bytes_of(7)), Outcome::done);
    Batch held;
    EXPECT_EQ(own.receiver()->receive(held), Outcome::done);
    const RowSender<uint64_t> sender = *shuffle.sender<uint64_t>();
    for (uint64_t i = 0; i < kRows; ++i) {
      ASSERT_EQ(sender.send(0, i), Outcome::done);
      if (i % kRowsInBlock == 0) cluster_->sleep(1'000'000);  // receiver 1 keeps up
    }
    held.release();
    EXPECT_EQ(sender.finish(), Outcome::done);
    sent = shuffle.metrics().sent;
    shuffle.close();
    end(own);
  });
  spawn_receiver(0, kSecond / 2);
  spawn_receiver(1);
  run();
  EXPECT_GT(sent[0].rows_out_overflow, kRows / 2);
  EXPECT_EQ(sent[1].rows_out_overflow, 0u);
  for (uint32_t r = 0; r < 2; ++r) expect_rows(r, 0, kRows);
  expect_nothing_charged();
}

TEST_F(GroupsOfReceivers, answer_holding_where_rows_may_not_be_queued) {
  start(2);
  uint64_t sent = 0;
  spawn(0, [&](Worker& worker) {
    Shuffle own = open(worker, query_, 1, 8, {0}, {0});
    Shuffle shuffle = open_as(worker, spec(0, {{0, 1}}));
    EXPECT_EQ(own.sender()->send(0, bytes_of(7)), Outcome::done);
    Batch held;
    EXPECT_EQ(own.receiver()->receive(held), Outcome::done);
    const auto fill = [&](size_t i, std::byte* to) {
      const uint64_t row = sent + i;
      std::memcpy(to, &row, sizeof row);
    };
    const auto key = [](size_t) { return uint64_t{0}; };
    const RowSender<uint64_t> sender = *shuffle.sender<uint64_t>();
    const Sent written = sender.write_all(10'000, FinalizerHash(), key, fill);
    EXPECT_EQ(written.outcome, Outcome::holding);
    sent = written.rows;
    EXPECT_EQ(at(0).frames_out_overflow, 0u);
    held.release();
    EXPECT_EQ(sender.send(0, sent), Outcome::done);
    ++sent;
    EXPECT_EQ(sender.finish(), Outcome::done);
    shuffle.close();
    end(own);
  });
  spawn_receiver(0, kSecond / 2);
  spawn_receiver(1);
  run();
  for (uint32_t r = 0; r < 2; ++r) expect_rows(r, 0, sent);
}

// --- stops

TEST_F(GroupsOfReceivers, go_on_without_a_member_that_has_stopped) {
  start(2);
  spawn_sender({{0, 1}, {0}, {1}}, [&](Shuffle& shuffle) {
    const RowSender<uint64_t> sender = *shuffle.sender<uint64_t>();
    send_rows_to(shuffle, 0, 10);
    cluster_->sleep(kSecond / 10);  // receiver 0 stops
    EXPECT_EQ(sender.flush(), Outcome::done);
    EXPECT_EQ(at(0).rows_dropped, 10u);
    send_rows_to(shuffle, 0, 1000, 10);
    EXPECT_EQ(sender.send(1, 10'000), Outcome::done);  // dropped: others have not stopped
  });
  spawn(1, [&](Worker& worker) {
    Shuffle shuffle = open_as(worker, spec(0));
    (void)shuffle.receiver()->stop();
    Batch batch;
    EXPECT_EQ(shuffle.receiver()->receive(batch), Outcome::end_of_stream);
    shuffle.close();
  });
  spawn_receiver(1);
  run();
  expect_rows(1, 0, 1010);
  EXPECT_EQ(at(0).rows_dropped, 1011u);
  EXPECT_EQ(at(0).rows_sent, 1010u);
}

TEST_F(GroupsOfReceivers, without_a_member_are_passed_over_until_none_has_one) {
  start(3);
  spawn_sender({{0, 1}, {2}}, [&](Shuffle& shuffle) {
    const RowSender<uint64_t> sender = *shuffle.sender<uint64_t>();
    send_rows_to(shuffle, 0, 10);
    cluster_->sleep(kSecond / 10);  // receivers 0 and 1 stop
    EXPECT_EQ(sender.flush(), Outcome::done);
    EXPECT_EQ(sender.send(0, 10), Outcome::done);
    EXPECT_EQ(at(0).rows_dropped, 22u);
    RowClaim claim;
    EXPECT_EQ(sender.claim(0, 8, claim), Outcome::done);
    EXPECT_TRUE(claim.commit().ok());
    EXPECT_EQ(at(0).rows_dropped, 24u);
    const std::array<uint64_t, 4> rows{10'000, 1, 10'001, 2};
    const std::array<uint32_t, 4> to{1, 0, 1, 0};
    const Sent sent = sender.send_rows(std::as_bytes(std::span(rows)).data(), 4, to.data());
    EXPECT_EQ(sent.rows, 4u);
    EXPECT_EQ(sent.outcome, Outcome::done);
    EXPECT_EQ(sender.broadcast(bytes_of(10'002)), Outcome::done);
    const std::array<uint64_t, 3> more{10'003, 10'004, 10'005};
    EXPECT_EQ(sender.broadcast_all(more).rows, 3u);
    const auto to_both = [](uint64_t row) { return row; };
    const Sent by_key = sender.send_all(std::span<const uint64_t>(more), FinalizerHash(), to_both);
    EXPECT_EQ(by_key.rows, 3u);
    EXPECT_EQ(by_key.outcome, Outcome::done);
    EXPECT_EQ(sender.flush(), Outcome::done);
    cluster_->sleep(kSecond / 10);  // receiver 2 has them, and stops
    EXPECT_EQ(sender.flush(), Outcome::done);
    for (const uint32_t group : {0, 1}) {
      EXPECT_EQ(sender.send(group, 1), Outcome::stopped);
      EXPECT_EQ(sender.claim(group, 8, claim), Outcome::stopped);
    }
    EXPECT_EQ(sender.broadcast(bytes_of(1)), Outcome::stopped);
  });
  for (uint32_t r = 0; r < 2; ++r) {
    spawn(r + 1, [&](Worker& worker) {
      Shuffle shuffle = open_as(worker, spec(0));
      (void)shuffle.receiver()->stop();
      Batch batch;
      EXPECT_EQ(shuffle.receiver()->receive(batch), Outcome::end_of_stream);
      shuffle.close();
    });
  }
  spawn(3, [&](Worker& worker) {
    Shuffle shuffle = open_as(worker, spec(0));
    Batch batch;
    while (of_group(2, 1).size() < 6) {
      EXPECT_EQ(shuffle.receiver()->receive(batch), Outcome::done);
      note(2, batch);
    }
    (void)shuffle.receiver()->stop();
    take_all(shuffle, 2);
  });
  run();
  Rows first = of_group(2, 1);
  first.resize(6);
  EXPECT_EQ(first, sequence(1, 6));
}

// Receiver 0 stops while a closed block waits for room in its ring alone.
TEST_F(GroupsOfReceivers, forget_a_block_that_waits_for_a_member_that_stops) {
  start(2);
  uint64_t sent = 0;
  spawn_sender({{0, 1}}, [&](Shuffle& shuffle) {
    const RowSender<uint64_t> sender = *shuffle.sender<uint64_t>();
    while (sender.send(0, sent, Wait::none()) == Outcome::done) ++sent;
    for (uint64_t more = sent + 1000; sent < more; ++sent)
      ASSERT_EQ(sender.send(0, sent), Outcome::done);
  });
  spawn(1, [&](Worker& worker) {
    Shuffle shuffle = open_as(worker, spec(0));
    cluster_->sleep(kSecond / 4);
    (void)shuffle.receiver()->stop();
    Batch batch;
    EXPECT_EQ(shuffle.receiver()->receive(batch), Outcome::end_of_stream);
    shuffle.close();
  });
  spawn_receiver(1);
  run();
  EXPECT_LT(passed(), kSecond);
  expect_rows(1, 0, sent);
}

// --- every way to send

TEST_F(GroupsOfReceivers, get_rows_by_every_call) {
  start(3);
  row_bytes_ = 0;
  spawn_sender({{0, 1}, {1, 2}, {1}}, [&](Shuffle& shuffle) {
    const ShuffleSender sender = *shuffle.sender();
    uint64_t row = 0;
    EXPECT_EQ(sender.send(0, bytes_of(row)), Outcome::done);
    row = 1;
    const auto fill = [&](std::byte* to) { std::memcpy(to, &row, sizeof row); };
    EXPECT_EQ(sender.write(0, 8, fill), Outcome::done);
    row = 2;
    RowClaim claim;
    EXPECT_EQ(sender.claim(0, 100, claim), Outcome::done);
    // Nothing else goes the same way meanwhile.
    EXPECT_EQ(sender.send(0, bytes_of(9)), Outcome::failed);
    EXPECT_EQ(sender.status().code(), Code::wrong_state);
    fill(claim.data().data());
    EXPECT_TRUE(claim.commit(8).ok());
    row = 3;
    const std::array pieces{bytes_of(row).first(3), bytes_of(row).subspan(3)};
    EXPECT_EQ(sender.send_parts(0, pieces), Outcome::done);
    // Group 2 is a receiver that group 0 has as well: its frame is open in the ring where group 0's block goes.
    row = 4;
    const std::vector<uint32_t> mixed{2, 0};
    EXPECT_EQ(sender.multicast(mixed, bytes_of(row)), Outcome::done);
    row = 20'001;
    EXPECT_EQ(sender.broadcast(bytes_of(row)), Outcome::done);
    EXPECT_EQ(sender.send(3, bytes_of(row)), Outcome::failed);
    EXPECT_NE(sender.status().message().find("group 3 does not exist (0 … 2)"), std::string::npos)
        << sender.status().message();
    const std::vector<uint32_t> twice{1, 1};
    EXPECT_EQ(sender.multicast(twice, bytes_of(row)), Outcome::failed);
    EXPECT_NE(sender.status().message().find("group 1 is named twice"), std::string::npos);
  });
  spawn_receivers();
  run();
  expect_rows(0, 0, 5);
  Rows of_both = of_group(1, 0);
  std::ranges::sort(of_both);
  EXPECT_EQ(of_both, (Rows{0, 1, 2, 3, 4, 4}));
  EXPECT_EQ(of_group(0, 2), (Rows{20'001}));
  EXPECT_EQ(of_group(1, 2), (Rows{20'001, 20'001, 20'001}));
  EXPECT_EQ(of_group(2, 2), (Rows{20'001}));
}

// Many multicasts to a receiver and a group that has it, until frames and blocks have been full in every order.
TEST_F(GroupsOfReceivers, and_their_members_get_multicasts_whole) {
  start(2);
  constexpr uint64_t kRows = 3000;
  spawn_sender({{0}, {0, 1}, {1}}, [&](Shuffle& shuffle) {
    const ShuffleSender sender = *shuffle.sender();
    const std::vector<uint32_t> first{0, 1}, last{1, 2};
    for (uint64_t i = 0; i < kRows; ++i) {
      ASSERT_EQ(sender.multicast(first, bytes_of(i)), Outcome::done);
      ASSERT_EQ(sender.multicast(last, bytes_of(10'000 + i)), Outcome::done);
    }
  });
  spawn_receivers();
  run();
  for (uint32_t r = 0; r < 2; ++r) {
    for (const uint64_t group : {0, 1}) {
      Rows rows = of_group(r, group);
      std::ranges::sort(rows);
      Rows expected = sequence(group, kRows);
      if (r == group) {
        Rows again = expected;
        expected.insert(expected.end(), again.begin(), again.end());
        std::ranges::sort(expected);
      }
      EXPECT_EQ(rows, expected) << r << ", " << group;
    }
  }
}

// Cut, copied and claimed; receiver 1 is in both groups and gets them one after the other.
TEST_F(GroupsOfReceivers, get_rows_larger_than_a_ring_behind_smaller_ones) {
  start(3);
  row_bytes_ = 0;
  constexpr uint64_t kLarge = 10 * 4096 + 77;
  std::vector<std::byte> large(kLarge);
  for (size_t at = 0; at < large.size(); ++at)
    large[at] = static_cast<std::byte>(at * 2654435761u >> 13);
  const auto with_number = [&](uint64_t number) {
    std::vector<std::byte> row = large;
    std::memcpy(row.data(), &number, sizeof number);
    return row;
  };
  spawn_sender({{0, 1}, {1, 2}}, [&](Shuffle& shuffle) {
    const ShuffleSender sender = *shuffle.sender();
    EXPECT_EQ(sender.send(0, bytes_of(0)), Outcome::done);
    EXPECT_EQ(sender.send(0, with_number(1)), Outcome::done);
    EXPECT_EQ(sender.send(0, bytes_of(2)), Outcome::done);
    EXPECT_EQ(sender.send(0, with_number(3), Wait::at_most(std::chrono::seconds(5))),
              Outcome::done);
    EXPECT_EQ(sender.send(0, bytes_of(4)), Outcome::done);
    RowClaim claim;
    EXPECT_EQ(sender.claim(0, kLarge, claim), Outcome::done);
    std::ranges::copy(with_number(5), claim.data().begin());
    EXPECT_TRUE(claim.commit().ok());
    EXPECT_EQ(sender.send(0, bytes_of(6)), Outcome::done);
    EXPECT_EQ(sender.claim(0, kLarge, claim), Outcome::done);  // and it shrinks
    std::ranges::copy(bytes_of(7), claim.data().begin());
    EXPECT_TRUE(claim.commit(8).ok());
    EXPECT_EQ(sender.send(0, bytes_of(8)), Outcome::done);
    EXPECT_EQ(sender.broadcast(with_number(20'000)), Outcome::done);
    EXPECT_EQ(sender.broadcast(with_number(20'001), Wait::at_most(std::chrono::seconds(5))),
              Outcome::done);
  });
  for (uint32_t r = 0; r < 3; ++r) {
    spawn(r + 1, [&, r](Worker& worker) {
      Shuffle shuffle = open_as(worker, spec(0));
      Batch batch;
      while (shuffle.receiver()->receive(batch) == Outcome::done) {
        note(r, batch);
        for (const std::span<const std::byte> row : batch.each_row()) {
          if (row.size() > 8) {
            EXPECT_TRUE(std::ranges::equal(row, with_number(got_[r].back())));
          }
        }
      }
      shuffle.close();
    });
  }
  run();
  for (uint32_t r = 0; r < 2; ++r) expect_rows(r, 0, 9);
  EXPECT_EQ(of_group(0, 2), (Rows{20'000, 20'001}));
  EXPECT_EQ(of_group(1, 2), (Rows{20'000, 20'000, 20'001, 20'001}));
  EXPECT_EQ(of_group(2, 2), (Rows{20'000, 20'001}));
  expect_nothing_charged();
}

TEST_F(GroupsOfReceivers, of_other_senders_and_none_send_to_the_same_receivers) {
  start(2);
  receivers_ = {0, 1, 2};
  got_.resize(3);
  const std::array<Groups, 3> groups{Groups{{0, 1}, {2}}, Groups{}, Groups{{2, 1}}};
  for (uint32_t node = 0; node < 3; ++node) {
    spawn(node, [&, node](Worker& worker) {
      ShuffleSpec what = spec(0, groups[node]);
      what.senders = {0, 1, 2};
      Shuffle shuffle = open_as(worker, what);
      EXPECT_EQ(shuffle.spec().groups, groups[node]);
      for (uint32_t to = 0; to < shuffle.sender()->receiver_count(); ++to)
        EXPECT_EQ(shuffle.sender()->send(to, bytes_of(node * 10'000 + to)), Outcome::done);
      EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
      take_all(shuffle, node);
    });
  }
  run();
  for (Rows& rows : got_) std::ranges::sort(rows);
  EXPECT_EQ(got_[0], (Rows{0, 10'000}));
  EXPECT_EQ(got_[1], (Rows{0, 10'001, 20'000}));
  EXPECT_EQ(got_[2], (Rows{1, 10'002, 20'000}));
}

// --- ends before the end

TEST_F(GroupsOfReceivers, that_are_cancelled_with_rows_in_their_blocks_leave_nothing) {
  start(2);
  spawn(
      0,
      [&](Worker& worker) {
        Shuffle shuffle = open_as(worker, spec(0, {{0, 1}, {1, 0}}));
        const RowSender<uint64_t> sender = *shuffle.sender<uint64_t>();
        for (uint64_t i = 0; sender.send(0, i, Wait::none()) == Outcome::done; ++i) {
        }
        send_rows_to(shuffle, 1, 3);
        EXPECT_TRUE(shuffle.cancel("enough").ok());
        EXPECT_EQ(sender.flush(), Outcome::failed);
        EXPECT_EQ(sender.send(1, 1), Outcome::failed);
        shuffle.close();
        EXPECT_EQ(metrics(0).overflow_memory_bytes, 0u);
      },
      Outcome::failed);
  for (const uint32_t node : {1, 2}) {
    spawn(
        node,
        [&](Worker& worker) {
          Shuffle shuffle = open_as(worker, spec(0));
          Batch batch;
          while (shuffle.receiver()->receive(batch) == Outcome::done) {
          }
          batch.release();
          shuffle.close();
        },
        Outcome::failed);
  }
  run();
  expect_nothing_charged();
}

TEST_F(GroupsOfReceivers, that_are_closed_with_rows_in_their_blocks_cancel_the_query) {
  start(2);
  spawn(
      0,
      [&](Worker& worker) {
        Shuffle shuffle = open_as(worker, spec(0, {{0, 1}}));
        send_rows_to(shuffle, 0, 3);
        shuffle.close();
        EXPECT_EQ(metrics(0).overflow_memory_bytes, 0u);
      },
      Outcome::failed);
  spawn_receivers_that_fail();
  run();
  expect_nothing_charged();
}

// The part fails, which closes the shuffle and leaves it to its handle.
TEST_F(GroupsOfReceivers, give_their_blocks_back_though_a_handle_lives_on) {
  start(2);
  cluster_->spawn(0, 0, [&] {
    Worker& worker = cluster_->session(0).worker(0);
    Shuffle shuffle = open_as(worker, spec(0, {{0, 1}}));
    send_rows_to(shuffle, 0, 3);
    EXPECT_EQ(metrics(0).overflow_memory_bytes, kCharged);
    EXPECT_EQ(worker.end_query(query_, Status(Code::internal_error, "it has thrown")),
              Outcome::failed);
    EXPECT_EQ(metrics(0).overflow_memory_bytes, 0u);
    EXPECT_EQ(shuffle.sender().status().code(), Code::closed);
  });
  spawn_receivers_that_fail();
  run();
}

// --- what is refused

TEST_F(GroupsOfReceivers, that_are_none_are_refused_with_their_number_and_the_limit) {
  start(2, {{"overflow.memory_bytes", 10 * kCharged}, {"overflow.file_bytes", 1 << 20}});
  spawn(0, [&](Worker& worker) {
    const auto expect_refused = [&](const Groups& groups, Code code, std::string_view why) {
      const Result<Shuffle> opened = worker.open_shuffle(spec(0, groups));
      ASSERT_FALSE(opened.ok());
      expect_error(opened.status(), code, {"stage 0", why});
      EXPECT_EQ(metrics(0).overflow_memory_bytes, 0u);
    };
    expect_refused({{0}, {1, 2}}, Code::invalid_argument,
                   "group 1: receiver 2 does not exist (0 … 1)");
    expect_refused({{0, 1}, {0, 1, 0}}, Code::invalid_argument,
                   "group 1: receiver 0 is named twice");
    expect_refused({{0, 1}, {1}, {}}, Code::invalid_argument, "group 2 is empty");
    expect_refused(Groups(65'537, {0}), Code::limit_exceeded, "65537 groups, of at most 65536");
    // The file is no place for them.
    expect_refused(Groups(11, {0, 1}), Code::limit_exceeded, "group 10 of 11 has no block");
    expect_refused(Groups(11, {0, 1}), Code::limit_exceeded, "overflow.memory_bytes = 12960");
    Shuffle shuffle = open_as(worker, spec(0, Groups(10, {0, 1})));
    for (uint32_t group = 0; group < 10; ++group) send_rows_to(shuffle, group, 300);
    EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
    shuffle.close();
  });
  spawn_receivers();
  run();
  for (uint32_t r = 0; r < 2; ++r) {
    for (uint64_t group = 0; group < 10; ++group) expect_rows(r, group, 300);
  }
}

TEST_F(GroupsOfReceivers, above_what_a_query_may_have_are_refused) {
  start(2, {{"overflow.query_limit_bytes", 3 * kCharged}});
  spawn(0, [&](Worker& worker) {
    const Result<Shuffle> opened = worker.open_shuffle(spec(0, Groups(4, {0, 1})));
    ASSERT_FALSE(opened.ok());
    expect_error(opened.status(), Code::limit_exceeded,
                 {"group 3 of 4 has no block", "overflow.query_limit_bytes"});
    Shuffle shuffle = open_as(worker, spec(0, Groups(3, {0, 1})));
    EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
    shuffle.close();
  });
  spawn_receivers();
  run();
  expect_nothing_charged();
}

// A receiver's groups are checked, but take nothing.
TEST_F(GroupsOfReceivers, of_a_worker_that_sends_nothing_take_no_block) {
  start(2);
  spawn_sender({{0, 1}}, [](Shuffle& shuffle) { send_rows_to(shuffle, 0, 3); });
  for (uint32_t r = 0; r < 2; ++r) {
    spawn(r + 1, [&, r](Worker& worker) {
      Shuffle shuffle = open_as(worker, spec(0, {{0, 1}, {1, 0}}));
      EXPECT_EQ(metrics(r + 1).overflow_memory_bytes, 0u);
      take_all(shuffle, r);
    });
  }
  run();
  for (uint32_t r = 0; r < 2; ++r) expect_rows(r, 0, 3);
}

}  // namespace
}  // namespace faro::test
