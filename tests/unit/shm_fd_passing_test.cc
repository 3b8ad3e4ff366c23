// Handing over descriptors: to whom, and what becomes of those who do not play by the rules.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "support/expect.h"
#include "support/test_reactor.h"
#include "transport/shm/fd_passing.h"
#include "transport/shm/node_doorbells.h"
#include "transport/shm/shm_setup.h"
#include "transport/shm/shm_transport.h"

namespace faro::transport::shm {
namespace {

constexpr base::Nanoseconds kLimit = 20'000'000'000;
constexpr FdToken kToken = {std::byte{1}, std::byte{2}};
constexpr FdToken kOtherToken = {std::byte{3}};

base::Nanoseconds now() { return base::SystemClock::instance().now_ns(); }

/// An abstract socket, connected to `name` or listening there.
base::UniqueFd abstract_socket(const std::string& name, bool listening) {
  base::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  const int result = listening ? bind(fd.get(), generic, bytes) : connect(fd.get(), generic, bytes);
  if (result != 0 || (listening && listen(fd.get(), 8) != 0)) fd.reset();
  return fd;
}

size_t open_descriptors() {
  size_t count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

bool listed_in_proc(const std::string& name) {
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    if (line.find("@" + name) != std::string::npos) return true;
  }
  return false;
}

class ShmFdPassing : public testing::Test {
 protected:
  void SetUp() override { listener_ = test::value_of(FdSender::open(reactor_)); }
  void offer() {
    listener_->offer(kToken, {1, 2}, [this](const Status& status) { given_ = status; });
  }
  void fetch(const FdToken& token, const std::string& name, base::Nanoseconds limit = kLimit) {
    receiver_.emplace(reactor_, name, nullptr, token, 2, now() + limit,
                      [this](Result<std::vector<base::UniqueFd>> fds) {
                        EXPECT_FALSE(taken_.has_value()) << "called once";
                        taken_ = fds.status();
                        if (fds.ok()) fds_ = std::move(*fds);
                      });
  }
  /// Lets the reactor work until something was taken, or an error.
  void run() {
    ASSERT_TRUE(reactor_.run_until([&] { return taken_.has_value(); })) << "hangs";
  }
  /// What comes of fetching from the listener.
  Status fetched(const FdToken& token) {
    fetch(token, listener_->name());
    run();
    return taken_.value();
  }
  void settle() {
    while (reactor_.run_once(20)) continue;
  }

