#include "shuffle/receive/stage_agreement.h"

#include <algorithm>

#include "base/error.h"
#include "shuffle/receive/broken_ring.h"

namespace faro::shuffle {

Status StageAgreement::lists_differ(const Inbox& inbox, uint32_t sender,
                                    const wire::OpenPayload& opened) const {
  return base::error(Code::stage_mismatch,
                     "stage {} of query {}: worker {} opened it with {} senders and {} receivers, "
                     "others than worker {}, with {}",
                     inbox.stage(), inbox.query()->id.to_string(), sender, opened.sender_count,
                     opened.receiver_count, worker_.number, inbox.lists.text)
      .of_stage(inbox.stage());
}

Status StageAgreement::deliveries_differ(const Inbox& inbox, uint32_t sender, Delivery sent,
                                         Delivery received) const {
  const std::vector<session::Node>& nodes = worker_.membership.nodes();
  return base::error(
             Code::stage_mismatch,
             "stage {} of query {}: worker {} of {} sends with delivery = {}, but worker {} "
             "of {} opened it with delivery = {}",
             inbox.stage(), inbox.query()->id.to_string(), sender,
             nodes[worker_.queries.node_of_worker(sender)].name, to_string(sent), worker_.number,
             worker_.own_node().name, to_string(received))
      .of_stage(inbox.stage());
}

Status StageAgreement::formats_differ(const Inbox& inbox, uint32_t sender, const RowFormat& written,
                                      const RowFormat& read) const {
  const std::vector<session::Node>& nodes = worker_.membership.nodes();
  return base::error(Code::stage_mismatch,
                     "stage {} of query {}: the rows that worker {} of {} sends are {}, but worker "
                     "{} of {} reads them as {}",
                     inbox.stage(), inbox.query()->id.to_string(), sender,
                     nodes[worker_.queries.node_of_worker(sender)].name, written.beside(read),
                     worker_.number, worker_.own_node().name, read.beside(written))
      .of_stage(inbox.stage());
}

Status StageAgreement::on_open(const Inbox& inbox, uint32_t sender, const wire::OpenPayload& opened,
                               Delivery delivery, const RowFormat& format) const {
  if (inbox.lists.receiver_count != 0 && delivery != inbox.lists.delivery)
    return deliveries_differ(inbox, sender, delivery, inbox.lists.delivery);
  if (!inbox.agrees(opened)) return lists_differ(inbox, sender, opened);
  if (!inbox.format.agrees(format)) return formats_differ(inbox, sender, format, inbox.format);
  return Status::Ok();
}

Status StageAgreement::on_own_open(Inbox& inbox, const ShuffleSpec& spec, const StageLists& lists,
                                   const RowFormat& format) {
  Status differs;
  inbox.for_each_queue([&](uint32_t sender, const Inbox::SenderQueue& queue) {
    // One that has opened another stage in the slot of this one is not bound any more, but its rows are here.
    const bool has_come = queue.bound || queue.finish_seen || queue.first != nullptr;
    if (!differs.ok() || !has_come) return;
    const bool is_sender =
        std::find(spec.senders.begin(), spec.senders.end(), sender) != spec.senders.end();
    const bool agrees = queue.opened.lists == lists.digest;
    const RowFormat written = inbox.format_of(queue);
    if (is_sender && agrees && queue.row_bytes == spec.row_bytes && format.agrees(written)) return;
    if (!worker_.queries.takes_part(*inbox.query(), queue.ring->sender_node)) {
      fail_ring(worker_, *queue.ring, "it sends rows of query {}, in which its node takes no part",
                spec.query.to_string());
      return inboxes_.forget(inbox, sender);
    }
    inbox.lists = lists;
    differs =
        queue.delivery != spec.delivery
            ? deliveries_differ(inbox, sender, queue.delivery, spec.delivery)
        : !is_sender || !agrees ? lists_differ(inbox, sender, queue.opened)
        : !format.agrees(written)
            ? formats_differ(inbox, sender, written, format)
            : base::error(
                  Code::stage_mismatch,
                  "stage {}: worker {} sends rows with row_bytes = {}, worker {} opened it with {}",
                  spec.stage, sender, queue.row_bytes, worker_.number, spec.row_bytes)
                  .of_stage(spec.stage);
    worker_.queries.fail(*inbox.query(), differs);
  });
  return differs;
}

Status StageAgreement::on_own_format(Inbox& inbox) {
  for (const uint32_t sender : *inbox.senders) {
    const RowFormat written = inbox.format_of(inbox.queue(sender));
    if (inbox.format.agrees(written)) continue;
    const Status differs = formats_differ(inbox, sender, written, inbox.format);
    worker_.queries.fail(*inbox.query(), differs);
    return differs;
  }
  return Status::Ok();
}

}  // namespace faro::shuffle
