// The descriptors of shared memory are passed over unix sockets: here anyone calls the one that gives, and a
// caller pretends to be one, with an offer, an answer and descriptors of its own.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/link_end.h"
#include "transport/shm/node_doorbells.h"
#include "transport/shm/shm_setup.h"

namespace faro::fuzz {
namespace {

using transport::shm::FdSender;
using transport::shm::ShmSetup;

constexpr uint32_t kMoves = 24;  // of one input; each takes some system calls
constexpr transport::shm::FdToken kToken = {std::byte{1}, std::byte{2}, std::byte{3}};
constexpr std::string_view kGreeting = "faroshm1";

/// What a caller may send: what it should, and what it should not. Made once; passing descriptors
/// over does not change them.
struct Descriptors {
  base::UniqueFd segment, doorbells, unsealed, file;
  Descriptors() {
    (void)*transport::shm::Segment::make_shared(LinkEnd::kRings, "a segment", segment);
    static const auto lines = std::move(*transport::shm::NodeDoorbells::make(1));
    doorbells.reset(dup(lines.memory().fd));
    unsealed.reset(memfd_create("unsealed", MFD_CLOEXEC));
    require(ftruncate(unsealed.get(), 1 << 16) == 0, "the fuzzer has a memfd");
    file.reset(open("/dev/null", O_RDWR | O_CLOEXEC));
  }
  int at(uint32_t which) const {
    return std::array{segment.get(), doorbells.get(), unsealed.get(), file.get()}[which % 4];
  }
};

/// A socket of the abstract namespace, which stays: a name for each run would fill the kernel's table.
class FakeOwner {
 public:
  FakeOwner() : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socklen_t bytes = sizeof(sa_family_t);  // the kernel chooses a name
    require(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), bytes) == 0 &&
                listen(socket_.get(), 8) == 0,
            "the fuzzer can listen");
    bytes = sizeof address;
    getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &bytes);
    name_.assign(address.sun_path + 1, bytes - offsetof(sockaddr_un, sun_path) - 1);
  }
  const std::string& name() const { return name_; }
  base::UniqueFd accept() const {
    return base::UniqueFd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  }

 private:
  base::UniqueFd socket_;
  std::string name_;
};

class FdPassingRun {
 public:
  explicit FdPassingRun(Input input) : input_(input) {
    listener_ = std::move(*FdSender::open(end_.reactor()));
    while (owner().accept().valid()) {
    }
    end_.context().send = [](std::span<const std::byte>) {};
    setup_ = std::make_unique<ShmSetup>(end_.context(), listener_, nullptr, Status());
  }

  void run() {
    listener_->offer(kToken, {descriptors().segment.get()}, [this](const Status& status) {
      require(status.ok() && shown_, "descriptors go to who has shown the token");
      require(++fds_passed_ == 1, "an offer is taken once");
    });
    for (uint32_t move = 0; move < kMoves && !input_.empty(); ++move) {
      step();
      end_.reactor().tell_all(EPOLLIN);
    }
    setup_.reset();
  }

 private:
  static const FakeOwner& owner() {
    static const FakeOwner fake;
    return fake;
  }
  static const Descriptors& descriptors() {
    static const Descriptors made;
    return made;
  }

  void step() {
    switch (input_.below(6)) {
      case 0:
        if (callers_.size() < 8) come();
        break;
      case 1:
        if (!callers_.empty()) show(input_.flag());
        break;
      case 2:
        if (!callers_.empty()) callers_.pop_back();
        break;
      case 3:
        return hear_offer();
      default:
        return answer();
    }
  }

  // ---------------------------------------------------------------- to the one that gives

  void come() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string& name = listener_->name();
    name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
    base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), bytes) == 0)
      callers_.push_back({std::move(socket), {}});
  }
  void show(bool right) {
    const std::vector<std::byte> other = right ? std::vector<std::byte>() : input_.piece(64);
    const std::span<const std::byte> shown = right ? std::span<const std::byte>(kToken) : other;
    Caller& caller = callers_.back();
    caller.said.insert(caller.said.end(), shown.begin(), shown.end());
    shown_ |= caller.said.size() >= kToken.size() &&
              std::equal(kToken.begin(), kToken.end(), caller.said.begin());
    (void)send(caller.socket.get(), shown.data(), shown.size(), MSG_NOSIGNAL);
  }

  // --------------------------------------------------------------- from one that pretends

  void hear_offer() {
    transport::shm::OfferMessage offer{};
    offer.magic = transport::shm::kOfferMagic;
    offer.version = transport::shm::kSegmentVersion;
    const std::string& name = owner().name();
    offer.name_bytes = static_cast<uint32_t>(name.size());
    name.copy(offer.name, sizeof offer.name);
    auto* const bytes = reinterpret_cast<std::byte*>(&offer);
    size_t at = input_.below(sizeof offer);
    for (const std::byte each : input_.piece(sizeof offer)) bytes[at++ % sizeof offer] ^= each;
    const std::vector<std::byte> message(bytes,
                                         bytes + sizeof offer - (input_.below(8) == 7 ? 1 : 0));
    const Status taken = setup_->on_message(message);
    require(taken.ok() || !taken.message().empty(), "why an offer is refused is said");
  }

  // Whoever fetches gets bytes and descriptors.
  void answer() {
    const base::UniqueFd socket = owner().accept();
    if (!socket.valid()) return;
    std::string greeting(kGreeting);
    if (input_.below(4) == 3) greeting = text_of(input_.piece(16));
    if (greeting.empty()) return;  // closes
    std::vector<int> fds;
    for (uint32_t count = input_.below(4); count > 0; --count)
      fds.push_back(descriptors().at(input_.below(4)));
    iovec piece{greeting.data(), greeting.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
      std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
    }
    (void)sendmsg(socket.get(), &message, MSG_NOSIGNAL);
    require(!setup_->ready(), "a link is not ready before this side has handed over, too");
  }

  Input input_;
  LinkEnd end_;
  std::shared_ptr<FdSender> listener_;
  std::unique_ptr<ShmSetup> setup_;
  struct Caller {
    base::UniqueFd socket;
    std::vector<std::byte> said;
  };
  std::vector<Caller> callers_;
  bool shown_ = false;
  int fds_passed_ = 0;
};

}  // namespace

void run_target(Input input) { FdPassingRun(input).run(); }

}  // namespace faro::fuzz
