// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The calls with which a test arranges the devices and observes them.
#include <algorithm>

#include "tests/support/verbs/fake_fabric.h"

namespace ztcp::test {

FakeContext& FakeFabric::context_of(const std::string& device) {
  return **std::find_if(contexts_.begin(), contexts_.end(),
                        [&](const FakeContext* one) { return one->fake->spec.name == device; });
}

void FakeFabric::fail_next_message(ibv_wc_status status) {
  const std::lock_guard lock(mutex_);
  next_failure_ = {std::nullopt, status};
}
void FakeFabric::fail_next(ibv_wr_opcode kind, ibv_wc_status status) {
  const std::lock_guard lock(mutex_);
  next_failure_ = {kind, status};
}
void FakeFabric::set_port_state(const std::string& device, int port, ibv_port_state state) {
  const std::lock_guard lock(mutex_);
  FakeContext& context = context_of(device);
  context.fake->spec.ports[static_cast<std::size_t>(port) - 1].state = state;
  tell_of_port(context, state == IBV_PORT_ACTIVE ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR,
               port);
}
void FakeFabric::raise(const std::string& device, ibv_event_type type, int port) {
  const std::lock_guard lock(mutex_);
  tell_of_port(context_of(device), type, port);
}
void FakeFabric::refuse_manager(int sys_errno) {
  const std::lock_guard lock(mutex_);
  manager_errno_ = sys_errno;
}
void FakeFabric::kill(const std::string& device, bool tells) {
  const std::lock_guard lock(mutex_);
  FakeContext& context = context_of(device);
  context.fake->is_dead = true;
  if (tells) tell_of_port(context, IBV_EVENT_DEVICE_FATAL, 1);
}
void FakeFabric::raise_of_pair(std::uint32_t number, ibv_event_type type) {
  const std::lock_guard lock(mutex_);
  FakeQueuePair* const pair = queue_pairs_.at(number);
  ibv_async_event event{};
  event.event_type = type;
  if (type == IBV_EVENT_CQ_ERR)
    event.element.cq = pair->send_cq;
  else
    event.element.qp = pair;
  tell(*static_cast<FakeContext*>(pair->context), event);
}
void FakeFabric::set_address(const std::string& device, std::vector<ibv_gid> gids,
                             std::uint16_t lid) {
  const std::lock_guard lock(mutex_);
  FakeContext& context = context_of(device);
  FakePort& port = context.fake->spec.ports.front();
  port.gids = std::move(gids);
  port.lid = lid;
  tell_of_port(context, IBV_EVENT_GID_CHANGE, 1);
  tell_of_port(context, IBV_EVENT_LID_CHANGE, 1);
}
void FakeFabric::refuse(const std::string& call, int sys_errno) {
  const std::lock_guard lock(mutex_);
  refusals_[call] = sys_errno;
}
std::vector<std::uint32_t> FakeFabric::pairs_of(const std::string& device) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint32_t> numbers;
  for (const auto& [number, pair] : queue_pairs_)
    if (static_cast<FakeContext*>(pair->context)->fake->spec.name == device)
      numbers.push_back(number);
  return numbers;
}
std::vector<std::optional<std::uint32_t>> FakeFabric::ece_of(const std::string& device) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::optional<std::uint32_t>> out;
  for (const auto& [number, pair] : queue_pairs_)
    if (static_cast<FakeContext*>(pair->context)->fake->spec.name == device)
      out.push_back(pair->ece);
  return out;
}
int FakeFabric::carried_out(ibv_wr_opcode opcode) const {
  const std::lock_guard lock(mutex_);
  const auto found = carried_out_.find(opcode);
  return found == carried_out_.end() ? 0 : found->second;
}
FakeCounts FakeFabric::counts(const std::string& device) const {
  const std::lock_guard lock(mutex_);
  return (*std::ranges::find_if(devices_,
                                [&](const auto& one) { return one->spec.name == device; }))
      ->counts;
}
int FakeFabric::live(const char* kind) const {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(kind);
  return found == live_.end() ? 0 : found->second;
}
std::vector<std::string> FakeFabric::misuse() const {
  const std::lock_guard lock(mutex_);
  return misuse_;
}

}  // namespace ztcp::test
