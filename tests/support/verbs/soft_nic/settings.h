// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The environment variables of this process's software NICs:
//
//   SOFT_NIC_FOLDER   where the NICs of all processes find each other; unset: there are no devices
//   SOFT_NIC_DEVICES  how many (1): soft0, soft1 ...
//   SOFT_NIC_FAULTS   faults to inject, comma-separated:
//     seed=N          of the random draws (1)
//     fail=S@N        message N of this process ends with status S (ibv_wc_status)
//     down=N          at message N, sent or received, its device's port goes down,
//     up=MS           and comes up again so many milliseconds later (never)
//     fatal=N         at message N, sent or received, its device is lost
//     drop=N          one packet in N is lost, on average; it is sent again after the timeout
//     rnr=N           one immediate in N finds no receive, though some are posted
//     delay=U@N       one packet in N holds its queue pair back for up to U microseconds
//     refuse=E@N      registration N is refused with errno E
//     hold            writes to GPU memory become visible at the next read over the NIC
//     no-dmabuf       the driver does not support DMA-BUF
//     peer-memory     GPU memory is registered by its address, as with nvidia_peermem
//
// Messages and packets are counted over all queue pairs of the process. An unknown word ends the
// process, because a test that injects no fault proves nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ztcp::soft_nic {

// `value` at the `at`-th time, or once in `at` times; 0: never.
struct Fault {
  std::uint64_t value = 0;
  std::uint64_t at = 0;
};

struct Faults {
  std::uint64_t seed = 1;
  Fault fail;
  Fault refuse;
  Fault delay;
  std::uint64_t down_at = 0;
  std::uint64_t up_after_ms = 0;  // 0: never.
  std::uint64_t fatal_at = 0;
  std::uint64_t drop_of = 0;
  std::uint64_t rnr_of = 0;
  bool holds_gpu_writes = false;
  bool knows_dmabuf = true;
  bool has_peer_memory = false;
};

struct Settings {
  std::string folder;
  std::uint32_t devices = 1;
  Faults faults;
};

Faults parse_faults(std::string_view text);
Settings read_settings();

}  // namespace ztcp::soft_nic