  test::TestReactor reactor_;
  std::shared_ptr<FdSender> listener_;
  std::optional<FdReceiver> receiver_;
  std::optional<Status> given_;
  std::optional<Status> taken_;
  std::vector<base::UniqueFd> fds_;
};

TEST_F(ShmFdPassing, gives_the_descriptors_to_who_shows_the_token) {
  offer();
  EXPECT_TRUE(test::is_ok(fetched(kToken)));
  EXPECT_TRUE(test::is_ok(given_.value()));
  ASSERT_EQ(fds_.size(), 2u);
  for (const base::UniqueFd& fd : fds_) EXPECT_EQ(fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
}

TEST_F(ShmFdPassing, gives_nothing_for_another_token) {
  offer();
  test::expect_error(fetched(kOtherToken), Code::peer_lost, {});
  EXPECT_FALSE(given_.has_value());
}

TEST_F(ShmFdPassing, gives_nothing_twice) {
  offer();
  ASSERT_TRUE(fetched(kToken).ok());
  receiver_.reset();
  taken_.reset();
  test::expect_error(fetched(kToken), Code::peer_lost, {});
}

TEST_F(ShmFdPassing, gives_nothing_after_the_offer_was_withdrawn) {
  offer();
  listener_->withdraw(kToken);
  test::expect_error(fetched(kToken), Code::peer_lost, {});
}

TEST_F(ShmFdPassing, is_not_kept_from_its_peer_by_callers_that_send_nothing_or_nonsense) {
  offer();
  const size_t before = open_descriptors();
  std::vector<base::UniqueFd> callers;
  for (size_t i = 0; i < 2 * FdSender::kPendingLimit; ++i) {
    callers.push_back(abstract_socket(listener_->name(), false));
    ASSERT_TRUE(callers.back().valid());
    if (i % 3 == 0) {
      ASSERT_EQ(send(callers.back().get(), "nonsense", 8, MSG_NOSIGNAL), 8);
    }
    if (i % 5 == 0) callers.back().reset();
    settle();
  }
  EXPECT_LE(open_descriptors(), before + callers.size() + FdSender::kPendingLimit);
  EXPECT_TRUE(test::is_ok(fetched(kToken)));
}

// Many links are set up together: all have connected and shown their tokens before anybody is
// looked at.
TEST_F(ShmFdPassing, serves_all_who_have_shown_their_tokens_however_many_come_at_once) {
  constexpr size_t kCallers = 2 * FdSender::kPendingLimit;
  size_t given = 0;
  std::vector<base::UniqueFd> callers;
  for (size_t i = 0; i < kCallers; ++i) {
    FdToken token = kToken;
    token.back() = static_cast<std::byte>(i);
    listener_->offer(token, {1, 2}, [&](const Status& status) { given += status.ok(); });
    callers.push_back(abstract_socket(listener_->name(), false));
    ASSERT_TRUE(callers.back().valid());
    ASSERT_EQ(send(callers.back().get(), token.data(), token.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(token.size()));
  }
  settle();
  EXPECT_EQ(given, kCallers);
}

TEST_F(ShmFdPassing, from_a_socket_that_is_gone_is_an_error_at_once) {
  const std::string name = listener_->name();
  EXPECT_TRUE(listed_in_proc(name));
  listener_.reset();
  EXPECT_FALSE(listed_in_proc(name));
  fetch(kToken, name);
  ASSERT_TRUE(taken_.has_value());
  EXPECT_EQ(taken_->code(), Code::peer_lost) << taken_->to_string();
}

TEST_F(ShmFdPassing, from_a_peer_that_never_answers_ends_at_the_deadline) {
  const std::string name = "faro-test-" + std::to_string(getpid());
  const base::UniqueFd silent = abstract_socket(name, true);
  ASSERT_TRUE(silent.valid());
  fetch(kToken, name, 50'000'000);
  run();
  EXPECT_EQ(taken_->code(), Code::deadline_exceeded) << taken_->to_string();
}

TEST_F(ShmFdPassing, from_a_peer_whose_backlog_stays_full_ends_at_the_deadline) {
  const std::string name = "faro-test-" + std::to_string(getpid());
  const base::UniqueFd silent = abstract_socket(name, true);
  ASSERT_TRUE(silent.valid());
  std::vector<base::UniqueFd> waiting;
  for (;;) {
    waiting.push_back(abstract_socket(name, false));
    if (!waiting.back().valid()) break;
  }
  fetch(kToken, name, 50'000'000);
  EXPECT_FALSE(taken_.has_value()) << "it tries again";
  run();
  EXPECT_EQ(taken_->code(), Code::deadline_exceeded) << taken_->to_string();
}

TEST_F(ShmFdPassing,
       that_brings_another_number_of_descriptors_or_greeting_is_refused_and_leaks_none) {
  struct Answer {
    size_t bytes;
    size_t fds;
  };
  for (const Answer answer :
       {Answer{8, 0}, Answer{8, 1}, Answer{8, 3}, Answer{8, 8}, Answer{8, 20}, Answer{3, 2}}) {
    SCOPED_TRACE(answer.fds);
    const size_t before = open_descriptors();
    const std::string name = "faro-test-" + std::to_string(getpid());
    {
      const base::UniqueFd listener = abstract_socket(name, true);
      ASSERT_TRUE(listener.valid());
      taken_.reset();
      fetch(kToken, name);
      const base::UniqueFd peer(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      ASSERT_TRUE(peer.valid());
      std::string greeting = "faroshm1";
      iovec bytes{greeting.data(), answer.bytes};
      std::vector<char> control(CMSG_SPACE(answer.fds * sizeof(int)));
      msghdr message{};
      message.msg_iov = &bytes;
      message.msg_iovlen = 1;
      if (answer.fds > 0) {
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(answer.fds * sizeof(int));
        const std::vector<int> fds(answer.fds, 1);
        std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
      }
      ASSERT_EQ(sendmsg(peer.get(), &message, 0), static_cast<ssize_t>(answer.bytes));
      run();
      EXPECT_EQ(taken_->code(), Code::protocol_error) << taken_->to_string();
      receiver_.reset();
    }
    EXPECT_EQ(open_descriptors(), before);
  }
}

// --- the setup around it

class ShmSetupTest : public testing::Test, public LinkEvents {
 protected:
  void SetUp() override {
    doorbells_ = NodeDoorbells::make(1).value();
    workers_[0] = {&ready_, &doorbells_.line(0)};
    context_.outgoing = context_.incoming = {1, 1, 2, 4096};
    context_.workers = workers_;
    context_.doorbells = doorbells_.memory();
    context_.ready_group = groups_;
    context_.reactor = &reactor_;
    context_.events = this;
    context_.send = [this](std::span<const std::byte> message) {
      sent_.emplace_back(message.begin(), message.end());
    };
  }
  void on_link_failed(const Status&) override {}
  std::unique_ptr<LinkSetup> started(LinkContext& context) {
    std::unique_ptr<LinkSetup> setup = transport_.begin(context);
    EXPECT_TRUE(test::is_ok(setup->start()));
    return setup;
  }

  test::TestReactor reactor_;
  NodeDoorbells doorbells_;
  ring::ReadySet ready_{1};
  WorkerEnd workers_[1];
  uint32_t groups_[1] = {};
  LinkContext context_;
  std::vector<std::vector<std::byte>> sent_;
  ShmTransport transport_;
};

TEST_F(ShmSetupTest, that_is_given_up_leaves_nothing) {
  const size_t before = open_descriptors();
  std::unique_ptr<LinkSetup> setup = started(context_);
  ASSERT_EQ(sent_.size(), 1u);
  OfferMessage offer;
  ASSERT_EQ(sent_[0].size(), sizeof offer);
  std::memcpy(&offer, sent_[0].data(), sizeof offer);
  const std::string name(offer.name, offer.name_bytes);
  EXPECT_TRUE(listed_in_proc(name));
  setup.reset();
  EXPECT_FALSE(listed_in_proc(name));
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(ShmSetupTest, refuses_every_offer_that_is_none) {
  std::unique_ptr<LinkSetup> setup = started(context_);
  const std::vector<std::byte> good = sent_[0];
  const auto changed = [&](size_t at, std::byte value) {
    std::vector<std::byte> bad = good;
    bad[at] = value;
    return bad;
  };
  for (size_t bytes = 0; bytes < good.size(); ++bytes)
    EXPECT_EQ(setup->on_message(std::span(good).first(bytes)).code(), Code::protocol_error);
  EXPECT_EQ(setup->on_message(std::vector<std::byte>(4096)).code(), Code::protocol_error);
  EXPECT_EQ(setup->on_message(changed(0, std::byte{0})).code(), Code::protocol_error) << "magic";
  EXPECT_EQ(setup->on_message(changed(8, std::byte{99})).code(), Code::protocol_error) << "version";
  EXPECT_EQ(setup->on_message(changed(12, std::byte{0})).code(), Code::protocol_error) << "no name";
  EXPECT_EQ(setup->on_message(changed(12, std::byte{41})).code(), Code::protocol_error)
      << "name too long";
  EXPECT_EQ(setup->on_message(changed(15, std::byte{255})).code(), Code::protocol_error)
      << "name far too long";
  EXPECT_FALSE(setup->ready());
  EXPECT_TRUE(setup->on_message(good).ok()) << "its own offer is one";
  EXPECT_EQ(setup->on_message(good).code(), Code::protocol_error) << "a second one";
}

TEST_F(ShmSetupTest, refuses_a_data_connection_and_closes_it) {
  std::unique_ptr<LinkSetup> setup = transport_.begin(context_);
  const int stream = dup(1);
  EXPECT_EQ(setup->on_stream({stream}).code(), Code::protocol_error);
  EXPECT_LT(fcntl(stream, F_GETFD), 0);
}

TEST_F(ShmSetupTest, is_ready_with_itself_only_when_fetched_and_handed_over) {
  std::unique_ptr<LinkSetup> setup = started(context_);
  EXPECT_FALSE(setup->ready());
  std::vector<std::byte> longer = sent_[0];  // as a later release may send it
  longer.resize(longer.size() + 24, std::byte{9});
  ASSERT_TRUE(setup->on_message(longer).ok());
  EXPECT_FALSE(setup->ready());
  reactor_.run_until([&] { return setup->ready() || !setup->status().ok(); });
  ASSERT_TRUE(test::is_ok(setup->status()));
  ASSERT_TRUE(setup->ready());
  EXPECT_NE(setup->take(), nullptr);
}

TEST_F(ShmSetupTest, fails_with_the_cause_if_the_peers_rings_have_another_shape) {
  std::unique_ptr<LinkSetup> ours = started(context_);
  LinkContext other = context_;
  other.incoming.ring_bytes = 8192;
  std::unique_ptr<LinkSetup> theirs = started(other);
  ASSERT_TRUE(ours->on_message(sent_[1]).ok());
  reactor_.run_until([&] { return !ours->status().ok(); });
  EXPECT_EQ(ours->status().code(), Code::protocol_error) << ours->status().to_string();
  EXPECT_FALSE(ours->ready());
}

}  // namespace
}  // namespace faro::transport::shm
