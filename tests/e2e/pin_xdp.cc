// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Attaches the XDP program to an interface and pins it, as set-up does on a host with NICs on PCI.
//
//   pin_xdp INTERFACE ADDRESS LISTEN_PORT FIRST_PORT LAST_PORT PROCESSES
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "config/nic_interface.h"
#include "core/address.h"
#include "core/netlink.h"
#include "transport/link/xdp/attachment.h"
#include "transport/link/xdp/interface.h"

int main(int count, char** words) {
  using namespace ztcp;
  if (count != 7) return 2;
  const auto port = [&](int at) { return static_cast<std::uint16_t>(std::atoi(words[at])); };
  const std::string interface = words[1];
  const auto address = parse_ip(words[2]);
  auto kernel = netlink::Session::open();
  if (!kernel || !address) return 1;
  const auto facts = link::xdp::read_interface(*kernel, interface);
  if (!facts || !*facts) return 1;
  const std::string folder = config::xdp_pin_folder(interface);
  std::filesystem::create_directory(folder);
  const Status pinned =
      link::xdp::attach_and_pin(**facts, {*address, port(3), port(4), port(5), port(6)}, folder);
  if (!pinned) std::printf("%s: errno %d\n", pinned.error().where, pinned.error().sys_errno);
  return pinned ? 0 : 1;
}
