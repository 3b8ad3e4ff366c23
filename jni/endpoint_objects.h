// The native objects of endpoints that Java holds by handle.
#pragma once

#include <jni.h>

#include <atomic>
#include <memory>

#include "faro/c.h"
#include "jni/callbacks.h"
#include "jni/handle_table.h"
#include "jni/objects.h"
#include "jni/owned_table.h"

namespace faro::jni {

/// Destroyed when Java has forgotten the endpoint and its pollers.
struct EndpointState {
  std::unique_ptr<Acceptor> acceptor;  // null: none; the handle refers to it
  Owned<faro_endpoint> handle;
};

/// A poller as Java drives it. Which thread may call is checked by the Java class.
///
/// Threads: those of the poller; `interrupted`: any.
struct PollerState {
  std::shared_ptr<EndpointState> endpoint;
  faro_poller* handle = nullptr;
  std::atomic<bool> interrupted{false};  // a waiting call answers would_wait
  faro_channel_claim claim{};  // the last one, as Java reads it: `Layout` of NativePoller.java
};

/// The addresses of rings that buffers of Java refer to. The memory there is given back when the channel has ended.
struct RingMemoryState {
  Owned<faro_ring_memory> memory;
};

/// Java's number of a channel: the generation above the index.
inline jlong long_of(faro_channel_id channel) {
  return static_cast<jlong>(uint64_t{channel.generation} << 32 | uint64_t{channel.index});
}
inline faro_channel_id id_of(jlong channel) {
  const auto number = static_cast<uint64_t>(channel);
  return {static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32)};
}

inline HandleTable<EndpointState>& endpoints() {
  // Never destroyed: Java threads may still call while the process ends.
  static auto* const table = new HandleTable<EndpointState>;
  return *table;
}
/// A poller is removed when nothing in Java refers to it any more: so nobody is inside of a call with it.
inline OwnedTable<PollerState>& pollers() {
  static auto* const table = new OwnedTable<PollerState>;
  return *table;
}
/// The memory of rings is removed when nothing in Java refers to it any more: so nobody is inside
/// of a call with it.
inline OwnedTable<RingMemoryState>& ring_memories() {
  static auto* const table = new OwnedTable<RingMemoryState>;
  return *table;
}

}  // namespace faro::jni
