// Every decoder of a whole message gets the same bytes. What one takes must be exactly what its
// encoder makes of the fields: nothing was overlooked, and nothing was read that is not there.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "fuzz/fuzz_target.h"
#include "links/secret.h"
#include "metrics/scrape.h"
#include "wire/control.h"
#include "wire/fields.h"
#include "wire/preamble.h"
#include "wire/query_message.h"
#include "wire/verbs_message.h"

namespace faro::fuzz {
namespace {

using wire::ControlMessage;

// What decoding keeps of a message: all; how it begins, because the fields at its end are skipped; its values, because a
// text is made printable, or a missing one is given.
enum class Kept : uint8_t { bytes, beginning, values };

template <typename Decode, typename Encode>
void check_control(std::span<const std::byte> message, Decode decode, Encode encode, Kept kept) {
  const auto decoded = decode(message);
  if (!decoded.ok()) {
    if (decoded.status().code() == Code::configuration_mismatch) {
      return require(decoded.status().message().find("required field ") != std::string_view::npos,
                     "a required field that is unknown is named");
    }
    return require(decoded.status().code() == Code::protocol_error &&
                       decoded.status().message().starts_with("malformed "),
                   "a refused message is a protocol_error that names its kind");
  }
  const ControlMessage again = encode(decoded.value());
  // A reason that is missing is given; what may be skipped is not kept.
  require(kept != Kept::beginning || (again.size() <= message.size() &&
                                      std::equal(again.begin(), again.end(), message.begin())),
          "what was decoded is how what came begins");
  if (kept == Kept::bytes) {
    return require(std::equal(again.begin(), again.end(), message.begin(), message.end()),
                   "what was decoded is what came");
  }
  const auto twice = decode(again);
  require(twice.ok() && encode(twice.value()) == again, "what was decoded can be sent and decoded");
}

void check_control_messages(std::span<const std::byte> message) {
  const wire::ControlKind kind = wire::kind_of(message);
  require(!wire::name_of(kind).empty(), "every kind has a name");
  check_control(
      message, wire::decode_hello, [](const wire::Hello& hello) { return wire::encode(hello); },
      Kept::values);
  check_control(
      message, wire::decode_ending,
      [kind](const wire::Ending& ending) {
        require(printable(ending.reason), "a reason is printable");
        require(code_name(ending.code) != "unknown", "the code of an ending is known");
        return kind == wire::ControlKind::refuse ? wire::encode_refuse(ending)
                                                 : wire::encode_fail(ending);
      },
      Kept::values);
  check_control(
      message, wire::decode_auth, [](const wire::Auth& auth) { return wire::encode(auth); },
      Kept::bytes);
  check_control(
      message, wire::decode_link_choice,
      [](const wire::LinkChoice& choice) { return wire::encode(choice); }, Kept::values);
  check_control(
      message, wire::decode_resume,
      [](const wire::Received& received) { return wire::encode_resume(received); },
      Kept::beginning);
  check_control(
      message, wire::decode_heartbeat,
      [](const std::optional<wire::Received>& received) {
        return received ? wire::encode_heartbeat(*received)
                        : wire::encode_plain(wire::ControlKind::heartbeat);
      },
      Kept::values);
  constexpr uint32_t kNodes = 11;
  check_control(
      message, [](std::span<const std::byte> bytes) { return wire::decode_members(bytes, kNodes); },
      [](const wire::Members& members) { return wire::encode(members); }, Kept::beginning);
  check_control(
      message, wire::decode_payload,
      [kind](std::span<const std::byte> payload) { return wire::encode_payload(kind, payload); },
      Kept::bytes);
  if (wire::check_plain(message).ok()) {
    require(wire::encode_plain(kind)[0] == message[0] && wire::may_skip_fields(message.subspan(1)),
            "a plain message is its kind, and fields that may be skipped");
  }
  const auto head = wire::decode_hello_head(message);
  if (wire::decode_hello(message).ok()) require(head.ok(), "a HELLO has a head");
}

void check_query_message(std::span<const std::byte> bytes) {
  const auto message = wire::decode_query_message(bytes);
  if (!message) return;
  require(printable(message->text), "a cause is printable");
  const std::vector<std::byte> again = wire::encode(*message);
  const size_t text_begin = sizeof(wire::QueryMessageHeader);
  require(again.size() == text_begin + message->text.size() && again.size() <= bytes.size() &&
              std::equal(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(text_begin),
                         again.begin()),
          "a query message is how what came begins");
}

void check_preamble(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(wire::Preamble)) return;
  const wire::Preamble preamble = wire::load_preamble(bytes.first<sizeof(wire::Preamble)>());
  if (wire::why_invalid(preamble) != nullptr) return;
  const wire::Preamble made = preamble.kind == wire::ConnectionKind::control
                                  ? wire::control_preamble()
                                  : wire::data_preamble(preamble.token);
  require(std::memcmp(&made, bytes.data(), sizeof made) == 0, "a preamble is what came");
}

void check_verbs_setup(std::span<const std::byte> bytes) {
  const auto listen = wire::load_verbs_listen(bytes);
  const auto memory = wire::load_verbs_memory(bytes);
  const auto resume = wire::load_verbs_resume(bytes);
  require((listen ? 1 : 0) + (memory ? 1 : 0) + (resume ? 1 : 0) <= 1,
          "a setup message is of one kind");
  if (listen) {
    require(std::memcmp(&*listen, bytes.data(), sizeof *listen) == 0, "a LISTEN is what came");
    require(
        listen->port != 0 && (listen->family == 0 || listen->family == 4 || listen->family == 6),
        "a LISTEN says where");
  }
  if (memory) {
    require(std::memcmp(&*memory, bytes.data(), sizeof *memory) == 0, "a MEMORY is what came");
    require(memory->takes_immediates <= 1, "a MEMORY says yes or no");
  }
  if (resume) {
    std::vector<wire::VerbsProgress> progress;
    for (uint32_t ring = 0; ring < resume->ring_count; ++ring)
      progress.push_back(wire::progress_in(bytes, ring));
    const auto made = wire::encode_verbs_resume(resume->first_ring, progress);
    require(made.size() <= bytes.size() && made.size() <= wire::kControlPayloadLimit &&
                std::memcmp(made.data(), bytes.data(), made.size()) == 0,
            "a RESUME is what came");
  }
}

// write_seeds.cc has a request that shows it.
constexpr std::string_view kToken = "0123456789abcdef0123456789abcdef";

// In two pieces, then whole: how it arrives makes no difference. `token`: null if none is asked for.
void check_scrape(std::span<const std::byte> bytes,
                  const std::shared_ptr<const links::Secret>& token) {
  const std::string_view text = text_of(bytes);
  const auto page = [] { return std::string("the page"); };
  metrics::Scrape whole(token);
  metrics::Scrape parts(token);
  whole.add(text, page);
  const size_t middle = text.size() / 2;
  parts.add(text.substr(0, middle), page);
  if (!parts.answered()) parts.add(text.substr(middle), page);
  require(whole.answered() == !whole.answer().empty(), "an answer has bytes");
  if (!whole.answered()) {
    return require(!parts.answered() && text.size() <= metrics::Scrape::kRequestLimit,
                   "a request that goes on is bounded");
  }
  require(whole.answer().starts_with("HTTP/1.1 "), "an answer is one of HTTP");
  const bool has_page = whole.answer().ends_with("\r\n\r\nthe page");
  require(has_page == whole.answer().starts_with("HTTP/1.1 200 "), "the page goes with 200 alone");
  if (has_page) require(text.starts_with("GET /metrics"), "the page goes to who asked for it");
  require(whole.refused() == whole.answer().starts_with("HTTP/1.1 401 "), "a refusal is a 401");
  if (token == nullptr) {
    require(!whole.refused(), "where no token is asked for nobody is refused");
  } else if (text.find(kToken) == std::string_view::npos) {
    require(!has_page, "the page goes to who shows the token");
  }
  if (text.size() <= metrics::Scrape::kRequestLimit && parts.answered() && middle < text.size() &&
      text.substr(0, middle).find("\r\n\r\n") == std::string_view::npos) {
    require(parts.answer() == whole.answer(), "the answer does not depend on the pieces");
  }
}

}  // namespace

void run_target(Input input) {
  const auto bytes = input.rest();
  check_control_messages(bytes);
  check_query_message(bytes);
  check_preamble(bytes);
  check_verbs_setup(bytes);
  static const auto token =
      links::Secret::make(std::as_bytes(std::span(kToken)), "a token").value();
  check_scrape(bytes, nullptr);
  check_scrape(bytes, token);
}

}  // namespace faro::fuzz
