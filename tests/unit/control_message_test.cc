// Control messages and preambles: round trips, and that nothing but a whole, well-formed message is taken.
#include "wire/control.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "support/expect.h"
#include "support/wire_page.h"

namespace faro::wire {
namespace {

using test::framed;
using test::hex_of_page;
using test::page_hello;

Hello sample_hello() {
  Hello hello = page_hello();
  hello.head.features = 0x8000000000000001u;
  hello.head.node = 2;
  hello.expected_node = 1;
  hello.transports = {"shm", "tcp"};
  return hello;
}

void expect_equal(const Hello& a, const Hello& b) {
  EXPECT_EQ(a.head.version, b.head.version);
  EXPECT_EQ(a.head.features, b.head.features);
  EXPECT_EQ(a.head.node, b.head.node);
  EXPECT_EQ(a.head.cluster_hash, b.head.cluster_hash);
  EXPECT_EQ(a.expected_node, b.expected_node);
  EXPECT_EQ(a.node_count, b.node_count);
  EXPECT_EQ(a.incarnation, b.incarnation);
  EXPECT_EQ(a.settings_digest, b.settings_digest);
  EXPECT_EQ(a.cluster_id, b.cluster_id);
  EXPECT_EQ(a.address, b.address);
  EXPECT_EQ(a.host_identity, b.host_identity);
  EXPECT_EQ(a.transports, b.transports);
  EXPECT_EQ(a.settings, b.settings);
}

LinkChoice sample_choice() {
  LinkChoice choice;
  choice.transport = "tcp";
  for (size_t i = 0; i < choice.token.size(); ++i) choice.token[i] = static_cast<std::byte>(i + 1);
  return choice;
}

Auth sample_auth() {
  Auth auth;
  auth.last = false;
  auth.payload = {std::byte{1}, std::byte{2}};
  return auth;
}

TEST(ControlMessages, hello_survives_a_round_trip) {
  const Hello hello = sample_hello();
  const auto decoded = test::value_of(decode_hello(encode(hello)));
  expect_equal(hello, decoded);
  const auto head = test::value_of(decode_hello_head(encode(hello)));
  EXPECT_EQ(head.node, 2u);
}

TEST(ControlMessages, the_others_survive_a_round_trip) {
  for (const auto encode_ending : {encode_refuse, encode_fail}) {
    const auto ending = test::value_of(
        decode_ending(encode_ending({Code::configuration_mismatch, true, "because"})));
    EXPECT_EQ(ending.code, Code::configuration_mismatch);
    EXPECT_TRUE(ending.retry);
    EXPECT_EQ(ending.reason, "because");
  }
  const auto auth = test::value_of(decode_auth(encode(sample_auth())));
  EXPECT_EQ(auth.method, AuthMethod::none);
  EXPECT_FALSE(auth.last);
  EXPECT_EQ(auth.payload, sample_auth().payload);
  const auto choice = test::value_of(decode_link_choice(encode(sample_choice())));
  EXPECT_EQ(choice.transport, "tcp");
  EXPECT_EQ(choice.token, sample_choice().token);
  const Members members{true, {false, true, false, false, false, false, false, false, true, false}};
  const auto seen = test::value_of(decode_members(encode(members), 10));
  EXPECT_TRUE(seen.linked);
  EXPECT_EQ(seen.missing, members.missing);
  EXPECT_FALSE(decode_members(encode(members), 8).ok()) << "more bytes than nodes";
  EXPECT_FALSE(decode_members(encode(members), 17).ok()) << "fewer bytes than nodes";
  auto beyond = encode(members);
  beyond.back() |= std::byte{4};
  EXPECT_FALSE(decode_members(beyond, 10).ok()) << "a node that there is not";
  const std::vector<std::byte> payload(kControlPayloadLimit, std::byte{7});
  for (const ControlKind kind : {ControlKind::setup, ControlKind::application}) {
    const auto message = encode_payload(kind, payload);
    const auto decoded = test::value_of(decode_payload(message));
    EXPECT_TRUE(std::equal(payload.begin(), payload.end(), decoded.begin(), decoded.end()));
  }
  for (const ControlKind kind : {ControlKind::ready, ControlKind::heartbeat, ControlKind::bye}) {
    EXPECT_TRUE(check_plain(encode_plain(kind)).ok());
    EXPECT_EQ(kind_of(encode_plain(kind)), kind);
  }
}

TEST(ControlMessages, a_hello_of_another_version_is_read_as_far_as_all_versions_agree) {
  Hello hello = sample_hello();
  hello.head.version = 9;
  ControlMessage message = encode(hello);
  message.resize(32);
  message.insert(message.end(), 5, std::byte{0xff});
  const auto head = test::value_of(decode_hello_head(message));
  EXPECT_EQ(head.version, 9);
  EXPECT_EQ(head.cluster_hash, hello.head.cluster_hash);
}

struct Kind {
  const char* name;
  ControlMessage message;
  std::function<bool(std::span<const std::byte>)> accepts;
};

std::vector<Kind> all_kinds() {
  return {
      {"HELLO", encode(sample_hello()), [](auto m) { return decode_hello(m).ok(); }},
      {"REFUSE", encode_refuse({Code::peer_lost, false, "why"}),
       [](auto m) { return decode_ending(m).ok(); }},
      {"LINK", encode(sample_choice()), [](auto m) { return decode_link_choice(m).ok(); }},
      {"READY", encode_plain(ControlKind::ready), [](auto m) { return check_plain(m).ok(); }},
  };
}

TEST(ControlMessages, every_truncation_and_every_extension_is_refused) {
  for (const Kind& kind : all_kinds()) {
    ASSERT_TRUE(kind.accepts(kind.message)) << kind.name;
    for (size_t length = 0; length < kind.message.size(); ++length) {
      // A copy of exactly that size, so that a sanitizer sees a read behind it.
      const ControlMessage cut(kind.message.begin(),
                               kind.message.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_FALSE(kind.accepts(cut)) << kind.name << " of " << length << " bytes";
    }
    ControlMessage longer = kind.message;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(kind.accepts(longer)) << kind.name;
  }
  const auto auth = encode(sample_auth());
  for (size_t length = 0; length < 4; ++length)
    EXPECT_FALSE(decode_auth(std::span(auth).first(length)).ok());
}

// Flipped bits either make a message malformed, or change a value: never anything else.
TEST(ControlMessages, every_bit_flip_is_refused_or_harmless) {
  for (const Kind& kind : all_kinds()) {
    size_t refused = 0;
    for (size_t bit = 0; bit < kind.message.size() * 8; ++bit) {
      ControlMessage flipped = kind.message;
      flipped[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
      if (!kind.accepts(flipped)) {
        ++refused;
        continue;
      }
      if (kind_of(flipped) != ControlKind::hello) continue;
      const Hello hello = decode_hello(flipped).value();
      EXPECT_LE(hello.transports.size(), Hello::kTransportLimit);
      EXPECT_LE(hello.settings.size(), Hello::kSettingsLimit);
      EXPECT_EQ(encode(hello).size(), flipped.size());
    }
    EXPECT_GT(refused, 0u) << kind.name;
  }
}

TEST(ControlMessages, text_of_a_peer_is_made_printable_and_unknown_codes_are_named_internal) {
  ControlMessage message = encode_refuse({Code::peer_lost, false, "a\nb\x1b[31m"});
  const auto ending = test::value_of(decode_ending(message));
  EXPECT_EQ(ending.reason, "a b [31m");
  const uint32_t unknown = 12345;
  std::memcpy(message.data() + 4, &unknown, sizeof unknown);
  EXPECT_EQ(decode_ending(message).value().code, Code::internal_error);
  const uint32_t ok = 0;
  std::memcpy(message.data() + 4, &ok, sizeof ok);
  EXPECT_EQ(decode_ending(message).value().code, Code::internal_error);
}

TEST(ControlMessages, payloads_and_reasons_stay_within_their_limits) {
  const std::vector<std::byte> large(kControlPayloadLimit + 1);
  EXPECT_FALSE(decode_payload(encode_payload(ControlKind::setup, large)).ok());
  Auth auth;
  auth.payload = large;
  EXPECT_FALSE(decode_auth(encode(auth)).ok());
  const auto ending =
      test::value_of(decode_ending(encode_fail({Code::peer_lost, false, std::string(5000, 'x')})));
  EXPECT_EQ(ending.reason.size(), Ending::kReasonLimit);
  Hello hello = sample_hello();
  hello.cluster_id = std::string(Hello::kNameLimit + 1, 'x');
  EXPECT_FALSE(decode_hello(encode(hello)).ok());
  hello = sample_hello();
  hello.transports.assign(Hello::kTransportLimit + 1, "tcp");
  EXPECT_FALSE(decode_hello(encode(hello)).ok());
}

// ------------------------------------------------------------------------------ the page's example

TEST(WirePage, shows_the_bytes_that_are_sent) {
  const Preamble control = control_preamble();
  const auto control_bytes = std::as_bytes(std::span(&control, 1));
  EXPECT_EQ(hex_of_page("preamble, control"),
            std::vector<std::byte>(control_bytes.begin(), control_bytes.end()));
  std::array<std::byte, kTokenBytes> token;
  for (size_t i = 0; i < token.size(); ++i) token[i] = static_cast<std::byte>(0xe0 + i);
  const Preamble data = data_preamble(token);
  const auto data_bytes = std::as_bytes(std::span(&data, 1));
  EXPECT_EQ(hex_of_page("preamble, data"),
            std::vector<std::byte>(data_bytes.begin(), data_bytes.end()));
  EXPECT_EQ(hex_of_page("HELLO"), framed(encode(page_hello())));
  EXPECT_EQ(hex_of_page("AUTH"), framed(encode(Auth{})));
  Auth challenge{AuthMethod::secret, false, {}};
  for (size_t i = 0; i < 32; ++i) challenge.payload.push_back(static_cast<std::byte>(i));
  EXPECT_EQ(hex_of_page("AUTH, challenge"), framed(encode(challenge)));
  EXPECT_EQ(hex_of_page("LINK"), framed(encode(LinkChoice{"tcp", token})));
  EXPECT_EQ(hex_of_page("READY"), framed(encode_plain(ControlKind::ready)));
  EXPECT_EQ(hex_of_page("REFUSE"),
            framed(encode_refuse({Code::configuration_mismatch, false, "ring.bytes differs"})));
  EXPECT_EQ(hex_of_page("BYE"), framed(encode_plain(ControlKind::bye)));
}

}  // namespace
}  // namespace faro::wire
