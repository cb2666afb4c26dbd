// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/page_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <string_view>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <system_error>
#include <time.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "core/descriptor.h"
#include "transport/stats/page_decoder.h"
#include "transport/stats/page_file.h"
#include "transport/stats/process_facts.h"

namespace ztcp::stats {
namespace {

namespace fs = std::filesystem;

// More copies than three are needed only while the owner writes an entry. Its writes take less than
// a microsecond, twice a second.
constexpr int kMaxCopies = 8;
constexpr timespec kPause{0, 200'000};
constexpr long kTmpfs = 0x01021994;
constexpr long kRamfs = 0x858458f6;
constexpr std::uint64_t kSmallestSharedMemory = std::uint64_t{1} << 30;

using Buffer = std::unique_ptr<PageContent>;

// Copies by system calls: the file may shrink at any time, and a mapping of it would then raise
// SIGBUS.
Status copy_page(int fd, PageContent& to) {
  auto* bytes = reinterpret_cast<char*>(&to);
  std::size_t done = 0;
  while (done < kPageBytes) {
    const ssize_t size = ::pread(fd, bytes + done, kPageBytes - done, static_cast<off_t>(done));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno("read");
    if (size == 0) break;
    done += static_cast<std::size_t>(size);
  }
  ZTCP_CHECK(check_header({reinterpret_cast<const std::byte*>(bytes), done}));
  if (done < kPageBytes) return fail(Errc::kProtocol, "a truncated statistics page");
  return {};
}

Result<Descriptor> open_page(const fs::path& file) {
  // Without waiting for the writer of a pipe, and without an effect on a terminal.
  Descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return fail_errno("open");
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return fail_errno("fstat");
  if (!S_ISREG(facts.st_mode)) return fail(Errc::kProtocol, "not a statistics page of ztcp");
  return fd;
}

bool is_in_memory(const std::string& folder) {
  struct statfs facts {};
  return ::statfs(folder.c_str(), &facts) == 0 &&
         (facts.f_type == kTmpfs || facts.f_type == kRamfs);
}

// Shared memory that is small belongs to a container, and NCCL needs it.
bool has_large_shared_memory() {
  struct statfs facts {};
  return ::statfs("/dev/shm", &facts) == 0 && facts.f_type == kTmpfs &&
         static_cast<std::uint64_t>(facts.f_blocks) * static_cast<std::uint64_t>(facts.f_bsize) >=
             kSmallestSharedMemory;
}

fs::path shared_memory_folder() { return fmt::format("/dev/shm/ztcp-{}", ::geteuid()); }
fs::path temporary_folder() { return fmt::format("/tmp/ztcp-{}", ::geteuid()); }

const char* runtime_folder() {
  const char* folder = std::getenv("XDG_RUNTIME_DIR");
  return folder != nullptr && folder[0] == '/' ? folder : nullptr;
}

}  // namespace

fs::path page_folder(const std::string& run_dir) {
  // On a disk, a lane that writes into its page would wait for the file system's writeback.
  if (!run_dir.empty() && is_in_memory(run_dir)) return fs::path(run_dir) / "stats";
  if (const char* folder = runtime_folder(); folder != nullptr && ::access(folder, W_OK) == 0)
    return fs::path(folder) / "ztcp";
  return has_large_shared_memory() ? shared_memory_folder() : temporary_folder();
}

std::vector<fs::path> page_folders(const std::string& run_dir) {
  std::vector<fs::path> folders;
  if (!run_dir.empty()) folders.push_back(fs::path(run_dir) / "stats");
  if (const char* folder = runtime_folder()) folders.push_back(fs::path(folder) / "ztcp");
  folders.emplace_back(fmt::format("/run/user/{}/ztcp", ::geteuid()));
  folders.push_back(shared_memory_folder());
  folders.push_back(temporary_folder());
  std::vector<fs::path> once;
  for (fs::path& folder : folders)
    if (std::find(once.begin(), once.end(), folder) == once.end())
      once.push_back(std::move(folder));
  return once;
}

Result<std::vector<fs::path>> find_pages(const fs::path& folder) {
  std::vector<fs::path> pages;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error == std::errc::no_such_file_or_directory) return pages;
  if (error) return fail(Errc::kSystem, "opendir", error.value());
  for (const fs::directory_iterator end; entries != end && pages.size() < kMaxPagesInFolder;) {
    const std::string name = entries->path().filename().string();
    if (name.ends_with(kPageSuffix) && !name.starts_with('.')) pages.push_back(entries->path());
    entries.increment(error);
    if (error) return fail(Errc::kSystem, "readdir", error.value());
  }
  std::sort(pages.begin(), pages.end());
  return pages;
}

Result<Snapshot> read_page(const fs::path& file) {
  const Descriptor fd = ZTCP_TRY(open_page(file));
  // Asked first: an owner that ends afterwards has written nothing since.
  const PageOwner owner = owner_of(fd.get());
  Buffer before = std::make_unique<PageContent>();
  Buffer content = std::make_unique<PageContent>();
  Buffer after = std::make_unique<PageContent>();
  ZTCP_CHECK(copy_page(fd.get(), *before));
  ZTCP_CHECK(copy_page(fd.get(), *content));
  ZTCP_CHECK(copy_page(fd.get(), *after));
  Decoded decoded = decode_page({before.get(), content.get(), after.get()}, !owner.is_running);
  for (int copies = 3; decoded.torn > 0 && copies < kMaxCopies; ++copies) {
    ::nanosleep(&kPause, nullptr);
    std::swap(before, content);
    std::swap(content, after);
    ZTCP_CHECK(copy_page(fd.get(), *after));
    decoded = decode_page({before.get(), content.get(), after.get()}, !owner.is_running);
  }
  Process& process = decoded.snapshot.process;
  process.is_running = owner.is_running && owner.matches(content->header);
  if (process.is_running && owner.pid != 0) {
    process.pid = owner.pid;
    const ProcessFacts facts = process_facts(owner.pid);
    process.cpu_throttled_ns = facts.cpu_throttled_ns;
    process.cpu_stolen_ns = facts.cpu_stolen_ns;
    process.descriptors_open = facts.descriptors_open;
    process.descriptors_limit = facts.descriptors_limit;
  }
  return std::move(decoded.snapshot);
}

}  // namespace ztcp::stats
