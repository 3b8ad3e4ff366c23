/* Faro's C ABI: what engines and bindings in other languages call. Plain C11, also valid C++.
 *
 *   faro_config* config = faro_config_create();
 *   faro_config_set(config, "cluster.nodes", "a:7000,b:7000");
 *   faro_config_set(config, "cluster.node", "0");
 *   faro_session* session = NULL;
 *   if (faro_session_open(config, NULL, NULL, &session) != FARO_CODE_OK) {
 *     …  // faro_last_error says why
 *   }
 *
 * libfaro_c.so exports these functions and nothing else; libfaro.so and libfaro.a have them, too.
 *
 * Its calls do what the C++ headers say: a session is a node's membership in a cluster
 * (faro/session.h), a worker one thread that runs query plans, a shuffle one shuffle operator of
 * one query at one worker (faro/shuffle.h), with a sending side (faro/sender.h), a receiving side
 * (faro/receiver.h) and batches of received rows (faro/batch.h). An aggregation is an operator over
 * a shuffle (faro/aggregate.h). Apart from all of that, an endpoint has channels of frames between
 * two peers (faro/endpoint.h).
 *
 * Versions. FARO_ABI_VERSION counts the releases that added something. Functions, constants and
 * fields are only added, at the end of structs, and never change meaning: a program works with
 * every library whose faro_abi_version() is at least its own.
 *
 * Structs begin with their `size` and `version`. Set everything to zero and `size` to sizeof. Of a
 * struct that the library fills it writes the fields that lie within `size`, and its own
 * FARO_ABI_VERSION to `version`. Of a struct that it reads, fields behind `size` count as zero, the
 * default, and fields that it does not know have to be zero; `version` is not looked at. Only
 * values that will never grow, or whose distance is told, are without these two: faro_query_id,
 * faro_ring_traffic, faro_sent_metrics, faro_received_metrics, faro_cursor, faro_ring, faro_column,
 * faro_aggregate, faro_channel_id, faro_channel_event and faro_channel_claim.
 *
 * Errors. Calls that may wait for rows or for room answer a faro_outcome, others a faro_code,
 * FARO_CODE_OK for success. After FARO_OUTCOME_FAILED and after every other code, faro_last_error
 * tells the calling thread what went wrong. A null handle, a null pointer where one is needed, a
 * struct that is too small and a value out of range are FARO_CODE_INVALID_ARGUMENT, which changes
 * nothing. When there is no memory, the call is refused with FARO_CODE_RESOURCE_LIMIT, or the query
 * fails. No exception leaves a call. Callbacks must not throw, nor leave by longjmp.
 *
 * Threads. What belongs to a worker (its shuffles, batches and claims) is used by one thread at a
 * time: the one that owns the worker. Where it is said, any thread may call. No handle may be
 * destroyed while a call that was given it is under way.
 *
 * Constants belong to enums with a name, which no argument has as its type: those are int32_t. What
 * is a macro has a value of literals alone. So generators of bindings (bindgen, cgo, cffi) see all
 * of them.
 *
 * Text is UTF-8 and ends with a zero byte. What the library is given it copies before the call
 * returns.
 */
#ifndef FARO_C_H
#define FARO_C_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define FARO_ABI_VERSION 1

/* The FARO_ABI_VERSION of the library. Threads: any. */
uint32_t faro_abi_version(void);
/* The library's version, such as "0.1.0". Threads: any. */
const char* faro_version(void);

/* --- What went wrong */

/* What went wrong. The numbers are those of faro/codes.def, of C++ and of Java. */
typedef int32_t faro_code;
enum faro_codes {
  FARO_CODE_OK = 0,
  FARO_CODE_INVALID_ARGUMENT = 1,  /* an argument is outside what the call accepts */
  FARO_CODE_DEADLINE_EXCEEDED = 2, /* the deadline passed before the operation was done */
  FARO_CODE_CLOSED = 3,            /* the object was closed */
  FARO_CODE_ROW_TOO_LARGE = 4,     /* a row is larger than row.limit_bytes */
  FARO_CODE_WRONG_STATE = 5,       /* the call is not allowed in this state */
  FARO_CODE_HOLDING = 6,   /* the worker would have to wait while it holds batches in place */
  FARO_CODE_CANCELLED = 7, /* another thread has cancelled the call */
  FARO_CODE_QUERY_CANCELLED = 20,
  FARO_CODE_QUERY_FAILED = 21,
  FARO_CODE_OVERFLOW_EXHAUSTED = 22, /* overflow memory and file are full */
  FARO_CODE_QUERY_UNOPENED = 23,     /* a worker did not open a shuffle that others need */
  FARO_CODE_QUERY_ENDED = 24,
  FARO_CODE_LIMIT_EXCEEDED = 25, /* of open shuffles, queries, or the copies of batches */
  FARO_CODE_STAGE_MISMATCH = 26, /* workers have opened a stage with different specs */
  FARO_CODE_PEER_LOST = 40,
  FARO_CODE_PROTOCOL_ERROR = 41,
  FARO_CODE_SESSION_CLOSED = 60,
  FARO_CODE_CONNECT_FAILED = 61,
  FARO_CODE_CONFIGURATION_MISMATCH = 62,
  FARO_CODE_AUTHENTICATION_FAILED = 63,
  FARO_CODE_CONFIG_INVALID = 80,
  FARO_CODE_RESOURCE_LIMIT = 81,
  FARO_CODE_ADDRESS_IN_USE = 82,
  FARO_CODE_TRANSPORT_UNAVAILABLE = 83,
  FARO_CODE_SYSTEM_ERROR = 84,
  FARO_CODE_INTERNAL_ERROR = 85 /* an invariant of Faro itself is broken */
};

/* The largest thing that is broken; tells the caller how to react. */
typedef int32_t faro_category;
enum faro_categories {
  FARO_CATEGORY_NONE = 0,
  FARO_CATEGORY_OPERATION = 1, /* the call was refused, everything else goes on */
  FARO_CATEGORY_QUERY = 2,     /* this query has ended on every participant; others go on */
  FARO_CATEGORY_PEER = 3,      /* a peer is gone; queries that need it have failed; others go on */
  FARO_CATEGORY_SESSION = 4,   /* this session can only be closed */
  FARO_CATEGORY_PROCESS = 5    /* this process cannot use Faro as asked */
};

/* What a call of the data path answers. All but FAILED are normal results. */
typedef int32_t faro_outcome;
enum faro_outcomes {
  FARO_OUTCOME_DONE = 0,
  FARO_OUTCOME_WOULD_WAIT = 1, /* nothing now, and FARO_WAIT_NONE was given */
  FARO_OUTCOME_HOLDING = 2,    /* it would wait, but the worker holds batches: release them first */
  FARO_OUTCOME_STOPPED = 3,    /* every receiver has: send no more, but finish */
  FARO_OUTCOME_END_OF_STREAM = 4, /* every sender has finished, and all rows were handed out */
  FARO_OUTCOME_DEADLINE = 5,      /* the time limit passed first; nothing was changed */
  FARO_OUTCOME_FAILED = 6         /* faro_last_error says why */
};

/* Names a query over the life of a cluster. A plain value of 24 bytes, without `size`, that may be
 * copied as memory to other processes: engines carry it with their plans. A counter of 0 is no
 * query. */
typedef struct faro_query_id {
  uint64_t counter;
  uint64_t incarnation;
  uint32_t issuer; /* node number */
  uint32_t reserved;
} faro_query_id;

/* What went wrong, and what it is about where that is known. */
typedef struct faro_error {
  uint32_t size;
  uint32_t version;
  faro_code code;
  faro_category category;
  uint8_t has_node, has_query, has_stage;
  uint8_t reserved[5];
  uint32_t node; /* the one that was lost, or on which the query failed first */
  uint32_t stage;
  faro_query_id query;
  const char* message; /* never null; valid until the next call that fails on this thread */
} faro_error;

/* Tells the calling thread's last failure; FARO_CODE_OK if there was none. No call clears it: the
 * next one that fails on this thread replaces it. So ask right after a call that has failed: calls
 * of the sender and of the receiver of a shuffle, and of other objects, share it. The call itself
 * answers INVALID_ARGUMENT if `error` is null or too small, and leaves the failure as it is.
 * Threads: any. Blocks: never. */
faro_code faro_last_error(faro_error* error);
/* Makes `error` the calling thread's last failure, with a copy of its message: for a binding that
 * refuses a call itself, or tells a failure on another thread than the one it came on.
 * FARO_CODE_OK changes nothing; `category` follows from the code. A null message is an empty one.
 * Threads: any. Blocks: never. Errors: invalid_argument (no such code). */
faro_code faro_set_last_error(const faro_error* error);

/* The name of a code as codes.def has it, such as "peer_lost"; "unknown" for another number.
 * Threads: any. */
const char* faro_code_name(faro_code code);
/* The name of an outcome, such as "would_wait"; "unknown" for another number. Threads: any. */
const char* faro_outcome_name(faro_outcome outcome);

/* --- Waiting
 *
 * Every call that can wait has `wait_ns` as its last argument before outputs: nanoseconds, or one
 * of these two. When the limit has passed, the call answers FARO_OUTCOME_DEADLINE (or
 * FARO_CODE_DEADLINE_EXCEEDED). Every other negative number is INVALID_ARGUMENT. */
/* These are INT64_MIN and INT64_MAX, written so that generators of bindings see their values. */
#define FARO_WAIT_NONE \
  (-9223372036854775807L - 1)                  /* tries once; WOULD_WAIT if it would have to wait */
