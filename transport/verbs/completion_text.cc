// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/completion_text.h"

namespace ztcp::verbs {

CompletionText describe(ibv_wc_status status) {
  constexpr const char* kOurFault = "this is a fault of ztcp's: report it with this line";
  constexpr const char* kDriver = "look at dmesg for messages of the device's driver";
  constexpr const char* kUnmapped =
      "the memory was deregistered or unmapped while it was in use: a collective was aborted, or "
      "the application freed its buffers";
  switch (status) {
    case IBV_WC_SUCCESS:
      return {"IBV_WC_SUCCESS", "success", "", Errc::kSystem};
    case IBV_WC_LOC_LEN_ERR:
      return {"IBV_WC_LOC_LEN_ERR", "a length that the queue pair does not take", kOurFault,
              Errc::kSystem};
    case IBV_WC_LOC_QP_OP_ERR:
      return {"IBV_WC_LOC_QP_OP_ERR", "an operation that the queue pair does not know", kOurFault,
              Errc::kSystem};
    case IBV_WC_LOC_PROT_ERR:
      return {"IBV_WC_LOC_PROT_ERR", "the NIC may not read the memory that is sent", kUnmapped,
              Errc::kSystem};
    case IBV_WC_WR_FLUSH_ERR:
      return {"IBV_WC_WR_FLUSH_ERR", "the queue pair had failed before",
              "look for earlier messages of this host or the peer", Errc::kPeerClosed};
    case IBV_WC_LOC_ACCESS_ERR:
      return {"IBV_WC_LOC_ACCESS_ERR", "the NIC may not write to the memory received into",
              kUnmapped, Errc::kSystem};
    case IBV_WC_REM_INV_REQ_ERR:
      return {"IBV_WC_REM_INV_REQ_ERR", "the peer's NIC refused the request",
              "install the same ztcp on both hosts", Errc::kProtocol};
    case IBV_WC_REM_ACCESS_ERR:
      return {"IBV_WC_REM_ACCESS_ERR", "the peer's NIC may not write to the memory received into",
              "the peer's rank was aborted or freed its buffers: look at its log",
              Errc::kPeerClosed};
    case IBV_WC_REM_OP_ERR:
      return {"IBV_WC_REM_OP_ERR", "the peer's NIC could not carry the request out",
              "look at the peer's dmesg", Errc::kPeerClosed};
    case IBV_WC_RETRY_EXC_ERR:
      return {"IBV_WC_RETRY_EXC_ERR", "the peer's NIC did not answer",
              "is the peer's port up, can its GID be reached from this one (show_gids, "
              "rping), does every switch on the way take packets of the ports' MTU, and does the "
              "network lose no RoCE packets (PFC, ECN)? On slow networks raise ack_timeout, or "
              "NCCL_IB_TIMEOUT",
              Errc::kTimedOut};
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return {"IBV_WC_RNR_RETRY_EXC_ERR", "the peer had no receive posted", kOurFault,
              Errc::kTimedOut};
    case IBV_WC_FATAL_ERR:
      return {"IBV_WC_FATAL_ERR", "the device failed", kDriver, Errc::kSystem};
    case IBV_WC_RESP_TIMEOUT_ERR:
      return {"IBV_WC_RESP_TIMEOUT_ERR", "a response did not come in time", kDriver,
              Errc::kTimedOut};
    case IBV_WC_BAD_RESP_ERR:
      return {"IBV_WC_BAD_RESP_ERR", "an unexpected response came", kDriver, Errc::kProtocol};
    case IBV_WC_REM_ABORT_ERR:
      return {"IBV_WC_REM_ABORT_ERR", "the peer gave the operation up", "look at the peer's log",
              Errc::kPeerClosed};
    case IBV_WC_GENERAL_ERR:
      return {"IBV_WC_GENERAL_ERR", "the transport failed in another way", kDriver, Errc::kSystem};
    default:
      return {"another IBV_WC status", "the NIC failed in another way", kDriver, Errc::kSystem};
  }
}

}  // namespace ztcp::verbs
