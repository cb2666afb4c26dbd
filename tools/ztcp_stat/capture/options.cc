// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <CLI/CLI.hpp>

#include "tools/ztcp_stat/capture/capture.h"
#include "transport/stats/capture_wire.h"

namespace ztcp::capture {

CLI::App* add_capture_command(CLI::App& app, CaptureOptions& options) {
  CLI::App* const command = app.add_subcommand(
      "capture", "Write the frames of a running process's userspace TCP to a pcapng file");
  command->add_option("--device", options.device,
                      "The NIC's name in the config: ztcp0; default: the only one in use");
  command->add_option("--pid", options.pid, "The process; default: the only one with that NIC")
      ->check(CLI::PositiveNumber);
  command->add_option("--filter", options.filter,
                      "Keep only frames that match, as tcpdump takes it: 'host 10.0.0.2 and arp'");
  command
      ->add_option("--headers", options.headers_bytes,
                   "Bytes kept of each frame, default 256; 0: whole frames")
      ->check(CLI::Range(0U, 262144U));
  command
      ->add_option("--buffer", options.buffer_mib,
                   "MiB of shared memory for each lane of the NIC, default 16")
      ->check(CLI::Range(1U, stats::kMostRingBytes >> 20U));
  command->add_option("--config", options.config, "ztcp.conf of the job; default: ZTCP_CONFIG");
  command->add_option("-o,--output", options.output, "The file; - is stdout, for a pipe")
      ->required();
  return command;
}

}  // namespace ztcp::capture
