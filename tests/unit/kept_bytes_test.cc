// What version 4 of the wire format sent when it was first used must be understood as long as it is kept. kept/v4.txt has
// one section per message, frame and header; here stands what each means. Neither is ever changed, only added to.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/wire_page.h"
#include "transport/shm/segment.h"
#include "transport/shm/shm_setup.h"
#include "wire/control.h"
#include "wire/data_message.h"
#include "wire/frame.h"
#include "wire/preamble.h"
#include "wire/query_message.h"
#include "wire/verbs_message.h"

namespace faro::wire {
namespace {

using Bytes = std::vector<std::byte>;

std::array<std::byte, kTokenBytes> kept_token() {
  std::array<std::byte, kTokenBytes> token;
  for (size_t i = 0; i < token.size(); ++i) token[i] = static_cast<std::byte>(0xe0 + i);
  return token;
}

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// The struct at `at`, as it is read in place.
template <typename Value>
Value value_at(const Bytes& bytes, size_t at = 0) {
  Value value{};
  EXPECT_GE(bytes.size(), at + sizeof value);
  if (bytes.size() >= at + sizeof value) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

void expect_preamble(const Bytes& bytes, ConnectionKind kind,
                     const std::array<std::byte, kTokenBytes>& token) {
  const auto preamble = value_at<Preamble>(bytes);
  EXPECT_EQ(why_invalid(preamble), nullptr);
  EXPECT_EQ(preamble.kind, kind);
  EXPECT_EQ(preamble.token, token);
}

Hello hello_in(const Bytes& bytes) {
  const auto head = decode_hello_head(bytes);
  EXPECT_TRUE(head.ok());
  EXPECT_EQ(head.ok() ? head.value().version : 0, 4);
  auto hello = decode_hello(bytes);
  EXPECT_TRUE(hello.ok()) << hello.status().to_string();
  if (!hello.ok()) return {};
  EXPECT_EQ(hello.value().head.cluster_hash, 0x1122334455667788u);
  EXPECT_EQ(hello.value().cluster_id, "orders");
  return hello.value();
}

void expect_ending(const Bytes& bytes, const Ending& expected) {
  const auto ending = decode_ending(bytes);
  ASSERT_TRUE(ending.ok());
  EXPECT_EQ(ending.value().code, expected.code);
  EXPECT_EQ(ending.value().retry, expected.retry);
  EXPECT_EQ(ending.value().reason, expected.reason);
}

void expect_auth(const Bytes& bytes, const Auth& expected) {
  const auto auth = decode_auth(bytes);
  ASSERT_TRUE(auth.ok());
  EXPECT_EQ(auth.value().method, expected.method);
  EXPECT_EQ(auth.value().last, expected.last);
  EXPECT_EQ(auth.value().payload, expected.payload);
}

void expect_link(const Bytes& bytes, const LinkChoice& expected) {
  const auto choice = decode_link_choice(bytes);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice.value().transport, expected.transport);
  EXPECT_EQ(choice.value().token, expected.token);
  EXPECT_EQ(choice.value().rings, expected.rings);
  EXPECT_EQ(choice.value().number, expected.number);
}

void expect_payload(const Bytes& bytes, ControlKind kind, const Bytes& expected) {
  EXPECT_EQ(kind_of(bytes), kind);
  const auto payload = decode_payload(bytes);
  ASSERT_TRUE(payload.ok());
  EXPECT_EQ(Bytes(payload.value().begin(), payload.value().end()), expected);
}

void expect_plain(const Bytes& bytes, ControlKind kind) {
  EXPECT_EQ(kind_of(bytes), kind);
  EXPECT_TRUE(check_plain(bytes).ok());
}

void expect_query_message(const Bytes& bytes, QueryMessageKind kind, uint32_t first, int32_t second,
                          uint64_t number, std::optional<uint32_t> stage, const char* text) {
  const auto message = decode_query_message(bytes);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->kind, kind);
  EXPECT_EQ(message->query.counter, 5u);
  EXPECT_EQ(message->query.incarnation, 0xb1b2b3b4b5b6b7b8u);
  EXPECT_EQ(message->query.issuer, 2u);
  EXPECT_EQ(message->first, first);
  EXPECT_EQ(message->second, second);
  EXPECT_EQ(message->number, number);
  EXPECT_EQ(message->stage, stage);
  EXPECT_EQ(message->text, text);
}

void expect_verbs_resume(const Bytes& bytes) {
  const auto resume = load_verbs_resume(bytes);
  ASSERT_TRUE(resume);
  EXPECT_EQ(resume->first_ring, 254u);
  ASSERT_EQ(resume->ring_count, 2u);
  const VerbsProgress first = progress_in(bytes, 0);
  EXPECT_EQ(first.arrived, 8192u);
  EXPECT_EQ(first.read, 8128u);
  const VerbsProgress second = progress_in(bytes, 1);
  EXPECT_EQ(second.arrived, uint64_t{1} << 32);
  EXPECT_EQ(second.read, uint64_t{1} << 32);
  const std::array<VerbsProgress, 2> both{first, second};
  Bytes same = encode_verbs_resume(254, both);
  EXPECT_EQ(same, Bytes(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(same.size())));
  EXPECT_FALSE(load_verbs_listen(bytes) || load_verbs_memory(bytes));
}

constexpr uint32_t kRing = 4096;

/// The header of a frame that is valid in a ring of that size.
FrameHeader frame_in(const Bytes& bytes, FrameKind kind, uint32_t payload_bytes, uint16_t slot,
                     uint32_t rows) {
  const auto header = value_at<FrameHeader>(bytes);
  const uint64_t to_end = kind == FrameKind::pad ? padded(header.length) : kRing;
  EXPECT_EQ(why_invalid(header, kRing, to_end, kRing), nullptr);
  EXPECT_EQ(header.kind, kind);
  EXPECT_EQ(header.slot, slot);
  EXPECT_EQ(header.row_count, rows);
  EXPECT_EQ(bytes_before_fields(header), payload_bytes);
  EXPECT_TRUE(kind == FrameKind::pad || header.length == bytes.size());
  return header;
}

void expect_open(const Bytes& bytes, uint32_t payload_bytes) {
  frame_in(bytes, FrameKind::open, payload_bytes, 5, 0);
  const auto open = value_at<OpenPayload>(bytes, sizeof(FrameHeader));
  EXPECT_EQ(open.query.counter, 5u);
  EXPECT_EQ(open.query.incarnation, 0xb1b2b3b4b5b6b7b8u);
  EXPECT_EQ(open.query.issuer, 2u);
  EXPECT_EQ(open.stage, 9u);
  EXPECT_EQ(open.row_bytes, 8u);
  EXPECT_EQ(open.lists, 0x0102030405060708u);
  EXPECT_EQ(open.sender_count, 2u);
  EXPECT_EQ(open.receiver_count, 3u);
  if (payload_bytes == sizeof open) return;
  const size_t behind = sizeof(FrameHeader) + sizeof open;
  EXPECT_EQ(value_at<OpenFormat>(bytes, behind).digest, 0x1112131415161718u);
  EXPECT_EQ(Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(behind + sizeof(OpenFormat)),
                  bytes.begin() + sizeof(FrameHeader) + payload_bytes),
            bytes_of("INT"));
}

