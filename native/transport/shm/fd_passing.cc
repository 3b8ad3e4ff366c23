#include "transport/shm/fd_passing.h"

#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"

namespace faro::transport::shm {
namespace {

// Sent along with the descriptors, because these need at least one byte to travel with.
constexpr std::array<char, 8> kGreeting = {'f', 'a', 'r', 'o', 's', 'h', 'm', '1'};

// More descriptors than any offer has. The kernel drops what a peer sends beyond that.
constexpr size_t kMostDescriptors = 8;

// The kernel does not report when a full backlog empties, so the connect is tried again after this time.
constexpr base::Nanoseconds kRetryInterval = 2'000'000;

Status failed(std::string_view what, int error) {
  // The peer has sent the name of its socket, so it existed.
  const bool is_gone = error == ECONNREFUSED || error == ECONNRESET || error == EPIPE;
  return {is_gone ? Code::peer_lost : Code::system_error,
          fmt::format("handing over shared memory: {}: {}{}", what, std::strerror(error),
                      is_gone ? ": its process has probably died" : "")};
}

Status no_descriptor(int error) {
  return base::error(Code::resource_limit,
                     "shared memory needs a file descriptor: {} (limit `ulimit -n`)",
                     std::strerror(error));
}

bool out_of_descriptors(int error) { return error == EMFILE || error == ENFILE; }

base::UniqueFd make_socket() {
  return base::UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

Result<std::string> draw_name() {
  std::array<uint8_t, 16> random;
  FARO_RETURN_IF_ERROR(draw_random(random.data(), random.size()));
  std::string name = "faro-";
  for (const uint8_t byte : random) fmt::format_to(std::back_inserter(name), "{:02x}", byte);
  return name;
}

Status listen_at_address(const base::UniqueFd& fd, const UnixAddress& address) {
  if (bind(fd.get(), address.get(), address.bytes) != 0)
    return failed("bind of a unix socket", errno);
  if (listen(fd.get(), SOMAXCONN) != 0) return failed("listen on a unix socket", errno);
  return {};
}

std::string socket_file(const std::string& name) { return name + ".socket"; }

/// Whether the process at the other end runs as the same user.
Status check_same_user(int fd) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0)
    return failed("SO_PEERCRED", errno);
  if (peer.uid == geteuid()) return {};
  return base::error(Code::transport_unavailable,
                     "shared memory is only for processes of one user: the other has uid {}, this "
                     "one {}; run both as the same user, or set transport=tcp",
                     peer.uid, geteuid());
}

Status send_descriptors(int fd, const std::vector<int>& descriptors) {
  auto greeting = kGreeting;
  iovec bytes{greeting.data(), greeting.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  // A fresh socket has room for this; a short write cannot be.
  if (sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(kGreeting.size()))
    return {};
  return failed("sendmsg", errno);
}

}  // namespace

Status draw_random(void* bytes, size_t count) {
  if (getrandom(bytes, count, 0) == static_cast<ssize_t>(count)) return {};
  return failed("getrandom", errno);
}

Status check_abstract_sockets() {
  FARO_ASSIGN_OR_RETURN(auto name, draw_name());
  const base::UniqueFd fd = make_socket();
  const Status status = fd.valid() ? listen_at_address(fd, UnixAddress::in_abstract_namespace(name))
                                   : failed("socket(AF_UNIX)", errno);
  if (status.ok()) return {};
  return {Code::transport_unavailable, std::string(status.message())};
}

// --- giving

Result<std::shared_ptr<FdSender>> FdSender::open(Reactor& reactor,
                                                 std::shared_ptr<const Rendezvous> rendezvous) {
  FARO_ASSIGN_OR_RETURN(auto name, draw_name());
  std::shared_ptr<FdSender> sender(new FdSender(reactor, std::move(name)));
  FARO_RETURN_IF_ERROR(sender->listen_at(UnixAddress::in_abstract_namespace(sender->name_)));
  if (rendezvous == nullptr) return sender;
  // Those of this network namespace do not need it; the others say why they find nobody.
  const Status in_folder = sender->listen_in(*rendezvous);
  if (!in_folder.ok()) base::log(LogLevel::warning, "shm.folder: {}", in_folder.message());
  return sender;
}

FdSender::~FdSender() {
  stop_listening();
  for (const base::UniqueFd& connection : pending_) reactor_.remove(connection.get());
}

Status FdSender::listen_at(const UnixAddress& address) {
  base::UniqueFd fd = make_socket();
  if (!fd.valid())
    return out_of_descriptors(errno) ? no_descriptor(errno) : failed("socket", errno);
  FARO_RETURN_IF_ERROR(listen_at_address(fd, address));
  const int listener = fd.get();
  listeners_.push_back(std::move(fd));
  return reactor_.add(listener, EPOLLIN, [this, listener](uint32_t) { on_connections(listener); });
}

/// It has its name once it listens: one at which nobody does is removed by others.
Status FdSender::listen_in(const Rendezvous& rendezvous) {
  const std::string draft = rendezvous.path_of(name_);
  const Status listening = listen_at(UnixAddress::in_file_system(draft));
  path_ = rendezvous.path_of(socket_file(name_));
  if (listening.ok() && rename(draft.c_str(), path_.c_str()) == 0) return {};
  const Status status = listening.ok() ? failed("naming a socket in shm.folder", errno) : listening;
  (void)unlink(draft.c_str());
  return status;
}

void FdSender::stop_listening() noexcept {
  for (const base::UniqueFd& listener : listeners_) reactor_.remove(listener.get());
  listeners_.clear();
  if (!path_.empty()) (void)unlink(path_.c_str());
}

void FdSender::offer(const FdToken& token, std::vector<int> fds, Done done) {
  if (!broken_.ok()) return done(broken_);
  offers_[token] = {std::move(fds), std::move(done)};
}

void FdSender::on_connections(int listener) {
  for (;;) {
    base::UniqueFd fd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) return;
      // Waiting would be called again at once, without end.
      fail_all(out_of_descriptors(errno) ? no_descriptor(errno) : failed("accept", errno));
      return;
    }
    if (!check_same_user(fd.get()).ok()) continue;
    // Too many connections: the oldest has sent its token by now, or is dropped.
    if (pending_.size() == kPendingLimit) {
      const auto oldest = pending_.begin();
      on_token(oldest);
      if (pending_.size() == kPendingLimit) drop(oldest);
    }
    const auto connection = pending_.insert(pending_.end(), std::move(fd));
    const Status added = reactor_.add(connection->get(), EPOLLIN,
                                      [this, connection](uint32_t) { on_token(connection); });
    if (!added.ok()) {
      pending_.erase(connection);
      fail_all(added);
      return;
    }
  }
}

