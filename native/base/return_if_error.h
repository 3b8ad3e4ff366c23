// FARO_RETURN_IF_ERROR: what a function does with the errors of others.
#pragma once

#include "faro/status.h"

/// Returns from the calling function if `expression` (a Status) is an error.
#define FARO_RETURN_IF_ERROR(expression)         \
  do {                                           \
    ::faro::Status faro_status_ = (expression);  \
    if (!faro_status_.ok()) return faro_status_; \
  } while (false)