#define FARO_WAIT_FOREVER 9223372036854775807L /* until it is done, cancelled, or a peer is lost */

/* --- Log */

/* The levels of log lines, as faro::LogLevel says. */
enum faro_log_levels {
  FARO_LOG_DEBUG = 0,
  FARO_LOG_INFO = 1,
  FARO_LOG_WARNING = 2,
  FARO_LOG_ERROR = 3,
  FARO_LOG_OFF = 4
};

/* Takes one line of `length` bytes, without a line end and without a zero byte. It is called from
 * any thread, also the network thread: it must return quickly and must not call Faro. */
typedef void (*faro_log_sink)(void* context, int32_t level, const char* line, size_t length);
/* Log lines go to `sink` from now on. Null restores the default: stderr. Lines that another thread
 * is writing may still go to the old sink. Threads: any. */
faro_code faro_log_set_sink(faro_log_sink sink, void* context);
/* Lines below this level are dropped. Default: warning, or FARO_LOG_LEVEL of the environment.
 * Threads: any. */
faro_code faro_log_set_level(int32_t level);

/* --- Settings, as faro/config.h */

typedef struct faro_config faro_config;

/* Makes a config with all defaults; null if there is no memory. Threads: a config is used by one at
 * a time. */
faro_config* faro_config_create(void);
void faro_config_destroy(faro_config* config);
/* Sets one setting from text. Later calls win. Errors: config_invalid, naming key, value and limit;
 * a call that failed changes nothing. */
faro_code faro_config_set(faro_config* config, const char* name, const char* value);
/* Gives what a file would hold instead of its path: for security.secret_file, security.certificate,
 * security.key and security.authority. The bytes are copied; the copy is overwritten when this
 * config and all that was opened with it are gone, and shown nowhere. Errors: config_invalid
 * (another setting; no bytes), invalid_argument. */
faro_code faro_config_set_bytes(faro_config* config, const char* name, const void* bytes,
                                size_t size);
faro_code faro_config_load_file(faro_config* config, const char* path);
faro_code faro_config_load_environment(faro_config* config);
/* The value as text, valid until the next call with this config. Errors: config_invalid if there is
 * no such setting. */
faro_code faro_config_get(faro_config* config, const char* name, const char** value);

/* One setting that there is. Texts are never null. */
typedef struct faro_setting {
  uint32_t size;
  uint32_t version;
  const char* name;          /* such as "ring.bytes" */
  const char* default_value; /* as text */
  const char* help;
} faro_setting;
/* It is told one setting, which is valid until it returns. */
typedef void (*faro_tell_setting)(void* context, const faro_setting* setting);
/* Tells of every setting, in the order of their table, before this call returns. Threads: any. */
faro_code faro_config_list(faro_tell_setting tell, void* context);
/* Answers 1 if a transport was loaded from this path (verbs.module), else 0. One that was loaded is
 * in use, also when the path is gone. Threads: any. */
int32_t faro_has_loaded(const char* path);

/* --- Cancellation of calls that wait, as faro/cancellation.h */

typedef struct faro_cancellation faro_cancellation;

/* Makes one; null if there is no memory. */
faro_cancellation* faro_cancellation_create(void);
/* Ends every call that was given this cancellation, now and later. Threads: any. Blocks: never for
 * long. */
faro_code faro_cancellation_cancel(faro_cancellation* cancellation);
/* Destroys the handle. Calls that were given the cancellation keep what they need of it. */
void faro_cancellation_destroy(faro_cancellation* cancellation);

/* --- Session: a node's membership in a connected cluster, as faro/session.h
 *
 * Threads: any, except where said. Fork: a session stays its parent's, as faro::Session says. */

typedef struct faro_listening_socket faro_listening_socket;
typedef struct faro_session faro_session;
typedef struct faro_worker faro_worker;

/* Binds an address and listens there, so that a port that the system has chosen can be told to the
 * other nodes before the session opens. Errors: address_in_use, config_invalid (no such
 * address). */
faro_code faro_listening_socket_bind(const char* address, faro_listening_socket** socket);
/* Its host:port, with the port in use; valid as long as the handle. Null if `socket` is. */
const char* faro_listening_socket_address(const faro_listening_socket* socket);
void faro_listening_socket_destroy(faro_listening_socket* socket);

/* Connects to every node of cluster.nodes, and allocates the rings to them. With connect.wait_for =
 * none it waits for nobody, and does so later, as faro::Session::open says. `socket`: null, or
 * one that the session takes; then the handle is empty, and still to be destroyed. `cancellation`:
 * null, or one that ends the call. Blocks: until these nodes are connected, at most
 * connect.timeout_ms. Errors: as faro::Session::open; wrong_state if `socket` is empty. */
faro_code faro_session_open(const faro_config* config, faro_listening_socket* socket,
                            const faro_cancellation* cancellation, faro_session** session);

/* Gets the session, or null and the code of what went wrong, which faro_last_error tells to this
 * thread. */
typedef void (*faro_session_opened)(void* context, faro_code code, faro_session* session);
/* Gets the code of what went wrong, which faro_last_error tells to this thread, or FARO_CODE_OK. */
typedef void (*faro_done)(void* context, faro_code code);

/* Does what faro_session_open does, in a thread of its own, which ends with `done`. `done` is
 * called exactly once, unless this call answers anything but FARO_CODE_OK: from that thread, or
 * from the caller's if the system has no more threads. It may wait, and may destroy the session.
 * Blocks: never. */
faro_code faro_session_open_async(const faro_config* config, faro_listening_socket* socket,
                                  const faro_cancellation* cancellation, faro_session_opened done,
                                  void* context);

/* The cluster as this node sees it; it never changes. With cluster.node_limit these are the numbers
 * that nodes and workers can have. */
typedef struct faro_topology {
  uint32_t size;
  uint32_t version;
  uint32_t node; /* this one's number */
  uint32_t node_count;
  uint32_t worker_count;       /* of the whole cluster */
  uint32_t local_worker_count; /* of this node */
  uint32_t first_worker;       /* number of this node's first worker */
} faro_topology;
faro_code faro_session_describe(const faro_session* session, faro_topology* topology);
/* The number of a node's first worker. */
faro_code faro_session_first_worker(const faro_session* session, uint32_t node, uint32_t* worker);
/* The i-th worker of this node, which the session owns. */
faro_code faro_session_worker(faro_session* session, uint32_t local_index, faro_worker** worker);

/* Begins a new query, of which this node is the issuer. */
faro_code faro_session_begin_query(faro_session* session, faro_query_id* query);
/* Says which workers take part in a query, if not all of the cluster. It is called on every node
 * that takes part and on the issuer, before any of its workers uses the query. Once this has
 * answered ok each worker of this node that is named has to end the query (faro_worker_end_query),
 * also one that never uses it, and also if the query has failed; with cluster.node_limit the query,
 * and the links that it needs, stay until then, and on its issuer it keeps the drain of a node that
 * takes part from being done. Errors: as faro::Session::declare_query. */
faro_code faro_session_declare_query(faro_session* session, const faro_query_id* query,
                                     const uint32_t* workers, size_t worker_count);
/* Fails a query on every participant with query_cancelled and this reason. Errors: as
 * faro::Session::cancel_query. */
faro_code faro_session_cancel_query(faro_session* session, const faro_query_id* query,
                                    const char* reason);

/* Whether queries may contain a node: 1 or 0. Blocks: never for long. */
faro_code faro_session_has_node(const faro_session* session, uint32_t node, int32_t* has_node);
/* Waits until queries may contain a node. `cancellation`: may be null. Threads: any, but no
 * worker's that others wait for.
 * Errors: as faro::Session::await_node. */
faro_code faro_session_await_node(faro_session* session, uint32_t node,
                                  const faro_cancellation* cancellation, int64_t wait_ns);
/* Does what faro_session_await_node does, in a thread of its own, which ends with `done`. `done` is
 * called as by faro_session_open_async. The session may be closed and destroyed meanwhile. */
faro_code faro_session_await_node_async(faro_session* session, uint32_t node,
                                        const faro_cancellation* cancellation, int64_t wait_ns,
                                        faro_done done, void* context);

/* With cluster.node_limit these three add a node that listens at `address`, take one out of use,
 * and forget one. They do what faro::Nodes::add, drain and remove do, with their errors.
 * Threads: any. Blocks: never.
 *
 * A drain is done when no query with the drained node still runs that this node has begun or, as
 * they say, any node that this one is linked with, the drained one included. So tell every node of
 * the drain. One that is not linked here at the time, because no query needed that yet or its link
 * was let go (link.idle_ms), is not asked: a query that it has begun, and that is declared here
 * only after the drain is done, fails with FARO_CODE_PEER_LOST. */
faro_code faro_session_add_node(faro_session* session, uint32_t node, const char* address);
faro_code faro_session_drain_node(faro_session* session, uint32_t node);
faro_code faro_session_remove_node(faro_session* session, uint32_t node);

/* What a session tells its engine without being asked; what is null is not told.
 * faro::SessionListener says when each is called. All calls come from the network thread, must not
 * block, and must not destroy the session. faro_last_error tells this thread the cause that `code`
 * names.
 *   node_left      the node has closed its session; if this node is drained, it may instead have
 *                  let this node go
 *   node_returned  with link.idle_ms also without a node_lost before: another process of a node
 *                  whose link was let go
 *   node_drained   no query that was begun here, or by a node that is linked with this one, needs
 *                  the node, and there is no link with it. If it is told of the own node, no other
 *                  node is linked with that any more. Once every node has told this, also those
 *                  whose links were let go before (link.idle_ms), its session can be closed, and no
 *                  query fails by that */
