#include "contract/connected_pair.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <algorithm>

#include <cstring>
#include <future>
#include <utility>

#include "base/return_if_error.h"
#include "wire/preamble.h"

namespace faro::test {
namespace {

constexpr base::Nanoseconds kConnectLimit = 20'000'000'000;

Status system_error(const char* call) {
  return {Code::system_error, fmt::format("{}: {}", call, std::strerror(errno))};
}

}  // namespace

void ConnectedPair::Side::on_link_failed(const Status& cause) {
  const std::lock_guard lock(mutex);
  if (failures.fetch_add(1) == 0) failure = cause;
}

Result<std::unique_ptr<TransportPair>> ConnectedPair::open(const PairShape& shape, Parts parts) {
  std::unique_ptr<ConnectedPair> pair(new ConnectedPair);
  pair->pump_ = std::move(parts.pump);
  pair->credentials_ = std::move(parts.credentials);
  FARO_RETURN_IF_ERROR(pair->listen());
  for (int side = 0; side < 2; ++side) {
    // Moved: a transport must not outlive the reactor of its side, also if opening fails.
    pair->sides_[side].transport = std::move(parts.transports[side]);
    FARO_RETURN_IF_ERROR(pair->prepare(side, shape));
    pair->sides_[side].context.agreed.signs = parts.signs;
  }
  FARO_RETURN_IF_ERROR(pair->connect());
  return std::unique_ptr<TransportPair>(std::move(pair));
}

ConnectedPair::~ConnectedPair() { stop_network_threads(); }

// Where side 1 takes data connections.
Status ConnectedPair::listen() {
  listener_ = base::UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (!listener_.valid() ||
      bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(listener_.get(), 1) != 0 ||
      getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return system_error("listen");
  }
  address_ = fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
  return {};
}

// A data connection, if one has come with a whole preamble: checks that as a session would.
Status ConnectedPair::accept_stream() {
  if (!stream_.valid()) {
    base::UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) return errno == EAGAIN ? Status() : system_error("accept");
    auto tls = credentials_ == nullptr ? nullptr : credentials_->accept(fd.get());
    stream_ = tls::Socket(std::move(fd), std::move(tls));
  }
  const ssize_t got = stream_.receive(std::span(preamble_).subspan(preamble_bytes_));
  if (got == 0) return {Code::protocol_error, "closed before the preamble"};
  if (got < 0) return errno == EAGAIN ? Status() : system_error("preamble");
  preamble_bytes_ += static_cast<size_t>(got);
  if (preamble_bytes_ < preamble_.size()) return {};
  const wire::Preamble preamble = wire::load_preamble(preamble_);
  if (const char* why = wire::why_invalid(preamble); why != nullptr)
    return {Code::protocol_error, why};
  if (preamble.token != sides_[1].context.stream_token)
    return {Code::protocol_error, "another link's token"};
  auto tls = stream_.tls();
  preamble_bytes_ = 0;
  return sides_[1].exchange->on_stream({stream_.take_fd().release(), std::move(tls)});
}

Status ConnectedPair::prepare(int number, const PairShape& shape) {
  Side& side = sides_[number];
  const ring::Layout& outgoing = number == 0 ? shape.forth : shape.back;
  const ring::Layout& incoming = number == 0 ? shape.back : shape.forth;
  const uint32_t worker_count = outgoing.sender_workers;
  FARO_ASSIGN_OR_RETURN(side.doorbells, transport::shm::NodeDoorbells::make(worker_count));
  const uint32_t groups = (incoming.rings_of_receiver() + 63) / 64;
  for (uint32_t w = 0; w < worker_count; ++w) {
    side.ready_sets.push_back(std::make_unique<ring::ReadySet>(groups));
    side.workers.push_back({side.ready_sets.back().get(), &side.doorbells.line(w)});
  }
  side.ready_groups.resize(std::max(worker_count, incoming.receiver_ends));
  if (incoming.receiver_ends != worker_count) {
    for (const transport::WorkerEnd& worker : side.workers)
      side.all_doorbells.push_back(worker.doorbell);
    side.ready_sets.push_back(std::make_unique<ring::ReadySet>(groups));
    side.node_end = {side.ready_sets.back().get(), side.all_doorbells};
    side.context.node_end = &side.node_end;
  }

  transport::LinkContext& context = side.context;
  context.peer_node = static_cast<uint32_t>(1 - number);
  context.peer_name = fmt::format("node {}", 1 - number);
  context.initiator = number == 0;
  context.peer_address = address_;
  context.peer_host = "127.0.0.1";
  for (size_t i = 0; i < context.stream_token.size(); ++i)
    context.stream_token[i] = static_cast<std::byte>(i * 7 + 1);
  context.outgoing = outgoing;
  context.incoming = incoming;
  context.workers = side.workers;
  context.doorbells = side.doorbells.memory();
  context.ready_group = side.ready_groups;
  context.reactor = &side.reactor;
  context.events = &side;
  context.send = [&side](std::span<const std::byte> message) {
    side.messages.emplace_back(message.begin(), message.end());
  };
  side.setup = side.transport->begin(context);
  return {};
}

