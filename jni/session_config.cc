// io.faro.SessionConfig: the table of settings.
#include <jni.h>

#include <array>
#include <string>

#include "faro/config.h"
#include "faro/status.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"

namespace faro::jni {
namespace {

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

const std::array kMethods{method("table", "()[B", table), method("codes", "()[B", codes)};

}  // namespace

const Natives kSessionConfigNatives{"io/faro/SessionConfig", kMethods};

}  // namespace faro::jni
