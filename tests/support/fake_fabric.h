// FakeFabric: a device in memory that joins two queue pairs, for the data path of verbs on machines
// without RDMA. libibverbs calls a device through a table of functions in the context; this has its own.
//
// Like a real one it works by itself (a thread), in the order of each queue pair, and reads what it
// sends when it gets to it, not when it is posted. It is stricter: a message that finds no receive, a
// WRITE beyond the peer's region or with another key, and more requests than the send queue has places are
// faults, of which it complains at its end. What is under way when a side disconnects is flushed.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "transport/transport.h"
#include "transport/verbs/completion_poller.h"
#include "transport/verbs/queue_pair.h"

namespace faro::test {

/// It lives as long as somebody has it, or one of its queue pairs.
class FakeFabric : public std::enable_shared_from_this<FakeFabric> {
 public:
  /// The completion channel of one side.
  class Events final : public transport::verbs::CompletionEvents {
   public:
    int descriptor() const noexcept override { return event_.get(); }
    transport::verbs::VerbsPath* next() noexcept override {
      const std::lock_guard lock(mutex_);
      if (paths_.empty()) {
        uint64_t count = 0;
        [[maybe_unused]] const ssize_t got = read(event_.get(), &count, sizeof count);
        return nullptr;
      }
      auto* const path = paths_.front();
      paths_.pop_front();
      return path;
    }
    void add(transport::verbs::VerbsPath* path) {
      const std::lock_guard lock(mutex_);
      paths_.push_back(path);
      const uint64_t one = 1;
      [[maybe_unused]] const ssize_t put = write(event_.get(), &one, sizeof one);
    }
    void forget(const void* path) {
      const std::lock_guard lock(mutex_);
      paths_.erase(std::remove(paths_.begin(), paths_.end(), path), paths_.end());
    }

   private:
    const base::UniqueFd event_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    std::mutex mutex_;
    std::deque<transport::verbs::VerbsPath*> paths_;
  };

  /// What the peer may write.
  struct Region {
    std::byte* base = nullptr;
    uint64_t bytes = 0;
    uint32_t key = 0;
  };

  /// The completion channels of the two sides, which other fabrics may share. `is_like_siw`, that of Linux: every post raises
  /// SIGPIPE, as there once the peer has gone, and a WRITE completes when it was sent.
  FakeFabric(std::shared_ptr<Events> first, std::shared_ptr<Events> second, bool is_like_siw)
      : is_like_siw_(is_like_siw),
        sides_{Side(std::move(first)), Side(std::move(second))},
        device_([this] { run(); }) {}
  ~FakeFabric() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    work_.notify_all();
    device_.join();
    EXPECT_EQ(faults_, "");
  }

  /// The queue pair of a side; once. Its owner's reactor hears of a disconnect.
  std::unique_ptr<transport::verbs::QueuePair> open(int side, transport::Reactor& reactor,
                                                    uint32_t send_depth, Region region) {
    const std::lock_guard lock(mutex_);
    auto endpoint = std::make_unique<QueuePair>(shared_from_this(), side);
    Side& mine = sides_[side];
    mine.pair = endpoint.get();
    mine.reactor = &reactor;
    mine.send_depth = send_depth;
    mine.region = region;
    mine.alive = std::make_shared<QueuePair*>(endpoint.get());
    return endpoint;
  }
  /// Whether both sides are there, and then the region of the other one.
  bool connected() const {
    const std::lock_guard lock(mutex_);
    return sides_[0].pair != nullptr && sides_[1].pair != nullptr;
  }
  Region region(int side) const {
    const std::lock_guard lock(mutex_);
    return sides_[side].region;
  }
  /// From now on packets vanish, or do so no more: nothing reaches the other side, and nobody is told.
  void set_dark(bool is_dark) {
    {
      const std::lock_guard lock(mutex_);
      is_dark_ = is_dark;
    }
    work_.notify_all();
  }
  /// Whether the queue pair of a side has not been destroyed.
  bool is_open(int side) const {
    const std::lock_guard lock(mutex_);
    return sides_[side].alive != nullptr;
  }
  /// What a WRITE of the other side with that key would come to: one that is late, or made up.
  ibv_wc_status would_take_write(int side, uint32_t key) const {
    const std::lock_guard lock(mutex_);
    const Region& region = sides_[side].region;
    return takes_write(region, key, region.base, region.bytes) ? IBV_WC_SUCCESS
                                                               : IBV_WC_REM_ACCESS_ERR;
  }

