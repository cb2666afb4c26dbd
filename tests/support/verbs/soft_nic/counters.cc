// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/verbs/soft_nic/counters.h"

#include <cstdio>
#include <fstream>
#include <unistd.h>

#include <fmt/format.h>

namespace ztcp::soft_nic {
namespace {

constexpr std::array<const char*, static_cast<std::size_t>(Count::kEnd)> kNames{
    "doorbells",
    "messages",
    "writes",
    "reads",
    "sent_bytes",
    "received_bytes",
    "gpu_read_bytes",
    "gpu_written_bytes",
    "held_writes",
    "registrations",
    "dmabuf_registrations",
    "peer_memory_registrations",
    "delayed",
    "dropped",
    "not_ready",
    "sent_again",
    "failed"};

}  // namespace

void Counters::note_misuse(const std::string& what) {
  std::fprintf(stderr, "soft NIC: misused: %s\n", what.c_str());
  const std::lock_guard lock(mutex_);
  misuse_.push_back(what);
}

void Counters::write_to(const std::string& folder) const {
  const std::lock_guard lock(mutex_);
  std::ofstream file(fmt::format("{}/counted.{}.json", folder, getpid()));
  file << "{";
  for (std::size_t i = 0; i < kNames.size(); ++i)
    file << fmt::format("\"{}\": {}, ", kNames[i], counts_[i].load(std::memory_order_relaxed));
  for (std::size_t i = 0; i < sent_bytes_.size(); ++i)
    if (const std::uint64_t bytes = sent_bytes_[i].load(std::memory_order_relaxed); bytes > 0)
      file << fmt::format("\"sent_bytes_of_soft{}\": {}, ", i, bytes);
  file << "\"misuse\": [";
  for (std::size_t i = 0; i < misuse_.size(); ++i)
    file << (i == 0 ? "" : ", ") << '"' << misuse_[i] << '"';
  file << "]}\n";
}

}  // namespace ztcp::soft_nic
