// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// An AF_XDP link on one end of a veth, in a network namespace that this test makes for itself;
// frames enter and are read at the other end through a packet socket.
#include "transport/link/xdp_link.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/fd.h"
#include "core/netlink.h"
#include "tests/support/log_capture.h"
#include "tests/unit/link/frames.h"
#include "tests/unit/link/kept.h"
#include "tests/unit/link/within_seconds.h"
#include "transport/link/xdp/attachment.h"
#include "transport/link/xdp/bpf.h"
#include "transport/link/xdp/interface.h"
#include "transport/link/xdp/program.h"
#include "transport/wire/arp.h"
#include "transport/wire/byte_order.h"
#include "transport/wire/ethernet.h"

namespace ztcp::link {
namespace {

using test::flatten;
using test::within_seconds;
using testing::HasSubstr;

constexpr Ipv4Address kOwn{0x0a630801};   // 10.99.8.1
constexpr Ipv4Address kPeer{0x0a630802};  // 10.99.8.2
constexpr MacAddress kPeerMac{{0x02, 0, 0, 0, 0, 0x62}};
constexpr std::uint16_t kListenPort = 7471;

bool run(const std::string& command) { return std::system((command + " 2>&1").c_str()) == 0; }

std::vector<std::byte> segment(std::uint32_t seed, std::size_t frame_bytes,
                               std::uint16_t to_port = kListenPort) {
  std::vector<std::byte> frame(frame_bytes);
  for (std::size_t i = 0; i < frame_bytes; ++i) frame[i] = test::pattern(seed, i);
  std::byte* const p = frame.data();
  std::memset(p, 0xff, 6);
  wire::store_be16(p + 12, 0x0800);
  wire::store_u8(p + 14, 0x45);
  wire::store_be16(p + 16, static_cast<std::uint16_t>(frame_bytes - 14));
  wire::store_be16(p + 20, 0x4000);
  wire::store_u8(p + 23, 6);
  wire::store_be32(p + 30, kOwn.value);
  wire::store_be16(p + 36, to_port);
  return frame;
}

class XdpLinkTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // The whole test process moves: nothing of the machine's own network is touched.
    namespace_made_ = unshare(CLONE_NEWNET) == 0;
  }

