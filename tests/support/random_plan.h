// Random plans: one to five stages of any kind, rows of any size, and workers that do as they like.
#pragma once

#include "support/cases.h"

namespace faro::test {

/// Ends well, and every row is checked.
Status random_plan(Program& program);
/// A random plan that is cancelled at some point by some worker; another query afterwards is
/// intact.
Status random_plan_cancelled(Program& program);

}  // namespace faro::test
