// Dispatch: takes each frame that has arrived to the inbox it is for.
#pragma once

#include <cstdint>

#include "shuffle/operation/worker_context.h"
#include "shuffle/receive/in_ring.h"
#include "shuffle/receive/inboxes.h"
#include "shuffle/receive/received_frames.h"
#include "shuffle/receive/stage_agreement.h"
#include "transport/transport.h"

namespace faro::shuffle {

/// A slot of a ring stands for one stage of one query, from OPEN to FINISH. A peer that sends what it must not
/// (query/README.md, "Who may say what about which query") loses its link.
///
/// Threads: the worker.
class Dispatch {
 public:
  Dispatch(const WorkerContext& worker, Inboxes& inboxes, ReceivedFrames& frames,
           StageAgreement& agreement)
      : worker_(worker), inboxes_(inboxes), frames_(frames), agreement_(agreement) {}

  /// `moved`: where the frame lies, if that is not the ring; OPEN and FINISH are to be readable there. Throws std::bad_alloc before
  /// anything has changed.
  void dispatch(InRing& ring, const transport::FrameView& view, MovedFrame* moved = nullptr);

 private:
  void on_open(InRing& ring, const transport::FrameView& view);
  void on_finish(InRing& ring, const transport::FrameView& view);
  void finish(Inbox& inbox, const InRing& ring, const transport::FrameView& view);
  void on_rows(InRing& ring, const transport::FrameView& view, MovedFrame* moved);
  void give_back(InRing& ring, const transport::FrameView& view, MovedFrame* moved) noexcept;
  Inbox* add_inbox(std::shared_ptr<Query> query, const InRing& ring, uint32_t stage);
  void bind(Inbox& inbox, InRing& ring, uint16_t slot, const wire::OpenPayload& open,
            Delivery delivery, RowFormat format);
  void fail_stage(Inbox& inbox, std::string why);

  const WorkerContext& worker_;
  Inboxes& inboxes_;
  ReceivedFrames& frames_;
  StageAgreement& agreement_;
};

}  // namespace faro::shuffle
