// What faro/c.h numbers, compared with what the core does.
#include <cstdint>
#include <string_view>

#include "faro/c.h"
#include "faro/endpoint.h"
#include "faro/hash.h"
#include "faro/log.h"
#include "faro/outcome.h"
#include "faro/session.h"
#include "faro/status.h"

namespace {

struct Constant {
  std::string_view name;  // without its prefix
  int32_t number;
};

#define FARO_C_CONSTANT(prefix, name) \
  Constant { #name, prefix##name }

constexpr Constant kCodes[] = {FARO_C_CONSTANT(FARO_CODE_, OK),
                               FARO_C_CONSTANT(FARO_CODE_, INVALID_ARGUMENT),
                               FARO_C_CONSTANT(FARO_CODE_, DEADLINE_EXCEEDED),
                               FARO_C_CONSTANT(FARO_CODE_, CLOSED),
                               FARO_C_CONSTANT(FARO_CODE_, ROW_TOO_LARGE),
                               FARO_C_CONSTANT(FARO_CODE_, WRONG_STATE),
                               FARO_C_CONSTANT(FARO_CODE_, HOLDING),
                               FARO_C_CONSTANT(FARO_CODE_, CANCELLED),
                               FARO_C_CONSTANT(FARO_CODE_, QUERY_CANCELLED),
                               FARO_C_CONSTANT(FARO_CODE_, QUERY_FAILED),
                               FARO_C_CONSTANT(FARO_CODE_, OVERFLOW_EXHAUSTED),
                               FARO_C_CONSTANT(FARO_CODE_, QUERY_UNOPENED),
                               FARO_C_CONSTANT(FARO_CODE_, QUERY_ENDED),
                               FARO_C_CONSTANT(FARO_CODE_, LIMIT_EXCEEDED),
                               FARO_C_CONSTANT(FARO_CODE_, STAGE_MISMATCH),
                               FARO_C_CONSTANT(FARO_CODE_, PEER_LOST),
                               FARO_C_CONSTANT(FARO_CODE_, PROTOCOL_ERROR),
                               FARO_C_CONSTANT(FARO_CODE_, SESSION_CLOSED),
                               FARO_C_CONSTANT(FARO_CODE_, CONNECT_FAILED),
                               FARO_C_CONSTANT(FARO_CODE_, CONFIGURATION_MISMATCH),
                               FARO_C_CONSTANT(FARO_CODE_, AUTHENTICATION_FAILED),
                               FARO_C_CONSTANT(FARO_CODE_, CONFIG_INVALID),
                               FARO_C_CONSTANT(FARO_CODE_, RESOURCE_LIMIT),
                               FARO_C_CONSTANT(FARO_CODE_, ADDRESS_IN_USE),
                               FARO_C_CONSTANT(FARO_CODE_, TRANSPORT_UNAVAILABLE),
                               FARO_C_CONSTANT(FARO_CODE_, SYSTEM_ERROR),
                               FARO_C_CONSTANT(FARO_CODE_, INTERNAL_ERROR)};

#undef FARO_C_CONSTANT

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr bool is_upper_of(std::string_view upper, std::string_view name) {
  if (upper.size() != name.size()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    if (lower(upper[i]) != name[i]) return false;
  }
  return true;
}
constexpr int32_t number_of(std::string_view name) {
  for (const Constant& code : kCodes) {
    if (is_upper_of(code.name, name)) return code.number;
  }
  return -1;
}

// None is missing, none is more.
#define FARO_CODE(name, number, category, meaning) static_assert(number_of(#name) == (number));
#include "faro/codes.def"
#undef FARO_CODE
constexpr size_t kCodeCount = 0
#define FARO_CODE(name, number, category, meaning) +1
#include "faro/codes.def"
#undef FARO_CODE
    ;
static_assert(kCodeCount == sizeof kCodes / sizeof kCodes[0]);

template <typename Enum>
constexpr bool is(int32_t number, Enum value) {
  return number == static_cast<int32_t>(value);
}
using faro::Category;
using faro::LogLevel;
using faro::Outcome;
static_assert(is(FARO_CATEGORY_NONE, Category::none) &&
              is(FARO_CATEGORY_OPERATION, Category::operation) &&
              is(FARO_CATEGORY_QUERY, Category::query) && is(FARO_CATEGORY_PEER, Category::peer) &&
              is(FARO_CATEGORY_SESSION, Category::session) &&
              is(FARO_CATEGORY_PROCESS, Category::process));
static_assert(is(FARO_OUTCOME_DONE, Outcome::done) &&
              is(FARO_OUTCOME_WOULD_WAIT, Outcome::would_wait) &&
              is(FARO_OUTCOME_HOLDING, Outcome::holding) &&
              is(FARO_OUTCOME_STOPPED, Outcome::stopped) &&
              is(FARO_OUTCOME_END_OF_STREAM, Outcome::end_of_stream) &&
              is(FARO_OUTCOME_DEADLINE, Outcome::deadline) &&
              is(FARO_OUTCOME_FAILED, Outcome::failed));
static_assert(is(FARO_PROGRESS_TURN, faro::Progress::turn) &&
              is(FARO_PROGRESS_CALL, faro::Progress::call));
using ChannelKind = faro::ChannelEvent::Kind;
static_assert(is(FARO_CHANNEL_OPENED, ChannelKind::opened) &&
              is(FARO_CHANNEL_FRAME, ChannelKind::frame) &&
              is(FARO_CHANNEL_ROOM, ChannelKind::room) &&
              is(FARO_CHANNEL_CLOSED, ChannelKind::closed));
static_assert(is(FARO_DELIVERY_WORKER, faro::Delivery::worker) &&
              is(FARO_DELIVERY_NODE, faro::Delivery::node) &&
              is(FARO_DELIVERY_REPLICATE, faro::Delivery::replicate));
static_assert(is(FARO_CLOSING_DRAIN, faro::Closing::drain) &&
              is(FARO_CLOSING_NOW, faro::Closing::now));
static_assert(is(FARO_LOG_DEBUG, LogLevel::debug) && is(FARO_LOG_INFO, LogLevel::info) &&
              is(FARO_LOG_WARNING, LogLevel::warning) && is(FARO_LOG_ERROR, LogLevel::error) &&
              is(FARO_LOG_OFF, LogLevel::off));

}  // namespace

uint32_t faro_abi_version() { return FARO_ABI_VERSION; }
const char* faro_version() { return FARO_VERSION; }

// Names are literals: they end with a zero.
const char* faro_code_name(faro_code code) {
  return faro::code_name(static_cast<faro::Code>(code)).data();
}
const char* faro_outcome_name(faro_outcome outcome) {
  if (outcome < FARO_OUTCOME_DONE || outcome > FARO_OUTCOME_FAILED) return "unknown";
  return faro::outcome_name(static_cast<faro::Outcome>(outcome));
}
