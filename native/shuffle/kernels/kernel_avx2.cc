#include "base/processor.h"
#include "shuffle/kernels/kernels.h"

namespace faro::shuffle {

#ifdef FARO_HAS_X86_VECTORS
namespace {

template <class Hash>
[[gnu::target(FARO_TARGET_AVX2)]] void partition_block(const uint64_t* keys, size_t count,
                                                       uint32_t receiver_count,
                                                       uint32_t* receivers) noexcept {
  for (size_t i = 0; i < count; ++i) receivers[i] = partition(Hash{}(keys[i]), receiver_count);
}

constexpr detail::BlockKernel kFinalizer = {partition_block<FinalizerHash>, {}};
constexpr detail::BlockKernel kMultiplicative = {partition_block<MultiplicativeHash>, {}};

}  // namespace

const detail::BlockKernel* avx2_kernel(KeyHash hash) noexcept {
  return hash == KeyHash::finalizer ? &kFinalizer : &kMultiplicative;
}
#else
const detail::BlockKernel* avx2_kernel(KeyHash) noexcept { return nullptr; }
#endif

}  // namespace faro::shuffle
