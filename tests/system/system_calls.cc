#include "system/system_calls.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>

namespace faro::test {
namespace {

struct Counted {
  std::atomic<const SystemCall*> failing{nullptr};
  std::atomic<size_t> fails_at{0};
  std::atomic<size_t> count{0};
};
Counted counted;
thread_local bool has_memory = false;

// Whether this call is the one; sets errno then.
bool fails(std::string_view name) {
  const SystemCall* const failing = counted.failing.load();
  if (failing == nullptr || name != failing->name) return false;
  if (++counted.count != counted.fails_at) return false;
  errno = failing->error;
  return true;
}

}  // namespace

std::span<const SystemCall> system_calls() {
  static constexpr SystemCall kCalls[] = {
      {"open", EMFILE},         {"mmap", ENOMEM},          {"posix_fallocate", ENOSPC},
      {"ftruncate", EIO},       {"pwrite", EIO},           {"pread", EIO},
      {"linkat", ENOSPC},       {"unlink", EACCES},        {"fstat", EIO},
      {"fstatfs", EIO},         {"fcntl", EINVAL},         {"memfd_create", EMFILE},
      {"eventfd", EMFILE},      {"epoll_create1", EMFILE}, {"epoll_ctl", ENOMEM},
      {"epoll_wait", EINTR},    {"socket", EMFILE},        {"bind", EADDRNOTAVAIL},
      {"listen", EADDRINUSE},   {"accept4", EMFILE},       {"connect", ENETUNREACH},
      {"getsockname", ENOBUFS}, {"getpeername", ENOTCONN}, {"getsockopt", ENOBUFS},
      {"setsockopt", ENOBUFS},  {"send", ECONNRESET},      {"recv", ECONNRESET},
      {"sendmsg", ECONNRESET},  {"recvmsg", ECONNRESET},   {"shutdown", ENOTCONN},
      {"read", EAGAIN},         {"write", EAGAIN},         {"getrandom", ENOSYS},
      {"getrlimit", EFAULT},    {"getaddrinfo", 0},        {"memory", 0},
      {"thread", EAGAIN}};
  return kCalls;
}

FailingCall::FailingCall(const SystemCall& call, size_t n) {
  counted.count = 0;
  counted.fails_at = n;
  counted.failing = &call;
}
FailingCall::~FailingCall() { counted.failing = nullptr; }
size_t FailingCall::count() const { return counted.count; }

void always_has_memory() { has_memory = true; }

}  // namespace faro::test

