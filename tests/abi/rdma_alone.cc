// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The transports of libnccl-net-verbs.so: RDMA for all NICs.
#include "plugin/startup.h"
#include "tests/abi/two_transports.h"

namespace ztcp::plugin {

std::vector<TransportSource> transport_sources(const std::shared_ptr<const config::CpuShare>&) {
  return {{.kind = TransportKind::kVerbs,
           .carries = [](const config::Nic&) { return true; },
           .create = [](const config::Fabric& fabric) { return in_words(test::make_rdma(fabric)); },
           .find_nics = nullptr}};
}

}  // namespace ztcp::plugin
