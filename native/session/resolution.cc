#include "session/resolution.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <pthread.h>

#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace faro::session {
namespace {

// How the thread is called in tools; at most 15 characters.
constexpr const char* kThreadName = "faro-resolver";

bool is_numeric(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  in6_addr parsed;  // room for both
  return inet_pton(AF_INET, host.c_str(), &parsed) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &parsed) == 1;
}

}  // namespace

// What the answer is for. The thread only defers; `done` is the network thread's alone.
struct Resolution::Wanted {
  std::mutex mutex;
  transport::Reactor* reactor;  // guarded by mutex; null: nobody waits, and it may be gone
  Done done;

  void answer(Addresses addresses) {
    if (done) std::exchange(done, {})(std::move(addresses));
  }
};

Resolution::Resolution(transport::Reactor& reactor, std::string address, Done done, Lookup lookup)
    : address_(std::move(address)),
      lookup_(std::move(lookup)),
      wanted_(std::make_shared<Wanted>()) {
  wanted_->reactor = &reactor;
  wanted_->done = std::move(done);
}

Resolution::~Resolution() {
  wanted_->done = {};
  const std::lock_guard lock(wanted_->mutex);
  wanted_->reactor = nullptr;
}

void Resolution::start() {
  const std::shared_ptr<Wanted> wanted = wanted_;  // `done` may destroy this
  if (is_numeric(address_)) return wanted->answer(lookup_(address_));
  const auto look_up = [wanted, address = address_, lookup = lookup_] {
    pthread_setname_np(pthread_self(), kThreadName);
    auto addresses = std::make_shared<Addresses>(lookup(address));
    const std::lock_guard lock(wanted->mutex);
    if (wanted->reactor == nullptr) return;
    wanted->reactor->defer([wanted, addresses] { wanted->answer(std::move(*addresses)); });
  };
  // Signals are the engine's business, and a JVM's: the thread is born without any.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Status started;
  try {
    // Detached: a resolver cannot be interrupted, and nobody may have to wait for it.
    std::thread(look_up).detach();
  } catch (const std::system_error& error) {
    started = Status(
        Code::connect_failed,
        fmt::format("'{}' cannot be resolved: no thread for it: {}", address_, error.what()));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started.ok()) wanted->answer(started);
}

}  // namespace faro::session
