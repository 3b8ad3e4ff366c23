// two_stage_zeromq: the two-stage job over ZeroMQ, PUSH and PULL sockets over ipc, a message for each
// frame, which its sender fills in place.
#include <sched.h>
#include <unistd.h>
#include <zmq.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "frame_worker.h"
#include "lab/bench/figures.h"
#include "lab/bench/process_group.h"
#include "peer_program.h"

namespace faro::evaluate {
namespace {

/// Messages that a socket holds at most, at each end.
constexpr int kMessages = 64;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
  std::_Exit(3);
}

/// Threads: that of its worker. Owns: its sockets; `context` outlives it.
class ZeromqCarrier final : public FrameCarrier {
 public:
  /// Binds this worker's sockets, whose names begin with `name`.
  ZeromqCarrier(void* context, const std::string& name, uint32_t worker, uint32_t count)
      : context_(context), name_(name), worker_(worker), count_(count), outgoing_(kStages * count) {
    for (uint32_t stage = 0; stage < kStages; ++stage) {
      incoming_[stage] = socket(ZMQ_PULL, ZMQ_RCVHWM);
      if (zmq_bind(incoming_[stage], address(stage, worker).c_str()) != 0) fail("zmq_bind");
      zmq_msg_init(&received_[stage]);
    }
  }
  ~ZeromqCarrier() override {
    for (Outgoing& one : outgoing_) {
      if (one.socket == nullptr) continue;
      if (one.open) zmq_msg_close(&one.message);
      zmq_close(one.socket);
    }
    for (uint32_t stage = 0; stage < kStages; ++stage) {
      zmq_msg_close(&received_[stage]);
      zmq_close(incoming_[stage]);
    }
  }

  /// All workers have bound theirs.
  void connect() {
    for (uint32_t stage = 0; stage < kStages; ++stage) {
      for (uint32_t to = 0; to < count_; ++to) {
        if (to == worker_) continue;
        Outgoing& one = outgoing_[stage * count_ + to];
        one.socket = socket(ZMQ_PUSH, ZMQ_SNDHWM);
        if (zmq_connect(one.socket, address(stage, to).c_str()) != 0) fail("zmq_connect");
      }
    }
  }

  std::byte* try_open(uint32_t stage, uint32_t to) override {
    Outgoing& one = outgoing_[stage * count_ + to];
    if (!one.open && zmq_msg_init_size(&one.message, kFrameBytes) != 0) fail("zmq_msg_init_size");
    one.open = true;
    return static_cast<std::byte*>(zmq_msg_data(&one.message));
  }
  bool try_send(uint32_t stage, uint32_t to, size_t bytes) override {
    Outgoing& one = outgoing_[stage * count_ + to];
    if (bytes < zmq_msg_size(&one.message)) shorten(one.message, bytes);
    if (zmq_msg_send(&one.message, one.socket, ZMQ_DONTWAIT) < 0) {
      if (zmq_errno() != EAGAIN) fail("zmq_msg_send");
      return false;
    }
    one.open = false;
    return true;
  }
  Arrived try_receive(uint32_t stage) override {
    zmq_msg_t& message = received_[stage];
    if (zmq_msg_recv(&message, incoming_[stage], ZMQ_DONTWAIT) < 0) {
      if (zmq_errno() != EAGAIN) fail("zmq_msg_recv");
      return {};
    }
    return {true, {static_cast<const std::byte*>(zmq_msg_data(&message)), zmq_msg_size(&message)}};
  }
  void release(uint32_t) override {}  // the next message takes its place

 private:
  struct Outgoing {
    void* socket = nullptr;
    zmq_msg_t message;
    bool open = false;
  };

  void* socket(int type, int limit) {
    void* const made = zmq_socket(context_, type);
    const int none = 0;
    if (made == nullptr || zmq_setsockopt(made, limit, &kMessages, sizeof kMessages) != 0 ||
        zmq_setsockopt(made, ZMQ_LINGER, &none, sizeof none) != 0) {
      fail("zmq_socket");
    }
    return made;
  }
  std::string address(uint32_t stage, uint32_t worker) const {
    // In the abstract namespace: no files that could be left behind.
    return "ipc://@" + name_ + "-" + std::to_string(worker) + "-" + std::to_string(stage);
  }
  static void shorten(zmq_msg_t& message, size_t bytes) {
    zmq_msg_t less;
    if (zmq_msg_init_size(&less, bytes) != 0) fail("zmq_msg_init_size");
    std::memcpy(zmq_msg_data(&less), zmq_msg_data(&message), bytes);
    zmq_msg_move(&message, &less);
    zmq_msg_close(&less);
  }

  void* const context_;
  const std::string name_;
  const uint32_t worker_;
  const uint32_t count_;
  void* incoming_[kStages] = {};
  zmq_msg_t received_[kStages];
  std::vector<Outgoing> outgoing_;  // by stage and receiver
};

/// One process: its workers, each on a thread.
Status run_process(const PeerFlags& flags, const std::string& name, bench::GroupMember& member) {
  void* const context = zmq_ctx_new();
  {
    std::vector<std::unique_ptr<ZeromqCarrier>> carriers;
    for (uint32_t local = 0; local < flags.job.workers_per_process; ++local) {
      carriers.push_back(std::make_unique<ZeromqCarrier>(context, name, member.global_worker(local),
                                                         flags.job.worker_count()));
    }
    member.meet_processes();
    member.run_workers([&](uint32_t local) {
      ZeromqCarrier& carrier = *carriers[local];
      carrier.connect();
      FrameWorker worker(flags.job, member.global_worker(local), carrier);
      for (uint32_t round = 0; round < flags.rounds; ++round) {
        member.start_round(local, round);
        worker.begin();
        while (!worker.over()) {
          if (!worker.turn()) sched_yield();
        }
        member.end_round(local, round, worker.totals());
      }
      return Status::Ok();
    });
  }
  zmq_ctx_term(context);
  return Status::Ok();
}

int run(const PeerFlags& flags) {
  bench::RunOptions options;
  options.warmup_rounds = 0;
  options.timed_rounds = flags.rounds;
  Result<bench::ProcessGroup> group = bench::ProcessGroup::create(
      group_options(flags.job.process_count, flags.job.workers_per_process, options));
  if (!group) {
    std::fprintf(stderr, "%s\n", group.status().to_string().c_str());
    return 3;
  }
  const std::string name = "faro-" + std::to_string(getpid());
  const Result<std::vector<bench::RoundTotals>> rounds =
      group->run([&](bench::GroupMember& member) { return run_process(flags, name, member); });
  if (!rounds) {
    std::fprintf(stderr, "%s\n", rounds.status().to_string().c_str());
    return 3;
  }
  int major = 0;
  int minor = 0;
  int patch = 0;
  zmq_version(&major, &minor, &patch);
  return print_rounds(
      flags.job,
      "ZeroMQ " + std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch),
      *rounds);
}

}  // namespace
}  // namespace faro::evaluate

int main(int argc, char** argv) {
  return faro::evaluate::run(faro::evaluate::read_flags(argc, argv));
}
