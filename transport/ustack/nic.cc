// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/nic.h"

#include "config/mesh.h"
#include "core/listen_address.h"

namespace ztcp::ustack {

PeerHandle Nic::issue_handle(const msg::Cookie& cookie) {
  const Endpoint watch = death_watch != nullptr ? death_watch->endpoint() : Endpoint{};
  if (death_watch != nullptr) death_watch->expect(cookie);
  return {TransportKind::kUstack, to_bytes({listen_endpoint, watch, cookie, config::is_mesh(config),
                                            claim->slot().is_shared()})};
}

}  // namespace ztcp::ustack
