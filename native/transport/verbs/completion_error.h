// What a failing completion means, in words for the operators of a cluster.
#pragma once

#include <infiniband/verbs.h>

#include <string>

#include "faro/status.h"

namespace faro::transport::verbs {

/// peer_lost, protocol_error or internal_error, depending on which side is likely at fault. `operation`: what
/// has failed, "a WRITE to ring 3".
Status completion_error(const ibv_wc& completion, const std::string& operation);

}  // namespace faro::transport::verbs
