// faro::Session and ListeningSocket, over NodeCore.
#include "faro/session.h"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/settings.h"
#include "base/thread.h"
#include "faro/nodes.h"
#include "links/listening_socket.h"
#include "links/socket_network.h"
#include "node/node_core.h"
#include "node/session_access.h"
#include "ring/futex_waiter.h"
#include "session/taken_address.h"
#include "session/topology.h"

namespace faro {
namespace {

Result<std::unique_ptr<Session>> open_on(const base::Settings& settings,
                                         Result<std::unique_ptr<links::SocketNetwork>> network,
                                         const Cancellation& cancellation) {
  if (!network.ok()) return network.status();
  node::NodeEnvironment environment;
  environment.network = std::move(*network);
  environment.cancellation = cancellation;
  environment.make_waiter = [] { return std::make_unique<ring::FutexWaiter>(); };
  return SessionAccess::open(settings, std::move(environment));
}

Status check_open(node::NodeCore& core) {
  if (!core.membership().peers().is_closed()) return Status::Ok();
  return Status(Code::session_closed, "the session was closed");
}

// How threads of asynchronous calls are called in tools.
constexpr const char* kOpenThread = "faro-open";
constexpr const char* kAwaitThread = "faro-await";
constexpr const char* kCloseThread = "faro-close";

using OpenDone = std::function<void(Result<std::unique_ptr<Session>>)>;

template <typename Open>
Result<std::unique_ptr<Session>> guarded(Open&& open) {
  try {
    return open();
  } catch (const std::bad_alloc&) {
    return Status(Code::resource_limit, "the process has no memory left to open its session");
  }
}

template <typename Open>
void open_in_thread(Open open, OpenDone done) {
  // The thread may not start: `done` stays here, too.
  const Status started =
      base::start_detached(kOpenThread, [open = std::move(open), done]() mutable { done(open()); });
  if (!started.ok()) done(started);
}

}  // namespace

Result<std::unique_ptr<Session>> SessionAccess::open(const base::Settings& settings,
                                                     node::NodeEnvironment environment) {
  return guarded([&]() -> Result<std::unique_ptr<Session>> {
    FARO_ASSIGN_OR_RETURN(auto core, node::NodeCore::open(settings, std::move(environment)));
    return std::unique_ptr<Session>(new Session(std::move(core)));
  });
}

// --- ListeningSocket

Result<ListeningSocket> ListeningSocket::bind(const std::string& address) {
  FARO_ASSIGN_OR_RETURN(auto bound, links::ListeningSocket::bind(address));
  std::string name = bound.address();
  return ListeningSocket(std::move(bound).take().release(), std::move(name));
}
ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), address_(std::move(other.address_)) {}
ListeningSocket& ListeningSocket::operator=(ListeningSocket&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
    address_ = std::move(other.address_);
  }
  return *this;
}
ListeningSocket::~ListeningSocket() {
  if (fd_ >= 0) ::close(fd_);
}
int SessionAccess::release(ListeningSocket& socket) noexcept {
  return std::exchange(socket.fd_, -1);
}

// --- Nodes

Status Nodes::add(const NodeSpec& node) { return session_.core_->nodes().add(node); }
Status Nodes::drain(uint32_t node) { return session_.core_->nodes().drain(node); }
Status Nodes::remove(uint32_t node) { return session_.core_->nodes().remove(node); }

// --- Session

Session::Session(std::shared_ptr<node::NodeCore> core) : core_(std::move(core)) {
  for (uint32_t w = 0; w < core_->local_worker_count(); ++w) {
    workers_.push_back(
        std::unique_ptr<Worker>(new Worker(&core_->worker(w), local_worker_count())));
  }
  workers_.push_back(std::unique_ptr<Worker>(new Worker(nullptr, local_worker_count())));
}
Session::~Session() { (void)close(); }

