#include "transport/verbs/completion_error.h"

#include "base/error.h"

namespace faro::transport::verbs {
namespace {

struct Meaning {
  Code code;
  const char* text;
};

Meaning meaning_of(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return {Code::peer_lost,
              "the peer's device did not acknowledge in all retries: dead, unreachable, or packets "
              "of RDMA are dropped on the way (verbs.timeout, verbs.retry_count)"};
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return {Code::protocol_error, "the peer had no receive posted, against the rules of credits"};
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_RD_REQ_ERR:
      return {
          Code::protocol_error,
          "the peer's device refused the access: its memory is no longer registered, or its key "
          "or bounds are not what it said"};
    case IBV_WC_REM_INV_REQ_ERR:
      return {Code::protocol_error,
              "the peer's device could not use what was sent: too long for "
              "its receive, or an operation that it does not know"};
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR:
      return {Code::peer_lost, "the peer's device could not do it"};
    case IBV_WC_RESP_TIMEOUT_ERR:
      return {Code::peer_lost, "the peer's device did not answer in time"};
    case IBV_WC_WR_FLUSH_ERR:
      return {Code::peer_lost, "the connection ended with it under way"};
    case IBV_WC_LOC_QP_OP_ERR:
      return {Code::peer_lost,
              "the local device could not send: its network interface is down, or it is failing"};
    case IBV_WC_FATAL_ERR:
      return {Code::peer_lost, "the local device failed or was removed"};
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_LOC_LEN_ERR:
      return {Code::internal_error, "the local device refused the request"};
    default:
      return {Code::peer_lost, "the RDMA connection is broken"};
  }
}

}  // namespace

Status completion_error(const ibv_wc& completion, const std::string& operation) {
  const Meaning meaning = meaning_of(completion.status);
  return base::error(meaning.code, "{} failed with \"{}\" (vendor code {:#x}): {}", operation,
                     ibv_wc_status_str(completion.status), completion.vendor_err, meaning.text);
}

}  // namespace faro::transport::verbs
