// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Opens RDMA devices in libibverbs' order, and finds the faults that keep a device or one of its
// ports from serving.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/result.h"
#include "transport/verbs/api.h"
#include "transport/verbs/device.h"

namespace ztcp::verbs {

// All devices that the library shows; they may be opened while the list lives.
class DeviceList {
 public:
  explicit DeviceList(const Api& api) : api_(api), list_(api.get_device_list(&count_)) {}
  ~DeviceList() {
    if (list_ != nullptr) api_.free_device_list(list_);
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;

  std::span<ibv_device* const> all() const {
    return {list_, list_ == nullptr ? 0 : static_cast<std::size_t>(count_)};
  }
  ibv_device* find(const std::string& name) const;
  std::string names() const;  // For the operator.

 private:
  const Api& api_;
  int count_ = 0;
  ibv_device** list_;
};

// The text says why it can't be opened, and gives a remedy.
using Opened = Result<std::shared_ptr<OpenDevice>, std::string>;
Opened open_device(const Api& api, ibv_device* device);

// Why a port can't carry reliable connections in any state; empty: it can.
std::string fault_of_kind(const ibv_device& device, std::uint8_t port, const ibv_port_attr& attr);
// The state of a port that is not active, with a remedy.
const char* state_text(ibv_port_state state);

// Further requirements of an iWARP device: librdmacm, and an address of its own interface. Returns
// the fault; empty: both are there.
std::string read_iwarp(Device& device);

}  // namespace ztcp::verbs