 private:
  class QueuePair final : public transport::verbs::QueuePair {
   public:
    QueuePair(std::shared_ptr<FakeFabric> fabric, int side)
        : fabric_(std::move(fabric)), side_(side) {
      owned_.self = this;
      owned_.context.ops.post_send = [](ibv_qp* pair, ibv_send_wr* request, ibv_send_wr** refused) {
        return of(pair->context).post_send(request, refused);
      };
      owned_.context.ops.post_recv = [](ibv_qp* pair, ibv_recv_wr* request, ibv_recv_wr**) {
        return of(pair->context).post_receive(*request);
      };
      owned_.context.ops.poll_cq = [](ibv_cq* queue, int most, ibv_wc* completions) {
        return of(queue->context).poll(most, completions);
      };
      owned_.context.ops.req_notify_cq = [](ibv_cq* queue, int) {
        return of(queue->context).arm();
      };
      pair_.context = queue_.context = &owned_.context;
    }
    ~QueuePair() override {
      disconnect();
      fabric_->close(side_, queue_.cq_context);
    }
    ibv_qp* queue_pair() noexcept override { return &pair_; }
    ibv_cq* completion_queue() noexcept override { return &queue_; }
    void disconnect() noexcept override { fabric_->disconnect(side_); }
    void set_handler(Handler* handler) noexcept override { handler_ = handler; }
    Handler* handler() const { return handler_; }
    transport::verbs::VerbsPath* path() const {
      return static_cast<transport::verbs::VerbsPath*>(queue_.cq_context);
    }

   private:
    struct Owned {
      ibv_context context{};
      QueuePair* self = nullptr;
    };
    static QueuePair& of(ibv_context* context) { return *reinterpret_cast<Owned*>(context)->self; }
    int post_send(ibv_send_wr* request, ibv_send_wr** refused) {
      return fabric_->post_send(side_, request, refused);
    }
    int post_receive(const ibv_recv_wr& request) { return fabric_->post_receive(side_, request); }
    int poll(int most, ibv_wc* completions) { return fabric_->poll(side_, most, completions); }
    int arm() { return fabric_->arm(side_); }

    const std::shared_ptr<FakeFabric> fabric_;
    const int side_;
    Owned owned_;
    ibv_qp pair_{};
    ibv_cq queue_{};
    Handler* handler_ = nullptr;  // network thread
  };

  struct Send {
    ibv_send_wr request;
    ibv_sge piece;
    std::vector<std::byte> inlined;  // copied when posted, as IBV_SEND_INLINE says
  };
  struct Completion {
    ibv_wc what;
    uint32_t places = 0;  // of the send queue, that it frees
  };
  struct Side {
    explicit Side(std::shared_ptr<Events> reports_to) : events(std::move(reports_to)) {}

    std::shared_ptr<Events> events;
    QueuePair* pair = nullptr;
    std::shared_ptr<QueuePair*> alive;  // gone with the queue pair
    transport::Reactor* reactor = nullptr;
    Region region;
    uint32_t send_depth = 0;
    uint32_t places_taken = 0;
    uint32_t places_done = 0;  // executed, and covered by the next completion
    std::deque<Send> sends;
    std::deque<ibv_recv_wr> receives;
    std::deque<ibv_sge> receive_pieces;
    std::deque<Completion> completions;
    bool armed = false;
    bool broken = false;
  };

  int post_send(int side, ibv_send_wr* request, ibv_send_wr** refused) {
    if (is_like_siw_) pthread_kill(pthread_self(), SIGPIPE);
    const std::lock_guard lock(mutex_);
    Side& mine = sides_[side];
    for (; request != nullptr; request = request->next) {
      if (mine.places_taken == mine.send_depth) {
        fault("the send queue is full");
        *refused = request;
        return ENOMEM;
      }
      ++mine.places_taken;
      Send send{*request, *request->sg_list, {}};
      if (request->send_flags & IBV_SEND_INLINE) {
        const auto* data = reinterpret_cast<const std::byte*>(send.piece.addr);
        send.inlined.assign(data, data + send.piece.length);
      }
      mine.sends.push_back(std::move(send));
    }
    work_.notify_one();
    return 0;
  }

  int post_receive(int side, const ibv_recv_wr& request) {
    const std::lock_guard lock(mutex_);
    sides_[side].receives.push_back(request);
    sides_[side].receive_pieces.push_back(*request.sg_list);
    return 0;
  }

  int poll(int side, int most, ibv_wc* completions) {
    const std::lock_guard lock(mutex_);
    // The device has come a little further meanwhile; with its thread alone the tests of one thread
    // would consist of waiting for the scheduler.
    for (int n = 0; n < 3; ++n) {
      for (int each = 0; each < 2; ++each) {
        if (can_execute(each)) execute(each);
      }
    }
    Side& mine = sides_[side];
    int count = 0;
    for (; count < most && !mine.completions.empty(); ++count) {
      completions[count] = mine.completions.front().what;
      mine.places_taken -= mine.completions.front().places;
      mine.completions.pop_front();
    }
    return count;
  }

  int arm(int side) {
    const std::lock_guard lock(mutex_);
    sides_[side].armed = true;
    return 0;
  }

