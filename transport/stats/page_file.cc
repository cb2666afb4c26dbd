// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/page_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/file_size_signal.h"

namespace ztcp::stats {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;  // Length 0 means to the end.
  return lock;
}

// Uses the folder's descriptor, since its path may lead elsewhere at the next use.
Result<Descriptor> open_folder(const fs::path& folder, bool is_shared) {
  const fs::path parent = folder.parent_path();
  if (is_shared && ::mkdir(parent.c_str(), 0755) != 0 && errno != EEXIST)
    return fail_errno("mkdir");
  const bool made = ::mkdir(folder.c_str(), is_shared ? 0755 : 0700) == 0;
  if (!made && errno != EEXIST) return fail_errno("mkdir");
  Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return fail_errno("open folder");
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return fail_errno("fstat");
  if (!is_shared) {
    if (facts.st_uid != ::geteuid() || (facts.st_mode & kOthersWrite) != 0)
      return fail(Errc::kSystem, "open folder (it must belong to this user alone)", EPERM);
    return fd;
  }
  // Users that share run_dir share the folder in it; each removes only its own pages.
  struct stat above {};
  if (made && ::stat(parent.c_str(), &above) == 0 && (above.st_mode & kOthersWrite) != 0)
    ::fchmod(fd.get(), S_ISVTX | 0755 | (above.st_mode & kOthersWrite));
  return fd;
}

Status reserve(int fd) {
  // Reserved now, a full file system fails here and not in a lane's write.
  FileSizeSignal signal;
  int why = EINTR;
  while (why == EINTR) why = ::posix_fallocate(fd, 0, static_cast<off_t>(kPageBytes));
  if (why == EFBIG) signal.raised();
  return why == 0 ? Status{} : fail(Errc::kSystem, "posix_fallocate", why);
}

Status lock_and_map(PageFile& file) {
  ZTCP_CHECK(reserve(file.fd.get()));
  struct flock lock = whole_file(F_WRLCK);
  if (::fcntl(file.fd.get(), F_SETLK, &lock) != 0) return fail_errno("F_SETLK");
  void* memory = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd.get(), 0);
  if (memory == MAP_FAILED) return fail_errno("mmap");
  ::madvise(memory, kPageBytes, MADV_DONTFORK);
  file.content = static_cast<PageContent*>(memory);
  return {};
}

