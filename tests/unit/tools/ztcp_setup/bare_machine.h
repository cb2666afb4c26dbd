// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The initial machine of tests of set-up and undo, the resources they want, and both runs as one
// call.
#pragma once

#include <string>

#include "config/problem.h"
#include "tests/unit/tools/ztcp_setup/fake_host.h"
#include "tools/ztcp_setup/run/apply.h"
#include "tools/ztcp_setup/run/revert.h"

namespace ztcp::setup::test {

inline constexpr const char* kNicA = "0000:3b:00.0";
inline constexpr const char* kNicB = "0000:5e:00.0";
inline constexpr const char* kPages0 =
    "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";
inline constexpr const char* kGrub = "/etc/default/grub.d/50-ztcp.cfg";
inline constexpr const char* kCommandLine = "/etc/kernel/cmdline";
inline constexpr const char* kLimits = "/etc/security/limits.d/ztcp.conf";
inline constexpr const char* kUnitFile = "/etc/systemd/system/ztcp-setup.service";
inline constexpr const char* kConfig = "/usr/local/tfabric/tools/config/ztcp.conf";

// Two virtio NICs in use, without any change by ztcp.
FakeHost bare_machine();

Resources nic_resources(const char* pci);
// In the order of resources_for().
Resources all_resources();

// The test fails if a fault of either has no mend.
Outcome set_up(FakeHost& host, const Resources& resources = all_resources(),
               Scope scope = Scope::kWhole, const Progress& progress = {});
Outcome undo(FakeHost& host);

std::string all_of(const config::Problems& problems);

// Fails with readable differences.
void expect_same(const FakeHost::State& is, const FakeHost::State& wanted);

NetworkItem item(const std::string& command);
FakeHost::Nic nic(const char* pci, const char* group, const char* name, const char* mac);

}  // namespace ztcp::setup::test
