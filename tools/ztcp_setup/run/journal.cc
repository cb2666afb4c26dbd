// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/run/journal.h"

#include <algorithm>

#include <fmt/format.h>

#include "tools/ztcp_setup/host/place_file.h"
#include "tools/ztcp_setup/host/trust.h"

namespace ztcp::setup {
std::optional<config::Problem> why_not_added_to(const Journal& journal) {
  if (journal.complete) return std::nullopt;
  return config::Problem{
      Journal::kPath,
      journal.entries().empty()
          ? "this machine is not set up, so there is nothing to add to"
          : "the last run was interrupted, so there is no complete set-up to add to",
      "sudo ztcp_setup"};
}

bool is_due(const Entry& notice) {
  return notice.before && std::get<resource::Notice::Before>(*notice.before).due;
}

Result<Journal, config::Problem> Journal::open(Host& host) {
  if (auto problem = why_not_trusted(host, kPath)) return tl::unexpected(std::move(*problem));
  Journal journal;
  const FileKind kind = host.facts(kPath).kind;
  if (kind == FileKind::kAbsent) return journal;
  if (kind != FileKind::kFile)
    return tl::unexpected(
        config::Problem{kPath, "is not a file, so set-up's changes are unknown",
                        fmt::format("ls -ld {}; restore the journal, or remove this", kPath)});
  const Result<std::string> text = host.read_file(kPath);
  if (!text) return tl::unexpected(problem_of(host, kPath, text.error(), "run it as root: sudo"));
  JournalContent content = ZTCP_TRY(read_journal(*text, kPath));
  journal.entries_ = std::move(content.entries);
  journal.complete = content.complete;
  journal.saved_ = *text;
  return journal;
}

Entry* Journal::find(const std::string& key) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return key_of(entry.resource) == key;
  });
  return found == entries_.end() ? nullptr : &*found;
}

const Entry* Journal::find(const std::string& key) const {
  return const_cast<Journal*>(this)->find(key);
}

void Journal::put(Entry entry, const std::string& after) {
  if (Entry* known = find(key_of(entry.resource)); known != nullptr) {
    *known = std::move(entry);
    return;
  }
  const Entry* before = after.empty() ? nullptr : find(after);
  entries_.insert(
      before == nullptr ? entries_.end() : entries_.begin() + (before - entries_.data() + 1),
      std::move(entry));
}

void Journal::put_first(Entry entry) {
  if (find(key_of(entry.resource)) == nullptr)
    entries_.insert(entries_.begin(), Entry{entry.resource, {}, false});
  put(std::move(entry), "");
}

void Journal::erase(const std::string& key) {
  std::erase_if(entries_, [&](const Entry& entry) { return key_of(entry.resource) == key; });
}

Done Journal::save(Host& host) {
  if (entries_.empty()) {
    if (host.facts(kFolder).kind == FileKind::kAbsent) return {};
    saved_.clear();
    if (Done cleared = clear_file(host, kPath); !cleared) return cleared;
    return clear_folders(host, {kFolder});
  }
  std::string text = journal_text({entries_, complete});
  if (text == saved_) return {};
  // An unreadable journal would make undo impossible.
  if (text.size() > Host::kLargestFile)
    return tl::unexpected(config::Problem{
        kPath,
        fmt::format("would have {} bytes, at most {} can be read", text.size(), Host::kLargestFile),
        "leave a NIC with so many addresses, routes and rules to the kernel: ztcp_setup "
        "--keep INTERFACE"});
  if (host.facts(kFolder).kind == FileKind::kAbsent) {
    if (Done made = make_folders(host, missing_folders(host, kFolder)); !made) return made;
    if (const Status made = host.make_folder(kFolder, {0700, 0, 0}); !made)
      return tl::unexpected(problem_of(host, kFolder, made.error()));
  }
  if (Done placed = place_file(host, kPath, text, {0600, 0, 0}); !placed) return placed;
  saved_ = std::move(text);
  return {};
}

}  // namespace ztcp::setup
