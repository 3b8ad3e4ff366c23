// What faro/c.h says of endpoints, pollers and their channels.
#include "faro/endpoint.h"

#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/return_if_error.h"
#include "c/errors.h"
#include "c/handles.h"
#include "c/sized.h"

using namespace faro::c;
using faro::ChannelAcceptance;
using faro::ChannelEvent;
using faro::ChannelId;
using faro::ChannelRequest;
using faro::ChannelSpec;
using faro::Closing;
using faro::Code;
using faro::Endpoint;
using faro::EndpointSpec;
using faro::Outcome;
using faro::Result;
using faro::Status;
using faro::Wait;
using faro::WakeFor;

faro_endpoint::faro_endpoint(std::unique_ptr<Endpoint> opened) : endpoint(std::move(opened)) {
  for (uint32_t index = 0; index < endpoint->poller_count(); ++index)
    pollers.push_back({endpoint->poller(index)});
}

namespace {

ChannelId id_of(faro_channel_id channel) { return {channel.index, channel.generation}; }
faro_channel_id id_of(ChannelId channel) { return {channel.index, channel.generation}; }

// Asks the program. No exception may reach the network thread: without memory the peer is refused.
ChannelAcceptance ask(faro_accept accept, void* context, const ChannelRequest& request) noexcept {
  ChannelAcceptance answer;
  try {
    const std::string peer(request.peer);
    const std::string address(request.address);
    faro_channel_request told{};
    told.size = sizeof told;
    told.version = FARO_ABI_VERSION;
    told.peer = peer.c_str();
    told.address = address.c_str();
    told.greeting = request.greeting.data();
    told.greeting_bytes = request.greeting.size();
    told.send_bytes = request.send_bytes;
    told.receive_bytes = request.receive_bytes;
    faro_channel_acceptance given{};
    given.size = sizeof given;
    given.version = FARO_ABI_VERSION;
    accept(context, &told, &given);
    answer.poller = given.poller;
    answer.send_bytes = given.send_bytes;
    answer.receive_bytes = given.receive_bytes;
    answer.ends_when_broken = given.ends_when_broken != 0;
    if (given.refusal != nullptr) answer.refusal = given.refusal;
    if (given.refusal != nullptr && answer.refusal.empty()) answer.refusal = "refused";
  } catch (const std::bad_alloc&) {
    answer.refusal = "no memory";  // short enough to need none
  }
  return answer;
}

Status spec_of(const faro_endpoint_spec* of_caller, EndpointSpec& spec) {
  if (of_caller == nullptr) return Status::Ok();
  faro_endpoint_spec given;
  FARO_RETURN_IF_ERROR(read(of_caller, "spec", given));
  FARO_RETURN_IF_ERROR(
      need_array(given.answer_to_others, given.answer_to_others_bytes, "spec->answer_to_others"));
  const auto* const answer = static_cast<const std::byte*>(given.answer_to_others);
  spec.answer_to_others.assign(answer, answer + given.answer_to_others_bytes);
  if (given.name != nullptr) spec.name = given.name;
  if (given.poller_count != 0) spec.poller_count = given.poller_count;
  if (given.channel_limit != 0) spec.channel_limit = given.channel_limit;
  if (given.accept != nullptr) {
    spec.accept = [accept = given.accept, context = given.context](const ChannelRequest& request) {
      return ask(accept, context, request);
    };
  }
  return Status::Ok();
}

Status spec_of(const faro_channel_spec* of_caller, ChannelSpec& spec) {
  if (of_caller == nullptr) return Status::Ok();
  faro_channel_spec given;
  FARO_RETURN_IF_ERROR(read(of_caller, "spec", given));
  FARO_RETURN_IF_ERROR(need_array(given.greeting, given.greeting_bytes, "spec->greeting"));
  spec.send_bytes = given.send_bytes;
  spec.receive_bytes = given.receive_bytes;
  spec.ends_when_broken = given.ends_when_broken != 0;
  const auto* const greeting = static_cast<const std::byte*>(given.greeting);
  spec.greeting.assign(greeting, greeting + given.greeting_bytes);
  return Status::Ok();
}

Status check_reasons(int32_t wake_for) {
  if (wake_for >= FARO_WAKE_FOR_NOTHING && wake_for <= FARO_WAKE_FOR_FRAMES_AND_ROOM)
    return Status::Ok();
  return Status(Code::invalid_argument,
                "wake_for is not one of 0 … 3: " + std::to_string(wake_for));
}

static_assert(sizeof(faro::ChannelTraffic) == sizeof(faro_ring_traffic) + sizeof(uint64_t),
              "no counter is left out");

faro_endpoint_metrics told_of(const faro::EndpointMetrics& metrics) {
  faro_endpoint_metrics told{};
  told.channels_opened = metrics.channels_opened;
  told.channels_closed = metrics.channels_closed;
  told.channels_lost = metrics.channels_lost;
  told.channels_refused = metrics.channels_refused;
  told.memory_bytes = metrics.memory_bytes;
  told.memory_limit_bytes = metrics.memory_limit_bytes;
  told.polls = metrics.polls;
  told.events = metrics.events;
  told.waits = metrics.waits;
  told.sleeps = metrics.sleeps;
  told.all = traffic_of(metrics.all);
  told.mended = metrics.all.mended;
  return told;
}

faro_channel_metrics told_of(const faro::ChannelMetrics& channel) {
  faro_channel_metrics told{};
  told.size = sizeof told;
  told.version = FARO_ABI_VERSION;
  told.channel = id_of(channel.channel);
  told.poller = channel.poller;
  told.peer = channel.peer.c_str();
  told.address = channel.address.c_str();
  told.transport = channel.transport.c_str();
  told.traffic = traffic_of(channel.traffic);
  told.mended = channel.traffic.mended;
  return told;
}

// Why the last claim or commit has failed.
Status why_refused(const faro_poller& poller, faro_channel_id channel) {
  const Status status = poller.poller.status(id_of(channel));
  return status.ok() ? Status(Code::closed, "the channel was drained") : status;
}

Answer claim_frame(faro_poller& poller, faro_channel_id channel, size_t least, size_t most,
                   faro_channel_claim& claim) {
  std::span<std::byte> space;
  const Outcome outcome = poller.poller.claim(id_of(channel), least, most, space);
  claim = {space.data(), space.size()};
  if (outcome == Outcome::failed) return why_refused(poller, channel);
  return outcome;
}

Status commit_frame(faro_poller& poller, faro_channel_id channel, size_t bytes, int32_t notice) {
  if (notice != FARO_NOTICE_LOUD && notice != FARO_NOTICE_QUIET)
    return Status(Code::invalid_argument, "there is no notice " + std::to_string(notice));
  const Outcome outcome =
      poller.poller.commit(id_of(channel), bytes, static_cast<faro::Notice>(notice));
  return outcome == Outcome::done ? Status::Ok() : why_refused(poller, channel);
}

}  // namespace

