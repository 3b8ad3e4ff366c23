// What libFuzzer calls with each input.
#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  faro::fuzz::run_target({data, size});
  return 0;
}