bool exists(int folder, const std::string& name) {
  return ::faccessat(folder, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

struct DeadPage {
  std::string name;
  std::int64_t updated_s = 0;
};

// Nothing: it is no page of this user's, or its owner runs.
std::optional<DeadPage> dead_page(int folder, const std::string& name) {
  const Descriptor fd(
      ::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat facts {};
  if (!fd || ::fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
      facts.st_uid != ::geteuid() || owner_of(fd.get()).is_running)
    return std::nullopt;
  // Writes through a mapping need not change the file's time.
  std::int64_t updated_ns = 0;
  ::pread(fd.get(), &updated_ns, sizeof(updated_ns), offsetof(Header, updated_realtime_ns)) ==
          sizeof(updated_ns) ||
      (updated_ns = 0);
  return DeadPage{name, std::max<std::int64_t>(updated_ns / 1'000'000'000, facts.st_mtime)};
}

std::vector<std::string> names_in(int folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(::dup(folder)), ::closedir);
  if (!listing) return names;
  ::rewinddir(listing.get());
  while (const dirent* entry = ::readdir(listing.get()))
    if (std::string_view(entry->d_name).ends_with(kPageSuffix) && names.size() < kMaxPagesInFolder)
      names.emplace_back(entry->d_name);
  return names;
}

}  // namespace

std::optional<std::uint64_t> start_ticks_of(std::uint32_t pid) {
  const Descriptor fd(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text;
  const ssize_t size = fd ? ::read(fd.get(), text.data(), text.size()) : 0;
  if (size <= 0) return std::nullopt;
  // Field 2 is the command in brackets and may hold any character.
  std::string_view rest(text.data(), static_cast<std::size_t>(size));
  const std::size_t bracket = rest.rfind(')');
  if (bracket == std::string_view::npos) return std::nullopt;
  rest.remove_prefix(bracket + 1);
  for (int field = 3; field <= 22; ++field) {
    const std::size_t space = rest.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(space + 1);
  }
  std::uint64_t ticks = 0;
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), ticks);
  if (parsed.ec != std::errc{}) return std::nullopt;
  return ticks;
}

bool PageOwner::matches(const Header& header) const {
  if (pid == 0) return true;
  const auto ticks = start_ticks_of(pid);
  return !ticks || *ticks == header.start_ticks;
}

PageOwner owner_of(int fd) {
  struct flock query = whole_file(F_WRLCK);
  if (::fcntl(fd, F_GETLK, &query) != 0 || query.l_type == F_UNLCK) return {};
  // The kernel gives 0 or -1 for a process that this pid namespace cannot see.
  return {.is_running = true, .pid = static_cast<std::uint32_t>(std::max(query.l_pid, 0))};
}

Result<PageFile> make_page_file(const fs::path& folder, bool is_shared) {
  PageFile file;
  file.folder = ZTCP_TRY(open_folder(folder, is_shared));
  const auto pid = static_cast<std::uint32_t>(::getpid());
  const std::string stem = fmt::format("{}-{}", pid, start_ticks_of(pid).value_or(0));
  // A second copy of the library in this process has a page of its own.
  for (int copy = 0; copy < 16 && !file.fd; ++copy) {
    file.name = copy == 0 ? stem : fmt::format("{}-{}", stem, copy);
    file.name += kPageSuffix;
    file.temporary_name = "." + file.name;
    if (exists(file.folder.get(), file.name)) continue;
    file.fd = Descriptor(::openat(file.folder.get(), file.temporary_name.c_str(),
                                  O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.fd && errno != EEXIST) return fail_errno("open");
  }
  if (!file.fd) return fail(Errc::kSystem, "open", EEXIST);
  if (const Status ready = lock_and_map(file); !ready) {
    ::unlinkat(file.folder.get(), file.temporary_name.c_str(), 0);
    return tl::unexpected(ready.error());
  }
  return file;
}

Status publish_page_file(const PageFile& file) {
  if (::renameat(file.folder.get(), file.temporary_name.c_str(), file.folder.get(),
                 file.name.c_str()) == 0)
    return {};
  const int why = errno;
  ::unlinkat(file.folder.get(), file.temporary_name.c_str(), 0);
  return fail(Errc::kSystem, "rename", why);
}

void unmap_page(PageContent* content) { ::munmap(content, kPageBytes); }

void remove_dead_pages(const fs::path& folder, std::int64_t now_s) {
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return;
  // To open and close a page of this process would give its lock away.
  const std::string own = fmt::format("{}-", ::getpid());
  std::vector<DeadPage> dead;
  for (const std::string& name : names_in(fd.get())) {
    if (name.starts_with(own) || name.starts_with("." + own)) continue;
    auto page = dead_page(fd.get(), name);
    if (!page) continue;
    // A temporary file is unlocked for an instant only.
    if (name.starts_with('.') && page->updated_s > now_s - 60) continue;
    if (name.starts_with('.')) page->updated_s = 0;
    dead.push_back(std::move(*page));
  }
  std::sort(dead.begin(), dead.end(),
            [](const DeadPage& a, const DeadPage& b) { return a.updated_s > b.updated_s; });
  for (std::size_t i = 0; i < dead.size(); ++i)
    if (i >= kMaxDeadPages || dead[i].updated_s < now_s - kMaxDeadSeconds)
      ::unlinkat(fd.get(), dead[i].name.c_str(), 0);
}

}  // namespace ztcp::stats
