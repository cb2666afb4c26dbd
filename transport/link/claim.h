// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One process per NIC. A claim is a record lock (fcntl F_SETLK) on a file in the run directory: the
// kernel drops it when its process ends in any way, a forked child doesn't inherit it, and its
// holder can be named. Record locks belong to the process, not to the descriptor, and closing any
// descriptor of the file drops them; so this process never opens a claimed file a second time.
//
// vfio opens an IOMMU group for one process, so NICs of one group share a lock file, and its holder
// may claim each of them.
//
// The lock keeps ztcp's processes apart. Other programs are kept out by vfio: EBUSY for the group.
#pragma once

#include <string>
#include <sys/types.h>

#include "core/result.h"

namespace ztcp::link {

// The process that holds a claim.
struct ClaimHolder {
  pid_t pid = 0;        // 0: unknown, another container's process.
  std::string command;  // "python3"; empty when unknown.
};
// "process 4711 (python3)", or that it is unknown, with a likely reason.
std::string to_string(const ClaimHolder& holder);

// The lock file of a NIC in `run_dir`: "group-17.lock" where it has an IOMMU group, else by its
// name ("0000:3b:00.0", "software-ztcp0").
std::string lock_path(const std::string& run_dir, const std::string& nic, const std::string& group);

// Why take() failed with an error other than kBusy, and the mending step.
std::string describe_failed_claim(const Error& error, const std::string& lock_path);

class Claim {
 public:
  // `group`: the number of the NIC's IOMMU group, or vfio's stand-in for one; empty: none. Logs
  // nothing: the caller may try the next NIC. kBusy fills `holder`. Makes the folder if needed.
  static Result<Claim> take(const std::string& run_dir, const std::string& nic,
                            const std::string& group = {}, ClaimHolder* holder = nullptr);
  Claim(Claim&& other) noexcept;
  Claim& operator=(Claim&& other) noexcept;
  ~Claim();

 private:
  Claim(dev_t device, ino_t inode, std::string nic);
  dev_t device_;
  ino_t inode_;
  std::string nic_;  // Empty: moved from.
};

}  // namespace ztcp::link
