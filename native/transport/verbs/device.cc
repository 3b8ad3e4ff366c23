#include "transport/verbs/device.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace faro::transport::verbs {

Status verbs_error(const char* call, int error) {
  const bool limit = error == ENOMEM || error == ENOSPC || error == EMFILE;
  return {limit ? Code::resource_limit : Code::system_error,
          fmt::format("{}: {}", call, std::strerror(error))};
}

Result<std::shared_ptr<Device>> Device::open(ibv_context* context) {
  std::shared_ptr<Device> device(new Device(context));
  if (const int error = ibv_query_device(context, &device->limits_); error != 0)
    return verbs_error("ibv_query_device", error);
  device->domain_ = ibv_alloc_pd(context);
  if (device->domain_ == nullptr) return verbs_error("ibv_alloc_pd", errno);
  device->channel_ = ibv_create_comp_channel(context);
  if (device->channel_ == nullptr) return verbs_error("ibv_create_comp_channel", errno);
  device->watched_ = ibv_open_device(context->device);
  if (device->watched_ == nullptr) return verbs_error("ibv_open_device", errno);
  for (const int fd : {device->channel_->fd, device->watched_->async_fd}) {
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
      return verbs_error("fcntl of a device's events", errno);
  }
  return device;
}

Device::~Device() {
  if (watched_ != nullptr) ibv_close_device(watched_);
  if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
  if (domain_ != nullptr) ibv_dealloc_pd(domain_);
}

bool Device::take_trouble() noexcept {
  bool gone = false;
  ibv_async_event event{};
  while (ibv_get_async_event(watched_, &event) == 0) {
    gone |= event.event_type == IBV_EVENT_DEVICE_FATAL;
    ibv_ack_async_event(&event);
  }
  return gone;
}

VerbsPath* Device::next() noexcept {
  ibv_cq* queue = nullptr;
  void* channel = nullptr;
  if (ibv_get_cq_event(channel_, &queue, &channel) != 0) return nullptr;
  ibv_ack_cq_events(queue, 1);
  return static_cast<VerbsPath*>(channel);
}

}  // namespace faro::transport::verbs
