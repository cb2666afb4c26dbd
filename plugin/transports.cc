// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The transports of this build.
#include "plugin/gpu_identity.h"
#include "plugin/startup.h"
#include "transport/core/local_addresses.h"
#include "transport/sockets/device_list.h"
#include "transport/sockets/socket_transport.h"
#include "transport/ustack/ustack_transport.h"

namespace ztcp::plugin {

std::vector<TransportSource> transport_sources() {
  return {
      {.kind = TransportKind::kUstack,
       .carries = ustack::carries,
       .create = [](const config::Fabric& fabric) { return ustack::create(fabric, probe_gpus); }},
      {.kind = TransportKind::kSockets,
       .carries = sockets::carries,
       .create = [](const config::Fabric& fabric) -> Result<std::unique_ptr<Transport>> {
         return sockets::create(fabric, ZTCP_TRY(sockets::devices_of(fabric, local_addresses())));
       }}};
}

}  // namespace ztcp::plugin
