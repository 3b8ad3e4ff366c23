// Terminal: an alternate screen and single keys, by plain ANSI sequences, until it is destroyed.
#pragma once

#include <termios.h>

#include <cstddef>
#include <memory>
#include <string>

#include "faro/status.h"

namespace faro::command {

/// Clears the screen and goes to its upper left corner.
inline constexpr char kClearScreen[] = "\x1b[H\x1b[2J";

/// Threads: one. Owns: the terminal's mode, which it restores.
class Terminal {
 public:
  /// Errors: invalid_argument: standard input and output are no terminal.
  static Result<std::unique_ptr<Terminal>> open();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// Waits for this long; true as soon as q, Ctrl-C or Ctrl-D is pressed, or the terminal is closed.
  bool key_that_ends(double seconds);
  /// The current size of the screen.
  size_t lines() const;
  /// Replaces what the screen shows; what does not fit is cut at the bottom.
  void show(const std::string& text);

 private:
  explicit Terminal(const termios& before);
  const termios before_;
};

}  // namespace faro::command
