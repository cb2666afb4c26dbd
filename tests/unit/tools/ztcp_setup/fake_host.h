// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A machine in memory that behaves like Linux as far as set-up looks: files, sysfs of PCI and
// hugepages, modules, mounts, udev, grubby, and interfaces that come and go with their driver. It
// counts the changes, and can kill set-up at any of them. Other files of /sys and /proc may come
// from a tree (fake_tree.h), for planning and --check.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "config/network/network.h"
#include "core/result.h"
#include "tests/unit/tools/ztcp_setup/fake_tree.h"
#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup::test {

// Thrown where the process would be killed.
struct Killed {};

class FakeHost final : public Host {
 public:
  struct Node {
    FileKind kind = FileKind::kFile;
    Ownership ownership;
    std::string text;  // A link's target.
    friend bool operator==(const Node&, const Node&) = default;
  };
  struct Nic {
    std::string pci;
    std::string id;  // "1af4:1041"
    std::string home_driver;
    std::string driver;
    std::string driver_override;
    std::string group;        // IOMMU group; empty: none.
    InterfaceState pristine;  // As its driver creates it.
    friend bool operator==(const Nic&, const Nic&) = default;
  };
  // The whole state, so that two machines can be compared.
  struct State {
    std::map<std::string, Node> nodes;  // Files, folders, links, device nodes.
    std::map<std::string, std::string> values;
    std::map<std::string, Nic> nics;
    std::map<std::string, InterfaceState> links;
    std::set<std::string> modules;
    std::map<std::string, std::string> mounts;  // Folder: "type options".
    std::map<std::string, XdpSteering> xdp;     // By folder.
    std::map<std::string, std::string> boot;    // Kernel: arguments.
    std::string boot_of_new_kernels;            // grubby changes it with ALL.
    std::set<std::string> enabled;
    std::uint64_t largest_pages = 1000;  // Available to the kernel.
    friend bool operator==(const State&, const State&) = default;
  };
  enum class When : std::uint8_t { kBefore, kHalfWay, kAfter };

  FakeHost();  // A bare machine: folders, no hugepages, vfio not loaded.
  explicit FakeHost(std::string_view tree);  // As tests/support/tree.h describes it.
  void add_nic(const Nic& nic, InterfaceState state);
  void add_file(const std::string& path, const std::string& text, Ownership ownership = {});
  void add_folder(const std::string& path, Ownership ownership = {0755, 0, 0});
  void boot();  // Undoes all that a reboot undoes.

  // Kills set-up at the n-th change from now; 0: never.
  void kill_at(std::uint64_t n, When when);
  std::uint64_t changes = 0;

  State state;
  std::map<std::string, Holder> holders;  // By vfio node.
  std::vector<std::string> log;           // The changes, in order.
  std::vector<std::string> told;          // The same with all details.
  std::map<std::string, int> errors;      // errno by "operation path".
  struct OneError {
    std::string what;
    std::uint64_t nth = 0;  // Counts operations of that name from now on; 0: none.
    int number = 0;
  } one_error;
  std::map<std::string, std::uint32_t> users{{"alice", 1000}};
  std::map<std::string, std::uint32_t> groups{{"ztcp", 990}};
  std::set<std::string> programs{"systemctl", "grubby", "update-grub", "udevadm"};
  std::map<std::string, std::string> answers;    // Output of programs that only report.
  bool renames_interfaces = true;                // udev restores the old names.
  bool bind_fails = false;                       // vfio-pci refuses every device.
  std::optional<config::Problem> network_fault;  // rtnetlink does not answer.
  // Settings that drivers accept but do not change: "ring rx".
  std::set<std::string> stuck_settings;
  // Number of times that a network manager removes an interface's addresses just before a route
  // through it is added.
  unsigned flushes = 0;

  std::map<std::string, std::string> xdp_obstacles;     // By interface.
  std::map<std::string, std::uint32_t> offered_queues;  // By interface, for drivers that report it.
  std::map<std::string, std::int64_t> modified;         // Times of the last writes.
  std::set<std::string> without_carrier;                // Interfaces without a cable.

  Result<config::Network, config::Problem> network() override;
  std::vector<LocalAddress> addresses() override;
  // Root of its tree, for code that reads a disk only; "/" without one.
  std::string fsroot() override { return tree_ ? tree_->root() : "/"; }

