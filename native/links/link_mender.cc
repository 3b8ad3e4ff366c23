#include "links/link_mender.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/each.h"
#include "base/error.h"
#include "base/planted.h"

namespace faro::links {
namespace {

bool waits(const Link& link) {
  return link.state().awaits_connection() && !link.control().attached() &&
         !link.context().mending.address.empty();
}

// It has been accepted: the peer mends it, if it lives.
bool asks(const Link& link) { return !link.context().initiator && waits(link); }

uint64_t number_of(const Link& link) { return link.choice()->number; }

}  // namespace

void LinkMender::advance(base::Nanoseconds now) {
  std::erase_if(attempts_, [this](const auto& each) {
    const Link* link = links_.find(each.first);
    return link == nullptr || !link->state().awaits_connection() ||
           number_of(*link) != each.second.link;
  });
  if (links_.watch().mending() == 0) return asking_.clear();
  choose_askers(now);
  base::Each each;
  links_.for_each([&](Link& link) {
    if (!link.state().awaits_connection()) return;
    each.run([&] { link.control().attached() ? link.advance() : dial(link, now); });
  });
  each.rethrow();
}

// The next one of those that ask the same process, in turn.
void LinkMender::choose_askers(base::Nanoseconds now) {
  std::map<uint64_t, std::vector<uint32_t>> places;  // in their order
  links_.for_each([&](const Link& link) {
    if (asks(link)) places[link.peer().incarnation].push_back(link.place());
  });
  std::erase_if(asking_, [&](const auto& each) { return !places.contains(each.first); });
  for (const auto& [peer, those] : places) {
    Asking& asking = asking_[peer];
    if (asking.asker && !std::ranges::binary_search(those, *asking.asker)) asking.asker.reset();
    if (asking.asker || now < asking.next) continue;
    const auto next = std::ranges::upper_bound(those, asking.last);
    asking.asker = asking.last = next == those.end() ? those.front() : *next;
  }
}

bool LinkMender::may_dial(const Link& link) const {
  if (link.context().initiator) return true;
  const auto asking = asking_.find(link.peer().incarnation);
  return asking != asking_.end() && asking->second.asker == link.place();
}

// The process lives, or does not answer: that holds for the others, too.
void LinkMender::note_answer(const Link& link) {
  const auto found = asking_.find(link.peer().incarnation);
  if (found == asking_.end() || found->second.asker != link.place()) return;
  Asking& asking = found->second;
  asking.asker.reset();
  asking.pause = Dialler::longer(asking.pause);
  asking.next = network_.reactor().clock().now_ns() + asking.pause;
}

void LinkMender::dial(const Link& link, base::Nanoseconds now) {
  if (!waits(link) || !may_dial(link)) return;
  Attempts& attempts = attempts_[link.place()];
  if (attempts.dialler == nullptr) {
    const wire::LinkName name{link.peer().incarnation, number_of(link)};
    attempts.link = name.number;
    attempts.dialler =
        std::make_unique<Dialler>(static_cast<Dialler::Owner&>(*this), network_, identity_,
                                  link.place(), link.context().mending.address, name);
  }
  attempts.dialler->advance(now);
}

base::Nanoseconds LinkMender::next_deadline() const {
  base::Nanoseconds next = base::kForever;
  if (links_.watch().mending() == 0) return next;
  links_.for_each([&](const Link& link) {
    if (!waits(link)) return;
    const auto asking = asking_.find(link.peer().incarnation);
    if (asks(link) && asking != asking_.end() && asking->second.asker != link.place()) {
      if (!asking->second.asker) next = std::min(next, asking->second.next);
      return;
    }
    const auto found = attempts_.find(link.place());
    const bool is_known = found != attempts_.end() && found->second.link == number_of(link);
    next = std::min(next, is_known ? found->second.dialler->next_deadline() : 0);
  });
  return next;
}

// The link that an attempt is for; null: it does not need it any more.
Link* LinkMender::waiting(const Dialler& dialler) const {
  Link* link = links_.find(dialler.peer());
  const auto found = attempts_.find(dialler.peer());
  const bool is_its = found != attempts_.end() && found->second.dialler.get() == &dialler;
  if (link == nullptr || !is_its || !waits(*link)) return nullptr;
  return found->second.link == number_of(*link) ? link : nullptr;
}

void LinkMender::on_dialled(Dialler& dialler, std::unique_ptr<ControlConnection> connection,
                            const wire::Hello& peer) {
  Link* link = waiting(dialler);
  if (link == nullptr) return;
  // Not at once if this connection breaks, too.
  dialler.retry(Status(Code::connect_failed, "the connection has broken again"));
  if (!link->context().initiator)
    return note_answer(*link);  // it has only asked, and is to be refused
  if (peer.incarnation == link->peer().incarnation) return link->resume(std::move(connection), {});
  lose(*link, Status(Code::peer_lost, "another process has its place"));
}

void LinkMender::on_dial_failed(Dialler& dialler, const Status& cause) {
  Link* link = waiting(dialler);
  if (link == nullptr) return;
  link->history().note_failed_mending(cause);
  if (cause.code() != Code::peer_lost) return note_answer(*link);
  const Status why = base::error(Code::peer_lost, "{}: its process has died", cause.message());
  asks(*link) ? lose_all(*link, why) : lose(*link, why);
}

void LinkMender::on_dial_refused(Dialler& dialler, const Refusal& refusal) {
  const bool is_final =
      refusal.is_final() || (refusal.verified && refusal.status.code() == Code::session_closed);
  Link* link = waiting(dialler);
  // If the peer has resumed the link meanwhile, that connection may break as well: then it is asked again.
  if (!is_final || link == nullptr || base::planted(base::Plant::old_incarnation_believed)) {
    // A side that has only asked is refused in order.
    if (link != nullptr && link->context().initiator)
      link->history().note_failed_mending(refusal.status);
    if (link != nullptr) note_answer(*link);
    return dialler.retry(refusal.status);
  }
  if (refusal.status.code() == Code::connect_failed) link->history().note_unopened();
  lose(*link, refusal.status);
}

void LinkMender::lose(Link& link, const Status& why) {
  const Status& cause = link.state().suspension()->cause;
  const Code code = link.state().connected() ? Code::peer_lost : cause.code();  // of its setup
  link.fail(base::error(code, "{}; {}", cause.message(), why.message()));
}

// Its host has refused the connection: the process has died, with all its links.
void LinkMender::lose_all(const Link& asker, const Status& why) {
  std::vector<uint32_t> places;
  links_.for_each([&](const Link& link) {
    const bool is_its = link.peer().incarnation == asker.peer().incarnation &&
                        link.context().mending.address == asker.context().mending.address;
    if (is_its && asks(link)) places.push_back(link.place());
  });
  base::Each each;
  for (const uint32_t place : places) {
    if (Link* const link = links_.find(place)) each.run([&] { lose(*link, why); });
  }
  each.rethrow();
}

}  // namespace faro::links
