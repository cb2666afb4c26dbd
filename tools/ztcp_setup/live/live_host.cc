// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The kernel of a LiveHost: values, mounts, programs, devices and the network.
#include "tools/ztcp_setup/live/live_host.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "config/machine/readings.h"
#include "tools/ztcp_setup/live/ethtool.h"
#include "tools/ztcp_setup/live/link_change.h"
#include "tools/ztcp_setup/live/link_read.h"

namespace ztcp::setup {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::array kProgramFolders = {"/usr/sbin", "/usr/bin", "/sbin", "/bin"};
// The nft ruleset of a host with many containers has some MiB.
constexpr std::size_t kLongestOutput = 16U << 20;
constexpr std::chrono::seconds kLastSeconds{2};  // For a killed program.

std::string program_path(const std::string& name) {
  if (name.starts_with('/')) return ::access(name.c_str(), X_OK) == 0 ? name : "";
  for (const char* folder : kProgramFolders) {
    std::string path = fmt::format("{}/{}", folder, name);
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

// In a forked child: default signal handling, and a session apart from the terminal's.
void become_apart() {
  ::setsid();
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Reads a child's output until it closes its end or time is up.
std::string read_until(int fd, Clock::time_point deadline, bool& timed_out) {
  std::string output;
  std::array<char, 4096> buffer;
  for (;;) {
    pollfd ready{fd, POLLIN, 0};
    const int count = ::poll(&ready, 1, milliseconds_until(deadline));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 && Clock::now() >= deadline) {
      timed_out = true;
      return output;
    }
    if (count <= 0) continue;
    const ssize_t size = ::read(fd, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return output;
    output.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Whether it ended before the deadline. Does not reap it.
bool ends_until(pid_t child, Clock::time_point deadline) {
  for (;;) {
    siginfo_t ended{};
    const int asked =
        ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT);
    if (asked == 0 && ended.si_pid == child) return true;
    if ((asked != 0 && errno != EINTR) || Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(milliseconds{5});
  }
}

// The last part of a program's output.
std::string end_of(int file) {
  const off_t size = ::lseek(file, 0, SEEK_END);
  const off_t first = std::max<off_t>(size - static_cast<off_t>(kLongestOutput), 0);
  std::string text(size > 0 ? static_cast<std::size_t>(size - first) : 0, '\0');
  const ssize_t count = ::pread(file, text.data(), text.size(), first);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

// Files below /proc/sys/net of an interface that differ from a new interface's.
std::vector<std::pair<std::string, std::string>> sysctls_of(config::Machine& machine,
                                                            const std::string& link) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const char* family : {"ipv4", "ipv6"}) {
    const std::string folder = fmt::format("/proc/sys/net/{}/conf/", family);
    for (const std::string& name : machine.list(folder + link)) {
      // The link's own MTU; restored with the link.
      if (name == "mtu") continue;
      const auto value = machine.read_value(folder + link + "/" + name);
      const auto usual = machine.read_value(folder + "default/" + name);
      if (value && usual && *value != *usual)
        found.emplace_back(folder + link + "/" + name, *value);
    }
  }
  return found;
}

void add_sysctls(config::Machine& machine, InterfaceState& state) {
  state.sysctls = sysctls_of(machine, state.name);
  for (InterfaceState& child : state.children) add_sysctls(machine, child);
}

}  // namespace

LiveHost::LiveHost(Purpose purpose, const std::string& root)
    : purpose_(purpose), base_(root == "/" ? "" : root), machine_(base_), paths_(root) {}

Result<config::Network, config::Problem> LiveHost::network() { return config::read_network(); }

bool LiveHost::has_program(const std::string& name) { return !program_path(name).empty(); }

Status LiveHost::write_value(const std::string& path, const std::string& value, Seconds limit) {
  // In a child, because a write to sysfs can block for ever (an unbind waits for the device's
  // users), and not even a signal interrupts it.
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return fail_errno("pipe");
  const std::string file = at(path);
  const pid_t child = ::fork();
  if (child < 0) {
    const int why = errno;
    ::close(pipe[0]);
    ::close(pipe[1]);
    return fail(Errc::kSystem, "fork", why);
  }
  if (child == 0) {
    become_apart();
    int why = 0;
    const int fd = ::open(file.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
    // One write call: sysfs treats each as a separate value.
    if (fd < 0 || ::write(fd, value.data(), value.size()) < 0) why = errno;
    static_cast<void>(!::write(pipe[1], &why, sizeof(why)));
    ::_exit(0);
  }
  ::close(pipe[1]);
  const Descriptor end(pipe[0]);
  bool timed_out = false;
  const std::string answer = read_until(end.get(), Clock::now() + limit, timed_out);
  if (timed_out) {
    ::kill(child, SIGKILL);
    // The child ends when the kernel releases it; init reaps it after this process.
    return fail(Errc::kTimedOut, "write");
  }
  wait_for(child);
  int why = EIO;
  if (answer.size() == sizeof(why)) std::memcpy(&why, answer.data(), sizeof(why));
  if (why != 0) return fail(Errc::kSystem, "write", why);
  return {};
}

Result<ProgramResult> LiveHost::run(const std::vector<std::string>& argv, Seconds limit) {
  const std::string program = argv.empty() ? "" : program_path(argv.front());
  if (program.empty()) return ProgramResult{127, false, "no such program"};
  // No pipe: a program that outlives this process must still be able to write.
  const Descriptor said(::memfd_create("output", MFD_CLOEXEC));
  if (said.get() < 0) return fail_errno("memfd_create");
  std::vector<char*> arguments;
  arguments.reserve(argv.size() + 1);
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  // LVM's programs complain about inherited descriptors, and this run's lock is one.
  std::array<const char*, 5> environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C",
                                            "HOME=/root", "LVM_SUPPRESS_FD_WARNINGS=1", nullptr};
  const pid_t child = ::fork();
  if (child < 0) return fail_errno("fork");
  if (child == 0) {
    become_apart();
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, 0);
    ::dup2(said.get(), 1);
    ::dup2(said.get(), 2);
    ::execve(program.c_str(), arguments.data(), const_cast<char* const*>(environment.data()));
    ::_exit(127);
  }
  ProgramResult result;
  result.timed_out = !ends_until(child, Clock::now() + limit);
  if (result.timed_out) {
    // It has a session of its own: its children are killed with it.
    ::kill(-child, SIGKILL);
    // In the kernel it can outlast even SIGKILL (a module that does not load); init reaps it then.
    result.exit_status =
        ends_until(child, Clock::now() + kLastSeconds) ? wait_for(child) : 128 + SIGKILL;
  } else {
    result.exit_status = wait_for(child);
  }
  result.output = end_of(said.get());
  return result;
}

Status LiveHost::mount(const std::string& folder, const std::string& type,
                       const std::string& options) {
  const FolderEntry place = ZTCP_TRY(paths_.find(folder));
  const Descriptor target(::openat(place.folder.get(), place.name.c_str(),
                                   O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (target.get() < 0) return fail_errno("open");
  if (::mount(type.c_str(), fmt::format("/proc/self/fd/{}", target.get()).c_str(), type.c_str(),
              MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    return fail_errno("mount");
  return {};
}

Status LiveHost::unmount(const std::string& folder) {
  if (::umount2(at(folder).c_str(), UMOUNT_NOFOLLOW) != 0) return fail_errno("umount");
  return {};
}

std::optional<Holder> LiveHost::holder_in_sight(const std::string& node) {
  for (const std::string& name : machine_.list("/proc")) {
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc{} || end != name.data() + name.size()) continue;
    const std::string folder = fmt::format("/proc/{}/fd", pid);
    for (const std::string& one : machine_.list(folder))
      if (link_target(folder + "/" + one) == node)
        return Holder{pid,
                      config::read_line(machine_, fmt::format("/proc/{}/comm", pid)).value_or("?")};
  }
  return std::nullopt;
}

std::optional<Holder> LiveHost::holder_of(const std::string& node) {
  if (auto holder = holder_in_sight(node)) return holder;
  // A group can be opened only once. A failing open is the one sure sign of a user, but a read-only
  // command must not try: a job that starts at that moment would be refused.
  if (purpose_ == Purpose::kInspect) return std::nullopt;
  const Descriptor open(::open(at(node).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (open.get() >= 0 || errno != EBUSY) return std::nullopt;
  return Holder{};
}

Result<netlink::Session*> LiveHost::netlink() {
  if (!netlink_) netlink_ = ZTCP_TRY(netlink::Session::open());
  return &*netlink_;
}

Result<std::optional<InterfaceState>> LiveHost::link(const std::string& name) {
  netlink::Session* kernel = ZTCP_TRY(netlink());
  std::optional<InterfaceState> state = ZTCP_TRY(read_link(*kernel, name));
  if (state) add_sysctls(machine_, *state);
  return state;
}
Status LiveHost::set_up(const std::string& link, bool up) {
  return set_link_up(*ZTCP_TRY(netlink()), link, up);
}
Status LiveHost::rename_link(const std::string& from, const std::string& to) {
  return setup::rename_link(*ZTCP_TRY(netlink()), from, to);
}
Status LiveHost::set_link(const std::string& link, const InterfaceState& state) {
  return setup::set_link(*ZTCP_TRY(netlink()), link, state);
}
Status LiveHost::set_master(const std::string& link, const std::string& master) {
  return set_link_master(*ZTCP_TRY(netlink()), link, master);
}
Status LiveHost::add_child(const std::string& parent, const InterfaceState& child) {
  return add_child_link(*ZTCP_TRY(netlink()), parent, child);
}
Status LiveHost::add_item(const std::string& link, const NetworkItem& item) {
  return add_link_item(*ZTCP_TRY(netlink()), link, item);
}
Result<std::vector<SettingGroup>> LiveHost::settings(const std::string& link) {
  return read_settings(link);
}
std::optional<std::uint32_t> LiveHost::most_queues(const std::string& link) {
  return read_most_queues(link);
}
Status LiveHost::set_settings(const std::string& link, const SettingGroup& wanted) {
  return write_settings(link, wanted);
}

void LiveHost::pause(milliseconds time) { std::this_thread::sleep_for(time); }

}  // namespace ztcp::setup
