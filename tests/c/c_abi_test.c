/* Two sessions or endpoints in one process, and what a program in C does with them: c_abi_test <case>, see CMakeLists.txt. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "faro/c.h"

#define CHECK(condition)                                                                          \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      fprintf(stderr, "%s:%d: not so: %s; %s\n", __FILE__, __LINE__, #condition, last_message()); \
      exit(1);                                                                                    \
    }                                                                                             \
  } while (0)
#define OK(call) CHECK((call) == FARO_CODE_OK)
#define DONE(call) CHECK((call) == FARO_OUTCOME_DONE)
/* Refused with this code, which faro_last_error tells, too. */
#define REFUSED(call, expected) CHECK((call) == (expected) && last_error().code == (expected))
#define FAILED(call, expected) \
  CHECK((call) == FARO_OUTCOME_FAILED && last_error().code == (expected))

static faro_error last_error(void) {
  faro_error error = {.size = sizeof error};
  if (faro_last_error(&error) != FARO_CODE_OK) abort();
  return error;
}
static const char* last_message(void) { return last_error().message; }

/* --- two nodes with a worker each */

enum { kNodes = 2 };

/* What an asynchronous call tells. */
struct answer {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int count;
  faro_code code;
  faro_session* session;
};
#define NO_ANSWER \
  { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER }
static void opened(void* context, faro_code code, faro_session* session) {
  struct answer* answer = context;
  pthread_mutex_lock(&answer->mutex);
  ++answer->count;
  answer->code = code;
  answer->session = session;
  pthread_cond_signal(&answer->changed);
  pthread_mutex_unlock(&answer->mutex);
}
static void done(void* context, faro_code code) { opened(context, code, NULL); }
static faro_code await(struct answer* answer) {
  pthread_mutex_lock(&answer->mutex);
  while (answer->count == 0) pthread_cond_wait(&answer->changed, &answer->mutex);
  CHECK(answer->count == 1);
  answer->count = 0;
  const faro_code code = answer->code;
  pthread_mutex_unlock(&answer->mutex);
  return code;
}

enum { kRowMemory = 512 * 1024 };
/* faro_allocate; `context`: where the address is kept. */
static void* give_row_memory(void* context, size_t bytes, size_t* room) {
  CHECK(bytes <= kRowMemory);
  *room = kRowMemory;
  return *(void**)context = aligned_alloc(64, kRowMemory);
}

struct cluster {
  char nodes[256];
  const char* lane_ends;
  faro_session* sessions[kNodes];
  faro_worker* workers[kNodes];
  faro_shuffle* shuffles[kNodes];
  faro_query_id query;
  int held[kNodes]; /* sockets that keep the ports from others while a session is closed */
};

