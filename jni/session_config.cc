// io.faro.SessionConfig: the table of settings, and the numbers of what crosses the boundary as one.
#include "jni/session_config.h"

#include <jni.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "faro/config.h"
#include "faro/log.h"
#include "faro/outcome.h"
#include "faro/status.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"
#include "jni/objects.h"

namespace faro::jni {
namespace {

unsigned digit(char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); }

Status set_bytes(Config& config, std::string_view name, std::string_view digits) {
  std::vector<std::byte> bytes(digits.size() / 2);
  for (size_t at = 0; at < bytes.size(); ++at)
    bytes[at] = static_cast<std::byte>(digit(digits[2 * at]) << 4 | digit(digits[2 * at + 1]));
  const Status status = config.set_bytes(name, bytes);
  explicit_bzero(bytes.data(), bytes.size());
  return status;
}

// `settings` is name, NUL, value, NUL, and so on. A name with a # before it has bytes, in hexadecimal digits.
Status set_all(Config& config, std::string_view settings) {
  auto next = [&settings] {
    const size_t end = settings.find('\0');
    const std::string_view word = settings.substr(0, end);
    settings.remove_prefix(end == std::string_view::npos ? settings.size() : end + 1);
    return word;
  };
  while (!settings.empty()) {
    std::string_view name = next();
    if (name.starts_with('#')) {
      name.remove_prefix(1);
      if (Status status = set_bytes(config, name, next()); !status.ok()) return status;
      continue;
    }
    if (Status status = config.set(name, next(), "SessionConfig"); !status.ok()) return status;
  }
  return Status::Ok();
}

// One line per setting: name, tab, default, tab, help.
jbyteArray table(JNIEnv* env, jclass) {
  std::string text;
  for (const SettingInfo& info : Config::table())
    text.append(info.name)
        .append("\t")
        .append(info.default_value)
        .append("\t")
        .append(info.help)
        .append("\n");
  return bytes_of(env, text);
}

// One line per code: number, tab, name, tab, category.
jbyteArray codes(JNIEnv* env, jclass) {
  std::string text;
  auto add = [&text](Code code) {
    text.append(std::to_string(static_cast<int32_t>(code))).append("\t");
    text.append(code_name(code)).append("\t");
    text.append(category_name(category_of(code))).append("\n");
  };
#define FARO_CODE(name, number, category, meaning) add(Code::name);
#include "faro/codes.def"
#undef FARO_CODE
  return bytes_of(env, text);
}

// One line per constant: enum, tab, number, tab, name.
jbyteArray constants(JNIEnv* env, jclass) {
  std::string text;
  auto add = [&text](const char* of, int number, const char* name) {
    text.append(of).append("\t").append(std::to_string(number)).append("\t");
    text.append(name).append("\n");
  };
  for (int i = 0; i < static_cast<int>(Outcome::failed); ++i)
    add("outcome", i, outcome_name(static_cast<Outcome>(i)));
  add("partition", kFinalizerPartition, "finalizer");
  add("partition", kMultiplicativePartition, "multiplicative");
  add("channel_event", FARO_CHANNEL_OPENED, "opened");
  add("channel_event", FARO_CHANNEL_FRAME, "frame");
  add("channel_event", FARO_CHANNEL_ROOM, "room");
  add("channel_event", FARO_CHANNEL_CLOSED, "closed");
  add("wake_for", FARO_WAKE_FOR_NOTHING, "nothing");
  add("wake_for", FARO_WAKE_FOR_FRAMES, "frames");
  add("wake_for", FARO_WAKE_FOR_ROOM, "room");
  add("wake_for", FARO_WAKE_FOR_FRAMES_AND_ROOM, "frames_and_room");
  add("level", static_cast<int>(LogLevel::debug), "debug");
  add("level", static_cast<int>(LogLevel::info), "info");
  add("level", static_cast<int>(LogLevel::warning), "warning");
  add("level", static_cast<int>(LogLevel::error), "error");
  return bytes_of(env, text);
}

const std::array kMethods{method("table", "()[B", table), method("codes", "()[B", codes),
                          method("constants", "()[B", constants)};

}  // namespace

Result<Config> config_of(JNIEnv* env, jbyteArray settings, jboolean environment) {
  Config config;
  if (environment == JNI_TRUE) {
    if (Status status = config.load_environment(); !status.ok()) return status;
  }
  std::string text = text_of(env, settings);
  const Status status = set_all(config, text);
  explicit_bzero(text.data(), text.size());
  if (!status.ok()) return status;
  return config;
}

const Natives kSessionConfigNatives{"io/faro/SessionConfig", kMethods};

}  // namespace faro::jni
