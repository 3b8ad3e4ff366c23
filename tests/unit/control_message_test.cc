// Control messages and preambles: round trips, and that nothing but a whole, well-formed message is taken.
#include "wire/control.h"
#include "wire/data_message.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "support/expect.h"
#include "support/wire_page.h"
#include "wire/fields.h"

namespace faro::wire {
namespace {

using test::framed;
using test::hex_of_page;
using test::page_channel;
using test::page_hello;
using test::page_mending;

Hello sample_hello() {
  Hello hello = page_hello();
  hello.head.features = 0x8000000000000001u;
  hello.head.node = 2;
  hello.expected_node = 1;
  hello.transports = {"shm", "tcp"};
  return hello;
}

Hello sample_channel() {
  Hello hello = sample_hello();
  hello.purpose = Purpose::channel;
  hello.name = "reader";
  hello.expected_node = hello.node_count = 0;
  hello.rings = {65536, 4096};
  hello.greeting = {std::byte{0}, std::byte{255}, std::byte{7}};
  return hello;
}

void expect_equal(const Hello& a, const Hello& b) {
  EXPECT_EQ(a.head.version, b.head.version);
  EXPECT_EQ(a.head.features, b.head.features);
  EXPECT_EQ(a.head.node, b.head.node);
  EXPECT_EQ(a.head.cluster_hash, b.head.cluster_hash);
  EXPECT_EQ(a.purpose, b.purpose);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.rings, b.rings);
  EXPECT_EQ(a.greeting, b.greeting);
  EXPECT_EQ(a.expected_node, b.expected_node);
  EXPECT_EQ(a.node_count, b.node_count);
  EXPECT_EQ(a.incarnation, b.incarnation);
  EXPECT_EQ(a.cluster_id, b.cluster_id);
  EXPECT_EQ(a.address, b.address);
  EXPECT_EQ(a.host_identity, b.host_identity);
  EXPECT_EQ(a.transports, b.transports);
  EXPECT_EQ(a.settings, b.settings);
  EXPECT_EQ(a.mends, b.mends);
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
  for (const Hello& each : {hello, sample_channel(), page_mending()})
    expect_equal(each, test::value_of(decode_hello(encode(each))));
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
  EXPECT_FALSE(choice.rings);
  LinkChoice of_channel = sample_choice();
  of_channel.rings = ChannelRings{65536, 0};
  EXPECT_EQ(test::value_of(decode_link_choice(encode(of_channel))).rings, of_channel.rings);
  LinkChoice mends = sample_choice();
  mends.number = 9;
  EXPECT_EQ(test::value_of(decode_link_choice(encode(mends))).number, 9u);
  EXPECT_EQ(choice.number, 0u);
  EXPECT_EQ(test::value_of(decode_resume(encode_resume({7}))).messages, 7u);
  EXPECT_EQ(test::value_of(decode_heartbeat(encode_heartbeat({7})))->messages, 7u);
  EXPECT_FALSE(test::value_of(decode_heartbeat(encode_plain(ControlKind::heartbeat))));
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
  for (const ControlKind kind :
       {ControlKind::ready, ControlKind::heartbeat, ControlKind::bye, ControlKind::broken}) {
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
      {"FAIL", encode_fail({Code::peer_lost, false, "why"}),
       [](auto m) { return decode_ending(m).ok(); }},
      {"LINK", encode(sample_choice()), [](auto m) { return decode_link_choice(m).ok(); }},
      {"READY", encode_plain(ControlKind::ready), [](auto m) { return check_plain(m).ok(); }},
      {"HEARTBEAT", encode_plain(ControlKind::heartbeat),
       [](auto m) { return check_plain(m).ok(); }},
      {"HEARTBEAT that acknowledges", encode_heartbeat({5}),
       [](auto m) { return m.size() != 1 && decode_heartbeat(m).ok(); }},
      {"BROKEN", encode_plain(ControlKind::broken), [](auto m) { return check_plain(m).ok(); }},
      {"RESUME", encode_resume({5}), [](auto m) { return decode_resume(m).ok(); }},
      {"BYE", encode_plain(ControlKind::bye), [](auto m) { return check_plain(m).ok(); }},
      {"MEMBERS", encode(Members{true, std::vector<bool>(10)}),
       [](auto m) { return decode_members(m, 10).ok(); }},
  };
}

TEST(ControlMessages, every_truncation_and_every_extension_by_what_is_no_field_is_refused) {
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
      EXPECT_LE(encode(hello).size(), flipped.size()) << "less if a field became another";
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
  hello.transports.assign(Hello::kTransportLimit, std::string(Hello::kNameLimit, 't'));
  hello.settings.assign(Hello::kSettingsLimit, 's');
  hello.greeting.resize(Hello::kGreetingLimit);
  for (std::string* name : {&hello.cluster_id, &hello.name, &hello.address, &hello.host_identity})
    name->assign(Hello::kNameLimit, 'n');
  EXPECT_TRUE(decode_hello(encode(hello)).ok()) << "all at their limits";
  EXPECT_LE(encode(hello).size(), kControlMessageLimit);
  for (const auto& grow : std::vector<std::function<void(Hello&)>>{
           [](Hello& h) { h.settings += 's'; }, [](Hello& h) { h.greeting.push_back({}); },
           [](Hello& h) { h.name += 'n'; }, [](Hello& h) { h.transports[0] += 't'; }}) {
    Hello larger = hello;
    grow(larger);
    EXPECT_FALSE(decode_hello(encode(larger)).ok());
  }
}

// --------------------------------------------------------------------------------- how messages grow

/// A message with a field at its end; the number is larger than all that are known.
ControlMessage with_field(ControlMessage message, uint16_t tag, size_t bytes = 3) {
  FieldWriter(message).bytes(tag, std::vector<std::byte>(bytes, std::byte{9}));
  return message;
}

constexpr uint16_t kUnknownField = 0x1234;

TEST(ControlMessages, with_an_unknown_field_are_read_unless_it_is_required) {
  for (const Kind& kind : all_kinds()) {
    const ControlMessage longer = with_field(kind.message, kUnknownField);
    EXPECT_TRUE(kind.accepts(longer)) << kind.name;
    EXPECT_TRUE(kind.accepts(with_field(longer, kUnknownField + 1, 0))) << kind.name;
    EXPECT_FALSE(kind.accepts(with_field(longer, kUnknownField))) << kind.name << ": twice";
    EXPECT_FALSE(kind.accepts(with_field(longer, kUnknownField - 1))) << kind.name << ": disorder";
    EXPECT_FALSE(kind.accepts(with_field(kind.message, kRequiredField | kUnknownField)))
        << kind.name;
  }
}

TEST(ControlMessages, a_required_field_that_is_unknown_is_named) {
  const auto refused =
      decode_hello(with_field(encode(sample_hello()), kRequiredField | kUnknownField));
  EXPECT_EQ(refused.status().code(), Code::configuration_mismatch);
  test::expect_contains(refused.status().message(), "required field 4660");
  const auto broken = decode_hello(
      with_field(with_field(encode(sample_hello()), kRequiredField | kUnknownField), 0));
  EXPECT_EQ(broken.status().code(), Code::protocol_error) << "malformed comes first";
}

struct RawField {
  uint16_t tag;
  std::vector<std::byte> bytes;
};

std::vector<RawField> fields_of(const ControlMessage& hello) {
  std::vector<RawField> fields;
  FieldReader reader{std::span(hello).subspan(32)};
  for (size_t at = 32; reader.next(); at += 4 + fields.back().bytes.size()) {
    uint16_t tag = 0;
    std::memcpy(&tag, hello.data() + at, sizeof tag);
    fields.push_back({tag, {reader.bytes().begin(), reader.bytes().end()}});
  }
  EXPECT_FALSE(reader.malformed());
  return fields;
}

ControlMessage hello_with(const std::vector<RawField>& fields) {
  ControlMessage message = encode(sample_hello());
  message.resize(32);
  FieldWriter writer(message);
  for (const RawField& field : fields) writer.bytes(field.tag, field.bytes);
  return message;
}

TEST(HelloFields, that_are_absent_have_their_default_unless_they_are_needed) {
  const struct {
    int number;
    bool is_needed;
  } all[] = {{1, true},  {2, true}, {3, true},  {4, false},  {5, false},
             {6, false}, {7, true}, {8, false}, {11, false}, {12, false}};
  const std::vector<RawField> fields = fields_of(encode(sample_channel()));
  ASSERT_EQ(fields.size(), std::size(all));
  for (size_t left_out = 0; left_out < fields.size(); ++left_out) {
    EXPECT_EQ(fields[left_out].tag & ~kRequiredField, all[left_out].number);
    std::vector<RawField> rest = fields;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(left_out));
    const auto decoded = decode_hello(hello_with(rest));
    EXPECT_EQ(decoded.ok(), !all[left_out].is_needed) << all[left_out].number;
    EXPECT_EQ((fields[left_out].tag & kRequiredField) != 0, all[left_out].is_needed);
  }
  const auto least = decode_hello(hello_with({fields[0], fields[1], fields[2], fields[6]}));
  ASSERT_TRUE(least.ok());
  Hello expected;
  expected.head = sample_channel().head;
  expected.purpose = Purpose::channel;
  expected.incarnation = sample_channel().incarnation;
  expected.cluster_id = sample_channel().cluster_id;
  expected.transports = sample_channel().transports;
  expect_equal(least.value(), expected);
}

