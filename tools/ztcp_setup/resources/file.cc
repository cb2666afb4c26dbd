// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/file.h"

#include <fmt/format.h>

#include "core/shell_word.h"
#include "tools/ztcp_setup/host/trust.h"

namespace ztcp::setup::resource {

std::optional<Ownership> File::wanted(Host& host) const {
  return ownership_of(host, mode, "", group, ids);
}

void File::check(Host& host, const Others&, config::Problems& problems) const {
  if (auto problem = why_not_trusted(host, path)) problems.push_back(std::move(*problem));
  const FileKind kind = host.facts(path).kind;
  // Links have been reported.
  if (kind != FileKind::kAbsent && kind != FileKind::kFile && kind != FileKind::kLink)
    problems.push_back({path, "exists and is not a file", "move it away"});
  check_names(host, path, "", group, problems);
}

bool File::holds(Host& host) const {
  const FileFacts facts = host.facts(path);
  const auto owner = wanted(host);
  if (facts.kind != FileKind::kFile || !owner || facts.ownership != *owner) return false;
  const Result<std::string> now = host.read_file(path);
  return now && *now == text;
}

Read<File::Before> File::before(Host& host) const {
  Before before;
  const FileFacts facts = host.facts(path);
  before.existed = facts.kind == FileKind::kFile;
  before.made_folders = missing_folders(host, path);
  if (!before.existed) return before;
  before.ownership = facts.ownership;
  Result<std::string> now = host.read_file(path);
  if (!now) return tl::unexpected(problem_of(host, path, now.error()));
  before.text = std::move(*now);
  return before;
}

Preview File::preview(Host& host) const {
  const Result<std::string> now = host.read_file(path);
  const std::string word = shell_word(path);
  if (now && *now == text)
    return {"", ownership_text(host, path), ownership_text(mode, "", group),
            fmt::format("chown root:{} {}; chmod {:04o} {}", or_root(group), word, mode, word)};
  return {"", now ? *now : "", text,
          fmt::format("install -D -m {:04o} -g {} /dev/stdin {}", mode, or_root(group), word),
          true};
}

Done File::apply(Host& host, Before& before) const {
  const auto owner = wanted(host);
  if (!owner) return unknown_owner(path, "", group);
  if (Done made = make_folders(host, before.made_folders); !made) return made;
  if (Done placed = place_file(host, path, text, *owner); !placed) return placed;
  if (!holds(host))
    return tl::unexpected(config::Problem{path, "was written, but has another content",
                                          "find out which program overwrites it"});
  return {};
}

std::optional<std::string> File::kept_as(Host& host, const Before& before) const {
  const Result<std::string> now = host.read_file(path);
  if (!now || *now == text || (before.existed && *now == before.text)) return std::nullopt;
  std::string kept = path + ".edited";
  for (int i = 2; host.facts(kept).kind != FileKind::kAbsent; ++i)
    kept = fmt::format("{}.edited-{}", path, i);
  return kept;
}

Reverted File::keep_edited(Host& host, const Before& before) const {
  const auto kept = kept_as(host, before);
  if (!kept) return {};
  if (const Status renamed = host.rename(path, *kept); !renamed)
    return {{problem_of(host, path, renamed.error())}, {}};
  return {{}, {{path, "was edited since set-up; the edited file is " + *kept, ""}}};
}

std::string File::restored(const Before& before) const {
  if (!before.existed) return fmt::format("{} is removed", path);
  return fmt::format("{} has its earlier text again, {:04o}", path, before.ownership.mode);
}

Reverted File::revert(Host& host, const Before& before) const {
  // Leave it alone if something else replaced the file.
  const FileKind kind = host.facts(path).kind;
  if (kind != FileKind::kFile && kind != FileKind::kAbsent) {
    Reverted done = reverted(clear_temporary(host, path));
    done.notes.push_back(
        {path, "is no longer a file, not changed", fmt::format("ls -ld {}", shell_word(path))});
    return done;
  }
  if (!before.existed) {
    if (Done cleared = clear_file(host, path); !cleared) return reverted(cleared);
    return reverted(clear_folders(host, before.made_folders));
  }
  const FileFacts facts = host.facts(path);
  const Result<std::string> now = host.read_file(path);
  if (facts.kind != FileKind::kFile || facts.ownership != before.ownership || !now ||
      *now != before.text)
    return reverted(place_file(host, path, before.text, before.ownership));
  return reverted(clear_temporary(host, path));
}

void File::fields(Fields& fields) {
  fields.text("path", path);
  fields.bytes("text", text);
  fields.mode("mode", mode);
  fields.text("group", group);
  ids.fields(fields);
}

void File::Before::fields(Fields& fields) {
  fields.flag("existed", existed);
  fields.texts("made_folders", made_folders);
  if (!existed) return;
  fields.bytes("text", text);
  fields.ownership("ownership", ownership);
}

}  // namespace ztcp::setup::resource