/* Binds a socket that does not listen: with SO_REUSEADDR, as Faro sets it, another one may. */
static int hold_address(char* address, size_t room) {
  const int held = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  struct sockaddr_in bound = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof bound;
  CHECK(setsockopt(held, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0);
  CHECK(bind(held, (struct sockaddr*)&bound, sizeof bound) == 0);
  CHECK(getsockname(held, (struct sockaddr*)&bound, &length) == 0);
  snprintf(address, room, "127.0.0.1:%d", ntohs(bound.sin_port));
  return held;
}

static faro_config* config_of(const struct cluster* cluster, int node) {
  faro_config* config = faro_config_create();
  CHECK(config != NULL);
  OK(faro_config_set(config, "cluster.nodes", cluster->nodes));
  OK(faro_config_set(config, "cluster.node", node == 0 ? "0" : "1"));
  OK(faro_config_set(config, "cluster.workers", "1"));
  OK(faro_config_set(config, "ring.bytes", "64KiB"));
  OK(faro_config_set(config, "lane.ends", cluster->lane_ends));
  return config;
}

static struct cluster open_cluster_by(const char* lane_ends) {
  struct cluster cluster = {.lane_ends = lane_ends};
  faro_listening_socket* listeners[kNodes];
  for (int i = 0; i < kNodes; ++i) {
    char address[32];
    cluster.held[i] = hold_address(address, sizeof address);
    OK(faro_listening_socket_bind(address, &listeners[i]));
    if (i > 0) strcat(cluster.nodes, ",");
    strcat(cluster.nodes, faro_listening_socket_address(listeners[i]));
  }
  struct answer answers[kNodes] = {NO_ANSWER, NO_ANSWER};
  for (int i = 0; i < kNodes; ++i) {
    faro_config* config = config_of(&cluster, i);
    OK(faro_session_open_async(config, listeners[i], NULL, opened, &answers[i]));
    faro_config_destroy(config);
    faro_listening_socket_destroy(listeners[i]);
  }
  for (int i = 0; i < kNodes; ++i) {
    OK(await(&answers[i]));
    cluster.sessions[i] = answers[i].session;
    OK(faro_session_worker(cluster.sessions[i], 0, &cluster.workers[i]));
  }
  OK(faro_session_begin_query(cluster.sessions[0], &cluster.query));
  return cluster;
}
static struct cluster open_cluster(void) { return open_cluster_by("workers"); }

static void close_cluster(struct cluster* cluster) {
  for (int i = 0; i < kNodes; ++i) OK(faro_session_close(cluster->sessions[i]));
  for (int i = 0; i < kNodes; ++i) faro_session_destroy(cluster->sessions[i]);
  for (int i = 0; i < kNodes; ++i) close(cluster->held[i]);
}

static faro_shuffle* open_shuffle(struct cluster* cluster, int node, uint32_t stage,
                                  uint32_t row_bytes) {
  const faro_shuffle_spec spec = {
      .size = sizeof spec, .query = cluster->query, .stage = stage, .row_bytes = row_bytes};
  faro_shuffle* shuffle = NULL;
  OK(faro_worker_open_shuffle(cluster->workers[node], &spec, &shuffle));
  return shuffle;
}

typedef void (*part)(struct cluster*, int node);
struct job {
  struct cluster* cluster;
  int node;
  part part;
};
static void* run_job(void* argument) {
  const struct job* job = argument;
  job->part(job->cluster, job->node);
  OK(faro_worker_release_ownership(job->cluster->workers[job->node]));
  return NULL;
}
/* On a thread per worker. */
static void on_workers(struct cluster* cluster, part part) {
  pthread_t threads[kNodes];
  struct job jobs[kNodes];
  for (int i = 0; i < kNodes; ++i) {
    jobs[i] = (struct job){cluster, i, part};
    CHECK(pthread_create(&threads[i], NULL, run_job, &jobs[i]) == 0);
  }
  for (int i = 0; i < kNodes; ++i) pthread_join(threads[i], NULL);
}

static void end_query(struct cluster* cluster, int node) {
  DONE(faro_worker_end_query(cluster->workers[node], &cluster->query, FARO_CODE_OK, NULL,
                             FARO_WAIT_FOREVER));
}

/* --- refuses_misuse */

static int32_t never(void* context) {
  (void)context;
  return 0;
}

static void refuses_nulls(void) {
  const faro_code invalid = FARO_CODE_INVALID_ARGUMENT;
  faro_config* config = faro_config_create();
  faro_session* session = NULL;
  faro_listening_socket* listener = NULL;
  faro_batch* batch = faro_batch_create();
  const char* value = NULL;
  int32_t flag = 0;
  size_t sent = 0;
  uint32_t number = 0;
  uint64_t key = 1;
  uint32_t receiver = 0;
  uint32_t offsets[] = {0, 8};
  faro_query_id query = {0};

  CHECK(faro_last_error(NULL) == invalid);
  faro_error error = {0};
  CHECK(faro_last_error(&error) == invalid);
  REFUSED(faro_set_last_error(NULL), invalid);
  REFUSED(faro_set_last_error(&error), invalid);
  error = (faro_error){.size = sizeof error, .code = 12345};
  REFUSED(faro_set_last_error(&error), invalid);
  REFUSED(faro_log_set_level(99), invalid);
  REFUSED(faro_config_set(NULL, "ring.bytes", "1"), invalid);
  CHECK(strstr(last_message(), "config") != NULL);
  REFUSED(faro_config_set(config, NULL, "1"), invalid);
  REFUSED(faro_config_set(config, "ring.bytes", NULL), invalid);
  REFUSED(faro_config_set(config, "ring.byte", "1"), FARO_CODE_CONFIG_INVALID);
  REFUSED(faro_config_set_bytes(NULL, "security.key", "x", 1), invalid);
  REFUSED(faro_config_set_bytes(config, NULL, "x", 1), invalid);
  REFUSED(faro_config_set_bytes(config, "security.key", NULL, 1), invalid);
  REFUSED(faro_config_set_bytes(config, "security.key", "x", 0), FARO_CODE_CONFIG_INVALID);
  REFUSED(faro_config_set_bytes(config, "ring.bytes", "1", 1), FARO_CODE_CONFIG_INVALID);
  OK(faro_config_set_bytes(config, "security.key", "secret", 6));
  OK(faro_config_get(config, "security.key", &value));
  CHECK(strcmp(value, "(given as bytes)") == 0);
  OK(faro_config_set(config, "security.key", ""));
  REFUSED(faro_config_load_file(NULL, "x"), invalid);
  REFUSED(faro_config_load_file(config, NULL), invalid);
  REFUSED(faro_config_load_environment(NULL), invalid);
  REFUSED(faro_config_get(NULL, "ring.bytes", &value), invalid);
  REFUSED(faro_config_get(config, NULL, &value), invalid);
  REFUSED(faro_config_get(config, "ring.bytes", NULL), invalid);
  REFUSED(faro_config_get(config, "ring.byte", &value), FARO_CODE_CONFIG_INVALID);
  REFUSED(faro_config_list(NULL, NULL), invalid);
  CHECK(faro_has_loaded(NULL) == 0);
  OK(faro_config_set(config, "ring.bytes", "64KiB"));
  OK(faro_config_get(config, "ring.bytes", &value));
  CHECK(strcmp(value, "65536") == 0 || strcmp(value, "64KiB") == 0);
  REFUSED(faro_cancellation_cancel(NULL), invalid);
  REFUSED(faro_listening_socket_bind(NULL, &listener), invalid);
  REFUSED(faro_listening_socket_bind("127.0.0.1:0", NULL), invalid);
  CHECK(faro_listening_socket_address(NULL) == NULL);
  REFUSED(faro_session_open(NULL, NULL, NULL, &session), invalid);
  REFUSED(faro_session_open(config, NULL, NULL, NULL), invalid);
  REFUSED(faro_session_open_async(NULL, NULL, NULL, opened, NULL), invalid);
  REFUSED(faro_session_open_async(config, NULL, NULL, NULL, NULL), invalid);
  REFUSED(faro_session_describe(NULL, NULL), invalid);
  REFUSED(faro_session_first_worker(NULL, 0, &number), invalid);
  REFUSED(faro_session_worker(NULL, 0, NULL), invalid);
  REFUSED(faro_session_begin_query(NULL, &query), invalid);
  REFUSED(faro_session_declare_query(NULL, &query, NULL, 0), invalid);
  REFUSED(faro_session_cancel_query(NULL, &query, ""), invalid);
  REFUSED(faro_session_has_node(NULL, 0, &flag), invalid);
  REFUSED(faro_session_await_node(NULL, 0, NULL, FARO_WAIT_NONE), invalid);
  REFUSED(faro_session_await_node_async(NULL, 0, NULL, FARO_WAIT_NONE, done, NULL), invalid);
  REFUSED(faro_session_listen(NULL, NULL), invalid);
  REFUSED(faro_session_read_metrics(NULL, NULL, NULL, NULL, NULL), invalid);
  REFUSED(faro_session_read_operators(NULL, NULL, NULL), invalid);
  REFUSED(faro_session_close(NULL), invalid);
  REFUSED(faro_session_close_async(NULL, done, NULL), invalid);
  CHECK(faro_worker_number(NULL) == UINT32_MAX);
  REFUSED(faro_worker_open_shuffle(NULL, NULL, NULL), invalid);
  FAILED(faro_worker_wait_until(NULL, never, NULL, FARO_WAIT_NONE), invalid);
  REFUSED(faro_worker_wake(NULL), invalid);
  REFUSED(faro_worker_ready_descriptor(NULL, &flag), invalid);
  REFUSED(faro_worker_on_ready(NULL, NULL, NULL, NULL), invalid);
  FAILED(faro_worker_arm(NULL, never, NULL, FARO_PROGRESS_TURN), invalid);
  FAILED(faro_worker_exchange(NULL, NULL, 0, FARO_WAIT_NONE), invalid);
  FAILED(faro_worker_wait_taking(NULL, NULL, 0, never, NULL, FARO_WAIT_NONE), invalid);
  FAILED(faro_worker_end_query(NULL, &query, FARO_CODE_OK, NULL, FARO_WAIT_NONE), invalid);
  REFUSED(faro_worker_release_ownership(NULL), invalid);
  REFUSED(faro_worker_take_ownership(NULL), invalid);
  REFUSED(faro_session_read_shuffles(NULL, NULL, NULL, NULL), invalid);
  REFUSED(faro_worker_read_metrics(NULL, NULL), invalid);
  REFUSED(faro_shuffle_read_metrics(NULL, NULL, NULL), invalid);
  REFUSED(faro_worker_rings(NULL, NULL), invalid);
  REFUSED(faro_shuffle_describe(NULL, NULL), invalid);
  REFUSED(faro_shuffle_status(NULL), invalid);
  REFUSED(faro_shuffle_cancel(NULL, ""), invalid);
  REFUSED(faro_shuffle_close(NULL), invalid);
  FAILED(faro_sender_send(NULL, 0, "x", 1, FARO_WAIT_NONE), invalid);
  FAILED(faro_sender_multicast(NULL, NULL, 1, "x", 1, FARO_WAIT_NONE), invalid);
  FAILED(faro_sender_broadcast(NULL, "x", 1, FARO_WAIT_NONE), invalid);
  FAILED(faro_sender_send_parts(NULL, NULL, 0, NULL, 0, FARO_WAIT_NONE), invalid);
  FAILED(
      faro_sender_send_all(NULL, &key, 8, 0, 1, 0, 8, FARO_HASH_FINALIZER, FARO_WAIT_NONE, &sent),
      invalid);
  FAILED(faro_sender_send_rows(NULL, &key, 8, 0, 1, &receiver, FARO_WAIT_NONE, &sent), invalid);
  FAILED(
      faro_sender_send_rows_at(NULL, &key, 8, offsets, 4, 0, 1, &receiver, FARO_WAIT_NONE, &sent),
      invalid);
  FAILED(faro_sender_claim(NULL, 0, 1, FARO_WAIT_NONE, NULL), invalid);
  FAILED(faro_sender_make_room(NULL, 0, 1, FARO_WAIT_NONE, NULL), invalid);
  REFUSED(faro_sender_commit(NULL, 1), invalid);
  REFUSED(faro_sender_abort(NULL), invalid);
  FAILED(faro_sender_flush(NULL), invalid);
  FAILED(faro_sender_finish(NULL, FARO_WAIT_NONE), invalid);
  REFUSED(faro_sender_name_format(NULL, ""), invalid);
  REFUSED(faro_sender_open_frames(NULL, NULL), invalid);
  REFUSED(faro_batch_describe(NULL, NULL), invalid);
  REFUSED(faro_batch_describe(batch, NULL), invalid);
  REFUSED(faro_batch_release(NULL), invalid);
  REFUSED(faro_batch_detach(NULL), invalid);
  REFUSED(faro_batch_offsets(NULL, offsets, 2, &number), invalid);
  REFUSED(faro_batch_offsets(batch, NULL, 2, &number), invalid);
  REFUSED(faro_batch_offsets(batch, offsets, 2, NULL), invalid);
  FAILED(faro_receiver_receive(NULL, batch, FARO_WAIT_NONE, NULL), invalid);
  FAILED(faro_receiver_receive_from(NULL, 0, batch, FARO_WAIT_NONE, NULL), invalid);
  FAILED(faro_receiver_receive_into(NULL, batch, give_row_memory, NULL, FARO_WAIT_NONE, NULL),
         invalid);
  FAILED(faro_receiver_stop(NULL), invalid);
  REFUSED(faro_receiver_name_format(NULL, ""), invalid);
  REFUSED(faro_partition(FARO_HASH_FINALIZER, NULL, 1, 2, &number), invalid);
  REFUSED(faro_partition(FARO_HASH_FINALIZER, &key, 1, 2, NULL), invalid);
  REFUSED(faro_partition(FARO_HASH_FINALIZER, &key, 1, 0, &number), invalid);
  REFUSED(faro_partition(99, &key, 1, 2, &number), invalid);
  CHECK(faro_hash_bytes(NULL, 1) == 0);
  CHECK(strcmp(faro_code_name(FARO_CODE_PEER_LOST), "peer_lost") == 0);
  CHECK(strcmp(faro_code_name(12345), "unknown") == 0);
  CHECK(strcmp(faro_outcome_name(FARO_OUTCOME_HOLDING), "holding") == 0);
  CHECK(strcmp(faro_outcome_name(-1), "unknown") == 0);
  CHECK(faro_abi_version() == FARO_ABI_VERSION && strlen(faro_version()) > 0);

  faro_config_destroy(NULL);
  faro_cancellation_destroy(NULL);
  faro_listening_socket_destroy(NULL);
  faro_session_destroy(NULL);
  faro_shuffle_destroy(NULL);
  faro_batch_destroy(NULL);
  faro_batch_destroy(batch);
  faro_config_destroy(config);
}

static void refuses_on_a_shuffle(struct cluster* cluster) {
  const faro_code invalid = FARO_CODE_INVALID_ARGUMENT;
  const int64_t negative = -1;
  faro_session* session = cluster->sessions[0];
  faro_worker* worker = cluster->workers[0];
  uint32_t number = 0;
  int32_t flag = 0;
  REFUSED(faro_session_first_worker(session, 2, &number), invalid);
  REFUSED(faro_session_has_node(session, 2, &flag), invalid);
  REFUSED(faro_session_worker(session, 1, &worker), invalid);
  REFUSED(faro_session_await_node(session, 2, NULL, FARO_WAIT_NONE), invalid);
  REFUSED(faro_session_await_node(session, 1, NULL, negative), invalid);
  REFUSED(faro_session_await_node_async(session, 1, NULL, negative, done, NULL), invalid);
  REFUSED(faro_session_await_node_async(session, 1, NULL, FARO_WAIT_NONE, NULL, NULL), invalid);
  REFUSED(faro_session_close_async(session, NULL, NULL), invalid);
  REFUSED(faro_session_declare_query(session, &cluster->query, NULL, 1), invalid);
  REFUSED(faro_session_cancel_query(session, &cluster->query, NULL), invalid);

  faro_shuffle_spec spec = {0};
  faro_shuffle* shuffle = NULL;
  REFUSED(faro_worker_open_shuffle(worker, &spec, &shuffle), invalid);
  spec.size = sizeof spec;
  REFUSED(faro_worker_open_shuffle(worker, &spec, &shuffle),
          FARO_CODE_QUERY_ENDED); /* a query of nobody */
  spec.query = cluster->query;
  spec.row_bytes = 8;
  spec.sender_count = 1;
  REFUSED(faro_worker_open_shuffle(worker, &spec, &shuffle), invalid); /* senders is null */
  const uint32_t other = 1;
  spec.senders = &other;
  spec.receivers = &other;
  spec.receiver_count = 1;
  OK(faro_worker_open_shuffle(worker, &spec, &shuffle)); /* this worker is neither */
  uint64_t row = 7;
  size_t sent = 0;
  faro_batch* batch = faro_batch_create();
  faro_open_frames frames = {.size = sizeof frames};
  FAILED(faro_sender_send(shuffle, 0, &row, 8, FARO_WAIT_NONE), FARO_CODE_WRONG_STATE);
  FAILED(faro_sender_send_all(shuffle, &row, 8, 0, 1, 0, 8, FARO_HASH_FINALIZER, FARO_WAIT_NONE,
                              &sent),
         FARO_CODE_WRONG_STATE);
  REFUSED(faro_sender_open_frames(shuffle, &frames), FARO_CODE_WRONG_STATE);
  REFUSED(faro_sender_commit(shuffle, 8), FARO_CODE_WRONG_STATE);
  FAILED(faro_receiver_receive(shuffle, batch, FARO_WAIT_NONE, NULL), FARO_CODE_WRONG_STATE);
  FAILED(faro_receiver_stop(shuffle), FARO_CODE_WRONG_STATE);
  REFUSED(faro_receiver_name_format(shuffle, "x"), FARO_CODE_WRONG_STATE);
  faro_shuffle_info info = {.size = sizeof info};
  OK(faro_shuffle_describe(shuffle, &info));
  CHECK(info.sender_count == 1 && info.receiver_count == 1 && info.own_receiver == 1 &&
        info.is_sender == 0 && info.senders[0] == 1 && info.receivers[0] == 1);
  REFUSED(faro_shuffle_cancel(shuffle, NULL), invalid);
  faro_shuffle_destroy(shuffle);

  shuffle = open_shuffle(cluster, 0, 1, 8);
  OK(faro_shuffle_describe(shuffle, &info)); /* all workers are named */
  CHECK(info.sender_count == 2 && info.senders[0] == 0 && info.senders[1] == 1);
  CHECK(info.receiver_count == 2 && info.receivers[0] == 0 && info.receivers[1] == 1);
  FAILED(faro_sender_send(shuffle, 2, &row, 8, FARO_WAIT_NONE), invalid);
  FAILED(faro_sender_send(shuffle, 0, &row, 7, FARO_WAIT_NONE), invalid);
  FAILED(faro_sender_send(shuffle, 0, NULL, 8, FARO_WAIT_NONE), invalid);
  FAILED(faro_sender_send(shuffle, 0, &row, 8, negative), invalid);
  FAILED(faro_sender_broadcast(shuffle, &row, 8, negative), invalid);
  FAILED(faro_sender_broadcast(shuffle, NULL, 8, FARO_WAIT_NONE), invalid);
  const uint32_t twice[] = {0, 0};
  FAILED(faro_sender_multicast(shuffle, twice, 2, &row, 8, FARO_WAIT_NONE), invalid);
  FAILED(faro_sender_multicast(shuffle, NULL, 2, &row, 8, FARO_WAIT_NONE), invalid);
  const faro_piece pieces[] = {{&row, 4}, {NULL, 4}};
  FAILED(faro_sender_send_parts(shuffle, twice, 1, pieces, 2, FARO_WAIT_NONE), invalid);
  CHECK(strstr(last_message(), "has bytes, but no address"));
  FAILED(faro_sender_send_parts(shuffle, twice, 1, pieces, 1, FARO_WAIT_NONE), invalid);
  FAILED(faro_sender_send_parts(shuffle, twice, 1, NULL, 1, FARO_WAIT_NONE), invalid);
  FAILED(faro_sender_send_parts(shuffle, NULL, 1, pieces, 1, FARO_WAIT_NONE), invalid);
  FAILED(faro_sender_send_parts(shuffle, twice, 1, pieces, 1, negative), invalid);
  FAILED(faro_receiver_receive_into(shuffle, batch, NULL, NULL, FARO_WAIT_NONE, NULL), invalid);
  const int64_t none = FARO_WAIT_NONE;
  FAILED(faro_sender_send_all(shuffle, NULL, 8, 0, 1, 0, 8, FARO_HASH_FINALIZER, none, &sent),
         invalid);
  FAILED(faro_sender_send_all(shuffle, &row, 8, 0, 1, 0, 8, 99, none, &sent), invalid);
  FAILED(faro_sender_send_all(shuffle, &row, 8, 0, 1, 1, 8, FARO_HASH_FINALIZER, none, &sent),
         invalid);
  FAILED(faro_sender_send_all(shuffle, &row, 8, 0, 1, 0, 8, FARO_HASH_FINALIZER, negative, &sent),
         invalid);
  FAILED(faro_sender_send_all(shuffle, &row, 8, 0, 1, 0, 8, FARO_HASH_FINALIZER, none, NULL),
         invalid);
  FAILED(faro_sender_send_all(shuffle, &row, 7, 0, 1, 0, 8, FARO_HASH_FINALIZER, none, &sent),
         invalid);
  const uint32_t self = 0;
  FAILED(faro_sender_send_rows(shuffle, NULL, 8, 0, 1, &self, none, &sent), invalid);
  FAILED(faro_sender_send_rows(shuffle, &row, 8, 0, 2, twice, none, &sent), invalid);
  FAILED(faro_sender_send_rows(shuffle, &row, 8, 0, SIZE_MAX / 4, twice, none, &sent), invalid);
  FAILED(faro_sender_send_rows(shuffle, &row, 8, 0, 1, NULL, none, &sent), invalid);
  FAILED(faro_sender_send_rows(shuffle, &row, 8, 0, 1, &self, negative, &sent), invalid);
  FAILED(faro_sender_send_rows(shuffle, &row, 8, 0, 1, &self, none, NULL), invalid);
  const uint64_t wide[] = {0, 8};
  FAILED(faro_sender_send_rows_at(shuffle, &row, 8, wide, 8, 0, 1, &self, none, &sent), invalid);
  CHECK(sent == 0); /* these rows have a fixed width */
  FAILED(faro_sender_finish(shuffle, negative), invalid);
  FAILED(faro_sender_claim(shuffle, 0, 8, FARO_WAIT_NONE, NULL), invalid);
  faro_claim claim = {0};
  FAILED(faro_sender_claim(shuffle, 0, 8, FARO_WAIT_NONE, &claim), invalid); /* no size */
  claim.size = sizeof claim;
  FAILED(faro_sender_claim(shuffle, 0, 8, negative, &claim), invalid);
  FAILED(faro_sender_make_room(shuffle, 0, 8, negative, &claim), invalid);
  FAILED(faro_sender_make_room(shuffle, 0, 8, FARO_WAIT_NONE, NULL), invalid);
  FAILED(faro_receiver_receive(shuffle, NULL, FARO_WAIT_NONE, NULL), invalid);
  FAILED(faro_receiver_receive(shuffle, batch, negative, NULL), invalid);
  FAILED(faro_receiver_receive_from(shuffle, 2, batch, FARO_WAIT_NONE, NULL), invalid);
  faro_rows rows = {0};
  FAILED(faro_receiver_receive(shuffle, batch, FARO_WAIT_NONE, &rows), invalid); /* no size */
  REFUSED(faro_batch_describe(batch, &rows), invalid);
  rows.size = sizeof rows;
  OK(faro_batch_describe(batch, &rows));
  CHECK(rows.row_count == 0 && rows.version == FARO_ABI_VERSION);
  CHECK(faro_receiver_receive(shuffle, batch, FARO_WAIT_NONE, NULL) == FARO_OUTCOME_WOULD_WAIT);
  CHECK(faro_receiver_receive(shuffle, batch, 0, NULL) == FARO_OUTCOME_DEADLINE);
  FAILED(faro_worker_wait_until(worker, NULL, NULL, FARO_WAIT_NONE), invalid);
  FAILED(faro_worker_wait_until(worker, never, NULL, negative), invalid);
  CHECK(faro_worker_wait_until(worker, never, NULL, FARO_WAIT_NONE) == FARO_OUTCOME_WOULD_WAIT);
  CHECK(faro_worker_wait_until(worker, never, NULL, 1) == FARO_OUTCOME_DEADLINE);
  FAILED(faro_worker_wait_taking(worker, NULL, 1, never, NULL, FARO_WAIT_NONE), invalid);
  FAILED(faro_worker_wait_taking(worker, &shuffle, 1, NULL, NULL, FARO_WAIT_NONE), invalid);
  FAILED(faro_worker_wait_taking(worker, &shuffle, 1, never, NULL, negative), invalid);
  faro_shuffle* const absent = NULL;
  FAILED(faro_worker_wait_taking(worker, &absent, 1, never, NULL, FARO_WAIT_NONE), invalid);
  FAILED(faro_worker_wait_taking(cluster->workers[1], &shuffle, 1, never, NULL, FARO_WAIT_NONE),
         invalid);
  CHECK(strstr(last_message(), "is to take rows of a shuffle of worker") != NULL);
  REFUSED(faro_worker_ready_descriptor(worker, NULL), invalid);
  REFUSED(faro_worker_on_ready(worker, NULL, NULL, NULL), invalid);
  FAILED(faro_worker_arm(worker, NULL, NULL, FARO_PROGRESS_TURN), invalid);
  FAILED(faro_worker_arm(worker, never, NULL, 99), invalid);
  FAILED(faro_worker_arm(worker, never, NULL, FARO_PROGRESS_TURN),
         FARO_CODE_WRONG_STATE); /* no way to tell it */
  REFUSED(faro_session_listen(session, NULL), invalid);
  faro_session_metrics metrics = {0};
  REFUSED(faro_session_read_metrics(session, NULL, NULL, NULL, NULL), invalid);
  REFUSED(faro_session_read_metrics(session, &metrics, NULL, NULL, NULL), invalid); /* no size */
  REFUSED(faro_session_read_operators(session, NULL, NULL), invalid);
  FAILED(faro_worker_end_query(worker, NULL, FARO_CODE_OK, NULL, FARO_WAIT_NONE), invalid);
  FAILED(faro_worker_end_query(worker, &cluster->query, 12345, NULL, FARO_WAIT_NONE), invalid);
  FAILED(faro_worker_end_query(worker, &cluster->query, FARO_CODE_OK, NULL, negative), invalid);
  FAILED(faro_worker_end_query(worker, &cluster->query, FARO_CODE_OK, NULL, FARO_WAIT_NONE),
         FARO_CODE_WRONG_STATE);
  CHECK(last_error().has_query == 1 && last_error().query.counter == cluster->query.counter);

  OK(faro_shuffle_close(shuffle));
  OK(faro_shuffle_close(shuffle));
  CHECK(info.senders[1] == 1 && info.receivers[1] == 1); /* the lists stay */
  FAILED(faro_sender_send(shuffle, 0, &row, 8, FARO_WAIT_NONE), FARO_CODE_CLOSED);
  FAILED(faro_receiver_receive(shuffle, batch, FARO_WAIT_NONE, NULL), FARO_CODE_CLOSED);
  FAILED(faro_worker_wait_taking(worker, &shuffle, 1, never, NULL, FARO_WAIT_NONE),
         FARO_CODE_CLOSED);
  REFUSED(faro_shuffle_status(shuffle), FARO_CODE_CLOSED);
  REFUSED(faro_shuffle_cancel(shuffle, "late"), FARO_CODE_CLOSED);
  faro_shuffle_destroy(shuffle);
  faro_batch_destroy(batch);
}

static void* use_from_another_thread(void* argument) {
  FAILED(faro_worker_wait_until(argument, never, NULL, FARO_WAIT_NONE), FARO_CODE_WRONG_STATE);
  OK(faro_worker_take_ownership(argument));
  CHECK(faro_worker_wait_until(argument, never, NULL, FARO_WAIT_NONE) == FARO_OUTCOME_WOULD_WAIT);
  return NULL;
}

static void refuses_misuse(void) {
  refuses_nulls();
  struct cluster cluster = open_cluster();
  refuses_on_a_shuffle(&cluster);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, use_from_another_thread, cluster.workers[0]) == 0);
  pthread_join(thread, NULL);
  FAILED(faro_worker_wait_until(cluster.workers[0], never, NULL, FARO_WAIT_NONE),
         FARO_CODE_WRONG_STATE);
  OK(faro_worker_take_ownership(cluster.workers[0]));
  OK(faro_session_close(cluster.sessions[0]));
  OK(faro_session_close(cluster.sessions[0]));
  FAILED(faro_worker_wait_until(cluster.workers[0], never, NULL, FARO_WAIT_NONE),
         FARO_CODE_SESSION_CLOSED);
  close_cluster(&cluster);

  faro_listening_socket* listener = NULL;
  OK(faro_listening_socket_bind("127.0.0.1:0", &listener));
  faro_config* config = faro_config_create();
  OK(faro_config_set(config, "cluster.nodes", faro_listening_socket_address(listener)));
  faro_session* session = NULL;
  OK(faro_session_open(config, listener, NULL, &session));
  faro_session* second = NULL;
  REFUSED(faro_session_open(config, listener, NULL, &second),
          FARO_CODE_WRONG_STATE); /* its socket is taken */
  REFUSED(faro_session_open_async(config, listener, NULL, opened, NULL), FARO_CODE_WRONG_STATE);
  CHECK(second == NULL);
  faro_listening_socket_destroy(listener);
  faro_config_destroy(config);
  faro_session_destroy(session);
}

