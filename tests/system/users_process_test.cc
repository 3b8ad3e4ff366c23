// Processes of two users on one machine: they never share memory, whatever they know of each other.
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "faro/log.h"
#include "support/child.h"
#include "support/cluster.h"
#include "support/test_reactor.h"
#include "transport/shm/fd_passing.h"

namespace faro::test {
namespace {

using transport::shm::FdSender;

constexpr uid_t kNobody = 65534;
constexpr transport::shm::FdToken kToken = {std::byte{1}, std::byte{2}};
constexpr base::Nanoseconds kLimit = 20'000'000'000;

/// Only root can become somebody else.
class Users : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "a second user needs root";
  }
};

bool become_nobody() {
  const bool done = setgroups(0, nullptr) == 0 && setgid(kNobody) == 0 && setuid(kNobody) == 0;
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of user takes it back
  return done;
}

/// The reactor's thread while a test talks with a child.
class ReactorThread {
 public:
  explicit ReactorThread(TestReactor& reactor)
      : reactor_(reactor), thread_([this] {
          while (!over_) reactor_.run_once(-1);
        }) {}
  ~ReactorThread() {
    reactor_.defer([this] { over_ = true; });
    thread_.join();
  }

 private:
  TestReactor& reactor_;
  bool over_ = false;  // the thread's
  std::thread thread_;
};

/// Shows the token at `name` and says how many descriptors came before the end.
std::string ask_for_descriptors(const std::string& name) {
  const base::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) return "connect";
  // May fail: the other end can have closed by now.
  (void)send(fd.get(), kToken.data(), kToken.size(), MSG_NOSIGNAL);
  std::array<char, 64> received;
  iovec place{received.data(), received.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &place;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (recvmsg(fd.get(), &message, 0) <= 0) return "nothing";
  return CMSG_FIRSTHDR(&message) == nullptr ? "bytes" : "bytes and descriptors";
}

TEST_F(Users, the_token_of_an_offer_is_worth_nothing_to_another_user) {
  for (const bool same_user : {false, true}) {
    Child child([same_user](const Child::Side& test) {
      if (!same_user && !become_nobody()) return 1;
      test.say(ask_for_descriptors(test.hear()));
      return 0;
    });
    TestReactor reactor;
    auto listener = FdSender::open(reactor);
    ASSERT_TRUE(is_ok(listener));
    std::optional<Status> given;
    (*listener)->offer(kToken, {1, 2}, [&](const Status& status) { given = status; });
    {
      const ReactorThread network(reactor);
      child.say((*listener)->name());
      EXPECT_EQ(child.hear().value_or("ended"), same_user ? "bytes and descriptors" : "nothing");
    }
    EXPECT_EQ(given.has_value(), same_user) << "the offer stands for its peer";
  }
}

TEST_F(Users, descriptors_from_another_user_are_not_taken) {
  Child child([](const Child::Side& test) {
    if (!become_nobody()) return 1;
    TestReactor reactor;
    auto listener = FdSender::open(reactor);
    if (!listener.ok()) return 1;
    (*listener)->offer(kToken, {1, 2}, [](const Status&) {});
    const ReactorThread network(reactor);
    test.say((*listener)->name());
    test.hear();
    return 0;
  });
  const std::string name = child.hear().value_or("ended");
  TestReactor reactor;
  std::optional<Status> taken;
  const transport::shm::FdReceiver receiver(
      reactor, name, nullptr, kToken, 2, reactor.clock().now_ns() + kLimit,
      [&](Result<std::vector<base::UniqueFd>> fds) { taken = fds.status(); });
  while (!taken.has_value()) ASSERT_TRUE(reactor.run_once(20'000)) << "hangs";
  EXPECT_EQ(taken->code(), Code::transport_unavailable) << taken->to_string();
  EXPECT_NE(taken->message().find("the other has uid 65534, this one 0"), std::string::npos)
      << taken->to_string();
}

/// Opens two nodes, node 1 as another user; each says what its link to the other is, or the error.
std::array<std::string, 2> open_as_two_users(const char* transport) {
  ClusterPlan plan(2, {{"transport", transport}});
  std::array<std::unique_ptr<Child>, 2> nodes;
  for (uint32_t node = 0; node < 2; ++node) {
    nodes[node] = std::make_unique<Child>([&plan, node](const Child::Side& test) {
      set_log_level(LogLevel::off);
      if (node == 1 && !become_nobody()) return 1;
      RecordingObserver observer;
      const auto opened = plan.open(node, observer);
      test.say(opened.ok() ? std::string((*opened)->link(1 - node)->capabilities().name)
                           : opened.status().to_string());
      test.hear();  // both stay until both were asked
      return 0;
    });
  }
  return {nodes[0]->hear().value_or("ended"), nodes[1]->hear().value_or("ended")};
}

TEST_F(Users, that_open_a_cluster_are_linked_by_tcp) {
  for (const std::string& link : open_as_two_users("auto")) EXPECT_EQ(link, "tcp");
}

TEST_F(Users, that_insist_on_shared_memory_are_told_why_not) {
  for (const std::string& outcome : open_as_two_users("shm")) {
    expect_contains(outcome, "transport = shm");
  }
}

}  // namespace
}  // namespace faro::test
