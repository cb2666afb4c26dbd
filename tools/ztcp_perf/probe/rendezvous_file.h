// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The file in which rank 0 tells the others its address and the run's secret, on a disk that all
// hosts share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ztcp::perf::probe {

struct Place {
  std::string host;
  std::uint16_t port = 0;
  std::string secret;
};

// Exists as long as this object, readable by its owner alone.
class RendezvousFile {
 public:
  // Replaces an earlier run's file. Throws Failure if it can't be written.
  RendezvousFile(std::string path, const Place& place);
  ~RendezvousFile();
  RendezvousFile(const RendezvousFile&) = delete;
  RendezvousFile& operator=(const RendezvousFile&) = delete;

 private:
  std::string path_;
};

// Absent: there is none yet. Throws Failure if others than this user may write to it.
std::optional<Place> read_rendezvous_file(const std::string& path);

}  // namespace ztcp::perf::probe