  void SetUp() override {
    if (!namespace_made_) GTEST_SKIP() << "a network namespace of our own needs root";
    const Fd probe(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
    if (!probe) GTEST_SKIP() << "no AF_XDP here: " << std::strerror(errno);
    const std::string queues =
        "numrxqueues " + std::to_string(queues_) + " numtxqueues " + std::to_string(queues_);
    if (!run("ip link add zx0 " + queues + " type veth peer name zx1 " + queues))
      GTEST_SKIP() << "no ip, or no veth";
    ASSERT_TRUE(run("ip link set zx1 address 02:00:00:00:00:62 up"));
    ASSERT_TRUE(run("ip link set zx0 up"));
    ASSERT_TRUE(run("ip address add 10.99.8.1/24 dev zx0"));
    packet_ = Fd(socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_IP)));
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_IP);
    address.sll_ifindex = static_cast<int>(if_nametoindex("zx1"));
    ASSERT_EQ(bind(packet_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  void TearDown() override {
    links_.clear();
    if (namespace_made_) run("ip link delete zx0 >/dev/null");
  }

  static XdpConfig config(std::uint16_t mtu_bytes = 1500) {
    XdpConfig out;
    out.interface = "zx0";
    out.address = kOwn;
    out.listen_port = kListenPort;
    out.first_port = 61000;
    out.last_port = 65535;
    out.mtu_bytes = mtu_bytes;
    return out;
  }
  void open(const XdpConfig& wanted) {
    if (wanted.mtu_bytes != 1500) {
      const std::string mtu = std::to_string(wanted.mtu_bytes);
      ASSERT_TRUE(run("ip link set zx1 mtu " + mtu) && run("ip link set zx0 mtu " + mtu));
    }
    auto opened = open_xdp(wanted);
    ASSERT_TRUE(opened) << opened.error().where << " " << opened.error().sys_errno;
    links_ = std::move(*opened);
    ASSERT_TRUE(within_seconds(5, [&] { return link().is_up(); }));
  }
  // The log of an attempt that fails.
  std::string refusal(const XdpConfig& wanted) {
    const ztcp::test::LogCapture log;
    const auto opened = open_xdp(wanted);
    EXPECT_FALSE(opened);
    return log.warned();
  }

  Link& link() { return *links_.front(); }
  void inject(const std::vector<std::byte>& frame) {
    ASSERT_EQ(::send(packet_.get(), frame.data(), frame.size(), 0),
              static_cast<ssize_t>(frame.size()))
        << std::strerror(errno);
  }
  std::vector<std::byte> receive_one() {
    RxFrame frame;
    if (!within_seconds(5, [&] { return link().receive({&frame, 1}) == 1; })) return {};
    auto bytes = flatten(frame);
    link().release({&frame, 1});
    return bytes;
  }
  // Leaves out what the kernel itself sends.
  std::vector<std::byte> sent_one() {
    std::vector<std::byte> bytes(10000);
    ssize_t size = -1;
    within_seconds(5, [&] {
      size = ::recv(packet_.get(), bytes.data(), bytes.size(), 0);
      return size > 23 && wire::load_u8(bytes.data() + 23) == 6;
    });
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return bytes;
  }

  std::vector<std::unique_ptr<Link>> links_;
  unsigned queues_ = 1;
  std::uint16_t processes_ = 1;
  Fd packet_;

 private:
  static inline bool namespace_made_ = false;
};

// A frame out of `bytes`, in `fragments` pieces; both live as long as it is used.
struct Outgoing {
  Outgoing(const std::vector<std::byte>& whole, std::size_t fragments) : bytes(whole) {
    constexpr std::size_t kHeaders = 54;
    std::copy_n(bytes.begin(), kHeaders, frame.header.begin());
    frame.header_bytes = kHeaders;
    frame.l2_bytes = 14;
    frame.l3_bytes = 20;
    frame.payload_bytes = static_cast<std::uint32_t>(bytes.size() - kHeaders);
    std::size_t at = kHeaders;
    for (std::size_t i = 0; i < fragments; ++i) {
      const std::size_t size =
          i + 1 == fragments ? bytes.size() - at : frame.payload_bytes / fragments;
      frame.fragments[i] = {bytes.data() + at, static_cast<std::uint32_t>(size), kUnmapped};
      at += size;
    }
    frame.fragment_count = static_cast<std::uint8_t>(fragments);
  }
  std::vector<std::byte> bytes;
  TxFrame frame;
};

struct Mode {
  const char* name;
  bool native;
  std::uint16_t mtu_bytes;
};

class XdpLinkModes : public XdpLinkTest, public testing::WithParamInterface<Mode> {
 protected:
  void open_mode() {
    XdpConfig wanted = config(GetParam().mtu_bytes);
    wanted.may_be_native = GetParam().native;
    open(wanted);
  }
};

TEST_P(XdpLinkModes, EveryByteArrivesBothWays) {
  ASSERT_NO_FATAL_FAILURE(open_mode());
  EXPECT_THAT(link().describe(),
              HasSubstr(GetParam().native ? "xdp zx0, 1 queue, native mode" : "generic mode"));
  const std::size_t largest = GetParam().mtu_bytes + 14U;
  std::uint32_t seed = 1;
  for (const std::size_t size : {std::size_t{60}, std::size_t{1000}, largest - 1, largest}) {
    const auto frame = segment(++seed, size);
    inject(frame);
    EXPECT_EQ(receive_one(), frame) << size;
    Outgoing out(segment(++seed, size), size > 200 ? 3 : 1);
    ASSERT_EQ(link().transmit({&out.frame, 1}), 1U);
    EXPECT_EQ(sent_one(), out.bytes) << size;
  }
}

// More than the rings hold.
TEST_P(XdpLinkModes, ThousandsOfFramesArriveInOrder) {
  ASSERT_NO_FATAL_FAILURE(open_mode());
  for (std::uint32_t i = 0; i < 10000; ++i) {
    const auto frame = segment(i, 80);
    inject(frame);
    ASSERT_EQ(receive_one(), frame) << i;
  }
  for (std::uint32_t i = 0; i < 5000; ++i) {
    Outgoing out(segment(i, 80), 1);
    ASSERT_TRUE(within_seconds(5, [&] { return link().transmit({&out.frame, 1}) == 1; })) << i;
    ASSERT_EQ(sent_one(), out.bytes) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, XdpLinkModes,
                         testing::Values(Mode{"native", true, 1500}, Mode{"generic", false, 1500},
                                         Mode{"native_3500", true, 3500},
                                         Mode{"generic_3500", false, 3500},
                                         Mode{"native_9000", true, 9000}),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_F(XdpLinkTest, ReceivesWithAllFramesKept) {
  ASSERT_NO_FATAL_FAILURE(open(config()));
  std::uint32_t seed = 0;
  test::expect_it_receives_with_all_kept(link(), [&] { inject(segment(++seed, 100)); });
}

TEST_F(XdpLinkTest, AsksTheKernelForANeighbour) {
  ASSERT_TRUE(run("ip neighbour add 10.99.8.2 lladdr 02:00:00:00:00:62 dev zx0"));
  ASSERT_NO_FATAL_FAILURE(open(config()));
  TxFrame request;
  request.l2_bytes = 14;
  request.header_bytes =
      static_cast<std::uint16_t>(14 + wire::emit_arp({.operation = wire::ArpOperation::kRequest,
                                                      .sender_mac = link().capabilities().mac,
                                                      .sender_ip = kOwn,
                                                      .target_mac = {},
                                                      .target_ip = kPeer},
                                                     request.header.data() + 14));
  ASSERT_EQ(link().transmit({&request, 1}), 1U);
  const auto frame = receive_one();
  ASSERT_GE(frame.size(), 42U);
  const auto answer = wire::parse_arp(std::span(frame).subspan(14));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->operation, wire::ArpOperation::kReply);
  EXPECT_EQ(answer->sender_ip, kPeer);
  EXPECT_EQ(answer->sender_mac, kPeerMac);
  EXPECT_EQ(answer->target_mac, link().capabilities().mac);
}

TEST_F(XdpLinkTest, TellsWhatHappensToItsInterface) {
  ASSERT_NO_FATAL_FAILURE(open(config()));
  ASSERT_TRUE(run("ip link set zx0 down"));
  EXPECT_TRUE(within_seconds(5, [&] { return link().state() == LinkState::kDown; }));
  // As by a cable that is unplugged.
  Outgoing out(segment(1, 100), 1);
  EXPECT_EQ(link().transmit({&out.frame, 1}), 1U);
  ASSERT_TRUE(run("ip link set zx0 up"));
  EXPECT_TRUE(within_seconds(5, [&] { return link().is_up(); }));
  const auto frame = segment(2, 100);
  inject(frame);
  EXPECT_EQ(receive_one(), frame);
  ASSERT_TRUE(run("ip link set zx0 down && ip link set zx0 name zx9 && ip link set zx9 up"));
  EXPECT_TRUE(within_seconds(5, [&] { return link().is_up(); })) << "a name does not matter";
  const ztcp::test::LogCapture log;
  ASSERT_TRUE(run("ip link set zx9 mtu 1400"));
  EXPECT_TRUE(within_seconds(5, [&] {
    return log.warned().find("its MTU is 1400 now, mtu_bytes = 1500 in the config") !=
           std::string::npos;
  })) << log.warned();
  ASSERT_TRUE(run("ip link delete zx1"));
  EXPECT_TRUE(within_seconds(5, [&] { return link().state() == LinkState::kGone; }));
}

TEST_F(XdpLinkTest, LeavesNothingBehind) {
  ASSERT_NO_FATAL_FAILURE(open(config()));
  EXPECT_TRUE(run("ip link show zx0 | grep -q prog/xdp"));
  links_.clear();
  EXPECT_FALSE(run("ip link show zx0 | grep -q prog/xdp"));
}

TEST_F(XdpLinkTest, AnotherProgramIsLeftAloneAndNamed) {
  const auto map = xdp::make_socket_map(1);
  ASSERT_TRUE(map);
  const auto other = xdp::load_program(xdp::assemble({kOwn, 1, 1, 1}, map->get()));
  ASSERT_TRUE(other);
  const auto attached = xdp::attach_program(*other, if_nametoindex("zx0"), 0);
  ASSERT_TRUE(attached);
  EXPECT_THAT(refusal(config()), HasSubstr("the XDP program ztcp_xdp (id "));
  EXPECT_TRUE(run("ip link show zx0 | grep -q prog/xdp"));
}

TEST_F(XdpLinkTest, RefusesInterfacesByName) {
  XdpConfig wanted = config();
  wanted.interface = "zx7";
  EXPECT_THAT(refusal(wanted), HasSubstr("xdp zx7: no such interface"));
  ASSERT_TRUE(run("ip link add zxbr type bridge && ip link set zx0 master zxbr"));
  EXPECT_THAT(refusal(config()), HasSubstr("belongs to the bridge zxbr"));
  wanted.interface = "zxbr";
  EXPECT_THAT(refusal(wanted), HasSubstr("xdp zxbr: it is a bridge"));
  ASSERT_TRUE(run("ip link set zx0 nomaster && ip link delete zxbr"));
  if (run("ip link add link zx0 name zxvlan type vlan id 5 >/dev/null")) {
    wanted.interface = "zxvlan";
    EXPECT_THAT(refusal(wanted), HasSubstr("xdp zxvlan: it is a vlan"));
  }
  wanted = config(9000);
  EXPECT_THAT(refusal(wanted), HasSubstr("its MTU is 1500, mtu_bytes = 9000 in the config"));
  wanted = config();
  wanted.address = kPeer;
  EXPECT_THAT(refusal(wanted), HasSubstr("is it an address of this interface?"));
}

TEST_F(XdpLinkTest, MissingRightsAreNamed) {
  if (::geteuid() != 0) GTEST_SKIP() << "root has rights to give up";
  ASSERT_EQ(::seteuid(65534), 0);
  const std::string said = refusal(config());
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_THAT(said, HasSubstr("needs CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW"));
}

TEST_F(XdpLinkTest, LockedMemoryLimitIsNamedBeforeAnyMemoryIsTaken) {
  if (::geteuid() != 0) GTEST_SKIP() << "root has rights to give up";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &before), 0);
  const rlimit low{1U << 20U, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &low), 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  ASSERT_EQ(::syscall(SYS_capget, &header, data), 0);
  data[0].effective &= ~(1U << CAP_IPC_LOCK);  // It lifts the limit.
  ASSERT_EQ(::syscall(SYS_capset, &header, data), 0);
  const std::string said = refusal(config());
  data[0].effective = data[0].permitted;
  ASSERT_EQ(::syscall(SYS_capset, &header, data), 0);
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &before), 0);
  EXPECT_THAT(said, HasSubstr("1 queue locks 10240 KiB of memory, and this process may lock 1024 "
                              "KiB (ulimit -l): run ulimit -l unlimited"));
}

