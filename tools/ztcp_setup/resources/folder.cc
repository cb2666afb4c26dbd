// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/folder.h"

#include <fmt/format.h>

#include "core/shell_word.h"
#include "tools/ztcp_setup/host/trust.h"

namespace ztcp::setup::resource {

std::optional<Ownership> Folder::wanted(Host& host) const {
  return ownership_of(host, mode, user, group, ids);
}

// A typo may name /tmp or /run/lock: set-up would lock out its users, or expose its content. A
// folder of ztcp's own contains only locks.
std::string Folder::other_use(Host& host) const {
  for (const std::string& name : host.list(path))
    if (!name.ends_with(".lock")) return "holds " + name;
  constexpr std::uint32_t kOthersWrite = 0002;
  const bool is_for_all = (host.facts(path).ownership.mode & kOthersWrite) != 0;
  return is_for_all && (mode & kOthersWrite) == 0 ? "is writable by everybody" : "";
}

void Folder::check(Host& host, const Others&, config::Problems& problems) const {
  // The wanted mode applies to the folder itself; those above it must be root's.
  if (auto problem = why_not_trusted(host, folder_of(path)))
    problems.push_back(std::move(*problem));
  const FileKind kind = host.facts(path).kind;
  if (kind != FileKind::kFolder && kind != FileKind::kAbsent)
    problems.push_back({path, "exists and is not a folder", "move it away"});
  if (kind == FileKind::kFolder && !holds(host))
    if (const std::string use = other_use(host); !use.empty())
      problems.push_back(
          {path,
           fmt::format("is {} and {}: not made {}, since it has another use",
                       ownership_text(host, path), use, ownership_text(mode, user, group)),
           "name a folder of its own as run_dir in the config"});
  check_names(host, path, user, group, problems);
}

bool Folder::holds(Host& host) const {
  const FileFacts facts = host.facts(path);
  const auto owner = wanted(host);
  return facts.kind == FileKind::kFolder && owner && facts.ownership == *owner;
}

Read<Folder::Before> Folder::before(Host& host) const {
  const FileFacts facts = host.facts(path);
  return Before{facts.kind == FileKind::kFolder, facts.ownership, missing_folders(host, path)};
}

Preview Folder::preview(Host& host) const {
  const std::string have = ownership_text(host, path);
  return {"", have.empty() ? "none" : have, ownership_text(mode, user, group),
          fmt::format("install -d -m {:04o} -o {} -g {} {}", mode, or_root(user), or_root(group),
                      shell_word(path))};
}

Done Folder::apply(Host& host, Before& before) const {
  const auto owner = wanted(host);
  if (!owner) return unknown_owner(path, user, group);
  if (Done made = make_folders(host, before.made_folders); !made) return made;
  const Status status = host.facts(path).kind == FileKind::kFolder
                            ? host.set_ownership(path, *owner)
                            : host.make_folder(path, *owner);
  if (!status) return tl::unexpected(problem_of(host, path, status.error()));
  return {};
}

std::string Folder::restored(const Before& before) const {
  if (!before.existed) return fmt::format("{} is removed", path);
  return fmt::format("{} is {:04o} again", path, before.ownership.mode);
}

Reverted Folder::revert(Host& host, const Before& before) const {
  const FileFacts facts = host.facts(path);
  if (!before.existed) {
    // Jobs leave locks behind; none holds them any more, or the NICs would be busy.
    if (facts.kind == FileKind::kFolder && !host.list(path).empty())
      if (const Status removed = host.remove_locks(path); !removed)
        return {{problem_of(host, path, removed.error(), "ls -l " + shell_word(path))}, {}};
    if (Done cleared = clear_folders(host, {path}); !cleared) return reverted(cleared);
    Reverted done = reverted(clear_folders(host, before.made_folders));
    if (const auto left = host.list(path); !left.empty())
      done.notes.push_back({path, fmt::format("contains {}, not removed", left.front()),
                            fmt::format("ls -la {}", shell_word(path))});
    return done;
  }
  if (facts.kind != FileKind::kFolder || facts.ownership == before.ownership) return {};
  if (const Status status = host.set_ownership(path, before.ownership); !status)
    return {
        {problem_of(host, path, status.error(),
                    fmt::format("sudo chmod {:o} {}", before.ownership.mode, shell_word(path)))},
        {}};
  return {};
}

void Folder::fields(Fields& fields) {
  fields.text("path", path);
  fields.mode("mode", mode);
  fields.text("user", user);
  fields.text("group", group);
  ids.fields(fields);
}

void Folder::Before::fields(Fields& fields) {
  fields.flag("existed", existed);
  fields.texts("made_folders", made_folders);
  if (existed) fields.ownership("ownership", ownership);
}

}  // namespace ztcp::setup::resource
