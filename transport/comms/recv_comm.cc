// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/recv_comm.h"

namespace ztcp::comms {

template <>
Result<bool> TableRequest<ReceivingComm>::test(std::span<std::size_t> sizes_bytes) {
  return comm_.test(static_cast<RecvRequest&>(*this), sizes_bytes);
}

Result<ReceivingComm*> ReceivingComm::adopt(Poller& poller,
                                            std::unique_ptr<msg::RecvSession> session) {
  std::unique_ptr<ReceivingComm> owned(new ReceivingComm(poller, std::move(session)));
  ReceivingComm* const comm = owned.get();
  const auto index = poller.backend().clients().attach(std::move(owned));
  if (!index) return tl::unexpected(index.error());
  comm->set_index(*index);
  comm->session_->set_owner(*comm);
  comm->set_ready();
  return comm;
}

Result<Request*> ReceivingComm::post_recv(std::span<const RecvBuffer> buffers) {
  return post([&](RecvRequest& request) { request.start(buffers); });
}

}  // namespace ztcp::comms