TEST_F(XdpLinkTest, DroppedFramesAreCounted) {
  XdpConfig wanted = config();
  wanted.rx_frames = 512;
  ASSERT_NO_FATAL_FAILURE(open(wanted));
  link().transmit_room(TimePoint{} + std::chrono::hours(1));
  EXPECT_EQ(link().counters().rx_dropped_no_memory, 0U);
  // More than there are chunks, and the link does not look at them.
  for (std::uint32_t i = 0; i < 600; ++i) inject(segment(i, 100));
  TimePoint now = TimePoint{} + std::chrono::hours(2);
  EXPECT_TRUE(within_seconds(5, [&] {
    link().transmit_room(now += std::chrono::seconds(1));
    return link().counters().rx_dropped_no_memory + link().counters().nic.rx_missed >= 88;
  }));
  EXPECT_GT(link().counters().nic.rx_no_buffers + link().counters().nic.rx_missed, 0U);
}

// A program that was pinned before, as by set-up.
class PinnedXdp : public XdpLinkTest {
 protected:
  static void SetUpTestSuite() {
    XdpLinkTest::SetUpTestSuite();
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return;
    char folder[] = "/tmp/ztcp-bpf.XXXXXX";
    if (::mkdtemp(folder) == nullptr) return;
    mounted_ = folder;
    if (::mount("bpf", folder, "bpf", 0, nullptr) != 0) mounted_.clear();
  }
  static void TearDownTestSuite() {
    if (mounted_.empty()) return;
    ::umount(mounted_.c_str());
    ::rmdir(mounted_.c_str());
  }
  void SetUp() override {
    XdpLinkTest::SetUp();
    if (IsSkipped()) return;
    if (mounted_.empty()) GTEST_SKIP() << "no file system of type bpf can be mounted";
    folder_ = mounted_ + "/zx0";
    ASSERT_EQ(::mkdir(folder_.c_str(), 0755), 0);
    ASSERT_TRUE(xdp::attach_and_pin(interface(), steering(), folder_));
  }
  void TearDown() override {
    links_.clear();
    if (!folder_.empty()) {
      EXPECT_TRUE(xdp::remove_pinned(folder_));
      ::rmdir(folder_.c_str());
    }
    XdpLinkTest::TearDown();
  }

