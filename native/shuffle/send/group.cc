#include "shuffle/send/group.h"

#include <algorithm>
#include <utility>

#include "base/planted.h"

namespace faro::shuffle {

using counters::count;
using wire::FrameHeader;
using wire::FrameKind;

Group::Group(Lanes& lanes, SentStage& stage, std::vector<Destination*> members, StoredBlock block,
             detail::FrameCursor& at, uint32_t& counted)
    : lanes_(lanes),
      stage_(stage),
      members_(std::move(members)),
      any_member_(members_.front()),
      block_(std::move(block)),
      rows_(stage.shuffle.spec().row_bytes, at, counted) {
  lanes_.expect_group();
}

Group::~Group() { lanes_.forget_group(); }

// --- rows

Outcome Group::make_room(uint32_t bytes, WhenFull when_full) {
  if (rows_.has_room(bytes)) return Outcome::done;
  if (const Outcome outcome = send_block(when_full); outcome != Outcome::done) return outcome;
  for (Destination* const to : members_) {
    if (to->is_announced()) continue;
    if (const Outcome outcome = to->lane.prepare(*to); outcome != Outcome::done) return outcome;
  }
  open(bytes);
  return Outcome::done;
}

// The frame ends where the threshold is reached, as one in a ring does, but has room for a row of `bytes` bytes.
void Group::open(uint32_t bytes) {
  const uint64_t least = sizeof(FrameHeader) + bytes;
  const uint64_t threshold = lanes_.worker_.settings.threshold_bytes;
  rows_.open(begin(), std::min(block_.bytes(), std::max(least, threshold)));
  is_open_ = true;
  lanes_.list(*this);
}

void Group::write(const RowPieces& row) {
  rows_.append(row);
  send_if_full(stage_.framed_bytes(row.bytes()));
}

void Group::commit_row(size_t bytes) {
  rows_.commit(bytes);
  send_if_full(stage_.framed_bytes(stage_.shuffle.spec().row_bytes));
}

// Where transfers start before a frame is full.
void Group::send_if_full(uint64_t next_bytes) {
  if (!rows_.has_room(next_bytes) && lanes_.worker_.settings.threshold_bytes < block_.bytes())
    (void)flush();
}

Outcome Group::fail_by_claim() {
  return stage_.side.fail(Code::wrong_state,
                          "worker {} has an open claim for a group; commit or abort it first",
                          lanes_.worker_.number);
}

// --- the block

// It becomes a frame, if it has rows. Members that have stopped get none of them.
void Group::close() {
  const uint32_t payload = written();
  const uint32_t rows = rows_.rows_in(payload);
  rows_.close();
  is_open_ = false;
  if (payload == 0) return;
  count(lanes_.worker_.counters.rows_dropped, uint64_t{rows} * stopped_);
  if (members_.empty()) return;
  length_ = static_cast<uint32_t>(sizeof(FrameHeader)) + payload;
  row_count_ = rows;
  wire::store_header(begin(), {length_, FrameKind::data, 0, stage_.slot, rows, 0});
  owed_ = members_.size();
  for (Destination* const to : members_) ++to->owed_blocks;
  ++lanes_.queued_;
}

// To each member by itself: none waits for the ring of another.
Outcome Group::push(WhenFull when_full) {
  const WholeFrame frame{{begin(), length_}, row_count_};
  Outcome answer = Outcome::done;
  for (size_t i = 0; i < owed_;) {
    Destination& to = *members_[i];
    // `planted` is a constant false, except in the test that plants bugs to see that they are found (base/planted.h).
    const bool is_skipped = base::planted(base::Plant::skipped_member) && owed_ > 1 && i == 0;
    const Outcome outcome = is_skipped ? Outcome::done : to.lane.send_copy(to, frame, when_full);
    if (outcome == Outcome::done) {
      --to.owed_blocks;
      std::swap(members_[i], members_[--owed_]);
    } else if (outcome == Outcome::would_wait) {
      answer = outcome;
      ++i;
    } else {
      return outcome;
    }
  }
  if (owed_ == 0) settle();
  return answer;
}

Outcome Group::send_block(WhenFull when_full) {
  if (rows_.is_claimed()) return fail_by_claim();
  if (is_open_) close();
  if (!is_closed()) return Outcome::done;
  if (lanes_.has_row_claim()) {
    for (Destination* const to : std::span(members_).first(owed_)) {
      if (to->lane.is_row_claimed()) return to->fail_by_claim();
    }
  }
  const Outcome outcome = push(when_full);
  const bool for_room = when_full == WhenFull::nowhere || !lanes_.holds_batches();
  if (outcome == Outcome::would_wait && for_room)
    (void)members_.front()->lane.blocked(*members_.front());
  return outcome;
}

bool Group::flush() {
  if (rows_.is_claimed()) return true;
  if (is_open_) close();
  if (is_closed()) (void)push(WhenFull::nowhere);
  return is_closed();
}

// All have the closed block.
void Group::settle() noexcept {
  length_ = 0;
  --lanes_.queued_;
}

// --- what is not sent

void Group::member_stopped(Destination& member) noexcept {
  auto at = static_cast<size_t>(std::ranges::find(members_, &member) - members_.begin());
  if (at == members_.size()) return;
  if (at < owed_) {
    count(lanes_.worker_.counters.rows_dropped, row_count_);
    --member.owed_blocks;
    std::swap(members_[at], members_[--owed_]);
    at = owed_;
    if (owed_ == 0) settle();
  }
  std::swap(members_[at], members_.back());
  members_.pop_back();
  ++stopped_;
  if (members_.empty() && is_open_ && !rows_.is_claimed()) close();
}

void Group::drop() noexcept {
  rows_.close();
  is_open_ = false;
  for (Destination* const to : std::span(members_).first(owed_)) --to->owed_blocks;
  owed_ = 0;
  if (is_closed()) settle();
}

void Group::lose_rows(uint32_t node) {
  if (rows_.is_claimed()) return;
  const std::span<Destination* const> waiting =
      is_closed() ? std::span<Destination* const>(members_).first(owed_)
      : is_open_  ? members()
                  : std::span<Destination* const>();
  QueryTable& queries = lanes_.worker_.queries;
  const bool is_hit = std::ranges::any_of(waiting, [&](const Destination* to) {
    return queries.node_of_worker(to->lane.receiver()) == node;
  });
  if (!is_hit) return;
  queries.lose_rows(*stage_.shuffle.query(), node);
  stage_.shuffle.drop_rows();
}

void Group::abandon() noexcept {
  drop();
  block_ = {};
}

}  // namespace faro::shuffle
