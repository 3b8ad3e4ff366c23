// Shuffle: one shuffle operator of one running query, at one worker.
#pragma once

#include "faro/detail/cxx20.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "faro/batch.h"
#include "faro/metrics.h"
#include "faro/query.h"
#include "faro/receiver.h"
#include "faro/sender.h"
#include "faro/status.h"

#pragma GCC visibility push(default)

namespace faro {

namespace shuffle {
class LocalWorker;
class OpenShuffle;
class ShuffleCounts;
}  // namespace shuffle

/// Who gets the rows that are sent to a receiver of a shuffle. All who open a stage agree on it:
/// one that differs fails the query with stage_mismatch. Delivery to nodes is the idea of Roediger,
/// Muehlbauer, Kemper and Neumann, High-Speed Query Processing over High-Speed Networks (VLDB
/// 2015).
enum class Delivery : uint8_t {
  /// Each receiver is a worker. Rows of a sender arrive in the order in which they were sent.
  worker = 0,
  /// Each receiver is a node, in the order in which ShuffleSpec::receivers first mentions one of
  /// its workers: any of the mentioned ones takes the next batch, which no other gets. Rows are in
  /// order within a batch alone. A worker that sleeps, computes or makes no call keeps no other of
  /// its node waiting; rows of one key may be handed out to several. Its end of stream says that
  /// every sender has finished and that each row was handed out, to some worker of its node: others
  /// may be at work on theirs. A worker that stops leaves what comes to the others; senders stop
  /// when all mentioned workers of a node have. A batch that is held keeps its ring for all workers
  /// of the node; who holds one for longer than drain.delay_us gets copies from then on, charged to
  /// overflow.memory_bytes, until it has released one sooner. So no worker may hold a batch while
  /// it waits by a lock or a barrier of its own for another of its node (`faro explain` names one
  /// that does). Needs `lane.ends` = node or both.
  node = 1,
  /// A broadcast. There is one receiver, number 0: all listed workers, of which each gets every
  /// row, in the order in which a sender has sent it. A row travels once to each node, whose
  /// workers read it where it lies; the last gives its memory back. What a worker does not take is
  /// moved to overflow after the drain delay, in one copy for all who have not read it. A worker
  /// that stops, or closes the shuffle, reads no more; senders stop when all listed workers have. A
  /// batch that is held keeps its ring, as with `node`. A sender has a block, as for a group of
  /// several (ShuffleSpec::groups), which stay empty; where overflow has no room for it the query
  /// fails with overflow_exhausted. Needs `lane.ends` = node
  /// or both.
  replicate = 2,
};

/// "worker", "node", "replicate".
std::string_view to_string(Delivery delivery) noexcept;

/// What to open. Every worker that takes part opens an equal spec, in any order, at any time.
struct ShuffleSpec {
  /// The greatest stage. A number above it was negative.
  static constexpr uint32_t kStageLimit = 0x7fffffff;
  /// The most groups.
  static constexpr size_t kGroupLimit = 65'536;