typedef struct faro_session_listener {
  uint32_t size;
  uint32_t version;
  void* context;
  void (*node_lost)(void* context, uint32_t node, faro_code code);
  void (*node_left)(void* context, uint32_t node);
  void (*node_returned)(void* context, uint32_t node);
  void (*query_failed)(void* context, const faro_query_id* query, faro_code code);
  void (*node_added)(void* context, uint32_t node);
  void (*node_drained)(void* context, uint32_t node);
  void (*node_removed)(void* context, uint32_t node);
} faro_session_listener;
/* Tells `listener` of these from now on; it replaces the one before, of which a call may still be
 * under way. No call comes any more when close has returned. Blocks: never. */
faro_code faro_session_listen(faro_session* session, const faro_session_listener* listener);

/* Counters of a session, always on; faro/metrics.h says what each one counts. */
typedef struct faro_session_metrics {
  uint32_t size;
  uint32_t version;
  uint64_t overflow_memory_bytes;
  uint64_t overflow_memory_peak_bytes;
  uint64_t overflow_file_bytes;
  uint64_t overflow_file_peak_bytes;
  uint64_t queries_running;
  uint64_t queries_failed;
  uint64_t untaken_frames;
  uint64_t untaken_streams;
} faro_session_metrics;
/* What rings have carried, either way: of lanes, or of channels. It is a plain value, without
 * `size`: it never grows. */
typedef struct faro_ring_traffic {
  uint64_t frames_sent;
  uint64_t bytes_sent;
  uint64_t transfers;
  uint64_t no_room;
  uint64_t frames_received;
  uint64_t bytes_received;
  uint64_t read_notifications;
  uint64_t unreleased_bytes;
} faro_ring_traffic;
/* The link with one node; faro::LinkMetrics says what each counts. */
typedef struct faro_link_metrics {
  uint32_t size;
  uint32_t version;
  uint32_t node;
  uint32_t connected;    /* 1 or 0 */
  const char* transport; /* "shm", "tcp", "verbs"; "local" for the own node */
  faro_ring_traffic traffic;
  uint64_t posts;
  uint64_t writes;
  uint64_t notifications;
  uint64_t credit_returns;
  uint64_t signalled_posts;
  uint64_t completions;
  uint64_t network_events;
  uint64_t turns;
  uint64_t turn_bytes;
} faro_link_metrics;
/* The lane from one worker to another; one of them, or both, are of this node. */
typedef struct faro_lane_metrics {
  uint32_t size;
  uint32_t version;
  uint32_t sender;   /* number of the worker */
  uint32_t receiver; /* number of the worker */
  faro_ring_traffic traffic;
} faro_lane_metrics;
/* They are told the metrics of one link, or of one lane, which are valid until they return. */
typedef void (*faro_tell_link)(void* context, const faro_link_metrics* metrics);
typedef void (*faro_tell_lane)(void* context, const faro_lane_metrics* metrics);
/* Reads what the session has counted, and tells, before this call returns, what each of its links
 * and lanes has. `tell_link`, `tell_lane`: null to hear nothing of these. Its workers:
 * faro_worker_read_metrics. */
faro_code faro_session_read_metrics(const faro_session* session, faro_session_metrics* metrics,
                                    faro_tell_link tell_link, faro_tell_lane tell_lane,
                                    void* context);

/* An operator that lives, or all of a kind that a worker has made, added up; faro::OperatorCounts
 * says what each counts. */
typedef struct faro_operator_metrics {
  uint32_t size;
  uint32_t version;
  faro_query_id query; /* as the stage, 0 where all are added up */
  uint32_t stage;      /* its first one */
  uint32_t worker;     /* its number */
  uint32_t kind;       /* 1: an aggregation, 2: a join */
  uint32_t is_total;   /* 1: all of the kind that the worker has made */
  uint64_t rows_in;
  uint64_t rows_out;
  uint64_t states_sent;
  uint64_t rows_arrived;
  uint64_t partitions_spilled;
  uint64_t spilled_bytes;
  uint64_t partitions_split;
  uint64_t passes;
  uint64_t table_states;
  uint64_t held_bytes;
  uint64_t peak_bytes;
} faro_operator_metrics;
/* It is told the metrics of one operator, or of one kind, which are valid until it returns. */
typedef void (*faro_tell_operator)(void* context, const faro_operator_metrics* metrics);
/* Tells, before this call returns, of every operator of this node that lives (up to 16 of a
 * worker), then for each worker and kind of all that were made. Threads: any. */
faro_code faro_session_read_operators(const faro_session* session, faro_tell_operator tell_operator,
                                      void* context);

/* What a shuffle has sent to one receiver, and received from one sender: faro::SentMetrics and
 * faro::ReceivedMetrics say what each counts. Both are without `size`: faro_shuffle_metrics tells
 * the distance. */
typedef struct faro_sent_metrics {
  uint32_t receiver; /* index in the receivers of the spec */
  uint32_t reserved;
  uint64_t rows;
  uint64_t bytes;
  uint64_t frames;
  uint64_t no_room;
  uint64_t rows_out_overflow;
  uint64_t bytes_out_overflow;
} faro_sent_metrics;
typedef struct faro_received_metrics {
  uint32_t sender; /* index in the senders of the spec */
  uint32_t reserved;
  uint64_t rows;
  uint64_t bytes;
  uint64_t batches;
  uint64_t rows_spilled;
  uint64_t bytes_spilled;
} faro_received_metrics;
/* One shuffle of one worker; faro::ShuffleMetrics says what each counts. */
typedef struct faro_shuffle_metrics {
  uint32_t size;
  uint32_t version;
  faro_query_id query;
  uint32_t stage;
  uint32_t worker; /* its number */
  uint64_t blocked_on_room;
  uint64_t blocked_on_room_ns;
  uint64_t blocked_on_rows;
  uint64_t blocked_on_rows_ns;
  const faro_sent_metrics* sent;         /* by receiver, as in the spec; none if it is no sender */
  const faro_received_metrics* received; /* by sender; none if it is no receiver */
  uint32_t sent_count;
  uint32_t received_count;
  uint32_t sent_bytes;     /* from one faro_sent_metrics to the next */
  uint32_t received_bytes; /* from one faro_received_metrics to the next */
} faro_shuffle_metrics;
/* It is told the metrics of one shuffle, which are valid until it returns. */
typedef void (*faro_tell_shuffle)(void* context, const faro_shuffle_metrics* metrics);
/* Tells of every shuffle that the workers of this node have opened in a query, closed or not,
 * before this call returns: for EXPLAIN ANALYZE. They are kept until the query has ended
 * everywhere, as faro::Session::metrics says; later there are none. Threads: any. */
faro_code faro_session_read_shuffles(const faro_session* session, const faro_query_id* query,
                                     faro_tell_shuffle tell, void* context);

/* Ends every wait and every query with session_closed, tells the peers, stops the network thread.
 * The handle and its workers stay valid: what they are asked for fails with session_closed. It must
 * not be called from inside a call of a worker. Repeatable. Blocks: at most close.timeout_ms.
 * Errors: deadline_exceeded if calls were still inside or frames still held. */
faro_code faro_session_close(faro_session* session);
/* Closes, and destroys the handle with its workers. Open shuffles and batches stay valid; they keep
 * the memory. */
void faro_session_destroy(faro_session* session);
/* Does what faro_session_destroy does, in a thread of its own, which ends with `done` and the code
 * of close. The handle is gone with this call. `done` is called exactly once, unless this call
 * answers anything but FARO_CODE_OK; if the system has no more threads, from the caller's, which
 * waits then. */
faro_code faro_session_close_async(faro_session* session, faro_done done, void* context);

/* --- Worker: one thread that runs query plans, as faro/session.h
 *
 * Threads: one at a time. The first one that uses it owns it until faro_worker_release_ownership;
 * another thread's calls fail with wrong_state. Valid as long as its session's handle. */

typedef struct faro_shuffle faro_shuffle;

/* The worker's number over the whole cluster; UINT32_MAX if `worker` is null. Threads: any. */
uint32_t faro_worker_number(const faro_worker* worker);

/* What faro::Delivery says. */
enum faro_deliveries {
  FARO_DELIVERY_WORKER = 0,
  FARO_DELIVERY_NODE = 1,
  FARO_DELIVERY_REPLICATE = 2
};

/* What to open; every worker that takes part opens the same, in any order, at any time. */
typedef struct faro_shuffle_spec {
  uint32_t size;
  uint32_t version;
  faro_query_id query;
  uint32_t stage;     /* number of the shuffle operator in its query's plan, at most 2^31-1 */
  uint32_t row_bytes; /* width of every row; 0: rows have a length each */
  /* Worker numbers; none: all workers; with cluster.node_limit, those declared. Sender i is
   * senders[i], by which all of this shuffle names it. */
  const uint32_t* senders;
  /* Worker numbers; none: all workers; with cluster.node_limit, those declared. Receiver i is
   * receivers[i], by which all of this shuffle names it. */
  const uint32_t* receivers;
  uint32_t sender_count;
  uint32_t receiver_count;
  const char* format; /* as faro::ShuffleSpec::format; null: nothing is said */
  /* To whom this worker sends, as faro::ShuffleSpec::groups: the members of all groups, one group
   * behind the other, and how many each has. Without groups, each receiver by itself. With them a
   * receiver is a group, by its number, in all calls that send and in faro_open_frames. */
  const uint32_t* group_members;
  const uint32_t* group_sizes;
  uint32_t group_count;
  int32_t delivery; /* FARO_DELIVERY_... */
} faro_shuffle_spec;
/* Opens a shuffle. Blocks: never. Errors: as faro::Worker::open_shuffle. */
faro_code faro_worker_open_shuffle(faro_worker* worker, const faro_shuffle_spec* spec,
                                   faro_shuffle** shuffle);

