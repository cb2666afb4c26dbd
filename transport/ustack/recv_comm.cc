// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/recv_comm.h"

namespace ztcp::ustack {

template <>
Result<bool> TableRequest<UstackRecvComm>::test(std::span<std::size_t> sizes_bytes) {
  return comm_.test(static_cast<RecvRequest&>(*this), sizes_bytes);
}

Result<UstackRecvComm*> UstackRecvComm::adopt(Poller& poller, Engine& engine,
                                              std::unique_ptr<msg::RecvSession> session) {
  std::unique_ptr<UstackRecvComm> owned(new UstackRecvComm(poller, engine, std::move(session)));
  UstackRecvComm* const comm = owned.get();
  const auto index = poller.clients().attach(std::move(owned));
  if (!index) return tl::unexpected(index.error());
  comm->set_index(*index);
  comm->session_->set_owner(*comm);
  comm->set_ready();
  return comm;
}

Result<Request*> UstackRecvComm::post_recv(std::span<const RecvBuffer> buffers) {
  return post([&](RecvRequest& request) { request.start(buffers); });
}

}  // namespace ztcp::ustack
