// The layout of a counter file, and what the sections of a session's hold; those of an endpoint: endpoint_layout.h. README.md in
// this folder is the page of the bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "counters/records.h"
#include "faro/query.h"

namespace faro::counters {

inline constexpr uint64_t kMagic = 0x3152544e43524146;  // "FARCNTR1", little-endian
inline constexpr uint32_t kLayoutVersion = 5;

/// Whose counters a file has.
enum class FileKind : uint32_t { session, endpoint };

enum class Section : uint32_t {
  descriptions,   ///< Description, one per row of counters.def
  node,           ///< NodeCounters, one
  peers,          ///< Peer, one per node of the cluster
  peer_counters,  ///< PeerCounters, the same
  workers,        ///< WorkerCounters, one per worker of this node
  waits,          ///< Sequenced<WaitRecord>, kWaitSlots per worker of this node
  awaited,        ///< as many as waits: a bit per worker of the cluster, see WaitRecord
  outgoing,  ///< OutgoingCounters: (local worker * receiving ends + end) * rings + k; the ends are the workers of the cluster, or its nodes
  incoming,  ///< IncomingCounters: (local worker * workers of the cluster + sender) * rings + k
  queries,   ///< Sequenced<QueryState>, kQuerySlots
  node_end,  ///< NodeEndCounters, one where lanes end at nodes, else none, as of the next two
  readers,   ///< ReaderCounters, one per worker of this node
  untaken,   ///< Sequenced<UntakenStream>, kUntakenSlots
  operators,        ///< OperatorRecord, kOperatorSlots per worker of this node
  operator_totals,  ///< OperatorCounters, kOperatorKinds per worker of this node: of all that it has had
  count,
};
inline constexpr uint32_t kSections = static_cast<uint32_t>(Section::count);

/// Streams of the node's end that the file has room for: those of which nobody has taken rows for longest.
inline constexpr uint32_t kUntakenSlots = 64;

/// Operators of a worker that are shown one by one. Others are in the totals alone.
inline constexpr uint32_t kOperatorSlots = 16;
inline constexpr uint32_t kOperatorKinds = 2;

/// Queries that the file has room for. `queries_running` counts the others as well.
inline constexpr uint32_t kQuerySlots = 256;

struct SectionPlace {
  uint64_t offset = 0;        ///< from the start of the file, a multiple of 64
  uint32_t count = 0;         ///< of records
  uint32_t stride_bytes = 0;  ///< from one record to the next
};

enum class Life : uint32_t { opening = 0, open = 1 };

/// Constant from the moment the file has a name.
struct Header {
  uint64_t magic = 0;
  uint32_t version = 0;
  uint32_t header_bytes = 0;
  uint64_t file_bytes = 0;
  uint64_t created_ns = 0;  ///< CLOCK_MONOTONIC, as all times in the file
  uint32_t pid = 0;         ///< in its own namespace
  FileKind kind = FileKind::session;
  uint32_t node = 0;  ///< this and all up to threshold_bytes: of a session
  uint32_t node_count = 0;
  uint32_t worker_count = 0;  ///< of the cluster
  uint32_t first_worker = 0;
  uint32_t local_worker_count = 0;
  uint32_t rings_per_lane = 0;
  uint64_t ring_bytes = 0;
  uint64_t threshold_bytes = 0;
  std::array<char, 64> cluster{};  ///< cluster.id, cut if longer; ends with 0
  std::array<SectionPlace, kSections> sections{};
  uint32_t lanes_end_at_workers = 1;  ///< 0: at nodes alone
  std::array<std::byte, 124> reserved{};
};
static_assert(std::is_trivially_copyable_v<Header>);
static_assert(sizeof(Header) == 512 && offsetof(Header, sections) == 144);

/// What is constant about a node of the cluster once the session is open.
struct Peer {
  uint64_t incarnation = 0;
  uint32_t first_worker = 0;
  uint32_t worker_count = 0;
  std::array<char, 16> transport{};  ///< of the link: "shm"; "local" for the own node
  std::array<char, 96> name{};       ///< "node 2 (10.0.0.2:7000)", cut if longer; ends with 0
};
static_assert(sizeof(Peer) == 128 && std::is_trivially_copyable_v<Peer>);

enum class Scope : uint32_t {
  node,
  peer,
  worker,
  outgoing,
  incoming,
  endpoint,
  poller,
  channel,
  node_end,
  reader,
  an_operator,
};
enum class Kind : uint32_t { total, now, since };

/// A row of counters.def.
struct Description {
  uint32_t id = 0;
  Scope scope = Scope::node;
  Kind kind = Kind::total;
  uint32_t offset = 0;  ///< in the record of that scope
  std::array<char, 48> name{};
};
static_assert(sizeof(Description) == 64);

/// What a worker waits for.
enum class WaitKind : uint64_t {
  none,
  rows,       ///< polls; the awaited bits are the senders that have not finished
  room,       ///< sends or finishes; `peer` is the receiver
  outcome,    ///< of a query that has ended here, from its issuer
  condition,  ///< of the engine's own (wait_until), or an event loop's
  overflow,   ///< that the query that uses most of it fails and frees some
};

inline constexpr uint64_t kAnyPeer = ~uint64_t{0};

/// How many different things a worker may be seen to wait for at once. A call waits for one; an
/// event loop for all that it has tried in vain.
inline constexpr uint32_t kWaitSlots = 16;

/// Written before a worker sleeps, or after it has tried in vain for a while; none once it
/// continues. A worker waits for what is in its slots before the first one with none.
struct WaitRecord {
  WaitKind kind = WaitKind::none;
  uint64_t since_ns = 0;
  QueryId query;
  uint64_t stage = 0;
  uint64_t peer = kAnyPeer;  ///< worker number: receiver, or the only sender that is polled
  uint64_t awaited_count =
      0;                 ///< bits set; of a wait for room 1 if the ring ends at the receiver's node
  uint64_t in_call = 0;  ///< 1: inside a call that waits; 0: between calls that try
  uint64_t further = 0;  ///< in the first slot: what else it waits for, without a slot
  uint64_t due_ns = 0;   ///< in a call: when it looks again, or its event loop is told to
};
static_assert(sizeof(WaitRecord) == 88 && sizeof(Sequenced<WaitRecord>) == 128);

enum class QueryLife : uint64_t {
  none,
  running,
  failed,  ///< and not all participants have ended their part
  ended,   ///< the outcome is known, but not everyone has asked for it or confirmed it
};

/// A query as this node sees it.
struct QueryState {
  QueryId id;
  QueryLife life = QueryLife::none;
  uint64_t since_ns = 0;         ///< known here
  uint64_t overflow_bytes = 0;   ///< at the last tick
  uint64_t workers_pending = 0;  ///< workers of this node that have not ended their part
  uint64_t first_worker_pending = 0;
  uint64_t nodes_pending = 0;  ///< at the coordinator: have not reported the end of their part
  uint64_t first_node_pending = 0;
  uint64_t unopened_worker =
      kAnyPeer;                 ///< a worker of this node that was sent rows but has not opened
  uint64_t unopened_stage = 0;  ///< this stage
};
static_assert(sizeof(QueryState) == 96 && sizeof(Sequenced<QueryState>) == 128);

/// A stage of a query in a word, which a store writes as a whole: 12 bits of the issuer, 20 of the query's counter, 32 of the stage.
inline uint64_t stage_word(const QueryId& query, uint32_t stage) noexcept {
  return (uint64_t{query.issuer} << 20 | (query.counter & 0xfffff)) << 32 | stage;
}
/// Whether it is one of that query.
inline bool is_stage_of(uint64_t word, const QueryId& query) noexcept {
  return word >> 32 == stage_word(query, 0) >> 32;
}

/// A stream of the node's end with rows in its ring that nobody has taken, as it was at the last tick.
struct UntakenStream {
  QueryId query;
  uint64_t stage = 0;
  uint64_t sender = 0;  ///< worker number
  uint64_t ring = 0;    ///< of its lane
  uint64_t reader =
      kAnyPeer;          ///< number of the worker that has to take them; kAnyPeer: any of `readers`
  uint64_t readers = 0;  ///< a bit for each of the node's first 64 workers
  uint64_t frames = 0;   ///< in the ring; 0: no stream
  uint64_t bytes = 0;    ///< their bytes, with headers and padding
  uint64_t since_ns = 0;  ///< nobody has taken any
};
static_assert(sizeof(UntakenStream) == 88 && sizeof(Sequenced<UntakenStream>) == 128);

/// An operator of a worker. Kinds are those of faro::OperatorKind.
struct OperatorState {
  QueryId query;
  uint64_t stage = 0;     ///< its first one
  uint64_t kind = 0;      ///< 0: no operator
  uint64_t since_ns = 0;  ///< when it was made
};
struct OperatorRecord {
  Sequenced<OperatorState> state;
  OperatorCounters counters;

  /// What it has counted; `of` has kind 0 if that is none's, or another one's meanwhile.
  OperatorValues load(OperatorState& of) const noexcept;
};
static_assert(sizeof(OperatorState) == 48 && sizeof(OperatorRecord) == 192);

/// The least stride of each section; that of `awaited` grows with the cluster.
inline constexpr std::array<size_t, kSections> kRecordBytes = {sizeof(Description),
                                                               sizeof(NodeCounters),
                                                               sizeof(Peer),
                                                               sizeof(PeerCounters),
                                                               sizeof(WorkerCounters),
                                                               sizeof(Sequenced<WaitRecord>),
                                                               64,
                                                               sizeof(OutgoingCounters),
                                                               sizeof(IncomingCounters),
                                                               sizeof(Sequenced<QueryState>),
                                                               sizeof(NodeEndCounters),
                                                               sizeof(ReaderCounters),
                                                               sizeof(Sequenced<UntakenStream>),
                                                               sizeof(OperatorRecord),
                                                               sizeof(OperatorCounters)};

}  // namespace faro::counters
