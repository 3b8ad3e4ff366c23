// Who may join, by hand: where a secret comes from, and what the handshake makes of it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "links/attempt_limiter.h"
#include "links/secret.h"
#include "links/secret_authentication.h"
#include "support/expect.h"
#include "support/handshake_pair.h"
#include "support/secret_file.h"
#include "support/wire_page.h"

namespace faro::links {
namespace {

using test::kOtherSecret;
using test::kSecret;
using test::SecretFile;

std::shared_ptr<const Secret> secret_of(std::string_view text) {
  return Secret::make(std::as_bytes(std::span(text)), "the test").value();
}

// ------------------------------------------------------------------------------- where it is from

Status load(const std::string& path) {
  base::Settings settings;
  settings.secret_file = path;
  return load_secret(settings).status();
}

// As long as it lives, in the environment of this process.
struct Variable {
  explicit Variable(const char* text) { setenv("FARO_SECRET", text, 1); }
  ~Variable() { unsetenv("FARO_SECRET"); }
};

TEST(Secrets, are_read_from_a_file_without_the_line_break_at_its_end) {
  const SecretFile file(std::string(kSecret) + "\r\n");
  base::Settings settings;
  settings.secret_file = file.path();
  const auto loaded = test::value_of(load_secret(settings));
  const Secret::Mac mac = loaded->sign({}).value();
  EXPECT_TRUE(equal(mac, secret_of(kSecret)->sign({}).value()));
  EXPECT_FALSE(equal(mac, secret_of(kOtherSecret)->sign({}).value()));
}

TEST(Secrets, that_cannot_be_used_are_refused_with_the_reason_and_never_shown) {
  const struct {
    std::string text;
    mode_t mode;
    const char* why;
  } cases[] = {{"", 0600, "empty"},
               {" \n", 0600, "empty"},
               {"quite a short secret", 0600, "has 20 bytes, it needs 32"},
               {std::string(Secret::kMostBytes + 1, 'x'), 0600, "more than 4096"},
               {std::string(kSecret), 0660, "mode 0660"},
               {std::string(kSecret), 0604, "chmod 600"},
               {std::string(kSecret), 0602, "chmod 600"}};
  for (const auto& each : cases) {
    const SecretFile file(each.text, each.mode);
    const Status status = load(file.path());
    test::expect_error(status, Code::config_invalid,
                       {"security.secret_file = " + file.path(), each.why});
    EXPECT_EQ(status.message().find(kSecret), std::string_view::npos);
  }
  test::expect_contains(load("/no/such/file").message(), "No such file");
  test::expect_contains(load("/tmp").message(), "no plain file");
}

TEST(Secrets, come_from_the_environment_or_a_file_but_not_from_both) {
  EXPECT_TRUE(load("").ok());
  const SecretFile file;
  const Variable variable(std::string(kSecret).c_str());
  EXPECT_TRUE(load("").ok());
  EXPECT_NE(load_secret({}).value(), nullptr);
  test::expect_error(load(file.path()), Code::config_invalid, {"FARO_SECRET", file.path()});
  Config config;
  EXPECT_TRUE(config.load_environment().ok());
  EXPECT_EQ(config.set("security.secret", kSecret).code(), Code::config_invalid);
}

TEST(Secrets, in_the_environment_that_are_too_short_are_refused) {
  const Variable variable("short");
  test::expect_error(load(""), Code::config_invalid, {"FARO_SECRET: the secret has 5 bytes"});
}

// RFC 4231, test case 2 has a key of 4 bytes; case 6 one that is long enough.
TEST(Secrets, sign_as_the_standard_says) {
  const std::vector<std::byte> key(131, std::byte{0xaa});
  const std::string_view text = "Test Using Larger Than Block-Size Key - Hash Key First";
  const auto mac = Secret::make(key, "the test").value()->sign(std::as_bytes(std::span(text)));
  constexpr unsigned char kRight[] = {0x60, 0xe4, 0x31, 0x59, 0x1e, 0xe0, 0xb6, 0x7f,
                                      0x0d, 0x8a, 0x26, 0xaa, 0xcb, 0xf5, 0xb7, 0x7f,
                                      0x8e, 0x0b, 0xc6, 0x21, 0x37, 0x28, 0xc5, 0x14,
                                      0x05, 0x46, 0x04, 0x0f, 0x0e, 0xe3, 0x7f, 0x54};
  EXPECT_EQ(std::memcmp(mac.value().data(), kRight, sizeof kRight), 0);
}

// -------------------------------------------------------------------------------- the handshake

struct SecretPair : test::HandshakePair {
  explicit SecretPair(std::string_view dialling_secret = kSecret,
                      std::string_view accepting_secret = kSecret) {
    if (!dialling_secret.empty()) dialling.identity.secret = secret_of(dialling_secret);
    if (!accepting_secret.empty()) accepting.identity.secret = secret_of(accepting_secret);
  }
};

std::vector<wire::ControlMessage> recorded();

/// Whether message i of a good handshake is by the dialling side.
bool by_dialling(size_t i) { return i < 6 && i % 2 == 0; }

TEST(SecretHandshakes, admit_both_sides_that_know_the_secret) {
  SecretPair pair;
  pair.run();
  EXPECT_EQ(pair.dialling.admitted, 1u);
  EXPECT_EQ(pair.accepting.admitted, 2u);
}

TEST(SecretHandshakes, refuse_a_wrong_or_missing_secret_on_both_sides_by_name) {
  const struct {
    std::string_view dialling;
    std::string_view accepting;
    const char* said;
    bool ends_accepting;  // it has no secret, so there is nothing to protect
  } cases[] = {
      {kSecret, kOtherSecret, "have different secrets", false},
      {"", kSecret, "node 1 (h1:7000) has a secret", false},
      {kSecret, "", "node 2 (h2:7000) has a secret", true},
  };
  for (const auto& each : cases) {
    SecretPair pair(each.dialling, each.accepting);
    pair.run();
    for (const test::HandshakeSide* side : {&pair.dialling, &pair.accepting}) {
      ASSERT_TRUE(side->refused) << each.said;
      EXPECT_FALSE(side->admitted);
      test::expect_error(side->refused->status, Code::authentication_failed,
                         {each.said, "node 1 (h1:7000)", "node 2 (h2:7000)"});
    }
    // A node that has a secret believes nobody who has not shown that it knows it.
    EXPECT_EQ(pair.dialling.refused->ends_open, each.dialling.empty());
    EXPECT_FALSE(pair.dialling.refused->retry);
    EXPECT_EQ(pair.dialling.refused->is_final(), each.dialling.empty());
    EXPECT_EQ(pair.accepting.refused->ends_open, each.ends_accepting) << each.said;
  }
}

TEST(SecretHandshakes, name_other_differences_only_to_those_who_know_the_secret) {
  SecretPair pair;
  pair.dialling.identity.hello.settings = "ring.bytes=4096\n";
  pair.run();
  for (const test::HandshakeSide* side : {&pair.dialling, &pair.accepting}) {
    ASSERT_TRUE(side->refused);
    EXPECT_EQ(side->refused->status.code(), Code::configuration_mismatch);
    EXPECT_TRUE(side->refused->ends_open);
  }
  SecretPair outsider("", kSecret);
  outsider.dialling.identity.hello.settings = "ring.bytes=4096\n";
  outsider.begin();
  outsider.accepting.wire->handler->on_message(outsider.dialling.wire->sent.front());
  EXPECT_FALSE(outsider.accepting.refused);
}

TEST(SecretHandshakes, an_unauthenticated_peer_of_another_version_does_not_end_open) {
  SecretPair pair("", kSecret);
  pair.dialling.identity.hello.head.version = 9;
  pair.run();
  ASSERT_TRUE(pair.accepting.refused);
  EXPECT_FALSE(pair.accepting.refused->ends_open);
}

TEST(SecretHandshakes, nothing_that_is_said_before_the_proof_ends_the_open_of_the_dialling_side) {
  const wire::ControlMessage refuse =
      wire::encode_refuse({Code::internal_error, false, "by an outsider"});
  wire::Hello other_version = test::page_hello();
  other_version.head.version = 9;
  const std::vector<wire::ControlMessage> all = recorded();
  const std::vector<std::vector<wire::ControlMessage>> cases = {
      {refuse},
      {all[1], refuse},
      {all[1], all[3], refuse},
      {wire::encode(other_version)},
      {all[1], wire::encode(wire::Auth{wire::AuthMethod::none, true, {}})},
      {all[1], all[3], all[3]},  // not a proof
  };
  for (const auto& said : cases) {
    SecretPair pair;
    pair.dialling.begin();
    for (const wire::ControlMessage& message : said)
      pair.dialling.wire->handler->on_message(message);
    ASSERT_TRUE(pair.dialling.refused);
    EXPECT_FALSE(pair.dialling.refused->ends_open);
    EXPECT_FALSE(pair.dialling.refused->is_final());
    test::expect_contains(pair.dialling.refused->status.message(), "unverified");
  }
}

TEST(SecretHandshakes, what_the_accepting_side_says_after_its_proof_is_believed) {
  SecretPair pair;
  pair.accepting.judgement =
      links::Refusal{Status(Code::configuration_mismatch, "its number is taken"), false, false};
  pair.run();
  ASSERT_TRUE(pair.dialling.refused);
  EXPECT_FALSE(pair.dialling.admitted);
  EXPECT_TRUE(pair.dialling.refused->is_final());
  EXPECT_TRUE(pair.dialling.refused->ends_open);
  EXPECT_EQ(pair.dialling.refused->status.message(), "its number is taken");
}

/// All messages of a good handshake, in order: HELLO, HELLO, challenge, challenge, proof, proof,
/// agreement.
std::vector<wire::ControlMessage> recorded() {
  SecretPair pair;
  std::vector<wire::ControlMessage> all;
  pair.begin();
  while (all.size() < 7) {
    const bool dials = by_dialling(all.size());
    test::HandshakeSide& from = dials ? pair.dialling : pair.accepting;
    test::HandshakeSide& to = dials ? pair.accepting : pair.dialling;
    all.push_back(from.take_sent());
    to.wire->handler->on_message(all.back());
  }
  return all;
}

TEST(SecretHandshakes, replay_is_refused_in_both_directions) {
  const std::vector<wire::ControlMessage> all = recorded();
  SecretPair pair;
  pair.accepting.drawn = 200;
  pair.accepting.begin();
  for (const size_t from_dialling : {0, 2, 4})
    pair.accepting.wire->handler->on_message(all[from_dialling]);
  pair.dialling.drawn = 200;
  pair.dialling.begin();
  for (const size_t from_accepting : {1, 3, 5})
    pair.dialling.wire->handler->on_message(all[from_accepting]);
  for (const test::HandshakeSide* side : {&pair.dialling, &pair.accepting}) {
    ASSERT_TRUE(side->refused);
    EXPECT_FALSE(side->admitted);
    EXPECT_EQ(side->refused->status.code(), Code::authentication_failed);
  }
}

TEST(SecretHandshakes, who_sends_back_what_it_got_proves_nothing) {
  SecretPair pair;
  pair.accepting.identity.secret = nullptr;
  pair.begin();
  auto& sent = pair.dialling.wire->sent;
  pair.accepting.wire->handler->on_message(sent.front());
  pair.dialling.wire->handler->on_message(pair.accepting.wire->sent.front());
  ASSERT_EQ(sent.size(), 2u);
  pair.dialling.wire->handler->on_message(wire::ControlMessage(sent[1]));  // its own challenge
  ASSERT_EQ(sent.size(), 3u);
  pair.dialling.wire->handler->on_message(wire::ControlMessage(sent[2]));  // its own proof
  ASSERT_TRUE(pair.dialling.refused);
  EXPECT_EQ(pair.dialling.refused->status.code(), Code::authentication_failed);
}

TEST(SecretHandshakes, a_changed_bit_in_any_message_keeps_its_receiver_out) {
  const size_t count = recorded().size();
  for (size_t changed = 0; changed < count; ++changed) {
    const size_t bits = recorded()[changed].size() * 8;
    for (size_t bit = 0; bit < bits; ++bit) {
      SecretPair pair;
      pair.begin();
      for (size_t i = 0; i < count; ++i) {
        test::HandshakeSide& from = by_dialling(i) ? pair.dialling : pair.accepting;
        test::HandshakeSide& to = by_dialling(i) ? pair.accepting : pair.dialling;
        if (from.wire->sent.empty() || to.wire->handler == nullptr) break;
        wire::ControlMessage message = from.take_sent();
        if (i == changed) message[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
        to.wire->handler->on_message(message);
      }
      const test::HandshakeSide& receiver = by_dialling(changed) ? pair.accepting : pair.dialling;
      ASSERT_FALSE(receiver.admitted) << "message " << changed << ", bit " << bit;
      // The last two are the accepting side's: it has seen the dialling side's proof by then.
      ASSERT_EQ(pair.accepting.admitted.has_value(), changed >= 5);
    }
  }
}

TEST(SecretHandshakes, who_says_that_nothing_follows_before_its_proof_gets_none) {
  const std::vector<wire::ControlMessage> all = recorded();
  for (const size_t last : {size_t{2}, size_t{3}}) {  // the challenges
    SecretPair pair;
    test::HandshakeSide& side = last == 2 ? pair.accepting : pair.dialling;
    side.begin();
    side.wire->handler->on_message(all[last - 2]);
    side.wire->sent.clear();
    wire::ControlMessage message = all[last];
    message[2] = std::byte{1};
    side.wire->handler->on_message(message);
    EXPECT_FALSE(side.admitted);
    ASSERT_TRUE(side.refused);
    EXPECT_EQ(side.refused->status.code(), Code::protocol_error);
    ASSERT_EQ(side.wire->sent.size(), 1u);
    EXPECT_EQ(wire::kind_of(side.wire->sent[0]), wire::ControlKind::refuse);
  }
}

TEST(SecretHandshakes, auth_without_a_proof_or_of_the_method_that_wants_none_is_refused) {
  const std::vector<wire::ControlMessage> all = recorded();
  for (const wire::AuthMethod method : {wire::AuthMethod::none, wire::AuthMethod::secret}) {
    for (const bool dials : {false, true}) {
      SecretPair pair;
      test::HandshakeSide& side = dials ? pair.dialling : pair.accepting;
      side.begin();
      side.wire->handler->on_message(all[dials ? 1 : 0]);
      side.wire->handler->on_message(wire::encode(wire::Auth{method, true, {}}));
      EXPECT_FALSE(side.admitted);
      EXPECT_TRUE(side.refused);
    }
  }
}

TEST(SecretHandshakes, challenges_and_proofs_of_another_size_are_refused) {
  const std::vector<wire::ControlMessage> all = recorded();
  for (const size_t changed : {size_t{2}, size_t{4}}) {  // to the accepting side
    for (const int more : {-1, 1}) {
      SecretPair pair;
      pair.accepting.begin();
      for (size_t i = 0; i <= changed; i += 2) {
        wire::ControlMessage message = all[i];
        if (i == changed)
          message.resize(static_cast<size_t>(static_cast<int>(message.size()) + more));
        pair.accepting.wire->handler->on_message(message);
      }
      ASSERT_TRUE(pair.accepting.refused) << changed << ", " << more;
      EXPECT_EQ(pair.accepting.refused->status.code(), Code::protocol_error);
    }
  }
}

// The worked example of native/wire/README.md; its proofs were made by another implementation.
TEST(WirePage, shows_the_proofs_that_are_sent) {
  wire::Hello accepting = test::page_hello();
  accepting.head.node = 0;
  accepting.expected_node = 1;
  accepting.incarnation = 0xc1c2c3c4c5c6c7c8u;
  accepting.address = "h0:7000";
  const Introduction introduction{wire::encode(test::page_hello()), wire::encode(accepting)};
  Challenge of_dialling;
  Challenge of_accepting;
  for (size_t i = 0; i < of_dialling.size(); ++i) {
    of_dialling[i] = static_cast<std::byte>(i);
    of_accepting[i] = static_cast<std::byte>(i + 32);
  }
  SecretAuthentication dials(secret_of(kSecret), Role::dialling, of_dialling, introduction);
  SecretAuthentication accepts(secret_of(kSecret), Role::accepting, of_accepting, introduction);
  std::vector<std::byte> said;
  std::vector<std::vector<std::byte>> payloads;
  for (int i = 0; i < 4; ++i) {
    std::vector<std::byte> answer;
    ASSERT_TRUE((i % 2 == 0 ? dials : accepts).advance(said, answer).ok());
    payloads.push_back(answer);
    said = answer;
  }
  const auto framed = [&](bool last, const std::vector<std::byte>& payload) {
    return test::framed(wire::encode(wire::Auth{wire::AuthMethod::secret, last, payload}));
  };
  EXPECT_EQ(test::hex_of_page("AUTH, proof by node 1"), framed(true, payloads[2]));
  EXPECT_EQ(test::hex_of_page("AUTH, proof by node 0"), framed(false, payloads[3]));
  EXPECT_EQ(test::hex_of_page("AUTH, agreement"), framed(true, {}));
}

// -------------------------------------------------------------------------------------- attempts

TEST(Attempts, of_one_address_are_few_at_once_and_then_one_per_interval) {
  AttemptLimiter limiter;
  base::Nanoseconds now = 1'000'000'000'000;
  for (int i = 0; i < AttemptLimiter::kAtOnce; ++i) {
    EXPECT_TRUE(limiter.allows("10.0.0.1", now)) << i;
    limiter.spend("10.0.0.1", now);
  }
  EXPECT_FALSE(limiter.allows("10.0.0.1", now));
  EXPECT_TRUE(limiter.allows("10.0.0.2", now));
  now += AttemptLimiter::kInterval;
  EXPECT_TRUE(limiter.allows("10.0.0.1", now));
  limiter.spend("10.0.0.1", now);
  EXPECT_FALSE(limiter.allows("10.0.0.1", now));
  now += AttemptLimiter::kAtOnce * AttemptLimiter::kInterval;
  for (int i = 0; i < AttemptLimiter::kAtOnce; ++i) {
    EXPECT_TRUE(limiter.allows("10.0.0.1", now)) << i;
    limiter.spend("10.0.0.1", now);
  }
}

TEST(Attempts, that_are_under_way_are_as_many_as_may_fail) {
  AttemptLimiter limiter;
  base::Nanoseconds now = 1'000'000'000'000;
  EXPECT_EQ(limiter.may_be_under_way("10.0.0.1", now), SIZE_MAX) << "none has failed";
  for (size_t left = AttemptLimiter::kAtOnce - 1; left > 0; --left) {
    limiter.spend("10.0.0.1", now);
    EXPECT_EQ(limiter.may_be_under_way("10.0.0.1", now), left);
  }
  for (int i = 0; i < 3; ++i) limiter.spend("10.0.0.1", now);
  EXPECT_EQ(limiter.may_be_under_way("10.0.0.1", now), 1u) << "the one whose turn it is";
  EXPECT_EQ(limiter.may_be_under_way("10.0.0.2", now), SIZE_MAX);
  now += 3 * AttemptLimiter::kInterval;
  EXPECT_EQ(limiter.may_be_under_way("10.0.0.1", now), 3u);
  now += AttemptLimiter::kAtOnce * AttemptLimiter::kInterval;
  EXPECT_EQ(limiter.may_be_under_way("10.0.0.1", now), SIZE_MAX) << "it is forgotten";
}

TEST(Attempts, that_failed_all_at_once_keep_the_next_waiting_for_one_interval_only) {
  AttemptLimiter limiter;
  const base::Nanoseconds now = 1'000'000'000'000;
  for (int i = 0; i < 1000; ++i) limiter.spend("10.0.0.1", now);
  EXPECT_EQ(limiter.next("10.0.0.1"), now + AttemptLimiter::kInterval);
  EXPECT_EQ(limiter.next("10.0.0.2"), 0u);
}

TEST(Attempts, of_many_addresses_take_bounded_memory_and_the_latest_are_remembered) {
  AttemptLimiter limiter;
  for (int i = 0; i < AttemptLimiter::kAtOnce; ++i) limiter.spend("busy", 0);
  for (size_t i = 0; i < 2 * AttemptLimiter::kAddressLimit; ++i)
    limiter.spend(std::to_string(i), 0);
  EXPECT_FALSE(limiter.allows("busy", 0));
}

}  // namespace
}  // namespace faro::links
