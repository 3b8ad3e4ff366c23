// Data messages: what two nodes say to each other on the data connection of a link over TCP. wire/README.md has the
// page of every byte; transport/tcp/README.md says what is checked and when they are sent.
//
//    0                  4        8                  16
//   +--------------+---+--------+------------------+------------------ - - -
//   | ring         | k | length | position         | length bytes of the ring
//   +--------------+---+--------+------------------+------------------ - - -
//     bits 0…30     31
//
//   k  message   ring                     length                    position
//   0  WRITTEN   of the sending node's    bytes that follow; a      of the first byte that follows:
//                outgoing rings           multiple of 64, not 0     all bytes before it have been sent
//   1  READ      of the sending node's    0; nothing follows        everything before it may be
//                incoming rings                                     written again; more than before
//
// The length of every message is known: 16 bytes and, behind a WRITTEN, `length` more. There are
// fewer than 2^30 rings. A later message has bit 30 of `ring` set and is sent only to a peer that
// has offered the ability for it (feature bits of HELLO); a peer that has not offered it takes the
// message for one of a ring that does not exist, and ends the link. There are three:
//
//   RESUME    by kMends: bit 30, bit 31 clear; ring of the sending node's incoming rings; nothing follows. Everything
//             before `position` has arrived, the last `length` bytes of it are not read yet.
//   SIGN      by kSigns: bits 30 and 31, all others 0; nothing follows. The sender lives, and so does this way.
//   TURN      by kTurns: bits 30, 31 and 0; nothing follows. `position` is the sender's turn (transport/schedule), and
//
//              0    2   3      16             32
//             +------+---+------+--------------+      kind    0 turn, 1 follow, 2 leave
//   length    | kind | b | 0    | quiet nodes  |      b       the turn has begun
//             +------+---+------+--------------+
//
// On the first data connection of a link there is none. Each further one begins with a RESUME of every incoming ring, in
// order, in both directions. Whoever has all those of the peer goes on from the positions that they name.
//
// All numbers are little-endian. A WRITTEN ends at the end of a frame. If its bytes reach the end of the ring's
// buffer they continue at its start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "wire/frame.h"

namespace faro::wire {

struct DataMessage {
  uint32_t ring_and_kind;  // see the picture
  uint32_t length;
  Position position;
};
static_assert(sizeof(DataMessage) == 16 && alignof(DataMessage) == 8);
static_assert(offsetof(DataMessage, length) == 4 && offsetof(DataMessage, position) == 8);
static_assert(std::is_trivially_copyable_v<DataMessage>);

/// Set in ring_and_kind: READ; clear: WRITTEN.
inline constexpr uint32_t kReadMessage = uint32_t{1} << 31;

constexpr DataMessage written_message(uint32_t ring, uint32_t length, Position position) {
  return {ring, length, position};
}
constexpr DataMessage read_message(uint32_t ring, Position position) {
  return {ring | kReadMessage, 0, position};
}
/// Set in ring_and_kind: RESUME.
inline constexpr uint32_t kResumeMessage = uint32_t{1} << 30;
constexpr DataMessage resume_message(uint32_t ring, uint32_t unread, Position position) {
  return {ring | kResumeMessage, unread, position};
}
/// All of ring_and_kind: SIGN.
inline constexpr uint32_t kSignMessage = kReadMessage | kResumeMessage;
constexpr DataMessage sign_message() { return {kSignMessage, 0, 0}; }
constexpr bool is_sign(const DataMessage& message) {
  return message.ring_and_kind == kSignMessage && message.length == 0 && message.position == 0;
}
/// All of ring_and_kind: TURN.
inline constexpr uint32_t kTurnMessage = kSignMessage | 1;
/// What it says beside the turn.
struct TurnWords {
  uint32_t kind = 0;
  bool has_begun = false;
  uint32_t quiet_nodes = 0;  // at most 16 bits of it are sent
};
constexpr DataMessage turn_message(const TurnWords& words, uint64_t turn) {
  const uint32_t begun = words.has_begun ? 1u << 2 : 0u;
  return {kTurnMessage, words.kind | begun | words.quiet_nodes << 16, turn};
}
constexpr bool is_turn(const DataMessage& message) {
  constexpr uint32_t kUnused = 0xfff8;
  return message.ring_and_kind == kTurnMessage && (message.length & kUnused) == 0;
}
constexpr TurnWords words_of_turn(const DataMessage& message) {
  return {message.length & 3, (message.length & 4) != 0, message.length >> 16};
}
constexpr bool is_read(const DataMessage& message) {
  return (message.ring_and_kind & kReadMessage) != 0;
}
constexpr uint32_t ring_of(const DataMessage& message) {
  return message.ring_and_kind & ~kReadMessage;
}

}  // namespace faro::wire
