// Structs of faro/c.h that begin with their size, of whatever version the caller knows.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "c/errors.h"
#include "faro/c.h"
#include "faro/query.h"

namespace faro::c {

/// `size` and `version`.
inline constexpr uint32_t kLeastSize = 2 * sizeof(uint32_t);

static_assert(sizeof(faro_query_id) == sizeof(QueryId));
inline QueryId query_of(const faro_query_id& query) noexcept {
  return std::bit_cast<QueryId>(query);
}
inline faro_query_id query_of(const QueryId& query) noexcept {
  return std::bit_cast<faro_query_id>(query);
}

/// The counters of rings among those of a lane, link or channel.
template <typename Metrics>
faro_ring_traffic traffic_of(const Metrics& metrics) noexcept {
  return {metrics.frames_sent,        metrics.bytes_sent,
          metrics.transfers,          metrics.no_room,
          metrics.frames_received,    metrics.bytes_received,
          metrics.read_notifications, metrics.unreleased_bytes};
}

/// Errors: invalid_argument if there is no struct of the caller's, or it is too small to say its size.
template <typename Struct>
Status need_struct(const Struct* of_caller, const char* name) {
  if (Status status = need(of_caller, name); !status.ok()) return status;
  if (of_caller->size >= kLeastSize) return Status::Ok();
  return Status(Code::invalid_argument, std::string(name) +
                                            "->size = " + std::to_string(of_caller->size) +
                                            ": set it to sizeof(" + name + ")");
}

/// Writes the fields for which the caller has room.
template <typename Struct>
void fill(Struct& of_caller, Struct value) noexcept {
  value.size = of_caller.size;
  value.version = FARO_ABI_VERSION;
  std::memcpy(&of_caller, &value, std::min<size_t>(of_caller.size, sizeof value));
}

/// Reads the fields that the caller knows. Errors: as need_struct; invalid_argument also if the caller has set
/// fields that this library does not know.
template <typename Struct>
Status read(const Struct* of_caller, const char* name, Struct& value) {
  if (Status status = need_struct(of_caller, name); !status.ok()) return status;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(of_caller);
  value = {};
  std::memcpy(&value, bytes, std::min<size_t>(of_caller->size, sizeof value));
  for (size_t at = sizeof value; at < of_caller->size; ++at) {
    if (bytes[at] == 0) continue;
    return Status(Code::invalid_argument,
                  std::string(name) + " has fields that this library does not know; its ABI is " +
                      std::to_string(FARO_ABI_VERSION));
  }
  return Status::Ok();
}

}  // namespace faro::c
