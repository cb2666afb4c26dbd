// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// This process's statistics page. Lanes take rows of its tables when they start and when they open
// a connection, and publish a record now and then: no lock, no allocation, no system call. The page
// lives as long as anybody holds it, and its file until then, or until this process dies.
//
// take() and latencies() may be called by any thread; a row belongs to one thread at a time. In a
// forked child the page is not mapped, and nothing may be called but destructors.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>

#include "core/result.h"
#include "transport/stats/layout.h"
#include "transport/stats/page_file.h"

namespace ztcp::stats {

class Page;

// Free entries of a table.
template <std::size_t N>
class Places {
 public:
  // N: none is free.
  std::size_t take() {
    for (std::size_t word = 0; word < kWords; ++word) {
      std::uint64_t bits = taken_[word].load(std::memory_order_relaxed);
      while (~bits != 0) {
        const auto bit = static_cast<std::size_t>(std::countr_one(bits));
        if (word * 64 + bit >= N) break;
        if (taken_[word].compare_exchange_weak(bits, bits | std::uint64_t{1} << bit,
                                               std::memory_order_acquire,
                                               std::memory_order_relaxed))
          return word * 64 + bit;
      }
    }
    return N;
  }
  void release(std::size_t index) {
    taken_[index / 64].fetch_and(~(std::uint64_t{1} << index % 64), std::memory_order_release);
  }

 private:
  static constexpr std::size_t kWords = (N + 63) / 64;
  std::array<std::atomic<std::uint64_t>, kWords> taken_{};
};

// An entry of a table; empty where the page is off or the table full.
template <class Record>
class Row {
 public:
  Row() = default;
  Row(std::shared_ptr<Page> page, Entry<Record>* entry, std::size_t index)
      : page_(std::move(page)), entry_(entry), index_(index) {}
  Row(Row&& other) noexcept
      : page_(std::move(other.page_)),
        entry_(std::exchange(other.entry_, nullptr)),
        index_(other.index_) {}
  Row& operator=(Row&& other) noexcept {
    std::swap(page_, other.page_);
    std::swap(entry_, other.entry_);
    std::swap(index_, other.index_);
    return *this;
  }
  ~Row();

  explicit operator bool() const { return entry_ != nullptr; }
  std::uint32_t index() const { return static_cast<std::uint32_t>(index_); }
  void publish(Record& record) {
    record.used = 1;
    entry_->write(record);
  }

 private:
  std::shared_ptr<Page> page_;
  Entry<Record>* entry_ = nullptr;
  std::size_t index_ = 0;
};

using LaneRow = Row<LaneRecord>;
using ConnectionRow = Row<ConnectionRecord>;
using FlowRow = Row<FlowRecord>;

// Constant values of a page's header.
struct PageIdentity {
  std::string version;      // ztcp's.
  std::string config_path;  // Empty: no config.
  std::uint64_t config_hash = 0;
  int rank = -1;
  int ranks = 0;
  int local_rank = -1;
};

class Page : public std::enable_shared_from_this<Page> {
 public:
  // `is_shared`: the folder lies in run_dir, which several users may share. Removes old pages of
  // dead processes, too.
  static Result<std::shared_ptr<Page>> create(const std::filesystem::path& folder, bool is_shared,
                                              const PageIdentity& identity);
  ~Page();
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  std::string file_name() const { return file_.name; }
  // False in a forked child, which has neither mapping nor lock. Unlike in_forked_child() this also
  // works before the process's first connection.
  bool is_own() const { return ::getpid() == owner_; }

  template <class Record>
  Row<Record> take();

  // Devices are listed once and stay; their number is their place in the table.
  void add_device(DeviceRecord record);
  // Changes what is known of a listed device. Rare: it takes a lock.
  void update_device(std::uint32_t device, const std::function<void(DeviceRecord&)>& change);
  // Nothing: no such device is listed.
  std::optional<std::uint32_t> device_named(std::string_view name) const;

  // Unique in this process, from 1.
  std::uint64_t next_connection_id() {
    return next_connection_id_.fetch_add(1, std::memory_order_relaxed);
  }
  // The histograms of messages with a peer, up to the page's end; those of all other peers where
  // the table is full. Called when a connection opens.
  LatencyEntry* latencies(std::uint32_t device, Way way, std::string_view peer);
  // The peer has told its host's name. Called once for each connection.
  void name_host(LatencyEntry& latencies, std::string_view host);

  // Notes that a lane has refreshed its rows.
  void touch(std::int64_t monotonic_ns);

  static std::int64_t realtime_ns();

  // At the process's end, when threads may still run: the file goes, the mapping stays.
  void end_cleanly();

 private:
  template <class Record>
  friend class Row;

  explicit Page(PageFile file);
  void write_header(const PageIdentity& identity);
  template <class Record>
  auto& places();
  template <class Record>
  auto& entries();

  PageFile file_;
  PageContent& content_;
  const pid_t owner_ = ::getpid();
  std::atomic<bool> has_ended_{false};
  std::atomic<std::uint64_t> next_connection_id_{1};
  Places<kMaxLanes> lanes_;
  Places<kMaxConnections> connections_;
  Places<kMaxFlows> flows_;
  mutable std::mutex devices_mutex_;
  std::vector<DeviceRecord> devices_;
  std::mutex latencies_mutex_;
  std::size_t latencies_used_ = 0;
};

template <class Record>
auto& Page::places() {
  if constexpr (std::is_same_v<Record, LaneRecord>) {
    return lanes_;
  } else if constexpr (std::is_same_v<Record, ConnectionRecord>) {
    return connections_;
  } else {
    return flows_;
  }
}

template <class Record>
auto& Page::entries() {
  if constexpr (std::is_same_v<Record, LaneRecord>) {
    return content_.lanes;
  } else if constexpr (std::is_same_v<Record, ConnectionRecord>) {
    return content_.connections;
  } else {
    return content_.flows;
  }
}

template <class Record>
Row<Record> Page::take() {
  const std::size_t index = places<Record>().take();
  if (index == entries<Record>().size()) {
    if constexpr (std::is_same_v<Record, ConnectionRecord>)
      std::atomic_ref(content_.header.connections_unlisted).fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  return Row<Record>(shared_from_this(), &entries<Record>()[index], index);
}

template <class Record>
Row<Record>::~Row() {
  if (entry_ == nullptr || !page_->is_own()) return;
  entry_->write(Record{});
  page_->template places<Record>().release(index_);
}

}  // namespace ztcp::stats
