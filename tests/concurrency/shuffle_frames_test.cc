// What another release of a node may send, or what belongs elsewhere, in a session: frames that are put into its rings by
// hand, below the worker of node 0, and met by that of node 1, and query messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "node/session_access.h"
#include "shuffle/query/query.h"
#include "shuffle/query/stage_lists.h"
#include "support/log_lines.h"
#include "support/recorded_events.h"
#include "support/shuffle_api.h"
#include "wire/fields.h"
#include "wire/frame.h"
#include "wire/open_fields.h"

namespace faro::test {
namespace {

class ShuffleFrames : public ShuffleApi {
 protected:
  void SetUp() override {
    link_.reset();  // before the session that it belongs to
    open(2, {{"ring.per_lane", "1"},
             {"lane.ends", ends_},
             {"cluster.workers", workers_},
             {"transport", transport_}});
    id_ = session().begin_query();
    link_ = SessionAccess::core(session()).membership().link(1);
  }

  ShuffleSpec gather() { return spec(id_, 0, 8, {0}, {1}); }

  /// The length is filled in.
  void put(wire::FrameHeader header, std::span<const std::byte> payload = {}) {
    header.length = static_cast<uint32_t>(sizeof header + payload.size());
    transport::Outgoing& ring = link_->outgoing(0);
    const transport::Claim claim = ring.claim(header.length, header.length);
    ASSERT_NE(claim.bytes, 0u);
    std::memcpy(claim.data, &header, sizeof header);
    if (!payload.empty()) std::memcpy(claim.data + sizeof header, payload.data(), payload.size());
    ring.commit(header.length);
    ring.post();
  }
  template <typename Value>
  static std::vector<std::byte> bytes_of(const Value& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    return {bytes.begin(), bytes.end()};
  }
  std::vector<std::byte> open_payload() {
    const auto lists = shuffle::StageLists::of(gather());
    wire::OpenPayload open{};
    open.query = shuffle::to_key(id_);
    open.row_bytes = 8;
    open.lists = lists.digest;
    open.sender_count = lists.sender_count;
    open.receiver_count = lists.receiver_count;
    return bytes_of(open);
  }

  /// At worker 1, which worker 0 sends rows with a length each, as it says.
  Shuffle open_for_large_rows() {
    Shuffle receiver = open_shuffle(worker(1), spec(id_, 0, 0, {0}, {1}));
    auto open = open_payload();
    const uint32_t any_width = 0;
    std::memcpy(open.data() + offsetof(wire::OpenPayload, row_bytes), &any_width, sizeof any_width);
    put({0, wire::FrameKind::open, 0, 0, 0, 0}, open);
    return receiver;
  }
  /// A receiver for rows of any width, with delivery to the node, whose only worker it is.
  Shuffle open_for_any() {
    ends_ = "node";
    SetUp();
    ShuffleSpec rows = spec(id_, 0, 0, {0}, {1});
    rows.delivery = Delivery::node;
    Shuffle receiver = open_shuffle(worker(1), rows);
    const auto lists = shuffle::StageLists::of(rows);
    wire::OpenPayload opened{};
    opened.query = shuffle::to_key(id_);
    opened.lists = lists.digest;
    opened.sender_count = lists.sender_count;
    opened.receiver_count = lists.receiver_count;
    std::vector<std::byte> payload = bytes_of(opened);
    std::vector<std::byte> fields;
    const uint32_t first = 0;
    wire::OpenFields::write(fields, wire::OpenDelivery::node, {&first, 1}, 1);
    payload.insert(payload.end(), fields.begin(), fields.end());
    put({0, wire::FrameKind::open, 0, 0, 0, static_cast<uint32_t>(fields.size())}, payload);
    return receiver;
  }
  /// Puts a part of a row of 32 MiB into the ring.
  void put_fragment(uint64_t offset, size_t bytes) {
    std::vector<std::byte> part = bytes_of(wire::FragmentPayload{32 << 20, offset});
    part.resize(part.size() + bytes);
    put({0, wire::FrameKind::fragment, 0, 0, 0, 0}, part);
  }

  /// An OPEN with a list of fields.
  void put_open(std::span<const std::byte> fields) {
    std::vector<std::byte> open = open_payload();
    open.insert(open.end(), fields.begin(), fields.end());
    put({0, wire::FrameKind::open, 0, 0, 0, static_cast<uint32_t>(fields.size())}, open);
  }

