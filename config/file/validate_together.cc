// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks values across NICs: some must differ, and some must be equal.
#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "config/file/fields.h"
#include "config/file/parse_state.h"
#include "config/mesh.h"

namespace ztcp::config {
namespace {

// Reports values that two NICs share; text_of() returns empty for "none".
template <class TextOf>
void validate_unique(ParseState& state, std::string_view key, std::string_view why,
                     TextOf&& text_of) {
  std::map<std::string, std::size_t> first;
  for (std::size_t i = 0; i < state.fabric.nics.size(); ++i) {
    if (!state.has(nic_key(i, key))) continue;
    const std::string text = text_of(state.fabric.nics[i]);
    if (text.empty()) continue;
    const auto [it, inserted] = first.emplace(text, i);
    if (inserted) continue;
    const Position& earlier = state.places.find(nic_key(it->second, key))->second;
    state.find_fault(nic_key(i, key),
                     fmt::format("nic[{}].{} = \"{}\" appears already in line {}: {}", i, key, text,
                                 earlier.line, why),
                     "give each NIC its own");
  }
}

void validate_duplicates(ParseState& state) {
  validate_unique(state, "name", "device names are unique",
                  [](const Nic& nic) { return nic.name; });
  // Several RDMA devices may be negotiated through one address.
  validate_unique(state, "address", "addresses are unique", [](const Nic& nic) {
    if (nic.driver == NicDriver::kVerbs || nic.address == kAutoAddress) return std::string();
    const IpAddress own = nic.address.address;
    return to_string(own) + (own.is_link_local_v6() ? "%" + nic.interface : std::string());
  });
  validate_unique(state, "mac", "MAC addresses are unique",
                  [](const Nic& nic) { return to_string(nic.mac); });
  validate_unique(state, "pci", "a NIC is one device", [](const Nic& nic) { return nic.pci; });
  validate_unique(state, "tap_interface", "an interface serves one device",
                  [](const Nic& nic) { return nic.tap_interface; });
  validate_unique(state, "interface", "an interface serves one device",
                  [](const Nic& nic) { return nic.interface; });
  validate_unique(state, "device", "a port of an RDMA device is one device; set device_port",
                  [](const Nic& nic) {
                    return nic.device.empty()
                               ? std::string()
                               : fmt::format("{} port {}", nic.device, nic.device_port);
                  });
  // The two ends of one memif are one server and one client; equal roles would collide.
  validate_unique(state, "memif_socket", "one socket, id and role is one interface; set memif_id",
                  [](const Nic& nic) {
                    return nic.memif_socket.empty() || nic.memif_role == MemifRole::kMesh
                               ? std::string()
                               : fmt::format("{} id {} {}", nic.memif_socket, nic.memif_id,
                                             name_of(nic.memif_role));
                  });
}

// Merged devices and NICs must have different names.
void validate_merged(ParseState& state) {
  constexpr std::ptrdiff_t kMost = 8;
  const auto& nics = state.fabric.nics;
  for (std::size_t i = 0; i < nics.size(); ++i) {
    const std::string& word = nics[i].merge;
    if (word.empty() || !state.has(nic_key(i, "merge"))) continue;
    const auto same = std::find_if(nics.begin(), nics.end(), [&](const Nic& other) {
      return other.merge.empty() && other.name == word;
    });
    if (same != nics.end())
      state.find_fault(nic_key(i, "merge"),
                       fmt::format("merge = \"{}\" is the name of an unmerged NIC", word),
                       "give the merged device a name of its own");
    const auto with_it = std::count_if(nics.begin(), nics.end(),
                                       [&](const Nic& other) { return other.merge == word; });
    if (nics[i].driver == NicDriver::kSocket && with_it == 1)
      state.find_fault(nic_key(i, "merge"),
                       fmt::format("merge = \"{}\" is set for this interface only", word),
                       "write it for the NICs to merge it with, too, or remove it");
    if (nics[i].driver == NicDriver::kSocket && nics[i].nccl_devices != 0)
      state.find_fault(
          nic_key(i, "nccl_devices"),
          fmt::format("nccl_devices = {}, but nic \"{}\" is exposed to NCCL as a part of "
                      "\"{}\"",
                      nics[i].nccl_devices, nics[i].name, word),
          "remove nccl_devices, or merge");
    const auto earlier = std::count_if(nics.begin(), nics.begin() + static_cast<std::ptrdiff_t>(i),
                                       [&](const Nic& other) { return other.merge == word; });
    if (earlier == kMost)
      state.find_fault(nic_key(i, "merge"),
                       fmt::format("merge = \"{}\" is set for more than {} NICs", word, kMost),
                       "merge fewer");
  }
}

// A queue's memory has two ends: queues that only one side has would have no receiver.
void validate_queues(ParseState& state, std::size_t index) {
  const Nic& nic = state.fabric.nics[index];
  if (is_dpdk_nic(nic.driver)) return;
  if (nic.queues == kAutoQueues)
    return state.find_fault(
        nic_key(index, "queues"),
        fmt::format("queues = \"auto\", but nic \"{}\" is not on PCI", nic.name),
        "write a number, the same for all NICs of a mesh, or remove queues");
  if (nic.driver == NicDriver::kXdp) return;
  if (nic.memif_role != MemifRole::kMesh && nic.queues != 1)
    return state.find_fault(
        nic_key(index, "queues"),
        fmt::format("queues = {}, but nic \"{}\" is in no mesh", nic.queues, nic.name),
        "remove queues, or write memif_role = \"mesh\"");
  for (const MeshPeer& peer : mesh_peers(state.fabric, nic)) {
    if (peer.nic > &nic || peer.nic->queues == nic.queues)
      continue;  // Reported once, for the later one.
    return state.find_fault(nic_key(index, "queues"),
                            fmt::format("nic \"{}\" has {} queues and \"{}\" of the same mesh {}",
                                        nic.name, nic.queues, peer.nic->name, peer.nic->queues),
                            "write the same queues for all NICs of a mesh");
  }
}

// A mesh of one NIC is never intended.
void validate_meshes(ParseState& state) {
  const auto& nics = state.fabric.nics;
  for (std::size_t i = 0; i < nics.size(); ++i) {
    const Nic& nic = nics[i];
    validate_queues(state, i);
    if (nic.memif_role != MemifRole::kMesh || nic.memif_socket.empty() ||
        !state.has(nic_key(i, "memif_role")) || !mesh_peers(state.fabric, nic).empty())
      continue;
    state.find_fault(nic_key(i, "memif_role"),
                     fmt::format("nic \"{}\" is alone in the mesh of memif_socket = \"{}\"",
                                 nic.name, nic.memif_socket),
                     "give all NICs of a mesh the same memif_socket and memif_role = \"mesh\"");
  }
}

}  // namespace

void validate_together(ParseState& state) {
  validate_duplicates(state);
  validate_merged(state);
  validate_meshes(state);
}

}  // namespace ztcp::config