TEST(HelloFields, of_a_session_are_its_number_and_that_of_its_nodes) {
  const std::vector<RawField> fields = fields_of(encode(sample_hello()));
  for (const int number : {9, 10}) {
    std::vector<RawField> rest = fields;
    EXPECT_EQ(
        std::erase_if(rest, [&](const RawField& f) { return (f.tag & ~kRequiredField) == number; }),
        1u);
    EXPECT_FALSE(decode_hello(hello_with(rest)).ok()) << number;
  }
}

TEST(HelloFields, of_another_length_are_refused) {
  for (const Hello& hello : {sample_hello(), sample_channel(), page_mending()}) {
    const std::vector<RawField> fields = fields_of(encode(hello));
    for (const int number : {1, 2, 7, 9, 10, 11, 14}) {
      for (size_t i = 0; i < fields.size(); ++i) {
        if ((fields[i].tag & ~kRequiredField) != number) continue;
        std::vector<RawField> longer = fields;
        longer[i].bytes.push_back(std::byte{1});
        EXPECT_FALSE(decode_hello(hello_with(longer)).ok()) << number;
        std::vector<RawField> shorter = fields;
        shorter[i].bytes.pop_back();
        EXPECT_FALSE(decode_hello(hello_with(shorter)).ok()) << number;
      }
    }
  }
}

