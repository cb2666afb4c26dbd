// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The calls into librdmacm, the connection manager of RDMA devices, as a table like that of
// libibverbs (api.h), and their types. They are declared here, as the ABI has been since rdma-core
// 22 and long before, so that the build needs no header of the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <infiniband/verbs.h>
#include <sys/socket.h>

namespace ztcp::verbs {

struct CmChannel {
  int fd = -1;
};

// Its beginning: it is the library's, and longer.
struct CmId {
  ibv_context* verbs = nullptr;  // The device that its address belongs to; owned by the library.
  CmChannel* channel = nullptr;
  void* context = nullptr;
};

struct CmParameters {
  const void* private_data = nullptr;
  std::uint8_t private_data_bytes = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t flow_control = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  std::uint8_t srq = 0;
  std::uint32_t qp_num = 0;
};
static_assert(sizeof(CmParameters) == 24 && offsetof(CmParameters, qp_num) == 16);

enum class CmEventKind : std::uint32_t {
  kAddressResolved = 0,
  kAddressError = 1,
  kRouteResolved = 2,
  kRouteError = 3,
  kConnectRequest = 4,
  kConnectError = 6,
  kUnreachable = 7,
  kRejected = 8,
  kEstablished = 9,
  kDeviceRemoval = 11,
};

// Its beginning, as far as connections go.
struct CmEvent {
  CmId* id = nullptr;
  CmId* listen_id = nullptr;
  CmEventKind kind = CmEventKind::kAddressResolved;
  int status = 0;
  CmParameters parameters;
};
static_assert(offsetof(CmEvent, parameters) == 24);

inline constexpr int kTcpPortSpace = 0x0106;

// Each answers 0, or -1 with errno, where it answers with an int.
struct CmApi {
  CmChannel* (*create_event_channel)() = nullptr;
  void (*destroy_event_channel)(CmChannel* channel) = nullptr;
  int (*create_id)(CmChannel* channel, CmId** out, void* context, int port_space) = nullptr;
  int (*destroy_id)(CmId* id) = nullptr;
  int (*bind_addr)(CmId* id, sockaddr* address) = nullptr;
  int (*listen)(CmId* id, int backlog) = nullptr;
  int (*resolve_addr)(CmId* id, sockaddr* from, sockaddr* to, int timeout_ms) = nullptr;
  int (*resolve_route)(CmId* id, int timeout_ms) = nullptr;
  int (*connect)(CmId* id, CmParameters* parameters) = nullptr;
  int (*accept)(CmId* id, CmParameters* parameters) = nullptr;
  int (*reject)(CmId* id, const void* private_data, std::uint8_t bytes) = nullptr;
  int (*get_cm_event)(CmChannel* channel, CmEvent** out) = nullptr;
  int (*ack_cm_event)(CmEvent* event) = nullptr;
  const char* (*event_str)(CmEventKind kind) = nullptr;
  std::uint16_t (*get_src_port)(CmId* id) = nullptr;  // In the network's order.
};

}  // namespace ztcp::verbs
