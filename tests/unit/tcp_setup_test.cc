// Making a TCP link: addresses, the preamble, and setups that cannot succeed.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "support/certificates.h"
#include "support/expect.h"
#include "support/tcp_socket_pair.h"
#include "support/test_reactor.h"
#include "tls/credentials.h"
#include "transport/tcp/socket_address.h"
#include "transport/tcp/tcp_transport.h"
#include "wire/preamble.h"

namespace faro::test {
namespace {

class TcpSetupTest : public testing::Test, public transport::LinkEvents {
 protected:
  void SetUp() override {
    worker_ = {&ready_set_, &doorbell_};
    context_.outgoing = context_.incoming = {1, 1, 2, 4096};
    context_.workers = {&worker_, 1};
    context_.ready_group = {&ready_group_, 1};
    context_.reactor = &reactor_;
    context_.events = this;
    for (size_t i = 0; i < context_.stream_token.size(); ++i)
      context_.stream_token[i] = static_cast<std::byte>(i + 100);
  }
  void on_link_failed(const Status&) override { ++failures_; }

  std::unique_ptr<transport::LinkSetup> dial(const std::string& address) {
    context_.initiator = true;
    context_.peer_address = address;
    return transport_.begin(context_);
  }
  template <typename Done>
  bool pump_until(Done&& done) {
    for (int rounds = 0; rounds < 30'000; ++rounds) {
      if (done()) return true;
      reactor_.run_once(1);
    }
    return false;
  }

  TestReactor reactor_;
  transport::tcp::TcpTransport transport_;
  ring::ReadySet ready_set_{1};
  ring::DoorbellLine doorbell_{};
  transport::WorkerEnd worker_;
  uint32_t ready_group_ = 0;
  transport::LinkContext context_;
  int failures_ = 0;
};

// A listening socket on loopback.
struct Listening {
  explicit Listening(int family)
      : fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = in6addr_loopback;
    transport::tcp::SocketAddress bound;
    bound.length = family == AF_INET ? sizeof v4 : sizeof v6;
    std::memcpy(&bound.storage, family == AF_INET ? static_cast<void*>(&v4) : &v6, bound.length);
    ok = fd.valid() && bind(fd.get(), bound.get(), bound.length) == 0 && listen(fd.get(), 4) == 0;
    getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.length);
    address = transport::tcp::to_string(bound);
  }
  base::UniqueFd fd;
  bool ok = false;
  std::string address;
};

