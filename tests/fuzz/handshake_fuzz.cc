// Somebody stands between two nodes that shake hands, and changes, drops, delays, repeats and adds messages.
// With a secret, whoever is admitted has heard what the other has said, all of it and in its order; without
// one, whoever is admitted fits the cluster. Only the agreement at the end is not signed (wire/README.md, "AUTH
// with a secret"): a REFUSE can be turned into it.
#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "fuzz/fuzz_target.h"
#include "links/handshake.h"
#include "support/handshake_pair.h"

namespace faro::fuzz {
namespace {

using test::HandshakeSide;
using wire::ControlMessage;

constexpr uint32_t kMoves = 32;  // of one input; an undisturbed handshake takes 8

std::shared_ptr<const links::Secret> secret_of(std::string_view text) {
  return links::Secret::make(std::as_bytes(std::span(text)), "the fuzzer").value();
}

class HandshakeRun {
 public:
  explicit HandshakeRun(Input input) : input_(input) {
    const uint8_t shape = input_.number<uint8_t>();
    static const auto secret = secret_of("0123456789abcdef0123456789abcdef");
    static const auto other_secret = secret_of("another secret of as many bytes.");
    if ((shape & 1) != 0) dialling_.identity.secret = accepting_.identity.secret = secret;
    if ((shape & 2) != 0) dialling_.identity.secret = other_secret;
    if ((shape & 4) != 0) accepting_.identity.secret = nullptr;
    if ((shape & 8) != 0) dialling_.identity.hello.settings = "ring.bytes=4096\n";
    if ((shape & 16) != 0)
      accepting_.judgement = links::Refusal{Status(Code::session_closed, "not now"), true, false};
  }

  void run() {
    accepting_.begin();
    dialling_.begin();
    for (uint32_t move = 0; move < kMoves && under_way(); ++move) {
      // The accepting side answers at once: at most one direction has something under way.
      HandshakeSide& from = dialling_.wire->sent.empty() ? accepting_ : dialling_;
      HandshakeSide& to = &from == &dialling_ ? accepting_ : dialling_;
      disturb(from, to);
    }
  }

 private:
  bool under_way() const {
    return (!dialling_.wire->sent.empty() && accepting_.wire->handler != nullptr) ||
           (!accepting_.wire->sent.empty() && dialling_.wire->handler != nullptr);
  }

  // Delivers the next message, or something else instead.
  void disturb(HandshakeSide& from, HandshakeSide& to) {
    const ControlMessage said = from.wire->sent.front();
    ControlMessage heard = said;
    bool keep = false;
    switch (input_.below(8)) {
      case 1:
        if (const size_t at = input_.number<uint16_t>(); at < heard.size())
          heard[at] ^= static_cast<std::byte>(input_.number<uint8_t>());
        break;
      case 2:
        heard.resize(input_.number<uint16_t>() % (heard.size() + 1));
        break;
      case 3:
        heard = input_.piece();
        keep = true;
        break;
      case 4:
        if (!history_.empty())
          heard = history_[input_.below(static_cast<uint32_t>(history_.size()))];
        keep = input_.flag();
        break;
      case 5:
        from.wire->sent.pop_front();  // lost
        return;
      case 6:
        keep = true;  // twice
        break;
      default:
        break;
    }
    history_.push_back(said);
    const bool same = heard == said;
    if (!keep || same) from.wire->sent.pop_front();
    if (keep && same && input_.flag()) from.wire->sent.push_front(said);
    if (to.wire->handler == nullptr) return;
    if (heard.empty() || !wire::may_skip(wire::kind_of(heard)))
      (&to == &dialling_ ? dialling_heard_ : accepting_heard_).push_back(heard);
    // A message may be read only as long as it is delivered.
    const std::vector<std::byte> delivered(heard);
    to.wire->handler->on_message(delivered);
    if (to.admitted || to.refused) to.wire->handler = nullptr;  // its owner takes over
    check(dialling_, accepting_, dialling_heard_);
    check(accepting_, dialling_, accepting_heard_);
  }

  // Whether `said` begins with all that was heard. The last one heard may be an agreement where a refusal was said.
  static bool is_start_of(const std::vector<ControlMessage>& said,
                          std::span<const ControlMessage> heard) {
    static const ControlMessage agreement = wire::encode({wire::AuthMethod::secret, true, {}});
    if (heard.size() > said.size()) return false;
    if (heard.back() == agreement &&
        wire::kind_of(said[heard.size() - 1]) == wire::ControlKind::refuse)
      heard = heard.first(heard.size() - 1);
    return std::equal(heard.begin(), heard.end(), said.begin());
  }

  void check(const HandshakeSide& side, const HandshakeSide& peer,
             const std::vector<ControlMessage>& heard) {
    require(!(side.admitted && side.refused), "a handshake ends once");
    if (side.refused) {
      require(!side.refused->status.ok() && !side.refused->status.message().empty(),
              "a refusal says why");
      require(printable(side.refused->status.message()), "what it says is printable");
    }
    for (const ControlMessage& message : side.wire->sent)
      require(!message.empty() && message.size() <= wire::kControlMessageLimit,
              "messages are bounded");
    if (!side.admitted) return;
    require(*side.admitted != side.identity.hello.head.node &&
                *side.admitted < side.identity.hello.node_count,
            "an admitted node has a number of its own in the cluster");
    if (side.dialled_node) require(*side.admitted == *side.dialled_node, "it is who was dialled");
    if (side.identity.secret == nullptr) return;
    require(peer.identity.secret == side.identity.secret, "who is admitted knows the secret");
    require(is_start_of(peer.wire->said, heard),
            "who is admitted has heard what the other has said");
  }

  Input input_;
  HandshakeSide dialling_{2, 1};
  HandshakeSide accepting_{1, std::nullopt};
  std::vector<ControlMessage> history_;
  std::vector<ControlMessage> dialling_heard_;  // without what is skipped
  std::vector<ControlMessage> accepting_heard_;
};

}  // namespace

void run_target(Input input) { HandshakeRun(input).run(); }

}  // namespace faro::fuzz
