// Receiving: from the socket straight into the incoming rings. Everything here is done by the thread that
// holds the right to read (tcp_receiver.h): a worker that looks for rows, or the network thread.
// arrival.h says what a read asks for.
#include <fmt/format.h>
#include <sys/epoll.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "transport/tcp/tcp_link.h"

namespace faro::transport::tcp {
namespace {

// For the network thread, edge-triggered, registered once (tcp_link.h). What can be read is the
// receiver's business.
constexpr uint32_t kEvents = EPOLLOUT | EPOLLRDHUP | EPOLLET;
// Until the peer has named its positions nothing can be sent, so the network thread does not wait for a worker to read.
constexpr uint32_t kResumingEvents = kEvents | EPOLLIN;

// Received from one socket before the others get their turn (native/DESIGN.md#hc-13).
constexpr size_t kReceiveTurnBytes = size_t{512} << 10;

}  // namespace

TcpLink::TcpLink(LinkContext& context, Shared shared, int fd, std::shared_ptr<tls::Stream> tls,
                 RingRegion outgoing, RingRegion incoming)
    : MessagedPath(context, std::move(shared.deferred)),
      receiver_(std::move(shared.receiver)),
      turns_(*this, context.agreed.turns ? std::move(shared.turns) : nullptr),
      stream_(std::in_place, fd, std::move(tls)),
      outgoing_region_(std::move(outgoing)),
      incoming_region_(std::move(incoming)),
      outgoing_(context.outgoing.ring_count()),
      incoming_(context.incoming.ring_count()),
      self_(std::make_shared<TcpLink*>(this)),
      gather_(context.outgoing.ring_count() + context.incoming.ring_count()),
      arrival_(incoming_region_.layout().ring_bytes) {
  const ring::Layout& out = context.outgoing;
  for (uint32_t r = 0; r < out.ring_count(); ++r)
    outgoing_.emplace_back(*this, r, outgoing_region_.base(r), out.ring_bytes);
  const ring::Layout& in = context.incoming;
  for (uint32_t r = 0; r < in.ring_count(); ++r) {
    incoming_.emplace_back(*this, r, incoming_region_.base(r), in.ring_bytes,
                           ready_set_of(context, r), ready_ring_of(context, r));
  }
  resumption_.told = in.ring_count();  // nothing to resume
  resumption_.heard = out.ring_count();
}

uint64_t TcpLink::bytes(const ring::Layout& outgoing, const ring::Layout& incoming) noexcept {
  // What the allocator keeps beside objects of cache lines, the words of pending rings, what waits for its descriptor.
  constexpr uint64_t kBeside = 768;
  constexpr uint64_t kMessageBytes =
      sizeof(wire::DataMessage) + Gather::kPiecesPerMessage * sizeof(iovec);
  const uint32_t out = outgoing.ring_count();
  const uint32_t in = incoming.ring_count();
  return sizeof(TcpLink) + kBeside + out * sizeof(TcpOutgoing) + in * sizeof(TcpIncoming) +
         Gather::limit_of(out + in) * kMessageBytes;
}

Status TcpLink::start() {
  FARO_RETURN_IF_ERROR(turns_.open());
  turns_.enter(context_.reactor->clock().now_ns());
  FARO_RETURN_IF_ERROR(watch());
  FARO_RETURN_IF_ERROR(deferred_->add(*context_.reactor, *this));
  turns_.begin();
  return Status::Ok();
}

Status TcpLink::watch() {
  const uint32_t watched = resumption_.heard != outgoing_.size() ? kResumingEvents : kEvents;
  FARO_RETURN_IF_ERROR(context_.reactor->add(stream_->fd(), watched,
                                             [this](uint32_t events) { on_events(events); }));
  registered_ = true;
  if (!context_.agreed.signs) kernel_watch_.begin(stream_->fd(), context_.liveness);
  return receiver_->add(*context_.reactor, *this, stream_->fd());
}

TcpLink::~TcpLink() {
  stop();
  deferred_->remove(*this);
  turns_.remove();
  receiver_->take();  // whoever was inside has left; the socket is not polled any more
  receiver_->give();
  if (registered_) context_.reactor->remove(stream_->fd());
}

void TcpLink::on_events(uint32_t events) {
  if (halted()) {
    context_.reactor->remove(stream_->fd());
    registered_ = false;
    return;
  }
  if ((events & EPOLLOUT) != 0) on_writable();
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    receiver_->take();
    on_readable(true);
    receiver_->give();
    turns_.send_what_is_due();
  } else if ((events & EPOLLIN) != 0) {
    read_resumes();
  }
}

void TcpLink::read_resumes() {
  receiver_->take();
  on_readable(false);
  const bool resumes = resumption_.heard != outgoing_.size();
  receiver_->give();
  turns_.send_what_is_due();
  if (!resumes && !halted()) context_.reactor->change(stream_->fd(), kEvents);
}

// A read that returns less than it asked for has emptied the socket. Only the end of the stream may still
// follow.
void TcpLink::on_readable(bool until_end) {
  guarded([&] { receive(until_end); });
  ring_doorbells();
}

void TcpLink::receive(bool until_end) {
  if (halted()) return;
  arrival_.restore(receiver_->staging());
  receive_some(until_end);
  arrival_.keep(receiver_->staging());
}

