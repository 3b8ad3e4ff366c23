#include "wire/control.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/printable.h"
#include "wire/bytes.h"

namespace faro::wire {
namespace {

using base::printable;

constexpr size_t kHelloHeadBytes = 32;

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
  writer.number(hello.expected_node);
  writer.number(hello.node_count);
  writer.number(hello.incarnation);
  writer.number(hello.settings_digest);
  writer.text(hello.cluster_id);
  writer.text(hello.address);
  writer.text(hello.host_identity);
  writer.number(static_cast<uint8_t>(hello.transports.size()));
  for (const std::string& name : hello.transports) writer.text(name);
  writer.text(hello.settings);
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
  hello.expected_node = reader.number<uint32_t>();
  hello.node_count = reader.number<uint32_t>();
  hello.incarnation = reader.number<uint64_t>();
  hello.settings_digest = reader.number<uint64_t>();
  hello.cluster_id = printable(reader.text(Hello::kNameLimit));
  hello.address = printable(reader.text(Hello::kNameLimit));
  hello.host_identity = reader.text(Hello::kNameLimit);
  const size_t transports = reader.number<uint8_t>();
  if (transports > Hello::kTransportLimit) return malformed(ControlKind::hello);
  for (size_t i = 0; i < transports && !reader.failed(); ++i) {
    hello.transports.push_back(printable(reader.text(Hello::kNameLimit)));
  }
  hello.settings = reader.text(Hello::kSettingsLimit);
  if (!reader.complete()) return malformed(ControlKind::hello);
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
  if (!reader.complete() || retry > 1 || reserved != 0 ||
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
  if (!reader.complete() || !zeros || kind != ControlKind::link)
    return malformed(ControlKind::link);
  return choice;
}

Result<Members> decode_members(std::span<const std::byte> message, uint32_t node_count) {
  Members members;
  ByteReader reader(message);
  const auto kind = static_cast<ControlKind>(reader.number<uint8_t>());
  const uint8_t linked = reader.number<uint8_t>();
  const uint16_t reserved = reader.number<uint16_t>();
  const auto bits = reader.rest();
  if (!reader.complete() || kind != ControlKind::members || linked > 1 || reserved != 0 ||
      bits.size() != (uint64_t{node_count} + 7) / 8) {
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

Status check_plain(std::span<const std::byte> message) {
  const ControlKind kind = kind_of(message);
  const bool plain =
      kind == ControlKind::ready || kind == ControlKind::heartbeat || kind == ControlKind::bye;
  return plain && message.size() == 1 ? Status::Ok() : malformed(kind);
}

}  // namespace faro::wire
