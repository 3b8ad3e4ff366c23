// Control messages: what a control connection carries, and how a link comes up on it.
// wire/README.md has the order of the messages and a worked example.
//
// On a byte stream each message is preceded by its length:
//
//    0        4      5                     4 + length
//   +--------+------+----------- - - - ---+
//   | length | kind | fields of the kind  |      length counts kind and fields: 1 … kControlMessageLimit
//   +--------+------+----------- - - - ---+
//
// Numbers are little-endian. A text is a uint16 length and its bytes. What a later node adds stands in fields at the end
// (wire/fields.h), which are skipped. Everything decoded here came from another process: each decoder checks that all is
// there and within its limits, and that nothing but fields follows; otherwise it answers protocol_error.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "faro/status.h"
#include "wire/preamble.h"

namespace faro::wire {

/// The first version that is kept: it grows by feature bits, fields and kinds that may be skipped (wire/README.md,
/// "Versions"). Nodes of different versions refuse each other.
inline constexpr uint16_t kProtocolVersion = 4;

/// A message as it is sent: kind and fields, without the length.
using ControlMessage = std::vector<std::byte>;

/// Largest control message. HELLO with the settings of a large cluster is the longest.
inline constexpr size_t kControlMessageLimit = 64 * 1024;
inline constexpr size_t kControlLengthBytes = 4;
inline constexpr size_t kTokenBytes = sizeof(Preamble::token);
/// Largest payload of SETUP and APPLICATION.
inline constexpr size_t kControlPayloadLimit = 4096;

enum class ControlKind : uint8_t {
  // 0 is never valid. Numbers never change meaning.
  hello = 1,        // who the sender is; the first message of both sides
  refuse = 2,       // there will be no link: code and reason; the sender closes
  auth = 3,         // a round of the authentication method
  link = 4,         // accepting side: chosen transport and token of the data connection
  setup = 5,        // opaque, between the LinkSetups of the transport
  ready = 6,        // this side of the link is set up
  heartbeat = 7,    // the sender is alive
  application = 8,  // opaque, for the layer above
  fail = 9,         // this link has failed: code and first cause; the sender closes
  bye = 10,         // the sender leaves in order; nothing follows
  members = 11,     // the sender's session is open; these nodes are missing in it
  broken =
      12,  // the sender's data connection has broken: the receiver closes, and the link is mended
  resume = 13,  // the first message on another connection of a link that is mended, on both sides
};

/// Set in a kind: a receiver that does not know it skips the message.
inline constexpr uint8_t kOptionalKind = 0x80;

/// The kind of a message; 0 cast to ControlKind when it is empty.
inline ControlKind kind_of(std::span<const std::byte> message) {
  return message.empty() ? ControlKind{0} : static_cast<ControlKind>(message[0]);
}
std::string_view name_of(ControlKind kind);
/// Whether a message of that kind, which is unknown here, may be skipped.
constexpr bool may_skip(ControlKind kind) {
  return (static_cast<uint8_t>(kind) & kOptionalKind) != 0;
}

/// Bits of HelloHead::features: 0 … 31 are abilities that both sides must offer before either uses them; 32 … 63 are
/// abilities that the sender requires of the receiver. Those that this version knows:
inline constexpr uint64_t kMends = uint64_t{1} << 0;  // links whose connections break are mended
inline constexpr uint64_t kMendsVerbs = uint64_t{1} << 1;  // with kMends: those by verbs, too
inline constexpr uint64_t kRests =
    uint64_t{1} << 2;  // links between nodes that no query needs are let go, and made again
inline constexpr uint64_t kSigns = uint64_t{1} << 3;  // signs of life on data connections
inline constexpr uint64_t kLargeRings =
    uint64_t{1}
    << 4;  // a link with one lane each way, or with lanes to nodes alone, has rings of twice ring.bytes
inline constexpr uint64_t kTurns =
    uint64_t{1} << 5;  // rows are sent in turns over data connections (network.schedule)
inline constexpr uint64_t kKnownFeatures =
    kMends | kMendsVerbs | kRests | kSigns | kLargeRings | kTurns;
inline constexpr uint64_t kRequiredFeatures = 0xffff'ffff'0000'0000;

/// The abilities in a peer's `features` that it requires and this version does not know; not 0: refuse it.
constexpr uint64_t unknown_requirements(uint64_t features) {
  return features & kRequiredFeatures & ~kKnownFeatures;
}

/// The part of a HELLO that is the same in every version of the protocol, so that nodes of different versions can
/// refuse each other and name both.
///
///    0      1         4         8         10       12         20      24             32
///   +------+---------+---------+---------+--------+----------+-------+--------------+- - -
///   | kind | 0 0 0   | magic   | version | 0      | features | node  | cluster hash | …
///   +------+---------+---------+---------+--------+----------+-------+--------------+- - -
struct HelloHead {
  uint16_t version = kProtocolVersion;
  uint64_t features = 0;      // what the sender can do, and requires: see kKnownFeatures
  uint32_t node = 0;          // number of the sender
  uint64_t cluster_hash = 0;  // hash_bytes of the cluster's id
};

/// What a link is for.
enum class Purpose : uint8_t {
  // 0 is never valid. An unknown purpose is decoded as it is; the receiver refuses it.
  session = 1,  // between two nodes of a cluster
  channel = 2,  // between two endpoints
};

/// The rings of a channel, as its dialling side asks for them (in HELLO) and the accepting side decides (in LINK): the
/// lesser wins. 0: the side leaves it to the other.
struct ChannelRings {
  uint32_t to_acceptor_bytes = 0;
  uint32_t to_dialler_bytes = 0;

