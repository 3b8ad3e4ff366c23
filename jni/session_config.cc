// io.faro.SessionConfig: the table of settings, and the numbers of what crosses the boundary as one.
#include "jni/session_config.h"

#include <jni.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "jni/errors.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"
#include "jni/objects.h"

namespace faro::jni {
namespace {

unsigned digit(char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); }

faro_code set_bytes(faro_config* config, const char* name, std::string_view digits) {
  std::string bytes(digits.size() / 2, '\0');
  for (size_t at = 0; at < bytes.size(); ++at)
    bytes[at] = static_cast<char>(digit(digits[2 * at]) << 4 | digit(digits[2 * at + 1]));
  const faro_code set = faro_config_set_bytes(config, name, bytes.data(), bytes.size());
  explicit_bzero(bytes.data(), bytes.size());
  return set;
}

// `settings` is name, NUL, value, NUL, and so on. A name with a # before it has bytes, in
// hexadecimal digits.
faro_code set_all(faro_config* config, const std::string& settings) {
  const char* at = settings.c_str();
  const char* const end = at + settings.size();
  const auto next = [&] {
    const char* const word = at;
    if (at < end) at += std::strlen(at) + 1;
    return word;
  };
  faro_code set = FARO_CODE_OK;
  while (set == FARO_CODE_OK && at < end) {
    const char* const name = next();
    const char* const value = next();
    set = *name == '#' ? set_bytes(config, name + 1, value) : faro_config_set(config, name, value);
  }
  return set;
}

// One line per setting: name, tab, default, tab, help.
jbyteArray table(JNIEnv* env, jclass) {
  std::string text;
  const auto append = [](void* to, const faro_setting* setting) {
    auto& lines = *static_cast<std::string*>(to);
    lines.append(setting->name).append("\t").append(setting->default_value).append("\t");
    lines.append(setting->help).append("\n");
  };
  (void)faro_config_list(append, &text);
  return bytes_of(env, text);
}

// One line per code: number, tab, name, tab, category.
jbyteArray codes(JNIEnv* env, jclass) {
#define FARO_CODE(name, number, category, meaning) #number "\t" #name "\t" #category "\n"
  return bytes_of(env,
#include "faro/codes.def"
  );
#undef FARO_CODE
}

// One line per constant: enum, tab, number, tab, name.
jbyteArray constants(JNIEnv* env, jclass) {
  std::string text;
  auto add = [&text](const char* of, int number, const char* name) {
    text.append(of).append("\t").append(std::to_string(number)).append("\t");
    text.append(name).append("\n");
  };
  for (faro_outcome outcome = FARO_OUTCOME_DONE; outcome < FARO_OUTCOME_FAILED; ++outcome)
    add("outcome", outcome, faro_outcome_name(outcome));
  add("partition", FARO_HASH_FINALIZER, "finalizer");
  add("partition", FARO_HASH_MULTIPLICATIVE, "multiplicative");
  add("channel_event", FARO_CHANNEL_OPENED, "opened");
  add("channel_event", FARO_CHANNEL_FRAME, "frame");
  add("channel_event", FARO_CHANNEL_ROOM, "room");
  add("channel_event", FARO_CHANNEL_CLOSED, "closed");
  add("wake_for", FARO_WAKE_FOR_NOTHING, "nothing");
  add("wake_for", FARO_WAKE_FOR_FRAMES, "frames");
  add("wake_for", FARO_WAKE_FOR_ROOM, "room");
  add("wake_for", FARO_WAKE_FOR_FRAMES_AND_ROOM, "frames_and_room");
  add("delivery", FARO_DELIVERY_WORKER, "worker");
  add("delivery", FARO_DELIVERY_NODE, "node");
  add("delivery", FARO_DELIVERY_REPLICATE, "replicate");
  add("column", FARO_COLUMN_BOOLEAN, "boolean");
  add("column", FARO_COLUMN_INT8, "byte");
  add("column", FARO_COLUMN_INT16, "short");
  add("column", FARO_COLUMN_INT32, "int");
  add("column", FARO_COLUMN_INT64, "long");
  add("column", FARO_COLUMN_FLOAT32, "float");
  add("column", FARO_COLUMN_FLOAT64, "double");
  add("column", FARO_COLUMN_DECIMAL_18, "decimal_18");
  add("column", FARO_COLUMN_DECIMAL_38, "decimal_38");
  add("column", FARO_COLUMN_STRING, "string");
  add("column", FARO_COLUMN_BYTES, "bytes");
  add("function", FARO_FUNCTION_COUNT_ROWS, "count_rows");
  add("function", FARO_FUNCTION_COUNT, "count");
  add("function", FARO_FUNCTION_SUM, "sum");
  add("function", FARO_FUNCTION_MIN, "min");
  add("function", FARO_FUNCTION_MAX, "max");
  add("function", FARO_FUNCTION_ANY, "any");
  add("level", FARO_LOG_DEBUG, "debug");
  add("level", FARO_LOG_INFO, "info");
  add("level", FARO_LOG_WARNING, "warning");
  add("level", FARO_LOG_ERROR, "error");
  return bytes_of(env, text);
}

const std::array kMethods{method("table", "()[B", table), method("codes", "()[B", codes),
                          method("constants", "()[B", constants)};

}  // namespace

Owned<faro_config> config_of(JNIEnv* env, jbyteArray settings, jboolean environment) {
  Owned<faro_config> config(faro_config_create());
  if (config == nullptr) return nullptr;
  if (environment == JNI_TRUE && faro_config_load_environment(config.get()) != FARO_CODE_OK)
    return nullptr;
  std::string text = text_of(env, settings);
  const faro_code set = set_all(config.get(), text);
  explicit_bzero(text.data(), text.size());
  return set == FARO_CODE_OK ? std::move(config) : nullptr;
}

const Natives kSessionConfigNatives{"io/faro/SessionConfig", kMethods};

}  // namespace faro::jni
