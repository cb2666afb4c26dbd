// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/config_access.h"

#include <algorithm>
#include <sys/stat.h>

#include <fmt/format.h>

#include "core/shell_word.h"
#include "tools/ztcp_setup/resources/owner.h"

namespace ztcp::setup {
namespace {

constexpr std::uint32_t kForAll = 0644;
constexpr std::uint32_t kForGroup = 0640;

bool is_on_pci(const config::Fabric& fabric) {
  return std::any_of(fabric.nics.begin(), fabric.nics.end(),
                     [](const config::Nic& nic) { return nic.driver == config::NicDriver::kPci; });
}

config::Check note_of(const config::Fabric& fabric, config::Severity severity, std::string what,
                      std::string mend) {
  return {"config", severity, {fabric.path, std::move(what), std::move(mend)}};
}

}  // namespace

ConfigAccess config_access(Host& host, const config::Fabric& fabric) {
  const bool secret = !fabric.messages.cluster_key.empty();
  const std::string& group = fabric.host.group;
  const FileFacts facts = host.facts(fabric.path);
  const bool is_there = facts.kind == FileKind::kFile;
  const bool is_open = is_there && (facts.ownership.mode & S_IROTH) != 0;
  const bool is_narrowed = is_there && !is_open;
  if (!secret && !is_narrowed) return {kForAll, "", {}};
  if (is_narrowed && group.empty())
    return {facts.ownership.mode & kForGroup,
            facts.ownership.group == 0 ? std::string() : host.group_name(facts.ownership.group),
            {}};
  ConfigAccess access{kForGroup, group, {}};
  // judge_request() reports a user without a group.
  if (!is_open || (group.empty() && !fabric.host.user.empty())) return access;
  const std::string now = fmt::format(
      "holds a cluster_key and is readable by everybody (mode {:04o})", facts.ownership.mode);
  if (group.empty() && !is_on_pci(fabric))
    access.note = note_of(
        fabric, config::Severity::kFault,
        now + "; without a group only root could read it, so jobs of other users would fail",
        fmt::format("sudo ztcp_setup --group GROUP, with a group of all users that run jobs; if "
                    "only root does: sudo chmod {:04o} {}, then run this again",
                    kForGroup, shell_word(fabric.path)));
  else
    access.note = note_of(
        fabric, config::Severity::kWarning,
        fmt::format("{}; set-up makes it {}", now, ownership_text(access.mode, "", access.group)),
        "");
  return access;
}

}  // namespace ztcp::setup