/* Answers whether a condition holds: 0 if not. It is called on the worker's thread, repeatedly, and
 * must not wait: of this worker it may only call what is given FARO_WAIT_NONE. Such a call only
 * tries; what calls the condition takes rows from the network, once for all calls of it, and then
 * asks again. So a condition must not spin until rows or room come: within it they may never come.
 */
typedef int32_t (*faro_condition)(void* context);
/* Waits until the condition holds, moving on everything that others need of this worker meanwhile.
 * Whoever makes it true calls faro_worker_wake. Answers done, would_wait, deadline, holding or
 * failed. */
faro_outcome faro_worker_wait_until(faro_worker* worker, faro_condition condition, void* context,
                                    int64_t wait_ns);
/* Makes a sleeping wait of this worker look again. Threads: any. Blocks: never. */
faro_code faro_worker_wake(faro_worker* worker);

/* For engines with an event loop, as faro::Worker::ready_descriptor, on_ready and arm say: a
 * descriptor for epoll or poll, which is readable when the worker should look again, or a callback
 * instead. The descriptor is the session's: nobody else closes it, and nobody has to read it.
 * Threads: any. Errors: wrong_state if the other one was asked for. */
faro_code faro_worker_ready_descriptor(faro_worker* worker, int32_t* descriptor);
/* It is called when the worker should look again, from the session's readiness thread, and must not
 * block. */
typedef void (*faro_ready)(void* context);
/* It is called when a context is not used any more, from any thread. */
typedef void (*faro_forget)(void* context);
/* Calls `ready` from now on, in place of the one before. `forget`: null, or called once with
 * `context`, when no call of `ready` is under way and none comes any more: because another one has
 * taken its place, the session is gone, or this call was refused. */
faro_code faro_worker_on_ready(faro_worker* worker, faro_ready ready, void* context,
                               faro_forget forget);

/* What faro_worker_arm tries, as faro::Progress says: all that the worker could do, or one call
 * that is repeated until it is done, by a coroutine that does nothing else meanwhile. */
enum faro_progress_kinds { FARO_PROGRESS_TURN = 0, FARO_PROGRESS_CALL = 1 };
/* Goes on, or arms the worker. `progress` tries what there is to do, with FARO_WAIT_NONE, and
 * answers whether it has done anything; it is called at most twice. `what` is one of
 * faro_progress_kinds. Answers done: there was progress, call again; would_wait: the worker is
 * armed, exactly one readiness event comes; holding: release the batches first; failed.
 * Blocks: never. */
faro_outcome faro_worker_arm(faro_worker* worker, faro_condition progress, void* context,
                             int32_t what);

/* This worker's part in a query is over: its shuffles of that query must be closed. Waits for the
 * outcome, which the issuer decides when all participants have ended: done or failed; what `done`
 * means is said at faro::Worker::end_query. `failure`: FARO_CODE_OK, or why this worker's part has
 * failed, with `message`, which the others are told, and not that the worker has just closed
 * shuffles of the query before their end. With a failure the shuffles that are still open are
 * closed: calls of them fail from then on, and faro_shuffle_close and faro_shuffle_destroy do no
 * more than they do otherwise. It is to be repeated after would_wait or deadline. */
faro_outcome faro_worker_end_query(faro_worker* worker, const faro_query_id* query,
                                   faro_code failure, const char* message, int64_t wait_ns);

/* Releases the calling thread's ownership: the next thread that uses the worker owns it, with its
 * shuffles, batches and claims. Only the owner may call this. */
faro_code faro_worker_release_ownership(faro_worker* worker);
/* The calling thread owns the worker from now on, whoever did. It is for bindings that check
 * threads of their own, which are not the system's: the caller promises that no other call of the
 * worker is under way. */
faro_code faro_worker_take_ownership(faro_worker* worker);

typedef struct faro_worker_metrics {
  uint32_t size;
  uint32_t version;
  uint32_t worker; /* its number */
  uint32_t reserved;
  uint64_t rows_sent;
  uint64_t rows_received;
  uint64_t rows_dropped;
  uint64_t waits;
  uint64_t sleeps;
  uint64_t blocked_ns;
  uint64_t frames_spilled;
  uint64_t bytes_spilled;
  uint64_t frames_out_overflow;
  uint64_t bytes_out_overflow;
  uint64_t open_shuffles;
  uint64_t operations;
  uint64_t held_frames;
} faro_worker_metrics;
/* Reads what the worker has counted. Threads: any. */
faro_code faro_worker_read_metrics(const faro_worker* worker, faro_worker_metrics* metrics);

/* --- Shuffle, as faro/shuffle.h
 *
 * Threads: those of its worker. A shuffle is valid until it is destroyed, also when its session is
 * closed or destroyed before. */

/* The shuffle as it was opened, with all senders and receivers named, also if the spec names none.
 * The lists are valid until the handle is destroyed. */
typedef struct faro_shuffle_info {
  uint32_t size;
  uint32_t version;
  uint32_t sender_count;
  uint32_t receiver_count;
  uint32_t own_receiver;     /* number among the receivers; receiver_count if this worker is none */
  uint32_t is_sender;        /* 1: this worker is a sender, else 0 */
  const uint32_t* senders;   /* their worker numbers. Sender i is senders[i] */
  const uint32_t* receivers; /* their worker numbers. Receiver i is receivers[i] */
} faro_shuffle_info;
faro_code faro_shuffle_describe(const faro_shuffle* shuffle, faro_shuffle_info* info);
/* Answers why the last call of this shuffle that failed did, of either side; else why the query has
 * failed; FARO_CODE_OK if neither did. No call clears it: the next one that fails replaces it. */
faro_code faro_shuffle_status(const faro_shuffle* shuffle);
/* Fails the query on every participant with query_cancelled and this reason, at once. */
faro_code faro_shuffle_cancel(faro_shuffle* shuffle, const char* reason);
/* Tells what the shuffle has counted until now, once before this call returns; also after
 * faro_shuffle_close, until the handle is destroyed. Threads: any. */
faro_code faro_shuffle_read_metrics(const faro_shuffle* shuffle, faro_tell_shuffle tell,
                                    void* context);
/* Closes the shuffle; faro::Shuffle says what that means to its query. A batch of it stays valid.
 * What else is asked of the shuffle fails with closed. Repeatable. Threads: any, for instance a
 * collector's, while no other call of the worker is under way; the worker stays its owner's. */
faro_code faro_shuffle_close(faro_shuffle* shuffle);
/* Closes the shuffle, and destroys the handle. */
void faro_shuffle_destroy(faro_shuffle* shuffle);

/* --- Its sending side, as faro/sender.h
 *
 * Receivers are numbered 0 … receiver_count-1 as in the spec. A row is copied before the call
 * returns. Except after done, the row was not sent. Answers: done, would_wait, holding, stopped,
 * deadline, failed. Where this worker is no sender: wrong_state. */

/* Sends one row to one receiver. */
faro_outcome faro_sender_send(faro_shuffle* shuffle, uint32_t receiver, const void* row,
                              size_t bytes, int64_t wait_ns);
/* Sends one row to several receivers, each named once: to all of them, or to none. */
faro_outcome faro_sender_multicast(faro_shuffle* shuffle, const uint32_t* receivers,
                                   size_t receiver_count, const void* row, size_t bytes,
                                   int64_t wait_ns);
/* Sends one row to all receivers, or to none. */
faro_outcome faro_sender_broadcast(faro_shuffle* shuffle, const void* row, size_t bytes,
                                   int64_t wait_ns);
/* A part of a row: `bytes` bytes at `address`, which may be null where there are none. Laid out as
 * iovec. */
typedef struct faro_piece {
  const void* address;
  size_t bytes;
} faro_piece;
/* Sends one row that lies in several pieces, one behind the other, to one receiver or to several,
 * as faro_sender_multicast does. Errors: invalid_argument for more than 65 536 pieces, and for one
 * that has bytes, but no address; row_too_large. Then nothing was sent. */
faro_outcome faro_sender_send_parts(faro_shuffle* shuffle, const uint32_t* receivers,
                                    size_t receiver_count, const faro_piece* pieces,
                                    size_t piece_count, int64_t wait_ns);

/* How rows are hashed: faro::FinalizerHash, faro::MultiplicativeHash. */
enum faro_hashes { FARO_HASH_FINALIZER = 0, FARO_HASH_MULTIPLICATIVE = 1 };
/* Sends rows of the shuffle's fixed width, one behind the other in `rows_bytes` bytes, each to the
 * receiver that its key belongs to: its `key_bytes` bytes from `key_offset` on. Keys of 4 and 8
 * bytes are integers, little-endian, of which faro_partition says where they belong; others are
 * hashed by faro_hash_bytes. It begins with row number `first`, and sets `sent` to the number of
 * the first row that it has not sent, `row_count` after done: go on from there.
 * Errors: invalid_argument if they do not lie within these bytes, or the key not within the row, or
 * rows have a length each: then none was sent. */