/* --- names_senders_and_receivers_by_index */

static void take_indices(void* context, const faro_shuffle_metrics* metrics) {
  (void)context;
  CHECK(metrics->sent_count == kNodes && metrics->received_count == kNodes);
  for (uint32_t i = 0; i < kNodes; ++i) {
    CHECK(metrics->sent[i].receiver == i && metrics->received[i].sender == i);
    CHECK(metrics->sent[i].rows == 1 && metrics->received[i].rows == 1);
  }
}

/* Both lists name worker 1 first: index 0 is worker 1. */
static void use_indices(struct cluster* cluster, int node) {
  const uint32_t workers[kNodes] = {1, 0};
  const faro_shuffle_spec spec = {.size = sizeof spec,
                                  .query = cluster->query,
                                  .row_bytes = 4,
                                  .senders = workers,
                                  .receivers = workers,
                                  .sender_count = kNodes,
                                  .receiver_count = kNodes};
  faro_shuffle* shuffle = NULL;
  OK(faro_worker_open_shuffle(cluster->workers[node], &spec, &shuffle));
  const uint32_t number = (uint32_t)node;
  for (uint32_t to = 0; to < kNodes; ++to)
    DONE(faro_sender_send(shuffle, to, &number, sizeof number, FARO_WAIT_FOREVER));
  DONE(faro_sender_finish(shuffle, FARO_WAIT_FOREVER));
  faro_batch* batch = faro_batch_create();
  for (uint32_t from = 0; from < kNodes; ++from) {
    faro_rows got = {.size = sizeof got};
    DONE(faro_receiver_receive_from(shuffle, from, batch, FARO_WAIT_FOREVER, &got));
    CHECK(got.sender == from && got.row_count == 1);
    CHECK(memcmp(got.address, &workers[from], sizeof number) == 0);
    CHECK(faro_receiver_receive_from(shuffle, from, batch, FARO_WAIT_FOREVER, NULL) ==
          FARO_OUTCOME_END_OF_STREAM);
  }
  FAILED(faro_receiver_receive_from(shuffle, kNodes, batch, FARO_WAIT_FOREVER, NULL),
         FARO_CODE_INVALID_ARGUMENT);
  faro_batch_destroy(batch);
  OK(faro_shuffle_read_metrics(shuffle, take_indices, NULL));
  faro_shuffle_destroy(shuffle);
  end_query(cluster, node);
}

static void names_senders_and_receivers_by_index(void) {
  struct cluster cluster = open_cluster();
  on_workers(&cluster, use_indices);
  close_cluster(&cluster);
}

/* --- sends_to_groups */

/* There are three, of which the second is a receiver; a row by a cursor and one by a call to each. */
static void use_groups(struct cluster* cluster, int node) {
  const uint32_t members[] = {0, 1, 1, 1, 0};
  const uint32_t sizes[] = {2, 1, 2};
  faro_shuffle_spec spec = {.size = sizeof spec,
                            .query = cluster->query,
                            .row_bytes = 4,
                            .group_members = members,
                            .group_sizes = sizes,
                            .group_count = 3};
  faro_shuffle* shuffle = NULL;
  if (node == 1) spec.group_count = 0; /* it need not know */
  OK(faro_worker_open_shuffle(cluster->workers[node], &spec, &shuffle));
  faro_shuffle_info info = {.size = sizeof info};
  OK(faro_shuffle_describe(shuffle, &info));
  CHECK(info.receiver_count == kNodes);
  faro_open_frames frames = {.size = sizeof frames};
  OK(faro_sender_open_frames(shuffle, &frames));
  CHECK(frames.receiver_count == (node == 0 ? 3 : kNodes));
  faro_batch* batch = faro_batch_create();
  if (node == 0) {
    for (uint32_t group = 0; group < 3; ++group) {
      faro_claim claim = {.size = sizeof claim};
      DONE(faro_sender_make_room(shuffle, group, sizeof group, FARO_WAIT_FOREVER, &claim));
      CHECK(claim.data == NULL);
      memcpy(frames.cursors[group].at, &group, sizeof group);
      frames.cursors[group].at += sizeof group;
      DONE(faro_sender_send(shuffle, group, &group, sizeof group, FARO_WAIT_FOREVER));
    }
    FAILED(faro_sender_send(shuffle, 3, &node, sizeof node, FARO_WAIT_FOREVER),
           FARO_CODE_INVALID_ARGUMENT);
  }
  DONE(faro_sender_finish(shuffle, FARO_WAIT_FOREVER));
  uint32_t rows[3] = {0, 0, 0};
  faro_rows got = {.size = sizeof got};
  while (faro_receiver_receive(shuffle, batch, FARO_WAIT_FOREVER, &got) == FARO_OUTCOME_DONE) {
    for (uint32_t i = 0; i < got.row_count; ++i) ++rows[((const uint32_t*)got.address)[i]];
  }
  CHECK(rows[0] == 2 && rows[1] == (node == 1 ? 2u : 0u) && rows[2] == 2);
  faro_batch_destroy(batch);
  faro_shuffle_destroy(shuffle);
  end_query(cluster, node);
}

static void sends_to_groups(void) {
  struct cluster cluster = open_cluster();
  const uint32_t members[] = {0, 1, 0};
  const uint32_t sizes[] = {1, 2};
  faro_shuffle_spec spec = {
      .size = sizeof spec, .query = cluster.query, .group_sizes = sizes, .group_count = 2};
  faro_shuffle* shuffle = NULL;
  REFUSED(faro_worker_open_shuffle(cluster.workers[0], &spec, &shuffle),
          FARO_CODE_INVALID_ARGUMENT); /* no members */
  spec.group_members = members;
  spec.group_sizes = NULL;
  REFUSED(faro_worker_open_shuffle(cluster.workers[0], &spec, &shuffle),
          FARO_CODE_INVALID_ARGUMENT);
  spec.group_sizes = sizes;
  spec.group_count = 65537;
  REFUSED(faro_worker_open_shuffle(cluster.workers[0], &spec, &shuffle), FARO_CODE_LIMIT_EXCEEDED);
  CHECK(shuffle == NULL);
  OK(faro_worker_release_ownership(cluster.workers[0]));
  on_workers(&cluster, use_groups);
  close_cluster(&cluster);
}

/* --- refuses_deliveries_that_it_has_not */

static void refuses_deliveries_that_it_has_not(void) {
  struct cluster cluster = open_cluster();
  faro_shuffle_spec spec = {.size = sizeof spec, .query = cluster.query, .delivery = 3};
  faro_shuffle* shuffle = NULL;
  REFUSED(faro_worker_open_shuffle(cluster.workers[0], &spec, &shuffle),
          FARO_CODE_INVALID_ARGUMENT);
  spec.delivery = FARO_DELIVERY_NODE; /* lanes end at workers */
  REFUSED(faro_worker_open_shuffle(cluster.workers[0], &spec, &shuffle),
          FARO_CODE_INVALID_ARGUMENT);
  close_cluster(&cluster);
}

/* --- refuses_to_take_one_senders_rows_where_any_worker_takes_them */

static void refuses_to_take_one_senders_rows_where_any_worker_takes_them(void) {
  struct cluster cluster = open_cluster_by("both");
  const faro_shuffle_spec spec = {.size = sizeof spec,
                                  .query = cluster.query,
                                  .stage = 3,
                                  .row_bytes = 8,
                                  .delivery = FARO_DELIVERY_NODE};
  faro_shuffle* shuffle = NULL;
  faro_batch* batch = faro_batch_create();
  OK(faro_worker_open_shuffle(cluster.workers[0], &spec, &shuffle));
  FAILED(faro_receiver_receive_from(shuffle, 0, batch, FARO_WAIT_NONE, NULL),
         FARO_CODE_WRONG_STATE);
  CHECK(strstr(last_message(), "stage 3") != NULL);
  CHECK(strstr(last_message(), "delivery = node") != NULL);
  faro_batch_destroy(batch);
  faro_shuffle_destroy(shuffle);
  OK(faro_worker_release_ownership(cluster.workers[0]));
  close_cluster(&cluster);
}

/* --- carries_rows_between_two_sessions */

enum { kRows = 20000 };

struct counted {
  uint32_t expected; /* worker */
  uint32_t shuffles;
  uint64_t rows_sent;
  uint64_t rows_received;
};

static void take_metrics(void* context, const faro_shuffle_metrics* metrics) {
  struct counted* counted = context;
  CHECK(metrics->size == sizeof *metrics && metrics->version == FARO_ABI_VERSION);
  CHECK(metrics->worker == counted->expected && metrics->query.counter == 1);
  CHECK(metrics->sent_bytes == sizeof *metrics->sent && metrics->sent_count == kNodes);
  CHECK(metrics->received_bytes == sizeof *metrics->received && metrics->received_count == kNodes);
  ++counted->shuffles;
  for (uint32_t i = 0; i < kNodes; ++i) {
    CHECK(metrics->sent[i].receiver == i && metrics->received[i].sender == i);
    CHECK(metrics->sent[i].bytes == 8 * metrics->sent[i].rows && metrics->sent[i].frames > 0);
    counted->rows_sent += metrics->sent[i].rows;
    counted->rows_received += metrics->received[i].rows;
  }
}

static void send_fixed(struct cluster* cluster, int node) {
  faro_shuffle* shuffle = open_shuffle(cluster, node, 0, 8);
  static uint64_t rows[kNodes][kRows];
  for (int i = 0; i < kRows; ++i) rows[node][i] = (uint64_t)node * kRows + (uint64_t)i;
  size_t sent = 0;
  DONE(faro_sender_send_all(shuffle, rows[node], sizeof rows[node], 0, kRows / 4, 0, 8,
                            FARO_HASH_MULTIPLICATIVE, FARO_WAIT_FOREVER, &sent));
  CHECK(sent == kRows / 4);
  static uint32_t to[kNodes][kRows / 2];
  OK(faro_partition(FARO_HASH_MULTIPLICATIVE, rows[node], kRows / 2, kNodes, to[node]));
  DONE(faro_sender_send_rows(shuffle, rows[node], 4 * kRows, sent, kRows / 2, to[node],
                             FARO_WAIT_FOREVER, &sent)); /* goes on from there */
  CHECK(sent == kRows / 2);
  for (int i = kRows / 2; i < kRows; ++i) {
    uint32_t receiver = 0;
    OK(faro_partition(FARO_HASH_MULTIPLICATIVE, &rows[node][i], 1, kNodes, &receiver));
    DONE(faro_sender_send(shuffle, receiver, &rows[node][i], 8, FARO_WAIT_FOREVER));
  }
  DONE(faro_sender_flush(shuffle));
  DONE(faro_sender_finish(shuffle, FARO_WAIT_FOREVER));

  faro_batch* batch = faro_batch_create();
  faro_rows got = {.size = sizeof got};
  faro_outcome outcome;
  while ((outcome = faro_receiver_receive(shuffle, batch, FARO_WAIT_FOREVER, &got)) ==
         FARO_OUTCOME_DONE) {
    CHECK(got.row_bytes == 8 && got.bytes == 8 * (uint64_t)got.row_count && got.sender < kNodes);
    for (uint32_t i = 0; i < got.row_count; ++i) {
      uint64_t row;
      uint32_t receiver = 0;
      memcpy(&row, (const char*)got.address + 8 * (size_t)i, 8);
      OK(faro_partition(FARO_HASH_MULTIPLICATIVE, &row, 1, kNodes, &receiver));
      CHECK((int)receiver == node && row / kRows == got.sender);
    }
  }
  CHECK(outcome == FARO_OUTCOME_END_OF_STREAM);
  faro_batch_destroy(batch);
  struct counted counted = {.expected = (uint32_t)node};
  OK(faro_shuffle_read_metrics(shuffle, take_metrics, &counted));
  CHECK(counted.shuffles == 1 && counted.rows_sent == kRows && counted.rows_received > 0);
  OK(faro_shuffle_close(shuffle));
  OK(faro_shuffle_read_metrics(shuffle, take_metrics, &counted));
  CHECK(counted.shuffles == 2 && counted.rows_sent == 2 * kRows);
  faro_shuffle_destroy(shuffle);
  counted = (struct counted){.expected = (uint32_t)node};
  OK(faro_session_read_shuffles(cluster->sessions[node], &cluster->query, take_metrics, &counted));
  CHECK(counted.shuffles == 1 && counted.rows_sent == kRows);

  faro_worker_metrics metrics = {.size = sizeof metrics};
  OK(faro_worker_read_metrics(cluster->workers[node], &metrics));
  CHECK(metrics.worker == (uint32_t)node && metrics.rows_sent == kRows &&
        metrics.rows_received > 0);
}

/* To all by broadcast, to the other by multicast; received from one sender after the other. */
static void send_texts(struct cluster* cluster, int node) {
  const uint32_t other = (uint32_t)(1 - node);
  faro_shuffle* shuffle = open_shuffle(cluster, node, 1, 0);
  OK(faro_sender_name_format(shuffle, "texts"));
  OK(faro_receiver_name_format(shuffle, "texts"));
  REFUSED(faro_receiver_name_format(shuffle, "numbers"), FARO_CODE_INVALID_ARGUMENT);
  DONE(faro_sender_broadcast(shuffle, "to all", 6, FARO_WAIT_FOREVER));
  DONE(faro_sender_multicast(shuffle, &other, 1, "to one", 6, FARO_WAIT_FOREVER));
  DONE(faro_sender_send(shuffle, other, NULL, 0, FARO_WAIT_FOREVER));
  const char many[] = "a slice of many";
  const uint32_t others[] = {other, other, other};
  const uint64_t wide[] = {2, 7, 7, 15};
  const uint32_t narrow[] = {2, 7, 16, 16};
  size_t sent = 0;
  DONE(
      faro_sender_send_rows_at(shuffle, many, 15, wide, 8, 0, 3, others, FARO_WAIT_FOREVER, &sent));
  CHECK(sent == 3);
  for (size_t first = 0; first < 2; ++first) { /* the second one goes on, by the same numbers */
    FAILED(faro_sender_send_rows_at(shuffle, many, 15, narrow, 4, first, 3, others, FARO_WAIT_NONE,
                                    &sent),
           FARO_CODE_INVALID_ARGUMENT);
    CHECK(sent == 1 && strstr(last_message(), "row 1: it ends at byte 16, but all rows have 15"));
  }
  FAILED(faro_sender_send_rows_at(shuffle, many, 15, wide, 8, 4, 3, others, FARO_WAIT_NONE, &sent),
         FARO_CODE_INVALID_ARGUMENT);
  CHECK(sent == 4 && strstr(last_message(), "first = 4 of 3 rows"));
  FAILED(faro_sender_send_rows_at(shuffle, many, 15, wide, 2, 0, 3, others, FARO_WAIT_NONE, &sent),
         FARO_CODE_INVALID_ARGUMENT);
  FAILED(faro_sender_send_rows(shuffle, many, 15, 0, 1, others, FARO_WAIT_NONE, &sent),
         FARO_CODE_INVALID_ARGUMENT);
  CHECK(sent == 0);
  DONE(faro_sender_finish(shuffle, FARO_WAIT_FOREVER));
  faro_batch* batch = faro_batch_create();
  for (uint32_t sender = 0; sender < kNodes; ++sender) {
    char texts[64] = "";
    faro_rows got = {.size = sizeof got};
    faro_outcome outcome;
    while ((outcome = faro_receiver_receive_from(shuffle, sender, batch, FARO_WAIT_FOREVER,
                                                 &got)) == FARO_OUTCOME_DONE) {
      OK(faro_batch_detach(batch));
      OK(faro_batch_describe(batch, &got));
      CHECK(got.sender == sender && got.row_bytes == 0);
      const char* at = got.address;
      uint32_t offsets[16] = {0};
      uint32_t rows = 0;
      OK(faro_batch_offsets(batch, offsets, 16, &rows));
      CHECK(rows == got.row_count && offsets[rows] == got.bytes);
      for (uint32_t i = 0; i < got.row_count; ++i) {
        CHECK(at == (const char*)got.address + offsets[i]);
        uint32_t length;
        memcpy(&length, at, sizeof length);
        strncat(texts, at + sizeof length, length);
        strcat(texts, ";");
        at += sizeof length + length;
      }
      CHECK(at == (const char*)got.address + got.bytes);
      OK(faro_batch_release(batch));
      OK(faro_batch_release(batch));
    }
    CHECK(outcome == FARO_OUTCOME_END_OF_STREAM);
    CHECK(strcmp(texts, sender == (uint32_t)node ? "to all;"
                                                 : "to all;to one;;slice;; of many;slice;") == 0);
  }
  faro_batch_destroy(batch);
  faro_shuffle_destroy(shuffle);
}