  static xdp::InterfaceFacts interface() {
    auto kernel = netlink::Session::open();
    return **xdp::read_interface(*kernel, std::string("zx0"));
  }
  xdp::Steering steering() const { return {kOwn, kListenPort, 61000, 65535, processes_}; }
  XdpConfig pinned() const {
    XdpConfig out = config();
    out.pin_folder = folder_;
    return out;
  }
  void give_to(uid_t user) const {
    for (const char* file : {"/sockets", "/program", "/steering"})
      ASSERT_EQ(::chown((folder_ + file).c_str(), user, user), 0);
  }

  std::string folder_;

 private:
  static inline std::string mounted_;
};

TEST_F(PinnedXdp, IsUsedAndStaysBehind) {
  ASSERT_TRUE(run("ip link show zx0 | grep -q prog/xdp"));
  for (std::uint32_t job = 0; job < 2; ++job) {
    ASSERT_NO_FATAL_FAILURE(open(pinned()));
    EXPECT_THAT(link().describe(), HasSubstr("native mode"));
    const auto frame = segment(job, 100);
    inject(frame);
    EXPECT_EQ(receive_one(), frame);
    links_.clear();
    EXPECT_TRUE(run("ip link show zx0 | grep -q prog/xdp"));
  }
  ASSERT_TRUE(xdp::remove_pinned(folder_));
  EXPECT_FALSE(run("ip link show zx0 | grep -q prog/xdp"));
}

