// Rows larger than a ring that are cut straight from their sender's memory (native/DESIGN.md#hc-7), by the simulated clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "faro/session.h"
#include "faro/shuffle.h"
#include "shuffle/overflow/overflow.h"
#include "sim/query_on_nodes.h"
#include "support/expect.h"

namespace faro::test {
namespace {

using shuffle::Overflow;

constexpr uint64_t kRowBytes = 10 * 4096 + 77;  // of ten rings

std::vector<std::byte> row_of(int seed, uint64_t bytes = kRowBytes) {
  std::vector<std::byte> row(bytes);
  for (size_t at = 0; at < row.size(); ++at)
    row[at] = static_cast<std::byte>((at + static_cast<size_t>(seed)) * 2654435761u >> 13);
  return row;
}

class LargeRows : public QueryOnNodes {
 protected:
  void start(uint32_t nodes, uint64_t yields = 20) {
    QueryOnNodes::start(nodes, {{"wait.yields", yields}, {"overflow.memory_bytes", 1 << 20}});
  }
  /// Its rows have a length each.
  Shuffle open(Worker& worker, uint32_t stage, std::vector<uint32_t> senders,
               std::vector<uint32_t> receivers) {
    return QueryOnNodes::open(worker, query_, stage, 0, std::move(senders), std::move(receivers));
  }
  static Outcome send(const Shuffle& shuffle, std::span<const std::byte> row,
                      uint32_t receiver = 0) {
    return shuffle.sender()->send(receiver, row);
  }
  static void expect_row(const Shuffle& shuffle, std::span<const std::byte> expected) {
    Batch batch;
    ASSERT_EQ(shuffle.receiver()->receive(batch), Outcome::done);
    ASSERT_EQ(batch.row_count(), 1u);
    EXPECT_TRUE(std::ranges::equal(*batch.each_row().begin(), expected));
  }
  void expect_nothing_charged() {
    for (uint32_t node = 0; node < cluster_->node_count(); ++node)
      EXPECT_EQ(metrics(node).overflow_memory_bytes, 0u) << node;
  }
};

TEST_F(LargeRows, take_nothing_of_their_senders_overflow) {
  start(2);
  spawn(0, [&](Worker& worker) {
    Shuffle out = open(worker, 0, {0}, {1});
    Shuffle other = open(worker, 2, {0}, {1});
    EXPECT_EQ(send(out, row_of(1, 10)), Outcome::done);
    // Its frame is open in the same ring.
    EXPECT_EQ(send(other, row_of(2, 10)), Outcome::done);
    for (int i = 3; i < 6; ++i) EXPECT_EQ(send(out, row_of(i)), Outcome::done);
    EXPECT_EQ(send(out, row_of(6, 10)), Outcome::done);
    EXPECT_EQ(metrics(0).overflow_memory_peak_bytes, 0u);
    end(out);
    EXPECT_EQ(out.metrics().sent[0].rows, 5u);
    end(other);
  });
  spawn(1, [&](Worker& worker) {
    Shuffle in = open(worker, 0, {0}, {1});
    Shuffle other = open(worker, 2, {0}, {1});
    expect_row(in, row_of(1, 10));
    for (int i = 3; i < 6; ++i) expect_row(in, row_of(i));
    expect_row(in, row_of(6, 10));
    expect_row(other, row_of(2, 10));
    end(in);
    end(other);
  });
  run();
  EXPECT_EQ(at(0).frames_out_overflow, 0u);
  expect_nothing_charged();
}

TEST_F(LargeRows, are_copied_by_calls_that_do_not_wait_and_while_batches_are_held) {
  start(2);
  uint64_t queued = 0;
  spawn(0, [&](Worker& worker) {
    Shuffle own = open(worker, 1, {0}, {0});
    Shuffle out = open(worker, 0, {0}, {1});
    const auto send_copied = [&](Wait wait) {
      EXPECT_EQ(out.sender()->send(0, row_of(1), wait), Outcome::done);
      EXPECT_EQ(at(0).frames_out_overflow, ++queued);
      while (metrics(0).overflow_memory_bytes > 0)
        (void)worker.wait_until([] { return false; }, Wait::at_most(std::chrono::seconds(1)));
    };
    send_copied(Wait::none());
    send_copied(Wait::at_most(std::chrono::seconds(1)));
    EXPECT_EQ(send(own, row_of(2, 10)), Outcome::done);
    Batch held;
    EXPECT_EQ(own.receiver()->receive(held), Outcome::done);
    send_copied(Wait::forever());
    held.release();
    end(own);
    end(out);
  });
  spawn(1, [&](Worker& worker) {
    Shuffle in = open(worker, 0, {0}, {1});
    for (int i = 0; i < 3; ++i) expect_row(in, row_of(1));
    end(in);
  });
  run();
  EXPECT_EQ(queued, 3u);
}

// Each sends first, so what lies in its rings is spilled at once. A row is one block then, fragment by fragment, and is handed
// out where it lies.
TEST_F(LargeRows, that_were_spilled_take_no_more_than_their_bytes_and_no_further_copy) {
  constexpr int kRows = 4;
  start(2);
  for (uint32_t node = 0; node < 2; ++node) {
    spawn(node, [this, node](Worker& worker) {
      Shuffle out = open(worker, node, {node}, {1 - node});
      Shuffle in = open(worker, 1 - node, {1 - node}, {node});
      for (int i = 0; i < kRows; ++i) EXPECT_EQ(send(out, row_of(i)), Outcome::done);
      const uint64_t peak = metrics(node).overflow_memory_peak_bytes;
      EXPECT_GE(peak, (kRows - 1) * kRowBytes);
      EXPECT_LE(peak, kRows * (kRowBytes + Overflow::kDescriptionBytes + 32));
      // The end of the last row may lie in the ring yet.
      for (int i = 0; i < kRows - 1; ++i) expect_row(in, row_of(i));
      EXPECT_EQ(metrics(node).overflow_memory_peak_bytes, peak);
      expect_row(in, row_of(kRows - 1));
      end(out);
      end(in);
    });
  }
  run();
  expect_nothing_charged();
}

// Each has received of the other before, so neither sends first.
TEST_F(LargeRows, that_two_workers_send_each_other_take_no_drain_delay) {
  start(2);
  for (uint32_t node = 0; node < 2; ++node) {
    spawn(node, [this, node](Worker& worker) {
      // By a stage each: it is for the worker that they make room.
      Shuffle out = open(worker, node, {node}, {1 - node});
      Shuffle in = open(worker, 1 - node, {1 - node}, {node});
      for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(send(out, row_of(i)), Outcome::done);
        expect_row(in, row_of(i));
      }
      end(out);
      end(in);
    });
  }
  run();
  EXPECT_LT(passed(), kDrainDelay);
  EXPECT_EQ(at(0).frames_out_overflow, 0u);
  expect_nothing_charged();
}

TEST_F(LargeRows, that_go_round_in_a_circle_within_a_stage_take_no_drain_delay) {
  constexpr uint32_t kNodes = 3;
  start(kNodes);
  for (uint32_t node = 0; node < kNodes; ++node) {
    spawn(node, [this, node](Worker& worker) {
      Shuffle shuffle = open(worker, 0, {0, 1, 2}, {0, 1, 2});
      for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(send(shuffle, row_of(i), (node + 1) % kNodes), Outcome::done);
        expect_row(shuffle, row_of(i));
      }
      end(shuffle);
    });
  }
  run();
  EXPECT_LT(passed(), kDrainDelay);
}

