#include "links/resolution.h"

#include <arpa/inet.h>

#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/thread.h"

namespace faro::links {
namespace {

// The thread's name in tools; at most 15 characters.
constexpr const char* kThreadName = "faro-resolver";

bool is_numeric(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  in6_addr parsed;  // room for both
  return inet_pton(AF_INET, host.c_str(), &parsed) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &parsed) == 1;
}

}  // namespace

// Receives the answer. The lookup's thread only defers a command; only the network thread calls
// `done`.
struct Resolution::Wanted {
  std::mutex mutex;
  transport::Reactor* reactor;  // guarded by mutex; null: the lookup was abandoned
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
  const Status started =
      base::start_detached(kThreadName, [wanted, address = address_, lookup = lookup_] {
        auto addresses = std::make_shared<Addresses>(lookup(address));
        const std::lock_guard lock(wanted->mutex);
        if (wanted->reactor == nullptr) return;
        wanted->reactor->defer([wanted, addresses] { wanted->answer(std::move(*addresses)); });
      });
  // Detached: a resolver cannot be interrupted, and no thread should have to wait for it.
  if (started.ok()) return;
  wanted->answer(base::error(Code::connect_failed, "'{}' cannot be resolved: {}", address_,
                             started.message()));
}

}  // namespace faro::links
