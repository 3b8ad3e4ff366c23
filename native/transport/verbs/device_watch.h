// DeviceWatch: reports that a device has failed or is being removed.
#pragma once

#include <functional>
#include <utility>

#include "faro/status.h"
#include "transport/transport.h"

namespace faro::transport::verbs {

/// The events that a device reports.
class DeviceEvents {
 public:
  virtual ~DeviceEvents() = default;
  /// Readable when there is an event.
  virtual int trouble_descriptor() const noexcept = 0;
  /// Takes all events. Returns whether the device has failed or is being removed; removal waits until this
  /// process has released the device. Threads: network thread.
  virtual bool take_trouble() noexcept = 0;
};

/// Threads: network thread.
class DeviceWatch {
 public:
  /// `events` outlives it.
  DeviceWatch(DeviceEvents& events, std::function<void()> lost)
      : events_(events), lost_(std::move(lost)) {}
  ~DeviceWatch() { stop(); }
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;

  /// From now on `lost` is called when the device is lost: once, and from here. Errors: system_error.
  Status start(Reactor& reactor);

 private:
  void on_events();
  void stop() noexcept;

  DeviceEvents& events_;
  const std::function<void()> lost_;
  Reactor* reactor_ = nullptr;  // while it is watched
};

}  // namespace faro::transport::verbs
