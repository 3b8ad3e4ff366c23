#include "transport/verbs/device_watch.h"

#include <sys/epoll.h>

#include <utility>

#include "base/return_if_error.h"

namespace faro::transport::verbs {

Status DeviceWatch::start(Reactor& reactor) {
  FARO_RETURN_IF_ERROR(
      reactor.add(events_.trouble_descriptor(), EPOLLIN, [this](uint32_t) { on_events(); }));
  reactor_ = &reactor;
  return {};
}

void DeviceWatch::on_events() {
  if (!events_.take_trouble()) return;
  stop();  // nothing better follows
  lost_();
}

void DeviceWatch::stop() noexcept {
  if (reactor_ != nullptr) std::exchange(reactor_, nullptr)->remove(events_.trouble_descriptor());
}

}  // namespace faro::transport::verbs