// No CAP_BPF and no CAP_NET_ADMIN: only that for raw sockets, and access to the files.
TEST_F(PinnedXdp, OrdinaryUserWithRawSocketsReceives) {
  constexpr uid_t kUser = 65534;
  give_to(kUser);
  const auto frame = segment(7, 100);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_KEEPCAPS, 1);
    if (::setresgid(kUser, kUser, kUser) != 0 || ::setresuid(kUser, kUser, kUser) != 0) ::_exit(2);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    data[0].effective = data[0].permitted = 1U << CAP_NET_RAW;
    if (::syscall(SYS_capset, &header, data) != 0) ::_exit(3);
    const ztcp::test::LogCapture log;
    XdpConfig wanted = pinned();
    wanted.rx_frames = 1024;  // Within the usual limit of locked memory.
    auto opened = open_xdp(wanted);
    if (!opened) {
      std::fputs(log.warned().c_str(), stderr);
      ::_exit(4);
    }
    links_ = std::move(*opened);
    if (!within_seconds(5, [&] { return link().is_up(); })) ::_exit(5);
    ::_exit(receive_one() == frame ? 0 : 6);
  }
  // Until the child is ready the frames pass to the kernel.
  int status = 0;
  ASSERT_TRUE(within_seconds(20, [&] {
    inject(frame);
    return ::waitpid(child, &status, WNOHANG) == child;
  }));
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(PinnedXdp, UserWithoutAccessIsRefusedByName) {
  ASSERT_EQ(::seteuid(65534), 0);
  const std::string said = refusal(pinned());
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_THAT(said, HasSubstr("this user needs access to its files"));
}