faro_outcome faro_sender_send_all(faro_shuffle* shuffle, const void* rows, size_t rows_bytes,
                                  size_t first, size_t row_count, uint32_t key_offset,
                                  uint32_t key_bytes, int32_t hash, int64_t wait_ns, size_t* sent);
/* Sends rows of the shuffle's fixed width, one behind the other in `rows_bytes` bytes: row i to
 * receivers[i]. `sent` as for faro_sender_send_all. Each receiver is read once.
 * Errors: invalid_argument, after the rows before, for a receiver that does not exist; if the rows
 * do not lie within these bytes or have a length each: then none was sent. */
faro_outcome faro_sender_send_rows(faro_shuffle* shuffle, const void* rows, size_t rows_bytes,
                                   size_t first, size_t row_count, const uint32_t* receivers,
                                   int64_t wait_ns, size_t* sent);
/* Sends rows with a length each: row i, from offsets[i] up to offsets[i + 1] within `rows_bytes`
 * bytes of `rows`, to receivers[i]. There are row_count + 1 offsets, of `offset_bytes` bytes each:
 * 4 or 8. Each offset and receiver is read once. `sent` as for faro_sender_send_all.
 * Errors, after the rows before: invalid_argument for a receiver that does not exist, offsets that
 * fall or lie outside; row_too_large. invalid_argument if rows have a fixed width: then none was
 * sent. */
faro_outcome faro_sender_send_rows_at(faro_shuffle* shuffle, const void* rows, size_t rows_bytes,
                                      const void* offsets, uint32_t offset_bytes, size_t first,
                                      size_t row_count, const uint32_t* receivers, int64_t wait_ns,
                                      size_t* sent);
/* Sets receivers[i] to where keys[i] belongs, of `receiver_count` receivers. It is equal on every
 * platform and in every language. Threads: any. Blocks: never. */
faro_code faro_partition(int32_t hash, const uint64_t* keys, size_t count, uint32_t receiver_count,
                         uint32_t* receivers);
/* The hash of a byte string, XXH3 of 64 bits, for keys that are not integers; 0 if `data` is null.
 * Threads: any. */
uint64_t faro_hash_bytes(const void* data, size_t bytes);

/* Space for one row of up to `bytes` bytes, written in place. */
typedef struct faro_claim {
  uint32_t size;
  uint32_t version;
  void* data;     /* valid until commit, abort or another call of the worker */
  uint64_t bytes; /* as asked for */
} faro_claim;
/* Claims space for a row of up to `bytes` bytes. A worker has one claim at a time; this ends the
 * shuffle's claim of before. Until the claim ends send nothing else with this worker: another claim
 * fails with wrong_state, and so does what goes the same way as a claimed row that fits into a
 * frame; all other rows may overtake the claimed one. */
faro_outcome faro_sender_claim(faro_shuffle* shuffle, uint32_t receiver, size_t bytes,
                               int64_t wait_ns, faro_claim* claim);
/* Sends the first `bytes` bytes of the claimed row. Blocks: never. Errors: as
 * faro::RowClaim::commit; SIZE_MAX does not stand for all of them: it is more than was claimed. */
faro_code faro_sender_commit(faro_shuffle* shuffle, size_t bytes);
/* Ends the claim: the claimed row never existed. Nothing happens if there is no claim. */
faro_code faro_sender_abort(faro_shuffle* shuffle);

/* Starts the transfer of everything this worker has sent so far. Blocks: never. */
faro_outcome faro_sender_flush(faro_shuffle* shuffle);
/* Says that there are no more rows. It is to be repeated until it answers done: closing the shuffle
 * before that cancels the query. */
faro_outcome faro_sender_finish(faro_shuffle* shuffle, int64_t wait_ns);
/* Says what the rows are that this worker sends, if the spec did not say it. It is called before
 * the first row. Errors: invalid_argument if something else was said before. */
faro_code faro_sender_name_format(faro_shuffle* shuffle, const char* format);

/* --- Sending without a call per row
 *
 * An open frame is where the next rows for one receiver are written. A binding writes them there
 * itself:
 *
 *   row_bytes != 0   if (end - at >= row_bytes): copy the row to `at`, then add row_bytes to `at`
 *   row_bytes == 0   if (end - at >= 4 + length): a uint32_t, the length, in the processor's byte
 *                    order, at `at`, then the row; add 4 + length to `at`, and 1 to the row count
 *
 * If there is no room (at == end also where no frame is open), faro_sender_send sends the row and
 * opens the next frame; or faro_sender_make_room makes room, and the binding writes the row. Every
 * call of the worker may move cursors; only the worker's thread reads and writes them. The arrays
 * stay where they are until the shuffle is closed. */

/* Where the next row for one receiver goes. It has 16 bytes, without `size`: faro_open_frames tells
 * the distance. */
typedef struct faro_cursor {
  uint8_t* at;
  uint8_t* end;
} faro_cursor;

typedef struct faro_open_frames {
  uint32_t size;
  uint32_t version;
  faro_cursor* cursors;    /* by receiver, which is a group if the spec has groups */
  uint32_t* row_counts;    /* by receiver: rows with a length each in the open frame */
  uint32_t receiver_count; /* how many cursors there are */
  uint32_t row_bytes;
  uint32_t cursor_bytes; /* from one cursor to the next */
  uint32_t reserved;
} faro_open_frames;
faro_code faro_sender_open_frames(faro_shuffle* shuffle, faro_open_frames* frames);
/* Makes room for a row of up to `bytes` bytes at the cursor of its receiver, and opens a frame if
 * none has room. done: claim->data is null, and the row is written at the cursor; or the row goes
 * into no frame, because it is larger or its receiver has stopped: then it is claimed as by
 * faro_sender_claim, and faro_sender_commit follows. This ends the shuffle's claim of before.
 * Waits and fails as faro_sender_claim. */
faro_outcome faro_sender_make_room(faro_shuffle* shuffle, uint32_t receiver, size_t bytes,
                                   int64_t wait_ns, faro_claim* claim);

/* --- Its receiving side, as faro/receiver.h and faro/batch.h */

typedef struct faro_batch faro_batch;

/* The rows that a batch holds, where they lie. row_bytes is the width of each. With row_bytes 0
 * each row is a uint32_t, its length, in the processor's byte order and without alignment, and then
 * its bytes. A row that is too large for a frame comes alone, with its own width as row_bytes. A
 * peer on the same machine could change the bytes while they are read: load a length once, and
 * compare it with what is left. */
typedef struct faro_rows {
  uint32_t size;
  uint32_t version;
  const void* address; /* of the first row; valid until release, detach or destruction */
  uint64_t bytes;      /* of all rows, with their lengths */
  uint32_t row_count;
  uint32_t row_bytes;
  uint32_t sender; /* that sent them: index in the senders of the spec */
  uint32_t reserved;
} faro_rows;

/* An empty batch, to receive into again and again. Null if there is no memory. Threads: any. */
faro_batch* faro_batch_create(void);
/* Releases the batch, and destroys the handle. Threads: those of the worker, unless the batch is
 * empty. */
void faro_batch_destroy(faro_batch* batch);
/* Describes what the batch holds: no rows if it is empty. */
faro_code faro_batch_describe(const faro_batch* batch, faro_rows* rows);
/* Gives the memory back; the batch is empty then. Repeatable. */
faro_code faro_batch_release(faro_batch* batch);
/* Sets offsets[i] to where row i begins in the batch, its length included, and offsets[row_count]
 * to where the last one ends, as faro::Batch::offsets; lengths are checked meanwhile. `count`: how
 * many offsets there is room for. `rows`: of how many rows there are offsets now. */
faro_code faro_batch_offsets(const faro_batch* batch, uint32_t* offsets, size_t count,
                             uint32_t* rows);
/* Copies the rows to overflow, so that the ring can move on while they are kept: describe it again.
 * Errors: limit_exceeded; the batch then stays as it is. */
faro_code faro_batch_detach(faro_batch* batch);

/* Takes the next rows of any sender into `batch`, after releasing what it held. `rows`: null, or
 * where they are described after done. Answers done, end_of_stream, would_wait, holding, deadline,
 * failed. Where this worker is no receiver: wrong_state. */
faro_outcome faro_receiver_receive(faro_shuffle* shuffle, faro_batch* batch, int64_t wait_ns,
                                   faro_rows* rows);
/* Takes the next rows of one sender, an index in the senders of the spec, into `batch`, after
 * releasing what it held. It answers as faro_receiver_receive does, but end_of_stream when that
 * sender has finished, and failed with delivery to nodes: any worker of the node takes the rows of
 * a sender then. */
faro_outcome faro_receiver_receive_from(faro_shuffle* shuffle, uint32_t sender, faro_batch* batch,
                                        int64_t wait_ns, faro_rows* rows);
/* Gives memory for `bytes` bytes, at a multiple of 64, or null; `room`: how many there are. It does
 * nothing with this worker. */
typedef void* (*faro_allocate)(void* context, size_t bytes, size_t* room);
/* Receives as faro_receiver_receive does, but a row that is larger than a frame is put together in
 * memory of the caller's, as faro::ShuffleReceiver::receive_into says. Errors: invalid_argument if
 * `allocate` gives null, too little or no aligned memory: the row stays to be received. */
faro_outcome faro_receiver_receive_into(faro_shuffle* shuffle, faro_batch* batch,
                                        faro_allocate allocate, void* context, int64_t wait_ns,
                                        faro_rows* rows);
/* Says that this receiver needs no more rows; faro::ShuffleReceiver::stop says what follows.
 * Answers done or failed. Blocks: never. */
