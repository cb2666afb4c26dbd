// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One process per NIC. A claim is a record lock (fcntl F_SETLK) on a file in the run directory:
// the kernel drops it with its process however that ends, a forked child doesn't inherit it, and
// the process that holds it can be named. Record locks belong to the process, not to the
// descriptor, and closing any descriptor of the file drops them; so a file claimed here is never
// opened a second time by this process.
//
// The lock keeps processes of ztcp apart. Against anyone else stands EBUSY of the vfio group.
#pragma once

#include <string>
#include <sys/types.h>

#include "transport/core/result.h"
#include "transport/link/fd.h"

namespace ztcp::link {

// Who has it, when it can't be had.
struct ClaimHolder {
  pid_t pid = 0;        // 0: unknown, another container's process.
  std::string command;  // "python3"; empty when unknown.
};
// "process 4711 (python3)", or that it is unknown and why that may be.
std::string to_string(const ClaimHolder& holder);

class Claim {
 public:
  // `name` is the NIC's, or its IOMMU group's: "0000:3b:00.0", "group-17", "memif-ztcp0". Logs
  // nothing: the caller may try the next NIC. kBusy fills `holder`. The folder is made if need be.
  static Result<Claim> take(const std::string& run_dir, const std::string& name,
                            ClaimHolder* holder = nullptr);
  Claim(Claim&&) = default;
  Claim& operator=(Claim&& other) noexcept;
  ~Claim();

 private:
  Claim(Fd fd, dev_t device, ino_t inode);
  Fd fd_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace ztcp::link
