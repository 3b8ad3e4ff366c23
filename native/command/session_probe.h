// Opens two nodes in this process, sends rows both ways and checks them. Shows whether a transport works here,
// and what connecting costs.
#pragma once

#include <cstdint>
#include <string>

#include "faro/config.h"
#include "faro/status.h"

namespace faro::command {

struct SessionProbe {
  double connect_seconds = 0;  ///< two nodes of one worker each, one link
  double shuffle_seconds = 0;  ///< a query of row_count rows, begin to end
  uint64_t row_count = 0;
  std::string transport;  ///< that the link took
};

/// `config`: settings of both nodes, apart from cluster.*; the transport may be forced by it.
/// `host`: a numeric address of this machine, [in brackets] if it is IPv6.
/// Threads: makes and joins four. Blocks: at most about ten seconds.
/// Errors: those of Session::open, Shuffle and Session::close; internal_error if rows were wrong.
Result<SessionProbe> probe_session(const Config& config, const std::string& host);

}  // namespace faro::command
