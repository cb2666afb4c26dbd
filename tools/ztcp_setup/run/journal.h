// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What set-up applied, and what was there before: written ahead. An entry is on disk before its
// resource is applied, and leaves only when it has been reverted, so that a machine whose set-up or
// undo was cut off at any moment can be put right. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "config/problem.h"
#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/resources/resource.h"

namespace ztcp::setup {

struct Entry {
  Resource resource;
  // Absent: it held before set-up came, so there is nothing to revert.
  std::optional<Before> before;
  bool done = false;  // Applied and checked.
};
class Journal;
// Why nothing can be added to what it tells of; absent: something can.
std::optional<config::Problem> why_not_added_to(const Journal& journal);
// Of a notice: something it should make noticed has changed since it ran.
bool is_due(const Entry& notice);

class Journal {
 public:
  static constexpr const char* kFolder = "/var/lib/ztcp";
  static constexpr const char* kPath = "/var/lib/ztcp/journal.json";
  static constexpr int kSchema = 2;

  // Empty where there is none. Refuses one that others could have written, and newer ones.
  static tl::expected<Journal, config::Problem> open(Host& host);

  const std::vector<Entry>& entries() const { return entries_; }
  Entry* find(const std::string& key);
  const Entry* find(const std::string& key) const;
  // Replaces the entry of the same key, or puts it behind the entry `after`, or else last.
  void put(Entry entry, const std::string& after);
  void put_first(Entry entry);  // Replaces likewise.
  void erase(const std::string& key);

  // Whether the last set-up went through to its end: else only a part of what is here fits
  // together. Saved with the entries.
  bool complete = false;

  // On disk when it returns, and only if there is something new. An empty journal is removed.
  tl::expected<void, config::Problem> save(Host& host);

 private:
  std::vector<Entry> entries_;
  std::string saved_;  // The text on disk.
};

// The journal's text, and back; read_journal() explains what it can't read.
struct JournalContent {
  std::vector<Entry> entries;
  bool complete = false;
};
std::string journal_text(const JournalContent& content);
tl::expected<JournalContent, config::Problem> read_journal(const std::string& text,
                                                           const std::string& path);

}  // namespace ztcp::setup
