// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/gpu_identity.h"
#include "tests/abi/two_transports.h"
#include "tests/support/cpu_share.h"
#include "tests/unit/ustack/memory_nics.h"
#include "transport/link/memory_link.h"

namespace ztcp::test {

Result<std::unique_ptr<Transport>> make_ustack(const config::Fabric& fabric) {
  auto nics = std::make_shared<ustack::MemoryNics>();
  // The other end of each NIC's cable is not used: the process sends only to itself.
  for (const config::Nic& nic : fabric.nics)
    nics->add(nic.name, link::make_memory_links({.mtu_bytes = nic.mtu_bytes}).first);
  return ustack::create(fabric, cpus_of_this_process(), plugin::probe_gpus, std::move(nics));
}

}  // namespace ztcp::test
