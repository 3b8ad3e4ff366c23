#include "wire/control.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/printable.h"
#include "wire/bytes.h"
#include "wire/fields.h"

namespace faro::wire {
namespace {

using base::printable;

constexpr size_t kHelloHeadBytes = 32;

/// Fields of a HELLO: numbers, which never change meaning.
enum class HelloField : uint16_t {
  purpose = 1,
  incarnation = 2,
  cluster_id = 3,
  name = 4,
  address = 5,
  host_identity = 6,
  transports = 7,
  settings = 8,
  expected_node = 9,
  node_count = 10,
  rings = 11,
  greeting = 12,
  mends = 14,  // 13 is not used
  rendezvous = 15,
};
/// The fields of a LINK, and of a HEARTBEAT.
enum class LinkField : uint16_t { rings = 1, number = 2 };
enum class HeartbeatField : uint16_t { received = 1 };

ControlMessage begin(ControlKind kind) { return ControlMessage(1, static_cast<std::byte>(kind)); }

Status malformed(ControlKind kind) {
  return base::error(Code::protocol_error, "malformed {}", name_of(kind));
}

void put_padding(ByteWriter& writer) {
  for (int i = 0; i < 3; ++i) writer.number(uint8_t{0});
}

bool known(Code code) { return code_name(code) != "unknown" && code != Code::ok; }

ControlMessage encode_ending(ControlKind kind, const Ending& ending) {
  ControlMessage message = begin(kind);
  ByteWriter writer(message);
  writer.number(static_cast<uint8_t>(ending.retry));
  writer.number(uint16_t{0});
  writer.number(static_cast<uint32_t>(ending.code));
  writer.text(std::string_view(ending.reason).substr(0, Ending::kReasonLimit));
  return message;
}

// Whether all is there, and nothing but fields that may be skipped follows.
bool ends_well(ByteReader& reader) { return may_skip_fields(reader.rest()) && !reader.failed(); }

void put_rings(FieldWriter& fields, uint16_t tag, const ChannelRings& rings) {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  writer.number(rings.to_acceptor_bytes);
  writer.number(rings.to_dialler_bytes);
  fields.bytes(tag, bytes);
}

bool read_rings(std::span<const std::byte> field, ChannelRings& rings) {
  ByteReader reader(field);
  rings.to_acceptor_bytes = reader.number<uint32_t>();
  rings.to_dialler_bytes = reader.number<uint32_t>();
  return reader.complete();
}

void put_link_name(FieldWriter& fields, uint16_t tag, const LinkName& name) {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  writer.number(name.incarnation);
  writer.number(name.number);
  fields.bytes(tag, bytes);
}

bool read_link_name(std::span<const std::byte> field, LinkName& name) {
  ByteReader reader(field);
  name.incarnation = reader.number<uint64_t>();
  name.number = reader.number<uint64_t>();
  return reader.complete();
}

bool read_text(std::span<const std::byte> field, size_t limit, std::string& text) {
  if (field.size() > limit) return false;
  text.assign(reinterpret_cast<const char*>(field.data()), field.size());
  return true;
}

bool read_name(std::span<const std::byte> field, std::string& name) {
  if (!read_text(field, Hello::kNameLimit, name)) return false;
  name = printable(std::move(name));
  return true;
}

std::vector<std::byte> texts(const std::vector<std::string>& names) {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  for (const std::string& name : names) writer.text(name);
  return bytes;
}

bool read_texts(std::span<const std::byte> field, std::vector<std::string>& names) {
  ByteReader reader(field);
  while (!reader.complete() && !reader.failed()) {
    if (names.size() == Hello::kTransportLimit) return false;
    names.push_back(printable(reader.text(Hello::kNameLimit)));
  }
  return reader.complete();
}

constexpr uint32_t bit(HelloField field) { return uint32_t{1} << static_cast<uint16_t>(field); }

/// What each HELLO has, and what each of a session.
constexpr uint32_t kAlways = bit(HelloField::purpose) | bit(HelloField::incarnation) |
                             bit(HelloField::cluster_id) | bit(HelloField::transports);
constexpr uint32_t kOfSession = bit(HelloField::expected_node) | bit(HelloField::node_count);

constexpr uint16_t optional(HelloField field) { return static_cast<uint16_t>(field); }
constexpr uint16_t required(HelloField field) { return optional(field) | kRequiredField; }

// Reads the field that was taken; one that is unknown is skipped. False if it is malformed.
bool read_hello_field(FieldReader& fields, Hello& hello) {
  const auto bytes = fields.bytes();
  switch (static_cast<HelloField>(fields.number())) {
    case HelloField::purpose: {
      uint8_t purpose = 0;
      const bool is_read = read_field(bytes, purpose);
      hello.purpose = static_cast<Purpose>(purpose);
      return is_read && purpose != 0;
    }
    case HelloField::incarnation:
      return read_field(bytes, hello.incarnation);
    case HelloField::cluster_id:
      return read_name(bytes, hello.cluster_id);
    case HelloField::name:
      return read_name(bytes, hello.name);
    case HelloField::address:
      return read_name(bytes, hello.address);
    case HelloField::host_identity:
      return read_text(bytes, Hello::kNameLimit, hello.host_identity);
    case HelloField::transports:
      return read_texts(bytes, hello.transports);
    case HelloField::settings:
      return read_text(bytes, Hello::kSettingsLimit, hello.settings);
    case HelloField::expected_node:
      return read_field(bytes, hello.expected_node);
    case HelloField::node_count:
      return read_field(bytes, hello.node_count);
    case HelloField::rings:
      return read_rings(bytes, hello.rings);
    case HelloField::greeting:
      hello.greeting.assign(bytes.begin(), bytes.end());
      return bytes.size() <= Hello::kGreetingLimit;
    case HelloField::rendezvous:
      return read_text(bytes, Hello::kNameLimit, hello.rendezvous);
    case HelloField::mends:
      return read_link_name(bytes, hello.mends.emplace());
  }
  fields.skip();
  return true;
}

// Reads the head of a HELLO and leaves the reader behind it.
bool read_head(ByteReader& reader, HelloHead& head) {
  if (reader.number<uint8_t>() != static_cast<uint8_t>(ControlKind::hello)) return false;
  bool zeros = true;
  for (int i = 0; i < 3; ++i) zeros &= reader.number<uint8_t>() == 0;
  const auto magic = reader.bytes(kPreambleMagic.size());
  const bool ours = magic.size() == kPreambleMagic.size() &&
                    std::memcmp(magic.data(), kPreambleMagic.data(), magic.size()) == 0;
  head.version = reader.number<uint16_t>();
  zeros &= reader.number<uint16_t>() == 0;
  head.features = reader.number<uint64_t>();
  head.node = reader.number<uint32_t>();
  head.cluster_hash = reader.number<uint64_t>();
  return ours && zeros && !reader.failed();
}

}  // namespace

std::string_view name_of(ControlKind kind) {
  switch (kind) {
    case ControlKind::hello:
      return "HELLO";
    case ControlKind::refuse:
      return "REFUSE";
    case ControlKind::auth:
      return "AUTH";
    case ControlKind::link:
      return "LINK";
    case ControlKind::setup:
      return "SETUP";
    case ControlKind::ready:
      return "READY";
    case ControlKind::heartbeat:
      return "HEARTBEAT";
    case ControlKind::application:
      return "APPLICATION";
    case ControlKind::fail:
      return "FAIL";
    case ControlKind::bye:
      return "BYE";
    case ControlKind::members:
      return "MEMBERS";
    case ControlKind::broken:
      return "BROKEN";
    case ControlKind::resume:
      return "RESUME";
  }
  return "message of unknown kind";
}

ControlMessage encode(const Hello& hello) {
  ControlMessage message = begin(ControlKind::hello);
  ByteWriter writer(message);
  put_padding(writer);
  writer.bytes(std::as_bytes(std::span(kPreambleMagic)));
  writer.number(hello.head.version);
  writer.number(uint16_t{0});
  writer.number(hello.head.features);
  writer.number(hello.head.node);
  writer.number(hello.head.cluster_hash);
  FieldWriter fields(message);
  const auto put_text = [&fields](HelloField field, std::string_view text) {
    if (!text.empty()) fields.text(optional(field), text);
  };
  fields.number(required(HelloField::purpose), static_cast<uint8_t>(hello.purpose));
  fields.number(required(HelloField::incarnation), hello.incarnation);
  fields.text(required(HelloField::cluster_id), hello.cluster_id);
  put_text(HelloField::name, hello.name);
  put_text(HelloField::address, hello.address);
  put_text(HelloField::host_identity, hello.host_identity);
  fields.bytes(required(HelloField::transports), texts(hello.transports));
  put_text(HelloField::settings, hello.settings);
  if (hello.purpose == Purpose::session) {
    fields.number(required(HelloField::expected_node), hello.expected_node);
    fields.number(required(HelloField::node_count), hello.node_count);
  }
  if (hello.rings != ChannelRings{}) put_rings(fields, optional(HelloField::rings), hello.rings);
  if (!hello.greeting.empty()) fields.bytes(optional(HelloField::greeting), hello.greeting);
  put_text(HelloField::rendezvous, hello.rendezvous);
  if (hello.mends) put_link_name(fields, required(HelloField::mends), *hello.mends);
  return message;
}

ControlMessage encode_refuse(const Ending& ending) {
  return encode_ending(ControlKind::refuse, ending);
}
ControlMessage encode_fail(const Ending& ending) {
  return encode_ending(ControlKind::fail, ending);
}

ControlMessage encode(const Auth& auth) {
  ControlMessage message = begin(ControlKind::auth);
  ByteWriter writer(message);
  writer.number(static_cast<uint8_t>(auth.method));
  writer.number(static_cast<uint8_t>(auth.last));
  writer.number(uint8_t{0});
  writer.bytes(auth.payload);
  return message;
}

ControlMessage encode(const LinkChoice& choice) {
  ControlMessage message = begin(ControlKind::link);
  ByteWriter writer(message);
  put_padding(writer);
  writer.bytes(choice.token);
  writer.text(choice.transport);
  FieldWriter fields(message);
  if (choice.rings) put_rings(fields, static_cast<uint16_t>(LinkField::rings), *choice.rings);
  if (choice.number != 0) fields.number(static_cast<uint16_t>(LinkField::number), choice.number);
  return message;
}

ControlMessage encode(const Members& members) {
  ControlMessage message = begin(ControlKind::members);
  ByteWriter writer(message);
  writer.number(static_cast<uint8_t>(members.linked));
  writer.number(uint16_t{0});
  std::vector<std::byte> bits((members.missing.size() + 7) / 8);
  for (size_t node = 0; node < members.missing.size(); ++node) {
    if (members.missing[node]) bits[node / 8] |= std::byte{1} << (node % 8);
  }
  writer.bytes(bits);
  return message;
}

ControlMessage encode_plain(ControlKind kind) { return begin(kind); }

ControlMessage encode_heartbeat(const Received& received) {
  ControlMessage message = begin(ControlKind::heartbeat);
  FieldWriter(message).number(static_cast<uint16_t>(HeartbeatField::received), received.messages);
  return message;
}

ControlMessage encode_resume(const Received& received) {
  ControlMessage message = begin(ControlKind::resume);
  ByteWriter writer(message);
  put_padding(writer);
  writer.number(received.messages);
  return message;
}

ControlMessage encode_payload(ControlKind kind, std::span<const std::byte> payload) {
  ControlMessage message;
  message.reserve(1 + payload.size());
  message.push_back(static_cast<std::byte>(kind));
  message.insert(message.end(), payload.begin(), payload.end());
  return message;
}

Result<HelloHead> decode_hello_head(std::span<const std::byte> message) {
  HelloHead head;
  ByteReader reader(message.first(std::min(message.size(), kHelloHeadBytes)));
  if (!read_head(reader, head)) return malformed(ControlKind::hello);
  return head;
}

Result<Hello> decode_hello(std::span<const std::byte> message) {
  Hello hello;
  ByteReader reader(message);
  if (!read_head(reader, hello.head)) return malformed(ControlKind::hello);
  FieldReader fields(reader.rest());
  uint32_t seen = 0;
  while (fields.next()) {
    if (!read_hello_field(fields, hello)) return malformed(ControlKind::hello);
    if (fields.number() < 32) seen |= uint32_t{1} << fields.number();
  }
  if (fields.malformed()) return malformed(ControlKind::hello);
  if (fields.unknown()) {
    return base::error(Code::configuration_mismatch,
                       "its HELLO has the required field {}, which the receiver does not know",
                       *fields.unknown());
  }
  const uint32_t needed = kAlways | (hello.purpose == Purpose::session ? kOfSession : 0);
  if ((seen & needed) != needed) return malformed(ControlKind::hello);
  return hello;
}

Result<Ending> decode_ending(std::span<const std::byte> message) {
  Ending ending;
  ByteReader reader(message);
  const auto kind = static_cast<ControlKind>(reader.number<uint8_t>());
  const uint8_t retry = reader.number<uint8_t>();
  const uint16_t reserved = reader.number<uint16_t>();
  const auto code = static_cast<Code>(reader.number<uint32_t>());
  ending.reason = printable(reader.text(Ending::kReasonLimit));
  if (!ends_well(reader) || retry > 1 || reserved != 0 ||
      (kind != ControlKind::refuse && kind != ControlKind::fail)) {
    return malformed(kind);
  }
  ending.retry = retry == 1;
  ending.code = known(code) ? code : Code::internal_error;
  if (ending.reason.empty()) ending.reason = "no reason was given";
  return ending;
}

Result<Auth> decode_auth(std::span<const std::byte> message) {
  Auth auth;
  ByteReader reader(message);
  const auto kind = static_cast<ControlKind>(reader.number<uint8_t>());
  const uint8_t method = reader.number<uint8_t>();
  const uint8_t last = reader.number<uint8_t>();
  const uint8_t reserved = reader.number<uint8_t>();
  const auto payload = reader.rest();
  if (!reader.complete() || kind != ControlKind::auth || last > 1 || reserved != 0 ||
      payload.size() > kControlPayloadLimit) {
    return malformed(ControlKind::auth);
  }
  auth.method = static_cast<AuthMethod>(method);
  auth.last = last == 1;
  auth.payload.assign(payload.begin(), payload.end());
  return auth;
}

Result<LinkChoice> decode_link_choice(std::span<const std::byte> message) {
  LinkChoice choice;
  ByteReader reader(message);
  const auto kind = static_cast<ControlKind>(reader.number<uint8_t>());
  bool zeros = true;
  for (int i = 0; i < 3; ++i) zeros &= reader.number<uint8_t>() == 0;
  const auto token = reader.bytes(kTokenBytes);
  std::copy(token.begin(), token.end(), choice.token.begin());
  choice.transport = printable(reader.text(Hello::kNameLimit));
  FieldReader fields(reader.rest());
  bool fields_fit = true;
  while (fields.next()) {
    if (fields.number() == static_cast<uint16_t>(LinkField::rings)) {
      fields_fit &= read_rings(fields.bytes(), choice.rings.emplace());
    } else if (fields.number() == static_cast<uint16_t>(LinkField::number)) {
      fields_fit &= read_field(fields.bytes(), choice.number);
    } else {
      fields.skip();
    }
  }
  if (reader.failed() || !fields_fit || fields.malformed() || fields.unknown() || !zeros ||
      kind != ControlKind::link) {
    return malformed(ControlKind::link);
  }
  return choice;
}

Result<Members> decode_members(std::span<const std::byte> message, uint32_t node_count) {
  Members members;
  ByteReader reader(message);
  const auto kind = static_cast<ControlKind>(reader.number<uint8_t>());
  const uint8_t linked = reader.number<uint8_t>();
  const uint16_t reserved = reader.number<uint16_t>();
  const auto bits = reader.bytes((size_t{node_count} + 7) / 8);
  if (!ends_well(reader) || kind != ControlKind::members || linked > 1 || reserved != 0) {
    return malformed(ControlKind::members);
  }
  members.linked = linked == 1;
  members.missing.resize(node_count);
  for (size_t node = 0; node < bits.size() * 8; ++node) {
    const bool set = (bits[node / 8] & std::byte{1} << (node % 8)) != std::byte{0};
    if (node < node_count) {
      members.missing[node] = set;
    } else if (set) {
      return malformed(ControlKind::members);
    }
  }
  return members;
}

Result<std::span<const std::byte>> decode_payload(std::span<const std::byte> message) {
  const ControlKind kind = kind_of(message);
  if ((kind != ControlKind::setup && kind != ControlKind::application) ||
      message.size() > 1 + kControlPayloadLimit) {
    return malformed(kind);
  }
  return message.subspan(1);
}

Result<std::optional<Received>> decode_heartbeat(std::span<const std::byte> message) {
  std::optional<Received> received;
  bool fits = kind_of(message) == ControlKind::heartbeat;
  FieldReader fields(fits ? message.subspan(1) : message);
  while (fits && fields.next()) {
    if (fields.number() == static_cast<uint16_t>(HeartbeatField::received)) {
      fits = read_field(fields.bytes(), received.emplace().messages);
    } else {
      fields.skip();
    }
  }
  if (!fits || fields.malformed() || fields.unknown()) return malformed(ControlKind::heartbeat);
  return received;
}

Result<Received> decode_resume(std::span<const std::byte> message) {
  Received received;
  ByteReader reader(message);
  const auto kind = static_cast<ControlKind>(reader.number<uint8_t>());
  bool zeros = true;
  for (int i = 0; i < 3; ++i) zeros &= reader.number<uint8_t>() == 0;
  received.messages = reader.number<uint64_t>();
  if (!ends_well(reader) || !zeros || kind != ControlKind::resume)
    return malformed(ControlKind::resume);
  return received;
}

Status check_plain(std::span<const std::byte> message) {
  const ControlKind kind = kind_of(message);
  const bool plain = kind == ControlKind::ready || kind == ControlKind::heartbeat ||
                     kind == ControlKind::bye || kind == ControlKind::broken;
  return plain && may_skip_fields(message.subspan(1)) ? Status::Ok() : malformed(kind);
}

}  // namespace faro::wire
