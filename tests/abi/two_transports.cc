// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The transports of a module under test: ustack, and beside it one with the abilities of an RDMA
// NIC, for the NICs that the config calls memory*.
#include "tests/abi/two_transports.h"

#include <string_view>
#include <vector>

#include "plugin/startup.h"
#include "transport/ustack/ustack_transport.h"

namespace ztcp::plugin {
namespace {

bool is_in_memory(const config::Nic& nic) { return nic.name.starts_with("memory"); }

}  // namespace

std::vector<TransportSource> transport_sources(const std::shared_ptr<const config::CpuShare>&) {
  return {
      {.kind = TransportKind::kVerbs,
       .carries = is_in_memory,
       .create = [](const config::Fabric& fabric) { return in_words(test::make_rdma(fabric)); },
       .find_nics = nullptr},
      {.kind = TransportKind::kUstack,
       .carries = [](const config::Nic& nic) { return !is_in_memory(nic) && ustack::carries(nic); },
       .create = [](const config::Fabric& fabric) { return in_words(test::make_ustack(fabric)); },
       .find_nics = nullptr}};
}

}  // namespace ztcp::plugin
