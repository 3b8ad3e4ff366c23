// What is behind the handles of faro/c.h.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "faro/aggregate.h"
#include "faro/batch.h"
#include "faro/c.h"
#include "faro/cancellation.h"
#include "faro/config.h"
#include "faro/endpoint.h"
#include "faro/session.h"
#include "faro/shuffle.h"
#include "shuffle/local_worker.h"

struct faro_config {
  faro::Config config;
  std::string told;  // by faro_config_get
};

struct faro_cancellation {
  faro::Cancellation cancellation;
};

struct faro_listening_socket {
  std::optional<faro::ListeningSocket> bound;  // until a session takes it
  std::string address;
};

struct faro_worker {
  faro::Worker& worker;
  faro::shuffle::LocalWorker& core;
  std::vector<faro_ring> rings{};  // as told last
};

struct faro_session {
  explicit faro_session(std::unique_ptr<faro::Session> opened);

  std::unique_ptr<faro::Session> session;
  std::deque<faro_worker> workers;  // by local index; they do not move
};

struct faro_batch {
  faro::Batch batch;
};

/// Threads: those of its worker.
struct faro_shuffle {
  faro_shuffle(faro::Shuffle opened, faro::shuffle::OpenShuffle& core);
  ~faro_shuffle() { close(); }

  void close() noexcept;

  faro::Shuffle shuffle;
  const std::vector<uint32_t> senders;    // all that were named, or that take part
  const std::vector<uint32_t> receivers;  // as well
  faro_shuffle_info info{};
  faro::shuffle::OpenShuffle* core;  // null: it is closed
  /// None if this worker is no sender, no receiver, or the shuffle is closed.
  std::optional<faro::ShuffleSender> sender;
  std::optional<faro::ShuffleReceiver> receiver;
  faro_open_frames frames{};  // without receivers if there is no sender
  faro::RowClaim claim;
};

/// Threads: those of its worker.
struct faro_aggregation {
  explicit faro_aggregation(std::unique_ptr<faro::SchemaAggregation> made);

  std::unique_ptr<faro::SchemaAggregation> aggregation;
  std::vector<faro_column> columns;  // of its groups
};

struct faro_poller {
  faro::Poller& poller;
  bool has_descriptor = false;  // was asked for
  faro::ChannelInfo info{};     // as told last
};

struct faro_endpoint {
  explicit faro_endpoint(std::unique_ptr<faro::Endpoint> opened);

  std::unique_ptr<faro::Endpoint> endpoint;
  std::deque<faro_poller> pollers;  // by index; they do not move
};

struct faro_ring_memory {
  std::shared_ptr<const void> memory;  // null: given back
  std::shared_ptr<const void> addresses;
};