TEST_F(TcpSetupTest, the_initiator_dials_and_names_the_link_in_the_preamble) {
  for (const int family : {AF_INET, AF_INET6}) {
    const Listening listening(family);
    if (!listening.ok && family == AF_INET6) GTEST_SKIP() << "no IPv6 loopback here";
    ASSERT_TRUE(listening.ok);
    SCOPED_TRACE(listening.address);
    const auto setup = dial(listening.address);
    ASSERT_TRUE(setup->start().ok()) << setup->status().to_string();
    ASSERT_TRUE(pump_until([&] { return setup->ready(); })) << setup->status().to_string();
    base::UniqueFd accepted(accept4(listening.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::array<std::byte, sizeof(wire::Preamble)> bytes;
    ASSERT_EQ(recv(accepted.get(), bytes.data(), bytes.size(), MSG_WAITALL),
              static_cast<ssize_t>(bytes.size()));
    EXPECT_EQ(std::memcmp(bytes.data(), "FARO\1\0\2\0", 8), 0);
    EXPECT_EQ(std::memcmp(bytes.data() + 8, context_.stream_token.data(), 16), 0);
    EXPECT_EQ(wire::why_invalid(wire::load_preamble(bytes)), nullptr);
  }
}

TEST_F(TcpSetupTest, the_initiator_notices_that_the_peer_has_closed_before_the_link_is_ready) {
  const Listening listening(AF_INET);
  ASSERT_TRUE(listening.ok);
  const auto setup = dial(listening.address);
  ASSERT_TRUE(setup->start().ok()) << setup->status().to_string();
  ASSERT_TRUE(pump_until([&] { return setup->ready(); })) << setup->status().to_string();
  base::UniqueFd(accept4(listening.fd.get(), nullptr, nullptr, SOCK_CLOEXEC)).reset();
  ASSERT_TRUE(pump_until([&] { return !setup->status().ok(); }));
  EXPECT_FALSE(setup->ready());
  expect_error(setup->status(), Code::connect_failed, {listening.address});
}

// With TLS 1.3 who dials has said all before its certificate is looked at.
TEST_F(TcpSetupTest, the_initiator_is_told_that_its_certificate_was_refused_after_the_preamble) {
  const Authority authority;
  const NodeFiles own = authority.issue();
  const NodeFiles of_peer = authority.issue();
  const NodeFiles of_others = Authority().issue();
  const std::shared_ptr<SSL_CTX> accepts(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  SSL_CTX_use_certificate_file(accepts.get(), of_peer.certificate().c_str(), SSL_FILETYPE_PEM);
  SSL_CTX_use_PrivateKey_file(accepts.get(), of_peer.key().c_str(), SSL_FILETYPE_PEM);
  SSL_CTX_load_verify_file(accepts.get(), of_others.authority().c_str());
  SSL_CTX_set_verify(accepts.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);

  transport::tcp::TcpTransport transport(std::nullopt,
                                         tls::Credentials::load(own.resolved()).value());
  const Listening listening(AF_INET);
  context_.initiator = true;
  context_.peer_address = listening.address;
  context_.peer_host = "127.0.0.1";
  const auto setup = transport.begin(context_);
  ASSERT_TRUE(setup->start().ok()) << setup->status().to_string();
  const base::UniqueFd accepted(
      accept4(listening.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  ASSERT_TRUE(accepted.valid());
  const std::shared_ptr<SSL> peer(SSL_new(accepts.get()), SSL_free);
  SSL_set_fd(peer.get(), accepted.get());
  ASSERT_TRUE(pump_until([&] {
    if (!setup->ready()) SSL_accept(peer.get());
    return setup->ready();
  })) << setup->status().to_string();

  EXPECT_EQ(SSL_accept(peer.get()), -1);
  ASSERT_EQ(shutdown(accepted.get(), SHUT_WR), 0);
  ASSERT_TRUE(pump_until([&] { return !setup->status().ok(); }));
  expect_error(setup->status(), Code::authentication_failed, {"refuses this node's certificate"});
}

std::string dialled_from(int listening) {
  transport::tcp::SocketAddress from;
  from.length = sizeof from.storage;
  const base::UniqueFd accepted(
      accept4(listening, reinterpret_cast<sockaddr*>(&from.storage), &from.length, SOCK_CLOEXEC));
  return accepted.valid() ? transport::tcp::to_string(from) : "nobody";
}

TEST_F(TcpSetupTest, the_initiator_dials_from_the_address_of_its_node) {
  const auto own = transport::tcp::resolve("127.0.0.3:7000");
  ASSERT_TRUE(own.ok());
  transport::tcp::TcpTransport transport(transport::tcp::source_of(own->front()));
  const Listening listening(AF_INET);
  context_.initiator = true;
  context_.peer_address = listening.address;
  const auto setup = transport.begin(context_);
  ASSERT_TRUE(setup->start().ok()) << setup->status().to_string();
  ASSERT_TRUE(pump_until([&] { return setup->ready(); })) << setup->status().to_string();
  const std::string from = dialled_from(listening.fd.get());
  EXPECT_EQ(from.substr(0, from.find(':')), "127.0.0.3");
  EXPECT_NE(from, "127.0.0.3:7000") << "that port is the listener's";
}

TEST_F(TcpSetupTest, a_source_that_this_host_does_not_have_is_not_used) {
  const auto foreign = transport::tcp::resolve("192.0.2.1:7000");
  ASSERT_TRUE(foreign.ok());
  transport::tcp::TcpTransport transport(transport::tcp::source_of(foreign->front()));
  const Listening listening(AF_INET);
  context_.initiator = true;
  context_.peer_address = listening.address;
  const auto setup = transport.begin(context_);
  ASSERT_TRUE(setup->start().ok()) << setup->status().to_string();
  ASSERT_TRUE(pump_until([&] { return setup->ready(); })) << setup->status().to_string();
  const std::string from = dialled_from(listening.fd.get());
  EXPECT_EQ(from.substr(0, from.find(':')), "127.0.0.1");
}

TEST_F(TcpSetupTest, a_node_that_listens_everywhere_has_no_address_to_dial_from) {
  for (const char* address : {"0.0.0.0:7000", "[::]:7000"}) {
    const auto resolved = transport::tcp::resolve(address);
    ASSERT_TRUE(resolved.ok()) << address;
    EXPECT_FALSE(transport::tcp::source_of(resolved->front())) << address;
  }
}

TEST_F(TcpSetupTest, a_refused_dial_names_the_address) {
  std::string address;
  {
    const Listening listening(AF_INET);
    address = listening.address;
  }
  const auto setup = dial(address);
  const Status started = setup->start();
  ASSERT_TRUE(pump_until([&] { return !setup->status().ok(); }));
  EXPECT_FALSE(setup->ready());
  expect_error(setup->status(), Code::connect_failed, {address, "refused"});
}

TEST_F(TcpSetupTest, addresses_that_are_none_are_refused) {
  for (const char* address :
       {"", "nonsense", ":7000", "127.0.0.1:", "[::1]", "127.0.0.1:port", "256.1.1.1.1:80"}) {
    const auto setup = dial(address);
    const Status started = setup->start();
    EXPECT_EQ(started.code(), Code::connect_failed) << address;
    EXPECT_FALSE(setup->ready());
  }
}

TEST_F(TcpSetupTest, a_setup_that_is_given_up_leaves_nothing_behind) {
  const Listening listening(AF_INET);
  {
    const auto setup = dial(listening.address);
    ASSERT_TRUE(setup->start().ok());
  }
  base::UniqueFd accepted;
  ASSERT_TRUE(pump_until([&] {
    accepted.reset(accept4(listening.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return accepted.valid();
  }));
  std::byte byte;
  EXPECT_EQ(recv(accepted.get(), &byte, 1, 0), 0) << "the connection is still open";
}

TEST_F(TcpSetupTest, setup_messages_and_second_connections_are_refused) {
  context_.initiator = false;
  const auto setup = transport_.begin(context_);
  ASSERT_TRUE(setup->start().ok());
  const std::array<std::byte, 3> message{};
  EXPECT_EQ(setup->on_message(message).code(), Code::protocol_error);
  auto [first, mine] = tcp_socket_pair();
  ASSERT_TRUE(setup->on_stream({mine.release()}).ok());
  auto [second, another] = tcp_socket_pair();
  EXPECT_EQ(setup->on_stream({another.release()}).code(), Code::protocol_error);
  char byte;
  EXPECT_EQ(recv(second.get(), &byte, 1, 0), 0) << "and closed";
  EXPECT_TRUE(setup->ready());
}

TEST_F(TcpSetupTest, the_side_that_dials_takes_no_connection) {
  const Listening listening(AF_INET);
  const auto setup = dial(listening.address);
  ASSERT_TRUE(setup->start().ok());
  auto [raw, mine] = tcp_socket_pair();
  EXPECT_EQ(setup->on_stream({mine.release()}).code(), Code::protocol_error);
}

TEST_F(TcpSetupTest, the_memory_of_a_link_is_known_before_it_is_opened) {
  const ring::Layout forth{2, 3, 2, 32768};
  const ring::Layout back{3, 2, 2, 32768};
  EXPECT_EQ(transport_.memory_bytes(forth, back), 2u * 12 * (32768 + 64));
  EXPECT_TRUE(transport_.available().ok());
  EXPECT_FALSE(transport_.capabilities().same_host_only);
}

}  // namespace
}  // namespace faro::test