/* A row of pieces that is larger than a ring, to the other; received into memory of the caller's. */
static void send_large(struct cluster* cluster, int node) {
  const uint32_t other = (uint32_t)(1 - node);
  faro_shuffle* shuffle = open_shuffle(cluster, node, 2, 0);
  char* const half = malloc(kRowMemory / 4);
  memset(half, 'a' + node, kRowMemory / 4);
  const faro_piece pieces[] = {{half, kRowMemory / 4}, {NULL, 0}, {half, kRowMemory / 4}};
  DONE(faro_sender_send_parts(shuffle, &other, 1, pieces, 3, FARO_WAIT_FOREVER));
  DONE(faro_sender_finish(shuffle, FARO_WAIT_FOREVER));
  faro_batch* batch = faro_batch_create();
  faro_rows got = {.size = sizeof got};
  void* memory = NULL;
  DONE(faro_receiver_receive_into(shuffle, batch, give_row_memory, &memory, FARO_WAIT_FOREVER,
                                  &got));
  CHECK(got.address == memory && got.bytes == kRowMemory / 2 && got.row_count == 1);
  OK(faro_batch_release(batch));
  for (size_t i = 0; i < kRowMemory / 2; ++i) CHECK(((char*)memory)[i] == 'a' + (int)other);
  CHECK(faro_receiver_receive_into(shuffle, batch, give_row_memory, &memory, FARO_WAIT_FOREVER,
                                   NULL) == FARO_OUTCOME_END_OF_STREAM);
  free(memory);
  free(half);
  faro_batch_destroy(batch);
  faro_shuffle_destroy(shuffle);
}

static void send_both(struct cluster* cluster, int node) {
  send_fixed(cluster, node);
  send_texts(cluster, node);
  send_large(cluster, node);
  end_query(cluster, node);
}

/* What node 0 tells of its links, and of the lanes that these have. */
struct carried {
  faro_link_metrics links[kNodes];
  uint32_t link_count, lane_count;
  uint64_t frames_sent[kNodes], frames_received[kNodes]; /* by lanes to and from each worker */
};
static void count_link(void* context, const faro_link_metrics* link) {
  struct carried* carried = context;
  CHECK(carried->link_count < kNodes && link->size == sizeof *link &&
        link->version == FARO_ABI_VERSION);
  CHECK(strcmp(link->transport, link->node == 0 ? "local" : "shm") == 0);
  carried->links[carried->link_count++] = *link;
}
static void count_lane(void* context, const faro_lane_metrics* lane) {
  struct carried* carried = context;
  CHECK(lane->size == sizeof *lane && lane->version == FARO_ABI_VERSION);
  CHECK(lane->sender == 0 || lane->receiver == 0);
  ++carried->lane_count;
  carried->frames_sent[lane->receiver] += lane->traffic.frames_sent;
  carried->frames_received[lane->sender] += lane->traffic.frames_received;
}

static void carries_rows_between_two_sessions(void) {
  struct cluster cluster = open_cluster();
  on_workers(&cluster, send_both);
  faro_session_metrics metrics = {.size = sizeof metrics};
  OK(faro_session_read_metrics(cluster.sessions[0], &metrics, NULL, NULL, NULL));
  CHECK(metrics.queries_failed == 0 && metrics.version == FARO_ABI_VERSION);
  struct carried carried = {0};
  OK(faro_session_read_metrics(cluster.sessions[0], &metrics, count_link, count_lane, &carried));
  CHECK(carried.link_count == kNodes && carried.lane_count == 2 * kNodes);
  for (uint32_t node = 0; node < kNodes; ++node) {
    const faro_link_metrics* link = &carried.links[node];
    CHECK(link->node == node && link->connected == 1 && link->traffic.bytes_sent > 0);
    CHECK(link->traffic.frames_sent > 0 && link->traffic.frames_received > 0);
    CHECK(link->traffic.frames_sent == carried.frames_sent[node] &&
          link->traffic.frames_received == carried.frames_received[node]);
  }
  close_cluster(&cluster);
}

/* --- sends_and_receives_together */

/* What a worker has sent and got; `fails`: its consumer refuses what it gets. */
struct exchanged {
  uint64_t next, end, count, sum;
  int fails;
};
static faro_outcome produce(void* context, faro_shuffle* shuffle) {
  struct exchanged* own = context;
  for (int i = 0; i < 100; ++i, ++own->next) {
    if (own->next == own->end) return FARO_OUTCOME_END_OF_STREAM;
    uint32_t receiver = 0;
    OK(faro_partition(FARO_HASH_FINALIZER, &own->next, 1, kNodes, &receiver));
    const faro_outcome outcome = faro_sender_send(shuffle, receiver, &own->next, 8, FARO_WAIT_NONE);
    if (outcome != FARO_OUTCOME_DONE) return outcome;
  }
  return FARO_OUTCOME_DONE;
}
static faro_code consume(void* context, faro_batch* batch, const faro_rows* rows) {
  struct exchanged* own = context;
  if (own->fails) {
    const faro_error why = {
        .size = sizeof why, .code = FARO_CODE_QUERY_FAILED, .message = "no room for it"};
    OK(faro_set_last_error(&why));
    return FARO_CODE_QUERY_FAILED;
  }
  faro_rows described = {.size = sizeof described};
  OK(faro_batch_describe(batch, &described));
  CHECK(described.address == rows->address && rows->bytes == 8 * (uint64_t)rows->row_count);
  for (uint32_t i = 0; i < rows->row_count; ++i) {
    uint64_t row;
    memcpy(&row, (const char*)rows->address + 8 * (size_t)i, 8);
    own->sum += row;
  }
  own->count += rows->row_count;
  return FARO_CODE_OK;
}

static struct exchanged exchanged[kNodes];
static void exchange(struct cluster* cluster, int node) {
  faro_worker* worker = cluster->workers[node];
  struct exchanged* own = &exchanged[node];
  *own = (struct exchanged){.next = (uint64_t)node * kRows, .end = (uint64_t)(node + 1) * kRows};
  faro_shuffle* shuffle = open_shuffle(cluster, node, 2, 8);
  faro_exchange_part part = {.size = sizeof part, .shuffle = shuffle, .context = own};
  faro_exchange_part* const parts[] = {&part};
  FAILED(faro_worker_exchange(worker, parts, 1, FARO_WAIT_FOREVER), FARO_CODE_WRONG_STATE);
  part.produce = produce;
  part.consume = consume;
  CHECK(faro_worker_exchange(worker, parts, 1, FARO_WAIT_FOREVER) == FARO_OUTCOME_END_OF_STREAM);
  CHECK(part.ended == 1);
  faro_shuffle_destroy(shuffle);
  end_query(cluster, node);
}
static faro_shuffle* to_fail[kNodes];
static void open_to_fail(struct cluster* cluster, int node) {
  to_fail[node] = open_shuffle(cluster, node, 0, 8);
}
static void fail_exchange(struct cluster* cluster, int node) {
  faro_shuffle* shuffle = to_fail[node];
  struct exchanged own = {.end = kRows, .fails = node};
  faro_exchange_part part = {.size = sizeof part,
                             .shuffle = shuffle,
                             .produce = produce,
                             .consume = consume,
                             .context = &own};
  faro_exchange_part* const parts[] = {&part};
  FAILED(faro_worker_exchange(cluster->workers[node], parts, 1, FARO_WAIT_FOREVER),
         FARO_CODE_QUERY_FAILED);
  CHECK(strstr(last_message(), "no room for it") != NULL);
  faro_shuffle_destroy(shuffle);
  FAILED(faro_worker_end_query(cluster->workers[node], &cluster->query, FARO_CODE_OK, NULL,
                               FARO_WAIT_FOREVER),
         FARO_CODE_QUERY_FAILED);
}
static void sends_and_receives_together(void) {
  struct cluster cluster = open_cluster();
  on_workers(&cluster, exchange);
  CHECK(exchanged[0].count + exchanged[1].count == kNodes * kRows);
  const uint64_t rows = kNodes * kRows;
  CHECK(exchanged[0].sum + exchanged[1].sum == rows * (rows - 1) / 2);
  OK(faro_session_begin_query(cluster.sessions[0], &cluster.query));
  on_workers(&cluster, open_to_fail); /* before the query fails */
  on_workers(&cluster, fail_exchange);
  close_cluster(&cluster);
}

/* --- groups_rows_of_a_schema */

struct grouped {
  uint64_t groups;
  uint64_t rows;
  uint64_t sum;
};
static struct grouped grouped[kNodes];
static const faro_column columns[] = {{.type = FARO_COLUMN_STRING}, {.type = FARO_COLUMN_INT64}};
static const uint32_t group_keys[] = {0};
static const faro_aggregate functions[] = {{.function = FARO_FUNCTION_COUNT_ROWS},
                                           {.function = FARO_FUNCTION_SUM, .column = 1}};
static faro_aggregation_spec aggregation_spec(const struct cluster* cluster) {
  return (faro_aggregation_spec){.size = sizeof(faro_aggregation_spec),
                                 .query = cluster->query,
                                 .columns = columns,
                                 .keys = group_keys,
                                 .aggregates = functions,
                                 .column_count = 2,
                                 .key_count = 1,
                                 .aggregate_count = 2};
}
/* A row: its length, the number, the length of the text, the text. */
enum { kTextRowBytes = 4 + 8 + 4 + 2 };
static void write_text_row(char* to, uint64_t number) {
  const uint32_t bytes = kTextRowBytes - 4, text_bytes = 2;
  memcpy(to, &bytes, 4);
  memcpy(to + 4, &number, 8);
  memcpy(to + 12, &text_bytes, 4);
  to[16] = 'k';
  to[17] = (char)('a' + number % 10);
}
static void take_groups(faro_aggregation* aggregation, struct grouped* own) {
  faro_rows groups = {.size = sizeof groups};
  faro_outcome outcome;
  while ((outcome = faro_aggregation_next(aggregation, FARO_WAIT_FOREVER, &groups)) ==
         FARO_OUTCOME_DONE) {
    CHECK(groups.row_bytes == 0);
    const char* at = groups.address;
    for (uint32_t i = 0; i < groups.row_count; ++i) {
      uint32_t bytes;
      uint64_t values[2];
      memcpy(&bytes, at, sizeof bytes);
      CHECK(bytes == sizeof values + 4 + 2);
      memcpy(values, at + 4, sizeof values);
      CHECK(at[4 + sizeof values + 4] == 'k');
      ++own->groups;
      own->rows += values[0];
      own->sum += values[1];
      at += 4 + bytes;
    }
  }
  CHECK(outcome == FARO_OUTCOME_END_OF_STREAM);
}
/* What a node shows of its aggregations: how many live, the last of these, and all added up. */
struct shown_operators {
  uint32_t count;
  faro_operator_metrics last;
  faro_operator_metrics total;
};
static void show_operator(void* context, const faro_operator_metrics* metrics) {
  struct shown_operators* shown = context;
  CHECK(metrics->size == sizeof *metrics && metrics->version == FARO_ABI_VERSION);
  if (metrics->kind != 1) return;
  if (metrics->is_total == 1) {
    shown->total = *metrics;
  } else {
    shown->last = *metrics;
    ++shown->count;
  }
}
static void group_rows(struct cluster* cluster, int node) {
  const faro_aggregation_spec spec = aggregation_spec(cluster);
  faro_aggregation* aggregation = NULL;
  OK(faro_worker_make_aggregation(cluster->workers[node], &spec, &aggregation));
  faro_aggregation_info info = {.size = sizeof info};
  OK(faro_aggregation_describe(aggregation, &info));
  CHECK(info.column_count == 3 && info.row_bytes == 0);
  CHECK(info.columns[0].type == FARO_COLUMN_STRING && info.columns[2].type == FARO_COLUMN_INT64);
  faro_rows groups = {.size = sizeof groups};
  FAILED(faro_aggregation_next(aggregation, FARO_WAIT_NONE, &groups), FARO_CODE_WRONG_STATE);
  REFUSED(faro_aggregation_status(aggregation), FARO_CODE_WRONG_STATE);
  static char rows[kNodes][kRows * kTextRowBytes];
  for (uint64_t i = 0; i < kRows; ++i) write_text_row(&rows[node][i * kTextRowBytes], i);
  faro_added added = {.size = sizeof added};
  for (size_t at = 0; at < sizeof rows[node]; at += added.bytes) {
    const faro_outcome outcome = faro_aggregation_add(
        aggregation, &rows[node][at], sizeof rows[node] - at, FARO_WAIT_FOREVER, &added);
    CHECK(outcome == FARO_OUTCOME_DONE && added.rows == added.bytes / kTextRowBytes);
  }
  FAILED(faro_aggregation_add(aggregation, rows[node], 3, FARO_WAIT_FOREVER, &added),
         FARO_CODE_INVALID_ARGUMENT);
  CHECK(added.rows == 0 && strstr(last_message(), "schema(STRING, LONG)") != NULL);
  DONE(faro_aggregation_finish(aggregation, FARO_WAIT_FOREVER));
  take_groups(aggregation, &grouped[node]);
  faro_aggregation_metrics metrics = {.size = sizeof metrics};
  OK(faro_aggregation_read_metrics(aggregation, &metrics));
  CHECK(metrics.rows == kRows && metrics.groups == grouped[node].groups);
  struct shown_operators shown = {0};
  OK(faro_session_read_operators(cluster->sessions[node], show_operator, &shown));
  CHECK(shown.count == 1 && shown.last.worker == (uint32_t)node);
  CHECK(shown.last.stage == spec.stage && shown.last.query.counter == spec.query.counter);
  CHECK(shown.last.rows_in == kRows && shown.last.rows_out == metrics.groups);
  CHECK(shown.last.peak_bytes == metrics.peak_bytes);
  faro_aggregation_destroy(aggregation);
  shown.count = 0;
  OK(faro_session_read_operators(cluster->sessions[node], show_operator, &shown));
  CHECK(shown.count == 0 && shown.total.worker == (uint32_t)node);
  CHECK(shown.total.rows_in == kRows && shown.total.rows_out == metrics.groups);
  CHECK(shown.total.held_bytes == 0 && shown.total.query.counter == 0);
  end_query(cluster, node);
}
static void refuse_aggregations(struct cluster* cluster) {
  const faro_code invalid = FARO_CODE_INVALID_ARGUMENT;
  faro_worker* worker = cluster->workers[0];
  faro_aggregation* aggregation = NULL;
  faro_aggregation_spec spec = aggregation_spec(cluster);
  REFUSED(faro_worker_make_aggregation(NULL, &spec, &aggregation), invalid);
  REFUSED(faro_worker_make_aggregation(worker, NULL, &aggregation), invalid);
  REFUSED(faro_worker_make_aggregation(worker, &spec, NULL), invalid);
  spec.keys = NULL;
  REFUSED(faro_worker_make_aggregation(worker, &spec, &aggregation), invalid);
  spec.key_count = 0;
  const faro_column unknown[] = {{.type = 300}, {.type = FARO_COLUMN_INT64}};
  spec.columns = unknown;
  REFUSED(faro_worker_make_aggregation(worker, &spec, &aggregation), invalid);
  CHECK(strstr(last_message(), "column 0") != NULL);
  const faro_aggregate wrong[] = {{.function = -1}, {.function = FARO_FUNCTION_SUM, .column = 0}};
  spec.columns = columns;
  spec.aggregates = wrong;
  REFUSED(faro_worker_make_aggregation(worker, &spec, &aggregation), invalid);
  spec.aggregates = &wrong[1];
  spec.aggregate_count = 1;
  REFUSED(faro_worker_make_aggregation(worker, &spec, &aggregation), invalid);
  CHECK(strstr(last_message(), "sum(column 0)") != NULL && aggregation == NULL);
  faro_aggregation_info info = {.size = sizeof info};
  REFUSED(faro_aggregation_describe(NULL, &info), invalid);
  faro_added added = {.size = sizeof added};
  FAILED(faro_aggregation_add(NULL, NULL, 0, FARO_WAIT_NONE, &added), invalid);
  FAILED(faro_aggregation_finish(NULL, FARO_WAIT_NONE), invalid);
  faro_rows groups = {.size = sizeof groups};
  FAILED(faro_aggregation_next(NULL, FARO_WAIT_NONE, &groups), invalid);
  FAILED(faro_aggregation_stop(NULL), invalid);
  REFUSED(faro_aggregation_status(NULL), invalid);
  faro_aggregation_metrics metrics = {.size = sizeof metrics};
  REFUSED(faro_aggregation_read_metrics(NULL, &metrics), invalid);
  faro_aggregation_destroy(NULL);
}
static void stop_grouping(struct cluster* cluster, int node) {
  const faro_aggregation_spec spec = aggregation_spec(cluster);
  faro_aggregation* aggregation = NULL;
  OK(faro_worker_make_aggregation(cluster->workers[node], &spec, &aggregation));
  DONE(faro_aggregation_stop(aggregation));
  DONE(faro_aggregation_finish(aggregation, FARO_WAIT_FOREVER));
  struct grouped none = {0};
  take_groups(aggregation, &none);
  CHECK(none.groups == 0);
  faro_aggregation_destroy(aggregation);
  end_query(cluster, node);
}
static void groups_rows_of_a_schema(void) {
  struct cluster cluster = open_cluster();
  on_workers(&cluster, group_rows);
  CHECK(grouped[0].groups + grouped[1].groups == 10);
  CHECK(grouped[0].rows + grouped[1].rows == kNodes * kRows);
  const uint64_t rows = kRows;
  CHECK(grouped[0].sum + grouped[1].sum == kNodes * (rows * (rows - 1) / 2));
  OK(faro_session_begin_query(cluster.sessions[0], &cluster.query));
  on_workers(&cluster, stop_grouping);
  OK(faro_session_begin_query(cluster.sessions[0], &cluster.query));
  refuse_aggregations(&cluster);
  close_cluster(&cluster);
}

