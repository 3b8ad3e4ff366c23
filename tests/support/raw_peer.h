// RawPeer: a blocking socket that speaks to a node's listener by hand: unauthenticated peers, old versions, garbage.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "wire/control.h"

namespace faro::test {

/// Threads: one. Blocks: receive, at most its limit.
class RawPeer {
 public:
  /// `address`: host:port, with the host as a number, or the loopback. It calls from `host`; without one, from the address of the
  /// one that it calls.
  explicit RawPeer(const std::string& address, const char* host = nullptr)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const size_t colon = address.rfind(':');
    sockaddr_in to{};
    to.sin_family = AF_INET;
    if (inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr) != 1)
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr_in from = to;
    if (host != nullptr) inet_pton(AF_INET, host, &from.sin_addr);
    to.sin_port = htons(static_cast<uint16_t>(std::atoi(address.substr(colon + 1).c_str())));
    connected_ =
        ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&from), sizeof from) == 0 &&
        ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }

  bool connected() const { return connected_; }
  void send_bytes(std::span<const std::byte> bytes) {
    [[maybe_unused]] const ssize_t put =
        ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void send_text(std::string_view text) { send_bytes(std::as_bytes(std::span(text))); }
  void send_preamble() {
    const wire::Preamble preamble = wire::control_preamble();
    send_bytes(std::as_bytes(std::span(&preamble, 1)));
  }
  void send_message(const wire::ControlMessage& message) {
    const auto length = static_cast<uint32_t>(message.size());
    send_bytes(std::as_bytes(std::span(&length, 1)));
    send_bytes(message);
  }
  /// For a test that goes on by other means.
  base::UniqueFd take() { return std::move(socket_); }
  /// Says no more. Unlike a close with unread bytes this loses nothing of what was said.
  void end() { shutdown(socket_.get(), SHUT_WR); }
  /// The next message; none at the end of the stream, or after the limit.
  std::optional<wire::ControlMessage> receive(int limit_ms = 10'000) {
    uint32_t length = 0;
    if (!read_exactly(std::as_writable_bytes(std::span(&length, 1)), limit_ms)) return std::nullopt;
    if (length > wire::kControlMessageLimit) return std::nullopt;
    wire::ControlMessage message(length);
    if (!read_exactly(message, limit_ms)) return std::nullopt;
    return message;
  }
  /// The next message, which is a REFUSE or a FAIL.
  Result<wire::Ending> receive_ending() {
    const auto message = receive();
    if (!message) return Status(Code::peer_lost, "no message");
    return wire::decode_ending(*message);
  }
  /// All that comes until the other side closes.
  std::string receive_text(int limit_ms = 10'000) {
    std::string text;
    for (std::byte byte; read_exactly(std::span(&byte, 1), limit_ms);)
      text += static_cast<char>(byte);
    return text;
  }
  /// Whether the other side closes within the limit (whatever it sends before).
  bool closed_within(int limit_ms) {
    std::byte byte;
    while (read_exactly(std::span(&byte, 1), limit_ms)) {
    }
    return ended_;
  }

 private:
  bool read_exactly(std::span<std::byte> into, int limit_ms) {
    while (!into.empty()) {
      pollfd wait{socket_.get(), POLLIN, 0};
      if (poll(&wait, 1, limit_ms) != 1) return false;
      const ssize_t got = recv(socket_.get(), into.data(), into.size(), 0);
      if (got <= 0) {
        ended_ = true;
        return false;
      }
      into = into.subspan(static_cast<size_t>(got));
    }
    return true;
  }

  base::UniqueFd socket_;
  bool connected_ = false;
  bool ended_ = false;
};

}  // namespace faro::test
