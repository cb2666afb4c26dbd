// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/xdp/host_tables.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <endian.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

#include "core/log.h"
#include "core/netlink_request.h"
#include "core/own_thread.h"
#include "core/process_mark.h"
#include "core/socket_address.h"

namespace ztcp::link::xdp {
namespace {

using netlink::Bytes;

// Between looks at the tables: while the kernel resolves a neighbour, and otherwise.
constexpr std::chrono::milliseconds kWhileResolving{10};
constexpr std::chrono::milliseconds kInterval{100};
// The stack asks again after this.
constexpr int kTries = 100;
constexpr std::uint16_t kDiscardPort = 9;
constexpr std::size_t kMostQuestions = 1024;

std::array<std::byte, 16> bytes_of(IpAddress address) {
  std::array<std::byte, 16> out{};
  if (address.is_v4()) {
    const std::uint32_t word = htobe32(address.v4().value);
    std::memcpy(out.data(), &word, sizeof(word));
  } else {
    const std::array<std::uint64_t, 2> words{htobe64(address.high), htobe64(address.low)};
    std::memcpy(out.data(), words.data(), sizeof(words));
  }
  return out;
}

std::optional<IpAddress> address_of(Bytes bytes) {
  if (bytes.size() == 4) return Ipv4Address{be32toh(netlink::read_as<std::uint32_t>(bytes))};
  if (bytes.size() != 16) return std::nullopt;
  const auto words = netlink::read_as<std::array<std::uint64_t, 2>>(bytes);
  return IpAddress(be64toh(words[0]), be64toh(words[1]));
}

void put(netlink::NetlinkRequest& request, std::uint16_t type, IpAddress address) {
  const auto bytes = bytes_of(address);
  request.put(type, Bytes(bytes).first(address.is_v4() ? 4 : 16));
}

std::uint8_t family_of(IpAddress address) { return address.is_v4() ? AF_INET : AF_INET6; }

// Bound to the interface and to the link's own address, as the link's segments are.
Result<Fd> open_resolver(const HostTables::Config& config) {
  Fd socket(::socket(family_of(config.own), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail_errno("socket");
  const std::string& name = config.interface.name;
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_BINDTODEVICE, name.c_str(),
                   static_cast<socklen_t>(name.size())) != 0)
    return fail_errno("SO_BINDTODEVICE");
  SocketAddress own = to_socket_address({config.own, 0});
  if (config.own.is_link_local_v6())
    reinterpret_cast<sockaddr_in6*>(own.get())->sin6_scope_id = config.interface.index;
  if (::bind(socket.get(), own.get(), own.size_bytes) != 0) return fail_errno("bind");
  return socket;
}

}  // namespace

Result<std::unique_ptr<HostTables>> HostTables::open(const Config& config) {
  auto kernel = ZTCP_TRY(netlink::Session::open());
  auto resolver = open_resolver(config);
  if (!resolver) {
    log::warn("{} {}: {} for {} failed: {}; is it an address of this interface?", config.kind,
              config.interface.name, resolver.error().where, to_string(config.own),
              std::strerror(resolver.error().sys_errno));
    return tl::unexpected(resolver.error());
  }
  auto wake = ZTCP_TRY(WakeEvent::make());
  std::unique_ptr<HostTables> tables(
      new HostTables(config, std::move(kernel), std::move(*resolver), std::move(wake)));
  tables->look_at_interface();
  tables->thread_ = ZTCP_TRY(start_thread("ztcp-xdp", [at = tables.get()] { at->run(); }));
  return tables;
}

HostTables::~HostTables() {
  if (!thread_.joinable()) return;
  if (in_forked_child()) {
    thread_.detach();
    return;
  }
  ends_.store(true, std::memory_order_relaxed);
  wake_->signal();
  thread_.join();
}

void HostTables::ask(std::size_t lane, IpAddress destination) {
  {
    const std::scoped_lock lock(mutex_);
    if (questions_.size() >= kMostQuestions) return;  // The stack asks again.
    questions_.push_back({lane, destination, kTries});
  }
  wake_->signal();
}

std::optional<HostTables::Answer> HostTables::take_answer(std::size_t lane) {
  const std::scoped_lock lock(mutex_);
  Lane& ours = lanes_[lane];
  if (ours.answers.empty()) return std::nullopt;
  const Answer answer = ours.answers.back();
  ours.answers.pop_back();
  ours.has_answer.store(!ours.answers.empty(), std::memory_order_relaxed);
  return answer;
}

void HostTables::run() {
  while (!ends_.load(std::memory_order_relaxed)) {
    take_questions();
    answer_questions();
    wake_->sleep(open_.empty() ? kInterval : kWhileResolving);
    if (!is_lost(state())) look_at_interface();
  }
}

void HostTables::take_questions() {
  std::vector<Question> asked;
  {
    const std::scoped_lock lock(mutex_);
    asked.swap(questions_);
  }
  for (const Question& question : asked) {
    const auto same = std::find_if(open_.begin(), open_.end(), [&](const Question& one) {
      return one.lane == question.lane && one.destination == question.destination;
    });
    if (same == open_.end()) open_.push_back(question);
  }
}

void HostTables::answer_questions() {
  std::erase_if(open_, [&](Question& question) {
    const auto hop = next_hop(question.destination);
    if (!hop) return true;
    const Neighbour found = neighbour(*hop);
    // An entry that was not confirmed lately is used, and checked by the kernel meanwhile: if the
    // peer does not answer there, the stack asks again.
    if (!found.is_confirmed && question.tries_left == kTries)
      make_kernel_resolve(question.destination);
    if (!found.is_known) return --question.tries_left == 0;
    const std::scoped_lock lock(mutex_);
    Lane& lane = lanes_[question.lane];
    lane.answers.push_back({question.destination, found.mac});
    lane.has_answer.store(true, std::memory_order_relaxed);
    return true;
  });
}

// As for a socket that is bound to the interface.
std::optional<IpAddress> HostTables::next_hop(IpAddress destination) {
  rtmsg fixed{};
  fixed.rtm_family = family_of(destination);
  fixed.rtm_dst_len = destination.is_v4() ? 32 : 128;
  netlink::NetlinkRequest request(RTM_GETROUTE, 0, fixed);
  put(request, RTA_DST, destination);
  request.put(RTA_OIF, config_.interface.index);
  std::optional<IpAddress> hop;
  bool is_local = false;
  const Status done = kernel_.query(request, [&](const netlink::Message& message) {
    const auto attributes = message.attributes<rtmsg>();
    is_local = message.fixed<rtmsg>().rtm_type == RTN_LOCAL;
    if (message.fixed<rtmsg>().rtm_type != RTN_UNICAST ||
        attributes.number(RTA_OIF) != config_.interface.index)
      return;
    hop = destination;
    // A gateway of the other family comes behind its family's number.
    if (const auto via = attributes.find(RTA_VIA); via && via->size() > 2)
      hop = address_of(via->subspan(2));
    if (const auto gateway = attributes.find(RTA_GATEWAY)) hop = address_of(*gateway);
  });
  if (hop || state() != LinkState::kUp) return hop;
  const auto told = std::find(told_unreachable_.begin(), told_unreachable_.end(), destination);
  if (told == told_unreachable_.end()) {
    told_unreachable_.push_back(destination);
    log::warn("{} {}: no route to {} through it: {}; see ip route get {} oif {}", config_.kind,
              config_.interface.name, to_string(destination),
              is_local ? "it is an address of this host, whose frames no NIC carries"
                       : (done ? "the kernel routes it elsewhere"
                               : std::strerror(done.error().sys_errno)),
              to_string(destination), config_.interface.name);
  }
  return std::nullopt;
}

HostTables::Neighbour HostTables::neighbour(IpAddress next_hop) {
  ndmsg fixed{};
  fixed.ndm_family = family_of(next_hop);
  fixed.ndm_ifindex = static_cast<int>(config_.interface.index);
  netlink::NetlinkRequest request(RTM_GETNEIGH, 0, fixed);
  put(request, NDA_DST, next_hop);
  Neighbour out;
  // Refused with ENOENT where there is no entry.
  static_cast<void>(kernel_.query(request, [&](const netlink::Message& message) {
    constexpr unsigned kKnown =
        NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP;
    constexpr unsigned kConfirmed = NUD_REACHABLE | NUD_PERMANENT | NUD_NOARP;
    const unsigned state = message.fixed<ndmsg>().ndm_state;
    const auto mac = message.attributes<ndmsg>().find(NDA_LLADDR);
    if ((state & kKnown) == 0 || !mac || mac->size() != sizeof(MacAddress)) return;
    out.mac = netlink::read_as<MacAddress>(*mac);
    out.is_known = is_station(out.mac);
    out.is_confirmed = (state & kConfirmed) != 0;
  }));
  return out;
}

void HostTables::make_kernel_resolve(IpAddress destination) {
  SocketAddress to = to_socket_address({destination, kDiscardPort});
  if (destination.is_link_local_v6())
    reinterpret_cast<sockaddr_in6*>(to.get())->sin6_scope_id = config_.interface.index;
  ::sendto(resolver_.get(), nullptr, 0, MSG_DONTWAIT, to.get(), to.size_bytes);
}

void HostTables::look_at_interface() {
  const auto read = read_interface(kernel_, config_.interface.index);
  if (!read) return;  // Tried again.
  const auto& now = *read;
  if (!now) return lose(LinkState::kGone, "was removed");
  if (config_.program_id != 0 && now->program_id != config_.program_id)
    return lose(LinkState::kDetached,
                now->program_id == 0 ? "has lost its XDP program" : "has another XDP program");
  if (now->mtu_bytes < config_.mtu_bytes && now->mtu_bytes != told_mtu_bytes_)
    log::warn(
        "{} {}: its MTU is {} now, mtu_bytes = {} in the config: larger packets are lost; "
        "run: ip link set {} mtu {}",
        config_.kind, now->name, now->mtu_bytes, config_.mtu_bytes, now->name, config_.mtu_bytes);
  told_mtu_bytes_ = now->mtu_bytes;
  const std::uint32_t queues = receive_queues(now->name);
  if (config_.queues != 0 && queues > config_.queues && queues != told_queues_)
    log::warn(
        "xdp {}: it has {} queues now, ztcp has sockets for {}: frames of the others pass to the "
        "kernel, which resets their connections; run: ethtool -L {} combined {}",
        now->name, queues, config_.queues, now->name, config_.queues);
  told_queues_ = queues;
  state_.store(now->is_up && now->has_carrier ? LinkState::kUp : LinkState::kDown,
               std::memory_order_relaxed);
}

void HostTables::lose(LinkState state, const std::string& what) {
  log::warn("{} {}: the interface {}", config_.kind, config_.interface.name, what);
  state_.store(state, std::memory_order_relaxed);
}

}  // namespace ztcp::link::xdp
