// io.faro.NodeChanges
#include <jni.h>

#include <array>
#include <memory>

#include "faro/c.h"
#include "jni/errors.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"
#include "jni/objects.h"

namespace faro::jni {
namespace {

// 0, or the negative code.
template <typename Change>
jint change(jlong session, Change&& change) {
  const std::shared_ptr<SessionState> state = sessions().find(session);
  return state == nullptr ? session_closed() : result(change(state->handle.get()));
}

jint add(JNIEnv* env, jclass, jlong session, jint node, jbyteArray address) {
  return change(session, [&](faro_session* of) {
    return faro_session_add_node(of, static_cast<uint32_t>(node), text_of(env, address).c_str());
  });
}

jint drain(JNIEnv*, jclass, jlong session, jint node) {
  return change(session, [&](faro_session* of) {
    return faro_session_drain_node(of, static_cast<uint32_t>(node));
  });
}

jint remove(JNIEnv*, jclass, jlong session, jint node) {
  return change(session, [&](faro_session* of) {
    return faro_session_remove_node(of, static_cast<uint32_t>(node));
  });
}

const std::array kMethods{method("add", "(JI[B)I", add), method("drain", "(JI)I", drain),
                          method("remove", "(JI)I", remove)};

}  // namespace

const Natives kNodeChangesNatives{"io/faro/NodeChanges", kMethods};

}  // namespace faro::jni
