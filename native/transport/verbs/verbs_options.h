// VerbsOptions: the settings verbs.* in the form in which a link uses them.
#pragma once

#include <cstdint>
#include <string>

#include "base/settings.h"
#include "transport/verbs/connection.h"
#include "transport/verbs/link_parts.h"

namespace faro::transport::verbs {

struct VerbsOptions {
  ConnectionOptions connection;
  Sharing sharing = Sharing::link;
  bool wants_immediates = false;
  Order order = Order::chained;
  bool busy_poll = false;
  bool huge_pages = false;

  explicit VerbsOptions(const base::Settings& settings) {
    connection.send_depth = static_cast<uint32_t>(settings.verbs_send_queue);
    connection.receives = static_cast<uint32_t>(settings.verbs_receives);
    connection.inline_bytes = static_cast<uint32_t>(settings.verbs_inline_bytes);
    connection.traffic_class = static_cast<uint8_t>(settings.verbs_traffic_class);
    connection.timeout = static_cast<uint8_t>(settings.verbs_timeout);
    connection.retry_count = static_cast<uint8_t>(settings.verbs_retry_count);
    connection.rnr_retry_count = static_cast<uint8_t>(settings.verbs_rnr_retry_count);
    connection.path.mtu_bytes = static_cast<uint32_t>(settings.verbs_mtu);
    if (!settings.verbs_service_level.empty()) {  // a number: checked with the settings
      connection.path.service_level =
          static_cast<uint8_t>(std::stoul(settings.verbs_service_level));
    }
    connection.path.min_rnr_timer = static_cast<uint8_t>(settings.verbs_min_rnr_timer);
    if (settings.verbs_queue_pairs == "worker") sharing = Sharing::worker;
    if (settings.verbs_queue_pairs == "lane") sharing = Sharing::lane;
    wants_immediates = settings.verbs_notify != "send";
    order = settings.verbs_order == "paper" ? Order::paper : Order::chained;
    // The paper has no immediates, and an immediate travels with its data, so it cannot wait until the data has
    // arrived.
    if (order == Order::paper) wants_immediates = false;
    busy_poll = settings.verbs_busy_poll != 0;
    huge_pages = settings.verbs_huge_pages != 0;
  }
};

}  // namespace faro::transport::verbs
