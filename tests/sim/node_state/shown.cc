#include "sim/node_state/shown.h"

#include <fmt/format.h>

#include <iterator>

#include "faro/hash.h"
#include "wire/control.h"
#include "wire/query_message.h"

namespace faro::node_state {
namespace {

// What nodes say of queries, by wire::QueryMessageKind, and of links that rest, by wire::RestStep.
constexpr std::string_view kOfQueries[] = {"",        "fail",    "stop", "ended",
                                           "outcome", "confirm", "await"};
constexpr std::string_view kOfRest[] = {"rest_ask", "rest_yes", "rest_no"};

// What a message says in words, which may be told in others: of the kind `cause`.
std::string words_of(std::span<const std::byte> message) {
  switch (wire::kind_of(message)) {
    case wire::ControlKind::refuse:
    case wire::ControlKind::fail: {
      const auto ending = wire::decode_ending(message);
      return ending.ok() ? ending->reason : "";
    }
    case wire::ControlKind::application: {
      const auto payload = wire::decode_payload(message);
      if (!payload.ok()) return "";
      const auto query = wire::decode_query_message(*payload);
      return query ? query->text : "";
    }
    default:
      return "";
  }
}

std::string numbers_of(const std::vector<bool>& set) {
  std::string text;
  for (size_t n = 0; n < set.size(); ++n) text += set[n] ? fmt::format(" {}", n) : "";
  return text;
}

}  // namespace

// --- lines

void Shown::begin(const base::Clock& clock, const std::string& call) {
  end();
  clock_ = &clock;
  begun_ = clock.now_ns();
  record_.begin_call("{}", call);
}

void Shown::end() {
  for (const auto& [place, lines] : lines_) {
    for (const auto& [kind, text] : lines) record_.note(kind, "{}", text);
  }
  lines_.clear();
}

void Shown::add(const Place& place, Kind kind, std::string text) {
  const base::Nanoseconds passed = (clock_->now_ns() - begun_) / kMillisecond;
  if (passed > 0) text.insert(0, fmt::format("+{} ms ", passed));
  lines_[place].emplace_back(kind, std::move(text));
}

void Shown::note(uint32_t number, Kind kind, std::string text) {
  add({happened, number, 0, 0}, kind, fmt::format("node {}: {}", number, text));
}

void Shown::note(uint32_t number, Kind kind, const std::string& what, const Status& status) {
  std::string about = status.node() ? fmt::format(" of node {}", *status.node()) : "";
  if (status.query()) about += ", query " + name_of(*status.query());
  note(number, kind, fmt::format("{} {}{}", what, code_name(status.code()), about));
  if (!status.ok()) note(number, Kind::cause, std::string(status.message()));
  if (kind == Kind::answer) record_.count("answer " + std::string(code_name(status.code())));
  if (status.message().find("memory.limit_bytes") != std::string::npos)
    record_.count("links without memory");
}

void Shown::note_state(uint32_t number, std::string state_text) {
  if (states_[number] == state_text) return;
  states_[number] = state_text;
  add({state, number, 0, 0}, Kind::state, fmt::format("node {} sees {}", number, state_text));
}

// --- names

std::string Shown::name_of(uint64_t incarnation) const {
  const auto name = names_.find(incarnation);
  return name == names_.end() ? fmt::format("{:#x}", incarnation) : name->second;
}

std::string Shown::name_of(const QueryId& query) const {
  return fmt::format("{}:{}", name_of(query.incarnation), query.counter);
}

// --- control connections

Shown::Place Shown::place_of(const programs::ManualNetwork& by, const programs::ManualNetwork& to,
                             uint32_t connection) const {
  return {said, by.node(), to.node(), connection};
}

void Shown::on_dial(const programs::ManualNetwork& by, const std::string& address,
                    bool is_answered) {
  if (by.is_dead()) return;
  add({dialled, by.node(), 0, 0}, Kind::message,
      fmt::format("node {} dials {}{}", by.node(), address, is_answered ? "" : ", in vain"));
}

void Shown::on_message(const programs::ManualNetwork& by, const programs::ManualNetwork& to,
                       uint32_t connection, std::span<const std::byte> message) {
  if (by.is_dead()) return;
  const wire::ControlKind kind = wire::kind_of(message);
  const std::string said_so = say(message);
  add(place_of(by, to, connection),
      kind == wire::ControlKind::heartbeat ? Kind::alive : Kind::message,
      fmt::format("{}>{} #{} {}", by.node(), to.node(), connection, said_so));
  if (const std::string words = words_of(message); !words.empty())
    add(place_of(by, to, connection), Kind::cause, "  " + words);
  record_.count(said_so.substr(0, said_so.find(' ')));
}

void Shown::on_close(const programs::ManualNetwork& by, const programs::ManualNetwork& to,
                     uint32_t connection) {
  if (by.is_dead()) return;
  add(place_of(by, to, connection), Kind::message,
      fmt::format("{}>{} #{} closes", by.node(), to.node(), connection));
}

// HELLO, LINK, AUTH: with a hash of all their bytes. SETUP is between two transports.
std::string Shown::say(std::span<const std::byte> message) const {
  const wire::ControlKind kind = wire::kind_of(message);
  const std::string name(wire::name_of(kind));
  const auto hash = [&] { return hash_bytes(message.data(), message.size()); };
  switch (kind) {
    case wire::ControlKind::hello: {
      const auto hello = wire::decode_hello(message);
      if (!hello.ok()) break;
      return fmt::format("{} of {} to {}{} {:016x}", name, name_of(hello->incarnation),
                         hello->expected_node,
                         hello->mends ? fmt::format(", mends link {} of {}", hello->mends->number,
                                                    name_of(hello->mends->incarnation))
                                      : "",
                         hash());
    }
    case wire::ControlKind::refuse:
    case wire::ControlKind::fail: {
      const auto ending = wire::decode_ending(message);
      if (!ending.ok()) break;
      return fmt::format("{} {}{}", name, code_name(ending->code), ending->retry ? ", retry" : "");
    }
    case wire::ControlKind::members: {
      const auto members = wire::decode_members(message, plan_.numbers);
      if (!members.ok()) break;
      return fmt::format("{} {}, missing{}", name, members->linked ? "linked" : "not linked",
                         numbers_of(members->missing));
    }
    case wire::ControlKind::application: {
      const auto payload = wire::decode_payload(message);
      if (!payload.ok()) break;
      return say_query_message(*payload);
    }
    case wire::ControlKind::heartbeat:
    case wire::ControlKind::resume:
    case wire::ControlKind::setup:
    case wire::ControlKind::ready:
    case wire::ControlKind::bye:
    case wire::ControlKind::broken:
      return name;
    default:
      break;
  }
  return fmt::format("{} {:016x}", name, hash());
}

std::string Shown::say_query_message(std::span<const std::byte> payload) const {
  const auto message = wire::decode_query_message(payload);
  if (!message) return fmt::format("malformed {:016x}", hash_bytes(payload.data(), payload.size()));
  switch (message->kind) {
    case wire::QueryMessageKind::released:
      return fmt::format("released {} {}", message->first,
                         message->number == 0            ? "whichever process"
                         : message->number == UINT64_MAX ? "taken back"
                                                         : name_of(message->number));
    case wire::QueryMessageKind::rest:
      return std::string(kOfRest[message->first % std::size(kOfRest)]);
    default:
      break;
  }
  const wire::QueryKey& key = message->query;
  return fmt::format(
      "{} of {}, {} {}{}, number {:#x}", kOfQueries[static_cast<size_t>(message->kind)],
      name_of({key.counter, key.incarnation, key.issuer, 0}), message->first, message->second,
      message->stage ? fmt::format(", stage {}", *message->stage) : "", message->number);
}

}  // namespace faro::node_state
