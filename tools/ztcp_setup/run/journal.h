// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Resources that set-up applied, with the states before: a write-ahead journal. An entry is on disk
// before its resource is applied, and removed only after it has been reverted, so that an
// interrupted set-up or undo can always be completed. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/problem.h"
#include "core/result.h"
#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/resources/resource.h"

namespace ztcp::setup {

struct Entry {
  Resource resource;
  // Absent: it held before set-up, so there is nothing to revert.
  std::optional<Before> before;
  bool done = false;  // Applied and checked.
};
class Journal;
// Why nothing can be added to this set-up; absent: it can.
std::optional<config::Problem> why_not_added_to(const Journal& journal);
// For a notice: whether a resource it announces has changed since it ran.
bool is_due(const Entry& notice);

class Journal {
 public:
  static constexpr const char* kFolder = "/var/lib/ztcp";
  static constexpr const char* kPath = "/var/lib/ztcp/journal.json";
  static constexpr int kSchema = 2;

  // Empty if there is none. Refuses one that users other than root can have written, and newer
  // schemas.
  static Result<Journal, config::Problem> open(Host& host);

  const std::vector<Entry>& entries() const { return entries_; }
  Entry* find(const std::string& key);
  const Entry* find(const std::string& key) const;
  // Replaces the entry of the same key, or inserts it behind the entry `after`, or at the end.
  void put(Entry entry, const std::string& after);
  void put_first(Entry entry);  // Replaces, too.
  void erase(const std::string& key);

  // Whether the last set-up was completed: else only a part of the resources is applied. Saved with
  // the entries.
  bool complete = false;

  // On disk when it returns; writes only changes. An empty journal is removed.
  Result<void, config::Problem> save(Host& host);

 private:
  std::vector<Entry> entries_;
  std::string saved_;  // The text on disk.
};

// The journal's text, and its parser; read_journal() explains why a text is unreadable.
struct JournalContent {
  std::vector<Entry> entries;
  bool complete = false;
};
std::string journal_text(const JournalContent& content);
Result<JournalContent, config::Problem> read_journal(const std::string& text,
                                                     const std::string& path);

}  // namespace ztcp::setup
