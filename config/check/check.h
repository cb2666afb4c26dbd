// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Compares a Fabric with the machine it is used on, at init and in `ztcp_setup --check`. Each
// mismatch names both values and the command that mends it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "config/machine/machine.h"
#include "config/problem.h"
#include "config/settings.h"
#include "transport/core/local_addresses.h"

namespace ztcp::config {

// GPU PCI addresses this process can see ("0000:17:00.0"); empty: none, or no CUDA.
using GpuList = std::vector<std::string>;
// The NICs of the fabric, by index, that the asking process takes memory for; empty: not known, as
// in `ztcp_setup --check`, which asks for a process at each of them.
using NicList = std::vector<std::size_t>;

enum class Severity : std::uint8_t {
  kGood,     // Looked at and right, or not readable here; `what` says which.
  kWarning,  // Works, but perhaps not as meant.
  kFault,    // Can't work: init refuses.
};

struct Check {
  std::string name;  // "driver", "hugepages": one per kind of check, listed in ztcp_setup(8).
  Severity severity = Severity::kGood;
  Problem problem;  // For kGood, `what` is what was found and `mend` is empty.
};

// The addresses that the kernel has, for NICs that stay with it.
using AddressList = std::vector<LocalAddress>;

// Every check that applies to this fabric, good ones included.
std::vector<Check> run_checks(const Fabric& fabric, Machine& machine, const GpuList& gpus,
                              const NicList& own_nics = {}, const AddressList& addresses = {});

// What init refuses to go on with: the faults of run_checks().
Problems check_host(const Fabric& fabric, Machine& machine, const GpuList& gpus,
                    const NicList& own_nics = {}, const AddressList& addresses = {});

}  // namespace ztcp::config