// --- endpoint

faro_code faro_endpoint_open(const faro_config* config, const faro_endpoint_spec* spec,
                             faro_endpoint** endpoint) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(config, "config"));
    FARO_RETURN_IF_ERROR(need(endpoint, "endpoint"));
    EndpointSpec asked;
    FARO_RETURN_IF_ERROR(spec_of(spec, asked));
    Result<std::unique_ptr<Endpoint>> opened = Endpoint::open(config->config, std::move(asked));
    if (!opened.ok()) return opened.status();
    *endpoint = new faro_endpoint(std::move(*opened));
    return Status::Ok();
  });
}

faro_code faro_endpoint_channel_memory(const faro_config* config, const uint32_t* send_bytes,
                                       const uint32_t* receive_bytes, uint64_t count,
                                       uint64_t* memory_bytes) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(config, "config"));
    FARO_RETURN_IF_ERROR(need_array(send_bytes, count, "send_bytes"));
    FARO_RETURN_IF_ERROR(need_array(receive_bytes, count, "receive_bytes"));
    FARO_RETURN_IF_ERROR(need_array(memory_bytes, count, "memory_bytes"));
    std::vector<ChannelSpec> channels(count);
    for (size_t i = 0; i < count; ++i) {
      channels[i].send_bytes = send_bytes[i];
      channels[i].receive_bytes = receive_bytes[i];
    }
    FARO_ASSIGN_OR_RETURN(const auto memory, Endpoint::channel_memory(config->config, channels));
    std::copy(memory.begin(), memory.end(), memory_bytes);
    return Status::Ok();
  });
}

const char* faro_endpoint_address(const faro_endpoint* endpoint) {
  return endpoint == nullptr ? nullptr : endpoint->endpoint->address().c_str();
}

uint32_t faro_endpoint_poller_count(const faro_endpoint* endpoint) {
  return endpoint == nullptr ? 0 : endpoint->endpoint->poller_count();
}

