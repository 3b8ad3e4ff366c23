#include "transport/verbs/queue_pair_path.h"

#include <bit>

#include "base/error.h"

namespace faro::transport::verbs {
namespace {

// IBV_MTU_256 is 1, and each next one twice as large.
uint32_t bytes_of(ibv_mtu mtu) { return uint32_t{128} << mtu; }
ibv_mtu mtu_of(uint32_t bytes) { return static_cast<ibv_mtu>(std::countr_zero(bytes / 128)); }
static_assert(IBV_MTU_256 == 1 && IBV_MTU_4096 == 5);

}  // namespace

Status check_mtu(const PathOptions& options, ibv_mtu active, const std::string& device) {
  if (options.mtu_bytes <= bytes_of(active)) return {};
  return base::error(Code::transport_unavailable,
                     "verbs.mtu = {}, but the port of {} has an active MTU of {}; raise that of "
                     "its network, or leave verbs.mtu at 0",
                     options.mtu_bytes, device, bytes_of(active));
}

void apply_path(const PathOptions& options, ibv_qp_attr& attributes) noexcept {
  if (options.mtu_bytes != 0) attributes.path_mtu = mtu_of(options.mtu_bytes);
  if (options.service_level) attributes.ah_attr.sl = *options.service_level;
  attributes.min_rnr_timer = options.min_rnr_timer;
}

}  // namespace faro::transport::verbs
