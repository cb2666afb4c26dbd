// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Statistics pages as files: "PID-TICKS.page" in a folder, with mode 0600. The owner holds a record
// lock on its page from before it has this name, so that a page without a lock is a dead process's.
// A forked child does not inherit the lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/descriptor.h"
#include "core/result.h"
#include "transport/stats/layout.h"

namespace ztcp::stats {

inline constexpr std::string_view kPageSuffix = ".page";
inline constexpr std::size_t kMaxPagesInFolder = 4096;
// Dead processes' pages that stay for `ztcp_stat --after-crash`: the newest, up to this number...
inline constexpr std::size_t kMaxDeadPages = 32;
// ...and this age.
inline constexpr std::int64_t kMaxDeadSeconds = 24 * 3600;

// Field 22 of /proc/PID/stat. Nothing: no such process, or not visible.
std::optional<std::uint64_t> start_ticks_of(std::uint32_t pid);

struct PageOwner {
  bool is_running = false;
  std::uint32_t pid = 0;  // In this process's numbers; 0: not visible from here.
  // False: the lock is another process's than the one that made the page.
  bool matches(const Header& header) const;
};
// By the lock. Locks of this process itself are not seen.
PageOwner owner_of(int fd);

// A new page that has a temporary name, is locked and mapped, and holds zeros.
struct PageFile {
  Descriptor folder;
  Descriptor fd;  // Holds the lock. Closing any other descriptor of the file drops it.
  std::string temporary_name;
  std::string name;
  PageContent* content = nullptr;  // Unmapped by unmap_page().
};
// Makes the folder, too. `is_shared`: several users have pages there, by run_dir's permissions;
// else only this user may, and a folder of another user is refused.
Result<PageFile> make_page_file(const std::filesystem::path& folder, bool is_shared);
// The page appears under its name.
Status publish_page_file(const PageFile& file);
void unmap_page(PageContent* content);

// Removes pages of this user's dead processes beyond kMaxDeadPages and kMaxDeadSeconds. `now_s`:
// seconds since 1970.
void remove_dead_pages(const std::filesystem::path& folder, std::int64_t now_s);

}  // namespace ztcp::stats
