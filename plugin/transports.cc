// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The transports of this build.
#include "plugin/gpu_identity.h"
#include "plugin/startup.h"
#include "transport/ustack/ustack_transport.h"

namespace ztcp::plugin {

std::vector<TransportSource> transport_sources() {
  return {
      {.kind = TransportKind::kUstack,
       .carries = ustack::carries,
       .create = [](const config::Fabric& fabric) { return ustack::create(fabric, probe_gpus); }}};
}

}  // namespace ztcp::plugin