  static constexpr uint32_t kLeastBytes = 4096;

  friend bool operator==(const ChannelRings&, const ChannelRings&) = default;
};

/// Which link the dialling side wants to mend.
struct LinkName {
  uint64_t incarnation = 0;  // of the receiving side, as the link knew it
  uint64_t number = 0;       // of the link, as LINK has told it

  friend bool operator==(const LinkName&, const LinkName&) = default;
};

/// The head, and a list of fields (wire/README.md, "HELLO"), of which those that have their default are left out.
struct Hello {
  HelloHead head;
  Purpose purpose = Purpose::session;
  uint64_t incarnation = 0;             // drawn at random when the sender joined
  std::string cluster_id;               // at most kNameLimit bytes, as the next four
  std::string name;                     // of an endpoint; empty in a session
  std::string address;                  // where the sender can be reached
  std::string host_identity;            // equal: memory can be shared
  std::string rendezvous;               // equal: memory can be shared, if both run on one kernel
  std::vector<std::string> transports;  // at most kTransportLimit names, preferred first
  /// "name=value\n…", at most kSettingsLimit bytes: the settings on which both sides must agree and that differ from
  /// their default.
  std::string settings;
  uint32_t expected_node = 0;  // session: the number that the sender believes the receiver to have
  uint32_t node_count = 0;     // session
  ChannelRings rings;          // channel, by the dialling side
  // channel, by the dialling side; at most kGreetingLimit bytes, for the layer above
  std::vector<std::byte> greeting;
  std::optional<LinkName> mends{};  // the dialling side: this is no new link

  static constexpr size_t kNameLimit = 255;
  static constexpr size_t kTransportLimit = 16;
  static constexpr size_t kSettingsLimit = 32 * 1024;
  static constexpr size_t kGreetingLimit = 4096;
};

/// REFUSE and FAIL.
struct Ending {
  Code code = Code::internal_error;
  bool retry = false;  // REFUSE: dialling again may succeed later
  std::string reason;  // at most kReasonLimit bytes

  static constexpr size_t kReasonLimit = 1024;
};

enum class AuthMethod : uint8_t {
  none = 0,
  secret = 1,  // challenges and proofs: links/secret_authentication.h
};

/// One message of an authentication; a method may need several in each direction.
struct Auth {
  AuthMethod method = AuthMethod::none;
  bool last = true;                // the sender sends no more AUTH
  std::vector<std::byte> payload;  // at most kControlPayloadLimit bytes
};

struct LinkChoice {
  std::string transport;                       // one that both sides offered
  std::array<std::byte, kTokenBytes> token{};  // of the data connection's preamble
  std::optional<ChannelRings> rings{};         // of a channel
  uint64_t number = 0;                         // of the link, if it can be mended; 0: it cannot
};

/// On a link that can be mended both sides count the APPLICATION and MEMBERS messages that they send and receive,
/// from its first connection on.
struct Received {
  uint64_t messages = 0;
};

/// What a node whose session is open sees of the cluster.
struct Members {
  bool linked = false;        // the link to the receiver is up
  std::vector<bool> missing;  // by node: missing, or not there yet
};

ControlMessage encode(const Hello& hello);
ControlMessage encode_refuse(const Ending& ending);
ControlMessage encode_fail(const Ending& ending);
ControlMessage encode(const Auth& auth);
ControlMessage encode(const LinkChoice& choice);
ControlMessage encode(const Members& members);
/// READY, HEARTBEAT, BYE, BROKEN.
ControlMessage encode_plain(ControlKind kind);
/// HEARTBEAT that acknowledges what has come, and RESUME.
ControlMessage encode_heartbeat(const Received& received);
ControlMessage encode_resume(const Received& received);
/// SETUP, APPLICATION. `payload` at most kControlPayloadLimit bytes.
ControlMessage encode_payload(ControlKind kind, std::span<const std::byte> payload);

/// The part of a HELLO that is the same in every version; what follows is ignored.
Result<HelloHead> decode_hello_head(std::span<const std::byte> message);
/// A HELLO of our version. Errors: protocol_error; configuration_mismatch if it has a required field that this version
/// does not know, with the number.
Result<Hello> decode_hello(std::span<const std::byte> message);
/// REFUSE or FAIL. The reason has been made printable, and is never empty. An unknown code reads as internal_error.
Result<Ending> decode_ending(std::span<const std::byte> message);
Result<Auth> decode_auth(std::span<const std::byte> message);
Result<LinkChoice> decode_link_choice(std::span<const std::byte> message);
/// MEMBERS of a cluster with that many nodes.
Result<Members> decode_members(std::span<const std::byte> message, uint32_t node_count);
/// The payload of a SETUP or APPLICATION, within `message`.
Result<std::span<const std::byte>> decode_payload(std::span<const std::byte> message);
/// What a HEARTBEAT acknowledges; none: nothing.
Result<std::optional<Received>> decode_heartbeat(std::span<const std::byte> message);
Result<Received> decode_resume(std::span<const std::byte> message);
/// Ok if a READY, HEARTBEAT, BYE or BROKEN is valid.
Status check_plain(std::span<const std::byte> message);

}  // namespace faro::wire