// Its calls wait hundreds of times for room, or for more of the row, each time only until the other has got on.
TEST_F(LargeRows, make_their_workers_yield_rather_than_sleep) {
  constexpr uint64_t kRings = 300;
  start(2, 200);
  const std::vector<std::byte> row = row_of(1, kRings * kRing);
  spawn(0, [&](Worker& worker) {
    Shuffle out = open(worker, 0, {0}, {1});
    EXPECT_EQ(send(out, row), Outcome::done);
    EXPECT_LT(at(0).sleeps, kRings / 2);
    end(out);
  });
  spawn(1, [&](Worker& worker) {
    Shuffle in = open(worker, 0, {0}, {1});
    expect_row(in, row);
    EXPECT_LT(at(1).sleeps, kRings / 2);
    end(in);
  });
  run();
}

TEST_F(LargeRows, to_oneself_find_room) {
  start(1);
  spawn(0, [&](Worker& worker) {
    Shuffle own = open(worker, 0, {0}, {0});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(send(own, row_of(i)), Outcome::done);
    for (int i = 0; i < 3; ++i) expect_row(own, row_of(i));
    end(own);
  });
  run();
  EXPECT_LT(passed(), kDrainDelay);
  expect_nothing_charged();
}

// Node 1 receives rows of stage 0 and sends those of stage 1, which node 2 is slow to take. That is what node 0 is to feel.
TEST_F(LargeRows, leave_the_input_of_an_operator_whose_output_waits_in_its_ring) {
  start(3);
  spawn(0, [&](Worker& worker) {
    Shuffle out = open(worker, 0, {0}, {1});
    for (int i = 0; i < 4; ++i) EXPECT_EQ(send(out, row_of(i)), Outcome::done);
    end(out);
  });
  spawn(1, [&](Worker& worker) {
    Shuffle in = open(worker, 0, {0}, {1});
    Shuffle out = open(worker, 1, {1}, {2});
    for (int i = 0; i < 4; ++i) {
      expect_row(in, row_of(i));
      EXPECT_EQ(send(out, row_of(i)), Outcome::done);
    }
    end(in);
    end(out);
  });
  spawn(2, [&](Worker& worker) {
    Shuffle in = open(worker, 1, {1}, {2});
    sleep_until(15 * kDrainDelay);
    EXPECT_EQ(at(1).bytes_spilled, 0u);
    for (int i = 0; i < 4; ++i) expect_row(in, row_of(i));
    end(in);
  });
  run();
}

