// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The machine as set-up sees it: the readings of config::Machine, and small operations, each atomic
// as far as software can tell. Set-up reads, plans, shows, changes and checks only through this
// class, so that tests can provide a machine, observe each operation and stop set-up at any of
// them.
//
// Paths are absolute. Paths of files and folders are walked without trusting links and folders that
// users other than root can change; Errc::kRefused says that the walk met one, and
// why_not_trusted() (trust.h) names it. Values of sysfs and procfs are the kernel's.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

#include "config/machine/machine.h"
#include "config/network/network.h"
#include "config/problem.h"
#include "core/local_addresses.h"
#include "core/result.h"
#include "tools/ztcp_setup/host/interface_state.h"
#include "tools/ztcp_setup/host/xdp_steering.h"

namespace ztcp::setup {

using config::FileFacts;
using config::FileKind;
using config::Ownership;

struct ProgramResult {
  int exit_status = 0;     // 127: no such program; 128 + n: ended by signal n.
  bool timed_out = false;  // And killed.
  std::string output;      // Both streams, the last 64 KiB.
};

// A process that has a device open.
struct Holder {
  pid_t pid = 0;  // 0: a process that is not visible here.
  std::string command;
};

class Host : public config::Machine {
 public:
  using Seconds = std::chrono::seconds;
  static constexpr std::size_t kLargestFile = 16U << 20;  // Limit of read_file().

  // --- Readings -------------------------------------------------------------------------------
  // The content of a file of ztcp's or the system's: follows no link at the end.
  virtual Result<std::string> read_file(const std::string& path) = 0;
  virtual std::optional<std::uint32_t> user_id(const std::string& name) = 0;
  virtual std::optional<std::uint32_t> group_id(const std::string& name) = 0;
  // The number as text, if it has no name.
  virtual std::string user_name(std::uint32_t id) = 0;
  virtual std::string group_name(std::uint32_t id) = 0;
  // All groups of the user, including the primary one.
  virtual std::set<std::string> groups_of(const std::string& user) = 0;
  // Interfaces, addresses and routes.
  virtual Result<config::Network, config::Problem> network() = 0;
  // The same addresses as a job sees them: IPv4 and IPv6, each with its interface. Empty if the
  // kernel does not answer.
  virtual std::vector<LocalAddress> addresses() = 0;
  // The root directory for libraries that read files themselves: "/".
  virtual std::string fsroot() = 0;
  virtual bool has_program(const std::string& name) = 0;
  // The process that has `node`, a vfio group, open. Absent: none.
  virtual std::optional<Holder> holder_of(const std::string& node) = 0;

  // --- Files ----------------------------------------------------------------------------------
  // Creates a file, on disk when this returns. After an interruption it may exist in part.
  virtual Status create(const std::string& path, const std::string& text, Ownership ownership) = 0;
  virtual Status rename(const std::string& from, const std::string& to) = 0;  // On disk as well.
  virtual Status remove(const std::string& path) = 0;                         // A file.
  virtual Status make_folder(const std::string& path, Ownership ownership) = 0;
  virtual Status remove_folder(const std::string& path) = 0;  // Only an empty one.
  // Removes "*.lock" files in a folder that others may write to as well.
  virtual Status remove_locks(const std::string& folder) = 0;
  virtual Status set_ownership(const std::string& path, Ownership ownership) = 0;

  // --- Kernel ---------------------------------------------------------------------------------
  // The kernel may be slow, or wait until a device is released: then this fails with
  // Errc::kTimedOut, and the write may still happen later.
  virtual Status write_value(const std::string& path, const std::string& value, Seconds limit) = 0;
  virtual Status mount(const std::string& folder, const std::string& type,
                       const std::string& options) = 0;
  virtual Status unmount(const std::string& folder) = 0;
  // Searches only the system's own folders; clean environment, not interrupted by Ctrl-C.
  virtual Result<ProgramResult> run(const std::vector<std::string>& argv, Seconds limit) = 0;

  // --- Network --------------------------------------------------------------------------------
  // Absent: no such interface. Does not include the driver's settings.
  virtual Result<std::optional<InterfaceState>> link(const std::string& name) = 0;
  virtual Status set_up(const std::string& link, bool up) = 0;
  virtual Status rename_link(const std::string& from, const std::string& to) = 0;
  // MAC, MTU, queue length and alias.
  virtual Status set_link(const std::string& link, const InterfaceState& state) = 0;
  virtual Status set_master(const std::string& link, const std::string& master) = 0;
  virtual Status add_child(const std::string& parent, const InterfaceState& child) = 0;
  // Adds an address, neighbour, nexthop object or route. Succeeds if it exists already.
  virtual Status add_item(const std::string& link, const NetworkItem& item) = 0;
  // The settings that the driver reports; some report few.
  virtual Result<std::vector<SettingGroup>> settings(const std::string& link) = 0;
  // The driver's largest number of combined queues; absent: unknown.
  virtual std::optional<std::uint32_t> most_queues(const std::string& link) = 0;
  // Leaves other settings unchanged. A driver may apply other values without an error.
  virtual Status set_settings(const std::string& link, const SettingGroup& wanted) = 0;

  // --- XDP ------------------------------------------------------------------------------------
  // The program that is pinned in this folder, if it is on the folder's interface.
  virtual std::optional<XdpSteering> xdp_program(const std::string& folder) = 0;
  // Why ztcp's program can't be on the interface: "has the XDP program cil_xdp (id 7) already".
  // Empty: it can.
  virtual std::string xdp_obstacle(const std::string& interface) = 0;
  // Whether the obstacle is a program that a running process of ztcp attached.
  virtual bool xdp_is_in_use(const std::string& interface) = 0;
  // The way of frames that AF_XDP would have on the interface, as in the init line.
  virtual std::string xdp_mode(const std::string& interface, std::uint16_t mtu_bytes) = 0;
  virtual Status attach_xdp(const std::string& folder, const XdpSteering& wanted) = 0;
  virtual Status detach_xdp(const std::string& folder) = 0;  // Succeeds where there is none.

  // Waits: drivers and udev need a moment.
  virtual void pause(std::chrono::milliseconds time) = 0;
};

}  // namespace ztcp::setup
