#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "command/doctor_checks.h"
#include "command/session_probe.h"
#include "command/text.h"
#include "transport/shm/rendezvous.h"

namespace faro::command {
namespace {

using base::UniqueFd;

constexpr const char* kSandboxRemedy =
    "a sandbox or seccomp profile may forbid it: allow it there, or use transport = tcp";

std::string errno_text(const char* call) {
  return fmt::format("{}: {}", call, std::strerror(errno));
}

Check check_memfd() {
  const char* const name = "memfd, sealed";
  const UniqueFd fd(memfd_create("faro-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return fails(name, errno_text("memfd_create"), kSandboxRemedy);
  if (fallocate(fd.get(), 0, 0, 4096) != 0) {
    return fails(name, errno_text("fallocate"), "give this process more memory");
  }
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return fails(name, errno_text("fcntl(F_ADD_SEALS)"), kSandboxRemedy);
  }
  if (ftruncate(fd.get(), 0) == 0) {
    return fails(name, "a sealed memfd could be shrunk", "use a kernel that enforces seals");
  }
  return works(name, "made, sealed, and it stays as large as it is");
}

/// Sends a descriptor through a socket that listens on an abstract name, as nodes do.
Check check_unix_sockets() {
  const char* const name = "unix sockets";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = fmt::format("faro-doctor-{}", getpid());
  std::memcpy(address.sun_path + 1, text.data(), text.size());  // a leading 0: no file
  const socklen_t bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);

  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.valid() || bind(listener.get(), generic, bytes) != 0 ||
      listen(listener.get(), 1) != 0) {
    return fails(name, errno_text("listening on an abstract name"), kSandboxRemedy);
  }
  const UniqueFd caller(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!caller.valid() || connect(caller.get(), generic, bytes) != 0) {
    return fails(name, errno_text("connect"), kSandboxRemedy);
  }
  const UniqueFd accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!accepted.valid()) return fails(name, errno_text("accept"), kSandboxRemedy);

  char byte = 'f';
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int passed = listener.get();
  std::memcpy(CMSG_DATA(header), &passed, sizeof passed);
  if (sendmsg(caller.get(), &message, MSG_NOSIGNAL) != 1) {
    return fails(name, errno_text("passing a descriptor"), kSandboxRemedy);
  }
  message.msg_controllen = sizeof control;
  if (recvmsg(accepted.get(), &message, MSG_CMSG_CLOEXEC) != 1 ||
      CMSG_FIRSTHDR(&message) == nullptr) {
    return fails(name, "a passed descriptor did not arrive", kSandboxRemedy);
  }
  int received = -1;
  std::memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof received);
  const UniqueFd owned(received);
  return works(name, "abstract name, a descriptor passed through it");
}