void FdSender::on_token(Connections::iterator connection) {
  FdToken token;
  const ssize_t got = recv(connection->get(), token.data(), token.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  // The token is sent by one call into an empty socket: it comes whole or is none.
  const auto found =
      got == static_cast<ssize_t>(token.size()) ? offers_.find(token) : offers_.end();
  if (found != offers_.end()) {
    const Offer offer = std::move(found->second);
    offers_.erase(found);
    // What was sent can be read also after this end has closed.
    offer.done(send_descriptors(connection->get(), offer.fds));
  }
  drop(connection);
}

void FdSender::drop(Connections::iterator connection) noexcept {
  reactor_.remove(connection->get());
  pending_.erase(connection);
}

void FdSender::fail_all(const Status& cause) {
  broken_ = cause;
  stop_listening();
  for (auto& [token, offer] : std::exchange(offers_, {})) offer.done(cause);
}

// --- taking

FdReceiver::FdReceiver(Reactor& reactor, std::string name,
                       std::shared_ptr<const Rendezvous> rendezvous, const FdToken& token,
                       size_t fd_count, base::Nanoseconds deadline, Done done)
    : reactor_(reactor),
      name_(std::move(name)),
      rendezvous_(std::move(rendezvous)),
      token_(token),
      fd_count_(fd_count),
      deadline_(deadline),
      done_(std::move(done)) {
  if (const Status status = start(); !status.ok()) finish(status);
}

Status FdReceiver::start() {
  timer_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!timer_.valid())
    return out_of_descriptors(errno) ? no_descriptor(errno) : failed("timerfd", errno);
  FARO_RETURN_IF_ERROR(reactor_.add(timer_.get(), EPOLLIN, [this](uint32_t) { on_timer(); }));
  bool connected = false;
  FARO_RETURN_IF_ERROR(connect_once(connected));
  return arm_timer(!connected);
}

