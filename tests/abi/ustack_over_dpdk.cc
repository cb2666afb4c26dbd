// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/gpu_identity.h"
#include "tests/abi/two_transports.h"
#include "tests/support/cpu_share.h"
#include "transport/ustack/ustack_transport.h"

namespace ztcp::test {

Result<std::unique_ptr<Transport>> make_ustack(const config::Fabric& fabric) {
  return ustack::create(fabric, cpus_of_this_process(), plugin::probe_gpus);
}

}  // namespace ztcp::test
