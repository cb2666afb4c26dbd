// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/rtnetlink.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <set>
#include <sys/socket.h>
#include <vector>

#include <fmt/format.h>

#include "tools/ztcp_setup/attributes.h"
#include "tools/ztcp_setup/hex.h"
#include "tools/ztcp_setup/network_text.h"

namespace ztcp::setup {
namespace {

constexpr std::uint32_t kForEver = 0xffffffff;
// What a lease has left at least when it comes back: time for its DHCP client to wake up.
constexpr std::int64_t kShortestLeaseS = 600;

// A request of ours: header and attributes.
class Message {
 public:
  Message(std::uint16_t type, int flags) {
    nlmsghdr& header = get();
    header.nlmsg_len = aligned(sizeof(nlmsghdr));
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
  }
  template <class Header>
  Header& extra() {
    return *static_cast<Header*>(grow(sizeof(Header)));
  }
  // False: it does not fit.
  bool put(std::uint16_t type, const void* bytes, std::size_t size) {
    const std::size_t length = sizeof(nlattr) + size;
    if (length > UINT16_MAX || get().nlmsg_len + aligned(length) > buffer_.size()) return false;
    auto* attribute = static_cast<nlattr*>(grow(length));
    attribute->nla_len = static_cast<std::uint16_t>(length);
    attribute->nla_type = type;
    if (size > 0) std::memcpy(attribute + 1, bytes, size);
    return true;
  }
  bool put(std::uint16_t type, const std::string& text) {
    return put(type, text.c_str(), text.size() + 1);
  }
  bool put(std::uint16_t type, std::uint32_t number) { return put(type, &number, sizeof(number)); }
  // Attributes put until end() are inside this one.
  nlattr* begin(std::uint16_t type) {
    auto* nest = static_cast<nlattr*>(grow(sizeof(nlattr)));
    nest->nla_type = type;
    return nest;
  }
  void end(nlattr* nest) {
    nest->nla_len = static_cast<std::uint16_t>(buffer_.data() + get().nlmsg_len -
                                               reinterpret_cast<char*>(nest));
  }
  nlmsghdr& get() { return *reinterpret_cast<nlmsghdr*>(buffer_.data()); }

 private:
  void* grow(std::size_t size) {
    void* place = buffer_.data() + get().nlmsg_len;
    get().nlmsg_len += static_cast<std::uint32_t>(aligned(size));
    return place;
  }

