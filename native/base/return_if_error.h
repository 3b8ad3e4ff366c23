// FARO_RETURN_IF_ERROR: what a function does with the errors of others.
#pragma once

#include <utility>

#include "faro/status.h"

/// Returns from the calling function if `expression` (a Status) is an error.
#define FARO_RETURN_IF_ERROR(expression)         \
  do {                                           \
    ::faro::Status faro_status_ = (expression);  \
    if (!faro_status_.ok()) return faro_status_; \
  } while (false)

/// Assigns what `expression` (a Result) holds to `target`, which may declare a variable; returns from the calling
/// function if it is an error.
#define FARO_ASSIGN_OR_RETURN(target, expression) \
  FARO_ASSIGN_OR_RETURN_BY(target, expression, FARO_JOINED(faro_result_, __LINE__))
#define FARO_ASSIGN_OR_RETURN_BY(target, expression, result) \
  auto result = (expression);                                \
  if (!result.ok()) return result.status();                  \
  target = std::move(*result)
#define FARO_JOINED(a, b) FARO_JOINED_NOW(a, b)
#define FARO_JOINED_NOW(a, b) a##b