/// A sleep on a futex in shared memory, ended from another mapping of it.
Check check_futex() {
  const char* const name = "futex, shared";
  const UniqueFd fd(memfd_create("faro-doctor", MFD_CLOEXEC));
  if (!fd.valid() || ftruncate(fd.get(), 4096) != 0) {
    return fails(name, errno_text("memfd_create"), kSandboxRemedy);
  }
  std::array<void*, 2> views{};
  for (void*& view : views) {
    view = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (view == MAP_FAILED) return fails(name, errno_text("mmap"), "give this process more memory");
  }
  auto* sleeper = static_cast<std::atomic<uint32_t>*>(views[0]);
  auto* ringer = static_cast<std::atomic<uint32_t>*>(views[1]);
  sleeper->store(1, std::memory_order_seq_cst);
  std::thread other([ringer] {
    ringer->store(0, std::memory_order_seq_cst);
    syscall(SYS_futex, ringer, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  });
  timespec limit{2, 0};
  int error = 0;
  while (sleeper->load(std::memory_order_seq_cst) == 1 && error == 0) {
    // EAGAIN: woken before it slept; the loop looks again.
    if (syscall(SYS_futex, sleeper, FUTEX_WAIT, 1u, &limit, nullptr, 0) != 0 && errno != EAGAIN &&
        errno != EINTR) {
      error = errno;
    }
  }
  other.join();
  for (void* view : views) munmap(view, 4096);
  if (error != 0) {
    return fails(name, fmt::format("futex: {}", std::strerror(error)), kSandboxRemedy);
  }
  return works(name, "a sleeper was woken through another mapping");
}

/// Who can share memory with this process.
Check check_containers(const Config& config) {
  const char* const name = "containers";
  const std::string folder = config.get("shm.folder");
  if (folder.empty())
    return works(name, "those of this network namespace; others need a common shm.folder");
  const auto opened = transport::shm::Rendezvous::open(folder);
  if (!opened.ok()) {
    return fails(name, std::string(opened.status().message()),
                 "name a folder of this user, or of root, that all containers mount");
  }
  if (*opened == nullptr) {
    return {name, Health::warning,
            folder + ": other users have taken all names that a file of this one could have",
            "remove their files faro-<uid of this user>.host, or name a folder of this user"};
  }
  // What HELLO tells: a peer for which a part differs gets another transport, and both log which.
  Check check = works(name, fmt::format("those that see {} and tell the same of it: {}", folder,
                                        (*opened)->identity()));
  const std::string transport = config.get("transport");
  if (transport == "tcp" || transport == "verbs") {
    check.health = Health::warning;
    check.found += fmt::format("; but transport = {} does not share memory", transport);
    check.remedy = "transport = auto shares it with those that can";
  }
  if (const std::vector<uint32_t> others = (*opened)->other_users(); !others.empty()) {
    check.health = Health::warning;
    check.found +=
        fmt::format("; processes of uid {} have used it, too, and share no memory with this user",
                    fmt::join(others, ", "));
    check.remedy += check.remedy.empty() ? "" : "; ";
    check.remedy += "run the processes that are to share memory as one user";
  }
  return check;
}

/// Listens on a loopback address, connects, and sends a byte.
Check check_loopback(int family, const char* name) {
  const char* const remedy =
      family == AF_INET6
          ? "name nodes by IPv4 addresses, or enable IPv6 (net.ipv6.conf.lo.disable_ipv6)"
          : "bring the loopback interface up (ip link set lo up)";
  sockaddr_storage address{};
  socklen_t bytes = 0;
  address.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address);
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bytes = sizeof v4;
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
    v6.sin6_addr = in6addr_loopback;
    bytes = sizeof v6;
  }
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const UniqueFd listener(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.valid()) return fails(name, errno_text("socket"), remedy);
  if (bind(listener.get(), generic, bytes) != 0) return fails(name, errno_text("bind"), remedy);
  if (listen(listener.get(), 1) != 0 || getsockname(listener.get(), generic, &bytes) != 0) {
    return fails(name, errno_text("listen"), remedy);
  }
  const UniqueFd caller(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!caller.valid() || connect(caller.get(), generic, bytes) != 0) {
    return fails(name, errno_text("connect"), remedy);
  }
  const UniqueFd accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  char byte = 'f';
  if (!accepted.valid() || send(caller.get(), &byte, 1, MSG_NOSIGNAL) != 1 ||
      recv(accepted.get(), &byte, 1, 0) != 1) {
    return fails(name, errno_text("sending a byte"), remedy);
  }
  return works(name, "listened, connected, sent");
}

}  // namespace

Check works(std::string name, std::string found) {
  return {std::move(name), Health::ok, std::move(found), ""};
}

Check fails(std::string name, std::string reason, std::string remedy) {
  return {std::move(name), Health::failed, std::move(reason), std::move(remedy)};
}

Check check_sessions(const Config& config, const char* transport, const std::string& host,
                     std::string name) {
  Config forced = config;
  Status status = forced.set("transport", transport);
  if (status.ok()) {
    const Result<SessionProbe> probe = probe_session(forced, host);
    if (probe) {
      return works(std::move(name), fmt::format("connected in {}, {} rows shuffled in {}",
                                                seconds_text(probe.value().connect_seconds),
                                                grouped(probe.value().row_count),
                                                seconds_text(probe.value().shuffle_seconds)));
    }
    status = probe.status();
  }
  return fails(std::move(name), status.to_string(),
               status.code() == Code::config_invalid
                   ? "`faro config` shows the settings in use"
                   : "see the lines above, and FARO_LOG_LEVEL=debug");
}

void conclude(TransportReport& report) {
  report.works = report.checks.back().health == Health::ok;
  report.summary = report.checks.back().found;
  if (report.works) return;
  for (const Check& check : report.checks) {
    if (check.health != Health::failed) continue;
    report.summary = fmt::format("{}: {}", check.name, check.found);
    return;
  }
}

TransportReport check_shm(const Config& config) {
  TransportReport report;
  report.name = "shm";
  report.checks = {check_memfd(), check_unix_sockets(), check_containers(config), check_futex(),
                   check_sessions(config, "shm", "127.0.0.1", "two nodes")};
  conclude(report);
  return report;
}

TransportReport check_tcp(const Config& config) {
  TransportReport report;
  report.name = "tcp";
  report.checks = {check_loopback(AF_INET, "IPv4 loopback"),
                   check_loopback(AF_INET6, "IPv6 loopback")};
  const bool ipv4 = report.checks[0].health == Health::ok;
  const bool ipv6 = report.checks[1].health == Health::ok;
  // Either of the two is enough.
  if (ipv4 && !ipv6) report.checks[1].health = Health::warning;
  if (ipv6 && !ipv4) report.checks[0].health = Health::warning;
  if (ipv6) report.checks.push_back(check_sessions(config, "tcp", "[::1]", "two nodes, IPv6"));
  if (ipv4 || !ipv6)
    report.checks.push_back(check_sessions(config, "tcp", "127.0.0.1", "two nodes, IPv4"));
  conclude(report);
  return report;
}

}  // namespace faro::command
