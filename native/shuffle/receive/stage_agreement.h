// StageAgreement: whether those who send in a stage have opened it as this worker has (DESIGN.md HC-15).
#pragma once

#include <cstdint>

#include "faro/shuffle.h"
#include "shuffle/operation/worker_context.h"
#include "shuffle/query/row_format.h"
#include "shuffle/query/stage_lists.h"
#include "shuffle/receive/inbox.h"
#include "shuffle/receive/inboxes.h"
#include "wire/frame.h"

namespace faro::shuffle {

/// A sender that differs fails the query with stage_mismatch, which names both. Threads: the
/// worker.
class StageAgreement {
 public:
  StageAgreement(const WorkerContext& worker, Inboxes& inboxes)
      : worker_(worker), inboxes_(inboxes) {}

  /// A sender opens the stage of an inbox. Ok: as this worker has, or it has not yet.
  Status on_open(const Inbox& inbox, uint32_t sender, const wire::OpenPayload& opened,
                 Delivery delivery, const RowFormat& format) const;
  /// What came before this worker opens the stage.
  Status on_own_open(Inbox& inbox, const ShuffleSpec& spec, const StageLists& lists,
                     const RowFormat& format);
  /// The worker has said how it reads the rows of an open inbox. Fails the query if a sender has said something else.
  Status on_own_format(Inbox& inbox);

 private:
  Status deliveries_differ(const Inbox& inbox, uint32_t sender, Delivery sent,
                           Delivery received) const;
  Status lists_differ(const Inbox& inbox, uint32_t sender, const wire::OpenPayload& opened) const;
  Status formats_differ(const Inbox& inbox, uint32_t sender, const RowFormat& written,
                        const RowFormat& read) const;

  const WorkerContext& worker_;
  Inboxes& inboxes_;
};

}  // namespace faro::shuffle
