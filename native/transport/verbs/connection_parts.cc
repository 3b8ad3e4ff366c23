#include "transport/verbs/connection_parts.h"

#include <cerrno>
#include <cstring>
#include <new>

#include "base/thread.h"
#include "transport/verbs/sigpipe_shield.h"

namespace faro::transport::verbs {

// A queue pair is destroyed before its queue.
ConnectionParts::~ConnectionParts() {
  if (pair != nullptr) ibv_destroy_qp(pair);
  if (queue != nullptr) ibv_destroy_cq(queue);
  rdma_destroy_id(id);
}

void ConnectionParts::disconnect() noexcept {
  const SigpipeShield shield;  // siw may tell the peer
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(pair, &attributes, IBV_QP_STATE);
  rdma_disconnect(id);  // fails where nothing is connected
}

Status Dial::start(const rdma_conn_param& parameters) {
  StreamToken token;
  std::memcpy(token.data(), parameters.private_data, token.size());
  return base::start_detached("faro-dial", [dial = shared_from_this(), parameters, token] {
    dial->connect(parameters, token);
  });
}

void Dial::connect(rdma_conn_param parameters, const StreamToken& token) {
  parameters.private_data = token.data();
  const int error = rdma_connect(parts_->id, &parameters) == 0 ? 0 : errno;
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  if (is_unwanted_) parts_->disconnect();
  if (error == 0 || !on_failed_) return;
  try {
    reactor_.defer([dial = shared_from_this(), error] { dial->tell(error); });
  } catch (const std::bad_alloc&) {
    // The setup's time limit ends it.
  }
}

// Whoever is told may give up meanwhile.
void Dial::tell(int error) const {
  if (const OnFailed told = on_failed_) told(error);
}

bool Dial::disconnects_later() noexcept {
  const std::lock_guard lock(mutex_);
  is_unwanted_ = true;
  return !is_over_;
}

void Dial::give_up() noexcept {
  const std::lock_guard lock(mutex_);
  on_failed_ = nullptr;
}

}  // namespace faro::transport::verbs
