// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What set-up was granted, and what was there before: written ahead. An entry is on disk before
// its wish is carried out, and leaves only when it has been taken back, so that a machine whose
// set-up or undo was cut off at any moment can be put right. One thread.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <tl/expected.hpp>

#include "config/problem.h"
#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/host/network.h"
#include "tools/ztcp_setup/resources/wish.h"

namespace ztcp::setup {

// The state before a wish was granted, by kind.
namespace before {

struct File {
  bool existed = false;
  std::string text;
  Ownership ownership;
  std::vector<std::string> made_folders;  // Outermost first.
};
struct Folder {
  bool existed = false;
  Ownership ownership;
  std::vector<std::string> made_folders;
};
struct Value {
  std::string value;
  std::string reached;  // What the kernel made of the wish; until it is known, the wish.
};
struct Module {};  // It was not loaded.
struct Mount {     // Nothing was mounted there.
  std::vector<std::string> made_folders;
};
struct Driver {
  std::string id;  // "1af4:1041": whether it is the same device still.
  std::string driver;
  std::string driver_override;
  std::vector<LinkState> links;
};
struct Access {
  Ownership ownership;
};
struct Unit {};  // It was not enabled.
struct BootArguments {
  std::vector<std::pair<std::string, std::string>> arguments_of;  // By kernel.
};
struct Notice {
  bool due = false;  // Something it should make noticed has changed since it ran.
};

}  // namespace before

using Before = std::variant<before::File, before::Folder, before::Value, before::Module,
                            before::Mount, before::Driver, before::Access, before::Unit,
                            before::BootArguments, before::Notice>;

struct Entry {
  Wish wish;
  // Absent: the wish held before set-up came, so there is nothing to take back.
  std::optional<Before> before;
  bool done = false;  // Carried out and checked.
};

// What a wish is about, the same whatever is wished for it: "driver 0000:3b:00.0".
std::string key_of(const Wish& wish);
bool is_notice(const Wish& wish);

class Journal {
 public:
  static constexpr const char* kFolder = "/var/lib/ztcp";
  static constexpr const char* kPath = "/var/lib/ztcp/journal.json";
  static constexpr int kSchema = 2;

  // Empty where there is none. Refuses one that others could have written, and newer ones.
  static tl::expected<Journal, config::Problem> open(Host& host);

  const std::vector<Entry>& entries() const { return entries_; }
  Entry* find(const std::string& key);
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
