// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What starts the kernel of this machine, and so what tells it its command line. What is installed
// says too little: a Proxmox host on ZFS has GRUB's tools and boots by systemd-boot.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

inline constexpr const char* kKernelCommandLine = "/etc/kernel/cmdline";

enum class BootLoader : std::uint8_t {
  kGrub,           // Debian's and Ubuntu's: a drop-in and update-grub.
  kGrubby,         // Of RHEL and its kin.
  kProxmox,        // systemd-boot, its entries made by proxmox-boot-tool.
  kKernelInstall,  // systemd-boot, its entries made by kernel-install.
  kSystemdBoot,    // systemd-boot, its entries made by nobody that we know.
  kUnknown,
};
BootLoader boot_loader(Host& host);

// The command line of the next boot as far as it can be read, else that of the running kernel.
std::vector<std::string> line_of_next_boot(Host& host, BootLoader loader);

// The programs that bring a changed setting to where the boot loader reads it, in order.
std::vector<std::vector<std::string>> loader_programs(Host& host, BootLoader loader);

// Whether `path` was last written before the kernel that runs was started; false: nobody knows.
bool is_older_than_boot(Host& host, const std::string& path);

}  // namespace ztcp::setup
