// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The boot loader of this machine, which gives the kernel its command line. Installed packages are
// no proof: a Proxmox host on ZFS has GRUB's tools and boots by systemd-boot.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

inline constexpr const char* kKernelCommandLine = "/etc/kernel/cmdline";

enum class BootLoader : std::uint8_t {
  kGrub,           // Debian's and Ubuntu's: a drop-in and update-grub.
  kGrubby,         // RHEL and relatives.
  kProxmox,        // systemd-boot, its entries made by proxmox-boot-tool.
  kKernelInstall,  // systemd-boot, its entries made by kernel-install.
  kSystemdBoot,    // systemd-boot, entries made by an unknown program.
  kUnknown,
};
BootLoader boot_loader(Host& host);

// The command line of the next boot if it can be read, else that of the running kernel.
std::vector<std::string> line_of_next_boot(Host& host, BootLoader loader);

// The programs, in order, that copy a changed setting to where the boot loader reads it.
std::vector<std::vector<std::string>> loader_programs(Host& host, BootLoader loader);

// Whether `path` was last written before the running kernel was started; false: unknown.
bool is_older_than_boot(Host& host, const std::string& path);

}  // namespace ztcp::setup
