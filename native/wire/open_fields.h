// OpenFields: what the list of fields at the end of an OPEN says (wire/fields.h).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/fields.h"

namespace faro::wire {

/// Whose the rows of a shuffle are that come by a ring which ends at a node.
enum class OpenDelivery : uint8_t {
  worker = 0,     // of the one worker that the number of the stream names; the field is absent
  node = 1,       // of any of the workers that the field names
  replicate = 2,  // of each of them
};

/// Field 1, required: an OpenDelivery other than `worker` as one byte, then a bit for each worker of the receiving node, from the
/// lowest bit of the first byte on.
struct OpenFields {
  static constexpr uint16_t kDelivery = 1;

  OpenDelivery delivery = OpenDelivery::worker;
  std::span<const std::byte> workers;  // the bits; valid as long as the list

  bool has(uint32_t local_worker) const noexcept {
    return (static_cast<uint32_t>(workers[local_worker / 8]) >> (local_worker % 8) & 1) != 0;
  }

  /// Appends the list; nothing with OpenDelivery::worker. `local_workers`: below `worker_count`.
  static void write(std::vector<std::byte>& out, OpenDelivery delivery,
                    std::span<const uint32_t> local_workers, uint32_t worker_count) {
    if (delivery == OpenDelivery::worker) return;
    std::vector<std::byte> value(1 + (worker_count + 7) / 8);
    value[0] = static_cast<std::byte>(delivery);
    for (const uint32_t worker : local_workers)
      value[1 + worker / 8] |= std::byte{1} << (worker % 8);
    FieldWriter(out).bytes(kDelivery | kRequiredField, value);
  }

  /// Reads the untrusted list of an OPEN to a node of that many workers. Returns why it is none; null if it is one.
  const char* read(std::span<const std::byte> list, uint32_t worker_count) {
    FieldReader fields(list);
    while (fields.next()) {
      if (fields.number() != kDelivery) {
        fields.skip();
        continue;
      }
      const std::span<const std::byte> value = fields.bytes();
      if (value.size() != 1 + (worker_count + 7) / 8) return "a delivery of wrong length";
      delivery = static_cast<OpenDelivery>(value[0]);
      if (delivery != OpenDelivery::node && delivery != OpenDelivery::replicate)
        return "an unknown delivery";
      workers = value.subspan(1);
      const uint32_t beyond = worker_count % 8;
      if (beyond != 0 && (static_cast<uint32_t>(workers.back()) >> beyond) != 0)
        return "a delivery to a worker that does not exist";
      if (count(worker_count) == 0) return "a delivery to no worker";
    }
    if (fields.malformed()) return "fields that are malformed";
    return fields.unknown() ? "a required field that is not known" : nullptr;
  }

 private:
  uint32_t count(uint32_t worker_count) const noexcept {
    uint32_t named = 0;
    for (uint32_t worker = 0; worker < worker_count; ++worker) named += has(worker) ? 1 : 0;
    return named;
  }
};

}  // namespace faro::wire
