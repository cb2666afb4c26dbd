// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The kernel command line of the next boot: the arguments it lacks, and this distribution's way to
// add them (boot_loader.h). Debian and Ubuntu read a drop-in; grubby (RHEL, Rocky, Fedora) writes
// the boot loader's entries; systemd-boot's entries are made from /etc/kernel/cmdline; elsewhere
// the operator is told the arguments to add.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/check/check.h"
#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/resources/resource.h"

namespace ztcp::setup {

inline constexpr const char* kGrubDropIn = "/etc/default/grub.d/ztcp.cfg";

// Pages of one NUMA node; node -1: the kernel has no NUMA nodes.
struct NodePages {
  std::int32_t node = -1;
  std::uint64_t want = 0;
  std::uint64_t have = 0;
};

struct BootPlan {
  Resources resources;
  std::vector<config::Check> notes;
};

// "hugepagesz=1G", "hugepages=0:25,1:25"; for kernels before 5.16 only the sum.
std::vector<std::string> page_arguments(const std::vector<NodePages>& pages, std::uint32_t page_kib,
                                        const std::string& kernel_release);
// Number of pages of this size that a command line reserves.
std::uint64_t pages_on(const std::vector<std::string>& arguments, std::uint32_t page_kib);

// Whether the running kernel was given this argument.
bool boots_with(Host& host, const std::string& argument);

// `others`: arguments other than those of pages.
BootPlan plan_boot(Host& host, const std::vector<NodePages>& pages, std::uint32_t page_kib,
                   const std::vector<std::string>& others);

}  // namespace ztcp::setup