TEST_F(LargeRows, to_a_list_do_not_wait_for_another_receiver_before_its_own_ring_is_full) {
  start(3);
  bool is_whole = false;
  bool is_sent = false;
  spawn(0, [&](Worker& worker) {
    Shuffle out = open(worker, 0, {0}, {1, 2});
    EXPECT_EQ(out.sender()->broadcast(row_of(1)), Outcome::done);
    is_sent = true;
    end(out);
    for (const auto& sent : out.metrics().sent) EXPECT_EQ(sent.rows, 1u);
  });
  spawn(1, [&](Worker& worker) {
    Shuffle in = open(worker, 0, {0}, {1, 2});
    sleep_until(kSecond);
    EXPECT_TRUE(is_whole) << "node 2 has waited for this one";
    EXPECT_FALSE(is_sent);
    expect_row(in, row_of(1));
    end(in);
  });
  spawn(2, [&](Worker& worker) {
    Shuffle in = open(worker, 0, {0}, {1, 2});
    expect_row(in, row_of(1));
    is_whole = passed() < kSecond;
    end(in);
  });
  run();
  expect_nothing_charged();
}

// --- rows that end in the middle

TEST_F(LargeRows, of_which_a_receiver_needs_no_more_end_for_it_alone) {
  start(3);
  spawn(0, [&](Worker& worker) {
    Shuffle out = open(worker, 0, {0}, {1, 2});
    EXPECT_EQ(out.sender()->broadcast(row_of(1)), Outcome::done);
    EXPECT_GE(passed(), kSecond);
    EXPECT_EQ(at(0).rows_dropped, 1u);
    EXPECT_EQ(out.sender()->broadcast(row_of(2)), Outcome::done);
    end(out);
    EXPECT_EQ(out.metrics().sent[0].rows, 0u);
    EXPECT_EQ(out.metrics().sent[1].rows, 2u);
  });
  spawn(1, [&](Worker& worker) {
    Shuffle in = open(worker, 0, {0}, {1, 2});
    Batch batch;
    // It has a part of the row, and the ring is full again.
    EXPECT_EQ(in.receiver()->receive(batch, Wait::none()), Outcome::would_wait);
    cluster_->sleep(kSecond / 2);
    EXPECT_EQ(in.receiver()->receive(batch, Wait::none()), Outcome::would_wait);
    EXPECT_GT(metrics(1).overflow_memory_bytes, 0u);
    sleep_until(kSecond);
    EXPECT_EQ(in.receiver()->stop(), Outcome::done);
    EXPECT_EQ(metrics(1).overflow_memory_bytes, 0u);
    in.close();
  });
  spawn(2, [&](Worker& worker) {
    Shuffle in = open(worker, 0, {0}, {1, 2});
    expect_row(in, row_of(1));
    expect_row(in, row_of(2));
    end(in);
  });
  run();
  expect_nothing_charged();
}

