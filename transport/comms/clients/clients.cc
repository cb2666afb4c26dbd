// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/clients/clients.h"

#include <utility>

namespace ztcp::comms {

Result<std::size_t> Clients::attach(std::unique_ptr<Client> client) {
  if (!free_.empty()) {
    const std::size_t index = free_.back();
    free_.pop_back();
    clients_[index] = std::move(client);
    return index;
  }
  if (clients_.size() == capacity_) return fail(Errc::kFull, "attach comm");
  clients_.push_back(std::move(client));
  return clients_.size() - 1;
}

void Clients::reap_retired() {
  for (const std::size_t index : retired_) {
    clients_[index].reset();
    free_.push_back(index);
  }
  retired_.clear();
}

void Clients::clear() {
  clients_.clear();
  free_.clear();
  retired_.clear();
}

}  // namespace ztcp::comms
