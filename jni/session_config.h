// What SessionConfig.java has encoded.
#pragma once

#include <jni.h>

#include "faro/c.h"
#include "jni/objects.h"

namespace faro::jni {

/// The settings of SessionConfig.encoded(), over those of the environment if that is wanted. Null:
/// faro_last_error tells why, config_invalid.
Owned<faro_config> config_of(JNIEnv* env, jbyteArray settings, jboolean environment);

}  // namespace faro::jni
