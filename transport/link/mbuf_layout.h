// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The private area of this folder's mbufs. For DPDK sources only.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <rte_mbuf.h>

namespace ztcp::link {

// In a received head mbuf: the views of the buffers that continue it.
struct RxPrivate {
  static constexpr std::size_t kMaxMore = 8;
  std::array<std::span<const std::byte>, kMaxMore> more;
};

// In an mbuf of the header pool: DPDK's bookkeeping for user memory attached to it.
struct TxPrivate {
  rte_mbuf_ext_shared_info shared;
};

static_assert(sizeof(RxPrivate) % RTE_MBUF_PRIV_ALIGN == 0);
static_assert(sizeof(TxPrivate) % RTE_MBUF_PRIV_ALIGN == 0);

template <class Private>
Private& private_of(rte_mbuf* mbuf) {
  return *static_cast<Private*>(rte_mbuf_to_priv(mbuf));
}

}  // namespace ztcp::link
