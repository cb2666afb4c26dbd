// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What the environment says of this process's software NICs:
//
//   SOFT_NIC_FOLDER   where the NICs of all processes find each other; unset: no devices are here
//   SOFT_NIC_DEVICES  how many (1): soft0, soft1 ...
//   SOFT_NIC_FAULTS   what goes wrong, comma-separated:
//     seed=N          of what is drawn (1)
//     fail=S@N        message N of this process ends with status S (ibv_wc_status)
//     down=N          at message N, sent or received, its device's port goes down,
//     up=MS           and comes up again so many milliseconds later (never)
//     fatal=N         at message N, sent or received, its device is lost
//     drop=N          of N packets one is lost, on average; it is sent again after the timeout
//     rnr=N           of N immediates one finds no receive, though there are some
//     delay=U@N       of N packets one is held back for up to U microseconds, with its queue pair
//     refuse=E@N      registration N is refused with errno E
//     hold            GPU memory shows what was written once a read has gone over the NIC
//     no-dmabuf       the driver knows no DMA-BUF
//     peer-memory     GPU memory is registered by its address, as with nvidia_peermem
//
// Messages, and packets, are counted over all queue pairs of the process. A word that is none of
// these ends the process: a test that injects nothing proves nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ztcp::soft_nic {

// `value` at the `at`-th time, or of so many times; 0: never.
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
