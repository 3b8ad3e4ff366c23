// Passes descriptors to a peer over a unix socket in the abstract namespace, which vanishes with its
// process; or, if the peer is in another network namespace, in a folder that both see (rendezvous.h).
//
//   owner                                     peer
//   listens at a random name
//   offer {name, token}  --- control connection --->
//   <------------------- connects, sends the token ---
//   ---- 8 bytes "faroshm1" and the descriptors ----->
//   closes                                    closes
//
// Only a process of the same user (SO_PEERCRED) that knows the token gets them, and only once.
// Threads: network thread (see Reactor).
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "faro/status.h"
#include "transport/shm/rendezvous.h"
#include "transport/shm/unix_address.h"
#include "transport/transport.h"

namespace faro::transport::shm {

using FdToken = std::array<std::byte, 16>;

/// Fills with unguessable bytes.
Status draw_random(void* bytes, size_t count);

/// Whether unix sockets of the abstract namespace work here. Errors: transport_unavailable, with
/// the cause.
Status check_abstract_sockets();

/// The giving end: one socket for all links that are being set up, and one more in the folder if there is one. Blocks: never.
/// Owns: the listening sockets and the connections that have not shown their token yet, at most
/// kPendingLimit. They last as long as this object, which exists while links are being set up.
class FdSender {
 public:
  /// The result of an offer: Ok when the peer has the descriptors, or why no peer will get them.
  using Done = std::function<void(const Status&)>;
  static constexpr size_t kPendingLimit = 64;

  /// `rendezvous`: null: no folder.
  static Result<std::shared_ptr<FdSender>> open(
      Reactor& reactor, std::shared_ptr<const Rendezvous> rendezvous = nullptr);
  ~FdSender();
  FdSender(const FdSender&) = delete;
  FdSender& operator=(const FdSender&) = delete;

  /// The name in the abstract namespace, and in the folder.
  const std::string& name() const { return name_; }
  /// Passes `fds`, which stay the caller's, to the process that shows the token, once. `done` must not call
  /// this object.
  void offer(const FdToken& token, std::vector<int> fds, Done done);
  void withdraw(const FdToken& token) noexcept { offers_.erase(token); }

 private:
  struct Offer {
    std::vector<int> fds;
    Done done;
  };
  using Connections = std::list<base::UniqueFd>;

  FdSender(Reactor& reactor, std::string name) : reactor_(reactor), name_(std::move(name)) {}
  Status listen_at(const UnixAddress& address);
  Status listen_in(const Rendezvous& rendezvous);
  void on_connections(int listener);
  void on_token(Connections::iterator connection);
  void drop(Connections::iterator connection) noexcept;
  void fail_all(const Status& cause);

  void stop_listening() noexcept;

  Reactor& reactor_;
  std::vector<base::UniqueFd> listeners_;
  std::string path_;  // of the one in the folder
  Status broken_;     // why nothing can be accepted any more
  const std::string name_;
  Connections pending_;  // oldest first
  std::map<FdToken, Offer> offers_;
};

/// The taking end of one hand-over. Blocks: never. Destroying it gives up.
class FdReceiver {
 public:
  /// The descriptors, or why they did not come. May destroy nothing.
  using Done = std::function<void(Result<std::vector<base::UniqueFd>>)>;

  /// Takes `fd_count` descriptors until `deadline`, from the socket of that name, here or in the folder. `done` is called once,
  /// perhaps at once.
  FdReceiver(Reactor& reactor, std::string name, std::shared_ptr<const Rendezvous> rendezvous,
             const FdToken& token, size_t fd_count, base::Nanoseconds deadline, Done done);
  ~FdReceiver() { close_all(); }
  FdReceiver(const FdReceiver&) = delete;
  FdReceiver& operator=(const FdReceiver&) = delete;

 private:
  Status start();
  Status connect_once(bool& connected);
  Status arm_timer(bool retry);
  void on_timer();
  void on_descriptors();
  Result<std::vector<base::UniqueFd>> receive();
  void finish(Result<std::vector<base::UniqueFd>> result);
  void close_all() noexcept;

  Reactor& reactor_;
  const std::string name_;
  const std::shared_ptr<const Rendezvous> rendezvous_;  // null: no folder
  const FdToken token_;
  const size_t fd_count_;
  const base::Nanoseconds deadline_;
  Done done_;  // empty once called
  base::UniqueFd socket_;
  base::UniqueFd timer_;
};

}  // namespace faro::transport::shm