  FileFacts facts(const std::string& path) override;
  FileFacts facts_behind(const std::string& path) override;
  bool may_access(const std::string& path, int mode) override;
  std::vector<std::uint32_t> allowed_cpus() override;
  Result<std::string> read_value(const std::string& path) override;
  Result<std::string> read_file(const std::string& path) override;
  std::optional<std::string> link_target(const std::string& path) override;
  std::vector<std::string> list(const std::string& folder) override;
  std::optional<std::uint32_t> user_id(const std::string& name) override;
  std::optional<std::uint32_t> group_id(const std::string& name) override;
  std::string user_name(std::uint32_t id) override;
  std::string group_name(std::uint32_t id) override;
  std::set<std::string> groups_of(const std::string& user) override;
  bool has_program(const std::string& name) override;
  std::optional<Holder> holder_of(const std::string& node) override;
  Status create(const std::string& path, const std::string& text, Ownership ownership) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status make_folder(const std::string& path, Ownership ownership) override;
  Status remove_folder(const std::string& path) override;
  Status remove_locks(const std::string& folder) override;
  Status set_ownership(const std::string& path, Ownership ownership) override;
  Status write_value(const std::string& path, const std::string& value, Seconds limit) override;
  Status mount(const std::string& folder, const std::string& type,
               const std::string& options) override;
  Status unmount(const std::string& folder) override;
  Result<ProgramResult> run(const std::vector<std::string>& argv, Seconds limit) override;
  Result<std::optional<InterfaceState>> link(const std::string& name) override;
  Status set_up(const std::string& link, bool up) override;
  Status rename_link(const std::string& from, const std::string& to) override;
  Status set_link(const std::string& link, const InterfaceState& state) override;
  Status set_master(const std::string& link, const std::string& master) override;
  Status add_child(const std::string& parent, const InterfaceState& child) override;
  Status add_item(const std::string& link, const NetworkItem& item) override;
  Result<std::vector<SettingGroup>> settings(const std::string& link) override;
  std::optional<std::uint32_t> most_queues(const std::string& link) override;
  Status set_settings(const std::string& link, const SettingGroup& wanted) override;
  std::optional<XdpSteering> xdp_program(const std::string& folder) override;
  std::string xdp_obstacle(const std::string& interface) override;
  bool xdp_is_in_use(const std::string&) override { return false; }
  std::string xdp_mode(const std::string&, std::uint16_t) override {
    return "4 queues, native mode, zero copy";
  }
  Status attach_xdp(const std::string& folder, const XdpSteering& wanted) override;
  Status detach_xdp(const std::string& folder) override;
  void pause(std::chrono::milliseconds time) override;

 private:
  std::string boot_line() const;
  std::string pages_at_boot() const;
  Status reserve_pages(const std::string& path, std::uint64_t wanted);
  std::string behind_links(const std::string& path);
  std::string mounts(bool with_numbers) const;
  bool is_of_a_nic(const std::string& interface) const;
  std::vector<std::string> interfaces_of(const Nic& nic) const;
  std::string group_of(const Nic& nic) const;
  void load_disk();
  void load_nic(const std::string& pci);
  // Executes `effect` as one change, unless the process is to be killed there.
  using Effect = std::function<Status()>;
  Status change(const std::string& what, const std::string& details, const Effect& effect);
  Status change(const std::string& what, const Effect& effect);
  Status write_pci(const std::string& pci, const std::string& name, const std::string& value);
  void bind(Nic& nic, const std::string& driver);
  void unbind(Nic& nic);
  void add_link(InterfaceState link);  // Adds its children separately, as the kernel has them.
  InterfaceState* find_link(const std::string& name);
  std::vector<std::pair<std::string, std::string>> sysctls_of(const std::string& link) const;
  void place_sysctls(InterfaceState& link);  // At the kernel's paths.
  bool is_folder(const std::string& path) const;

  std::shared_ptr<const FakeTree> tree_;
  std::uint64_t kill_at_ = 0;
  When kill_when_ = When::kBefore;
  unsigned kernel_names_ = 0;
};

}  // namespace ztcp::setup::test