/* --- leaves_in_rings_what_a_loop_takes */

static uint64_t frames_spilled(const faro_worker* worker) {
  faro_worker_metrics metrics = {.size = sizeof metrics};
  OK(faro_worker_read_metrics(worker, &metrics));
  return metrics.frames_spilled;
}
static int32_t has_spilled(void* worker) { return frames_spilled(worker) > 0; }

static pthread_barrier_t is_full;
/* Worker 1 fills the ring to worker 0, which waits; only what it says that it takes stays there. */
static void take_by_a_loop(struct cluster* cluster, int node) {
  faro_worker* worker = cluster->workers[node];
  faro_shuffle* shuffle = open_shuffle(cluster, node, 3, 8);
  uint64_t rows = 0;
  if (node == 1) {
    while (faro_sender_send(shuffle, 0, &rows, 8, FARO_WAIT_NONE) == FARO_OUTCOME_DONE) ++rows;
    DONE(faro_sender_flush(shuffle));
  }
  pthread_barrier_wait(&is_full);
  if (node == 0) {
    faro_shuffle* const both[] = {shuffle, shuffle};
    CHECK(faro_worker_wait_taking(worker, both, 2, never, NULL, 20 * 1000 * 1000) ==
          FARO_OUTCOME_DEADLINE);
    CHECK(frames_spilled(worker) == 0);
    DONE(faro_worker_wait_until(worker, has_spilled, worker, FARO_WAIT_FOREVER));
  } else {
    DONE(faro_sender_send(shuffle, 0, &rows, 8, FARO_WAIT_FOREVER));
  }
  DONE(faro_sender_finish(shuffle, FARO_WAIT_FOREVER));
  faro_batch* batch = faro_batch_create();
  while (faro_receiver_receive(shuffle, batch, FARO_WAIT_FOREVER, NULL) == FARO_OUTCOME_DONE) {
  }
  faro_batch_destroy(batch);
  faro_shuffle_destroy(shuffle);
  end_query(cluster, node);
}
static int32_t destroy_it(void* shuffle) {
  faro_shuffle_destroy(shuffle);
  return 1;
}
static void destroy_what_it_takes(struct cluster* cluster, int node) {
  faro_shuffle* shuffle = to_fail[node];
  DONE(faro_worker_wait_taking(cluster->workers[node], &shuffle, 1, destroy_it, shuffle,
                               FARO_WAIT_FOREVER));
  FAILED(faro_worker_end_query(cluster->workers[node], &cluster->query, FARO_CODE_OK, NULL,
                               FARO_WAIT_FOREVER),
         FARO_CODE_QUERY_CANCELLED);
}
static void leaves_in_rings_what_a_loop_takes(void) {
  struct cluster cluster = open_cluster();
  CHECK(pthread_barrier_init(&is_full, NULL, kNodes) == 0);
  on_workers(&cluster, take_by_a_loop);
  CHECK(pthread_barrier_destroy(&is_full) == 0);
  OK(faro_session_begin_query(cluster.sessions[0], &cluster.query));
  on_workers(&cluster, open_to_fail);
  on_workers(&cluster, destroy_what_it_takes);
  close_cluster(&cluster);
}

/* --- tells_settings_and_failures */

struct settings {
  faro_config* config;
  int count;
  int has_ring_bytes;
};
static void expect_setting(void* context, const faro_setting* setting) {
  struct settings* settings = context;
  const char* value = NULL;
  CHECK(setting->size == sizeof *setting && setting->version == FARO_ABI_VERSION);
  OK(faro_config_get(settings->config, setting->name, &value));
  CHECK(setting->default_value != NULL && strlen(setting->help) > 0);
  ++settings->count;
  if (strcmp(setting->name, "ring.bytes") != 0) return;
  ++settings->has_ring_bytes;
  CHECK(strcmp(setting->default_value, value) == 0);
}

static void tells_settings_and_failures(void) {
  struct settings settings = {faro_config_create(), 0, 0};
  OK(faro_config_list(expect_setting, &settings));
  CHECK(settings.count > 30 && settings.has_ring_bytes == 1);
  faro_config_destroy(settings.config);
  CHECK(faro_has_loaded("/nowhere/libfaro_verbs.so") == 0);

  char message[] = "of another thread";
  faro_error failure = {.size = sizeof failure,
                        .code = FARO_CODE_PEER_LOST,
                        .has_node = 1,
                        .has_query = 1,
                        .has_stage = 1,
                        .node = 3,
                        .stage = 5,
                        .query = {.counter = 7, .incarnation = 9, .issuer = 2},
                        .message = message};
  OK(faro_set_last_error(&failure));
  memset(message, 'x', sizeof message - 1);
  faro_error last = last_error();
  CHECK(last.code == FARO_CODE_PEER_LOST && last.category == FARO_CATEGORY_PEER);
  CHECK(last.has_node == 1 && last.node == 3 && last.has_stage == 1 && last.stage == 5);
  CHECK(last.has_query == 1 && last.query.counter == 7 && last.query.incarnation == 9 &&
        last.query.issuer == 2);
  CHECK(strcmp(last.message, "of another thread") == 0);
  failure.code = FARO_CODE_OK; /* changes nothing */
  OK(faro_set_last_error(&failure));
  CHECK(last_error().code == FARO_CODE_PEER_LOST);
  failure.code = FARO_CODE_CLOSED;
  failure.size = offsetof(faro_error, has_node); /* knows a code alone */
  OK(faro_set_last_error(&failure));
  last = last_error();
  CHECK(last.code == FARO_CODE_CLOSED && last.has_node == 0 && last.has_query == 0 &&
        last.has_stage == 0 && strcmp(last.message, "") == 0);
}

/* --- writes_rows_in_place */

static faro_cursor* cursor_of(const faro_open_frames* frames, uint32_t receiver) {
  return (faro_cursor*)((char*)frames->cursors + (size_t)receiver * frames->cursor_bytes);
}

/* Puts a row as a binding does: at the cursor, once there is room. */
static void put(faro_shuffle* shuffle, const faro_open_frames* frames, uint32_t receiver,
                const void* row, uint32_t bytes) {
  faro_cursor* cursor = cursor_of(frames, receiver);
  const size_t needed = bytes + (frames->row_bytes == 0 ? sizeof bytes : 0);
  if ((size_t)(cursor->end - cursor->at) < needed) {
    faro_claim claim = {.size = sizeof claim};
    DONE(faro_sender_make_room(shuffle, receiver, bytes, FARO_WAIT_FOREVER, &claim));
    CHECK(claim.bytes == bytes);
    if (claim.data != NULL) {
      memcpy(claim.data, row, bytes);
      OK(faro_sender_commit(shuffle, bytes));
      return;
    }
    CHECK((size_t)(cursor->end - cursor->at) >= needed);
  }
  if (frames->row_bytes == 0) {
    memcpy(cursor->at, &bytes, sizeof bytes);
    cursor->at += sizeof bytes;
    ++frames->row_counts[receiver];
  }
  memcpy(cursor->at, row, bytes);
  cursor->at += bytes;
}

/* A commit of more than was claimed is refused, whatever -1 of a binding becomes; the claim stays. */
static void refuse_commits(faro_shuffle* shuffle, uint32_t receiver, size_t bytes) {
  faro_claim claim = {.size = sizeof claim};
  DONE(faro_sender_claim(shuffle, receiver, bytes, FARO_WAIT_FOREVER, &claim));
  const size_t too_many[] = {bytes + 1, bytes + 47, SIZE_MAX - 1, SIZE_MAX, (size_t)-16};
  for (size_t i = 0; i < sizeof too_many / sizeof *too_many; ++i)
    REFUSED(faro_sender_commit(shuffle, too_many[i]), FARO_CODE_INVALID_ARGUMENT);
  memset(claim.data, 7, bytes);
  OK(faro_sender_abort(shuffle));
  REFUSED(faro_sender_commit(shuffle, SIZE_MAX), FARO_CODE_WRONG_STATE);
  /* Whoever makes room ends the claim of before. */
  DONE(faro_sender_claim(shuffle, receiver, bytes, FARO_WAIT_FOREVER, &claim));
  const size_t small = bytes < 1000 ? bytes : 13;
  DONE(faro_sender_make_room(shuffle, receiver, small, FARO_WAIT_FOREVER, &claim));
  CHECK(claim.data == NULL && claim.bytes == small);
  REFUSED(faro_sender_commit(shuffle, small), FARO_CODE_WRONG_STATE);
}

static void put_rows(struct cluster* cluster, int node, uint32_t stage, uint32_t row_bytes) {
  faro_shuffle* shuffle = open_shuffle(cluster, node, stage, row_bytes);
  faro_open_frames frames = {.size = sizeof frames};
  OK(faro_sender_open_frames(shuffle, &frames));
  CHECK(frames.receiver_count == kNodes && frames.row_bytes == row_bytes &&
        frames.cursor_bytes == sizeof(faro_cursor));
  refuse_commits(shuffle, 0, row_bytes != 0 ? row_bytes : 13);
  if (row_bytes == 0) refuse_commits(shuffle, 0, 200000);
  char row[256];
  uint64_t sent = 0;
  for (uint32_t i = 0; i < 3000; ++i) {
    const uint32_t bytes = row_bytes != 0 ? row_bytes : i % 200;
    memset(row, (int)(i % 251), bytes);
    for (uint32_t receiver = 0; receiver < kNodes; ++receiver)
      put(shuffle, &frames, receiver, row, bytes);
    sent += bytes;
  }
  static const char large[200000] = "larger than a frame";
  if (row_bytes == 0) put(shuffle, &frames, (uint32_t)node, large, sizeof large);
  DONE(faro_sender_finish(shuffle, FARO_WAIT_FOREVER));
  REFUSED(faro_sender_commit(shuffle, 1), FARO_CODE_WRONG_STATE); /* nothing is claimed */

  faro_batch* batch = faro_batch_create();
  faro_rows got = {.size = sizeof got};
  uint64_t received = 0, large_rows = 0, count = 0;
  faro_outcome outcome;
  while ((outcome = faro_receiver_receive(shuffle, batch, FARO_WAIT_FOREVER, &got)) ==
         FARO_OUTCOME_DONE) {
    count += got.row_count;
    if (got.row_bytes == sizeof large) {
      CHECK(memcmp(got.address, large, sizeof large) == 0);
      ++large_rows;
    } else {
      received += got.bytes - (row_bytes == 0 ? sizeof(uint32_t) * (uint64_t)got.row_count : 0);
    }
  }
  CHECK(outcome == FARO_OUTCOME_END_OF_STREAM);
  CHECK(received == kNodes * sent && large_rows == (row_bytes == 0 ? 1 : 0) &&
        count == kNodes * 3000 + large_rows);
  faro_batch_destroy(batch);
  faro_shuffle_destroy(shuffle);
}

static void put_both(struct cluster* cluster, int node) {
  put_rows(cluster, node, 0, 24);
  put_rows(cluster, node, 1, 0);
  end_query(cluster, node);
}

static void writes_rows_in_place(void) {
  struct cluster cluster = open_cluster();
  on_workers(&cluster, put_both);
  close_cluster(&cluster);
}

/* --- tells_why_a_query_failed */

static void open_part(struct cluster* cluster, int node) {
  cluster->shuffles[node] = open_shuffle(cluster, node, 3, 8);
}

static void fail_part(struct cluster* cluster, int node) {
  faro_shuffle* shuffle = cluster->shuffles[node];
  faro_outcome outcome;
  if (node == 1) {
    outcome = faro_worker_end_query(cluster->workers[1], &cluster->query, FARO_CODE_QUERY_FAILED,
                                    "the table is gone", FARO_WAIT_FOREVER);
  } else {
    faro_batch* batch = faro_batch_create();
    CHECK(faro_receiver_receive(shuffle, batch, FARO_WAIT_FOREVER, NULL) == FARO_OUTCOME_FAILED);
    faro_batch_destroy(batch);
    CHECK(faro_shuffle_status(shuffle) != FARO_CODE_OK);
    faro_shuffle_destroy(shuffle);
    outcome = faro_worker_end_query(cluster->workers[0], &cluster->query, FARO_CODE_OK, NULL,
                                    FARO_WAIT_FOREVER);
  }
  CHECK(outcome == FARO_OUTCOME_FAILED);
  const faro_error error = last_error();
  CHECK(error.category == FARO_CATEGORY_QUERY && error.has_query == 1 &&
        memcmp(&error.query, &cluster->query, sizeof error.query) == 0);
  CHECK(error.has_node == 1 && error.node == 1);
  CHECK(strcmp(error.message, "worker 1 failed: the table is gone") == 0);
  if (node == 1) { /* what was open is closed */
    const uint64_t row = 1;
    FAILED(faro_sender_send(shuffle, 0, &row, 8, FARO_WAIT_NONE), FARO_CODE_QUERY_FAILED);
    REFUSED(faro_sender_name_format(shuffle, "late"), FARO_CODE_QUERY_FAILED);
    REFUSED(faro_receiver_name_format(shuffle, "late"), FARO_CODE_QUERY_FAILED);
    OK(faro_shuffle_close(shuffle));
    faro_shuffle_destroy(shuffle);
  }
}

