// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The machine as the check and the tools read it: files of the kernel's and of the system's. One
// interface, so that what set-up plans, shows, does and checks is judged by the same eyes, and so
// that tests bring a machine along. Paths are absolute, as on the machine itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/core/result.h"

namespace ztcp::config {

struct Ownership {
  std::uint32_t mode = 0644;
  std::uint32_t user = 0;
  std::uint32_t group = 0;
  friend bool operator==(const Ownership&, const Ownership&) = default;
};

enum class FileKind : std::uint8_t { kAbsent, kFile, kFolder, kLink, kSocket, kPipe, kOther };

struct FileFacts {
  FileKind kind = FileKind::kAbsent;
  Ownership ownership;
  std::uint64_t size_bytes = 0;      // Of a file; those that the kernel makes up say 0.
  std::int64_t modified_unix_s = 0;  // Of a file's content.
};

class Machine {
 public:
  virtual ~Machine() = default;
  virtual FileFacts facts(const std::string& path) = 0;         // Of a link itself.
  virtual FileFacts facts_behind(const std::string& path) = 0;  // Of what a link leads to.
  // The text of a file, followed wherever it leads, or why it can't be read.
  virtual Result<std::string> read_value(const std::string& path) = 0;
  virtual std::optional<std::string> link_target(const std::string& path) = 0;
  virtual std::vector<std::string> list(const std::string& folder) = 0;  // Sorted names.
  // R_OK, W_OK, X_OK: by the effective user, as open() would judge.
  virtual bool may_access(const std::string& path, int mode) = 0;
  // CPUs that this process may run on now, ascending: those of the calling thread and those of the
  // main thread. NCCL pins the one for a while, OpenMP the other; a process that was given few CPUs
  // has no thread on others. CPUs that are offline are none of them.
  virtual std::vector<std::uint32_t> allowed_cpus() = 0;
};

}  // namespace ztcp::config
