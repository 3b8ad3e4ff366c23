// Door: who begins TLS and leaves, or stays and says no more, has failed; who is slow without TLS is only dropped.
#include "session/door.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "faro/log.h"
#include "support/certificates.h"
#include "transport/tcp/socket_address.h"

namespace faro::session {
namespace {

constexpr base::Nanoseconds kWaitLimit = 10'000'000'000;

base::UniqueFd dial(const std::string& address) {
  const transport::tcp::SocketAddress to = transport::tcp::resolve(address).value().front();
  base::UniqueFd fd(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(fd.get(), to.get(), to.length), 0);
  return fd;
}

/// The first message of TLS, and nothing after it.
void begin_tls(int fd) {
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  const std::shared_ptr<SSL> session(SSL_new(context.get()), SSL_free);
  BIO* const said = BIO_new(BIO_s_mem());
  SSL_set_bio(session.get(), BIO_new(BIO_s_mem()), said);
  SSL_connect(session.get());
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(said, &bytes);
  EXPECT_EQ(send(fd, bytes, static_cast<size_t>(size), MSG_NOSIGNAL), size);
}

class KnockingAtTheDoor : public testing::Test, private Door::Host {
 protected:
  KnockingAtTheDoor() {
    set_log_sink([this](LogLevel, std::string_view line) { log_.emplace_back(line); });
    auto listener = Listener::bind("127.0.0.1:0");
    door_.emplace(*reactor_, std::move(*listener),
                  tls::Credentials::load(files_.resolved()).value());
    EXPECT_TRUE(door_->open(this).ok());
  }
  ~KnockingAtTheDoor() override {
    door_.reset();
    set_log_sink({});
  }

  /// Begins TLS and waits for the answer; false if there is none.
  bool begins(const base::UniqueFd& fd) {
    begin_tls(fd.get());
    char byte = 0;
    ssize_t got = -1;
    wait([&] {
      got = recv(fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      return got >= 0 || errno != EAGAIN;
    });
    return got == 1;
  }
  template <class Condition>
  void wait(const Condition& condition) {
    const base::Nanoseconds until = clock().now_ns() + kWaitLimit;
    while (!condition() && clock().now_ns() < until) reactor_->run_once(until);
    EXPECT_TRUE(condition());
  }
  static const base::Clock& clock() { return base::SystemClock::instance(); }

  const test::NodeFiles files_ = test::Authority().issue();
  std::unique_ptr<EpollReactor> reactor_ = EpollReactor::create(clock()).value();
  std::optional<Door> door_;
  bool may_try_ = true;
  std::vector<Status> refused_;
  std::vector<std::string> log_;

 private:
  void on_control(tls::Socket, const std::string&) override { ADD_FAILURE(); }
  void on_data(const std::array<std::byte, 16>&, tls::Socket, const std::string&) override {
    ADD_FAILURE();
  }
  bool may_try(const std::string&) override { return may_try_; }
  void on_refused(base::UniqueFd, const std::string&, const Status& cause) override {
    refused_.push_back(cause);
  }
};

TEST_F(KnockingAtTheDoor, who_leaves_in_the_handshake_has_failed) {
  base::UniqueFd stranger = dial(door_->address());
  EXPECT_TRUE(begins(stranger));
  stranger.reset();
  wait([&] { return !refused_.empty(); });
  EXPECT_EQ(refused_[0].code(), Code::authentication_failed);
  EXPECT_NE(refused_[0].message().find("left in the TLS handshake"), std::string_view::npos);
}

TEST_F(KnockingAtTheDoor, who_stays_in_the_handshake_has_failed_after_a_time) {
  const base::UniqueFd stranger = dial(door_->address());
  EXPECT_TRUE(begins(stranger));
  door_->check_deadlines(clock().now_ns());
  EXPECT_TRUE(refused_.empty());
  door_->check_deadlines(clock().now_ns() + Door::kPreambleTime);
  ASSERT_EQ(refused_.size(), 1u);
  EXPECT_EQ(refused_[0].code(), Code::authentication_failed);
}

TEST_F(KnockingAtTheDoor, who_is_pushed_out_of_the_handshake_by_others_has_failed) {
  std::vector<base::UniqueFd> strangers;
  for (size_t i = 0; i <= Door::kWaitingLimit; ++i) {
    strangers.push_back(dial(door_->address()));
    EXPECT_TRUE(begins(strangers.back()));
    EXPECT_EQ(refused_.size(), i / Door::kWaitingLimit);
  }
}

TEST_F(KnockingAtTheDoor, who_has_failed_too_often_is_not_answered) {
  may_try_ = false;
  EXPECT_FALSE(begins(dial(door_->address())));
  EXPECT_TRUE(refused_.empty());
  EXPECT_EQ(log_.size(), 1u);
}

TEST_F(KnockingAtTheDoor, who_says_nothing_is_dropped_and_has_not_failed) {
  const base::UniqueFd stranger = dial(door_->address());
  wait([&] { return door_->next_deadline() != base::kForever; });
  door_->check_deadlines(clock().now_ns() + Door::kPreambleTime);
  EXPECT_EQ(door_->next_deadline(), base::kForever);
  EXPECT_TRUE(refused_.empty());
  EXPECT_EQ(log_.size(), 1u);
}

}  // namespace
}  // namespace faro::session