static void end_cancelled(struct cluster* cluster, int node) {
  FAILED(faro_worker_end_query(cluster->workers[node], &cluster->query, FARO_CODE_OK, NULL,
                               FARO_WAIT_FOREVER),
         FARO_CODE_QUERY_CANCELLED);
}

static void cancel(struct cluster* cluster) {
  faro_shuffle** shuffles = cluster->shuffles;
  for (int i = 0; i < kNodes; ++i) shuffles[i] = open_shuffle(cluster, i, 0, 8);
  /* The query fails while a row is written at the cursor: the next call closes the frame. */
  faro_open_frames frames = {.size = sizeof frames};
  OK(faro_sender_open_frames(shuffles[0], &frames));
  const faro_cursor* cursor = cursor_of(&frames, 1);
  faro_claim claim = {.size = sizeof claim};
  DONE(faro_sender_make_room(shuffles[0], 1, 8, FARO_WAIT_NONE, &claim));
  CHECK(claim.data == NULL && cursor->end - cursor->at >= 8);
  OK(faro_session_cancel_query(cluster->sessions[0], &cluster->query, "the user left"));
  FAILED(faro_sender_make_room(shuffles[0], 1, 8, FARO_WAIT_NONE, &claim),
         FARO_CODE_QUERY_CANCELLED);
  CHECK(cursor->at == cursor->end);
  FAILED(faro_sender_claim(shuffles[0], 1, 8, FARO_WAIT_NONE, &claim), FARO_CODE_QUERY_CANCELLED);
  CHECK(cursor->at == cursor->end);
  for (int i = 0; i < kNodes; ++i) {
    faro_batch* batch = faro_batch_create();
    FAILED(faro_receiver_receive(shuffles[i], batch, FARO_WAIT_FOREVER, NULL),
           FARO_CODE_QUERY_CANCELLED);
    CHECK(strstr(last_message(), "the user left") != NULL);
    faro_batch_destroy(batch);
    faro_shuffle_destroy(shuffles[i]);
    OK(faro_worker_release_ownership(cluster->workers[i]));
  }
  on_workers(cluster, end_cancelled);
}

static void tells_why_a_query_failed(void) {
  struct cluster cluster = open_cluster();
  on_workers(&cluster, open_part); /* by both, before a part fails: a failed query opens nothing */
  on_workers(&cluster, fail_part);
  OK(faro_session_begin_query(cluster.sessions[0], &cluster.query));
  const uint32_t both[] = {0, 1};
  for (int i = 0; i < kNodes; ++i)
    OK(faro_session_declare_query(cluster.sessions[i], &cluster.query, both, 2));
  cancel(&cluster);
  close_cluster(&cluster);
}

/* --- opens_and_closes_without_waiting */

static void opens_and_closes_without_waiting(void) {
  struct cluster cluster = open_cluster();
  faro_topology topology = {.size = sizeof topology};
  OK(faro_session_describe(cluster.sessions[1], &topology));
  CHECK(topology.node == 1 && topology.node_count == 2 && topology.worker_count == 2 &&
        topology.local_worker_count == 1 && topology.first_worker == 1 &&
        faro_worker_number(cluster.workers[1]) == 1);
  struct answer answer = NO_ANSWER;
  OK(faro_session_await_node_async(cluster.sessions[0], 1, NULL, FARO_WAIT_FOREVER, done, &answer));
  OK(await(&answer));
  for (int i = 0; i < kNodes; ++i) {
    OK(faro_session_close_async(cluster.sessions[i], done, &answer));
    OK(await(&answer));
  }

  /* Nobody else comes; the call is cancelled. */
  faro_config* config = config_of(&cluster, 0);
  faro_cancellation* cancellation = faro_cancellation_create();
  OK(faro_cancellation_cancel(cancellation));
  faro_session* session = NULL;
  REFUSED(faro_session_open(config, NULL, cancellation, &session), FARO_CODE_CANCELLED);
  OK(faro_session_open_async(config, NULL, cancellation, opened, &answer));
  CHECK(await(&answer) == FARO_CODE_CANCELLED && answer.session == NULL && session == NULL);
  faro_cancellation_destroy(cancellation);
  faro_config_destroy(config);
}

/* --- tells_rings_and_when_they_change */

static faro_rings rings_of(faro_worker* worker) {
  faro_rings rings = {.size = sizeof rings};
  OK(faro_worker_rings(worker, &rings));
  return rings;
}

/* Whether these bytes lie in a ring to or from this worker. */
static int is_in_ring(const faro_rings* rings, const void* address, uint64_t bytes, uint32_t peer,
                      uint32_t is_outgoing) {
  for (uint32_t i = 0; i < rings->ring_count; ++i) {
    const faro_ring* ring =
        (const faro_ring*)((const char*)rings->rings + (size_t)i * rings->ring_bytes);
    const uint64_t offset = (uint64_t)((const char*)address - (const char*)ring->base);
    if (ring->peer == peer && ring->is_outgoing == is_outgoing && offset < ring->bytes &&
        bytes <= ring->bytes - offset)
      return 1;
  }
  return 0;
}

static void use_rings(struct cluster* cluster, int node) {
  faro_shuffle* shuffle = open_shuffle(cluster, node, 0, 8);
  const faro_rings rings = rings_of(cluster->workers[node]);
  CHECK(rings.ring_bytes == sizeof(faro_ring) && rings.ring_count >= 2 * kNodes);
  faro_open_frames frames = {.size = sizeof frames};
  OK(faro_sender_open_frames(shuffle, &frames));
  for (uint32_t receiver = 0; receiver < kNodes; ++receiver) {
    const uint64_t row = 1;
    CHECK(cursor_of(&frames, receiver)->at == cursor_of(&frames, receiver)->end);
    DONE(faro_sender_send(shuffle, receiver, &row, sizeof row, FARO_WAIT_FOREVER));
    const faro_cursor* cursor = cursor_of(&frames, receiver);
    CHECK(is_in_ring(&rings, cursor->at, (uint64_t)(cursor->end - cursor->at), receiver, 1));
  }
  DONE(faro_sender_finish(shuffle, FARO_WAIT_FOREVER));
  faro_batch* batch = faro_batch_create();
  faro_rows got = {.size = sizeof got};
  while (faro_receiver_receive(shuffle, batch, FARO_WAIT_FOREVER, &got) == FARO_OUTCOME_DONE)
    CHECK(is_in_ring(&rings, got.address, got.bytes, got.sender, 0));
  faro_batch_destroy(batch);
  faro_shuffle_destroy(shuffle);
  end_query(cluster, node);
}

static void tells_rings_and_when_they_change(void) {
  struct cluster cluster = open_cluster();
  on_workers(&cluster, use_rings);
  const faro_rings rings = rings_of(cluster.workers[0]);
  const uint64_t before = *rings.generation;
  CHECK(*rings_of(cluster.workers[0]).generation == before);

  faro_session_destroy(cluster.sessions[1]); /* the node leaves, and returns */
  faro_config* config = config_of(&cluster, 1);
  OK(faro_session_open(config, NULL, NULL, &cluster.sessions[1]));
  faro_config_destroy(config);
  OK(faro_session_worker(cluster.sessions[1], 0, &cluster.workers[1]));
  OK(faro_session_await_node(cluster.sessions[0], 1, NULL, FARO_WAIT_FOREVER));
  CHECK(faro_worker_wait_until(cluster.workers[0], never, NULL, FARO_WAIT_NONE) ==
        FARO_OUTCOME_WOULD_WAIT);
  CHECK(*rings.generation > before);
  OK(faro_worker_release_ownership(cluster.workers[0]));
  OK(faro_session_begin_query(cluster.sessions[0], &cluster.query));
  on_workers(&cluster, use_rings);
  close_cluster(&cluster);
}

/* --- wakes_event_loops */

struct turn {
  faro_shuffle* shuffle;
  faro_batch* batch;
  uint64_t received;
  int32_t over; /* all has come */
};
static int32_t receive(void* context) {
  struct turn* turn = context;
  faro_rows got = {.size = sizeof got};
  const faro_outcome outcome =
      faro_receiver_receive(turn->shuffle, turn->batch, FARO_WAIT_NONE, &got);
  if (outcome == FARO_OUTCOME_WOULD_WAIT) return 0;
  if (outcome == FARO_OUTCOME_DONE) turn->received += got.row_count;
  if (outcome == FARO_OUTCOME_END_OF_STREAM) turn->over = 1;
  OK(faro_batch_release(turn->batch));
  return 1;
}
static struct readiness {
  struct answer ready, forgotten;
} readiness[kNodes] = {{NO_ANSWER, NO_ANSWER}, {NO_ANSWER, NO_ANSWER}};
static void ready(void* context) { done(&((struct readiness*)context)->ready, FARO_CODE_OK); }
static void forget(void* context) { done(&((struct readiness*)context)->forgotten, FARO_CODE_OK); }

/* Worker 0 is woken by its descriptor, worker 1 by a callback. */
static void receive_by_events(struct cluster* cluster, int node) {
  faro_worker* worker = cluster->workers[node];
  struct turn turn = {open_shuffle(cluster, node, 0, 8), faro_batch_create(), 0, 0};
  for (uint64_t row = 0; row < 1000; ++row)
    DONE(faro_sender_send(turn.shuffle, (uint32_t)(row % kNodes), &row, sizeof row,
                          FARO_WAIT_FOREVER));
  struct readiness* own = &readiness[node];
  int32_t descriptor = -1;
  if (node == 0) {
    OK(faro_worker_ready_descriptor(worker, &descriptor));
    REFUSED(faro_worker_on_ready(worker, ready, own, forget), FARO_CODE_WRONG_STATE);
  } else {
    OK(faro_worker_on_ready(worker, ready, own, forget));
    OK(faro_worker_on_ready(worker, ready, own, forget)); /* takes the place of the first */
  }
  OK(await(&own->forgotten));
  DONE(faro_sender_finish(turn.shuffle, FARO_WAIT_FOREVER));
  while (turn.over == 0) {
    const faro_outcome outcome = faro_worker_arm(worker, receive, &turn, FARO_PROGRESS_TURN);
    if (outcome == FARO_OUTCOME_DONE) continue;
    CHECK(outcome == FARO_OUTCOME_WOULD_WAIT);
    if (node == 0) {
      struct pollfd event = {descriptor, POLLIN, 0};
      CHECK(poll(&event, 1, 30000) == 1);
    } else {
      OK(await(&own->ready));
    }
  }
  CHECK(turn.received == 1000);
  faro_batch_destroy(turn.batch);
  faro_shuffle_destroy(turn.shuffle);
  end_query(cluster, node);
}

static void wakes_event_loops(void) {
  struct cluster cluster = open_cluster();
  on_workers(&cluster, receive_by_events);
  CHECK(readiness[1].forgotten.count == 0); /* its session is open */
  close_cluster(&cluster);
  OK(await(&readiness[1].forgotten));
  CHECK(readiness[0].forgotten.count == 0);
}

/* --- tells_of_nodes_and_queries */

struct told {
  struct answer lost, left, returned, failed;
  uint32_t node;
  faro_query_id query;
};
static void on_lost(void* context, uint32_t node, faro_code code) {
  (void)node;
  done(&((struct told*)context)->lost, code);
}
static void on_left(void* context, uint32_t node) {
  ((struct told*)context)->node = node;
  done(&((struct told*)context)->left, FARO_CODE_OK);
}
static void on_returned(void* context, uint32_t node) {
  ((struct told*)context)->node = node;
  done(&((struct told*)context)->returned, FARO_CODE_OK);
}
static void on_failed(void* context, const faro_query_id* query, faro_code code) {
  struct told* told = context;
  CHECK(last_error().code == code && strstr(last_message(), "enough") != NULL);
  told->query = *query;
  done(&told->failed, code);
}

static void tells_of_nodes_and_queries(void) {
  struct cluster cluster = open_cluster();
  struct told told = {
      .lost = NO_ANSWER, .left = NO_ANSWER, .returned = NO_ANSWER, .failed = NO_ANSWER};
  faro_session_listener listener = {0};
  REFUSED(faro_session_listen(cluster.sessions[0], &listener),
          FARO_CODE_INVALID_ARGUMENT); /* no size */
  listener = (faro_session_listener){.size = sizeof listener,
                                     .context = &told,
                                     .node_lost = on_lost,
                                     .node_left = on_left,
                                     .node_returned = on_returned,
                                     .query_failed = on_failed};
  OK(faro_session_listen(cluster.sessions[0], &listener));

  faro_shuffle* shuffle = open_shuffle(&cluster, 0, 0, 8);
  OK(faro_session_cancel_query(cluster.sessions[0], &cluster.query, "enough"));
  CHECK(await(&told.failed) == FARO_CODE_QUERY_CANCELLED);
  CHECK(memcmp(&told.query, &cluster.query, sizeof told.query) == 0);
  faro_shuffle_destroy(shuffle);

  faro_session_destroy(cluster.sessions[1]);
  OK(await(&told.left));
  CHECK(told.node == 1);
  faro_config* config = config_of(&cluster, 1);
  OK(faro_session_open(config, NULL, NULL, &cluster.sessions[1]));
  faro_config_destroy(config);
  OK(await(&told.returned));
  CHECK(told.node == 1 && told.lost.count == 0);
  close_cluster(&cluster);
}

/* --- nodes_come_and_go */

struct changes {
  struct answer added, drained, removed;
};
static void on_added(void* context, uint32_t node) {
  done(&((struct changes*)context)->added, node == 1 ? FARO_CODE_OK : FARO_CODE_INTERNAL_ERROR);
}
static void on_drained(void* context, uint32_t node) {
  done(&((struct changes*)context)->drained, node == 1 ? FARO_CODE_OK : FARO_CODE_INTERNAL_ERROR);
}
static void on_removed(void* context, uint32_t node) {
  done(&((struct changes*)context)->removed, node == 1 ? FARO_CODE_OK : FARO_CODE_INTERNAL_ERROR);
}

static void nodes_come_and_go(void) {
  struct cluster cluster = {.lane_ends = "workers"};
  faro_listening_socket* listeners[kNodes];
  for (int i = 0; i < kNodes; ++i) OK(faro_listening_socket_bind("127.0.0.1:0", &listeners[i]));
  struct changes changes = {.added = NO_ANSWER, .drained = NO_ANSWER, .removed = NO_ANSWER};
  const faro_session_listener listener = {.size = sizeof listener,
                                          .context = &changes,
                                          .node_added = on_added,
                                          .node_drained = on_drained,
                                          .node_removed = on_removed};
  for (int i = 0; i < kNodes; ++i) {
    if (i > 0) strcat(cluster.nodes, ",");
    strcat(cluster.nodes, faro_listening_socket_address(listeners[i]));
    faro_config* config = config_of(&cluster, i);
    OK(faro_config_set(config, "cluster.node_limit", "4"));
    if (i == 1) {
      REFUSED(faro_session_add_node(cluster.sessions[0], 1, "nowhere"), FARO_CODE_INVALID_ARGUMENT);
      OK(faro_session_add_node(cluster.sessions[0], 1,
                               faro_listening_socket_address(listeners[1])));
    }
    OK(faro_session_open(config, listeners[i], NULL, &cluster.sessions[i]));
    OK(faro_session_worker(cluster.sessions[i], 0, &cluster.workers[i]));
    if (i == 0) OK(faro_session_listen(cluster.sessions[0], &listener));
    faro_config_destroy(config);
    faro_listening_socket_destroy(listeners[i]);
  }
  OK(await(&changes.added));
  OK(faro_session_begin_query(cluster.sessions[0], &cluster.query));
  const uint32_t both[] = {0, 1};
  for (int i = 0; i < kNodes; ++i)
    OK(faro_session_declare_query(cluster.sessions[i], &cluster.query, both, 2));
  on_workers(&cluster, send_both);
  for (int i = 0; i < kNodes; ++i) OK(faro_session_drain_node(cluster.sessions[i], 1));
  OK(await(&changes.drained));
  OK(faro_session_remove_node(cluster.sessions[0], 1));
  OK(await(&changes.removed));
  REFUSED(faro_session_remove_node(cluster.sessions[0], 1), FARO_CODE_INVALID_ARGUMENT);
  close_cluster(&cluster);
}

