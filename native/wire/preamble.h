// Preamble: the first bytes on a connection to a node's listener. wire/README.md has the page of every byte.
//
//    0        4         6      8                          24
//   +--------+---------+------+--------------------------+
//   | "FARO" | version | kind | token                    |
//   +--------+---------+------+--------------------------+
//
// Little-endian. There is no answer: the accepting side closes a connection with a bad preamble (or answers one of another
// protocol as EndpointSpec::answer_to_others says). A control connection has
// a token of zeros and continues with the handshake, which gives the exact version and features of both sides. The token
// of a data connection names the link that it belongs to; the connection continues as that link's transport defines.
//
// A side that only looks what listens sends a probe instead: 24 bytes, of which protocols that
// begin a message by its length make an unknown one. It is answered like a connection of another
// protocol, and nobody is warned of it.
//
//    0              4        8
//   +--------------+--------+------------------------------+
//   | 24, big-end. | "FARO" | zeros                        |
//   +--------------+--------+------------------------------+
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace faro::wire {

enum class ConnectionKind : uint16_t {
  // 0 is never valid.
  control = 1,
  data = 2,
};

/// Version of preamble and framing of connections; a change of it is never compatible.
inline constexpr uint16_t kPreambleVersion = 1;

struct Preamble {
  std::array<char, 4> magic;        // "FARO"
  uint16_t version;                 // kPreambleVersion
  ConnectionKind kind;              //
  std::array<std::byte, 16> token;  // of a data connection; zeros for a control connection
};
static_assert(sizeof(Preamble) == 24 && offsetof(Preamble, kind) == 6 &&
              offsetof(Preamble, token) == 8);
static_assert(std::is_trivially_copyable_v<Preamble>);

inline constexpr std::array<char, 4> kPreambleMagic = {'F', 'A', 'R', 'O'};

/// The preambles of the two kinds of connection.
constexpr Preamble control_preamble() {
  return {kPreambleMagic, kPreambleVersion, ConnectionKind::control, {}};
}
constexpr Preamble data_preamble(const std::array<std::byte, 16>& token) {
  return {kPreambleMagic, kPreambleVersion, ConnectionKind::data, token};
}

/// Whether these bytes may be the first ones of a preamble.
inline bool may_begin_preamble(std::span<const std::byte> bytes) {
  const size_t count = std::min(bytes.size(), kPreambleMagic.size());
  return std::memcmp(bytes.data(), kPreambleMagic.data(), count) == 0;
}

/// The first bytes of a probe. Those that follow do not count.
inline constexpr std::array<char, 8> kProbeBegin = {0, 0, 0, 24, 'F', 'A', 'R', 'O'};

/// Whether these bytes may be the first ones of a probe.
inline bool may_begin_probe(std::span<const std::byte> bytes) {
  const size_t count = std::min(bytes.size(), kProbeBegin.size());
  return std::memcmp(bytes.data(), kProbeBegin.data(), count) == 0;
}

/// Why the bytes of an unauthenticated peer are no preamble; nullptr if they are one.
inline const char* why_invalid(const Preamble& preamble) {
  if (preamble.magic != kPreambleMagic) return "not a Faro connection";
  if (preamble.version != kPreambleVersion) return "another version of Faro's connections";
  switch (preamble.kind) {
    case ConnectionKind::control:
      return preamble.token == std::array<std::byte, 16>{} ? nullptr
                                                           : "control connection with a token";
    case ConnectionKind::data:
      return nullptr;
  }
  return "unknown kind of connection";
}

/// Reads a preamble out of received bytes.
inline Preamble load_preamble(std::span<const std::byte, sizeof(Preamble)> bytes) {
  Preamble preamble;
  std::memcpy(&preamble, bytes.data(), sizeof preamble);
  return preamble;
}

}  // namespace faro::wire
