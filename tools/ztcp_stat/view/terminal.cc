// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/view/terminal.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "tools/common/write_all.h"

namespace ztcp::stat {
namespace {

constexpr char kEnter[] = "\033[?1049h\033[?25l";  // Alternate screen, no cursor.
constexpr char kLeave[] = "\033[0m\033[?25h\033[?1049l";
constexpr int kEndSignals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int kCrashSignals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

std::atomic<int> g_signal{0};
std::atomic<bool> g_is_raw{false};
termios g_before{};  // Written before g_is_raw.

// Async-signal-safe, as make_raw() is.
void give_back() {
  if (!g_is_raw.exchange(false)) return;
  (void)!::write(STDOUT_FILENO, kLeave, sizeof kLeave - 1);
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &g_before);
}

void die_by(int signal) {
  ::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(signal);
}

void on_end(int signal) {
  if (g_signal.exchange(signal) == 0) return;
  give_back();
  die_by(signal);
}

void make_raw() {
  termios raw = g_before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  (void)!::write(STDOUT_FILENO, kEnter, sizeof kEnter - 1);
  g_is_raw.store(true);
}

void install(int signal, void (*handler)(int));

// Ctrl-Z gives the terminal to the shell until the process goes on.
void on_stop(int signal) {
  const int error = errno;
  give_back();
  die_by(signal);
  install(signal, on_stop);
  make_raw();
  errno = error;
}

void on_crash(int signal) {
  give_back();
  die_by(signal);
}

void install(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

timespec as_timespec(std::chrono::nanoseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((time - seconds).count())};
}

}  // namespace

void catch_end_signals() {
  for (const int signal : kEndSignals) install(signal, on_end);
  install(SIGPIPE, SIG_IGN);
  install(SIGXFSZ, SIG_IGN);  // A write beyond ulimit -f then fails instead of ending the process.
}

bool has_end_signal() { return g_signal.load() != 0; }

void end_by_signal() {
  if (const int signal = g_signal.load(); signal != 0) die_by(signal);
}

void sleep_for(std::chrono::nanoseconds time) {
  // In pieces: a signal may arrive just before nanosleep() begins.
  constexpr std::chrono::nanoseconds kPiece = std::chrono::milliseconds(100);
  while (!has_end_signal() && time > std::chrono::nanoseconds::zero()) {
    const timespec wait = as_timespec(std::min(time, kPiece));
    ::nanosleep(&wait, nullptr);
    time -= kPiece;
  }
}

bool is_terminal() {
  const char* name = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && name != nullptr && std::strcmp(name, "dumb") != 0;
}

bool may_colour() {
  const char* no_colour = std::getenv("NO_COLOR");  // https://no-color.org: set and not empty.
  return is_terminal() && (no_colour == nullptr || *no_colour == '\0');
}

bool is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    return ::strcasestr(value, "utf-8") != nullptr || ::strcasestr(value, "utf8") != nullptr;
  }
  return false;
}

Terminal::Terminal() {
  if (::tcgetattr(STDIN_FILENO, &g_before) != 0) return;
  for (const int signal : kCrashSignals) install(signal, on_crash);
  install(SIGTSTP, on_stop);
  make_raw();
}

Terminal::~Terminal() { give_back(); }

TerminalSize Terminal::size() const {
  winsize window{};
  TerminalSize size;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0) return size;
  if (window.ws_col > 0) size.width = std::max<std::size_t>(window.ws_col, 20);
  if (window.ws_row > 0) size.height = std::max<std::size_t>(window.ws_row, 5);
  return size;
}

bool Terminal::show(const std::vector<std::string>& lines) {
  std::string text = "\033[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += lines[i];
    text += "\033[K";
    if (i + 1 < lines.size()) text += "\r\n";
  }
  text += "\033[J";
  return tools::write_all(STDOUT_FILENO, text).has_value();
}

std::string Terminal::read_keys(std::chrono::nanoseconds wait, bool& is_gone) {
  pollfd entry{STDIN_FILENO, POLLIN, 0};
  const timespec time = as_timespec(std::max(wait, std::chrono::nanoseconds::zero()));
  if (::ppoll(&entry, 1, &time, nullptr) <= 0) return "";
  char bytes[64];
  const ssize_t size = ::read(STDIN_FILENO, bytes, sizeof bytes);
  if (size > 0) return {bytes, static_cast<std::size_t>(size)};
  is_gone = size == 0 || (errno != EINTR && errno != EAGAIN);
  return "";
}

int write_view(std::string_view text) {
  const Status written = tools::write_all(STDOUT_FILENO, text);
  if (written) return 0;
  if (written.error().sys_errno == EPIPE) std::_Exit(0);
  std::fprintf(stderr, "ztcp_stat: writing to standard output: %s\n",
               std::strerror(written.error().sys_errno));
  return 1;
}

}  // namespace ztcp::stat
