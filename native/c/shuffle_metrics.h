// What a shuffle has counted, as faro/c.h tells it.
#pragma once

#include "c/sized.h"
#include "faro/c.h"
#include "faro/metrics.h"

namespace faro::c {

/// Throws: std::bad_alloc, before anything is told.
void tell(const ShuffleMetrics& metrics, faro_tell_shuffle tell, void* context);

}  // namespace faro::c