/* --- structs_of_other_versions */

static void structs_of_other_versions(void) {
  struct cluster cluster = open_cluster();

  /* A caller that knows fewer fields: what lies behind them stays. */
  struct {
    faro_topology topology;
    uint32_t behind;
  } old;
  memset(&old, 0xff, sizeof old);
  old.topology.size = offsetof(faro_topology, node_count);
  OK(faro_session_describe(cluster.sessions[1], &old.topology));
  CHECK(old.topology.node == 1 && old.topology.version == FARO_ABI_VERSION &&
        old.topology.size == offsetof(faro_topology, node_count));
  CHECK(old.topology.node_count == UINT32_MAX && old.topology.first_worker == UINT32_MAX);

  /* One that knows more: the fields that this library does not know stay. */
  memset(&old, 0xff, sizeof old);
  old.topology.size = sizeof old;
  OK(faro_session_describe(cluster.sessions[1], &old.topology));
  CHECK(old.topology.first_worker == 1 && old.behind == UINT32_MAX);

  /* In a struct that the library reads, they have to be zero. */
  struct {
    faro_shuffle_spec spec;
    uint64_t behind;
  } newer = {{.size = sizeof newer, .query = cluster.query, .row_bytes = 8}, .behind = 1};
  faro_shuffle* shuffle = NULL;
  REFUSED(faro_worker_open_shuffle(cluster.workers[0], &newer.spec, &shuffle),
          FARO_CODE_INVALID_ARGUMENT);
  newer.behind = 0;
  OK(faro_worker_open_shuffle(cluster.workers[0], &newer.spec, &shuffle));
  faro_shuffle_destroy(shuffle);

  /* Fields behind its size count as zero. */
  OK(faro_session_begin_query(cluster.sessions[0], &newer.spec.query));
  newer.spec.stage = 1;
  newer.spec.sender_count = 1;
  newer.spec.size = offsetof(faro_shuffle_spec, senders);
  OK(faro_worker_open_shuffle(cluster.workers[0], &newer.spec, &shuffle));
  faro_shuffle_destroy(shuffle);
  OK(faro_worker_release_ownership(cluster.workers[0]));
  close_cluster(&cluster);
}

/* --- endpoints: two in one process, both used by this thread */

static const int32_t both = FARO_WAKE_FOR_FRAMES_AND_ROOM;

struct side {
  faro_endpoint* endpoint;
  faro_poller* poller;
  faro_channel_event events[4];
  size_t count, at;
};

static struct side open_side(const char* name, faro_accept accept, void* context,
                             const char* memory_limit) {
  struct side side;
  memset(&side, 0, sizeof side);
  faro_config* config = faro_config_create();
  OK(faro_config_set(config, "transport", "shm"));
  if (memory_limit != NULL) OK(faro_config_set(config, "memory.limit_bytes", memory_limit));
  faro_endpoint_spec spec;
  memset(&spec, 0, sizeof spec);
  spec.size = sizeof spec;
  spec.name = name;
  spec.channel_limit = 2;
  spec.accept = accept;
  spec.context = context;
  OK(faro_endpoint_open(config, &spec, &side.endpoint));
  faro_config_destroy(config);
  CHECK(faro_endpoint_poller_count(side.endpoint) == 1);
  OK(faro_endpoint_poller(side.endpoint, 0, &side.poller));
  return side;
}

static faro_channel_id dial(struct side* from, const struct side* to, uint32_t ring_bytes) {
  faro_channel_spec spec;
  memset(&spec, 0, sizeof spec);
  spec.size = sizeof spec;
  spec.send_bytes = spec.receive_bytes = ring_bytes;
  spec.greeting = "hi";
  spec.greeting_bytes = 2;
  faro_channel_id channel;
  OK(faro_poller_connect(from->poller, faro_endpoint_address(to->endpoint), &spec, &channel));
  return channel;
}

/* The next event, which is of that kind. */
static faro_channel_event expect(struct side* side, uint32_t kind) {
  while (side->at == side->count) {
    DONE(faro_poller_wait(side->poller, INT64_C(30000000000), both));
    side->at = 0;
    OK(faro_poller_poll(side->poller, side->events, 4, &side->count));
  }
  const faro_channel_event event = side->events[side->at++];
  CHECK(event.kind == kind);
  return event;
}
static void expect_frame(struct side* side, const char* text) {
  const faro_channel_event event = expect(side, FARO_CHANNEL_FRAME);
  CHECK(event.bytes == strlen(text) && memcmp(event.data, text, event.bytes) == 0);
  OK(faro_poller_release(side->poller, event.channel, event.token));
}
static void expect_closed(struct side* side, faro_channel_id channel, faro_code code) {
  const faro_channel_event event = expect(side, FARO_CHANNEL_CLOSED);
  CHECK(event.channel.index == channel.index && event.channel.generation == channel.generation);
  CHECK(faro_poller_status(side->poller, channel) == code);
}

static faro_outcome send_frame(struct side* side, faro_channel_id channel, const char* text) {
  faro_channel_claim claim;
  const size_t bytes = strlen(text);
  const faro_outcome outcome = faro_poller_claim(side->poller, channel, bytes, bytes, &claim);
  if (outcome != FARO_OUTCOME_DONE) return outcome;
  CHECK(claim.bytes == bytes);
  memcpy(claim.data, text, bytes);
  OK(faro_poller_commit(side->poller, channel, bytes, FARO_NOTICE_LOUD));
  OK(faro_poller_post(side->poller));
  return FARO_OUTCOME_DONE;
}

/* --- refuses_misuse_of_endpoints */

static void refuses_misuse_of_endpoints(void) {
  const faro_code invalid = FARO_CODE_INVALID_ARGUMENT;
  struct side side = open_side("alone", NULL, NULL, NULL);
  int32_t descriptor = -1;
  const faro_channel_id none = {7, 1};
  faro_channel_id channel;
  faro_channel_claim claim;
  faro_channel_event event;
  faro_channel_info info;
  faro_channel_rings rings;
  faro_channel_spec spec;
  faro_endpoint_spec endpoint_spec;
  memset(&info, 0, sizeof info);
  memset(&rings, 0, sizeof rings);
  memset(&spec, 0, sizeof spec);
  memset(&endpoint_spec, 0, sizeof endpoint_spec);
  size_t count = 0;
  int32_t entered = 0;
  faro_config* config = faro_config_create();
  faro_endpoint* endpoint = NULL;
  faro_poller* poller = NULL;

  REFUSED(faro_endpoint_open(NULL, NULL, &endpoint), invalid);
  endpoint_spec.size = sizeof endpoint_spec;
  endpoint_spec.answer_to_others_bytes = 1;
  REFUSED(faro_endpoint_open(config, &endpoint_spec, &endpoint), invalid);
  memset(&endpoint_spec, 0, sizeof endpoint_spec);
  REFUSED(faro_endpoint_open(config, NULL, NULL), invalid);
  REFUSED(faro_endpoint_open(config, &endpoint_spec, &endpoint), invalid); /* no size */
  endpoint_spec.size = sizeof endpoint_spec;
  endpoint_spec.poller_count = 65;
  REFUSED(faro_endpoint_open(config, &endpoint_spec, &endpoint), invalid);
  const uint32_t sizes[] = {65536, 5000};
  uint64_t memory[] = {7, 7};
  REFUSED(faro_endpoint_channel_memory(NULL, sizes, sizes, 1, memory), invalid);
  REFUSED(faro_endpoint_channel_memory(config, NULL, sizes, 1, memory), invalid);
  REFUSED(faro_endpoint_channel_memory(config, sizes, sizes, 1, NULL), invalid);
  REFUSED(faro_endpoint_channel_memory(config, sizes, sizes, 2, memory), invalid);
  CHECK(memory[0] == 7);
  OK(faro_endpoint_channel_memory(config, NULL, NULL, 0, NULL));
  OK(faro_endpoint_channel_memory(config, sizes, sizes, 1, memory));
  CHECK(memory[0] >= sizes[0] && memory[1] == 7);
  faro_config_destroy(config);
  CHECK(faro_endpoint_address(NULL) == NULL && faro_endpoint_poller_count(NULL) == 0);
  REFUSED(faro_endpoint_poller(NULL, 0, &poller), invalid);
  REFUSED(faro_endpoint_poller(side.endpoint, 1, &poller), invalid);
  REFUSED(faro_endpoint_poller(side.endpoint, 0, NULL), invalid);
  REFUSED(faro_endpoint_close(NULL), invalid);
  faro_endpoint_destroy(NULL);
  faro_ring_memory_destroy(NULL);
  faro_ring_memory_give_back(NULL);

  REFUSED(faro_poller_connect(NULL, "127.0.0.1:1", NULL, &channel), invalid);
  REFUSED(faro_poller_connect(side.poller, NULL, NULL, &channel), invalid);
  REFUSED(faro_poller_connect(side.poller, "127.0.0.1:1", NULL, NULL), invalid);
  REFUSED(faro_poller_connect(side.poller, "127.0.0.1", NULL, &channel), invalid);
  REFUSED(faro_poller_connect(side.poller, "127.0.0.1:1", &spec, &channel), invalid); /* no size */
  spec.size = sizeof spec;
  spec.greeting_bytes = 1;
  REFUSED(faro_poller_connect(side.poller, "127.0.0.1:1", &spec, &channel), invalid);
  spec.greeting_bytes = 0;
  spec.send_bytes = 5000;
  REFUSED(faro_poller_connect(side.poller, "127.0.0.1:1", &spec, &channel), invalid);
  REFUSED(faro_poller_poll(NULL, &event, 1, &count), invalid);
  REFUSED(faro_poller_poll(side.poller, NULL, 1, &count), invalid);
  REFUSED(faro_poller_poll(side.poller, &event, 1, NULL), invalid);
  REFUSED(faro_poller_release(NULL, none, 0), invalid);
  OK(faro_poller_release(side.poller, none, 0));
  FAILED(faro_poller_claim(NULL, none, 1, 1, &claim), invalid);
  FAILED(faro_poller_claim(side.poller, none, 1, 1, NULL), invalid);
  FAILED(faro_poller_claim(side.poller, none, 1, 1, &claim), FARO_CODE_CLOSED);
  REFUSED(faro_poller_commit(NULL, none, 0, FARO_NOTICE_LOUD), invalid);
  REFUSED(faro_poller_commit(side.poller, none, 0, FARO_NOTICE_LOUD), FARO_CODE_CLOSED);
  REFUSED(faro_poller_commit(side.poller, none, 0, 2), invalid);
  REFUSED(faro_poller_post(NULL), invalid);
  FAILED(faro_poller_commit_and_claim(NULL, none, 0, FARO_NOTICE_LOUD, 1, 1, &claim), invalid);
  FAILED(faro_poller_commit_and_claim(side.poller, none, 0, FARO_NOTICE_LOUD, 1, 1, NULL), invalid);
  FAILED(faro_poller_commit_and_claim(side.poller, none, 0, FARO_NOTICE_LOUD, 1, 1, &claim),
         FARO_CODE_CLOSED);
  FAILED(faro_poller_wait(NULL, 0, both), invalid);
  FAILED(faro_poller_wait(side.poller, -1, both), invalid);
  FAILED(faro_poller_wait(side.poller, 0, 4), invalid);
  FAILED(faro_poller_arm(NULL, both), invalid);
  FAILED(faro_poller_arm(side.poller, -1), invalid);
  FAILED(faro_poller_arm(side.poller, both), FARO_CODE_WRONG_STATE); /* nobody would learn of it */
  REFUSED(faro_poller_descriptor(NULL, &descriptor), invalid);
  REFUSED(faro_poller_descriptor(side.poller, NULL), invalid);
  REFUSED(faro_poller_wake(NULL), invalid);
  REFUSED(faro_poller_try_enter(NULL, &entered), invalid);
  REFUSED(faro_poller_try_enter(side.poller, NULL), invalid);
  REFUSED(faro_poller_leave(NULL), invalid);
  REFUSED(faro_poller_close(NULL, none, FARO_CLOSING_NOW), invalid);
  REFUSED(faro_poller_close(side.poller, none, 2), invalid);
  OK(faro_poller_close(side.poller, none, FARO_CLOSING_NOW));
  REFUSED(faro_poller_status(NULL, none), invalid);
  REFUSED(faro_poller_status(side.poller, none), FARO_CODE_CLOSED);
  REFUSED(faro_poller_describe(NULL, none, &info), invalid);
  REFUSED(faro_poller_describe(side.poller, none, &info), invalid); /* no size */
  info.size = sizeof info;
  REFUSED(faro_poller_describe(side.poller, none, &info), FARO_CODE_CLOSED);
  REFUSED(faro_poller_rings(NULL, none, &rings), invalid);
  rings.size = offsetof(faro_channel_rings, memory); /* which would be lost */
  REFUSED(faro_poller_rings(side.poller, none, &rings), invalid);
  rings.size = sizeof rings;
  REFUSED(faro_poller_rings(side.poller, none, &rings), FARO_CODE_CLOSED);

  OK(faro_poller_try_enter(side.poller, &entered));
  CHECK(entered == 0); /* it does not sleep */
  CHECK(faro_poller_wait(side.poller, FARO_WAIT_NONE, both) == FARO_OUTCOME_WOULD_WAIT);
  CHECK(faro_poller_wait(side.poller, 1000000, both) == FARO_OUTCOME_DEADLINE);
  OK(faro_poller_wake(side.poller));
  DONE(faro_poller_wait(side.poller, FARO_WAIT_FOREVER, both));
  OK(faro_poller_descriptor(side.poller, &descriptor));
  CHECK(faro_poller_arm(side.poller, FARO_WAKE_FOR_NOTHING) == FARO_OUTCOME_WOULD_WAIT);
  OK(faro_endpoint_close(side.endpoint));
  OK(faro_endpoint_close(side.endpoint));
  FAILED(faro_poller_wait(side.poller, FARO_WAIT_FOREVER, both), FARO_CODE_CLOSED);
  FAILED(faro_poller_wait(side.poller, FARO_WAIT_FOREVER, both), FARO_CODE_CLOSED); /* again */
  FAILED(faro_poller_arm(side.poller, both), FARO_CODE_CLOSED);
  REFUSED(faro_poller_connect(side.poller, "127.0.0.1:1", NULL, &channel), FARO_CODE_CLOSED);
  faro_endpoint_destroy(side.endpoint);
}

/* --- carries_frames_over_channels */

struct told_channels {
  faro_channel_id channel;
  int count;
};

static void tell_channel(void* context, const faro_channel_metrics* metrics) {
  struct told_channels* told = context;
  told->channel = metrics->channel;
  ++told->count;
  CHECK(metrics->size == sizeof *metrics && metrics->version == FARO_ABI_VERSION);
  CHECK(strcmp(metrics->peer, "client") == 0 && strcmp(metrics->transport, "shm") == 0 &&
        metrics->address[0] != 0 && metrics->poller == 0);
  CHECK(metrics->traffic.frames_received == 1 && metrics->traffic.bytes_received > 8 &&
        metrics->traffic.frames_sent == 0);
}

