// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Compares a Fabric with the machine it is used on, at init and in `ztcp_setup --check`. Each
// mismatch names both values and the command that corrects it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "config/machine/machine.h"
#include "config/problem.h"
#include "config/settings.h"
#include "core/local_addresses.h"

namespace ztcp::config {

// GPU PCI addresses this process can see ("0000:17:00.0"); empty: none, or no CUDA.
using GpuList = std::vector<std::string>;
// Indices of the fabric's NICs that the asking process allocates memory for; empty: unknown, as in
// `ztcp_setup --check`, which checks for a process at each NIC.
using NicList = std::vector<std::size_t>;

enum class Severity : std::uint8_t {
  kGood,     // Checked and right, or not readable here; see the problem's text.
  kWarning,  // Works, but perhaps not as intended.
  kFault,    // Cannot work: init refuses.
};

struct Check {
  std::string name;  // "driver", "hugepages": one per kind of check, listed in ztcp_setup(8).
  Severity severity = Severity::kGood;
  Problem problem;  // For kGood, `what` is the finding and `mend` is empty.
};

// The kernel's addresses, for NICs that stay with it.
using AddressList = std::vector<LocalAddress>;

// An interface as AF_XDP would use it.
struct XdpFacts {
  std::string obstacle;  // "has the XDP program cil_xdp (id 7) already"; empty: none.
  std::string mode;      // "4 queues, native mode, zero copy"
  // A running process of ztcp attached its program itself, and takes it with it.
  bool is_in_use = false;
};
using XdpFactsByInterface = std::map<std::string, XdpFacts>;

// Runs every check that applies to this fabric and returns all results, good ones included.
std::vector<Check> run_checks(const Fabric& fabric, Machine& machine, const GpuList& gpus,
                              const NicList& own_nics = {}, const AddressList& addresses = {},
                              const XdpFactsByInterface& xdp = {});

// Returns the faults of run_checks(), which make init refuse.
Problems check_host(const Fabric& fabric, Machine& machine, const GpuList& gpus,
                    const NicList& own_nics = {}, const AddressList& addresses = {});

}  // namespace ztcp::config