/// Connects and shows the token, all of it at once; not `connected` if the backlog is full.
Status FdReceiver::connect_once(bool& connected) {
  base::UniqueFd fd = make_socket();
  if (!fd.valid())
    return out_of_descriptors(errno) ? no_descriptor(errno) : failed("socket", errno);
  const auto answers = [&fd](const UnixAddress& address) {
    return connect(fd.get(), address.get(), address.bytes) == 0;
  };
  bool is_there = answers(UnixAddress::in_abstract_namespace(name_));
  std::string where = "@" + name_;
  if (!is_there && errno == ECONNREFUSED && rendezvous_ != nullptr) {
    where = rendezvous_->path_of(socket_file(name_));
    is_there = answers(UnixAddress::in_file_system(where));
  }
  if (!is_there) {
    if (errno == EAGAIN || errno == EINTR) return {};
    return failed("connecting to the peer's socket " + where, errno);
  }
  FARO_RETURN_IF_ERROR(check_same_user(fd.get()));
  if (send(fd.get(), token_.data(), token_.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
      static_cast<ssize_t>(token_.size())) {
    return failed("sending the token", errno);
  }
  socket_ = std::move(fd);
  connected = true;
  return reactor_.add(socket_.get(), EPOLLIN, [this](uint32_t) { on_descriptors(); });
}

Status FdReceiver::arm_timer(bool retry) {
  const base::Nanoseconds now = reactor_.clock().now_ns();
  base::Nanoseconds wait = deadline_ > now ? deadline_ - now : 1;  // 0 would disarm
  if (retry) wait = std::min(wait, kRetryInterval);
  itimerspec time{};
  time.it_value.tv_sec = static_cast<time_t>(wait / 1'000'000'000u);
  time.it_value.tv_nsec = static_cast<long>(wait % 1'000'000'000u);
  return timerfd_settime(timer_.get(), 0, &time, nullptr) == 0 ? Status()
                                                               : failed("timerfd_settime", errno);
}

void FdReceiver::on_timer() {
  uint64_t expirations;
  if (read(timer_.get(), &expirations, sizeof expirations) < 0) return;  // nothing expired
  if (reactor_.clock().now_ns() >= deadline_) {
    return finish(
        Status(Code::deadline_exceeded, "the peer did not hand over its shared memory in time"));
  }
  bool connected = socket_.valid();
  Status status = connected ? Status() : connect_once(connected);
  if (status.ok()) status = arm_timer(!connected);
  if (!status.ok()) finish(status);
}

void FdReceiver::on_descriptors() {
  Result<std::vector<base::UniqueFd>> result = receive();
  if (result.ok() && result->empty()) return;
  finish(std::move(result));
}

/// The descriptors; none if they have not come yet.
Result<std::vector<base::UniqueFd>> FdReceiver::receive() {
  std::array<char, kGreeting.size()> greeting{};
  iovec bytes{greeting.data(), greeting.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) return std::vector<base::UniqueFd>();
    return failed("recvmsg", errno);
  }
  // Whatever came is owned before anything is judged.
  std::vector<base::UniqueFd> fds;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      fds.emplace_back(fd);
    }
  }
  if (got == 0) {
    return Status(Code::peer_lost,
                  "the peer closed the socket without handing over its shared memory");
  }
  if (got != static_cast<ssize_t>(greeting.size()) || greeting != kGreeting) {
    return Status(Code::protocol_error,
                  "what listens at the peer's socket does not hand over shared memory");
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0 && fds.size() < fd_count_) {
    return Status(
        Code::resource_limit,
        "descriptors of the peer's shared memory were lost on receipt (limit `ulimit -n`)");
  }
  if (fds.size() != fd_count_) {
    return base::error(Code::protocol_error, "the peer handed over {} descriptors instead of {}",
                       fds.size(), fd_count_);
  }
  return fds;
}

void FdReceiver::finish(Result<std::vector<base::UniqueFd>> result) {
  close_all();
  if (done_) std::exchange(done_, nullptr)(std::move(result));
}

void FdReceiver::close_all() noexcept {
  for (base::UniqueFd* fd : {&socket_, &timer_}) {
    if (!fd->valid()) continue;
    reactor_.remove(fd->get());
    fd->reset();
  }
}

}  // namespace faro::transport::shm