/* Checks the metrics of an endpoint that has received one frame, over its only channel. */
static void check_metrics(struct side* side, faro_channel_id channel) {
  struct told_channels told = {{0, 0}, 0};
  faro_endpoint_metrics metrics;
  memset(&metrics, 0, sizeof metrics);
  REFUSED(faro_endpoint_read_metrics(side->endpoint, &metrics, tell_channel, &told),
          FARO_CODE_INVALID_ARGUMENT); /* no size */
  metrics.size = sizeof metrics;
  REFUSED(faro_endpoint_read_metrics(NULL, &metrics, tell_channel, &told),
          FARO_CODE_INVALID_ARGUMENT);
  OK(faro_endpoint_read_metrics(side->endpoint, &metrics, tell_channel, &told));
  CHECK(told.count == 1 && told.channel.index == channel.index &&
        told.channel.generation == channel.generation);
  CHECK(metrics.channels_opened == 1 && metrics.channels_lost == 0 && metrics.memory_bytes > 4096);
  CHECK(metrics.events >= 2 && metrics.polls > 0 && metrics.all.frames_received == 1);
  OK(faro_endpoint_read_metrics(side->endpoint, &metrics, NULL, NULL));
  CHECK(told.count == 1);
}

static void carries_frames_over_channels(void) {
  struct side server = open_side("server", NULL, NULL, NULL);
  struct side client = open_side("client", NULL, NULL, NULL);
  const faro_channel_id to_server = dial(&client, &server, 4096);
  expect(&client, FARO_CHANNEL_OPENED);
  const faro_channel_id to_client = expect(&server, FARO_CHANNEL_OPENED).channel;

  faro_channel_info info;
  memset(&info, 0, sizeof info);
  info.size = sizeof info;
  OK(faro_poller_describe(server.poller, to_client, &info));
  CHECK(strcmp(info.peer, "client") == 0 && strcmp(info.transport, "shm") == 0 &&
        strcmp(info.address, faro_endpoint_address(client.endpoint)) == 0);
  CHECK(info.greeting_bytes == 2 && memcmp(info.greeting, "hi", 2) == 0 && info.dialled == 0);
  CHECK(info.send_bytes == 4096 && info.receive_bytes == 4096 && info.least_frame_bytes == 1008);
  CHECK(info.ends_when_broken == 0);

  DONE(send_frame(&client, to_server, "question"));
  expect_frame(&server, "question");
  check_metrics(&server, to_client);
  DONE(send_frame(&server, to_client, "answer"));
  DONE(send_frame(&server, to_client, ""));
  expect_frame(&client, "answer");
  expect_frame(&client, "");

  /* In an event loop: not woken by a quiet frame. */
  faro_channel_claim claim;
  int32_t descriptor = -1;
  OK(faro_poller_descriptor(server.poller, &descriptor));
  struct pollfd loop = {descriptor, POLLIN, 0};
  CHECK(faro_poller_arm(server.poller, both) == FARO_OUTCOME_WOULD_WAIT);
  DONE(faro_poller_claim(client.poller, to_server, 0, 0, &claim));
  OK(faro_poller_commit(client.poller, to_server, 0, FARO_NOTICE_QUIET));
  OK(faro_poller_post(client.poller));
  CHECK(poll(&loop, 1, 10) == 0);
  DONE(send_frame(&client, to_server, "loud"));
  CHECK(poll(&loop, 1, 30000) == 1);
  DONE(faro_poller_arm(server.poller, both));
  CHECK(poll(&loop, 1, 0) == 0);
  expect_frame(&server, "");
  expect_frame(&server, "loud");

  /* Claims that are refused, and a commit without one. */
  FAILED(faro_poller_claim(client.poller, to_server, 1009, 1009, &claim),
         FARO_CODE_INVALID_ARGUMENT);
  CHECK(strstr(last_message(), "1008") != NULL);
  REFUSED(faro_poller_commit(client.poller, to_server, 0, FARO_NOTICE_LOUD), FARO_CODE_WRONG_STATE);
  DONE(faro_poller_claim(client.poller, to_server, 1, SIZE_MAX, &claim));
  CHECK(claim.bytes == 2048 - 16);
  REFUSED(faro_poller_commit(client.poller, to_server, SIZE_MAX, FARO_NOTICE_LOUD),
          FARO_CODE_INVALID_ARGUMENT);
  OK(faro_poller_commit(client.poller, to_server, 0, FARO_NOTICE_LOUD));
  DONE(faro_poller_claim(client.poller, to_server, 1, 1, &claim));
  FAILED(faro_poller_commit_and_claim(client.poller, to_server, 2, FARO_NOTICE_LOUD, 1, 1, &claim),
         FARO_CODE_INVALID_ARGUMENT);
  FAILED(faro_poller_commit_and_claim(client.poller, to_server, 0, 2, 1, 1, &claim),
         FARO_CODE_INVALID_ARGUMENT);
  CHECK(claim.data != NULL); /* the commit was refused, and the claim stays */
  memcpy(claim.data, "1", 1);
  DONE(faro_poller_commit_and_claim(client.poller, to_server, 1, FARO_NOTICE_LOUD, 1, 1, &claim));
  expect_frame(&server, "");
  expect_frame(&server, "1"); /* nothing else has posted it */
  REFUSED(faro_poller_commit(client.poller, to_server, 2, FARO_NOTICE_LOUD),
          FARO_CODE_INVALID_ARGUMENT);
  OK(faro_poller_commit(client.poller, to_server, 0, FARO_NOTICE_LOUD));

  /* Full, then room. */
  faro_outcome outcome = FARO_OUTCOME_DONE;
  int sent = 0;
  for (; (outcome = send_frame(&client, to_server, "more")) == FARO_OUTCOME_DONE; ++sent) {
  }
  CHECK(outcome == FARO_OUTCOME_WOULD_WAIT);
  expect_frame(&server, "");
  for (int i = 0; i < sent; ++i) expect_frame(&server, "more");
  CHECK(faro_poller_wait(server.poller, FARO_WAIT_NONE, both) != FARO_OUTCOME_FAILED);
  expect(&client, FARO_CHANNEL_ROOM);

  /* Where frames lie, also when the channel has closed. */
  faro_channel_rings rings;
  memset(&rings, 0, sizeof rings);
  rings.size = sizeof rings;
  OK(faro_poller_rings(server.poller, to_client, &rings));
  CHECK(rings.incoming_bytes == 4096 && rings.outgoing_bytes == 4096);
  DONE(send_frame(&client, to_server, "last"));
  OK(faro_poller_close(client.poller, to_server, FARO_CLOSING_DRAIN));
  FAILED(faro_poller_claim(client.poller, to_server, 1, 1, &claim), FARO_CODE_CLOSED);
  const faro_channel_event last = expect(&server, FARO_CHANNEL_FRAME);
  const char* const in_ring = (const char*)rings.incoming;
  const char* const data = last.data;
  CHECK(data >= in_ring && data + last.bytes <= in_ring + rings.incoming_bytes);
  OK(faro_poller_release(server.poller, last.channel, last.token));
  CHECK(faro_poller_wait(server.poller, FARO_WAIT_NONE, both) != FARO_OUTCOME_FAILED);
  size_t count = 0;
  OK(faro_poller_poll(server.poller, server.events, 0, &count)); /* room for none is no mistake */
  CHECK(count == 0);
  struct side* const sides[] = {&client, &server};
  for (int closed = 0; closed < 2;) { /* both take what the other one says */
    for (int i = 0; i < 2; ++i) {
      struct side* const side = sides[i];
      (void)faro_poller_wait(side->poller, 1000000, both);
      OK(faro_poller_poll(side->poller, side->events, 4, &side->count));
      side->at = side->count;
      for (size_t e = 0; e < side->count; ++e)
        closed += side->events[e].kind == FARO_CHANNEL_CLOSED;
    }
  }
  OK(faro_poller_status(client.poller, to_server)); /* drained */
  OK(faro_poller_status(server.poller, to_client));
  FAILED(faro_poller_claim(client.poller, to_server, 1, 1, &claim), FARO_CODE_CLOSED);
  REFUSED(faro_poller_commit(client.poller, to_server, 0, FARO_NOTICE_LOUD), FARO_CODE_CLOSED);
  CHECK(memcmp(data, "last", 4) == 0);
  faro_ring_memory_give_back(rings.memory);
  faro_ring_memory_give_back(rings.memory);
  faro_endpoint_destroy(client.endpoint);
  faro_endpoint_destroy(server.endpoint);
  int ends[2];
  CHECK(pipe(ends) == 0);
  CHECK(write(ends[1], data, 4) == -1 && errno == EFAULT); /* nobody else's memory */
  CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
  faro_ring_memory_destroy(rings.memory);
}

/* --- refuses_channels */

static void accept_by_greeting(void* context, const faro_channel_request* request,
                               faro_channel_acceptance* acceptance) {
  CHECK(request->size == sizeof *request && acceptance->size == sizeof *acceptance);
  CHECK(request->greeting_bytes == 2 && memcmp(request->greeting, "hi", 2) == 0);
  CHECK(request->address[0] != 0);
  if (strcmp(request->peer, "unwanted") == 0) acceptance->refusal = context;
  acceptance->send_bytes = request->send_bytes / 2;
  acceptance->ends_when_broken = 1;
}

static void refuses_channels(void) {
  static char reason[] = "no more guests today";
  struct side server = open_side("server", accept_by_greeting, reason, NULL);
  struct side unwanted = open_side("unwanted", NULL, NULL, NULL);
  struct side client = open_side("client", NULL, NULL, NULL);
  expect_closed(&unwanted, dial(&unwanted, &server, 4096), FARO_CODE_CANCELLED);
  CHECK(strstr(last_message(), reason) != NULL);

  const faro_channel_id channel = dial(&client, &server, 8192);
  expect(&client, FARO_CHANNEL_OPENED);
  faro_channel_info info;
  memset(&info, 0, sizeof info);
  info.size = offsetof(faro_channel_info, least_frame_bytes); /* a caller that knows fewer fields */
  OK(faro_poller_describe(client.poller, channel, &info));
  CHECK(info.send_bytes == 8192 && info.receive_bytes == 4096 && info.least_frame_bytes == 0);
  info.size = sizeof info;
  OK(faro_poller_describe(client.poller, channel, &info));
  CHECK(info.ends_when_broken == 1);

  /* 0: by the endpoint. */
  const faro_channel_id usual = dial(&client, &server, 0);
  expect(&client, FARO_CHANNEL_OPENED);
  OK(faro_poller_describe(client.poller, usual, &info));
  CHECK(info.send_bytes == 256 * 1024 && info.receive_bytes == 128 * 1024);

  /* As many as channel_limit allows. */
  faro_channel_id none;
  REFUSED(faro_poller_connect(client.poller, faro_endpoint_address(server.endpoint), NULL, &none),
          FARO_CODE_LIMIT_EXCEEDED);
  faro_endpoint_destroy(unwanted.endpoint);
  faro_endpoint_destroy(client.endpoint);
  faro_endpoint_destroy(server.endpoint);

  /* Memory for one channel: the ring that it receives from. */
  struct side small = open_side("small", NULL, NULL, "1572864");
  struct side large = open_side("large", NULL, NULL, NULL);
  const faro_channel_id first = dial(&large, &small, 1 << 20);
  expect(&large, FARO_CHANNEL_OPENED);
  expect_closed(&large, dial(&large, &small, 1 << 20), FARO_CODE_RESOURCE_LIMIT);
  CHECK(strstr(last_message(), "memory.limit_bytes = 1572864") != NULL);
  DONE(send_frame(&large, first, "still there"));
  expect(&small, FARO_CHANNEL_OPENED);
  expect_frame(&small, "still there");
  OK(faro_poller_close(large.poller, first, FARO_CLOSING_NOW));
  expect_closed(&large, first, FARO_CODE_CLOSED);
  expect(&small, FARO_CHANNEL_CLOSED);
  faro_endpoint_destroy(large.endpoint);
  faro_endpoint_destroy(small.endpoint);
}

/* --- lets_another_thread_send_while_the_poller_sleeps */

struct visitor {
  struct side* side;
  faro_channel_id channel;
  atomic_bool has_sent;
};
static void* visit(void* argument) {
  struct visitor* visitor = argument;
  int32_t entered = 0;
  while (entered == 0) OK(faro_poller_try_enter(visitor->side->poller, &entered));
  DONE(send_frame(visitor->side, visitor->channel, "by another thread"));
  OK(faro_poller_leave(visitor->side->poller));
  atomic_store(&visitor->has_sent, true);
  OK(faro_poller_wake(visitor->side->poller));
  return NULL;
}

static void lets_another_thread_send_while_the_poller_sleeps(void) {
  struct side server = open_side("server", NULL, NULL, NULL);
  struct side client = open_side("client", NULL, NULL, NULL);
  struct visitor visitor = {&client, dial(&client, &server, 4096), false};
  expect(&client, FARO_CHANNEL_OPENED);
  expect(&server, FARO_CHANNEL_OPENED);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, visit, &visitor) == 0);
  while (!atomic_load(&visitor.has_sent))
    DONE(faro_poller_wait(client.poller, FARO_WAIT_FOREVER, both));
  pthread_join(thread, NULL);
  expect_frame(&server, "by another thread");
  faro_endpoint_destroy(client.endpoint);
  faro_endpoint_destroy(server.endpoint);
}

/* Until the library's threads are over, for two seconds at most. LeakSanitizer takes for lost what a thread has that ends while
   the process does. */
static void await_threads(void) {
#ifdef __SANITIZE_ADDRESS__
  for (int tries = 0, threads = 2; tries < 200 && threads > 1; ++tries) {
    DIR* const tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    threads = -2; /* . and .. */
    while (readdir(tasks) != NULL) ++threads;
    closedir(tasks);
    if (threads > 1) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
#endif
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } cases[] = {{"refuses_misuse", refuses_misuse},
               {"names_senders_and_receivers_by_index", names_senders_and_receivers_by_index},
               {"sends_to_groups", sends_to_groups},
               {"refuses_deliveries_that_it_has_not", refuses_deliveries_that_it_has_not},
               {"refuses_to_take_one_senders_rows_where_any_worker_takes_them",
                refuses_to_take_one_senders_rows_where_any_worker_takes_them},
               {"carries_rows_between_two_sessions", carries_rows_between_two_sessions},
               {"sends_and_receives_together", sends_and_receives_together},
               {"groups_rows_of_a_schema", groups_rows_of_a_schema},
               {"leaves_in_rings_what_a_loop_takes", leaves_in_rings_what_a_loop_takes},
               {"tells_settings_and_failures", tells_settings_and_failures},
               {"writes_rows_in_place", writes_rows_in_place},
               {"tells_why_a_query_failed", tells_why_a_query_failed},
               {"opens_and_closes_without_waiting", opens_and_closes_without_waiting},
               {"tells_rings_and_when_they_change", tells_rings_and_when_they_change},
               {"wakes_event_loops", wakes_event_loops},
               {"tells_of_nodes_and_queries", tells_of_nodes_and_queries},
               {"nodes_come_and_go", nodes_come_and_go},
               {"structs_of_other_versions", structs_of_other_versions},
               {"refuses_misuse_of_endpoints", refuses_misuse_of_endpoints},
               {"carries_frames_over_channels", carries_frames_over_channels},
               {"refuses_channels", refuses_channels},
               {"lets_another_thread_send_while_the_poller_sleeps",
                lets_another_thread_send_while_the_poller_sleeps}};
  for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof cases[0]; ++i) {
    if (strcmp(argv[1], cases[i].name) != 0) continue;
    faro_log_set_level(FARO_LOG_ERROR);
    cases[i].run();
    await_threads();
    return 0;
  }
  fprintf(stderr, "c_abi_test: one case, of CMakeLists.txt\n");
  return 1;
}
