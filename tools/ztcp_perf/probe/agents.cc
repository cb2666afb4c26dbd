// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/agents.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "tools/common/printable.h"
#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/interrupt.h"

namespace ztcp::perf::probe {
namespace {

using namespace std::chrono_literals;

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe: {} (see ulimit -n)", std::strerror(errno));
  return {ends[0], ends[1]};
}

void make_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

// In the child: never returns.
[[noreturn]] void become(std::vector<std::string>& command, int in, int out, int errors,
                         pid_t parent) {
  // A group of its own: Ctrl-C at a terminal is for the coordinator alone, and an ssh wrapper is
  // ended with all its children.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(126);
  signal(SIGPIPE, SIG_DFL);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  std::vector<char*> raw;
  raw.reserve(command.size() + 1);
  for (std::string& word : command) raw.push_back(word.data());
  raw.push_back(nullptr);
  execvp(raw[0], raw.data());
  std::fprintf(stderr, "cannot run %s: %s\n", raw[0], std::strerror(errno));
  _exit(127);
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

}  // namespace

void Agents::start(std::size_t host, std::vector<std::string> command) {
  Channel& channel = channels_[host];
  const Pipe in = make_pipe();
  const Pipe out = make_pipe();
  const Pipe errors = make_pipe();
  const pid_t self = getpid();
  const pid_t pid = fork();
  if (pid == 0) become(command, in.read_end, out.write_end, errors.write_end, self);
  for (const int end : {in.read_end, out.write_end, errors.write_end}) close(end);
  for (const int end : {in.write_end, out.read_end, errors.read_end}) make_nonblocking(end);
  channel.in = in.write_end;
  channel.out = out.read_end;
  channel.errors = errors.read_end;
  channel.pid = pid;
  if (pid < 0) {
    lose(host, fmt::format("cannot start a process: {} (see ulimit -u)", std::strerror(errno)));
    return;
  }
  setpgid(pid, pid);  // Also here: whichever process runs first.
}

void Agents::attach(std::size_t host, int fd) {
  make_nonblocking(fd);
  channels_[host].in = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  channels_[host].out = fd;
}

void Agents::send(std::size_t host, const Json& json) {
  Channel& channel = channels_[host];
  if (!channel.is_open()) return;
  const std::string line = to_line(json);
  // A pipe holds many such lines: one that is full belongs to an agent that hangs. The signal of a
  // closed pipe is ignored (interrupt.h).
  if (write(channel.in, line.data(), line.size()) != static_cast<ssize_t>(line.size()) &&
      errno != EPIPE && errno != ECONNRESET)
    lose(host, fmt::format("does not read its requests: {}", std::strerror(errno)));
}

std::optional<Agents::Event> Agents::wait(Clock::time_point until) {
  std::vector<pollfd> watched;
  std::vector<std::pair<std::size_t, bool>> sources;  // The host, and whether it is its output.
  while (events_.empty()) {
    throw_if_interrupted();
    const auto left = until - Clock::now();
    if (left <= 0s) return std::nullopt;
    watched.clear();
    sources.clear();
    for (std::size_t host = 0; host < channels_.size(); ++host) {
      const Channel& channel = channels_[host];
      if (channel.out >= 0) {
        watched.push_back({channel.out, POLLIN, 0});
        sources.emplace_back(host, true);
      }
      if (channel.errors >= 0) {
        watched.push_back({channel.errors, POLLIN, 0});
        sources.emplace_back(host, false);
      }
    }
    // Bounded, for a signal that comes just before.
    const auto limit = std::min<Clock::duration>(left, 200ms);
    const auto limit_ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count() + 1;
    if (poll(watched.data(), watched.size(), static_cast<int>(limit_ms)) <= 0) continue;
    for (std::size_t i = 0; i < watched.size(); ++i) {
      if (watched[i].revents == 0 || sources[i].second) continue;
      read_errors(channels_[sources[i].first]);
    }
    for (std::size_t i = 0; i < watched.size(); ++i)
      if (watched[i].revents != 0 && sources[i].second) read_lines(sources[i].first);
  }
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void Agents::read_lines(std::size_t host) {
  Channel& channel = channels_[host];
  std::array<char, 16384> chunk;
  const ssize_t size = read(channel.out, chunk.data(), chunk.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) return lose(host, "");
  channel.inbox.append(chunk.data(), static_cast<std::size_t>(size));
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = channel.inbox.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const std::string_view line = std::string_view(channel.inbox).substr(begin, end - begin);
    if (auto json = parse_line(line)) {
      events_.push_back({host, std::move(json), {}});
    } else if (!line.empty()) {
      channel.last_words = tools::printable(line, 200);
    }
  }
  channel.inbox.erase(0, begin);
  if (channel.inbox.size() > kLongestLine) lose(host, "sends something else than a probe's lines");
}

void Agents::read_errors(Channel& channel) {
  std::array<char, 4096> chunk;
  const ssize_t size = read(channel.errors, chunk.data(), chunk.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    close(std::exchange(channel.errors, -1));
    return;
  }
  channel.error_inbox.append(chunk.data(), static_cast<std::size_t>(size));
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = channel.error_inbox.find('\n', begin)) != std::string::npos;
       begin = end + 1)
    if (end > begin)
      channel.last_words =
          tools::printable(std::string_view(channel.error_inbox).substr(begin, end - begin), 200);
  channel.error_inbox.erase(0, begin);
  if (channel.error_inbox.size() > kLongestLine) channel.error_inbox.clear();
}

