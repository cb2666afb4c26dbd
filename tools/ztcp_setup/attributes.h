// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Netlink messages and their attributes, to read. Nothing here believes a length it has not checked
// against what holds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <linux/netlink.h>
#include <string>

namespace ztcp::setup {

// Everything in netlink lies at multiples of 4.
constexpr std::size_t aligned(std::size_t size) { return (size + 3) & ~std::size_t{3}; }

inline const void* payload_of(const nlmsghdr* message) {
  return reinterpret_cast<const char*>(message) + aligned(sizeof(nlmsghdr));
}
inline std::size_t payload_size(const nlmsghdr* message) {
  return message->nlmsg_len - aligned(sizeof(nlmsghdr));
}

inline std::uint16_t type_of(const nlattr* attribute) {
  return attribute->nla_type & NLA_TYPE_MASK;
}
inline const void* payload_of(const nlattr* attribute) {
  return reinterpret_cast<const char*>(attribute) + aligned(sizeof(nlattr));
}
inline std::size_t payload_size(const nlattr* attribute) {
  return attribute->nla_len - aligned(sizeof(nlattr));
}
// 0 where there is none.
inline std::uint32_t number_of(const nlattr* attribute) {
  std::uint32_t number = 0;
  if (attribute != nullptr && payload_size(attribute) >= sizeof(number))
    std::memcpy(&number, payload_of(attribute), sizeof(number));
  return number;
}
inline std::string text_of(const nlattr* attribute) {
  if (attribute == nullptr) return {};
  const auto* text = static_cast<const char*>(payload_of(attribute));
  return {text, ::strnlen(text, payload_size(attribute))};
}

// Calls visit(attribute) for each in `size` bytes that lie aligned.
template <class Visit>
void for_each_attribute(const void* bytes, std::size_t size, Visit&& visit) {
  const auto* at = static_cast<const char*>(bytes);
  while (size >= sizeof(nlattr)) {
    const auto* attribute = reinterpret_cast<const nlattr*>(at);
    if (attribute->nla_len < sizeof(nlattr) || attribute->nla_len > size) return;
    visit(attribute);
    const std::size_t step = aligned(attribute->nla_len);
    if (step >= size) return;
    at += step;
    size -= step;
  }
}

// Those of a message, behind its own header of `header` bytes.
template <class Visit>
void for_each_attribute(const nlmsghdr& message, std::size_t header, Visit&& visit) {
  const std::size_t skip = aligned(header);
  if (payload_size(&message) > skip)
    for_each_attribute(static_cast<const char*>(payload_of(&message)) + skip,
                       payload_size(&message) - skip, visit);
}

}  // namespace ztcp::setup
