// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// librdmacm's functions over the in-memory devices (fake_fabric.h): they join the queue pairs of
// iWARP devices, each of which has an address.
#pragma once

#include <mutex>
#include <string>

#include "core/result.h"
#include "transport/verbs/cm_api.h"

namespace ztcp::test {

class FakeFabric;
struct FakeId;

struct FakeManager {
  static Result<const verbs::CmApi*, std::string> open();

 private:
  using Lock = std::lock_guard<std::mutex>;

  static verbs::CmChannel* create_event_channel();
  static void destroy_event_channel(verbs::CmChannel* channel);
  static int create_id(verbs::CmChannel* channel, verbs::CmId** out, void* context, int port_space);
  static int destroy_id(verbs::CmId* id);
  static int bind_addr(verbs::CmId* id, sockaddr* address);
  static int listen(verbs::CmId* id, int backlog);
  static int resolve_addr(verbs::CmId* id, sockaddr* from, sockaddr* to, int timeout_ms);
  static int resolve_route(verbs::CmId* id, int timeout_ms);
  static int connect(verbs::CmId* id, verbs::CmParameters* parameters);
  static int accept(verbs::CmId* id, verbs::CmParameters* parameters);
  static int reject(verbs::CmId* id, const void* private_data, std::uint8_t bytes);
  static int get_cm_event(verbs::CmChannel* channel, verbs::CmEvent** out);
  static int ack_cm_event(verbs::CmEvent* event);
  static const char* event_str(verbs::CmEventKind kind);
  static std::uint16_t get_src_port(verbs::CmId* id);

  static FakeFabric& fabric();
  static int refuse(int sys_errno);
  static bool bind(FakeId& id, const sockaddr* address);
  static FakeId* listener_at(const verbs::CmId& but, const FakeId& like, std::uint16_t port);
  static void tell(FakeId& id, verbs::CmEventKind kind, int status = 0);
};

}  // namespace ztcp::test
