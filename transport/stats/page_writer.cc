// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/page_writer.h"

#include <cerrno>
#include <charconv>
#include <ctime>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace ztcp::stats {
namespace {

// Entries for peers beyond the table, one for each way.
constexpr std::size_t kOwnLatencies = kMaxLatencies - 2;

std::int64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::string small_file(const char* path) {
  const Descriptor fd(::open(path, O_RDONLY | O_CLOEXEC));
  std::array<char, 2048> text;
  const ssize_t size = fd ? ::read(fd.get(), text.data(), text.size()) : 0;
  return {text.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

template <class Number, class Value>
void store(Number& to, Value value) {
  std::atomic_ref(to).store(static_cast<Number>(value), std::memory_order_relaxed);
}

}  // namespace

Result<std::shared_ptr<Page>> Page::create(const std::filesystem::path& folder, bool is_shared,
                                           const PageIdentity& identity) {
  PageFile file = ZTCP_TRY(make_page_file(folder, is_shared));
  const std::shared_ptr<Page> page(new Page(std::move(file)));
  page->write_header(identity);
  if (const Status published = publish_page_file(page->file_); !published) {
    page->has_ended_ = true;
    return tl::unexpected(published.error());
  }
  remove_dead_pages(folder, clock_ns(CLOCK_REALTIME) / 1'000'000'000);
  return page;
}

Page::Page(PageFile file) : file_(std::move(file)), content_(*file_.content) {}

// A forked child keeps nothing of the page: neither mapping nor lock, and the file is the parent's.
Page::~Page() {
  if (!is_own()) return;
  end_cleanly();
  unmap_page(file_.content);
}

void Page::end_cleanly() {
  if (!is_own() || has_ended_.exchange(true)) return;
  store(content_.header.has_ended_cleanly, 1);
  ::unlinkat(file_.folder.get(), file_.name.c_str(), 0);
}

void Page::write_header(const PageIdentity& identity) {
  Header& to = content_.header;
  to.layout_version = kLayoutVersion;
  to.page_bytes = kPageBytes;
  to.counter_names = counter_names_hash();
  to.pid = static_cast<std::uint32_t>(::getpid());
  to.start_ticks = start_ticks_of(to.pid).value_or(0);
  struct stat space {};
  if (::stat("/proc/self/ns/pid", &space) == 0) to.pid_namespace = space.st_ino;
  to.rank = identity.rank;
  to.ranks = identity.ranks;
  to.local_rank = identity.local_rank;
  to.config_hash = identity.config_hash;
  to.version.set(identity.version);
  to.config_path.set(identity.config_path);
  std::array<char, 65> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) to.host.set(host.data());
  to.command.set(first_line(small_file("/proc/self/comm")));
  to.started_realtime_ns = clock_ns(CLOCK_REALTIME);
  touch(clock_ns(CLOCK_MONOTONIC));
  to.magic = kMagic;
}

void Page::touch(std::int64_t monotonic_ns) {
  Header& to = content_.header;
  store(to.updated_realtime_ns, clock_ns(CLOCK_REALTIME));
  store(to.updated_monotonic_ns, monotonic_ns);
}

std::int64_t Page::realtime_ns() { return clock_ns(CLOCK_REALTIME); }

void Page::add_device(DeviceRecord record) {
  const std::scoped_lock lock(devices_mutex_);
  if (devices_.size() == kMaxDevices) return;
  record.used = 1;
  content_.devices[devices_.size()].write(record);
  devices_.push_back(record);
}

void Page::update_device(std::uint32_t device, const std::function<void(DeviceRecord&)>& change) {
  const std::scoped_lock lock(devices_mutex_);
  if (device >= devices_.size()) return;
  change(devices_[device]);
  content_.devices[device].write(devices_[device]);
}

std::optional<std::uint32_t> Page::device_named(std::string_view name) const {
  decltype(DeviceRecord::name) wanted;  // Cut like the names in the table.
  wanted.set(name);
  const std::scoped_lock lock(devices_mutex_);
  for (std::size_t i = 0; i < devices_.size(); ++i)
    if (devices_[i].name.chars == wanted.chars) return static_cast<std::uint32_t>(i);
  return std::nullopt;
}

LatencyEntry* Page::latencies(std::uint32_t device, Way way, std::string_view peer) {
  const std::scoped_lock lock(latencies_mutex_);
  LatencyRecord wanted{};
  wanted.used = 1;
  wanted.device = device;
  wanted.way = static_cast<std::uint32_t>(way);
  wanted.peer.set(peer);
  for (std::size_t i = 0; i < latencies_used_; ++i)
    if (std::memcmp(content_.latencies[i].record.words.data(), &wanted,
                    offsetof(LatencyRecord, host)) == 0)
      return &content_.latencies[i];
  if (latencies_used_ < kOwnLatencies) {
    LatencyEntry& entry = content_.latencies[latencies_used_++];
    entry.record.write(wanted);
    return &entry;
  }
  LatencyEntry& others = content_.latencies[kOwnLatencies + static_cast<std::size_t>(way)];
  wanted.peer.set("");
  if (others.record.sequence == 0) others.record.write(wanted);
  return &others;
}

void Page::name_host(LatencyEntry& latencies, std::string_view host) {
  const std::scoped_lock lock(latencies_mutex_);
  LatencyRecord record;
  std::memcpy(&record, latencies.record.words.data(), sizeof(record));
  if (record.peer.chars.front() == '\0') return;  // Those of several peers.
  record.host.set(host);
  latencies.record.write(record);
}

}  // namespace ztcp::stats
