// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/view.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <unistd.h>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tools/ztcp_stat/view/json.h"
#include "tools/ztcp_stat/view/keys.h"
#include "tools/ztcp_stat/view/rows.h"
#include "tools/ztcp_stat/view/screen.h"
#include "tools/ztcp_stat/view/terminal.h"
#include "tools/ztcp_stat/why/diagnose.h"

namespace ztcp::stat {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

struct ViewWishes {
  bool once = false;
  bool json = false;
  double seconds = 0;  // --watch; 0: not given.
  nanoseconds interval() const {
    return nanoseconds(static_cast<std::int64_t>((seconds > 0 ? seconds : 1.0) * 1e9));
  }
};

// Counts nothing: pages that end or begin meanwhile are seen by the next look.
bool is_empty(const Look& look) { return look.pages.empty(); }

int say_nothing_is_there(const Selection& selection) {
  std::string where;
  if (const auto folders = folders_of(selection))
    for (const auto& folder : *folders) where += (where.empty() ? "" : ", ") + folder.string();
  std::fprintf(stderr,
               "ztcp_stat: no process with ztcp is here%s; looked in %s. Jobs of other users are "
               "shown to root; --config FILE or --folder DIR name another place\n",
               selection.pid != 0 ? fmt::format(" with process id {}", selection.pid).c_str() : "",
               where.c_str());
  return kExitNothing;
}

int show(const Look* before, const Look& look, const ViewWishes& wishes) {
  if (wishes.json) return write_view(json_of(before, look).dump(wishes.once ? 2 : -1) + "\n");
  Style style;
  style.has_colour = may_colour();
  style.is_unicode = is_utf8();
  const Rows rows = rows_of(before, look, Sort::kWorst, "");
  std::string text;
  for (const std::string& line :
       screen_of(before, look, rows, diagnose(before, look), nullptr, Choice{}, style, false))
    text += line + "\n";
  return write_view(text + (wishes.once ? "" : "\n"));
}

int show_crash(const Selection& selection, const ViewWishes& wishes) {
  const auto look = look_at(selection);
  if (!look) return kExitUsage;
  const Page& page = look->pages.front();
  if (!page.error.empty()) {
    std::fprintf(stderr, "ztcp_stat: %s: %s\n", page.file.c_str(), page.error.c_str());
    return kExitFault;
  }
  return show(nullptr, *look, {.once = true, .json = wishes.json, .seconds = 0});
}

// Views one after the other, until a signal or the end of the reader; `once`: one.
int show_repeatedly(const Selection& selection, const ViewWishes& wishes) {
  std::optional<Look> before;
  Clock::time_point next = Clock::now();
  while (true) {
    auto look = look_at(selection);
    if (!look) return kExitUsage;
    if (!before && is_empty(*look)) return say_nothing_is_there(selection);
    if (before) {
      if (const int status = show(&*before, *look, wishes); status != 0) return status;
      if (wishes.once || has_end_signal()) return kExitHealthy;
    }
    before = std::move(*look);
    next += wishes.interval();
    sleep_for(next - Clock::now());
    // A first view is worth the wait after Ctrl-C, if it is all that was asked for.
    if (has_end_signal()) return kExitHealthy;
  }
}

class LiveView {
 public:
  LiveView(const Selection& selection, nanoseconds interval)
      : selection_(selection), interval_(interval) {}

  int run() {
    auto first = look_at(selection_);
    if (!first) return kExitUsage;
    if (is_empty(*first)) return say_nothing_is_there(selection_);
    after_ = std::move(*first);
    bool is_gone = false;
    // The first view comes soon, so that it has rates.
    Clock::time_point next = Clock::now() + std::min<nanoseconds>(interval_, kFirst);
    while (!has_end_signal() && !is_gone) {
      if (!draw()) break;
      Action action = Action::kNone;
      while (action == Action::kNone && !has_end_signal() && !is_gone && Clock::now() < next)
        action =
            press(terminal_.read_keys(std::min<nanoseconds>(next - Clock::now(), kPiece), is_gone),
                  choice_, kPageRows);
      if (action == Action::kQuit) break;
      if (action != Action::kLook && Clock::now() < next) continue;
      if (!look_again()) break;
      next = Clock::now() + interval_;
    }
    return kExitHealthy;
  }

 private:
  static constexpr nanoseconds kFirst = std::chrono::milliseconds(600);
  static constexpr nanoseconds kPiece = std::chrono::milliseconds(100);
  static constexpr std::size_t kPageRows = 10;

  bool look_again() {
    auto look = look_at(selection_);
    if (!look) return false;
    before_ = std::move(after_);
    after_ = std::move(*look);
    history_.add(rows_of(&*before_, after_, Sort::kPeer, ""));
    findings_ = diagnose(&*before_, after_);
    return true;
  }

  bool draw() {
    const Look* before = before_ ? &*before_ : nullptr;
    const Rows rows = rows_of(before, after_, choice_.sort, choice_.filter);
    const std::size_t last = rows.connections.empty() ? 0 : rows.connections.size() - 1;
    choice_.first_row = std::min(choice_.first_row, last);
    const TerminalSize size = terminal_.size();
    const Style style{size.width, size.height, may_colour(), is_utf8()};
    return terminal_.show(
        screen_of(before, after_, rows, findings_, &history_, choice_, style, true));
  }

  Selection selection_;
  nanoseconds interval_;
  std::optional<Look> before_;
  Look after_;
  Findings findings_;
  History history_;
  Choice choice_;
  Terminal terminal_;
};

int run_view(const Selection& selection, ViewWishes wishes) {
  catch_end_signals();
  if (!selection.crash_file.empty()) return show_crash(selection, wishes);
  const bool is_live = !wishes.once && !wishes.json && is_terminal() && ::isatty(STDIN_FILENO) == 1;
  if (!is_live && wishes.seconds <= 0) wishes.once = true;
  const int status =
      is_live ? LiveView(selection, wishes.interval()).run() : show_repeatedly(selection, wishes);
  end_by_signal();
  return status;
}

}  // namespace

void add_view(CLI::App& app, Command& command) {
  auto wishes = std::make_shared<ViewWishes>();
  app.add_flag("--once", wishes->once, "Print one view, with the rates of one second");
  app.add_flag("--json", wishes->json,
               "Print JSON: one document, or with --watch one line for each look");
  app.add_option("--watch", wishes->seconds,
                 "Look every SECONDS; into a file or pipe, print a view each time")
      ->check(CLI::Range(0.1, 86400.0))
      ->type_name("SECONDS");
  app.add_option("--after-crash", command.selection.crash_file,
                 "Show the page that a dead process left")
      ->type_name("FILE");
  command.run = [&command, wishes] { return run_view(command.selection, *wishes); };
}

}  // namespace ztcp::stat
