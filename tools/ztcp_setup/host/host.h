// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The machine as set-up sees it: what config::Machine shows of it, and small operations, each of
// which the machine does whole or not at all as far as software can tell. Everything that set-up
// knows, plans, shows, changes and checks goes through here, so that tests bring a machine along,
// watch each operation and kill set-up at any of them.
//
// Paths are absolute. Paths of files and folders are walked without trusting anything that someone
// other than root could have changed; Errc::kRefused says that the walk ended at such a thing, and
// why_not_trusted() (trust.h) says which. Values of sysfs and procfs are the kernel's.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

#include <tl/expected.hpp>

#include "config/machine/machine.h"
#include "config/network/network.h"
#include "config/problem.h"
#include "tools/ztcp_setup/host/interface_state.h"
#include "transport/core/local_addresses.h"
#include "transport/core/result.h"

namespace ztcp::setup {

using config::FileFacts;
using config::FileKind;
using config::Ownership;

struct ProgramResult {
  int exit_status = 0;     // 127: no such program; 128 + n: ended by signal n.
  bool timed_out = false;  // And killed.
  std::string output;      // Both streams, the last 64 KiB.
};

// Who holds a device.
struct Holder {
  pid_t pid = 0;  // 0: a process that can't be seen from here.
  std::string command;
};

class Host : public config::Machine {
 public:
  using Seconds = std::chrono::seconds;
  static constexpr std::size_t kLargestFile = 16U << 20;  // That read_file() reads.

  // --- Readings -------------------------------------------------------------------------------
  // What a file of ours holds: never through a link.
  virtual Result<std::string> read_file(const std::string& path) = 0;
  virtual std::optional<std::uint32_t> user_id(const std::string& name) = 0;
  virtual std::optional<std::uint32_t> group_id(const std::string& name) = 0;
  // The number, where nobody has it.
  virtual std::string user_name(std::uint32_t id) = 0;
  virtual std::string group_name(std::uint32_t id) = 0;
  // Every group that the user is a member of, the primary one included.
  virtual std::set<std::string> groups_of(const std::string& user) = 0;
  // Interfaces, addresses and routes.
  virtual tl::expected<config::Network, config::Problem> network() = 0;
  // The same addresses as a job sees them: IPv4 and IPv6, each with its interface. Empty where the
  // kernel does not tell.
  virtual std::vector<LocalAddress> addresses() = 0;
  // Where this machine's files lie for who can't read them through here: "/".
  virtual std::string fsroot() = 0;
  virtual bool has_program(const std::string& name) = 0;
  // The process that has `node`, a vfio group, open. Absent: none.
  virtual std::optional<Holder> holder_of(const std::string& node) = 0;

  // --- Files ----------------------------------------------------------------------------------
  // A new file, on disk when this returns. An interrupted one may be there in part.
  virtual Status create(const std::string& path, const std::string& text, Ownership ownership) = 0;
  virtual Status rename(const std::string& from, const std::string& to) = 0;  // On disk as well.
  virtual Status remove(const std::string& path) = 0;                         // A file.
  virtual Status make_folder(const std::string& path, Ownership ownership) = 0;
  virtual Status remove_folder(const std::string& path) = 0;  // Only an empty one.
  // Files "*.lock" in a folder that others may write to as well.
  virtual Status remove_locks(const std::string& folder) = 0;
  virtual Status set_ownership(const std::string& path, Ownership ownership) = 0;

  // --- Kernel ---------------------------------------------------------------------------------
  // The kernel may take its time, or wait for a device to be let go: then this fails with
  // Errc::kTimedOut, and the write may happen later.
  virtual Status write_value(const std::string& path, const std::string& value, Seconds limit) = 0;
  virtual Status mount(const std::string& folder, const std::string& type,
                       const std::string& options) = 0;
  virtual Status unmount(const std::string& folder) = 0;
  // Found in the system's own folders only, with a clean environment, out of reach of Ctrl-C.
  virtual Result<ProgramResult> run(const std::vector<std::string>& argv, Seconds limit) = 0;

  // --- Network --------------------------------------------------------------------------------
  // Absent: there is no such interface. Without its driver's settings.
  virtual Result<std::optional<InterfaceState>> link(const std::string& name) = 0;
  virtual Status set_up(const std::string& link, bool up) = 0;
  virtual Status rename_link(const std::string& from, const std::string& to) = 0;
  // MAC, MTU, queue length and alias.
  virtual Status set_link(const std::string& link, const InterfaceState& state) = 0;
  virtual Status set_master(const std::string& link, const std::string& master) = 0;
  virtual Status add_child(const std::string& parent, const InterfaceState& child) = 0;
  // An address, neighbour, nexthop object or route. One that is there already is a success.
  virtual Status add_item(const std::string& link, const NetworkItem& item) = 0;
  // What its driver tells of its settings: some drivers have few.
  virtual Result<std::vector<SettingGroup>> settings(const std::string& link) = 0;
  // The most queues for both directions that its driver could have; absent: it does not tell.
  virtual std::optional<std::uint32_t> most_queues(const std::string& link) = 0;
  // Values that are not named stay. A driver may take others than it was told, and say nothing.
  virtual Status set_settings(const std::string& link, const SettingGroup& wanted) = 0;

  // Lets the machine go on: drivers and udev need a moment.
  virtual void pause(std::chrono::milliseconds time) = 0;
};

}  // namespace ztcp::setup
