// SetupExchange: the messages that the two sides of a link exchange until both have its data link.
//
//   dialling side              accepting side
//            <------ LINK {transport, token}        the accepting side's choice
//      SETUP <-----> SETUP                          what the transport needs, either side
//      READY  <----> READY                          when a side has all it needs
//
// SETUP and READY may arrive before the dialling side begins: it waits for other links. They are kept
// until then.
//
// A link is mended by these messages, too, with another token and the same transport (restart).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "faro/status.h"
#include "transport/transport.h"
#include "wire/control.h"

namespace faro::links {

/// Threads: network thread. Blocks: never. Owns: the transport's part of the setup.
class SetupExchange {
 public:
  enum class Verdict { taken, malformed, out_of_place, failed };

  explicit SetupExchange(bool dialling) : dialling_(dialling) {}

  /// Accepting side: sets the transport that this side has chosen. Call it once, before begin.
  void choose(wire::LinkChoice choice) {
    choice_ = std::move(choice);
    awaits_choice_ = false;
  }
  /// The accepting side's choice, once it is known.
  const std::optional<wire::LinkChoice>& choice() const { return choice_; }
  /// Whether a data connection with this token belongs here.
  bool takes(const transport::StreamToken& token) const;

  /// Errors: why the setup has failed.
  Status begin(transport::Transport& transport, transport::LinkContext& context);
  /// All begins anew, to mend the link that came of it.
  void restart();
  /// Accepting side, after that: the old connection is given up (`mending`), and there is another token.
  void choose_again(std::unique_ptr<transport::LinkMending> mending,
                    const transport::StreamToken& token);
  /// After restart the accepting side has told its token, and this side has not begun.
  bool may_mend() const { return !awaits_choice_ && part_ == nullptr; }
  bool begun() const { return part_ != nullptr; }
  /// Begins the setup that mends a link, when may_mend. Errors: why the link is not mended.
  Status mend(transport::Transport& transport, transport::LinkContext& context,
              transport::DataLink& link);
  /// Messages that came before begin, in their order; once.
  std::vector<wire::ControlMessage> take_early();

  /// A LINK, SETUP or READY of the peer. After `failed`, status() says why.
  Verdict on_message(std::span<const std::byte> message);
  /// A data connection of this link. Errors: why the setup has failed.
  Status on_stream(transport::DataStream stream);
  /// Checks whether the transport has made progress. True: this side is ready from now on, and the peer has to be told.
  /// Errors: why the setup has failed.
  Result<bool> advance();
  /// This side is ready, and the peer was told.
  bool has_told() const { return ready_ == Ready::ours || ready_ == Ready::both; }
  /// Both sides are ready.
  /// While a data connection is dialled again this side is not ready, though it was.
  bool complete() const { return ready_ == Ready::both && part_->ready(); }
  /// The data link, once, when this side has told that it is ready. Errors: why there is none.
  Result<std::unique_ptr<transport::DataLink>> take();
  /// Ends the setup of a link that is mended, when this side has told that it is ready. Errors: why
  /// it is not mended.
  Status finish();
  /// Why on_message has failed.
  const Status& status() const { return failure_; }

 private:
  enum class Ready { neither, ours, theirs, both };

  bool peer_is_ready() const { return ready_ == Ready::theirs || ready_ == Ready::both; }
  Verdict on_choice(std::span<const std::byte> message);
  bool keep(std::span<const std::byte> message);

  const bool dialling_;
  std::optional<wire::LinkChoice> choice_;
  std::vector<wire::ControlMessage> early_;  // came before begin
  bool awaits_choice_ = true;
  std::unique_ptr<transport::LinkSetup> setup_;      // from begin to take
  std::unique_ptr<transport::LinkMending> mending_;  // from choose_again or mend to finish
  transport::LinkExchange* part_ = nullptr;          // one of the two
  Ready ready_ = Ready::neither;
  Status failure_;
};

}  // namespace faro::links
