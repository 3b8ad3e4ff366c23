#include "c/shuffle_metrics.h"

#include <vector>

namespace faro::c {

void tell(const ShuffleMetrics& metrics, faro_tell_shuffle tell, void* context) {
  std::vector<faro_sent_metrics> sent;
  sent.reserve(metrics.sent.size());
  for (const SentMetrics& to : metrics.sent) {
    sent.push_back({to.receiver, 0, to.rows, to.bytes, to.frames, to.no_room, to.rows_out_overflow,
                    to.bytes_out_overflow});
  }
  std::vector<faro_received_metrics> received;
  received.reserve(metrics.received.size());
  for (const ReceivedMetrics& from : metrics.received) {
    received.push_back({from.sender, 0, from.rows, from.bytes, from.batches, from.rows_spilled,
                        from.bytes_spilled});
  }
  faro_shuffle_metrics told{};
  told.size = sizeof told;
  told.version = FARO_ABI_VERSION;
  told.query = query_of(metrics.query);
  told.stage = metrics.stage;
  told.worker = metrics.worker;
  told.blocked_on_room = metrics.blocked_on_room;
  told.blocked_on_room_ns = metrics.blocked_on_room_ns;
  told.blocked_on_rows = metrics.blocked_on_rows;
  told.blocked_on_rows_ns = metrics.blocked_on_rows_ns;
  told.sent = sent.data();
  told.received = received.data();
  told.sent_count = static_cast<uint32_t>(sent.size());
  told.received_count = static_cast<uint32_t>(received.size());
  told.sent_bytes = sizeof(faro_sent_metrics);
  told.received_bytes = sizeof(faro_received_metrics);
  tell(context, &told);
}

}  // namespace faro::c