faro_outcome faro_receiver_stop(faro_shuffle* shuffle);
/* Says what rows this worker expects, if the spec did not say it. It is called before the first
 * receive. Errors: invalid_argument if something else was said before. */
faro_code faro_receiver_name_format(faro_shuffle* shuffle, const char* format);

/* --- Both sides together, as faro/exchange.h */

/* Sends rows of a shuffle, some hundred at a time, with FARO_WAIT_NONE: between two calls the
 * worker takes what others have sent to it. Answers done: call it again; would_wait or holding: a
 * row found no room, or there is nothing to send yet; end_of_stream or stopped: there are no more
 * rows; failed: the query fails on every participant, for why the sender has failed last. */
typedef faro_outcome (*faro_produce)(void* context, faro_shuffle* shuffle);
/* Takes rows that have come; `batch`, which `rows` describes, is released when it returns. Another
 * code than FARO_CODE_OK fails the query on every participant, with the message of
 * faro_last_error. */
typedef faro_code (*faro_consume)(void* context, faro_batch* batch, const faro_rows* rows);
/* What faro_worker_exchange does with one shuffle: faro::ExchangePart. */
typedef struct faro_exchange_part {
  uint32_t size;
  uint32_t version;
  faro_shuffle* shuffle;
  faro_produce produce; /* null: this worker is no sender, or has finished */
  faro_consume consume; /* null: this worker is no receiver, or has received all */
  void* context;        /* of both */
  int32_t ended;        /* is set to 1 when all rows were consumed */
  int32_t reserved;
} faro_exchange_part;
/* Sends and receives the rows of shuffles at the same time, until all are sent, finished and
 * received: the loop of a worker that is a sender and a receiver, as faro::Worker::exchange. Its
 * functions are called on this thread, and must not wait, nor call this. Answers end_of_stream: all
 * is done; deadline, would_wait (with FARO_WAIT_NONE, which makes one turn), holding: the same call
 * goes on; done: a turn has done something; failed. */
faro_outcome faro_worker_exchange(faro_worker* worker, faro_exchange_part* const* parts,
                                  size_t count, int64_t wait_ns);
/* Waits as faro_worker_wait_until does, with a condition that takes the rows of these shuffles each
 * time it is called, as a turn of exchange does: for bindings that have a loop of their own. So
 * these rows are not copied to overflow meanwhile: those that the condition leaves in the rings
 * keep their senders waiting. Errors: closed; invalid_argument for a shuffle of another worker. */
faro_outcome faro_worker_wait_taking(faro_worker* worker, faro_shuffle* const* shuffles,
                                     size_t count, faro_condition condition, void* context,
                                     int64_t wait_ns);

/* --- The memory of a worker's rings
 *
 * For bindings that may read and write memory only through an object that stands for it, and want
 * to make few of these. Rows that are sent in place and batches lie in a ring, or elsewhere if they
 * were spilled or are larger than a frame. */

/* One ring of a worker. It has 32 bytes, without `size`: faro_rings tells the distance. */
typedef struct faro_ring {
  void* base;
  uint64_t bytes;       /* 0: the peer is not there */
  uint32_t peer;        /* number of the worker at the other end */
  uint32_t is_outgoing; /* 1: this worker sends by it; 0: it receives, and must not write */
  uint64_t reserved;
} faro_ring;

typedef struct faro_rings {
  uint32_t size;
  uint32_t version;
  const faro_ring* rings; /* valid until the worker's next faro_worker_rings */
  uint32_t ring_count;
  uint32_t ring_bytes; /* from one faro_ring to the next */
  /* Changes when rings are mapped anew, after a node was lost and has returned: ask again then. To
   * be read by the worker's thread, after its calls; valid as long as the worker. Old rings are
   * gone once it has changed; no batch and no claim is in them. */
  const uint64_t* generation;
} faro_rings;
/* Describes the worker's rings. Threads: those of the worker. */
faro_code faro_worker_rings(faro_worker* worker, faro_rings* rings);

/* --- Aggregation of rows of a schema, as faro::SchemaAggregation (faro/aggregate.h)
 *
 * Threads: those of its worker. Destroy it before its query is ended and its session destroyed. */

typedef struct faro_aggregation faro_aggregation;

/* What faro::ColumnType says. */
enum faro_column_types {
  FARO_COLUMN_BOOLEAN = 0,
  FARO_COLUMN_INT8 = 1,
  FARO_COLUMN_INT16 = 2,
  FARO_COLUMN_INT32 = 3,
  FARO_COLUMN_INT64 = 4,
  FARO_COLUMN_FLOAT32 = 5,
  FARO_COLUMN_FLOAT64 = 6,
  FARO_COLUMN_DECIMAL_18 = 7, /* the unscaled value in 8 bytes */
  FARO_COLUMN_DECIMAL_38 = 8, /* the unscaled value in 16 bytes */
  FARO_COLUMN_STRING = 9,
  FARO_COLUMN_BYTES = 10
};
/* A column of a schema. Rows of it lie as faro::Schema says (faro/columns.h). */
typedef struct faro_column {
  int32_t type;       /* FARO_COLUMN_... */
  int32_t nullable;   /* 1: it may hold null instead, else 0 */
  uint32_t scale;     /* of decimals: digits after the decimal point */
  uint32_t precision; /* of decimals: most digits; 0: as many as the type has */
} faro_column;

/* What faro::AggregateFunction says. */
enum faro_functions {
  FARO_FUNCTION_COUNT_ROWS = 0,
  FARO_FUNCTION_COUNT = 1, /* rows in which the column is not null */
  FARO_FUNCTION_SUM = 2,
  FARO_FUNCTION_MIN = 3,
  FARO_FUNCTION_MAX = 4,
  FARO_FUNCTION_ANY = 5
};
/* A function of a group's rows. */
typedef struct faro_aggregate {
  int32_t function;   /* FARO_FUNCTION_... */
  uint32_t column;    /* of the rows; of no use to FARO_FUNCTION_COUNT_ROWS */
  int32_t has_result; /* 1: `result` is the column that it becomes; 0: the usual one */
  int32_t reserved;
  faro_column result;
} faro_aggregate;

/* What to group; every worker that takes part makes the same, in any order, at any time. */
typedef struct faro_aggregation_spec {
  uint32_t size;
  uint32_t version;
  faro_query_id query;
  const uint32_t* senders;   /* as of faro_shuffle_spec */
  const uint32_t* receivers; /* as well */
  const faro_column* columns;
  const uint32_t* keys; /* columns, by their number; none: all rows are one group */
  const faro_aggregate* aggregates;
  uint32_t stage; /* it takes this one, as a shuffle does */
  uint32_t sender_count;
  uint32_t receiver_count;
  uint32_t column_count;
  uint32_t key_count;
  uint32_t aggregate_count;
} faro_aggregation_spec;
/* Makes an aggregation. Blocks: never. Errors: as faro::SchemaAggregation::make. */
faro_code faro_worker_make_aggregation(faro_worker* worker, const faro_aggregation_spec* spec,
                                       faro_aggregation** aggregation);

/* The columns of groups: the keys, then the functions. Valid until the handle is destroyed. */
typedef struct faro_aggregation_info {
  uint32_t size;
  uint32_t version;
  const faro_column* columns;
  uint32_t column_count;
  uint32_t row_bytes; /* width of every group; 0: each has its length of 4 bytes in front */
} faro_aggregation_info;
faro_code faro_aggregation_describe(const faro_aggregation* aggregation,
                                    faro_aggregation_info* info);

/* What was added: the first rows, and where they end. */
typedef struct faro_added {
  uint32_t size;
  uint32_t version;
  uint64_t rows;
  uint64_t bytes;
} faro_added;
/* Adds rows, which lie one behind the other: of the width of the schema, or each with its length of
 * 4 bytes in front, as in a batch. `added` is set after every outcome. Answers done, would_wait,
 * holding, stopped, deadline, failed. */
faro_outcome faro_aggregation_add(faro_aggregation* aggregation, const void* rows, size_t bytes,
                                  int64_t wait_ns, faro_added* added);
/* This worker adds no more rows. Repeat it until it is done. */
faro_outcome faro_aggregation_finish(faro_aggregation* aggregation, int64_t wait_ns);
/* The next groups, which lie as rows that are added do, of the columns that
 * faro_aggregation_describe tells; valid until the next call. Of `groups`, `sender` means nothing.
 * Answers done, end_of_stream (there are no more, or none for this worker), would_wait, holding,
 * deadline, failed. */
faro_outcome faro_aggregation_next(faro_aggregation* aggregation, int64_t wait_ns,
                                   faro_rows* groups);
/* This worker needs no more groups. */
faro_outcome faro_aggregation_stop(faro_aggregation* aggregation);
/* Answers why the last call of this aggregation that failed did; FARO_CODE_OK if none did. */
faro_code faro_aggregation_status(const faro_aggregation* aggregation);

/* What faro::AggregationMetrics says. */
typedef struct faro_aggregation_metrics {
  uint32_t size;
  uint32_t version;
  uint64_t rows;
  uint64_t rows_passed;
  uint64_t states_sent;
  uint64_t states_received;
  uint64_t groups;
  uint64_t table_states;
  uint64_t most_table_states;
  uint64_t partitions_split;
  uint64_t spilled_bytes;
  uint64_t peak_bytes;
} faro_aggregation_metrics;
faro_code faro_aggregation_read_metrics(const faro_aggregation* aggregation,
                                        faro_aggregation_metrics* metrics);
/* Destroys the handle. Before all groups were handed out, and without faro_aggregation_stop, the
 * query fails. */