TEST(HelloFields, mean_the_same_with_and_without_the_bit_that_requires_them) {
  std::vector<RawField> fields = fields_of(encode(sample_channel()));
  for (RawField& field : fields) field.tag ^= kRequiredField;
  const auto decoded = decode_hello(hello_with(fields));
  ASSERT_TRUE(decoded.ok());
  expect_equal(decoded.value(), sample_channel());
}

TEST(HelloFields, out_of_order_or_twice_are_refused_and_unknown_ones_between_are_skipped) {
  const std::vector<RawField> fields = fields_of(encode(sample_channel()));
  std::vector<RawField> changed = fields;
  std::swap(changed[1], changed[2]);
  EXPECT_FALSE(decode_hello(hello_with(changed)).ok());
  changed = fields;
  changed.insert(changed.begin() + 1, fields[0]);
  EXPECT_FALSE(decode_hello(hello_with(changed)).ok());
  changed = fields;
  changed[3].tag = 4 + 0x40;  // the name becomes unknown, and is too early
  EXPECT_FALSE(decode_hello(hello_with(changed)).ok());
  changed = fields;
  changed.insert(changed.end(), {0x40, {std::byte{1}}});
  changed.insert(changed.end(), {0x41, {}});
  const auto decoded = decode_hello(hello_with(changed));
  ASSERT_TRUE(decoded.ok());
  expect_equal(decoded.value(), sample_channel());
}

TEST(HelloFields, a_purpose_that_is_unknown_is_kept_for_the_refusal_and_0_is_none) {
  std::vector<RawField> fields = fields_of(encode(sample_channel()));
  fields[0].bytes = {std::byte{3}};
  EXPECT_EQ(decode_hello(hello_with(fields)).value().purpose, static_cast<Purpose>(3));
  fields[0].bytes = {std::byte{0}};
  EXPECT_FALSE(decode_hello(hello_with(fields)).ok());
}

TEST(ControlMessages, of_the_upper_half_of_kinds_may_be_skipped) {
  for (int kind = 0; kind < 256; ++kind)
    EXPECT_EQ(may_skip(static_cast<ControlKind>(kind)), kind >= 128) << kind;
}

TEST(FeatureBits, in_the_upper_half_are_required_of_the_receiver) {
  EXPECT_EQ(unknown_requirements(0), 0u);
  EXPECT_EQ(unknown_requirements(0xffff'ffffu), 0u) << "abilities that are only offered";
  EXPECT_EQ(unknown_requirements(uint64_t{1} << 32), uint64_t{1} << 32);
  EXPECT_EQ(unknown_requirements(~uint64_t{0}), kRequiredFeatures);
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
  EXPECT_EQ(hex_of_page("HELLO of a channel"), framed(encode(page_channel())));
  EXPECT_EQ(hex_of_page("LINK of a channel"),
            framed(encode(LinkChoice{"tcp", token, ChannelRings{16384, 4096}})));
  EXPECT_EQ(hex_of_page("HELLO that mends a link"), framed(encode(page_mending())));
  EXPECT_EQ(hex_of_page("LINK of a link that can be mended"),
            framed(encode(LinkChoice{"tcp", token, {}, 9})));
  EXPECT_EQ(hex_of_page("HEARTBEAT that acknowledges"), framed(encode_heartbeat({5})));
  EXPECT_EQ(hex_of_page("RESUME"), framed(encode_resume({5})));
  const DataMessage resume = resume_message(3, 64, 8192);
  const auto resume_bytes = std::as_bytes(std::span(&resume, 1));
  EXPECT_EQ(hex_of_page("data message RESUME"),
            std::vector<std::byte>(resume_bytes.begin(), resume_bytes.end()));
  const DataMessage sign = sign_message();
  const auto sign_bytes = std::as_bytes(std::span(&sign, 1));
  EXPECT_EQ(hex_of_page("data message SIGN"),
            std::vector<std::byte>(sign_bytes.begin(), sign_bytes.end()));
  EXPECT_EQ(hex_of_page("READY"), framed(encode_plain(ControlKind::ready)));
  EXPECT_EQ(hex_of_page("REFUSE"),
            framed(encode_refuse({Code::configuration_mismatch, false, "ring.bytes differs"})));
  EXPECT_EQ(hex_of_page("BYE"), framed(encode_plain(ControlKind::bye)));
}

}  // namespace
}  // namespace faro::wire
