#include "transport/verbs/registered_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace faro::transport::verbs {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kHugePage = uint64_t{2} << 20;

int access_flags(Access access) {
  switch (access) {
    case Access::local_read:
      return 0;
    case Access::local_write:
      return IBV_ACCESS_LOCAL_WRITE;
    case Access::remote_write:
      return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  }
  return 0;
}

std::string memlock_text() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return "the limit of locked memory is unlimited";
  return fmt::format("the limit of locked memory is {} bytes; raise it (ulimit -l unlimited)",
                     limit.rlim_cur);
}

}  // namespace

uint64_t pinned_bytes(uint64_t bytes, bool huge_pages) {
  const uint64_t page = huge_pages ? kHugePage : kPage;
  return (bytes + page - 1) / page * page;
}

Status RegisteredMemory::map(uint64_t bytes, bool huge_pages) {
  const uint64_t need = pinned_bytes(bytes, huge_pages);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | (huge_pages ? MAP_HUGETLB : 0);
  void* const mapped = mmap(nullptr, need, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (mapped == MAP_FAILED) {
    const char* const advice =
        huge_pages ? "; see /proc/sys/vm/nr_hugepages, or leave verbs.huge_pages at 0" : "";
    return base::error(Code::resource_limit, "{} bytes of {}memory for a link: {}{}", need,
                       huge_pages ? "huge-page " : "", std::strerror(errno), advice);
  }
  base_ = static_cast<std::byte*>(mapped);
  bytes_ = bytes;
  mapped_ = need;
  if (madvise(mapped, need, MADV_DONTFORK) != 0)
    return verbs_error("madvise(MADV_DONTFORK)", errno);
  return {};
}

Result<RegisteredMemory> RegisteredMemory::make(std::shared_ptr<Device> device, uint64_t bytes,
                                                Access access, bool huge_pages) {
  RegisteredMemory memory;
  memory.device_ = std::move(device);
  memory.access_ = access;
  FARO_RETURN_IF_ERROR(memory.map(bytes, huge_pages));
  FARO_RETURN_IF_ERROR(memory.enter());
  return memory;
}

Status RegisteredMemory::enter() {
  // The function, not the macro of that name: with flags that it cannot see through, the macro takes
  // a function that rdma-core 26 lacks, for flags that are not used here.
  region_ = (ibv_reg_mr)(device_->domain(), base_, bytes_, access_flags(access_));
  if (region_ == nullptr) {
    const int error = errno;
    return Status(error == ENOMEM || error == EAGAIN ? Code::resource_limit : Code::system_error,
                  fmt::format("registering {} bytes with {}: {}; {}", bytes_, device_->name(),
                              std::strerror(error), memlock_text()));
  }
  local_key_ = region_->lkey;
  remote_key_ = region_->rkey;
  return {};
}

Status RegisteredMemory::register_anew() {
  if (device_ == nullptr) {
    local_key_ = ++remote_key_;
    return {};
  }
  if (region_ != nullptr) ibv_dereg_mr(std::exchange(region_, nullptr));
  return enter();
}

Result<RegisteredMemory> RegisteredMemory::unregistered_for_test(uint64_t bytes, uint32_t key) {
  RegisteredMemory memory;
  FARO_RETURN_IF_ERROR(memory.map(bytes, false));
  memory.local_key_ = memory.remote_key_ = key;
  return memory;
}

RegisteredMemory::~RegisteredMemory() {
  if (region_ != nullptr) ibv_dereg_mr(region_);
  if (base_ == nullptr) return;
  if (device_ != nullptr) {
    device_->unmap(base_, mapped_);
  } else {
    munmap(base_, mapped_);
  }
}

void RegisteredMemory::swap(RegisteredMemory& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(access_, other.access_);
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapped_, other.mapped_);
  std::swap(region_, other.region_);
  std::swap(local_key_, other.local_key_);
  std::swap(remote_key_, other.remote_key_);
}

}  // namespace faro::transport::verbs