void expect_memory(const Bytes& bytes) {
  const auto memory = load_verbs_memory(bytes);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->key, 0xabcdu);
  EXPECT_EQ(memory->address, 0x7f0000001000u);
  EXPECT_EQ(memory->bytes, uint64_t{1} << 20);
  EXPECT_EQ(memory->receives, 64u);
  EXPECT_EQ(memory->takes_immediates, 1u);
  EXPECT_FALSE(load_verbs_listen(bytes));
}

/// A segment with that header, made by a peer, is taken.
void expect_segment(const Bytes& bytes) {
  using transport::shm::Segment;
  using transport::shm::SegmentHeader;
  ASSERT_EQ(bytes.size(), sizeof(SegmentHeader));
  const ring::Layout rings{2, 1, 2, 4096};
  base::UniqueFd fd;
  const auto made = Segment::make_shared(rings, "a segment", fd);
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(pwrite(fd.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  const auto mapped = Segment::map_peer(fd.get(), rings, "a segment");
  EXPECT_TRUE(mapped.ok()) << mapped.status().to_string();
}

struct Kept {
  const char* title;
  std::function<void(const Bytes&)> check;
};

const std::vector<Kept>& all_kept() {
  static const std::vector<Kept> kept = {
      {"preamble, control",
       [](const Bytes& b) { expect_preamble(b, ConnectionKind::control, {}); }},
      {"preamble, data",
       [](const Bytes& b) { expect_preamble(b, ConnectionKind::data, kept_token()); }},
      {"HELLO of a session",
       [](const Bytes& b) {
         const Hello hello = hello_in(b);
         EXPECT_EQ(hello.head.features, 0u);
         EXPECT_EQ(hello.head.node, 1u);
         EXPECT_EQ(hello.purpose, Purpose::session);
         EXPECT_EQ(hello.incarnation, 0xa1a2a3a4a5a6a7a8u);
         EXPECT_EQ(hello.name, "");
         EXPECT_EQ(hello.address, "h1:7000");
         EXPECT_EQ(hello.host_identity, "host");
         EXPECT_EQ(hello.transports, (std::vector<std::string>{"shm", "tcp"}));
         EXPECT_EQ(hello.settings, "ring.bytes=65536\n");
         EXPECT_EQ(hello.expected_node, 3u);
         EXPECT_EQ(hello.node_count, 4u);
         EXPECT_EQ(hello.rings, ChannelRings{});
         EXPECT_TRUE(hello.greeting.empty());
       }},
      {"HELLO of a channel",
       [](const Bytes& b) {
         const Hello hello = hello_in(b);
         EXPECT_EQ(hello.purpose, Purpose::channel);
         EXPECT_EQ(hello.incarnation, 0xa1a2a3a4a5a6a7a8u);
         EXPECT_EQ(hello.name, "reader");
         EXPECT_EQ(hello.address, "");
         EXPECT_EQ(hello.host_identity, "");
         EXPECT_EQ(hello.transports, std::vector<std::string>{"verbs"});
         EXPECT_EQ(hello.settings, "");
         EXPECT_EQ(hello.rings.to_acceptor_bytes, 65536u);
         EXPECT_EQ(hello.rings.to_dialler_bytes, 4096u);
         EXPECT_EQ(hello.greeting, bytes_of("hi"));
       }},
      {"HELLO with what a later release may add",
       [](const Bytes& b) {
         const Hello hello = hello_in(b);
         EXPECT_EQ(hello.head.features, 0x8000'0001u);
         EXPECT_EQ(unknown_requirements(hello.head.features), 0u);
         EXPECT_EQ(hello.incarnation, 7u);
         EXPECT_TRUE(hello.transports.empty());
         EXPECT_EQ(hello.expected_node, 3u);
         EXPECT_EQ(hello.node_count, 4u);
       }},
      {"HELLO that mends a link",
       [](const Bytes& b) {
         const Hello hello = hello_in(b);
         EXPECT_EQ(hello.head.features, kMends);
         EXPECT_EQ(hello.mends, (LinkName{0xc1c2c3c4c5c6c7c8u, 9}));
       }},
      {"REFUSE",
       [](const Bytes& b) {
         EXPECT_EQ(kind_of(b), ControlKind::refuse);
         expect_ending(b, {Code::configuration_mismatch, true, "number taken"});
       }},
      {"AUTH without a method",
       [](const Bytes& b) {
         expect_auth(b, {AuthMethod::none, true, {}});
       }},
      {"AUTH with a challenge",
       [](const Bytes& b) {
         Auth expected{AuthMethod::secret, false, {}};
         for (int i = 0; i < 32; ++i) expected.payload.push_back(static_cast<std::byte>(i));
         expect_auth(b, expected);
       }},
      {"LINK of a session",
       [](const Bytes& b) {
         expect_link(b, {"shm", kept_token()});
       }},
      {"LINK of a channel",
       [](const Bytes& b) {
         expect_link(b, {"tcp", kept_token(), ChannelRings{16384, 4096}});
       }},
      {"LINK of a link that can be mended",
       [](const Bytes& b) {
         expect_link(b, {"tcp", kept_token(), {}, 9});
       }},
      {"SETUP", [](const Bytes& b) { expect_payload(b, ControlKind::setup, bytes_of("\1\2\3")); }},
      {"READY", [](const Bytes& b) { expect_plain(b, ControlKind::ready); }},
      {"READY with what a later release may add",
       [](const Bytes& b) { expect_plain(b, ControlKind::ready); }},
      {"HEARTBEAT", [](const Bytes& b) { expect_plain(b, ControlKind::heartbeat); }},
      {"HEARTBEAT that acknowledges",
       [](const Bytes& b) {
         const auto received = decode_heartbeat(b);
         ASSERT_TRUE(received.ok() && received.value());
         EXPECT_EQ(received.value()->messages, 5u);
       }},
      {"APPLICATION",
       [](const Bytes& b) { expect_payload(b, ControlKind::application, bytes_of("\4\5")); }},
      {"FAIL",
       [](const Bytes& b) {
         EXPECT_EQ(kind_of(b), ControlKind::fail);
         expect_ending(b, {Code::peer_lost, false, "reset"});
       }},
      {"BYE", [](const Bytes& b) { expect_plain(b, ControlKind::bye); }},
      {"MEMBERS",
       [](const Bytes& b) {
         const auto members = decode_members(b, 10);
         ASSERT_TRUE(members.ok());
         EXPECT_TRUE(members.value().linked);
         std::vector<bool> missing(10);
         missing[1] = missing[8] = true;
         EXPECT_EQ(members.value().missing, missing);
       }},
      {"BROKEN", [](const Bytes& b) { expect_plain(b, ControlKind::broken); }},
      {"RESUME",
       [](const Bytes& b) {
         const auto received = decode_resume(b);
         ASSERT_TRUE(received.ok());
         EXPECT_EQ(received.value().messages, 5u);
       }},
      {"query message FAIL",
       [](const Bytes& b) {
         expect_query_message(b, QueryMessageKind::fail, 2, 40, 0, 9, "node 2 is lost");
       }},
      {"query message STOP",
       [](const Bytes& b) { expect_query_message(b, QueryMessageKind::stop, 9, 3, 0, {}, ""); }},
      {"query message ENDED",
       [](const Bytes& b) {
         expect_query_message(b, QueryMessageKind::ended, 1, 0, ~uint64_t{0} - 15, {}, "");
       }},
      {"query message OUTCOME",
       [](const Bytes& b) { expect_query_message(b, QueryMessageKind::outcome, 1, 0, 4, {}, ""); }},
      {"query message CONFIRM",
       [](const Bytes& b) { expect_query_message(b, QueryMessageKind::confirm, 1, 0, 0, {}, ""); }},
      {"query message AWAIT",
       [](const Bytes& b) {
         expect_query_message(b, QueryMessageKind::await, 9, 3, 0x0102030405060708u, {},
                              "worker 4");
       }},
      {"query message RELEASED",
       [](const Bytes& b) {
         const auto message = decode_query_message(b);
         ASSERT_TRUE(message.has_value());
         EXPECT_EQ(message->kind, QueryMessageKind::released);
         EXPECT_EQ(message->first, 7u);
       }},
      {"query message REST",
       [](const Bytes& b) {
         const auto message = decode_query_message(b);
         ASSERT_TRUE(message.has_value());
         EXPECT_EQ(message->kind, QueryMessageKind::rest);
         EXPECT_EQ(message->first, static_cast<uint32_t>(RestStep::yes));
       }},
      {"frame PAD", [](const Bytes& b) { frame_in(b, FrameKind::pad, 112, 0, 0); }},
      {"frame DATA",
       [](const Bytes& b) {
         frame_in(b, FrameKind::data, 16, 5, 2);
         EXPECT_EQ(value_at<uint64_t>(b, 24), 2u);
       }},
      {"frame OPEN", [](const Bytes& b) { expect_open(b, 48); }},
      {"frame OPEN with a format", [](const Bytes& b) { expect_open(b, 59); }},
      {"frame OPEN with what a later release may add", [](const Bytes& b) { expect_open(b, 59); }},
      {"frame FINISH",
       [](const Bytes& b) {
         frame_in(b, FrameKind::finish, 8, 5, 0);
         EXPECT_EQ(value_at<FinishPayload>(b, 16).row_count, 1000u);
       }},
      {"frame FRAGMENT",
       [](const Bytes& b) {
         frame_in(b, FrameKind::fragment, 20, 5, 1);
         EXPECT_EQ(value_at<FragmentPayload>(b, 16).row_bytes, 9u);
         EXPECT_EQ(value_at<FragmentPayload>(b, 16).offset, 5u);
         EXPECT_EQ(Bytes(b.begin() + 32, b.end()), bytes_of("tail"));
       }},
      {"frame MESSAGE",
       [](const Bytes& b) {
         frame_in(b, FrameKind::message, 2, 0, 0);
         EXPECT_EQ(Bytes(b.begin() + 16, b.end()), bytes_of("ab"));
       }},
      {"frame END", [](const Bytes& b) { frame_in(b, FrameKind::end, 0, 0, 0); }},
      {"frame of a kind that a later release may add",
       [](const Bytes& b) {
         const auto header = value_at<FrameHeader>(b);
         EXPECT_NE(why_invalid(header, kRing, kRing, kRing), nullptr);
         EXPECT_TRUE(may_skip(header, kRing, kRing, kRing));
         EXPECT_EQ(header.length, b.size());
       }},
      {"data message WRITTEN",
       [](const Bytes& b) {
         const auto message = value_at<DataMessage>(b);
         EXPECT_FALSE(is_read(message));
         EXPECT_EQ(ring_of(message), 3u);
         EXPECT_EQ(message.length, 128u);
         EXPECT_EQ(message.position, 4096u);
       }},
      {"data message READ",
       [](const Bytes& b) {
         const auto message = value_at<DataMessage>(b);
         EXPECT_TRUE(is_read(message));
         EXPECT_EQ(ring_of(message), 3u);
         EXPECT_EQ(message.length, 0u);
         EXPECT_EQ(message.position, 8192u);
       }},
      {"data message RESUME",
       [](const Bytes& b) {
         const auto message = value_at<DataMessage>(b);
         EXPECT_EQ(message.ring_and_kind, 3 | kResumeMessage);
         EXPECT_EQ(message.length, 64u);
         EXPECT_EQ(message.position, 8192u);
       }},
      {"data message SIGN", [](const Bytes& b) { EXPECT_TRUE(is_sign(value_at<DataMessage>(b))); }},
      {"verbs LISTEN",
       [](const Bytes& b) {
         const auto listen = load_verbs_listen(b);
         ASSERT_TRUE(listen);
         EXPECT_EQ(listen->family, 4);
         EXPECT_EQ(listen->port, 4791);
         EXPECT_EQ(listen->address[0], 10);
         EXPECT_EQ(listen->address[3], 1);
       }},
      {"verbs MEMORY", expect_memory},
      {"verbs MEMORY with what a later release may add", expect_memory},
      {"verbs RESUME", expect_verbs_resume},
      {"verbs RESUME with what a later release may add", expect_verbs_resume},
      {"verbs SEND",
       [](const Bytes& b) {
         const auto head = value_at<VerbsHead>(b);
         EXPECT_EQ(head.record_count, 2u);
         EXPECT_EQ(head.notes, 7u);
         EXPECT_EQ(head.returns, 8u);
         const auto written = value_at<VerbsRecord>(b, sizeof head);
         EXPECT_FALSE(is_read(written));
         EXPECT_EQ(ring_of(written), 3u);
         EXPECT_EQ(written.position, 4096u);
         const auto read = value_at<VerbsRecord>(b, sizeof head + sizeof written);
         EXPECT_TRUE(is_read(read));
         EXPECT_EQ(ring_of(read), 4u);
         EXPECT_EQ(read.position, 8192u);
       }},
      {"verbs SEND that is a sign of life",
       [](const Bytes& b) {
         const auto head = value_at<VerbsHead>(b);
         EXPECT_EQ(head.record_count, 1u);
         EXPECT_TRUE(is_sign(value_at<VerbsRecord>(b, sizeof head)));
       }},
      {"segment", expect_segment},
      {"segment with what a later release may add", expect_segment},
      {"shm offer",
       [](const Bytes& b) {
         const auto offer = value_at<transport::shm::OfferMessage>(b);
         EXPECT_EQ(offer.magic, transport::shm::kOfferMagic);
         EXPECT_EQ(offer.version, transport::shm::kSegmentVersion);
         EXPECT_EQ(offer.token, kept_token());
         EXPECT_EQ(std::string(offer.name, offer.name_bytes), "faro-1");
       }},
  };
  return kept;
}

TEST(KeptBytes, of_version_4_are_understood) {
  for (const Kept& kept : all_kept()) {
    SCOPED_TRACE(kept.title);
    const Bytes bytes = test::hex_of_page(kept.title, FARO_KEPT_BYTES);
    ASSERT_FALSE(bytes.empty());
    kept.check(bytes);
  }
}

TEST(KeptBytes, are_all_looked_at) {
  std::ifstream page(FARO_KEPT_BYTES);
  ASSERT_TRUE(page.good());
  std::vector<std::string> titles;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("**")) titles.push_back(line.substr(2, line.size() - 4));
  }
  std::vector<std::string> checked;
  for (const Kept& kept : all_kept()) checked.emplace_back(kept.title);
  EXPECT_EQ(titles, checked);
}

TEST(KeptBytes, have_each_kind_of_control_message_that_is_known) {
  std::vector<bool> seen(256);
  for (const Kept& kept : all_kept()) {
    const Bytes bytes = test::hex_of_page(kept.title, FARO_KEPT_BYTES);
    if (name_of(kind_of(bytes)).starts_with(std::string_view(kept.title).substr(0, 4)))
      seen[static_cast<size_t>(bytes[0])] = true;
  }
  for (int kind = 0; kind < 256; ++kind) {
    const bool is_known = name_of(static_cast<ControlKind>(kind)) != name_of(ControlKind{0});
    EXPECT_EQ(seen[static_cast<size_t>(kind)], is_known) << kind;
  }
}

}  // namespace
}  // namespace faro::wire
