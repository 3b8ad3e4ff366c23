// What SessionConfig.java has encoded.
#pragma once

#include <jni.h>

#include "faro/config.h"
#include "faro/status.h"

namespace faro::jni {

/// The settings of SessionConfig.encoded(), over those of the environment if that is wanted. Errors: config_invalid.
Result<Config> config_of(JNIEnv* env, jbyteArray settings, jboolean environment);

}  // namespace faro::jni