  QueryId query;
  uint32_t stage = 0;      ///< number of the shuffle operator in its query's plan
  uint32_t row_bytes = 0;  ///< width of every row; 0: rows have a length each
  /// Worker numbers; empty: all workers; with cluster.node_limit, those declared. Sender i is
  /// senders[i]: all that names a sender of this shuffle names i.
  std::vector<uint32_t> senders;
  /// Worker numbers; empty: all workers; with cluster.node_limit, those declared. Receiver i is
  /// receivers[i], by which all of this shuffle names it, unless `delivery` says otherwise. A
  /// gather has one.
  std::vector<uint32_t> receivers;
  /// What the rows are, in words of the engine: a schema, the name of a codec. A receiver compares
  /// its own with that of each sender before it reads a row: if both are given and differ, the
  /// query fails on every participant with stage_mismatch, which names both, the workers and their
  /// nodes. Of any length; errors have the first 256 bytes.
  std::string format{};
  /// Who gets the rows that are sent to a receiver.
  Delivery delivery = Delivery::worker;
  /// To whom this worker sends, as lists of receivers by their numbers; empty: each receiver by
  /// itself. With groups the sending side names groups wherever it names receivers otherwise: group
  /// g is groups[g], and a row for it goes to each of its members. Groups may overlap; a receiver
  /// that is in two of them gets what is sent to either, and in both a row that is sent to both.
  /// Only senders have groups, each its own: receivers need not know them.
  ///
  /// Rows are written once, and copied once for each member, a frame of them at a time. Of one
  /// sender, rows to one group arrive in order, and rows to two groups in any order. A group of one
  /// is that receiver, as without groups. Any other, and one more of the same receiver, has a block
  /// of a quarter of `ring.bytes`, which is allocated here and charged to overflow.memory_bytes.
  /// A member that stops gets no more; a group has stopped when all its members have.
  std::vector<std::vector<uint32_t>> groups{};
};

/// One shuffle at one worker. Opened by Worker::open_shuffle; its rows go through its sender and
/// its receiver.
///
/// Threads: those of its worker, one at a time (see Worker); any thread may close and destroy it
/// while nobody is inside a call of the worker. Destruction closes. A shuffle that is closed before
/// its end cancels the query on every participant, with a cause that names the worker and the
/// stage: a sender that has not finished, and a receiver that was not told end_of_stream (of each
/// sender, if it receives from them one by one). A receiver that needs no more rows says so by
/// stop() before it closes. That cause is a last resort. Nobody is told it at once, so that a part
/// of the query that fails can close its shuffles first, by destructors, and say why then: what the
/// worker's next call, Worker::end_query, gives as the cause is told alone. Otherwise the others
/// are told after 100 ms, or before, when the worker calls anything else. What fails the query
/// meanwhile, cancel too, is its cause.
class Shuffle {
 public:
  Shuffle() = default;
  Shuffle(Shuffle&& other) noexcept
      : core_(std::exchange(other.core_, nullptr)), counts_(std::move(other.counts_)) {}
  Shuffle& operator=(Shuffle&& other) noexcept {
    if (this == &other) return *this;
    close();
    core_ = std::exchange(other.core_, nullptr);
    counts_ = std::move(other.counts_);
    return *this;
  }
  ~Shuffle() { close(); }

  /// The sending side. Errors: wrong_state if this worker is no sender; closed.
  Result<ShuffleSender> sender() const;
  /// The sending side, for rows of one type. Errors: wrong_state if this worker is no sender;
  /// closed; invalid_argument if the shuffle was opened with another row_bytes than sizeof(Row).
  template <typename Row>
  Result<RowSender<Row>> sender() const {
    if (Status status = check_sender(sizeof(Row)); !status.ok()) return status;
    RowSender<Row> made;
    describe(made);
    made.kernels_ = kernels();
    return made;
  }

  /// The receiving side. Errors: wrong_state if this worker is no receiver; closed.
  Result<ShuffleReceiver> receiver() const;

  /// Whether it was opened, and neither closed nor ended by Worker::end_query with a failure.
  bool is_open() const noexcept;
  /// The spec with which it was opened, but with all senders and receivers named, and without
  /// `format`. It is empty if the shuffle is not open.
  const ShuffleSpec& spec() const noexcept;

  /// Why the last call that answered `failed` did, of either side; else why the query has failed;
  /// ok if neither did. No call clears it. ShuffleSender::status and ShuffleReceiver::status tell
  /// of one side.
  Status status() const;

  /// Fails the query on every participant with query_cancelled and this reason, at once.
  /// Errors: closed; the cause with which the query has failed already.
  Status cancel(std::string_view reason);

  /// What it has counted until now: rows and bytes to each receiver and from each sender, what it
  /// was blocked on, what was spilled. Also after close(), as long as this object lives.
  /// Session::metrics(query) has those of all shuffles of a query. Threads: any, while nobody moves
  /// or destroys this object. Blocks: never.
  ShuffleMetrics metrics() const;

  /// Closes; see the class comment. Idempotent.
  void close() noexcept;

 private:
  friend class shuffle::LocalWorker;
  friend class ShuffleAccess;
  Shuffle(shuffle::OpenShuffle* core, std::shared_ptr<const shuffle::ShuffleCounts> counts)
      : core_(core), counts_(std::move(counts)) {}
  Status check_sender(size_t row_bytes) const;
  void describe(ShuffleSender& sender) const;
  /// The loops that kernel.scatter asks for; auto calibrates once per process, width and number of
  /// receivers.
  detail::SendKernels kernels() const;

  shuffle::OpenShuffle* core_ = nullptr;
  std::shared_ptr<const shuffle::ShuffleCounts> counts_;  // null: nothing was opened
};

}  // namespace faro

#pragma GCC visibility pop