Result<std::unique_ptr<Session>> Session::open(const Config& config,
                                               const Cancellation& cancellation) {
  return guarded([&]() -> Result<std::unique_ptr<Session>> {
    FARO_ASSIGN_OR_RETURN(auto settings, base::Settings::resolve(config));
    auto network = links::SocketNetwork::create(settings, session::own_address(settings));
    if (network.status().code() == Code::address_in_use) {
      return session::ask_who_listens(settings, network.status());
    }
    return open_on(settings, std::move(network), cancellation);
  });
}

Result<std::unique_ptr<Session>> Session::open(const Config& config, ListeningSocket socket,
                                               const Cancellation& cancellation) {
  return guarded([&]() -> Result<std::unique_ptr<Session>> {
    FARO_ASSIGN_OR_RETURN(auto settings, base::Settings::resolve(config));
    const std::string address = socket.address();
    return open_on(
        settings,
        links::SocketNetwork::create(
            settings,
            links::ListeningSocket::adopt(base::UniqueFd(SessionAccess::release(socket)), address),
            session::own_address(settings)),
        cancellation);
  });
}

void Session::open_async(Config config, OpenDone done, Cancellation cancellation) {
  open_in_thread([config = std::move(config),
                  cancellation = std::move(cancellation)] { return open(config, cancellation); },
                 std::move(done));
}

void Session::open_async(Config config, ListeningSocket socket, OpenDone done,
                         Cancellation cancellation) {
  // Shared, because a std::function has to be copyable.
  auto shared = std::make_shared<ListeningSocket>(std::move(socket));
  open_in_thread(
      [config = std::move(config), shared, cancellation = std::move(cancellation)] {
        return open(config, std::move(*shared), cancellation);
      },
      std::move(done));
}

uint32_t Session::node() const noexcept { return core_->membership().node(); }
uint32_t Session::node_count() const noexcept {
  return static_cast<uint32_t>(core_->membership().nodes().size());
}
uint32_t Session::worker_count() const noexcept { return core_->membership().worker_count(); }
uint32_t Session::first_worker(uint32_t node) const noexcept {
  return node < node_count() ? core_->membership().nodes()[node].first_worker : worker_count();
}
uint32_t Session::local_worker_count() const noexcept { return core_->local_worker_count(); }
Worker& Session::worker(uint32_t local_index) noexcept {
  return *workers_[std::min(local_index, local_worker_count())];
}

QueryId Session::begin_query() { return core_->queries().begin(); }
Status Session::declare_query(const QueryId& query, const std::vector<uint32_t>& workers) {
  FARO_RETURN_IF_ERROR(check_open(*core_));
  return core_->queries().declare(query, workers);
}
Status Session::cancel_query(const QueryId& query, std::string_view reason) {
  FARO_RETURN_IF_ERROR(check_open(*core_));
  return core_->queries().cancel(query,
                                 base::error(Code::query_cancelled, "cancelled on {}: {}",
                                             core_->membership().nodes()[node()].name, reason));
}
bool Session::has_node(uint32_t node) const noexcept {
  return core_->membership().peers().is_present(node);
}
Status Session::await_node(uint32_t node, Wait wait, const Cancellation& cancellation) {
  return core_->nodes().await(node, wait, cancellation);
}
void Session::await_node_async(uint32_t node, std::function<void(Status)> done, Wait wait,
                               Cancellation cancellation) {
  const Status started = base::start_detached(
      kAwaitThread, [core = core_, node, done, wait, cancellation = std::move(cancellation)] {
        done(core->nodes().await(node, wait, cancellation));
      });
  if (!started.ok()) done(started);
}
void Session::listen(SessionListener listener) { core_->events().listen(std::move(listener)); }
SessionMetrics Session::metrics(const QueryId& query) const { return core_->metrics(query); }
Status Session::close() { return core_->close(); }
void Session::close_async(std::unique_ptr<Session> session, std::function<void(Status)> done) {
  // Shared, because a std::function has to be copyable.
  auto shared = std::make_shared<std::unique_ptr<Session>>(std::move(session));
  const auto close = [shared, done] {
    const Status closed = (*shared)->close();
    shared->reset();
    done(closed);
  };
  if (!base::start_detached(kCloseThread, close).ok()) close();
}

}  // namespace faro
