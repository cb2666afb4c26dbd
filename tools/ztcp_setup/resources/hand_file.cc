// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Files and folders.
#include <fmt/format.h>

#include "tools/ztcp_setup/host/trust.h"
#include "tools/ztcp_setup/resources/hands.h"
#include "transport/core/shell_word.h"

namespace ztcp::setup {
namespace {

// Empty names are root's.
std::optional<Ownership> ownership_of(Host& host, std::uint32_t mode, const std::string& user,
                                      const std::string& group, const wish::Ids& ids) {
  auto user_id = user.empty() ? std::optional<std::uint32_t>(0) : host.user_id(user);
  auto group_id = group.empty() ? std::optional<std::uint32_t>(0) : host.group_id(group);
  if (!user_id) user_id = ids.user;
  if (!group_id) group_id = ids.group;
  if (!user_id || !group_id) return std::nullopt;
  return Ownership{mode, *user_id, *group_id};
}

void check_names(Host& host, const std::string& where, const std::string& user,
                 const std::string& group, config::Problems& problems) {
  if (!user.empty() && !host.user_id(user))
    problems.push_back({where, fmt::format("there is no user {} to give it to", user),
                        fmt::format("sudo useradd {}", user)});
  if (!group.empty() && !host.group_id(group))
    problems.push_back({where, fmt::format("there is no group {} to give it to", group),
                        fmt::format("sudo groupadd {}", group)});
}

// Accounts of a directory are not known at boot, before the network.
tl::unexpected<config::Problem> unknown(const std::string& where, const std::string& user,
                                        const std::string& group) {
  return tl::unexpected(config::Problem{
      where,
      fmt::format("nobody knows the {} {} now", group.empty() ? "user" : "group",
                  group.empty() ? user : group),
      fmt::format("when getent {} {} finds it: sudo ztcp_setup --boot",
                  group.empty() ? "passwd" : "group", group.empty() ? user : group)});
}

tl::unexpected<config::Problem> failed(Host& host, const std::string& path, const Error& error) {
  return tl::unexpected(problem_of(host, path, error));
}

tl::unexpected<config::Problem> no_group(const std::string& pci) {
  return tl::unexpected(
      config::Problem{pci, "has no vfio group to give access to",
                      fmt::format("ls /dev/vfio; ls -l /sys/bus/pci/devices/{}/iommu_group", pci)});
}

Restored faults_of(const Done& done) {
  Restored restored;
  if (!done) restored.faults.push_back(done.error());
  return restored;
}

std::string vfio_node(Host& host, const std::string& pci) {
  const std::string link =
      host.link_target(fmt::format("/sys/bus/pci/devices/{}/iommu_group", pci)).value_or("");
  if (link.empty()) return {};
  const std::string group = link.substr(link.rfind('/') + 1);
  for (const char* prefix : {"/dev/vfio/", "/dev/vfio/noiommu-"})
    if (host.facts(prefix + group).kind == FileKind::kOther) return prefix + group;
  return {};
}

}  // namespace

void check(Host& host, const wish::File& wish, const Earlier&, config::Problems& problems) {
  if (auto problem = why_not_trusted(host, wish.path)) problems.push_back(std::move(*problem));
  const FileKind kind = host.facts(wish.path).kind;
  if (kind == FileKind::kFolder || kind == FileKind::kOther)
    problems.push_back({wish.path, "is there and is no file", "move it away"});
  check_names(host, wish.path, "", wish.group, problems);
}

bool holds(Host& host, const wish::File& wish) {
  const FileFacts facts = host.facts(wish.path);
  const auto wanted = ownership_of(host, wish.mode, "", wish.group, wish.ids);
  if (facts.kind != FileKind::kFile || !wanted || facts.ownership != *wanted) return false;
  const Result<std::string> text = host.read_file(wish.path);
  return text && *text == wish.text;
}

Read<before::File> record(Host& host, const wish::File& wish) {
  before::File before;
  const FileFacts facts = host.facts(wish.path);
  before.existed = facts.kind == FileKind::kFile;
  before.made_folders = missing_folders(host, wish.path);
  if (!before.existed) return before;
  before.ownership = facts.ownership;
  Result<std::string> text = host.read_file(wish.path);
  if (!text) return failed(host, wish.path, text.error());
  before.text = std::move(*text);
  return before;
}

Done carry_out(Host& host, const wish::File& wish, before::File& before) {
  const auto wanted = ownership_of(host, wish.mode, "", wish.group, wish.ids);
  if (!wanted) return unknown(wish.path, "", wish.group);
  if (Done made = make_folders(host, before.made_folders); !made) return made;
  if (Done placed = place_file(host, wish.path, wish.text, *wanted); !placed) return placed;
  if (!holds(host, wish))
    return tl::unexpected(
        config::Problem{wish.path, "was written and reads otherwise", "see who else writes it"});
  return {};
}

Restored keep_edited(Host& host, const wish::File& wish, const before::File& before) {
  const Result<std::string> text = host.read_file(wish.path);
  if (!text || *text == wish.text || (before.existed && *text == before.text)) return {};
  std::string kept = wish.path + ".edited";
  for (int i = 2; host.facts(kept).kind != FileKind::kAbsent; ++i)
    kept = fmt::format("{}.edited-{}", wish.path, i);
  if (const Status renamed = host.rename(wish.path, kept); !renamed)
    return {{problem_of(host, wish.path, renamed.error())}, {}};
  return {{}, {{wish.path, "was edited since set-up; the edited file is " + kept, ""}}};
}

Restored restore(Host& host, const wish::File& wish, const before::File& before) {
  if (!before.existed) {
    if (Done cleared = clear_file(host, wish.path); !cleared) return faults_of(cleared);
    return faults_of(clear_folders(host, before.made_folders));
  }
  const FileFacts facts = host.facts(wish.path);
  const Result<std::string> text = host.read_file(wish.path);
  if (facts.kind != FileKind::kFile || facts.ownership != before.ownership || !text ||
      *text != before.text)
    return faults_of(place_file(host, wish.path, before.text, before.ownership));
  return faults_of(clear_temporary(host, wish.path));
}

void check(Host& host, const wish::Folder& wish, const Earlier&, config::Problems& problems) {
  // Its own mode is what the wish is about; the folders above it must be root's.
  if (auto problem = why_not_trusted(host, folder_of(wish.path)))
    problems.push_back(std::move(*problem));
  const FileKind kind = host.facts(wish.path).kind;
  if (kind != FileKind::kFolder && kind != FileKind::kAbsent)
    problems.push_back({wish.path, "is there and is no folder", "move it away"});
  check_names(host, wish.path, wish.user, wish.group, problems);
}

bool holds(Host& host, const wish::Folder& wish) {
  const FileFacts facts = host.facts(wish.path);
  const auto wanted = ownership_of(host, wish.mode, wish.user, wish.group, wish.ids);
  return facts.kind == FileKind::kFolder && wanted && facts.ownership == *wanted;
}

Read<before::Folder> record(Host& host, const wish::Folder& wish) {
  const FileFacts facts = host.facts(wish.path);
  return before::Folder{facts.kind == FileKind::kFolder, facts.ownership,
                        missing_folders(host, wish.path)};
}

Done carry_out(Host& host, const wish::Folder& wish, before::Folder& before) {
  const auto wanted = ownership_of(host, wish.mode, wish.user, wish.group, wish.ids);
  if (!wanted) return unknown(wish.path, wish.user, wish.group);
  if (Done made = make_folders(host, before.made_folders); !made) return made;
  const Status status = host.facts(wish.path).kind == FileKind::kFolder
                            ? host.set_ownership(wish.path, *wanted)
                            : host.make_folder(wish.path, *wanted);
  if (!status) return failed(host, wish.path, status.error());
  return {};
}

Restored restore(Host& host, const wish::Folder& wish, const before::Folder& before) {
  const FileFacts facts = host.facts(wish.path);
  if (!before.existed) {
    // Jobs leave them behind; none holds them any more, or the NICs would be busy.
    if (facts.kind == FileKind::kFolder && !host.list(wish.path).empty())
      if (const Status removed = host.remove_locks(wish.path); !removed)
        return {{problem_of(host, wish.path, removed.error(), "ls -l " + shell_word(wish.path))},
                {}};
    if (Done cleared = clear_folders(host, {wish.path}); !cleared) return faults_of(cleared);
    return faults_of(clear_folders(host, before.made_folders));
  }
  if (facts.kind != FileKind::kFolder || facts.ownership == before.ownership) return {};
  if (const Status status = host.set_ownership(wish.path, before.ownership); !status)
    return {{problem_of(
                host, wish.path, status.error(),
                fmt::format("sudo chmod {:o} {}", before.ownership.mode, shell_word(wish.path)))},
            {}};
  return {};
}

void check(Host& host, const wish::Access& wish, const Earlier&, config::Problems& problems) {
  check_names(host, wish.pci, wish.user, wish.group, problems);
}

bool holds(Host& host, const wish::Access& wish) {
  const std::string node = vfio_node(host, wish.pci);
  const auto wanted = ownership_of(host, wish.mode, wish.user, wish.group, wish.ids);
  return !node.empty() && wanted && host.facts(node).ownership == *wanted;
}

Read<before::Access> record(Host& host, const wish::Access& wish) {
  const std::string node = vfio_node(host, wish.pci);
  if (node.empty()) return no_group(wish.pci);
  return before::Access{host.facts(node).ownership};
}

Done carry_out(Host& host, const wish::Access& wish, before::Access&) {
  const std::string node = vfio_node(host, wish.pci);
  const auto wanted = ownership_of(host, wish.mode, wish.user, wish.group, wish.ids);
  if (!wanted) return unknown(wish.pci, wish.user, wish.group);
  if (node.empty()) return no_group(wish.pci);
  if (const Status status = host.set_ownership(node, *wanted); !status)
    return failed(host, node, status.error());
  return {};
}

Restored restore(Host& host, const wish::Access& wish, const before::Access& before) {
  const std::string node = vfio_node(host, wish.pci);
  // Gone with its driver.
  if (node.empty() || host.facts(node).ownership == before.ownership) return {};
  if (const Status status = host.set_ownership(node, before.ownership); !status)
    return {{problem_of(host, node, status.error(),
                        fmt::format("sudo chmod {:o} {}", before.ownership.mode, node))},
            {}};
  return {};
}

}  // namespace ztcp::setup
