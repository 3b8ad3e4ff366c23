// SocketNetwork: control connections over TCP, waiting with epoll. One per membership.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"
#include "faro/status.h"
#include "links/control_stream.h"
#include "links/dial.h"
#include "links/epoll_reactor.h"
#include "links/listening_socket.h"
#include "links/network.h"
#include "links/socket_acceptor.h"

namespace faro::links {

/// Threads: as links/network.h says. Blocks: run_once only. Owns: the listening socket and every
/// connection in it.
class SocketNetwork : public Network, private ControlStream::Owner, private SocketAcceptor::Host {
 public:
  /// `address`: at which peers are to reach it, host:port; with port 0 they are told the port at which it listens. Listens on
  /// cluster.listen, or else on `address`.
  /// Errors: address_in_use, config_invalid (also what Credentials::load says), system_error.
  static Result<std::unique_ptr<SocketNetwork>> create(const base::Settings& settings,
                                                       const std::string& address);
  /// Makes a network on a socket that listens already; cluster.listen is ignored. `address` and
  /// errors are those of the other create().
  static Result<std::unique_ptr<SocketNetwork>> create(const base::Settings& settings,
                                                       ListeningSocket listener,
                                                       const std::string& address);
  ~SocketNetwork() override;

  /// What connections get that do not begin as Faro's do. Before set_acceptor.
  void answer_others(std::vector<std::byte> answer) { answer_to_others_ = std::move(answer); }

  transport::Reactor& reactor() override { return *reactor_; }
  /// The address as the caller has given it, with the real port.
  const std::string& local_address() const override { return local_address_; }
  bool open_to_others() const override { return open_to_others_; }
  std::optional<transport::tcp::SocketAddress> source() const override { return source_; }
  std::shared_ptr<tls::Credentials> credentials() const override { return credentials_; }
  const std::string& host_identity() const override { return host_identity_; }
  void set_acceptor(Acceptor* acceptor) override;
  void connect(const std::string& address,
               std::function<void(Result<std::unique_ptr<ControlConnection>>)> done) override;
  void connect_in_turn(
      const std::string& address, bool soon, std::function<bool()> begins,
      std::function<void(Result<std::unique_ptr<ControlConnection>>)> done) override;
  bool run_once(base::Nanoseconds until) override;
  bool lingering() const override { return !lingering_.empty(); }
  void wake() override { reactor_->wake(); }
  bool wants_thread() const override { return true; }

 private:
  struct Lingering {
    std::shared_ptr<ControlStream> stream;
    base::Nanoseconds until = 0;
  };

  SocketNetwork(std::unique_ptr<EpollReactor> reactor, ListeningSocket listener,
                std::string local_address, std::shared_ptr<tls::Credentials> credentials,
                bool encrypts_data);

  EpollReactor& epoll() override { return *reactor_; }
  void mark_unsettled(std::shared_ptr<ControlStream> stream) override;
  void keep_lingering(std::shared_ptr<ControlStream> stream) override;
  void on_control(tls::Socket socket, const std::string& peer_address) override;
  void on_data(const std::array<std::byte, 16>& token, tls::Socket socket,
               const std::string& peer_address) override;
  void on_other(tls::Socket socket, const std::string& peer_address) override;
  base::Nanoseconds may_try_at(const std::string& peer_address) override;
  size_t may_try_together(const std::string& peer_address) override;
  size_t expected_streams() override;
  void on_turn(const std::string& peer_address) override;
  void on_refused(base::UniqueFd socket, const std::string& peer_address,
                  const Status& cause) override;

  using Connected = std::function<void(Result<std::unique_ptr<ControlConnection>>)>;
  /// One that waits for its turn, or is dialled.
  struct Dialling {
    std::unique_ptr<Dial> dial;
    tls::Turns::Turn turn;
    std::function<bool()> begins;
  };

  void begin(std::list<Dialling>::iterator place);
  void on_dialled(const std::string& address, Result<base::UniqueFd> socket, tls::Turns::Turn turn,
                  const Connected& done);
  Result<std::shared_ptr<ControlStream>> make_stream(tls::Socket socket, std::string peer_address,
                                                     tls::Turns::Turn turn = {});
  void refuse_without_tls(tls::Socket socket, const std::string& peer_address);
  void settle();
  void drop_lingering(base::Nanoseconds now);

  const std::unique_ptr<EpollReactor> reactor_;  // outlives everything that is registered with it
  const std::string local_address_;
  const bool open_to_others_;
  const std::optional<transport::tcp::SocketAddress> source_;
  const std::shared_ptr<tls::Credentials> credentials_;  // null: without TLS
  const bool encrypts_data_;                             // or control connections alone
  const std::string host_identity_;
  SocketAcceptor socket_acceptor_;
  Acceptor* acceptor_ = nullptr;
  std::list<Dialling> dials_;
  std::vector<std::shared_ptr<ControlStream>> unsettled_;
  std::list<Lingering> lingering_;  // oldest first
  std::vector<std::byte> answer_to_others_;
};

}  // namespace faro::links
