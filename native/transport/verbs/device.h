// Device: what all links of a session share of one RDMA device: its protection domain and the
// channel on which completion queues report.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <string>

#include "base/kept_addresses.h"
#include "faro/status.h"
#include "transport/verbs/completion_poller.h"
#include "transport/verbs/device_watch.h"

namespace faro::transport::verbs {

/// Threads: any for the getters, else network thread. Owns: domain, channel, and a separate context for the device's
/// events, because all sessions of the process share the context of rdma_cm.
class Device final : public CompletionEvents, public DeviceEvents {
 public:
  /// Errors: resource_limit or system_error, with the call that failed.
  static Result<std::shared_ptr<Device>> open(ibv_context* context);
  ~Device() override;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  ibv_context* context() const noexcept { return context_; }
  ibv_pd* domain() const noexcept { return domain_; }
  ibv_comp_channel* channel() const noexcept { return channel_; }
  const ibv_device_attr& limits() const noexcept { return limits_; }
  std::string name() const { return ibv_get_device_name(context_->device); }
  int descriptor() const noexcept override { return channel_->fd; }
  VerbsPath* next() noexcept override;

  int trouble_descriptor() const noexcept override { return watched_->async_fd; }
  bool take_trouble() noexcept override;

  /// How memory that it reaches is unmapped: as the library does that has loaded this one. Before there is any.
  void unmap_by(void (*call)(void* mapping, size_t bytes) noexcept) noexcept { unmap_ = call; }
  void unmap(void* mapping, size_t bytes) const noexcept { unmap_(mapping, bytes); }

  bool is_iwarp() const noexcept { return context_->device->transport_type == IBV_TRANSPORT_IWARP; }
  /// Posting may raise SIGPIPE: Linux's siw, see SigpipeShield.
  bool raises_sigpipe() const noexcept { return limits_.vendor_id == kSiwVendor; }
  /// rdma_connect waits until the peer has answered: Linux's siw, see Dial.
  bool connects_in_call() const noexcept { return limits_.vendor_id == kSiwVendor; }
  /// On iWARP a WRITE completes when its bytes may be used again, wherever they are.
  bool acknowledges_writes() const noexcept { return !is_iwarp(); }
  /// The usual version of iWARP has no WRITE WITH IMMEDIATE; InfiniBand and RoCE must have it.
  bool has_immediates() const noexcept { return !is_iwarp(); }

 private:
  static constexpr uint32_t kSiwVendor = 0x626d74;  // SIW_VENDOR_ID, "bmt"

  explicit Device(ibv_context* context) : context_(context) {}

  ibv_context* const context_;      // rdma_cm's
  ibv_context* watched_ = nullptr;  // for events of failure
  ibv_device_attr limits_{};
  ibv_pd* domain_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  void (*unmap_)(void* mapping, size_t bytes) noexcept = base::unmap;
};

/// "ibv_create_cq: Cannot allocate memory"; resource_limit if a limit may be the cause.
Status verbs_error(const char* call, int error);

}  // namespace faro::transport::verbs
