// SocketAcceptor: a peer that begins TLS and leaves, or stays and says no more, has failed; one
// that is slow without TLS is only dropped. A flood pushes out only its own.
#include "links/socket_acceptor.h"
#include "links/attempt_limiter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "faro/log.h"
#include "support/certificates.h"
#include "support/expect.h"
#include "transport/tcp/socket_address.h"

namespace {

// What an outsider does after the acceptor has looked at its socket and found nothing.
std::function<void()> meanwhile;

}  // namespace

// In place of libc's.
extern "C" ssize_t recv(int fd, void* buffer, size_t bytes, int flags) {
  const ssize_t got = recvfrom(fd, buffer, bytes, flags, nullptr, nullptr);
  const int error = errno;
  if (got < 0 && flags == MSG_PEEK && meanwhile) std::exchange(meanwhile, {})();
  errno = error;
  return got;
}

namespace faro::links {
namespace {

constexpr base::Nanoseconds kWaitLimit = 10'000'000'000;

base::UniqueFd dial(const std::string& address, const std::string& from = "127.0.0.1") {
  const transport::tcp::SocketAddress to = transport::tcp::resolve(address).value().front();
  const transport::tcp::SocketAddress source = transport::tcp::resolve(from + ":0").value().front();
  base::UniqueFd fd(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(bind(fd.get(), source.get(), source.length), 0);
  EXPECT_EQ(connect(fd.get(), to.get(), to.length), 0);
  return fd;
}

bool is_answered(const base::UniqueFd& fd) {
  char byte = 0;
  return recv(fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

bool is_closed(const base::UniqueFd& fd) {
  pollfd asked{fd.get(), POLLRDHUP, 0};
  return poll(&asked, 1, 0) == 1;
}

/// The first message of TLS, and nothing after it.
std::string client_hello() {
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  const std::shared_ptr<SSL> session(SSL_new(context.get()), SSL_free);
  BIO* const said = BIO_new(BIO_s_mem());
  SSL_set_bio(session.get(), BIO_new(BIO_s_mem()), said);
  SSL_connect(session.get());
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(said, &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}
void begin_tls(int fd) {
  static const std::string hello = client_hello();
  EXPECT_EQ(send(fd, hello.data(), hello.size(), MSG_NOSIGNAL), std::ssize(hello));
}

/// More connections than may wait, which do not go on.
struct Flood {
  bool begins_tls;
  std::string (*from)(size_t i);
};
std::string one_host(size_t) { return "127.0.0.2"; }
std::string host_of_the_caller(size_t) { return "127.0.0.1"; }
std::string many_hosts(size_t i) { return fmt::format("127.0.1.{}", 1 + i); }

class ConnectionsThatBegin : public testing::Test, private SocketAcceptor::Host {
 protected:
  ConnectionsThatBegin() {
    set_log_sink([this](LogLevel, std::string_view line) { log_.emplace_back(line); });
    auto listener = ListeningSocket::bind("127.0.0.1:0");
    socket_acceptor_.emplace(*reactor_, std::move(*listener), credentials_);
    EXPECT_TRUE(socket_acceptor_->open(this).ok());
  }
  ~ConnectionsThatBegin() override {
    socket_acceptor_.reset();
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
  /// Begins that number of connections; `one_by_one`: each is looked at before the next one begins.
  std::vector<base::UniqueFd> begin_several(size_t count, bool one_by_one) {
    std::vector<base::UniqueFd> callers;
    while (callers.size() < count) {
      callers.push_back(dial(socket_acceptor_->address()));
      begin_tls(callers.back().get());
      if (one_by_one) reactor_->run_once(clock().now_ns() + kWaitLimit);
    }
    return callers;
  }
  std::vector<base::UniqueFd> flood(const Flood& how) {
    std::vector<base::UniqueFd> outsiders;
    for (size_t i = 0; i <= SocketAcceptor::kWaitingLimit; ++i) {
      outsiders.push_back(dial(socket_acceptor_->address(), how.from(i)));
      if (how.begins_tls) begin_tls(outsiders.back().get());
      reactor_->run_once(clock().now_ns());
    }
    return outsiders;
  }
  /// A node dials from 127.0.0.1 and is let in, though there is a flood after whatever it says.
  void expect_let_in(bool with_tls, const Flood& during) {
    base::UniqueFd fd = dial(socket_acceptor_->address());
    EXPECT_EQ(fcntl(fd.get(), F_SETFL, O_NONBLOCK), 0);
    auto stream = with_tls ? credentials_->dial(fd.get(), "127.0.0.1") : nullptr;
    tls::Socket caller(std::move(fd), std::move(stream));
    const wire::Preamble preamble = wire::control_preamble();
    for (auto unsaid = std::as_bytes(std::span(&preamble, 1)); !unsaid.empty();) {
      const ssize_t said = caller.send(unsaid.first(8));  // or a step of the handshake
      ASSERT_TRUE(said > 0 || errno == EAGAIN);
      if (said > 0) unsaid = unsaid.subspan(static_cast<size_t>(said));
      const std::vector<base::UniqueFd> outsiders = flood(during);
      wait([&] { return std::ranges::any_of(outsiders, is_closed); });
      if (HasFailure()) return;
    }
    wait([&] { return let_in_ == 1; });
    EXPECT_EQ(std::count(refused_from_.begin(), refused_from_.end(), "127.0.0.1"), 0);
  }
  template <class Condition>
  void wait(const Condition& condition) {
    const base::Nanoseconds until = clock().now_ns() + kWaitLimit;
    while (!condition() && clock().now_ns() < until) reactor_->run_once(until);
    EXPECT_TRUE(condition());
  }
  static const base::Clock& clock() { return base::SystemClock::instance(); }

  const test::NodeFiles files_ = test::Authority().issue();
  const std::shared_ptr<tls::Credentials> credentials_ =
      tls::Credentials::load(files_.resolved()).value();
  std::unique_ptr<EpollReactor> reactor_ = EpollReactor::create(clock()).value();
  std::optional<SocketAcceptor> socket_acceptor_;
  base::Nanoseconds may_try_at_ = 0;
  size_t may_try_together_ = SIZE_MAX;
  size_t expected_streams_ = 0;
  base::Nanoseconds next_turn_at_ = 0;  // may_try_at_ from the next turn on
  std::vector<std::string> turns_;
  int let_in_ = 0;
  int others_ = 0;  // of another protocol
  std::vector<Status> refused_;
  std::vector<std::string> refused_from_;  // hosts
  std::vector<std::string> log_;

 private:
  void on_other(tls::Socket, const std::string&) override { ++others_; }
  void on_control(tls::Socket, const std::string&) override { ++let_in_; }
  void on_data(const std::array<std::byte, 16>&, tls::Socket, const std::string&) override {
    ADD_FAILURE();
  }
  base::Nanoseconds may_try_at(const std::string&) override { return may_try_at_; }
  size_t may_try_together(const std::string&) override { return may_try_together_; }
  size_t expected_streams() override { return expected_streams_; }
  void on_turn(const std::string& from) override {
    turns_.push_back(from);
    may_try_at_ = next_turn_at_;
  }
  void on_refused(base::UniqueFd, const std::string& peer_address, const Status& cause) override {
    refused_.push_back(cause);
    refused_from_.push_back(transport::tcp::host_of(peer_address));
  }
};

TEST_F(ConnectionsThatBegin, one_that_begins_tls_just_after_the_acceptor_has_looked_is_answered) {
  const base::UniqueFd fd = dial(socket_acceptor_->address());
  meanwhile = [&] { begin_tls(fd.get()); };
  char byte = 0;
  wait([&] { return recv(fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1 || is_closed(fd); });
  EXPECT_FALSE(meanwhile);
  EXPECT_EQ(byte, 22) << "no TLS";
  EXPECT_TRUE(log_.empty()) << log_.front();
}

TEST_F(ConnectionsThatBegin, one_that_leaves_in_the_handshake_has_failed) {
  base::UniqueFd outsider = dial(socket_acceptor_->address());
  EXPECT_TRUE(begins(outsider));
  outsider.reset();
  wait([&] { return !refused_.empty(); });
  test::expect_error(refused_[0], Code::authentication_failed, {"left in the TLS handshake"});
}

TEST_F(ConnectionsThatBegin, one_that_breaks_off_the_handshake_before_it_is_answered_has_failed) {
  base::UniqueFd outsider = dial(socket_acceptor_->address());
  begin_tls(outsider.get());
  const linger at_once{1, 0};
  ASSERT_EQ(setsockopt(outsider.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  outsider.reset();
  wait([&] { return !refused_.empty(); });
  ASSERT_FALSE(refused_.empty());
  EXPECT_EQ(refused_[0].code(), Code::authentication_failed);
}

TEST_F(ConnectionsThatBegin, one_that_continues_tls_after_a_while_is_accepted) {
  base::UniqueFd fd = dial(socket_acceptor_->address());
  EXPECT_EQ(fcntl(fd.get(), F_SETFL, O_NONBLOCK), 0);
  auto stream = credentials_->dial(fd.get(), "127.0.0.1");
  tls::Socket caller(std::move(fd), std::move(stream));
  const wire::Preamble preamble = wire::control_preamble();
  const auto goes_on = [&] {
    return caller.send(std::as_bytes(std::span(&preamble, 1))) == sizeof preamble;
  };
  EXPECT_FALSE(goes_on());
  const base::Nanoseconds dialled = clock().now_ns();
  wait([&] {  // it has seen TLS
    const base::Nanoseconds next = socket_acceptor_->next_deadline();
    return next != base::kForever && next > dialled + SocketAcceptor::kPreambleTime + 1'000'000'000;
  });
  socket_acceptor_->check_deadlines(clock().now_ns() + 20'000'000'000);
  bool said = false;
  wait([&] {
    said = said || goes_on();
    return let_in_ == 1;
  });
  EXPECT_TRUE(refused_.empty());
}

TEST_F(ConnectionsThatBegin, one_that_stays_in_the_handshake_has_failed_after_a_time) {
  const base::UniqueFd outsider = dial(socket_acceptor_->address());
  EXPECT_TRUE(begins(outsider));
  socket_acceptor_->check_deadlines(clock().now_ns());
  socket_acceptor_->check_deadlines(clock().now_ns() + SocketAcceptor::kPreambleTime);
  EXPECT_TRUE(refused_.empty());
  socket_acceptor_->check_deadlines(clock().now_ns() + SocketAcceptor::kTlsPreambleTime);
  ASSERT_EQ(refused_.size(), 1u);
  EXPECT_EQ(refused_[0].code(), Code::authentication_failed);
}

TEST_F(ConnectionsThatBegin, few_of_an_address_are_in_the_handshake_at_a_time) {
  const std::vector<base::UniqueFd> callers =
      begin_several(SocketAcceptor::kHandshakesPerAddress + 1, true);
  for (size_t i = 0; i < SocketAcceptor::kHandshakesPerAddress; ++i)
    wait([&] { return is_answered(callers[i]); });
  reactor_->run_once(clock().now_ns());
  EXPECT_FALSE(is_answered(callers.back()) || is_closed(callers.back()));
  const base::UniqueFd other = dial(socket_acceptor_->address(), "127.0.0.2");
  EXPECT_TRUE(begins(other)) << "it waits for another address";
}

TEST_F(ConnectionsThatBegin, who_waits_for_a_place_has_that_of_one_whose_handshake_is_over) {
  std::vector<base::UniqueFd> callers =
      begin_several(SocketAcceptor::kHandshakesPerAddress + 1, true);
  wait([&] { return is_answered(callers.front()); });
  callers.front().reset();
  wait([&] { return refused_.size() == 1; });
  socket_acceptor_->check_deadlines(clock().now_ns());
  wait([&] { return is_answered(callers.back()); });
}

TEST_F(ConnectionsThatBegin, who_leaves_before_its_turn_has_not_failed) {
  std::vector<base::UniqueFd> callers =
      begin_several(SocketAcceptor::kHandshakesPerAddress + 2, true);
  callers[SocketAcceptor::kHandshakesPerAddress].reset();
  callers.front().reset();
  wait([&] { return refused_.size() == 1; });  // in the handshake
  socket_acceptor_->check_deadlines(clock().now_ns());
  wait([&] { return is_answered(callers.back()); });
  EXPECT_EQ(refused_.size(), 1u);
}

TEST_F(ConnectionsThatBegin, who_stands_still_while_others_of_its_address_wait_has_failed) {
  const std::vector<base::UniqueFd> callers =
      begin_several(SocketAcceptor::kHandshakesPerAddress + 1, true);
  socket_acceptor_->check_deadlines(clock().now_ns());
  EXPECT_TRUE(refused_.empty());
  const base::Nanoseconds next = socket_acceptor_->next_deadline();
  EXPECT_LE(next, clock().now_ns() + SocketAcceptor::kPlaceTime);
  socket_acceptor_->check_deadlines(next);
  ASSERT_EQ(refused_.size(), 1u);
  test::expect_error(refused_[0], Code::authentication_failed, {"has stood still"});
  wait([&] { return is_answered(callers.back()); });
}

// A node that opens a thousand channels does so.
TEST_F(ConnectionsThatBegin, who_pushes_out_its_own_has_not_failed) {
  const std::vector<base::UniqueFd> callers =
      begin_several(4 * SocketAcceptor::kWaitingLimit, true);
  EXPECT_TRUE(refused_.empty());
  size_t closed = 0;
  for (const base::UniqueFd& each : callers) closed += is_closed(each);
  EXPECT_GE(closed, 3 * SocketAcceptor::kWaitingLimit);
  for (size_t i = 0; i < SocketAcceptor::kHandshakesPerAddress; ++i)
    EXPECT_FALSE(is_closed(callers[i])) << "one in the handshake has lost its place";
}

TEST_F(ConnectionsThatBegin, data_connections_of_admitted_peers_have_places_of_their_own) {
  expected_streams_ = SocketAcceptor::kWaitingLimit;
  const std::vector<base::UniqueFd> callers =
      begin_several(2 * SocketAcceptor::kWaitingLimit, true);
  for (const base::UniqueFd& each : callers) EXPECT_FALSE(is_closed(each));
}

TEST_F(ConnectionsThatBegin, who_is_pushed_out_of_the_handshake_by_others_has_not_failed) {
  const base::UniqueFd caller = dial(socket_acceptor_->address());
  EXPECT_TRUE(begins(caller));
  const std::vector<base::UniqueFd> outsiders = flood({true, many_hosts});
  wait([&] { return is_closed(caller); });
  EXPECT_TRUE(refused_.empty());
}

TEST_F(ConnectionsThatBegin, who_goes_on_with_tls_is_let_in_through_a_silent_flood) {
  expect_let_in(true, {false, one_host});
}
TEST_F(ConnectionsThatBegin, who_goes_on_with_tls_is_let_in_through_a_flood_of_handshakes) {
  expect_let_in(true, {true, one_host});
}
TEST_F(ConnectionsThatBegin,
       who_goes_on_with_tls_is_let_in_through_a_silent_flood_of_its_own_host) {
  expect_let_in(true, {false, host_of_the_caller});
}
TEST_F(ConnectionsThatBegin, who_goes_on_with_tls_is_let_in_through_a_silent_flood_of_many_hosts) {
  expect_let_in(true, {false, many_hosts});
}
TEST_F(ConnectionsThatBegin, who_goes_on_without_tls_is_let_in_through_a_silent_flood) {
  expect_let_in(false, {false, one_host});
}

TEST_F(ConnectionsThatBegin, who_has_failed_too_often_waits_for_its_turn_in_the_order_of_coming) {
  const base::Nanoseconds later = clock().now_ns() + 2'000'000'000;
  may_try_at_ = next_turn_at_ = later;
  const std::vector<base::UniqueFd> callers = begin_several(3, false);
  wait([&] { return socket_acceptor_->next_deadline() == later; });
  reactor_->run_once(clock().now_ns());
  EXPECT_TRUE(turns_.empty());
  socket_acceptor_->check_deadlines(later);
  EXPECT_EQ(turns_.size(), 3u);
  socket_acceptor_->check_deadlines(later - 1);
  EXPECT_EQ(turns_.size(), 3u);
  for (const base::UniqueFd& each : callers) wait([&] { return is_answered(each); });
  EXPECT_TRUE(refused_.empty());
  EXPECT_TRUE(log_.empty());
}

TEST_F(ConnectionsThatBegin, one_of_those_who_wait_has_its_turn_at_a_time) {
  may_try_at_ = clock().now_ns() + 2'000'000'000;
  next_turn_at_ = base::kForever;
  const std::vector<base::UniqueFd> callers = begin_several(3, true);
  socket_acceptor_->check_deadlines(may_try_at_);
  EXPECT_EQ(turns_.size(), 1u);
  wait([&] { return is_answered(callers[0]); });
  EXPECT_FALSE(is_answered(callers[1]) || is_closed(callers[1]));
}

TEST_F(ConnectionsThatBegin, who_has_failed_lately_tries_with_few_others_of_its_address) {
  may_try_together_ = 2;
  const std::vector<base::UniqueFd> callers = begin_several(4, true);
  for (const size_t first : {0, 1}) wait([&] { return is_answered(callers[first]); });
  socket_acceptor_->check_deadlines(clock().now_ns());
  reactor_->run_once(clock().now_ns());
  for (const size_t other : {2, 3}) EXPECT_FALSE(is_answered(callers[other])) << other;
  may_try_together_ = SIZE_MAX;  // its failures are forgotten
  socket_acceptor_->check_deadlines(clock().now_ns());
  for (const size_t other : {2, 3}) wait([&] { return is_answered(callers[other]); });
  EXPECT_TRUE(refused_.empty());
}

TEST_F(ConnectionsThatBegin, few_of_an_address_may_wait_for_their_turn_and_the_others_are_dropped) {
  may_try_at_ = base::kForever;
  const std::vector<base::UniqueFd> callers =
      begin_several(AttemptLimiter::kWaitingPerAddress + 1, true);
  wait([&] { return is_closed(callers.back()); });
  EXPECT_FALSE(is_closed(callers.front()));
  EXPECT_TRUE(refused_.empty());
  EXPECT_EQ(log_.size(), 1u);
}

TEST_F(ConnectionsThatBegin, who_says_nothing_is_dropped_and_has_not_failed) {
  const base::UniqueFd outsider = dial(socket_acceptor_->address());
  wait([&] { return socket_acceptor_->next_deadline() != base::kForever; });
  socket_acceptor_->check_deadlines(clock().now_ns() + SocketAcceptor::kPreambleTime);
  EXPECT_EQ(socket_acceptor_->next_deadline(), base::kForever);
  EXPECT_TRUE(refused_.empty());
  EXPECT_EQ(log_.size(), 1u);
}

TEST_F(ConnectionsThatBegin, who_speaks_another_protocol_is_known_by_the_first_byte) {
  const base::UniqueFd other = dial(socket_acceptor_->address());
  EXPECT_EQ(send(other.get(), "G", 1, 0), 1);
  wait([&] { return others_ == 1; });
  EXPECT_TRUE(refused_.empty());
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_NE(log_.front().find("not a Faro connection"), std::string::npos);
}

TEST_F(ConnectionsThatBegin, who_only_looks_what_listens_is_answered_and_nobody_is_warned) {
  const base::UniqueFd probe = dial(socket_acceptor_->address());
  std::array<char, sizeof(wire::Preamble)> bytes{};
  std::ranges::copy(wire::kProbeBegin, bytes.begin());
  for (const char& each : bytes) {
    EXPECT_EQ(others_, 0);
    EXPECT_EQ(send(probe.get(), &each, 1, 0), 1);
    socket_acceptor_->check_deadlines(clock().now_ns());
  }
  wait([&] { return others_ == 1; });
  EXPECT_TRUE(refused_.empty());
  EXPECT_TRUE(log_.empty());
}

TEST_F(ConnectionsThatBegin,
       who_begins_like_a_probe_and_goes_on_otherwise_speaks_another_protocol) {
  const base::UniqueFd other = dial(socket_acceptor_->address());
  EXPECT_EQ(send(other.get(), "\0\0\0\x18\xBA\xDC\x0F\xFE", 8, 0), 8);
  wait([&] { return others_ == 1; });
  EXPECT_EQ(log_.size(), 1u);
}

}  // namespace
}  // namespace faro::links