faro_code faro_endpoint_poller(faro_endpoint* endpoint, uint32_t index, faro_poller** poller) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(endpoint, "endpoint"));
    FARO_RETURN_IF_ERROR(need(poller, "poller"));
    if (index >= endpoint->pollers.size())
      return Status(Code::invalid_argument, "there is no poller " + std::to_string(index) + " of " +
                                                std::to_string(endpoint->pollers.size()));
    *poller = &endpoint->pollers[index];
    return Status::Ok();
  });
}

faro_code faro_endpoint_read_metrics(const faro_endpoint* endpoint, faro_endpoint_metrics* metrics,
                                     faro_tell_channel tell, void* context) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(endpoint, "endpoint"));
    FARO_RETURN_IF_ERROR(need_struct(metrics, "metrics"));
    FARO_ASSIGN_OR_RETURN(const faro::EndpointMetrics now, endpoint->endpoint->metrics());
    fill(*metrics, told_of(now));
    if (tell == nullptr) return Status::Ok();
    for (const faro::ChannelMetrics& channel : now.channels) {
      const faro_channel_metrics told = told_of(channel);
      tell(context, &told);
    }
    return Status::Ok();
  });
}

faro_code faro_endpoint_close(faro_endpoint* endpoint) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(endpoint, "endpoint"));
    endpoint->endpoint->close();
    return Status::Ok();
  });
}

void faro_endpoint_destroy(faro_endpoint* endpoint) { delete endpoint; }

// --- poller: channels

faro_code faro_poller_connect(faro_poller* poller, const char* address,
                              const faro_channel_spec* spec, faro_channel_id* channel) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(poller, "poller"));
    FARO_RETURN_IF_ERROR(need(address, "address"));
    FARO_RETURN_IF_ERROR(need(channel, "channel"));
    ChannelSpec asked;
    FARO_RETURN_IF_ERROR(spec_of(spec, asked));
    const Result<ChannelId> id = poller->poller.connect(address, asked);
    if (id.ok()) *channel = id_of(*id);
    return id.status();
  });
}

faro_code faro_poller_close(faro_poller* poller, faro_channel_id channel, int32_t closing) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(poller, "poller"));
    if (closing != FARO_CLOSING_DRAIN && closing != FARO_CLOSING_NOW)
      return Status(Code::invalid_argument, "there is no closing " + std::to_string(closing));
    poller->poller.close(id_of(channel), static_cast<Closing>(closing));
    return Status::Ok();
  });
}

faro_code faro_poller_status(faro_poller* poller, faro_channel_id channel) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(poller, "poller"));
    return poller->poller.status(id_of(channel));
  });
}

faro_code faro_poller_describe(faro_poller* poller, faro_channel_id channel,
                               faro_channel_info* info) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(poller, "poller"));
    FARO_RETURN_IF_ERROR(need_struct(info, "info"));
    Result<faro::ChannelInfo> found = poller->poller.info(id_of(channel));
    if (!found.ok()) return found.status();
    poller->info = std::move(*found);
    const faro::ChannelInfo& of = poller->info;
    faro_channel_info told{};
    told.peer = of.peer.c_str();
    told.address = of.address.c_str();
    told.transport = of.transport.c_str();
    told.greeting = of.greeting.data();
    told.greeting_bytes = of.greeting.size();
    told.send_bytes = of.send_bytes;
    told.receive_bytes = of.receive_bytes;
    told.least_frame_bytes = of.least_frame_bytes;
    told.dialled = of.dialled ? 1 : 0;
    told.ends_when_broken = of.ends_when_broken ? 1 : 0;
    fill(*info, told);
    return Status::Ok();
  });
}

faro_code faro_poller_rings(faro_poller* poller, faro_channel_id channel,
                            faro_channel_rings* rings) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(poller, "poller"));
    FARO_RETURN_IF_ERROR(need_struct(rings, "rings"));
    if (rings->size < sizeof(faro_channel_rings))
      return Status(Code::invalid_argument, "rings->size ends before rings->memory");
    Result<faro::ChannelRings> found = poller->poller.rings(id_of(channel));
    if (!found.ok()) return found.status();
    faro_channel_rings told{};
    told.outgoing = found->outgoing.data();
    told.outgoing_bytes = found->outgoing.size();
    told.incoming = found->incoming.data();
    told.incoming_bytes = found->incoming.size();
    told.memory = new faro_ring_memory{std::move(found->memory), std::move(found->addresses)};
    fill(*rings, told);
    return Status::Ok();
  });
}

void faro_ring_memory_destroy(faro_ring_memory* memory) { delete memory; }

void faro_ring_memory_give_back(faro_ring_memory* memory) {
  if (memory != nullptr) memory->memory.reset();
}

// --- poller: frames

