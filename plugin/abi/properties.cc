// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// getProperties of every version, and makeVDevice, which adds a device. NCCL's structure arrives
// uninitialised, so each version's filler writes every field; all build on a common filler.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

#include "plugin/abi/common.h"
#include "plugin/gpu_identity.h"
#include "plugin/guard.h"
#include "plugin/net.h"

namespace ztcp::plugin::abi {
namespace {

// NCCL borrows the strings and does not write to them, though their type would allow it.
char* borrowed(const std::string& text) { return const_cast<char*>(text.c_str()); }

int pointer_support(const DeviceProperties& d) {
  return (d.host_pointers ? NCCL_PTR_HOST : 0) | (d.cuda_pointers ? NCCL_PTR_CUDA : 0) |
         (d.dmabuf ? NCCL_PTR_DMABUF : 0);
}

template <class P>
void fill_v3(const DeviceProperties& d, P& p) {
  p.name = borrowed(d.name);
  // Without a path NCCL places the NIC at the first CPU.
  p.pciPath = d.pci_path.empty() ? nullptr : borrowed(d.pci_path);
  p.guid = d.guid;
  p.ptrSupport = pointer_support(d);
  p.speed = static_cast<int>(d.speed_mbps);
  p.port = d.port;
  p.maxComms = d.max_comms;
}

template <class P>
void fill_v5(const DeviceProperties& d, P& p) {
  fill_v3(d, p);
  p.latency = d.latency_us;
  p.maxRecvs = d.max_receives;
}

template <class P>
void fill_v7(const DeviceProperties& d, P& p) {
  fill_v5(d, p);
  p.netDeviceType = NCCL_NET_DEVICE_HOST;
  p.netDeviceVersion = NCCL_NET_DEVICE_INVALID_VERSION;
}

template <class P>
void fill_v8(const DeviceProperties& d, P& p) {
  fill_v7(d, p);
  p.regIsGlobal = d.registration_is_global ? 1 : 0;
}

// A physical device is a virtual one of a single NIC: itself. NCCL copies `ndevs` entries, so all
// of them must be written.
template <class P>
void fill_v9(const Device& device, int index, P& p) {
  fill_v8(device.properties, p);
  p.forceFlush = device.properties.force_flush ? 1 : 0;
  p.vProps = {};
  p.vProps.ndevs = 1;
  p.vProps.devs[0] = index;
  if (!device.parts.empty()) {
    // Limited to the number that this table's version could have merged.
    const std::size_t most = std::min(device.parts.size(), std::size(p.vProps.devs));
    p.vProps.ndevs = static_cast<int>(most);
    std::copy_n(device.parts.begin(), most, p.vProps.devs);
  }
  p.maxP2pBytes = kMaxMessageBytes;
  p.maxCollBytes = kMaxMessageBytes;
}

template <class P>
void fill_v11(const Device& d, int index, P& p) {
  fill_v9(d, index, p);
  p.maxMultiRequestSize = 1;
}

void fill_v12(const Device& d, int index, ncclNetProperties_v12_t& p) {
  fill_v11(d, index, p);
  p.railId = static_cast<std::int16_t>(d.rail);  // -1 is NCCL_NET_ID_UNDEF.
  p.planeId = static_cast<std::int16_t>(d.plane);
}

template <class Fill>
ncclResult_t with_device(int index, Fill&& fill) {
  return guard("getProperties", [&]() -> Told<void> {
    remember_current_gpu();
    const Told<const Device*> device = net().device(index);
    if (!device) return pass_on(device.error());
    fill(**device);
    return {};
  });
}

// NCCL reads the parts through getProperties.
ncclResult_t merge_into(int* out, int count, std::span<const int> parts, Net::Unmerged unmerged) {
  return guard("makeVDevice", [&]() -> Told<void> {
    if (count < 1 || static_cast<std::size_t>(count) > parts.size())
      return report(Errc::kInvalidArgument, "makeVDevice of {} devices: 1 to {}", count,
                    parts.size());
    const Told<int> made = net().merge(parts.first(static_cast<std::size_t>(count)), unmerged);
    if (!made) return pass_on(made.error());
    *out = *made;
    return {};
  });
}

}  // namespace

ncclResult_t get_properties_v3(int dev, ncclNetProperties_v3_t* props) {
  return with_device(dev, [&](const Device& d) { fill_v3(d.properties, *props); });
}
ncclResult_t get_properties_v5(int dev, ncclNetProperties_v5_t* props) {
  return with_device(dev, [&](const Device& d) { fill_v5(d.properties, *props); });
}
ncclResult_t get_properties_v7(int dev, ncclNetProperties_v7_t* props) {
  return with_device(dev, [&](const Device& d) { fill_v7(d.properties, *props); });
}
ncclResult_t get_properties_v8(int dev, ncclNetProperties_v8_t* props) {
  return with_device(dev, [&](const Device& d) { fill_v8(d.properties, *props); });
}
ncclResult_t get_properties_v9(int dev, ncclNetProperties_v9_t* props) {
  return with_device(dev, [&](const Device& d) { fill_v9(d, dev, *props); });
}
ncclResult_t get_properties_v11(int dev, ncclNetProperties_v11_t* props) {
  return with_device(dev, [&](const Device& d) { fill_v11(d, dev, *props); });
}
ncclResult_t get_properties_v12(int dev, ncclNetProperties_v12_t* props) {
  return with_device(dev, [&](const Device& d) { fill_v12(d, dev, *props); });
}

ncclResult_t make_vdevice_v9(int* d, ncclNetVDeviceProps_v9_t* props) {
  return merge_into(d, props->ndevs, props->devs, Net::Unmerged::kShownAlone);
}
ncclResult_t make_vdevice_v11(int* d, ncclNetVDeviceProps_v9_t* props) {
  return merge_into(d, props->ndevs, props->devs, Net::Unmerged::kFails);
}
ncclResult_t make_vdevice_v12(int* d, ncclNetVDeviceProps_v12_t* props) {
  return merge_into(d, props->ndevs, props->devs, Net::Unmerged::kFails);
}

}  // namespace ztcp::plugin::abi