TEST_F(PinnedXdp, MoreProcessesThanQueuesAreRefused) {
  XdpConfig wanted = pinned();
  wanted.slot = {.index = 0, .count = 2};
  EXPECT_THAT(refusal(wanted), HasSubstr("it has 1 queue, fewer than processes = 2 in the config; "
                                         "run: ethtool -L zx0 combined 2"));
}

// Two processes share the interface.
class SharedXdp : public PinnedXdp {
 protected:
  void SetUp() override {
    queues_ = 4;
    processes_ = 2;
    PinnedXdp::SetUp();
  }
  XdpConfig of_slot(std::uint16_t index) const {
    XdpConfig out = pinned();
    out.slot = {.index = index, .count = 2};
    return out;
  }
};

TEST_F(SharedXdp, EachSlotReceivesFromItsQueues) {
  auto first = open_xdp(of_slot(0));
  ASSERT_TRUE(first);
  for (int process = 0; process < 2; ++process) {  // The second one takes the place of the first.
    links_.clear();
    ASSERT_NO_FATAL_FAILURE(open(of_slot(1)));
    EXPECT_THAT(link().describe(),
                HasSubstr("xdp zx0, slot 1 of 0-1 (queues 1, 3), 2 queues, native mode"));
    std::array<int, 2> received{};
    for (std::uint32_t i = 0; i < 32; ++i)
      inject(segment(i, 100, static_cast<std::uint16_t>(kListenPort + i % 2)));
    ASSERT_TRUE(within_seconds(5,
                               [&] {
                                 std::array<RxFrame, 8> frames;
                                 for (std::size_t slot = 0; slot < 2; ++slot) {
                                   Link& one = slot == 0 ? *first->front() : link();
                                   const std::size_t count = one.receive(frames);
                                   received[slot] += static_cast<int>(count);
                                   one.release(std::span(frames).first(count));
                                 }
                                 return received[0] + received[1] == 32;
                               }))
        << received[0] << " and " << received[1];
    EXPECT_GT(received[0], 0);
    EXPECT_GT(received[1], 0);
  }
}

TEST_F(SharedXdp, AnotherNumberOfProcessesIsNamed) {
  XdpConfig wanted = of_slot(0);
  wanted.slot.count = 4;
  EXPECT_THAT(refusal(wanted),
              HasSubstr("steers 10.99.8.1 port 7471-7472 and 61000-65535, the config wants "
                        "10.99.8.1 port 7471-7474 and 61000-65535; run ztcp_setup"));
}

TEST_F(SharedXdp, WithoutAPinnedProgramIsRefused) {
  XdpConfig wanted = of_slot(0);
  wanted.pin_folder += "-other";
  EXPECT_THAT(refusal(wanted), HasSubstr("processes share a program that set-up pinned"));
}

TEST_F(PinnedXdp, OtherPortsThanTheConfigsAreNamed) {
  XdpConfig wanted = pinned();
  wanted.last_port = 65000;
  EXPECT_THAT(refusal(wanted), HasSubstr("steers 10.99.8.1 port 7471 and 61000-65535, the config "
                                         "wants 10.99.8.1 port 7471 and 61000-65000"));
}

}  // namespace
}  // namespace ztcp::link
