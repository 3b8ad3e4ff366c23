// Making a TCP link: addresses, the preamble, and setups that cannot succeed.
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "support/certificates.h"
#include "support/expect.h"
#include "support/held_address.h"
#include "tls/credentials.h"
#include "unit/tcp_end.h"
#include "wire/preamble.h"

namespace faro::test {
namespace {

using transport::tcp::TcpTransport;

class TcpSetupTest : public TcpEnd {
 protected:
  void SetUp() override {
    context_.outgoing = context_.incoming = {1, 1, 2, 4096};
    for (size_t i = 0; i < context_.stream_token.size(); ++i)
      context_.stream_token[i] = static_cast<std::byte>(i + 100);
  }

  std::unique_ptr<transport::LinkSetup> dial(const std::string& address) {
    return dial(address, transport_);
  }
  std::unique_ptr<transport::LinkSetup> dial(const std::string& address, TcpTransport& transport) {
    context_.initiator = true;
    context_.peer_address = address;
    return transport.begin(context_);
  }
  void expect_ready(transport::LinkSetup& setup) {
    EXPECT_TRUE(is_ok(setup.start()));
    EXPECT_TRUE(reactor_.run_until([&] { return setup.ready(); })) << setup.status().to_string();
  }
  /// Where a node dials from whose own address this is.
  std::string dials_from(const std::string& own);
};

// A listening socket on loopback.
struct Listening {
  explicit Listening(const std::string& at = "127.0.0.1:0") : held(at) {
    ok = !held.address().empty() && listen(held.socket(), 4) == 0;
  }
  base::UniqueFd accept(int flags = 0) const {
    return base::UniqueFd(accept4(held.socket(), nullptr, nullptr, SOCK_CLOEXEC | flags));
  }
  const std::string& address() const { return held.address(); }

  HeldAddress held;
  bool ok = false;
};

TEST_F(TcpSetupTest, the_initiator_dials_and_names_the_link_in_the_preamble) {
  for (const std::string at : {"127.0.0.1:0", "[::1]:0"}) {
    const Listening listening(at);
    if (!listening.ok && at == "[::1]:0") GTEST_SKIP() << "no IPv6 loopback here";
    ASSERT_TRUE(listening.ok);
    SCOPED_TRACE(listening.address());
    const auto setup = dial(listening.address());
    expect_ready(*setup);
    const base::UniqueFd accepted = listening.accept();
    std::array<std::byte, sizeof(wire::Preamble)> bytes;
    ASSERT_EQ(recv(accepted.get(), bytes.data(), bytes.size(), MSG_WAITALL),
              static_cast<ssize_t>(bytes.size()));
    EXPECT_EQ(std::memcmp(bytes.data(), "FARO\1\0\2\0", 8), 0);
    EXPECT_EQ(std::memcmp(bytes.data() + 8, context_.stream_token.data(), 16), 0);
    EXPECT_EQ(wire::why_invalid(wire::load_preamble(bytes)), nullptr);
  }
}

TEST_F(TcpSetupTest, the_initiator_notices_that_the_peer_has_closed_before_the_link_is_ready) {
  const Listening listening;
  ASSERT_TRUE(listening.ok);
  const auto setup = dial(listening.address());
  expect_ready(*setup);
  listening.accept().reset();
  ASSERT_TRUE(reactor_.run_until([&] { return !setup->status().ok(); }));
  EXPECT_FALSE(setup->ready());
  expect_error(setup->status(), Code::connect_failed, {listening.address()});
  // To the peer it may be up, and is mended then.
  EXPECT_NE(setup->take(), nullptr);
}

// With TLS 1.3 the side that dials has said all before its certificate is looked at.
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

  TcpTransport transport(std::nullopt, tls::Credentials::load(own.resolved()).value());
  const Listening listening;
  context_.peer_host = "127.0.0.1";
  const auto setup = dial(listening.address(), transport);
  ASSERT_TRUE(setup->start().ok()) << setup->status().to_string();
  const base::UniqueFd accepted = listening.accept(SOCK_NONBLOCK);
  ASSERT_TRUE(accepted.valid());
  const std::shared_ptr<SSL> peer(SSL_new(accepts.get()), SSL_free);
  SSL_set_fd(peer.get(), accepted.get());
  ASSERT_TRUE(reactor_.run_until([&] {
    if (!setup->ready()) SSL_accept(peer.get());
    return setup->ready();
  })) << setup->status().to_string();