// An empty reason: it ended by itself.
void Agents::lose(std::size_t host, const std::string& reason) {
  Channel& channel = channels_[host];
  std::string text = reason;
  if (text.empty()) {
    text = "its agent has ended";
    if (channel.errors >= 0) read_errors(channel);
    // A process closes its output just before it ends.
    int status = 0;
    const auto until = Clock::now() + 500ms;
    while (channel.pid > 0 && Clock::now() < until) {
      if (waitpid(channel.pid, &status, WNOHANG) == channel.pid) {
        channel.pid = -1;
        text += ": " + describe_end(status);
        break;
      }
      std::this_thread::sleep_for(5ms);
    }
    if (channel.errors >= 0) read_errors(channel);
    if (!channel.last_words.empty()) text += fmt::format(": \"{}\"", channel.last_words);
  }
  end(channel);
  events_.push_back({host, std::nullopt, std::move(text)});
}

void Agents::close_all(Channel& channel) {
  for (int* fd : {&channel.in, &channel.out, &channel.errors})
    if (*fd >= 0) close(std::exchange(*fd, -1));
}

void Agents::end(Channel& channel) {
  close_all(channel);
  if (channel.pid > 0) kill(-channel.pid, SIGTERM);
}

void Agents::drop(std::size_t host) {
  end(channels_[host]);
  std::erase_if(events_, [host](const Event& event) { return event.host == host; });
}

bool Agents::reap(Clock::time_point until) {
  while (true) {
    bool is_any_left = false;
    for (Channel& channel : channels_) {
      if (channel.pid <= 0) continue;
      if (waitpid(channel.pid, nullptr, WNOHANG) == channel.pid) {
        channel.pid = -1;
      } else {
        is_any_left = true;
      }
    }
    if (!is_any_left) return true;
    if (Clock::now() > until) return false;
    std::this_thread::sleep_for(5ms);
  }
}

void Agents::signal_all(int signal) const {
  for (const Channel& channel : channels_)
    if (channel.pid > 0) kill(-channel.pid, signal);
}

Agents::~Agents() {
  for (Channel& channel : channels_) close_all(channel);
  if (reap(Clock::now() + 1s)) return;
  signal_all(SIGTERM);
  if (reap(Clock::now() + 1s)) return;
  signal_all(SIGKILL);
  reap(Clock::now() + 1s);
}

}  // namespace ztcp::perf::probe
