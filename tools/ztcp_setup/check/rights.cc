// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The checks that --check makes for other users: whether the config's user and group can run jobs,
// and whether only root can change the files that jobs trust. Root is never denied access, so
// owners and modes are compared.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "config/machine/rdma.h"
#include "config/machine/readings.h"
#include "core/shell_word.h"
#include "tools/ztcp_setup/check/checks.h"
#include "tools/ztcp_setup/host/job_services.h"

namespace ztcp::setup {
namespace {

using config::Severity;

class Judge {
 public:
  Judge(const config::Fabric& fabric, Host& host) : fabric_(fabric), host_(host) {}

  std::vector<config::Check> run() {
    on_pci_ = has_nics(config::NicDriver::kPci);
    on_rdma_ = has_nics(config::NicDriver::kVerbs);
    const bool for_somebody = !fabric_.host.user.empty() || !fabric_.host.group.empty();
    // A fabric of software NICs belongs to the user that made it. A config without NICs is for
    // kernel interfaces.
    if (!fabric_.nics.empty() && !on_pci_ && !on_rdma_ && !has_nics(config::NicDriver::kSocket))
      return {};
    // Without NICs on PCI a user may have a config of their own.
    if (!on_pci_ && !for_somebody) own_user_ = host_.user_name(::geteuid());
    judge_config();
    if (!for_somebody) return std::move(checks_);
    judge_accounts();
    for (const config::Nic& nic : fabric_.nics)
      if (nic.driver == config::NicDriver::kPci) judge_group_node(nic);
    if (fabric_.host.host_class == config::HostClass::kIommu || on_rdma_) {
      judge_sessions();
      judge_services();
    }
    return std::move(checks_);
  }

 private:
  bool has_nics(config::NicDriver driver) const {
    return std::any_of(fabric_.nics.begin(), fabric_.nics.end(),
                       [&](const config::Nic& nic) { return nic.driver == driver; });
  }

  void add(Severity severity, std::string name, std::string where, std::string what,
           std::string mend) {
    checks_.push_back(
        {std::move(name), severity, {std::move(where), std::move(what), std::move(mend)}});
  }

  // Owner, group and mode of a file.
  struct Standing {
    std::uint32_t mode = 0;
    std::string user;
    std::string group;
  };
  std::optional<Standing> standing_of(const std::string& path) {
    const FileFacts found = host_.facts_behind(path);
    if (found.kind == FileKind::kAbsent) return std::nullopt;
    const Ownership& who = found.ownership;
    return Standing{who.mode, host_.user_name(who.user), host_.group_name(who.group)};
  }

  // The config decides which devices processes open and which peers they trust. Each folder above
  // it counts, too: through it the file could be replaced.
  void judge_config() {
    const std::size_t before = checks_.size();
    std::filesystem::path at = fabric_.path;
    for (bool file = true;; file = false) {
      const auto found = standing_of(at.string());
      if (found && found->user != "root" && found->user != own_user_)
        add(Severity::kFault, "config", at.string(),
            fmt::format("belongs to {}, wanted root: its owner controls the jobs of others",
                        found->user),
            fmt::format("sudo chown root {}", shell_word(at.string())));
      const bool sticky = !file && found && (found->mode & S_ISVTX) != 0;
      if (found && (found->mode & S_IWOTH) != 0 && !sticky)
        add(Severity::kFault, "config", at.string(),
            fmt::format("is writable by everybody (mode {:04o})", found->mode),
            fmt::format("sudo chmod o-w {}", shell_word(at.string())));
      const bool is_own_group = found && found->user == own_user_ && found->group == own_user_;
      if (found && (found->mode & S_IWGRP) != 0 && found->group != "root" && !is_own_group &&
          !sticky)
        add(Severity::kFault, "config", at.string(),
            fmt::format("is writable by the group {} (mode {:04o})", found->group, found->mode),
            fmt::format("sudo chmod g-w {}", shell_word(at.string())));
      if (file && found && !fabric_.messages.cluster_key.empty() && (found->mode & S_IROTH) != 0)
        add(Severity::kFault, "config", at.string(),
            fmt::format("holds a cluster_key and is readable by everybody (mode {:04o})",
                        found->mode),
            fmt::format("sudo chmod o-r {}", shell_word(at.string())));
      if (!at.has_relative_path()) break;
      at = at.parent_path();
    }
    if (checks_.size() == before)
      add(Severity::kGood, "config", fabric_.path,
          own_user_.empty() || own_user_ == "root"
              ? "only root may change it"
              : fmt::format("only root and {} may change it", own_user_),
          "");
  }