void* operator new(size_t bytes) {
  void* const memory =
      !faro::test::has_memory && faro::test::fails("memory") ? nullptr : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

// A call that answers `failed` and sets errno.
#define FARO_WRAP(result, name, parameters, arguments, failed) \
  extern "C" result __real_##name parameters;                  \
  extern "C" result __wrap_##name parameters;                  \
  extern "C" result __wrap_##name parameters {                 \
    if (faro::test::fails(#name)) return failed;               \
    return __real_##name arguments;                            \
  }

FARO_WRAP(void*, mmap, (void* at, size_t bytes, int protection, int flags, int fd, off_t offset),
          (at, bytes, protection, flags, fd, offset), MAP_FAILED)
FARO_WRAP(int, posix_fallocate, (int fd, off_t offset, off_t bytes), (fd, offset, bytes), errno)
FARO_WRAP(int, ftruncate, (int fd, off_t bytes), (fd, bytes), -1)
FARO_WRAP(ssize_t, pwrite, (int fd, const void* from, size_t bytes, off_t offset),
          (fd, from, bytes, offset), -1)
FARO_WRAP(ssize_t, pread, (int fd, void* to, size_t bytes, off_t offset), (fd, to, bytes, offset),
          -1)
FARO_WRAP(int, linkat, (int from, const char* old, int to, const char* name, int flags),
          (from, old, to, name, flags), -1)
FARO_WRAP(int, unlink, (const char* name), (name), -1)
FARO_WRAP(int, fstat, (int fd, struct stat* to), (fd, to), -1)
FARO_WRAP(int, fstatfs, (int fd, struct statfs* to), (fd, to), -1)
FARO_WRAP(int, memfd_create, (const char* name, unsigned flags), (name, flags), -1)
FARO_WRAP(int, eventfd, (unsigned initial, int flags), (initial, flags), -1)
FARO_WRAP(int, epoll_create1, (int flags), (flags), -1)
FARO_WRAP(int, epoll_ctl, (int epoll, int operation, int fd, epoll_event* event),
          (epoll, operation, fd, event), -1)
FARO_WRAP(int, epoll_wait, (int epoll, epoll_event* events, int count, int timeout),
          (epoll, events, count, timeout), -1)
FARO_WRAP(int, socket, (int family, int type, int protocol), (family, type, protocol), -1)
FARO_WRAP(int, bind, (int fd, const sockaddr* address, socklen_t length), (fd, address, length), -1)
FARO_WRAP(int, listen, (int fd, int backlog), (fd, backlog), -1)
FARO_WRAP(int, accept4, (int fd, sockaddr* address, socklen_t* length, int flags),
          (fd, address, length, flags), -1)
FARO_WRAP(int, connect, (int fd, const sockaddr* address, socklen_t length), (fd, address, length),
          -1)
FARO_WRAP(int, getsockname, (int fd, sockaddr* address, socklen_t* length), (fd, address, length),
          -1)
FARO_WRAP(int, getpeername, (int fd, sockaddr* address, socklen_t* length), (fd, address, length),
          -1)
FARO_WRAP(int, getsockopt, (int fd, int level, int name, void* value, socklen_t* length),
          (fd, level, name, value, length), -1)
FARO_WRAP(int, setsockopt, (int fd, int level, int name, const void* value, socklen_t length),
          (fd, level, name, value, length), -1)
FARO_WRAP(ssize_t, send, (int fd, const void* from, size_t bytes, int flags),
          (fd, from, bytes, flags), -1)
FARO_WRAP(ssize_t, recv, (int fd, void* to, size_t bytes, int flags), (fd, to, bytes, flags), -1)
FARO_WRAP(ssize_t, sendmsg, (int fd, const msghdr* message, int flags), (fd, message, flags), -1)
FARO_WRAP(ssize_t, recvmsg, (int fd, msghdr* message, int flags), (fd, message, flags), -1)
FARO_WRAP(int, shutdown, (int fd, int how), (fd, how), -1)
FARO_WRAP(ssize_t, read, (int fd, void* to, size_t bytes), (fd, to, bytes), -1)
FARO_WRAP(ssize_t, write, (int fd, const void* from, size_t bytes), (fd, from, bytes), -1)
FARO_WRAP(ssize_t, getrandom, (void* to, size_t bytes, unsigned flags), (to, bytes, flags), -1)
FARO_WRAP(int, getrlimit, (__rlimit_resource_t resource, rlimit* to), (resource, to), -1)
FARO_WRAP(int, getaddrinfo,
          (const char* node, const char* service, const addrinfo* hints, addrinfo** found),
          (node, service, hints, found), EAI_AGAIN)

extern "C" int __real_open(const char* path, int flags, ...);
extern "C" int __wrap_open(const char* path, int flags, ...);
extern "C" int __wrap_open(const char* path, int flags, ...) {
  if (faro::test::fails("open")) return -1;
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  return __real_open(path, flags, mode);
}

extern "C" int __real_fcntl(int fd, int command, ...);
extern "C" int __wrap_fcntl(int fd, int command, ...);
extern "C" int __wrap_fcntl(int fd, int command, ...) {
  if (faro::test::fails("fcntl")) return -1;
  va_list more;
  va_start(more, command);
  void* const argument = va_arg(more, void*);
  va_end(more);
  return __real_fcntl(fd, command, argument);
}

// std::thread::_M_start_thread(std::unique_ptr<std::thread::_State>, void (*)()): what is inside
// libstdc++ the linker does not lead here.
#define FARO_START_THREAD \
  _ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE
#define FARO_PASTE(a, b) a##b
#define FARO_NAME(prefix, name) FARO_PASTE(prefix, name)
extern "C" void FARO_NAME(__real_, FARO_START_THREAD)(std::thread* self, void** state,
                                                      void (*depend)());
extern "C" void FARO_NAME(__wrap_, FARO_START_THREAD)(std::thread* self, void** state,
                                                      void (*depend)());
extern "C" void FARO_NAME(__wrap_, FARO_START_THREAD)(std::thread* self, void** state,
                                                      void (*depend)()) {
  if (faro::test::fails("thread")) throw std::system_error(errno, std::generic_category());
  FARO_NAME(__real_, FARO_START_THREAD)(self, state, depend);
}
