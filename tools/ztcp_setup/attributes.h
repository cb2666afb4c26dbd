// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Netlink attributes one by one. libmnl's own loops are macros that C++ does not take.
#pragma once

#include <cstddef>
#include <libmnl/libmnl.h>

namespace ztcp::setup {

// Calls visit(attribute) for each in `size` bytes that lie aligned to 4.
template <class Visit>
void for_each_attribute(const void* bytes, std::size_t size, Visit&& visit) {
  const auto* at = static_cast<const char*>(bytes);
  auto left = static_cast<int>(size);
  for (;;) {
    const auto* attribute = reinterpret_cast<const nlattr*>(at);
    if (!mnl_attr_ok(attribute, left)) return;
    visit(attribute);
    at += MNL_ALIGN(attribute->nla_len);
    left -= static_cast<int>(MNL_ALIGN(attribute->nla_len));
  }
}

// Those of a message, behind its own header of `header` bytes.
template <class Visit>
void for_each_attribute(const nlmsghdr& message, std::size_t header, Visit&& visit) {
  const std::size_t size = mnl_nlmsg_get_payload_len(&message);
  const std::size_t skip = MNL_ALIGN(header);
  if (size > skip)
    for_each_attribute(static_cast<const char*>(mnl_nlmsg_get_payload(&message)) + skip,
                       size - skip, visit);
}

}  // namespace ztcp::setup