TEST_F(LargeRows, end_as_stopped_where_nobody_needs_the_rest) {
  start(2);
  spawn(0, [&](Worker& worker) {
    Shuffle out = open(worker, 0, {0}, {1});
    EXPECT_EQ(send(out, row_of(1)), Outcome::stopped);
    end(out);
  });
  spawn(1, [&](Worker& worker) {
    Shuffle in = open(worker, 0, {0}, {1});
    sleep_until(kSecond);
    EXPECT_EQ(in.receiver()->stop(), Outcome::done);
    in.close();
  });
  run();
  expect_nothing_charged();
}

// How much of the row was sent when the query fails: nothing has been taken; a part; all of another row before it.
TEST_F(LargeRows, end_with_their_query_and_leave_nothing) {
  for (const int taken : {0, 1, 2}) {
    SCOPED_TRACE(taken);
    start(2);
    spawn(
        0,
        [&](Worker& worker) {
          Shuffle out = open(worker, 0, {0}, {1});
          Outcome outcome = Outcome::done;
          for (int i = 0; i < 2 && outcome == Outcome::done; ++i) outcome = send(out, row_of(i));
          EXPECT_EQ(outcome, Outcome::failed);
          EXPECT_EQ(out.sender()->status().code(), Code::query_cancelled);
          EXPECT_EQ(out.metrics().sent[0].rows, taken == 2 ? 1u : 0u);
        },
        Outcome::failed);
    spawn(
        1,
        [&](Worker& worker) {
          Shuffle in = open(worker, 0, {0}, {1});
          sleep_until(kSecond);
          Batch batch;
          if (taken == 1) {
            EXPECT_EQ(in.receiver()->receive(batch, Wait::none()), Outcome::would_wait);
            EXPECT_GT(metrics(1).overflow_memory_bytes, 0u);
          }
          if (taken == 2) expect_row(in, row_of(0));
          cluster_->sleep(kSecond);
          EXPECT_TRUE(in.cancel("enough").ok());
        },
        Outcome::failed);
    run();
    expect_nothing_charged();
  }
}

TEST_F(LargeRows, end_with_the_loss_of_their_receiver_or_their_sender) {
  for (const uint32_t lost : {0, 1}) {
    SCOPED_TRACE(lost);
    start(2);
    spawn(
        0,
        [&](Worker& worker) {
          Shuffle out = open(worker, 0, {0}, {1});
          EXPECT_EQ(send(out, row_of(1)), Outcome::failed);
          EXPECT_EQ(out.sender()->status().code(), Code::peer_lost);
        },
        Outcome::failed);
    spawn(
        1,
        [&](Worker& worker) {
          Shuffle in = open(worker, 0, {0}, {1});
          sleep_until(kSecond);
          Batch batch;
          EXPECT_EQ(in.receiver()->receive(batch, Wait::none()), Outcome::would_wait);
          EXPECT_GT(metrics(1).overflow_memory_bytes, 0u);
          cluster_->kill(lost);
          EXPECT_EQ(in.receiver()->receive(batch), Outcome::failed);
          EXPECT_EQ(in.receiver()->status().code(), Code::peer_lost);
        },
        Outcome::failed);
    run();
    expect_nothing_charged();
  }
}