template <typename Body>
std::invoke_result_t<Body> ConnectedPair::on(int side, Body body) {
  if (!sides_[side].thread.joinable()) return body();
  std::packaged_task<std::invoke_result_t<Body>()> task(std::move(body));
  auto result = task.get_future();
  sides_[side].reactor.defer([&task] { task(); });
  return result.get();
}

Status ConnectedPair::connect() {
  for (Side& side : sides_) {
    side.exchange = side.setup.get();
    FARO_RETURN_IF_ERROR(side.setup->start());
  }
  FARO_RETURN_IF_ERROR(exchange());
  for (Side& side : sides_) {
    side.link = side.setup->take();
    if (side.link == nullptr) return side.setup->status();
    for (uint32_t end = 0; end < side.context.incoming.receiver_ends; ++end)
      side.link->attach_ready(ready_set(&side == &sides_[0] ? 0 : 1, end), 0, end);
    side.setup.reset();
  }
  return {};
}

// Passes messages and streams on until both sides are ready.
Status ConnectedPair::exchange() {
  const base::Nanoseconds deadline = base::SystemClock::instance().now_ns() + kConnectLimit;
  const auto is_ready = [this](int side) {
    return on(side, [this, side] { return sides_[side].exchange->ready(); });
  };
  while (!is_ready(0) || !is_ready(1)) {
    if (base::SystemClock::instance().now_ns() > deadline)
      return {Code::deadline_exceeded, "the pair is not connected"};
    FARO_RETURN_IF_ERROR(on(1, [this] { return accept_stream(); }));
    for (int from = 0; from < 2; ++from) {
      const auto messages =
          on(from, [this, from] { return std::exchange(sides_[from].messages, {}); });
      for (const std::vector<std::byte>& message : messages) {
        FARO_RETURN_IF_ERROR(on(1 - from, [this, from, &message] {
          return sides_[1 - from].exchange->on_message(message);
        }));
      }
    }
    if (!sides_[0].thread.joinable()) pump();
    for (int side = 0; side < 2; ++side)
      FARO_RETURN_IF_ERROR(on(side, [this, side] { return sides_[side].exchange->status(); }));
  }
  return {};
}

// This is what links/ does: the side that accepts has given up its connection when it tells the
// other one to begin.
Status ConnectedPair::mend() {
  transport::StreamToken token = sides_[0].context.stream_token;
  token[0] = static_cast<std::byte>(static_cast<unsigned>(token[0]) + 1);
  for (const int number : {1, 0}) {
    FARO_RETURN_IF_ERROR(on(number, [this, number, &token] {
      Side& side = sides_[number];
      side.mending = side.transport->mend(side.context, *side.link);
      side.exchange = side.mending.get();
      side.context.stream_token = token;
      return side.mending->start();
    }));
  }
  FARO_RETURN_IF_ERROR(exchange());
  for (int number = 0; number < 2; ++number) {
    FARO_RETURN_IF_ERROR(on(number, [this, number] {
      const auto mending = std::move(sides_[number].mending);
      return mending->finish();
    }));
  }
  return {};
}

bool ConnectedPair::pump() {
  bool worked = false;
  for (Side& side : sides_) worked |= side.reactor.run_once(0);
  if (pump_) worked |= pump_();
  return worked;
}

void ConnectedPair::run_network_threads() {
  for (Side& side : sides_) {
    side.thread = std::thread([this, &side] {
      while (!stopping_.load()) side.reactor.run_once(1000);
    });
  }
}

void ConnectedPair::stop_network_threads() {
  stopping_.store(true);
  for (Side& side : sides_) {
    if (!side.thread.joinable()) continue;
    side.reactor.defer({});
    side.thread.join();
  }
}

void ConnectedPair::drop(int side) { sides_[side].link.reset(); }

Status ConnectedPair::failure(int side) {
  const std::lock_guard lock(sides_[side].mutex);
  return sides_[side].failure;
}

}  // namespace faro::test