  const char* ends_ = "workers";
  const char* workers_ = "1";
  const char* transport_ = "tcp";
  QueryId id_;
  std::shared_ptr<transport::DataLink> link_;
};

// A length is believed as far as its bytes have come.
TEST_F(ShuffleFrames, that_begin_a_large_row_take_no_memory_for_what_has_not_come) {
  Shuffle receiver = open_for_large_rows();
  put_fragment(0, 500);
  const shuffle::Overflow& overflow = SessionAccess::core(session(1)).overflow();
  Batch batch;
  while (overflow.memory_bytes() == 0) {
    ASSERT_EQ(receiver.receiver()->receive(batch, Wait::at_most(std::chrono::milliseconds(1))),
              Outcome::deadline)
        << receiver.status().to_string();
  }
  EXPECT_LE(overflow.memory_bytes(), 68u << 10);
}

// Fragments are believed no further where they are copied from their ring before anybody receives them. One that does not continue
// its row is found by who receives it.
TEST_F(ShuffleFrames,
       that_begin_a_large_row_and_were_spilled_take_no_memory_for_what_has_not_come) {
  Shuffle receiver = open_for_large_rows();
  constexpr size_t kBytes = 800;  // three of these fill more than half of the ring
  for (const uint64_t offset : {size_t{0}, kBytes, size_t{9}}) put_fragment(offset, kBytes);
  const auto are_spilled = [&] { return worker(1).metrics().frames_spilled == 3; };
  ASSERT_EQ(worker(1).wait_until(are_spilled), Outcome::done);
  EXPECT_LE(SessionAccess::core(session(1)).overflow().memory_bytes(), 2 * (68u << 10));
  Batch batch;
  EXPECT_EQ(receiver.receiver()->receive(batch), Outcome::failed);
  expect_error(receiver.status(), Code::query_failed,
               {"a fragment that does not continue its row"});
}

TEST_F(ShuffleFrames, of_a_large_row_make_it_whole_while_its_memory_grows) {
  const ShuffleSpec rows = spec(id_, 0, 0, {0}, {1});
  std::vector<std::byte> row(3'000'001);
  for (size_t at = 0; at < row.size(); ++at)
    row[at] = static_cast<std::byte>(at * 2654435761u >> 13);
  std::thread sends([&] {
    Shuffle shuffle = open_shuffle(worker(0), rows);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(shuffle.sender()->send(0, row), Outcome::done);
    EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
    close_and_end(shuffle, 0, id_);
    worker(0).release_ownership();
  });
  Shuffle receiver = open_shuffle(worker(1), rows);
  for (int i = 0; i < 3; ++i) {
    const Batch batch = take_batch(receiver);
    EXPECT_TRUE(std::ranges::equal(*batch.each_row().begin(), row)) << i;
  }
  EXPECT_EQ(take_rows(receiver), 0u);
  close_and_end(receiver, 1, id_);
  sends.join();
}

// They have come before the query is declared here, and the slot of their stage has been given to another one.
TEST_F(ShuffleFrames,
       of_a_node_that_takes_no_part_are_not_handed_out_though_their_slot_was_given_away) {
  put({0, wire::FrameKind::open, 0, 0, 0, 0}, open_payload());
  put({0, wire::FrameKind::data, 0, 0, 1, 0}, filled(8, 7));
  auto other_stage = open_payload();
  const uint32_t stage = 1;
  std::memcpy(other_stage.data() + offsetof(wire::OpenPayload, stage), &stage, sizeof stage);
  put({0, wire::FrameKind::open, 0, 0, 0, 0}, other_stage);
  const auto have_come = [&] {
    uint64_t frames = 0;
    for (const LaneMetrics& lane : session(1).metrics().lanes) frames += lane.frames_received;
    return frames == 3;
  };
  ASSERT_EQ(worker(1).wait_until(have_come), Outcome::done);
  ASSERT_TRUE(is_ok(session(1).declare_query(id_, {1})));
  // The declaration has the link ended, by another thread: before the shuffle is open, or after.
  Result<Shuffle> own = worker(1).open_shuffle(spec(id_, 0, 8, {1}, {1}));
  Batch batch;
  if (own.ok()) {
    EXPECT_EQ(own->receiver()->receive(batch), Outcome::failed);
  }
  expect_error(own.ok() ? own->status() : own.status(), Code::protocol_error,
               {"its node takes no part"});
}

TEST_F(ShuffleFrames, of_channels_end_the_link_of_who_sends_them_by_name) {
  for (const wire::FrameKind kind : {wire::FrameKind::message, wire::FrameKind::end}) {
    SetUp();
    Shuffle receiver = open_shuffle(worker(1), gather());
    put({0, kind, 0, 0, 0, 0});
    Batch batch;
    EXPECT_EQ(receiver.receiver()->receive(batch), Outcome::failed);
    expect_error(receiver.status(), Code::protocol_error,
                 {"worker 0: a frame of a channel, of kind ", "in a ring of a session"});
  }
}

TEST_F(ShuffleFrames, with_fields_at_their_end_mean_the_same_as_without) {
  ShuffleSpec with_format = gather();
  with_format.format = "(key BIGINT)";
  Shuffle receiver = open_shuffle(worker(1), with_format);
  std::vector<std::byte> fields;
  wire::FieldWriter(fields).number(uint16_t{99}, ~uint64_t{0});
  const auto field_bytes = static_cast<uint32_t>(fields.size());
  std::vector<std::byte> open = open_payload();
  open.insert(open.end(), fields.begin(), fields.end());
  put({0, wire::FrameKind::open, 0, 0, 0, field_bytes}, open);
  put({0, wire::FrameKind::data, 0, 0, 1, 0}, filled(8, 7));
  std::vector<std::byte> finish = bytes_of(wire::FinishPayload{1});
  finish.insert(finish.end(), fields.begin(), fields.end());
  put({0, wire::FrameKind::finish, 0, 0, 0, field_bytes}, finish);
  Batch batch;
  ASSERT_EQ(receiver.receiver()->receive(batch), Outcome::done) << receiver.status().to_string();
  EXPECT_EQ(batch.row_count(), 1u);
  batch.release();
  EXPECT_EQ(receiver.receiver()->receive(batch), Outcome::end_of_stream)
      << receiver.status().to_string();
}

// Node 1 has one worker, so the bits of a delivery are one byte.
TEST_F(ShuffleFrames, that_open_with_a_delivery_that_is_none_end_the_link_wherever_the_ring_ends) {
  using Value = std::vector<uint8_t>;
  const std::vector<std::pair<Value, const char*>> deliveries = {
      {{1}, "wrong length"},        {{1, 1, 0}, "wrong length"}, {{3, 1}, "unknown delivery"},
      {{0, 1}, "unknown delivery"}, {{1, 0}, "to no worker"},    {{1, 2}, "does not exist"},
      {{1, 255}, "does not exist"}};
  for (const char* ends : {"workers", "node"}) {
    for (const auto& [value, why] : deliveries) {
      ends_ = ends;
      SetUp();
      Shuffle receiver = open_shuffle(worker(1), gather());
      std::vector<std::byte> fields;
      wire::FieldWriter(fields).bytes(1 | wire::kRequiredField, std::as_bytes(std::span(value)));
      put_open(fields);
      Batch batch;
      EXPECT_EQ(receiver.receiver()->receive(batch), Outcome::failed);
      expect_error(receiver.status(), Code::protocol_error, {why});
    }
  }
}

TEST_F(ShuffleFrames, that_open_with_a_required_field_that_nobody_knows_end_the_link) {
  for (const char* ends : {"workers", "node"}) {
    ends_ = ends;
    SetUp();
    Shuffle receiver = open_shuffle(worker(1), gather());
    std::vector<std::byte> fields;
    wire::FieldWriter(fields).number(uint16_t{99} | wire::kRequiredField, uint32_t{0});
    put_open(fields);
    Batch batch;
    EXPECT_EQ(receiver.receiver()->receive(batch), Outcome::failed);
    expect_error(receiver.status(), Code::protocol_error, {"a required field that is not known"});
  }
}

// Its sender has the same memory. Worker 2 has the node's end sort it, and only then does its own worker take it.
TEST_F(ShuffleFrames, that_open_another_stage_than_when_they_came_end_the_link) {
  for (const size_t changed :
       {offsetof(wire::OpenPayload, query.counter), offsetof(wire::OpenPayload, stage)}) {
    ends_ = "node";
    workers_ = "1,2";
    transport_ = "shm";
    SetUp();
    Shuffle receiver = open_shuffle(worker(1), gather());
    put({0, wire::FrameKind::open, 0, 0, 0, 0}, open_payload());
    ASSERT_EQ(worker(2).wait_until([] { return false; }, Wait::none()), Outcome::would_wait);
    const std::span<const std::byte> ring = link_->outgoing(0).memory();
    const_cast<std::byte*>(ring.data())[sizeof(wire::FrameHeader) + changed] ^= std::byte{1};
    Batch batch;
    EXPECT_EQ(receiver.receiver()->receive(batch), Outcome::failed);
    expect_error(receiver.status(), Code::protocol_error, {"an OPEN that has changed in its ring"});
  }
}

// What comes in the middle of a row would never be taken, nor what is behind it.
TEST_F(ShuffleFrames, that_come_in_the_middle_of_a_row_for_any_worker_of_a_node_end_the_link) {
  Shuffle receiver = open_for_any();
  put_fragment(0, 500);
  put({0, wire::FrameKind::finish, 0, 0, 0, 0}, bytes_of(wire::FinishPayload{0}));
  Batch batch;
  EXPECT_EQ(receiver.receiver()->receive(batch), Outcome::failed);
  expect_error(receiver.status(), Code::protocol_error, {"in the middle of a row"});
}

TEST_F(ShuffleFrames, that_end_a_stage_for_any_worker_of_a_node_with_rows_missing_fail_the_query) {
  Shuffle receiver = open_for_any();
  put({0, wire::FrameKind::finish, 0, 0, 0, 0}, bytes_of(wire::FinishPayload{3}));
  Batch batch;
  EXPECT_EQ(receiver.receiver()->receive(batch), Outcome::failed);
  expect_error(receiver.status(), Code::query_failed, {"sent 3 rows to", "but 0 arrived"});
}

TEST_F(ShuffleFrames, of_an_unknown_kind_that_may_be_skipped_do_not_disturb_rows_between_them) {
  Shuffle receiver = open_shuffle(worker(1), gather());
  const wire::FrameHeader unknown{0, wire::FrameKind{99}, wire::kMaySkipFrame, 65535, 3, 0};
  put(unknown, filled(100, 1));
  put({0, wire::FrameKind::open, 0, 0, 0, 0}, open_payload());
  put(unknown);
  put({0, wire::FrameKind::data, 0, 0, 1, 0}, filled(8, 7));
  put(unknown, filled(64, 2));
  put({0, wire::FrameKind::finish, 0, 0, 0, 0}, bytes_of(wire::FinishPayload{1}));
  Batch batch;
  ASSERT_EQ(receiver.receiver()->receive(batch), Outcome::done) << receiver.status().to_string();
  EXPECT_EQ(batch.bytes()[0], std::byte{7});
  batch.release();
  EXPECT_EQ(receiver.receiver()->receive(batch), Outcome::end_of_stream)
      << receiver.status().to_string();
}

TEST_F(ShuffleFrames, and_query_messages_of_an_unknown_kind_that_may_be_skipped_cost_no_link) {
  const std::vector<std::byte> unknown = {std::byte{0x80}, std::byte{1}};
  SessionAccess::core(session()).membership().send(1, unknown);
  expect_working();  // what it says to node 1 comes after that
  Shuffle receiver = open_shuffle(worker(1), gather());
  SessionAccess::core(session()).membership().send(1, filled(2, 0x7f));
  Batch batch;
  EXPECT_EQ(receiver.receiver()->receive(batch), Outcome::failed);
  expect_error(receiver.status(), Code::protocol_error, {"a malformed query message of 2 bytes"});
}

// --- the overflow file

TEST_F(ShuffleApi, a_query_whose_rows_go_to_the_file_is_warned_of_once) {
  const LogLines log;
  for (const char* const memory : {"64 MiB", "0"}) {
    open(1, {{"overflow.memory_bytes", memory}});
    const bool is_in_file = std::string_view(memory) == "0";
    for (size_t queries = 1; queries <= 2; ++queries) {
      const QueryId id = session().begin_query();
      for (const uint32_t stage : {3u, 4u}) {
        Shuffle shuffle = open_shuffle(worker(), spec(id, stage, 1000));
        for (int i = 0; i < 100; ++i)
          ASSERT_EQ(shuffle.sender()->send(0, filled(1000, 1)), Outcome::done);
        ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
        EXPECT_EQ(take_rows(shuffle), 100u);
      }
      EXPECT_EQ(worker().end_query(id), Outcome::done);
      EXPECT_EQ(log.count("go to the overflow file"), is_in_file ? queries : 0);
      const std::string named =
          "query " + id.to_string() + ": rows of stage 3 go to the overflow file";
      EXPECT_EQ(log.count(named), is_in_file ? 1u : 0u);
    }
    EXPECT_EQ(log.warnings(), is_in_file ? 2u : 0u);
  }
}

}  // namespace
}  // namespace faro::test