TEST_F(LargeRows, are_not_begun_for_anybody_where_a_receiver_cannot_be_sent_to) {
  start(3);
  spawn(0, [&](Worker& worker) {
    Shuffle out = open(worker, 0, {0}, {1, 2});
    RowClaim claim;
    EXPECT_EQ(out.sender()->claim(1, 10, claim), Outcome::done);
    EXPECT_EQ(out.sender()->broadcast(row_of(1)), Outcome::failed);
    EXPECT_EQ(out.sender()->status().code(), Code::wrong_state);
    claim.abort();
    EXPECT_EQ(out.sender()->broadcast(row_of(2)), Outcome::done);
    end(out);
  });
  for (const uint32_t node : {1, 2}) {
    spawn(node, [&](Worker& worker) {
      Shuffle in = open(worker, 0, {0}, {1, 2});
      expect_row(in, row_of(2));
      end(in);
    });
  }
  run();
}

// --- rows of pieces

/// A row in pieces of these many bytes, one behind the other.
std::vector<std::span<const std::byte>> pieces_of(std::span<const std::byte> row,
                                                  std::initializer_list<size_t> bytes) {
  std::vector<std::span<const std::byte>> pieces;
  for (const size_t piece : bytes) {
    pieces.push_back(row.first(piece));
    row = row.subspan(piece);
  }
  pieces.push_back(row);
  return pieces;
}