void faro_aggregation_destroy(faro_aggregation* aggregation);

/* --- Endpoint: channels of frames between two peers, as faro/endpoint.h
 *
 * For engines with a flow control, a failure model and a scheduler of their own: no cluster, no
 * queries, no workers.
 *
 *   faro_endpoint_spec spec = {.size = sizeof spec, .name = "tm-1"};
 *   faro_endpoint* endpoint = NULL;
 *   faro_poller* poller = NULL;
 *   faro_channel_event events[64];
 *   size_t count = 0;
 *   faro_endpoint_open(config, &spec, &endpoint);       // listens
 *   faro_endpoint_poller(endpoint, 0, &poller);         // one thread's
 *   while (faro_poller_wait(poller, FARO_WAIT_FOREVER, FARO_WAKE_FOR_FRAMES_AND_ROOM) ==
 *              FARO_OUTCOME_DONE &&
 *          faro_poller_poll(poller, events, 64, &count) == FARO_CODE_OK) …
 */

typedef struct faro_endpoint faro_endpoint;
typedef struct faro_poller faro_poller;
typedef struct faro_ring_memory faro_ring_memory;

/* Names a channel. It is a plain value of 8 bytes, without `size`. An endpoint never gives one
 * twice; the index is below faro_endpoint_spec.channel_limit, and is given again with another
 * generation, which is not 0. */
typedef struct faro_channel_id {
  uint32_t index;
  uint32_t generation;
} faro_channel_id;

/* A peer that asks for a channel. The library fills it; it is valid during the call. */
typedef struct faro_channel_request {
  uint32_t size;
  uint32_t version;
  const char* peer;     /* its faro_endpoint_spec.name; never null */
  const char* address;  /* where it connects from; never null */
  const void* greeting; /* may be null if there is none */
  uint64_t greeting_bytes;
  uint32_t send_bytes;    /* of the ring towards the peer, as it asks */
  uint32_t receive_bytes; /* of the ring from the peer, as it asks */
} faro_channel_request;

/* The answer. The library has set all to zero: poller 0 accepts, with the rings as asked, or less
 * by channel.expected. */
typedef struct faro_channel_acceptance {
  uint32_t size;
  uint32_t version;
  uint32_t poller; /* that serves the channel */
  /* The bytes of the ring towards the peer, never more than the peer asks for. 0: as many as it
   * asks for, or less, as faro::ChannelAcceptance says. */
  uint32_t send_bytes;
  uint32_t receive_bytes;    /* of the ring from the peer; chosen as send_bytes is */
  uint32_t ends_when_broken; /* see faro_channel_spec.ends_when_broken */
  /* Not null: there is no channel, for this reason, which the peer is told. The text is copied as
   * soon as the callback has returned: it must not lie in the frame of that call. */
  const char* refusal;
} faro_channel_acceptance;

/* Answers a peer that asks for a channel. It must neither block nor call the endpoint or its
 * pollers, except faro_poller_wake. Threads: the network thread. */
typedef void (*faro_accept)(void* context, const faro_channel_request* request,
                            faro_channel_acceptance* acceptance);

typedef struct faro_endpoint_spec {
  uint32_t size;
  uint32_t version;
  const char* name;       /* told to peers; at most 255 bytes; null: none */
  uint32_t poller_count;  /* at most 64; 0: 1 */
  uint32_t channel_limit; /* channels that exist at a time, at most 65536; 0: 1024 */
  faro_accept accept; /* asked for every channel that a peer wants; null: poller 0 accepts all */
  void* context;      /* of accept; used until the endpoint is destroyed */
  /* What a connection gets that does not begin as Faro's do; faro::EndpointSpec::answer_to_others
   * says what it is for. Null: nothing. */
  const void* answer_to_others;
  uint64_t answer_to_others_bytes;
} faro_endpoint_spec;

/* Listens at cluster.listen (127.0.0.1:0 unless set). The other settings are those of
 * faro::Endpoint. `spec`: null for the defaults. Threads: any, as for all calls with an endpoint.
 * Blocks: never for long. Owns: the caller owns the endpoint.
 * Errors: as faro::Endpoint::open. */
faro_code faro_endpoint_open(const faro_config* config, const faro_endpoint_spec* spec,
                             faro_endpoint** endpoint);
/* Writes to memory_bytes[i] what the i-th of `count` channels would take of memory.limit_bytes on
 * this side, with rings of send_bytes[i] towards the peer and receive_bytes[i] from it.
 * faro::Endpoint::channel_memory says what it consists of. Threads: any. Blocks: for opening RDMA
 * devices. Errors: as faro::Endpoint::channel_memory; nothing is written then. */
faro_code faro_endpoint_channel_memory(const faro_config* config, const uint32_t* send_bytes,
                                       const uint32_t* receive_bytes, uint64_t count,
                                       uint64_t* memory_bytes);
/* Where peers connect: host:port, with the port that the system chose. Valid as long as the
 * endpoint; null if that is. */
const char* faro_endpoint_address(const faro_endpoint* endpoint);
/* The number of the endpoint's pollers; 0 if `endpoint` is null. */
uint32_t faro_endpoint_poller_count(const faro_endpoint* endpoint);
/* The i-th poller, which the endpoint owns. Errors: invalid_argument (there is none). */
faro_code faro_endpoint_poller(faro_endpoint* endpoint, uint32_t index, faro_poller** poller);
/* What an endpoint has counted, always on; faro/endpoint_metrics.h says what each one counts. */
typedef struct faro_endpoint_metrics {
  uint32_t size;
  uint32_t version;
  uint64_t channels_opened;
  uint64_t channels_closed;
  uint64_t channels_lost;
  uint64_t channels_refused;
  uint64_t memory_bytes;
  uint64_t memory_limit_bytes;
  uint64_t polls; /* of all pollers, as the next three */
  uint64_t events;
  uint64_t waits;
  uint64_t sleeps;
  faro_ring_traffic all; /* of all channels, those that are no more included, as the next one */
  uint64_t mended;
} faro_endpoint_metrics;
/* A channel that is open, or is being drained. */
typedef struct faro_channel_metrics {
  uint32_t size;
  uint32_t version;
  faro_channel_id channel;
  uint32_t poller; /* the number of the one that serves it */
  uint32_t reserved;
  const char* peer;      /* its faro_endpoint_spec.name; never null */
  const char* address;   /* where it listens, or connects from */
  const char* transport; /* "shm", "tcp", "verbs" */
  faro_ring_traffic traffic;
  uint64_t mended;
} faro_channel_metrics;
/* It is told the metrics of one channel, which are valid until it returns. */
typedef void (*faro_tell_channel)(void* context, const faro_channel_metrics* metrics);
/* Reads what the endpoint has counted, and tells, before this call returns, what each of its open
 * channels has counted. `tell`: null to hear nothing of channels. Errors: resource_limit
 * (memory). */
faro_code faro_endpoint_read_metrics(const faro_endpoint* endpoint, faro_endpoint_metrics* metrics,
                                     faro_tell_channel tell, void* context);

/* Closes all channels at once, tells the peers, and stops the network thread; every wait ends.
 * Drain channels first to lose nothing. The handles, frames that were not released and rings stay
 * valid; what they are asked for fails with closed. Repeatable. Blocks: at most
 * close.timeout_ms. */
faro_code faro_endpoint_close(faro_endpoint* endpoint);
/* Closes the endpoint, and destroys the handle with its pollers, and the memory of all channels.
 * Destroy all its faro_ring_memory before. No call of the endpoint or of a poller may be under
 * way. */
void faro_endpoint_destroy(faro_endpoint* endpoint);

/* --- Poller: serves channels on one thread
 *
 * Threads: one at a time, except where said; while it waits in faro_poller_wait another one may
 * send by way of faro_poller_try_enter. Blocks: faro_poller_wait only. Valid as long as its
 * endpoint's handle. A channel that does not exist any more is refused with closed, everywhere. */

/* What the dialling side asks for. Rings are powers of two, 4 KiB … 256 MiB; 0: the endpoint
 * chooses 256 KiB, or less if with these channel.expected channels did not fit memory.limit_bytes.
 * The accepting side may make them smaller. */
typedef struct faro_channel_spec {
  uint32_t size;
  uint32_t version;
  uint32_t send_bytes;     /* of the ring towards the peer */
  uint32_t receive_bytes;  /* of the ring from the peer */
  const void* greeting;    /* what the accepting side sees before it accepts; copied */
  uint64_t greeting_bytes; /* at most 4096 */
  /* 0: if its connection breaks while both processes live, the channel gets another one within
   * link.mend_ms, and notices nothing but time. 1: it ends at once, with peer_lost, as it does if
   * either side says so. */
  uint32_t ends_when_broken;
  uint32_t reserved;
} faro_channel_spec;

/* Asks the endpoint at `address` (host:port) for a channel, which this poller serves. `spec`: null
 * for the defaults. An event tells how that ended, opened or closed, within connect.timeout_ms.
 * Errors: as faro::Poller::connect. */
faro_code faro_poller_connect(faro_poller* poller, const char* address,
                              const faro_channel_spec* spec, faro_channel_id* channel);

/* What an event tells, as faro::ChannelEvent::Kind says. */
enum faro_channel_event_kinds {
  FARO_CHANNEL_OPENED = 0, /* there are rings: claim and frames from now on */
  /* The peer has sent `data`, which stays in place until faro_poller_release. */
  FARO_CHANNEL_FRAME = 1,
  FARO_CHANNEL_ROOM = 2,  /* a claim that found none may find it now */
  FARO_CHANNEL_CLOSED = 3 /* the last event of a channel; faro_poller_status says why */
};