  void disconnect(int side) {
    const std::lock_guard lock(mutex_);
    if (sides_[side].broken) return;
    sides_[side].broken = true;
    Side& other = sides_[1 - side];
    if (!other.broken && other.reactor != nullptr) {
      other.reactor->defer([weak = std::weak_ptr<QueuePair*>(other.alive)] {
        const auto alive = weak.lock();
        if (alive != nullptr && (*alive)->handler() != nullptr)
          (*alive)->handler()->on_disconnected({Code::peer_lost, "closed by the peer"});
      });
    }
    work_.notify_one();
  }

  void close(int side, const void* path) {
    const std::lock_guard lock(mutex_);
    Side& mine = sides_[side];
    mine.alive.reset();
    mine.sends.clear();
    mine.receives.clear();
    mine.receive_pieces.clear();
    mine.armed = false;
    mine.events->forget(path);
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (int side = 0; !ending_; side = 1 - side) {
      if (!can_execute(side) && !can_execute(1 - side)) {
        work_.wait(lock);
        continue;
      }
      // A few of one side, then of the other: both orders of what crosses come about.
      for (int n = 0; n < 3 && can_execute(side); ++n) execute(side);
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
  }

  // In the dark what stands first waits, and all behind it; but what has no bytes to bring is over once it was sent.
  bool can_execute(int side) const {
    const std::deque<Send>& sends = sides_[side].sends;
    if (sends.empty()) return false;
    if (!is_dark_ || sides_[side].broken) return true;
    const Send& first = sends.front();
    return is_like_siw_ && first.request.opcode == IBV_WR_RDMA_WRITE && first.piece.length == 0;
  }

  void execute(int side) {
    Side& mine = sides_[side];
    Side& peer = sides_[1 - side];
    const Send send = std::move(mine.sends.front());
    mine.sends.pop_front();
    ibv_wc done{};
    done.wr_id = send.request.wr_id;
    done.status = mine.broken || peer.broken ? IBV_WC_WR_FLUSH_ERR : transfer(send, peer);
    ++mine.places_done;
    if (done.status != IBV_WC_SUCCESS) mine.broken = true;
    if (done.status == IBV_WC_SUCCESS && (send.request.send_flags & IBV_SEND_SIGNALED) == 0) return;
    complete(mine, {done, std::exchange(mine.places_done, 0)});
  }

  static bool takes_write(const Region& region, uint32_t key, const std::byte* to, uint64_t bytes) {
    return key == region.key && to >= region.base && to + bytes <= region.base + region.bytes;
  }

  ibv_wc_status transfer(const Send& send, Side& peer) {
    const std::byte* const data = send.inlined.empty()
                                      ? reinterpret_cast<const std::byte*>(send.piece.addr)
                                      : send.inlined.data();
    const uint32_t bytes = send.piece.length;
    if (send.request.opcode != IBV_WR_SEND) {
      auto* const to = reinterpret_cast<std::byte*>(send.request.wr.rdma.remote_addr);
      if (!takes_write(peer.region, send.request.wr.rdma.rkey, to, bytes)) {
        fault("a WRITE beyond the region");
        return IBV_WC_REM_ACCESS_ERR;
      }
      std::memcpy(to, data, bytes);
      if (send.request.opcode == IBV_WR_RDMA_WRITE) return IBV_WC_SUCCESS;
    }
    if (peer.receives.empty()) {
      fault("receiver not ready");
      return IBV_WC_RNR_RETRY_EXC_ERR;
    }
    ibv_wc arrived{};
    arrived.wr_id = peer.receives.front().wr_id;
    arrived.opcode = IBV_WC_RECV;
    const ibv_sge piece = peer.receive_pieces.front();
    peer.receives.pop_front();
    peer.receive_pieces.pop_front();
    if (send.request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
      arrived.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
      arrived.wc_flags = IBV_WC_WITH_IMM;
      arrived.imm_data = send.request.imm_data;
    } else if (bytes > piece.length) {
      fault("a SEND longer than its receive");
      return IBV_WC_REM_INV_REQ_ERR;
    } else {
      std::memcpy(reinterpret_cast<void*>(piece.addr), data, bytes);
      arrived.byte_len = bytes;
    }
    complete(peer, {arrived, 0});
    return IBV_WC_SUCCESS;
  }

  void complete(Side& side, const Completion& completion) {
    side.completions.push_back(completion);
    if (std::exchange(side.armed, false)) side.events->add(side.pair->path());
  }

  void fault(const char* what) {
    if (faults_.empty()) faults_ = what;
  }

  const bool is_like_siw_;
  mutable std::mutex mutex_;
  std::condition_variable work_;
  bool ending_ = false;
  bool is_dark_ = false;
  Side sides_[2];
  std::string faults_;
  std::thread device_;  // last: it uses all of these
};

}  // namespace faro::test