void TcpLink::receive_some(bool until_end) {
  const std::span<std::byte> staging = receiver_->staging();
  size_t turn = 0;
  while (!halted()) {
    // When the turn is over the socket stays readable, except for bytes that TLS has already taken out of it.
    const size_t most = turn < kReceiveTurnBytes || until_end ? SIZE_MAX : stream_->pending();
    if (most == 0) return;
    Arrival::Pieces pieces = arrival_.ask(staging, most);
    const ssize_t received = stream_->receive(pieces.all());
    if (received > 0) {
      const size_t bytes = static_cast<size_t>(received);
      life_.received_bytes += bytes;
      if (!take_received(bytes)) return;
      turn += bytes;
      if (bytes < pieces.bytes() && !until_end) return;
      continue;
    }
    if (received == 0) {
      return fail(Code::peer_lost, arrival_.inside_message()
                                       ? "data connection closed by the peer inside a message"
                                       : "data connection closed by the peer");
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    return fail(Code::peer_lost,
                fmt::format("data connection broken while receiving: {}", stream_->failure(errno)));
  }
}

// That many bytes have arrived where `receive` asked for them. False if the link has failed.
bool TcpLink::take_received(size_t bytes) {
  if (arrival_.received(bytes)) publish();
  return !arrival_.has_message(0) || take_messages();
}

// Takes the whole messages out of staging. False if the link has failed.
bool TcpLink::take_messages() {
  const std::span<std::byte> staging = receiver_->staging();
  size_t taken = 0;
  while (arrival_.has_message(taken)) {
    wire::DataMessage message;
    std::memcpy(&message, staging.data() + taken, sizeof message);
    taken += sizeof message;
    const bool resumes = resumption_.heard != outgoing_.size();
    const Status status = resumes                  ? accept_resume(message)
                          : wire::is_read(message) ? accept_read(message)
                                                   : accept_written(message);
    if (!status.ok()) {
      fail(status.code(), std::string(status.message()));
      return false;
    }
    if (!arrival_.inside_payload()) continue;
    taken += arrival_.fill(staging, taken);
    if (!arrival_.inside_payload()) publish();
  }
  arrival_.drop(staging, taken);
  return true;
}

Status TcpLink::accept_read(const wire::DataMessage& message) {
  const uint32_t number = wire::ring_of(message);
  if (number >= outgoing_.size()) return accept_no_read(message);
  TcpOutgoing& ring = outgoing_[number];
  const wire::Position before = ring.free();
  const wire::Position sent = ring.sent_.load(std::memory_order_relaxed);
  if (message.length != 0 || message.position <= before || message.position > sent ||
      message.position % wire::kFrameAlignment != 0) {
    return base::error(Code::protocol_error,
                       "READ of ring {} at {} with length {}; it was at {} and {} was sent", number,
                       message.position, message.length, before, sent);
  }
  if (ring.free_up_to(message.position)) note_room(context_.outgoing.sender_of(number));
  return {};
}

// A sign of life, whose coming is all that it says; or of turns.
Status TcpLink::accept_no_read(const wire::DataMessage& message) {
  if (context_.agreed.signs && wire::is_sign(message)) return {};
  if (turns_ && wire::is_turn(message)) return turns_.accept(message);
  return base::error(Code::protocol_error, "READ of ring {}; there are {}", wire::ring_of(message),
                     outgoing_.size());
}

Status TcpLink::accept_written(const wire::DataMessage& message) {
  const uint32_t number = wire::ring_of(message);
  if (number >= incoming_.size()) {
    return base::error(Code::protocol_error, "WRITTEN of ring {}; there are {}", number,
                       incoming_.size());
  }
  TcpIncoming& ring = incoming_[number];
  const wire::Position written = ring.written();
  const uint64_t free = ring.write_limit() - written;  // an honest peer's credit is at most this
  if (message.position != written || message.length == 0 || message.length > free ||
      message.length % wire::kFrameAlignment != 0) {
    return base::error(Code::protocol_error,
                       "WRITTEN of ring {} at {} with length {}; expected at {} with at most {}",
                       number, message.position, message.length, written, free);
  }
  arrival_.begin_payload(number, ring.base_, message.position, message.length);
  return {};
}

// The peer names how far it has come in the next ring; with the last one this side may write again.
Status TcpLink::accept_resume(const wire::DataMessage& message) {
  const uint32_t number = resumption_.heard;
  TcpOutgoing& ring = outgoing_[number];
  const wire::Position before = ring.free();
  const wire::Position sent = ring.sent_.load(std::memory_order_relaxed);
  if (message.ring_and_kind != (number | wire::kResumeMessage) || message.position > sent ||
      message.position < before || message.length > message.position - before ||
      message.position % wire::kFrameAlignment != 0 ||
      message.length % wire::kFrameAlignment != 0) {
    return base::error(Code::protocol_error,
                       "{:#x} at {} with length {} where RESUME of ring {} belongs; it was at {} "
                       "and {} was sent",
                       message.ring_and_kind, message.position, message.length, number, before,
                       sent);
  }
  const wire::Position read = message.position - message.length;
  if (read != before && ring.free_up_to(read)) note_room(context_.outgoing.sender_of(number));
  resumption_.owes = resumption_.owes || sent != message.position;
  ring.sent_.store(message.position, std::memory_order_relaxed);
  writes_.mark(number);
  if (++resumption_.heard != outgoing_.size()) return {};
  note_resumed();
  resumption_.may_write.store(true, std::memory_order_release);
  send_now();
  return {};
}

// All have come.
void TcpLink::note_resumed() {
  uint64_t delivered = 0;
  uint64_t arrived = 0;
  for (uint32_t ring = 0; ring != outgoing_.size(); ++ring)
    delivered += outgoing_[ring].sent_.load(std::memory_order_relaxed);
  for (uint32_t ring = 0; ring != incoming_.size(); ++ring) arrived += incoming_[ring].written();
  life_.tally.resumed(delivered, arrived, resumption_.owes);
}

// A payload is complete.
void TcpLink::publish() {
  incoming_[arrival_.ring()].arrived(arrival_.position());
  note_frames(context_.incoming.receiver_of(arrival_.ring()));
}

}  // namespace faro::transport::tcp