/* One event of a channel. It has 32 bytes, without `size`: it never grows. */
typedef struct faro_channel_event {
  faro_channel_id channel;
  uint32_t kind;
  uint32_t token;   /* of a frame, for faro_poller_release */
  const void* data; /* of a frame, in the ring from the peer: see faro_poller_rings */
  uint64_t bytes;   /* of a frame; may be 0 */
} faro_channel_event;

/* Writes the next events to the first `count` of `events`, which has room for `limit`. For each
 * channel they come in order: opened, frames and room, closed. The peer could change the bytes of a
 * frame while they are read. */
faro_code faro_poller_poll(faro_poller* poller, faro_channel_event* events, size_t limit,
                           size_t* count);
/* Gives the space of a frame back, in any order. A frame that was released before, or a channel
 * that is gone, is no error. */
faro_code faro_poller_release(faro_poller* poller, faro_channel_id channel, uint32_t token);

/* The space of a claim. It has 16 bytes, without `size`: it never grows. */
typedef struct faro_channel_claim {
  /* In the ring towards the peer; valid until commit, or the next claim of the channel. */
  void* data;
  uint64_t bytes;
} faro_channel_claim;

/* Gives space for a frame of at least `least` and up to `most` bytes, in the memory that it is sent
 * from. Without a commit the next claim gives the same space again. Answers done; would_wait: there
 * is none, and a `room` event will come, or, of a channel that has not opened yet, `opened`;
 * failed: invalid_argument (`least` is above faro_channel_info.least_frame_bytes), or why the
 * channel is not open. After would_wait and after failed `claim->data` is null. */
faro_outcome faro_poller_claim(faro_poller* poller, faro_channel_id channel, size_t least,
                               size_t most, faro_channel_claim* claim);
/* Whether the peer's poller is woken for a frame, as faro::Notice says. */
enum faro_notices {
  FARO_NOTICE_LOUD = 0, /* the peer's poller is woken for the frame, if it sleeps */
  FARO_NOTICE_QUIET = 1 /* it is not: the peer can do without it for now */
};
/* The claimed space now holds a frame of that many bytes, 0 … the claim's. It travels with the
 * next faro_poller_post. faro::Poller::commit says when a quiet frame is seen.
 * Errors: invalid_argument (more than was claimed, or no such notice; the claim stays), wrong_state
 * (nothing was claimed), or why the channel is not open. */
faro_code faro_poller_commit(faro_poller* poller, faro_channel_id channel, size_t bytes,
                             int32_t notice);
/* Starts the transfer of all frames committed. faro_poller_wait and faro_poller_arm do so, too. */
faro_code faro_poller_post(faro_poller* poller);
/* One call in place of three, for a frame behind which another one is to be written at once: does
 * what faro_poller_commit(poller, channel, bytes, notice), faro_poller_post(poller) and
 * faro_poller_claim(poller, channel, least, most, claim) do, up to the first that fails. `claim` is
 * that of the frame that is committed, and then that of the next one. Answers as the claim; failed
 * also as the commit. After that `claim->data` is null if the frame was committed, and the next
 * claim has failed; else the commit was refused, and the claim stays. Where nothing was claimed
 * (wrong_state) nothing was committed, and `claim` is left as it is. */
faro_outcome faro_poller_commit_and_claim(faro_poller* poller, faro_channel_id channel,
                                          size_t bytes, int32_t notice, size_t least, size_t most,
                                          faro_channel_claim* claim);

/* What ends a wait, beside a channel that opens or has ended, and faro_poller_wake, as
 * faro::WakeFor says. */
enum faro_wake_reasons {
  FARO_WAKE_FOR_NOTHING = 0,
  /* Frames, and the end of a channel that either side drains, which comes behind the last frame:
   * wait for these until it has closed. */
  FARO_WAKE_FOR_FRAMES = 1,
  FARO_WAKE_FOR_ROOM = 2,
  FARO_WAKE_FOR_FRAMES_AND_ROOM = 3
};
/* Waits until faro_poller_poll has something to tell of what `wake_for` names, or for
 * faro_poller_wake. What is not waited for is not lost: faro_poller_poll tells it, and the next
 * wait for it ends at once. Answers done, would_wait, deadline, or failed: closed (the endpoint,
 * and everything was told), invalid_argument. */
faro_outcome faro_poller_wait(faro_poller* poller, int64_t wait_ns, int32_t wake_for);
/* Ends a wait, or else the next one; makes an armed poller's descriptor readable. Threads: any.
 * Blocks: never. */
faro_code faro_poller_wake(faro_poller* poller);

/* For engines with an event loop, as faro::Poller::descriptor and arm say: a descriptor for epoll
 * or poll that is readable when the poller should look again. It is the endpoint's: nobody else
 * closes it or reads it. Errors: system_error, closed. */
faro_code faro_poller_descriptor(faro_poller* poller, int32_t* descriptor);
/* Looks for what faro_poller_wait waits for, and arms the poller if there is nothing to tell.
 * Answers done: faro_poller_poll has something to tell, and the poller is not armed; would_wait: it
 * is armed, and the descriptor becomes readable once; failed: closed, wrong_state
 * (faro_poller_descriptor was not called), invalid_argument. Blocks: never. */
faro_outcome faro_poller_arm(faro_poller* poller, int32_t wake_for);

/* For other threads: takes the place of the poller's own thread while that waits in
 * faro_poller_wait, to claim, commit and post. `entered` is 0 if that thread does not wait now, is
 * looking between two pauses, or another thread is inside: hand the work over, and wake the poller.
 * It is 1 if the calling thread has entered: faro_poller_leave has to follow soon, since the
 * poller's thread cannot go on before. That thread goes on waiting for the reasons that it has
 * named: if there are others now, call faro_poller_wake. Threads: any. Blocks: never. */
faro_code faro_poller_try_enter(faro_poller* poller, int32_t* entered);
/* Ends what a faro_poller_try_enter that entered began. Threads: the one that has entered. */
faro_code faro_poller_leave(faro_poller* poller);

/* How a channel ends, as faro::Closing says. */
enum faro_closings {
  /* What both sides have committed arrives first; then both get the `closed` event. */
  FARO_CLOSING_DRAIN = 0,
  FARO_CLOSING_NOW = 1 /* at once; frames that were not taken are lost */
};
/* Ends a channel. `closed` follows, of a drained one within close.timeout_ms. Until then frames
 * still come. A channel that is gone is no error. */
faro_code faro_poller_close(faro_poller* poller, faro_channel_id channel, int32_t closing);
/* Answers why the last claim or commit of a channel was refused, or why the channel is not open;
 * FARO_CODE_OK while it is, or when both sides have drained it. faro::Poller::status lists the
 * codes. */
faro_code faro_poller_status(faro_poller* poller, faro_channel_id channel);

/* What is known of a channel that is open. Texts and greeting are valid until the poller's next
 * faro_poller_describe. */
typedef struct faro_channel_info {
  uint32_t size;
  uint32_t version;
  const char* peer;      /* its name */
  const char* address;   /* where it listens, or connects from */
  const char* transport; /* "shm", "tcp", "verbs" */
  const void* greeting;  /* of the dialling side; may be null if there is none */
  uint64_t greeting_bytes;
  uint32_t send_bytes;    /* of the ring towards the peer */
  uint32_t receive_bytes; /* of the ring from the peer */
  /* A claim of so much always finds room once the peer has released enough. */
  uint32_t least_frame_bytes;
  uint32_t dialled;          /* 1: by this side, else 0 */
  uint32_t ends_when_broken; /* 1: a side wants it so, or the transport cannot mend it; else 0 */
  uint32_t reserved;
} faro_channel_info;
/* Describes a channel, from `opened` on, until the first poll or wait after the batch that had
 * `closed`. Errors: closed. */
faro_code faro_poller_describe(faro_poller* poller, faro_channel_id channel,
                               faro_channel_info* info);

/* Where the frames of a channel lie. For bindings that reach memory only through objects that stand
 * for it, and want to make one for each ring, not for each frame. */
typedef struct faro_channel_rings {
  uint32_t size;
  uint32_t version;
  void* outgoing; /* every claim is a part of it */
  uint64_t outgoing_bytes;
  const void* incoming; /* the data of every frame is a part of it */
  uint64_t incoming_bytes;
  /* Keeps both rings mapped, when the channel has long closed, too, until the caller destroys
   * it. */
  faro_ring_memory* memory;
} faro_channel_rings;
/* Says where the frames of a channel lie. `size` has to reach to the end of `memory`.
 * Errors: closed (the channel has not opened, or has closed and no frame of it is held). */
faro_code faro_poller_rings(faro_poller* poller, faro_channel_id channel,
                            faro_channel_rings* rings);
/* Destroys the handle, which has to happen before the endpoint is destroyed, unless
 * faro_ring_memory_give_back was called. Memory that is kept counts against memory.limit_bytes.
 * Threads: any. */
void faro_ring_memory_destroy(faro_ring_memory* memory);
/* Keeps only the addresses of both rings from now on, until the handle is destroyed, which may then
 * be after the endpoint. The memory is given back as soon as the channel has ended and no frame of
 * it is held; an access at these addresses then raises SIGBUS, and a system call answers EFAULT:
 * what lies there is never somebody else's. Threads: any. */
void faro_ring_memory_give_back(faro_ring_memory* memory);

#ifdef __cplusplus
}
#endif

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