TEST_F(LargeRows, of_pieces_arrive_as_one) {
  start(3);
  const std::vector<std::byte> small = row_of(1, 100);
  const std::vector<std::byte> large = row_of(2);
  spawn(0, [&](Worker& worker) {
    Shuffle out = open(worker, 0, {0}, {1, 2});
    const ShuffleSender sender = *out.sender();
    const auto small_pieces = pieces_of(small, {0, 1, 50, 0});
    const auto large_pieces = pieces_of(large, {1, 1000, 0, 3000, 20'000});
    EXPECT_EQ(sender.send_parts(0, small_pieces), Outcome::done);
    EXPECT_EQ(sender.send_parts(0, large_pieces), Outcome::done);
    EXPECT_EQ(at(0).frames_out_overflow, 0u);
    EXPECT_EQ(sender.send_parts(0, large_pieces, Wait::none()), Outcome::done);
    EXPECT_EQ(at(0).frames_out_overflow, 1u);
    const uint32_t both[] = {0, 1};
    EXPECT_EQ(sender.send_parts(both, large_pieces), Outcome::done);
    EXPECT_EQ(sender.send_parts(both, {}), Outcome::done);
    end(out);
  });
  for (const uint32_t node : {1, 2}) {
    spawn(node, [&, node](Worker& worker) {
      Shuffle in = open(worker, 0, {0}, {1, 2});
      if (node == 1) {
        expect_row(in, small);
        expect_row(in, large);
        expect_row(in, large);
      }
      expect_row(in, large);
      expect_row(in, {});
      end(in);
    });
  }
  run();
  expect_nothing_charged();
}

TEST_F(LargeRows, of_pieces_are_refused_before_anything_is_sent) {
  start(1);
  spawn(0, [&](Worker& worker) {
    Shuffle own = open(worker, 0, {0}, {0});
    Result<Shuffle> fixed = worker.open_shuffle({query_, 1, 8, {0}, {0}});
    ASSERT_TRUE(fixed.ok());
    const std::vector<std::byte> row = row_of(1, 100);
    const auto refused = [](const Shuffle& shuffle,
                            std::vector<std::span<const std::byte>> pieces) {
      EXPECT_EQ(shuffle.sender()->send_parts(0, pieces, Wait::none()), Outcome::failed);
      return shuffle.sender()->status();
    };
    const std::span<const std::byte> piece(row);
    const auto* const nowhere = static_cast<const std::byte*>(nullptr);
    const std::span<const std::byte> endless(row.data(), SIZE_MAX);
    const std::vector<std::span<const std::byte>> many(65'537, piece.first(1));
    expect_error(refused(own, many), Code::invalid_argument, {"more than 65536 pieces"});
    expect_error(refused(own, {piece, {nowhere, 1}}), Code::invalid_argument, {"no address"});
    expect_error(refused(own, {endless, piece}), Code::row_too_large, {"have no sum"});
    expect_error(refused(own, {endless}), Code::row_too_large, {"row.limit_bytes"});
    expect_error(refused(*fixed, {piece.first(4), piece.first(5)}), Code::invalid_argument,
                 {"a row of 9 bytes, but row_bytes = 8"});
    EXPECT_EQ(own.sender()->send_parts(0, std::span(many).first(65'536)), Outcome::done);
    EXPECT_EQ(own.sender()->finish(), Outcome::done);
    expect_row(own, std::vector<std::byte>(65'536, row[0]));
    end(own);
    end(*fixed);
  });
  run();
}

// --- rows that are received into memory of the caller's

/// Memory for one row, and what is asked of it.
class OneRow {
 public:
  ShuffleReceiver::Allocate allocate() {
    return [this](size_t bytes, size_t& room) {
      ++calls;
      asked = bytes;
      room = room_less > bytes ? 0 : bytes - room_less;
      memory.resize(bytes + 2 * ShuffleReceiver::kRowAlignment);
      void* at = memory.data();
      size_t space = memory.size();
      std::align(ShuffleReceiver::kRowAlignment, bytes, at, space);
      return is_null ? nullptr : static_cast<std::byte*>(at) + misaligned;
    };
  }
  bool has(std::span<const std::byte> row) const {
    return row.data() >= memory.data() && row.data() + row.size() <= memory.data() + memory.size();
  }

  std::vector<std::byte> memory;
  size_t asked = 0;
  int calls = 0;
  bool is_null = false;
  size_t room_less = 0;
  size_t misaligned = 0;
};

TEST_F(LargeRows, are_put_together_in_memory_of_the_receivers) {
  start(2);
  spawn(0, [&](Worker& worker) {
    Shuffle out = open(worker, 0, {0}, {1});
    EXPECT_EQ(send(out, row_of(1, 10)), Outcome::done);
    for (const int i : {2, 3}) EXPECT_EQ(send(out, row_of(i)), Outcome::done);
    end(out);
  });
  spawn(1, [&](Worker& worker) {
    Shuffle in = open(worker, 0, {0}, {1});
    const ShuffleReceiver receiver = *in.receiver();
    OneRow row;
    Batch batch;
    EXPECT_EQ(receiver.receive_into(batch, row.allocate()), Outcome::done);
    EXPECT_TRUE(std::ranges::equal(*batch.each_row().begin(), row_of(1, 10)));
    EXPECT_EQ(row.calls, 0) << "it lies in the ring";
    EXPECT_EQ(receiver.receive_into(batch, row.allocate()), Outcome::done);
    EXPECT_EQ(row.calls, 1);
    EXPECT_EQ(row.asked, kRowBytes);
    EXPECT_TRUE(row.has(batch.bytes()));
    const std::span<const std::byte> kept = batch.bytes();
    batch.release();
    EXPECT_TRUE(std::ranges::equal(kept, row_of(2)));
    EXPECT_EQ(metrics(1).overflow_memory_peak_bytes, 0u);
    // The first bytes were received otherwise.
    while (metrics(1).overflow_memory_bytes == 0) {
      ASSERT_EQ(receiver.receive(batch, Wait::none()), Outcome::would_wait);
      cluster_->sleep(1000);
    }
    EXPECT_EQ(receiver.receive_into(batch, row.allocate()), Outcome::done);
    EXPECT_TRUE(row.has(batch.bytes()));
    EXPECT_TRUE(std::ranges::equal(batch.bytes(), row_of(3)));
    EXPECT_EQ(metrics(1).overflow_memory_bytes, 0u);
    batch.release();
    end(in);
  });
  run();
  expect_nothing_charged();
}

TEST_F(LargeRows, that_were_spilled_to_the_file_arrive_whole) {
  for (const bool into_own_memory : {false, true}) {
    SCOPED_TRACE(into_own_memory);
    QueryOnNodes::start(2, {{"overflow.memory_bytes", kRing}});
    bool is_sent = false;
    spawn(0, [&](Worker& worker) {
      Shuffle out = open(worker, 0, {0}, {1});
      EXPECT_EQ(send(out, row_of(1)), Outcome::done);
      is_sent = true;
      cluster_->session(1).worker(0).wake();
      end(out);
    });
    spawn(1, [&](Worker& worker) {
      Shuffle in = open(worker, 0, {0}, {1});
      EXPECT_EQ(worker.wait_until([&] { return is_sent; }), Outcome::done);
      EXPECT_GT(metrics(1).overflow_file_peak_bytes, kRowBytes / 2);
      if (into_own_memory) {
        OneRow row;
        Batch batch;
        EXPECT_EQ(in.receiver()->receive_into(batch, row.allocate()), Outcome::done);
        EXPECT_TRUE(row.has(batch.bytes()));
        EXPECT_TRUE(std::ranges::equal(batch.bytes(), row_of(1)));
      } else {
        expect_row(in, row_of(1));
      }
      end(in);
    });
    run();
    expect_nothing_charged();
    for (uint32_t node = 0; node < 2; ++node) EXPECT_EQ(metrics(node).overflow_file_bytes, 0u);
  }
}

TEST_F(LargeRows, stay_to_be_received_where_the_memory_given_is_of_no_use) {
  start(2);
  spawn(0, [&](Worker& worker) {
    Shuffle out = open(worker, 0, {0}, {1});
    EXPECT_EQ(send(out, row_of(1)), Outcome::done);
    end(out);
  });
  spawn(1, [&](Worker& worker) {
    Shuffle in = open(worker, 0, {0}, {1});
    const ShuffleReceiver receiver = *in.receiver();
    Batch batch;
    const auto refused = [&](OneRow row, const char* why) {
      EXPECT_EQ(receiver.receive_into(batch, row.allocate()), Outcome::failed);
      EXPECT_EQ(row.calls, 1);
      expect_error(receiver.status(), Code::invalid_argument, {why});
    };
    OneRow null, little, askew;
    null.is_null = true;
    little.room_less = 1;
    askew.misaligned = 32;
    refused(null, "no memory");
    refused(little, "gave 41036 bytes for a row of 41037 bytes");
    refused(askew, "aligned to 64 bytes");
    const auto throws = [](size_t, size_t&) -> std::byte* { throw std::bad_alloc(); };
    EXPECT_EQ(receiver.receive_into(batch, throws), Outcome::failed);
    EXPECT_EQ(receiver.receive_into(batch, nullptr), Outcome::failed);
    expect_error(receiver.status(), Code::invalid_argument, {"allocate is null"});
    const auto fails = [](size_t, size_t&) -> std::byte* { throw std::runtime_error("mine"); };
    EXPECT_THROW((void)receiver.receive_into(batch, fails), std::runtime_error);
    EXPECT_TRUE(batch.empty());
    OneRow row;
    EXPECT_EQ(receiver.receive_into(batch, row.allocate()), Outcome::done);
    EXPECT_TRUE(std::ranges::equal(batch.bytes(), row_of(1)));
    batch.release();
    end(in);
  });
  run();
}

}  // namespace
}  // namespace faro::test
