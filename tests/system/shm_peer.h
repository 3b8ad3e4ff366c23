// One side of a link through shared memory in a process of its own; the control connection is a
// pair of sockets.
#pragma once

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "base/return_if_error.h"
#include "base/unique_fd.h"
#include "support/test_reactor.h"
#include "transport/shm/node_doorbells.h"
#include "transport/shm/shm_transport.h"

namespace faro::test {

/// One worker, one ring each way, set up as a session would do it.
class ShmPeer final : public transport::LinkEvents {
 public:
  static constexpr base::Nanoseconds kConnectLimit = 20'000'000'000;

  ShmPeer(base::UniqueFd control, uint32_t ring_bytes)
      : control_(std::move(control)), doorbells_(transport::shm::NodeDoorbells::make(1).value()) {
    workers_[0] = {&ready_, &doorbells_.line(0)};
    context_.outgoing = context_.incoming = {1, 1, 1, ring_bytes};
    context_.workers = workers_;
    context_.doorbells = doorbells_.memory();
    context_.ready_group = groups_;
    context_.reactor = &reactor_;
    context_.events = this;
    context_.send = [this](std::span<const std::byte> message) {
      if (::send(control_.get(), message.data(), message.size(), MSG_NOSIGNAL) < 0)
        peer_gone_ = true;
    };
    setup_ = transport_.begin(context_);
  }

  /// Sends the offer, and no more.
  Status start() { return setup_->start(); }
  /// Until the link is there. Blocks: at most kConnectLimit.
  Status connect() {
    const base::Nanoseconds deadline = base::SystemClock::instance().now_ns() + kConnectLimit;
    while (!setup_->ready()) {
      FARO_RETURN_IF_ERROR(setup_->status());
      if (base::SystemClock::instance().now_ns() > deadline)
        return {Code::deadline_exceeded, "not connected"};
      FARO_RETURN_IF_ERROR(receive());
      reactor_.run_once(1);
    }
    link_ = setup_->take();
    link_->attach_ready(ready_, 0, 0);
    setup_.reset();
    return {};
  }
  void give_up() { setup_.reset(); }

  /// Lets the other side go on from wait_for_peer.
  void tell_peer() { peer_gone_ = ::send(control_.get(), "go", 2, MSG_NOSIGNAL) < 0; }
  void wait_for_peer() {
    pollfd readable{control_.get(), POLLIN, 0};
    poll(&readable, 1, 20'000);
  }

  transport::DataLink& link() { return *link_; }
  transport::Outgoing& outgoing() { return link_->outgoing(0); }
  transport::Incoming& incoming() { return link_->incoming(0); }
  ring::ReadySet& ready() { return ready_; }
  ring::DoorbellLine& doorbell() { return doorbells_.line(0); }

  int failures() const { return failures_.load(); }
  Status failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  void on_link_failed(const Status& cause) override {
    const std::lock_guard lock(mutex_);
    if (failures_.fetch_add(1) == 0) failure_ = cause;
  }
  Status receive() {
    std::array<std::byte, 4096> message;
    const ssize_t got = recv(control_.get(), message.data(), message.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return {};
    if (got <= 0) return {Code::peer_lost, "the peer has closed its control connection"};
    return setup_->on_message(std::span(message).first(static_cast<size_t>(got)));
  }

  base::UniqueFd control_;
  TestReactor reactor_;
  transport::shm::ShmTransport transport_;
  transport::shm::NodeDoorbells doorbells_;
  ring::ReadySet ready_{1};
  transport::WorkerEnd workers_[1];
  uint32_t groups_[1] = {};
  transport::LinkContext context_;
  std::unique_ptr<transport::LinkSetup> setup_;
  std::unique_ptr<transport::DataLink> link_;
  bool peer_gone_ = false;
  std::atomic<int> failures_{0};
  std::mutex mutex_;
  Status failure_;
};

/// A child process that dies with this one. Killed and waited for by the destructor.
class Child {
 public:
  /// Runs `body` with its end of a control connection; `control` becomes this process's end. Not
  /// with threads running.
  Child(const std::function<void(base::UniqueFd control)>& body, base::UniqueFd& control) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    control.reset(ends[0]);
    pid_ = fork();
    if (pid_ != 0) {
      close(ends[1]);
      return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    control.reset();
    body(base::UniqueFd(ends[1]));
    _exit(0);
  }
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

 private:
  pid_t pid_ = 0;
};

}  // namespace faro::test