faro_code faro_poller_poll(faro_poller* poller, faro_channel_event* events, size_t limit,
                           size_t* count) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(poller, "poller"));
    FARO_RETURN_IF_ERROR(need_array(events, limit, "events"));
    FARO_RETURN_IF_ERROR(need(count, "count"));
    *count = 0;
    std::array<ChannelEvent, 64> some;
    while (*count < limit) {
      const size_t wanted = std::min(some.size(), limit - *count);
      const auto polled = poller->poller.poll(std::span(some).first(wanted));
      for (const ChannelEvent& event : polled) {
        events[(*count)++] = {id_of(event.channel), static_cast<uint32_t>(event.kind), event.token,
                              event.data.data(), event.data.size()};
      }
      if (polled.size() < wanted) break;
    }
    return Status::Ok();
  });
}

faro_code faro_poller_release(faro_poller* poller, faro_channel_id channel, uint32_t token) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(poller, "poller"));
    poller->poller.release(id_of(channel), token);
    return Status::Ok();
  });
}

faro_outcome faro_poller_claim(faro_poller* poller, faro_channel_id channel, size_t least,
                               size_t most, faro_channel_claim* claim) {
  return answered([&]() -> Answer {
    FARO_RETURN_IF_ERROR(need(poller, "poller"));
    FARO_RETURN_IF_ERROR(need(claim, "claim"));
    return claim_frame(*poller, channel, least, most, *claim);
  });
}

faro_code faro_poller_commit(faro_poller* poller, faro_channel_id channel, size_t bytes,
                             int32_t notice) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(poller, "poller"));
    return commit_frame(*poller, channel, bytes, notice);
  });
}

faro_outcome faro_poller_commit_and_claim(faro_poller* poller, faro_channel_id channel,
                                          size_t bytes, int32_t notice, size_t least, size_t most,
                                          faro_channel_claim* claim) {
  return answered([&]() -> Answer {
    FARO_RETURN_IF_ERROR(need(poller, "poller"));
    FARO_RETURN_IF_ERROR(need(claim, "claim"));
    FARO_RETURN_IF_ERROR(commit_frame(*poller, channel, bytes, notice));
    poller->poller.post();
    return claim_frame(*poller, channel, least, most, *claim);
  });
}

faro_code faro_poller_post(faro_poller* poller) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(poller, "poller"));
    poller->poller.post();
    return Status::Ok();
  });
}

// --- poller: waiting

faro_outcome faro_poller_wait(faro_poller* poller, int64_t wait_ns, int32_t wake_for) {
  return answered([&]() -> Answer {
    FARO_RETURN_IF_ERROR(need(poller, "poller"));
    const Result<Wait> wait = wait_of(wait_ns);
    if (!wait.ok()) return wait.status();
    FARO_RETURN_IF_ERROR(check_reasons(wake_for));
    const Outcome outcome = poller->poller.wait(*wait, static_cast<WakeFor>(wake_for));
    if (outcome == Outcome::failed) return Status(Code::closed, "the endpoint was closed");
    return outcome;
  });
}

faro_code faro_poller_wake(faro_poller* poller) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(poller, "poller"));
    poller->poller.wake();
    return Status::Ok();
  });
}

faro_code faro_poller_descriptor(faro_poller* poller, int32_t* descriptor) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(poller, "poller"));
    FARO_RETURN_IF_ERROR(need(descriptor, "descriptor"));
    FARO_ASSIGN_OR_RETURN(*descriptor, poller->poller.descriptor());
    poller->has_descriptor = true;
    return Status::Ok();
  });
}

faro_outcome faro_poller_arm(faro_poller* poller, int32_t wake_for) {
  return answered([&]() -> Answer {
    FARO_RETURN_IF_ERROR(need(poller, "poller"));
    FARO_RETURN_IF_ERROR(check_reasons(wake_for));
    const Outcome outcome = poller->poller.arm(static_cast<WakeFor>(wake_for));
    if (outcome != Outcome::failed) return outcome;
    return poller->has_descriptor
               ? Status(Code::closed, "the endpoint was closed")
               : Status(Code::wrong_state,
                        "call faro_poller_descriptor() before faro_poller_arm()");
  });
}

faro_code faro_poller_try_enter(faro_poller* poller, int32_t* entered) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(poller, "poller"));
    FARO_RETURN_IF_ERROR(need(entered, "entered"));
    *entered = poller->poller.try_enter() ? 1 : 0;
    return Status::Ok();
  });
}

faro_code faro_poller_leave(faro_poller* poller) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(poller, "poller"));
    poller->poller.leave();
    return Status::Ok();
  });
}
