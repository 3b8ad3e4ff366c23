// QueryStages: the stages of a query as workers of this node have opened them, and who waits elsewhere for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "faro/query.h"
#include "faro/status.h"
#include "shuffle/query/local_workers.h"
#include "shuffle/query/stage_lists.h"

namespace faro::shuffle {

/// A local worker for whose rows a receiver on `node` waits.
struct Awaited {
  uint32_t sender, stage, node;
  auto operator<=>(const Awaited&) const = default;
};
struct Awaiting {
  static constexpr size_t kTextLimit = 512;  // more than an honest one takes

  uint64_t lists = 0;  // digest, as the receiver opened the stage
  std::string text;    // who it is, and those lists
};

/// Threads: under the table's lock. `workers` are those of this node, `node_name` is its name.
class QueryStages {
 public:
  QueryStages(const QueryId& query, const std::string& node_name, const LocalWorkers& workers)
      : query_(query), node_name_(node_name), workers_(workers) {}

  /// A local worker opens a stage with these lists and members (members_of). Errors: stage_mismatch if
  /// another one has opened it otherwise.
  Status open(uint32_t worker, uint32_t stage, const StageLists& lists,
              const std::vector<uint32_t>& members);
  /// Over all workers of a query these add up to 0: each member of a stage has added the stage's share, and
  /// one of them has taken off what all of them are to add.
  uint64_t balance() const { return balance_; }

  /// Whether an awaited worker has opened the stage as the receiver did: ok, or why the query fails; nullopt:
  /// it may still do so.
  std::optional<Status> judge(const Awaited& awaited, const Awaiting& awaiting) const;
  /// A worker has opened a stage, or ended: forgets the nodes that waited for just that. The first
  /// failure among them.
  Status judge_all_that_await(uint32_t worker);
  /// Once each, up to a limit.
  bool may_remember(const Awaited& awaited) const;
  void remember(const Awaited& awaited, Awaiting awaiting);
  void forget_what_awaits(uint32_t node);

 private:
  /// Most receivers that wait, of a query. Beyond it nobody is told what keeps it waiting, until it asks again.
  static constexpr size_t kAwaitedLimit = 16384;

  struct Stage {
    StageLists lists;
    uint32_t opened_first = 0;  // worker number
    std::vector<bool> opened;   // by local worker
  };

  const QueryId query_;
  const std::string& node_name_;
  const LocalWorkers& workers_;
  std::map<uint32_t, Stage> stages_;  // by number
  std::map<Awaited, Awaiting> awaited_;
  uint64_t balance_ = 0;
};

}  // namespace faro::shuffle