  alignas(nlmsghdr) std::array<char, 16384> buffer_{};
};

template <class Header>
const Header& header_of(const nlmsghdr& message) {
  return *static_cast<const Header*>(payload_of(&message));
}

const nlattr* find(const nlmsghdr& message, std::size_t header, std::uint16_t type) {
  const nlattr* found = nullptr;
  for_each_attribute(message, header, [&](const nlattr* attribute) {
    if (type_of(attribute) == type) found = attribute;
  });
  return found;
}

std::string mac_in(const nlattr* attribute) {
  if (attribute == nullptr) return {};
  const auto* bytes = static_cast<const unsigned char*>(payload_of(attribute));
  return fmt::format("{:02x}", fmt::join(bytes, bytes + payload_size(attribute), ":"));
}

std::string bytes_of_mac(const std::string& text) {
  std::string digits = text;
  std::erase(digits, ':');
  return from_hex(digits);
}

// "7:0a0b...": the interface's number then, and what stood behind the netlink header.
std::string recorded(const nlmsghdr& message, unsigned index) {
  const std::string_view payload(static_cast<const char*>(payload_of(&message)),
                                 payload_size(&message));
  return fmt::format("{}:{}:{}", message.nlmsg_type, index, to_hex(payload));
}

struct Recorded {
  std::uint16_t type = 0;
  unsigned index = 0;
  std::string payload;
};
std::optional<Recorded> read_recorded(const std::string& text) {
  Recorded recorded;
  char* end = nullptr;
  recorded.type = static_cast<std::uint16_t>(std::strtoul(text.c_str(), &end, 10));
  if (*end != ':') return std::nullopt;
  recorded.index = static_cast<unsigned>(std::strtoul(end + 1, &end, 10));
  if (*end != ':') return std::nullopt;
  recorded.payload = from_hex(end + 1);
  return recorded;
}

LinkState state_of(const nlmsghdr& message) {
  const auto& header = header_of<ifinfomsg>(message);
  const auto attribute = [&](std::uint16_t type) { return find(message, sizeof(header), type); };
  const auto text = [&](const nlattr* one) {
    return one == nullptr ? std::string() : std::string(text_of(one));
  };
  LinkState state;
  state.name = text(attribute(IFLA_IFNAME));
  state.mac = mac_in(attribute(IFLA_ADDRESS));
  state.permanent_mac = mac_in(attribute(IFLA_PERM_ADDRESS));
  state.mtu_bytes = number_of(attribute(IFLA_MTU));
  state.queue_length = number_of(attribute(IFLA_TXQLEN));
  state.alias = text(attribute(IFLA_IFALIAS));
  state.up = (header.ifi_flags & IFF_UP) != 0;
  if (const std::uint32_t master = number_of(attribute(IFLA_MASTER)); master != 0) {
    std::array<char, IF_NAMESIZE> name{};
    if (::if_indextoname(master, name.data()) != nullptr) state.master = name.data();
  }
  if (const nlattr* info = attribute(IFLA_LINKINFO); info != nullptr) {
    for_each_attribute(payload_of(info), payload_size(info), [&](const nlattr* one) {
      if (type_of(one) == IFLA_INFO_KIND) state.kind = text_of(one);
      if (type_of(one) == IFLA_INFO_DATA)
        state.info = to_hex({static_cast<const char*>(payload_of(one)), payload_size(one)});
    });
  }
  return state;
}

// Kinds that live on another interface and die with it.
bool is_child(const LinkState& link) {
  static const std::set<std::string> kKinds{"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"};
  return kKinds.contains(link.kind);
}

// A macvlan tells also what it only counts, and refuses to be told that.
std::string settable(const std::string& kind, const std::string& info) {
  if (kind != "macvlan" && kind != "macvtap") return info;
  std::vector<std::uint32_t> words((info.size() + 3) / 4);
  std::memcpy(words.data(), info.data(), info.size());
  std::string kept;
  for_each_attribute(words.data(), info.size(), [&](const nlattr* attribute) {
    const auto type = type_of(attribute);
    if (type == IFLA_MACVLAN_MODE || type == IFLA_MACVLAN_FLAGS)
      kept.append(reinterpret_cast<const char*>(attribute), aligned(attribute->nla_len));
  });
  return kept;
}

bool goes_through(const nlmsghdr& route, unsigned index) {
  if (number_of(find(route, sizeof(rtmsg), RTA_OIF)) == index) return true;
  const nlattr* multipath = find(route, sizeof(rtmsg), RTA_MULTIPATH);
  if (multipath == nullptr) return false;
  auto left = static_cast<int>(payload_size(multipath));
  for (const auto* hop = static_cast<const rtnexthop*>(payload_of(multipath)); RTNH_OK(hop, left);
       left -= static_cast<int>(RTNH_ALIGN(hop->rtnh_len)), hop = RTNH_NEXT(hop))
    if (static_cast<unsigned>(hop->rtnh_ifindex) == index) return true;
  return false;
}

// Those that the kernel or its router discovery don't make by themselves.
bool worth_keeping(const nlmsghdr& route) {
  const auto& header = header_of<rtmsg>(route);
  const std::uint32_t table = number_of(find(route, sizeof(header), RTA_TABLE));
  return header.rtm_type == RTN_UNICAST && (header.rtm_flags & RTM_F_CLONED) == 0 &&
         header.rtm_protocol != RTPROT_RA && header.rtm_protocol != RTPROT_REDIRECT &&
         (table != 0 ? table : header.rtm_table) != RT_TABLE_LOCAL;
}

std::int64_t expiry_of(const nlmsghdr& address) {
  const nlattr* attribute = find(address, sizeof(ifaddrmsg), IFA_CACHEINFO);
  if (attribute == nullptr || payload_size(attribute) < sizeof(ifa_cacheinfo)) return 0;
  const auto& info = *static_cast<const ifa_cacheinfo*>(payload_of(attribute));
  return info.ifa_valid == kForEver ? 0 : std::time(nullptr) + info.ifa_valid;
}

std::uint32_t flags_of(const nlmsghdr& address) {
  const nlattr* flags = find(address, sizeof(ifaddrmsg), IFA_FLAGS);
  return flags != nullptr ? number_of(flags) : header_of<ifaddrmsg>(address).ifa_flags;
}

// Interfaces have other numbers now, and time has passed. False: the attribute stays out.
bool adapt(const Recorded& recorded, unsigned index, const NetworkItem& item, std::uint16_t type,
           std::string& payload) {
  if (recorded.type == RTM_NEWNEIGH) return type == NDA_DST || type == NDA_LLADDR;
  if (recorded.type == RTM_NEWADDR) {
    if (type != IFA_CACHEINFO) return true;
    if (item.expires_unix_s == 0 || payload.size() < sizeof(ifa_cacheinfo)) return false;
    ifa_cacheinfo info{};
    std::memcpy(&info, payload.data(), sizeof(info));
    info.ifa_valid = static_cast<std::uint32_t>(
        std::max<std::int64_t>(item.expires_unix_s - std::time(nullptr), kShortestLeaseS));
    info.ifa_prefered = std::min(info.ifa_prefered, info.ifa_valid);
    std::memcpy(payload.data(), &info, sizeof(info));
    return true;
  }
  // A nexthop object went with its interface; its parts are in the message as well.
  if (type == RTA_CACHEINFO || type == RTA_NH_ID) return false;
  if (type == RTA_OIF && payload.size() == sizeof(index))
    std::memcpy(payload.data(), &index, sizeof(index));
  if (type != RTA_MULTIPATH) return true;
  for (std::size_t at = 0; at + sizeof(rtnexthop) <= payload.size();) {
    rtnexthop hop{};
    std::memcpy(&hop, payload.data() + at, sizeof(hop));
    if (static_cast<unsigned>(hop.rtnh_ifindex) == recorded.index)
      hop.rtnh_ifindex = static_cast<int>(index);
    hop.rtnh_flags &= RTNH_F_ONLINK;
    std::memcpy(payload.data() + at, &hop, sizeof(hop));
    if (hop.rtnh_len < sizeof(hop)) return false;
    at += RTNH_ALIGN(hop.rtnh_len);
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<Rtnetlink>> Rtnetlink::open() {
  Descriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (socket.get() < 0) return fail_errno("netlink socket");
  sockaddr_nl own{};
  own.nl_family = AF_NETLINK;
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&own), sizeof(own)) != 0)
    return fail_errno("netlink bind");
  return std::unique_ptr<Rtnetlink>(new Rtnetlink(std::move(socket)));
}

Status Rtnetlink::talk(nlmsghdr& request, const Visit& visit) {
  request.nlmsg_seq = ++sequence_;
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (::sendto(socket_.get(), &request, request.nlmsg_len, 0, reinterpret_cast<sockaddr*>(&kernel),
               sizeof(kernel)) < 0)
    return fail_errno("netlink");
  std::vector<char> buffer(1U << 16);
  bool interrupted = false;
  for (;;) {
    sockaddr_nl sender{};
    socklen_t length = sizeof(sender);
    const ssize_t received = ::recvfrom(socket_.get(), buffer.data(), buffer.size(), 0,
                                        reinterpret_cast<sockaddr*>(&sender), &length);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0) return fail_errno("netlink");
    if (sender.nl_pid != 0) continue;  // Not the kernel.
    auto left = static_cast<std::size_t>(received);
    for (const char* at = buffer.data(); left >= sizeof(nlmsghdr);) {
      const auto* message = reinterpret_cast<const nlmsghdr*>(at);
      if (message->nlmsg_len < sizeof(nlmsghdr) || message->nlmsg_len > left) break;
      const std::size_t step = std::min(aligned(message->nlmsg_len), left);
      at += step;
      left -= step;
      if (message->nlmsg_seq != sequence_) continue;
      interrupted |= (message->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
      if (message->nlmsg_type == NLMSG_ERROR) {
        const auto& error = header_of<nlmsgerr>(*message);
        if (error.error != 0) return fail(Errc::kSystem, "netlink", -error.error);
        return {};
      }
      if (message->nlmsg_type == NLMSG_DONE) {
        // Changed while it was told: what was heard may be neither old nor new.
        if (interrupted) return fail(Errc::kSystem, "netlink", EAGAIN);
        return {};
      }
      if (visit) visit(*message);
    }
  }
}

Status Rtnetlink::dump(std::uint16_t type, const Visit& visit) {
  constexpr int kTries = 5;
  Status status;
  for (int i = 0; i < kTries; ++i) {
    Message request(type, NLM_F_DUMP);
    request.get().nlmsg_flags &= static_cast<std::uint16_t>(~NLM_F_ACK);
    // Large enough for each kind of request: family 0 means all.
    if (type == RTM_GETROUTE)
      request.extra<rtmsg>();
    else if (type == RTM_GETADDR)
      request.extra<ifaddrmsg>();
    else if (type == RTM_GETNEIGH)
      request.extra<ndmsg>();
    else
      request.extra<ifinfomsg>();
    std::vector<std::string> heard;
    status = talk(request.get(), [&](const nlmsghdr& message) {
      heard.emplace_back(reinterpret_cast<const char*>(&message), message.nlmsg_len);
    });
    if (!status && status.error().sys_errno == EAGAIN) continue;
    if (status)
      for (const std::string& message : heard)
        visit(*reinterpret_cast<const nlmsghdr*>(message.data()));
    break;
  }
  return status;
}

Result<unsigned> Rtnetlink::index_of(const std::string& link) {
  const unsigned index = ::if_nametoindex(link.c_str());
  if (index == 0) return fail_errno("interface");
  return index;
}

Result<std::optional<LinkState>> Rtnetlink::link(const std::string& name) {
  const unsigned index = ::if_nametoindex(name.c_str());
  if (index == 0) return std::optional<LinkState>{};
  LinkState state;
  std::vector<std::string> children;
  ZTCP_CHECK(dump(RTM_GETLINK, [&](const nlmsghdr& message) {
    const auto& header = header_of<ifinfomsg>(message);
    if (header.ifi_family != AF_UNSPEC) return;
    if (static_cast<unsigned>(header.ifi_index) == index) state = state_of(message);
    if (number_of(find(message, sizeof(header), IFLA_LINK)) == index &&
        find(message, sizeof(header), IFLA_LINK_NETNSID) == nullptr)
      if (const LinkState child = state_of(message); is_child(child))
        children.push_back(child.name);
  }));
  if (state.name.empty()) return std::optional<LinkState>{};
  ZTCP_CHECK(dump(RTM_GETADDR, [&](const nlmsghdr& message) {
    const auto& header = header_of<ifaddrmsg>(message);
    if (header.ifa_index != index ||
        (header.ifa_family != AF_INET && header.ifa_family != AF_INET6))
      return;
    // Privacy addresses are made anew from their public one.
    if (header.ifa_family == AF_INET6 && (flags_of(message) & IFA_F_TEMPORARY) != 0) return;
    state.addresses.push_back(
        {address_command(message, name), recorded(message, index), expiry_of(message)});
  }));
  ZTCP_CHECK(dump(RTM_GETNEIGH, [&](const nlmsghdr& message) {
    const auto& header = header_of<ndmsg>(message);
    if (static_cast<unsigned>(header.ndm_ifindex) != index ||
        (header.ndm_state & NUD_PERMANENT) == 0 ||
        (header.ndm_family != AF_INET && header.ndm_family != AF_INET6))
      return;
    state.neighbours.push_back({neighbour_command(message, name), recorded(message, index), 0});
  }));
  std::vector<NetworkItem> behind_gateways;
  ZTCP_CHECK(dump(RTM_GETROUTE, [&](const nlmsghdr& message) {
    const auto& header = header_of<rtmsg>(message);
    if ((header.rtm_family != AF_INET && header.rtm_family != AF_INET6) ||
        !worth_keeping(message) || !goes_through(message, index))
      return;
    const bool direct = find(message, sizeof(header), RTA_GATEWAY) == nullptr &&
                        find(message, sizeof(header), RTA_VIA) == nullptr &&
                        find(message, sizeof(header), RTA_MULTIPATH) == nullptr;
    (direct ? state.routes : behind_gateways)
        .push_back({route_command(message), recorded(message, index), 0});
  }));
  std::move(behind_gateways.begin(), behind_gateways.end(), std::back_inserter(state.routes));
  for (const std::string& child : children) {
    std::optional<LinkState> found = ZTCP_TRY(link(child));
    if (found) state.children.push_back(std::move(*found));
  }
  return std::optional<LinkState>(std::move(state));
}

Status Rtnetlink::set_up(const std::string& link, bool up) {
  Message request(RTM_NEWLINK, 0);
  auto& header = request.extra<ifinfomsg>();
  header.ifi_index = static_cast<int>(ZTCP_TRY(index_of(link)));
  header.ifi_change = IFF_UP;
  header.ifi_flags = up ? IFF_UP : 0;
  return talk(request.get(), {});
}

Status Rtnetlink::rename(const std::string& from, const std::string& to) {
  Message request(RTM_NEWLINK, 0);
  request.extra<ifinfomsg>().ifi_index = static_cast<int>(ZTCP_TRY(index_of(from)));
  if (!request.put(IFLA_IFNAME, to)) return fail(Errc::kInvalidArgument, "interface name");
  return talk(request.get(), {});
}

Status Rtnetlink::set(const std::string& link, const LinkState& wanted) {
  const auto now = ZTCP_TRY(this->link(link));
  if (!now) return fail(Errc::kNoDevice, "interface", ENODEV);
  Message request(RTM_NEWLINK, 0);
  request.extra<ifinfomsg>().ifi_index = static_cast<int>(ZTCP_TRY(index_of(link)));
  // Only what differs: not every driver can change everything.
  bool fits = true;
  if (now->mac != wanted.mac) {
    const std::string mac = bytes_of_mac(wanted.mac);
    fits = request.put(IFLA_ADDRESS, mac.data(), mac.size());
  }
  if (now->mtu_bytes != wanted.mtu_bytes) fits &= request.put(IFLA_MTU, wanted.mtu_bytes);
  if (now->queue_length != wanted.queue_length)
    fits &= request.put(IFLA_TXQLEN, wanted.queue_length);
  if (now->alias != wanted.alias) fits &= request.put(IFLA_IFALIAS, wanted.alias);
  if (!fits) return fail(Errc::kInvalidArgument, "interface");
  return talk(request.get(), {});
}

Status Rtnetlink::set_master(const std::string& link, const std::string& master) {
  Message request(RTM_NEWLINK, 0);
  request.extra<ifinfomsg>().ifi_index = static_cast<int>(ZTCP_TRY(index_of(link)));
  request.put(IFLA_MASTER, ZTCP_TRY(index_of(master)));
  return talk(request.get(), {});
}

Status Rtnetlink::add_child(const std::string& parent, const LinkState& child) {
  Message request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  request.extra<ifinfomsg>();
  const std::string info = settable(child.kind, from_hex(child.info));
  request.put(IFLA_LINK, ZTCP_TRY(index_of(parent)));
  if (!request.put(IFLA_IFNAME, child.name)) return fail(Errc::kInvalidArgument, "interface name");
  nlattr* nest = request.begin(IFLA_LINKINFO);
  const bool fits =
      request.put(IFLA_INFO_KIND, child.kind) &&
      (info.empty() || request.put(IFLA_INFO_DATA | NLA_F_NESTED, info.data(), info.size()));
  request.end(nest);
  if (!fits) return fail(Errc::kInvalidArgument, "interface");
  return talk(request.get(), {});
}

Status Rtnetlink::add_item(const std::string& link, const NetworkItem& item) {
  const auto recorded = read_recorded(item.message);
  if (!recorded) return fail(Errc::kInvalidArgument, "recorded message");
  const unsigned index = ZTCP_TRY(index_of(link));
  const std::size_t header_size = recorded->type == RTM_NEWADDR    ? sizeof(ifaddrmsg)
                                  : recorded->type == RTM_NEWNEIGH ? sizeof(ndmsg)
                                  : recorded->type == RTM_NEWROUTE ? sizeof(rtmsg)
                                                                   : 0;
  if (header_size == 0 || recorded->payload.size() < header_size)
    return fail(Errc::kInvalidArgument, "recorded message");

  Message request(recorded->type, NLM_F_CREATE | NLM_F_EXCL);
  if (recorded->type == RTM_NEWADDR) {
    auto& header = request.extra<ifaddrmsg>();
    std::memcpy(&header, recorded->payload.data(), sizeof(header));
    header.ifa_index = index;
  } else if (recorded->type == RTM_NEWNEIGH) {
    auto& header = request.extra<ndmsg>();
    std::memcpy(&header, recorded->payload.data(), sizeof(header));
    header.ndm_ifindex = static_cast<int>(index);
  } else {
    auto& header = request.extra<rtmsg>();
    std::memcpy(&header, recorded->payload.data(), sizeof(header));
    header.rtm_flags &= RTNH_F_ONLINK;  // The others are the kernel's remarks.
  }

  // Attributes lie at multiples of 4 in the kernel's message, and must in ours.
  const std::string attributes = recorded->payload.substr(aligned(header_size));
  std::vector<std::uint32_t> words((attributes.size() + 3) / 4);
  std::memcpy(words.data(), attributes.data(), attributes.size());
  bool fits = true;
  for_each_attribute(words.data(), attributes.size(), [&](const nlattr* attribute) {
    std::string payload(static_cast<const char*>(payload_of(attribute)), payload_size(attribute));
    if (adapt(*recorded, index, item, type_of(attribute), payload))
      fits &= request.put(attribute->nla_type, payload.data(), payload.size());
  });
  if (!fits) return fail(Errc::kInvalidArgument, "recorded message");
  Status status = talk(request.get(), {});
  if (!status && status.error().sys_errno == EEXIST) return {};
  return status;
}

}  // namespace ztcp::setup
