// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Input of the rules: one process in two looks, and the names that findings use. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/ztcp_stat/look/window.h"
#include "tools/ztcp_stat/why/finding.h"

namespace ztcp::stat {

struct Case {
  const Page& page;
  Window window;
  std::int64_t now_monotonic_ns;
  std::int64_t now_realtime_ns;

  const stats::Snapshot& now() const { return page.snapshot; }
  bool is_running() const { return page.snapshot.process.is_running; }
};
using Cases = std::span<const Case>;

// "process 4242 (rank 3 of 16, python)".
std::string process_name(const stats::Process& process);
// "ztcp0 of process 4242".
std::string device_name(const Case& one, const stats::Device& device);
// "gpu-07 (10.0.0.7)": host and address of the peer, or the address alone.
std::string peer_name(const stats::Connection& connection);
// The host of a peer; without one its address without the port.
std::string peer_host(const stats::Connection& connection);
// The address without the port: "10.0.0.7" of "10.0.0.7:4242", "fe80::1" of "[fe80::1]:4242".
std::string without_port(const std::string& endpoint);
// Null: the page has no such device.
const stats::Device* device_of(const stats::Snapshot& snapshot, std::uint32_t index);
// Whether a rail of RDMA has failed and is not back.
bool is_lost_rail(const stats::Flow& flow);  // rails.cc
// The middle one; 0 of none.
double median(std::vector<double> values);

// Each adds the findings of its group.
void find_stopped(const Case& one, Findings& findings);      // stopped.cc
void find_busy_host(const Case& one, Findings& findings);    // busy_host.cc
void find_link_faults(const Case& one, Findings& findings);  // links.cc
void find_frame_faults(const Case& one, Findings& findings);
void find_strangers(const Case& one, Findings& findings);  // strangers.cc
void find_broken(const Case& one, Findings& findings);
void find_lost_rails(const Case& one, Findings& findings);     // rails.cc
void find_losses(const Case& one, Findings& findings);         // losses.cc
void find_small_packets(const Case& one, Findings& findings);  // packets.cc
void find_zero_windows(const Case& one, Findings& findings);   // waits.cc
void find_waits(const Case& one, Findings& findings);
void find_slow_devices(Cases cases, Findings& findings);  // outliers.cc
void find_slow_peers(Cases cases, Findings& findings);
void find_crashes(const Look& look, Findings& findings);  // crashes.cc
void find_damaged_pages(const Look& look, Findings& findings);

}  // namespace ztcp::stat