  EXPECT_EQ(SSL_accept(peer.get()), -1);
  ASSERT_EQ(shutdown(accepted.get(), SHUT_WR), 0);
  ASSERT_TRUE(reactor_.run_until([&] { return !setup->status().ok(); }));
  expect_error(setup->status(), Code::authentication_failed, {"refuses this node's certificate"});
}

std::string TcpSetupTest::dials_from(const std::string& own) {
  const auto resolved = transport::tcp::resolve(own);
  EXPECT_TRUE(is_ok(resolved));
  TcpTransport transport(transport::tcp::source_of(resolved->front()));
  const Listening listening;
  const auto setup = dial(listening.address(), transport);
  expect_ready(*setup);
  transport::tcp::SocketAddress from;
  from.length = sizeof from.storage;
  const base::UniqueFd accepted = listening.accept();
  EXPECT_EQ(getpeername(accepted.get(), reinterpret_cast<sockaddr*>(&from.storage), &from.length),
            0);
  return transport::tcp::to_string(from);
}

TEST_F(TcpSetupTest, the_initiator_dials_from_the_address_of_its_node) {
  const std::string from = dials_from("127.0.0.3:7000");
  EXPECT_EQ(from.substr(0, from.find(':')), "127.0.0.3");
  EXPECT_NE(from, "127.0.0.3:7000") << "that port is the listener's";
}

TEST_F(TcpSetupTest, a_source_that_this_host_does_not_have_is_not_used) {
  const std::string from = dials_from("192.0.2.1:7000");
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
  const std::string address = Listening().address();
  const auto setup = dial(address);
  const Status started = setup->start();
  ASSERT_TRUE(reactor_.run_until([&] { return !setup->status().ok(); }));
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
  const Listening listening;
  {
    const auto setup = dial(listening.address());
    ASSERT_TRUE(setup->start().ok());
  }
  const base::UniqueFd accepted = listening.accept();
  std::byte byte;
  EXPECT_EQ(recv(accepted.get(), &byte, 1, 0), 0) << "the connection is still open";
}

TEST_F(TcpSetupTest, setup_messages_are_refused_and_a_second_connection_replaces_the_first) {
  context_.initiator = false;
  const auto setup = transport_.begin(context_);
  ASSERT_TRUE(setup->start().ok());
  const std::array<std::byte, 3> message{};
  EXPECT_EQ(setup->on_message(message).code(), Code::protocol_error);
  auto [first, mine] = tcp_socket_pair();
  ASSERT_TRUE(setup->on_stream({mine.release()}).ok());
  auto [second, another] = tcp_socket_pair();
  EXPECT_TRUE(is_ok(setup->on_stream({another.release()})));
  char byte;
  EXPECT_EQ(recv(first.get(), &byte, 1, 0), 0) << "which its peer has given up";
  EXPECT_EQ(recv(second.get(), &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_TRUE(setup->ready());
}

TEST_F(TcpSetupTest, the_side_that_dials_takes_no_connection) {
  const Listening listening;
  const auto setup = dial(listening.address());
  ASSERT_TRUE(setup->start().ok());
  auto [raw, mine] = tcp_socket_pair();
  EXPECT_EQ(setup->on_stream({mine.release()}).code(), Code::protocol_error);
}

TEST_F(TcpSetupTest, the_memory_of_a_link_is_known_before_it_is_opened) {
  const ring::Layout forth{2, 3, 2, 32768};
  const ring::Layout back{3, 2, 2, 32768};
  // Whole pages of 12 rings, between which lies a cache line.
  EXPECT_EQ(transport_.memory_bytes(forth, back), 2u * (12 * 32768 + 4096));
  EXPECT_GT(transport_.state_bytes(forth, back), 24u * 512);
  EXPECT_TRUE(transport_.available().ok());
  EXPECT_FALSE(transport_.capabilities().same_host_only);
}

}  // namespace
}  // namespace faro::test
