// Chance for test cases: the same numbers everywhere, so that a seed means the same run.
#pragma once

#include "lab/simulation/chance.h"

namespace faro::test {

using simulation::Chance;
using simulation::mix;

}  // namespace faro::test
