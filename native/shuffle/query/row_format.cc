#include "shuffle/query/row_format.h"

#include <fmt/format.h>

#include <cstring>

#include "base/printable.h"
#include "faro/hash.h"

namespace faro::shuffle {
namespace {

// At most kOpenFormatTextLimit bytes of UTF-8, without half a character.
std::string_view beginning(std::string_view text) {
  if (text.size() <= wire::kOpenFormatTextLimit) return text;
  constexpr size_t kLongestTail = 3;
  size_t end = wire::kOpenFormatTextLimit;
  const auto is_inside = [&](size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  };
  while (end > wire::kOpenFormatTextLimit - kLongestTail && is_inside(end)) --end;
  return text.substr(0, end);
}

}  // namespace

RowFormat RowFormat::of(std::string_view said) {
  if (said.empty()) return {};
  const uint64_t digest = hash_bytes(said.data(), said.size());
  return {digest != 0 ? digest : 1, base::printable(std::string(beginning(said)))};
}

RowFormat RowFormat::of_open(std::span<const std::byte> payload) {
  RowFormat format;
  if (payload.size() == sizeof(wire::OpenPayload)) return format;
  wire::OpenFormat head;
  std::memcpy(&head, payload.data() + sizeof(wire::OpenPayload), sizeof head);
  format.digest = head.digest;
  const std::span<const std::byte> text =
      payload.subspan(sizeof(wire::OpenPayload) + sizeof(wire::OpenFormat));
  format.text =
      base::printable(std::string(reinterpret_cast<const char*>(text.data()), text.size()));
  return format;
}

std::string RowFormat::open_bytes() const {
  if (digest == 0) return {};
  const wire::OpenFormat head{digest};
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + text;
}

std::string RowFormat::beside(const RowFormat& other) const {
  return text.empty() || text == other.text ? fmt::format("{}… (digest {:016x})", text, digest)
                                            : text;
}

}  // namespace faro::shuffle
