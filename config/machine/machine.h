// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The machine as the check and the tools read it: files of the kernel and of the system. One
// interface, so that planning, showing, executing and checking set-up read the same facts, and
// tests can provide a machine. Paths are absolute, as on the machine itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

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
  std::uint64_t size_bytes = 0;      // For files; the kernel's virtual files say 0.
  std::int64_t modified_unix_s = 0;  // For a file's content.
};

class Machine {
 public:
  virtual ~Machine() = default;
  virtual FileFacts facts(const std::string& path) = 0;         // Does not follow links.
  virtual FileFacts facts_behind(const std::string& path) = 0;  // Follows links.
  // The text of a file, following links, or the error.
  virtual Result<std::string> read_value(const std::string& path) = 0;
  virtual std::optional<std::string> link_target(const std::string& path) = 0;
  virtual std::vector<std::string> list(const std::string& folder) = 0;  // Sorted names.
  // R_OK, W_OK, X_OK: for the effective user, as open() judges.
  virtual bool may_access(const std::string& path, int mode) = 0;
  // CPUs that this process may run on now, ascending: the union of the calling thread's and the
  // main thread's. NCCL pins the one for a while, OpenMP the other; in a process with few CPUs no
  // thread may use others. Offline CPUs are left out.
  virtual std::vector<std::uint32_t> allowed_cpus() = 0;
};

}  // namespace ztcp::config
