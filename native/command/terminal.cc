#include "command/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <string_view>

namespace faro::command {
namespace {

constexpr std::string_view kOwnScreen = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kFormerScreen = "\x1b[?25h\x1b[?1049l";
constexpr char kCtrlC = 3;
constexpr char kCtrlD = 4;
constexpr size_t kUsualLines = 24;

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = write(STDOUT_FILENO, text.data(), text.size());
    if (wrote <= 0) return;
    text.remove_prefix(static_cast<size_t>(wrote));
  }
}

}  // namespace

Result<std::unique_ptr<Terminal>> Terminal::open() {
  termios before{};
  if (isatty(STDOUT_FILENO) != 1 || tcgetattr(STDIN_FILENO, &before) != 0) {
    return Status(Code::invalid_argument,
                  "needs a terminal; `faro stat` prints tables anywhere, `faro stat --once` one");
  }
  return std::unique_ptr<Terminal>(new Terminal(before));
}

Terminal::Terminal(const termios& before) : before_(before) {
  termios single_keys = before_;
  // Ctrl-C is an ordinary key here, so the destructor restores the mode and not a signal handler.
  single_keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
  single_keys.c_cc[VMIN] = 0;
  single_keys.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &single_keys);
  put(kOwnScreen);
}

Terminal::~Terminal() {
  put(kFormerScreen);
  tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

bool Terminal::key_that_ends(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd polled{STDIN_FILENO, POLLIN, 0};
    if (left <= 0 || poll(&polled, 1, static_cast<int>(left) + 1) == 0) return false;
    if (polled.revents == 0) return false;  // a signal: the window has another size
    char key = 0;
    if (read(STDIN_FILENO, &key, 1) <= 0) return true;
    if (key == 'q' || key == 'Q' || key == kCtrlC || key == kCtrlD) return true;
  }
}

size_t Terminal::lines() const {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row
                                                                         : kUsualLines;
}

void Terminal::show(const std::string& text) {
  size_t end = 0;
  for (size_t line = 1; line < lines() && end != std::string::npos; ++line) {
    end = text.find('\n', end);
    if (end != std::string::npos) ++end;
  }
  put(kClearScreen);
  put(std::string_view(text).substr(0, end));
}

}  // namespace faro::command