  void judge_accounts() {
    const config::Host& host = fabric_.host;
    // Kernel sockets need no permission that an account could lack.
    const Severity severity = on_pci_ || on_rdma_ ? Severity::kFault : Severity::kWarning;
    if (!host.user.empty() && !host_.user_id(host.user))
      add(severity, "account", "host.user", fmt::format("no user {} on this machine", host.user),
          "sudo ztcp_setup --user NAME");
    if (!host.group.empty() && !host_.group_id(host.group))
      add(severity, "account", "host.group", fmt::format("no group {} on this machine", host.group),
          fmt::format("sudo groupadd --system {}", host.group));
  }

  // Whether the node exists, and this user may open it, is the plugin's own check.
  void judge_group_node(const config::Nic& nic) {
    const std::string number = config::iommu_group(host_, nic.pci);
    if (number.empty()) return;
    for (const std::string& node : {"/dev/vfio/" + number, "/dev/vfio/noiommu-" + number}) {
      const auto found = standing_of(node);
      if (!found) continue;
      const config::Host& host = fabric_.host;
      const bool user =
          host.user.empty() || (found->user == host.user && (found->mode & 0600U) == 0600U);
      const bool group =
          host.group.empty() || (found->group == host.group && (found->mode & 0060U) == 0060U);
      const std::string is =
          fmt::format("{} is {:04o} {}:{}", node, found->mode, found->user, found->group);
      if (user && group)
        add(Severity::kGood, "access", nic.name, is, "");
      else
        add(Severity::kFault, "access", nic.name,
            fmt::format("{}, wanted access for {}", is, who(host)), "sudo ztcp_setup");
    }
  }

  static std::string who(const config::Host& host) {
    if (host.user.empty()) return "group " + host.group;
    return "user " + host.user + (host.group.empty() ? "" : " and group " + host.group);
  }

  void judge_sessions() {
    const config::Host& host = fabric_.host;
    if (!host.user.empty())
      judge_limit("user " + host.user,
                  session_memlock_kib(host_, host.user, host_.groups_of(host.user)));
    if (!host.group.empty())
      judge_limit("group " + host.group, session_memlock_kib(host_, "", {host.group}));
  }

  void judge_limit(const std::string& whose, std::optional<std::uint64_t> kib) {
    const std::uint64_t pages_kib = std::uint64_t{fabric_.hugepages.per_process_mib} << 10U;
    const std::uint64_t rdma_kib = config::kEnoughForRdmaBytes >> 10U;
    if (kib && (on_rdma_ ? *kib >= rdma_kib : *kib > pages_kib))
      return add(Severity::kGood, "memlock", "sessions of " + whose,
                 *kib == kUnlimitedKib ? std::string("unlimited") : fmt::format("{} KiB", *kib),
                 "");
    add(Severity::kFault, "memlock", "sessions of " + whose,
        fmt::format("max locked memory {}, wanted unlimited, or {}",
                    kib ? fmt::format("is {} KiB in /etc/security/limits.*", *kib)
                        : std::string("is not set in /etc/security/limits.*, so that the system's "
                                      "default of a few MiB holds"),
                    on_rdma_
                        ? fmt::format("{} KiB: all that NCCL registers with RDMA devices counts "
                                      "against it",
                                      rdma_kib)
                        : fmt::format("more than the {} KiB of hugepages that a process may "
                                      "take",
                                      pages_kib)),
        "sudo ztcp_setup, then log in again");
  }

  void judge_services() {
    for (const std::string& service : job_services(host_))
      if (limits_memlock(host_, service))
        add(Severity::kWarning, "memlock", service,
            "jobs that it starts inherit its limit of locked memory, and its unit sets none",
            fmt::format("sudo ztcp_setup, then sudo systemctl restart {}", service));
  }

  const config::Fabric& fabric_;
  Host& host_;
  bool on_pci_ = false;
  bool on_rdma_ = false;
  std::string own_user_;  // May own the config beside root; empty: none.
  std::vector<config::Check> checks_;
};

}  // namespace

std::vector<config::Check> check_rights(const config::Fabric& fabric, Host& host) {
  return Judge(fabric, host).run();
}

}  // namespace ztcp::setup
