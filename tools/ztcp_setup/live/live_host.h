// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The machine this process runs on. With another root its files are those of a folder; accounts,
// programs and the network are this machine's all the same, so that is for tests.
#pragma once

#include <optional>
#include <string>

#include "config/machine/live_machine.h"
#include "core/netlink.h"
#include "core/result.h"
#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/live/safe_path.h"

namespace ztcp::setup {

class LiveHost : public Host {
 public:
  // For kInspect nothing is opened that a job may want at the same moment.
  enum class Purpose : std::uint8_t { kInspect, kChange };
  explicit LiveHost(Purpose purpose, const std::string& root = "/");

  FileFacts facts(const std::string& path) override { return machine_.facts(path); }
  FileFacts facts_behind(const std::string& path) override { return machine_.facts_behind(path); }
  Result<std::string> read_value(const std::string& path) override {
    return machine_.read_value(path);
  }
  std::optional<std::string> link_target(const std::string& path) override {
    return machine_.link_target(path);
  }
  std::vector<std::string> list(const std::string& folder) override {
    return machine_.list(folder);
  }
  bool may_access(const std::string& path, int mode) override {
    return machine_.may_access(path, mode);
  }
  std::vector<std::uint32_t> allowed_cpus() override { return machine_.allowed_cpus(); }
  Result<std::string> read_file(const std::string& path) override;
  std::optional<std::uint32_t> user_id(const std::string& name) override;
  std::optional<std::uint32_t> group_id(const std::string& name) override;
  std::string user_name(std::uint32_t id) override;
  std::string group_name(std::uint32_t id) override;
  std::set<std::string> groups_of(const std::string& user) override;
  Result<config::Network, config::Problem> network() override;
  std::vector<LocalAddress> addresses() override { return local_addresses(); }
  std::string fsroot() override { return base_.empty() ? "/" : base_; }
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
  bool xdp_is_in_use(const std::string& interface) override;
  std::string xdp_mode(const std::string& interface, std::uint16_t mtu_bytes) override;
  Status attach_xdp(const std::string& folder, const XdpSteering& wanted) override;
  Status detach_xdp(const std::string& folder) override;
  void pause(std::chrono::milliseconds time) override;

 private:
  std::string at(const std::string& path) const { return base_ + path; }
  std::optional<Holder> holder_in_sight(const std::string& node);
  Result<netlink::Session*> netlink();

  const Purpose purpose_;
  std::string base_;  // Before each path: empty for "/".
  config::LiveMachine machine_;
  SafePath paths_;
  std::optional<netlink::Session> netlink_;  // Opened when first needed.
};

}  // namespace ztcp::setup
