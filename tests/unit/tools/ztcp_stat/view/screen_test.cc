// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/view/screen.h"

#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_stat/looks.h"
#include "tools/ztcp_stat/view/table.h"

namespace ztcp::stat {
namespace {

std::vector<std::string> draw(const Looks& looks, Style style, const History* history = nullptr,
                              const Choice& choice = {}, bool keys = false) {
  const Rows rows = rows_of(&looks.before, looks.after, choice.sort, choice.filter);
  return screen_of(&looks.before, looks.after, rows, looks.findings(), history, choice, style,
                   keys);
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(Screen, NamesHostNumbersAndTheWorstFinding) {
  Looks looks(2);
  looks.now().devices[0].link = stats::LinkStatus::kDown;
  const std::string text = joined(draw(looks, {}));
  EXPECT_NE(text.find("ztcp_stat on gpu-01"), std::string::npos);
  EXPECT_NE(text.find("1 process, 1 device, 2 connections; rates of 1 s; sorted by worst"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("severe: ztcp0 of process 4242 has no carrier"), std::string::npos);
  EXPECT_NE(text.find("gpu-03 (10.0.0.3)"), std::string::npos);
  EXPECT_NE(text.find("800 Mb/s"), std::string::npos);
  EXPECT_EQ(text.find('\033'), std::string::npos);
}

TEST(Screen, DevicesHaveTheirFacts) {
  Looks looks;
  looks.now().devices[0].address = "10.0.0.1";
  looks.now().devices[0].gpu = "0000:18:00.0";
  const std::string text = joined(draw(looks, {}));
  EXPECT_NE(text.find("10.0.0.1"), std::string::npos) << text;
  EXPECT_NE(text.find("0000:18:00.0"), std::string::npos) << text;
  EXPECT_NE(text.find("9000"), std::string::npos) << text;
}

TEST(Screen, FitsEveryTerminal) {
  Looks looks(40);
  for (const std::size_t height : {5u, 10u, 24u, 60u}) {
    for (const std::size_t width : {20u, 80u, 200u}) {
      const auto lines = draw(looks, {width, height, false, true}, nullptr, {}, true);
      EXPECT_LE(lines.size(), height);
      for (const std::string& line : lines) EXPECT_LE(columns_of(line), width);
      EXPECT_NE(lines.back().find("q quit"), std::string::npos);
    }
  }
}

TEST(Screen, SaysHowManyRowsDoNotFit) {
  Looks looks(40);
  EXPECT_NE(joined(draw(looks, {120, 24, false, true})).find("more"), std::string::npos);
}

TEST(Screen, ScrollsToLaterRows) {
  Looks looks(4);
  Choice choice;
  choice.sort = Sort::kPeer;
  choice.first_row = 2;
  const std::string text = joined(draw(looks, {}, nullptr, choice));
  EXPECT_EQ(text.find("gpu-02"), std::string::npos);
  EXPECT_NE(text.find("gpu-04"), std::string::npos);
}

TEST(Screen, SparklinesFromTheSecondLook) {
  Looks looks;
  History history;
  history.add(rows_of(&looks.before, looks.after, Sort::kWorst, ""));
  EXPECT_EQ(joined(draw(looks, {}, &history)).find("LAST RATES"), std::string::npos);
  looks.now().connections[0].bytes += 100'000'000;
  history.add(rows_of(&looks.before, looks.after, Sort::kWorst, ""));
  const ConnectionKey key{"/run/ztcp/4242.page", 2};
  EXPECT_EQ(history.sparkline_of(key, false), "=#");
  EXPECT_NE(joined(draw(looks, {}, &history)).find("LAST RATES"), std::string::npos);
  looks.now().connections.clear();
  history.add(rows_of(&looks.before, looks.after, Sort::kWorst, ""));
  EXPECT_EQ(history.sparkline_of(key, false), "");
}

TEST(Screen, StoppedAndDeadProcessesAreMarked) {
  Looks looks;
  looks.after.pages[0].state = 'T';
  EXPECT_NE(joined(draw(looks, {})).find("stopped"), std::string::npos);
  looks.now().process.is_running = false;
  EXPECT_NE(joined(draw(looks, {})).find("died"), std::string::npos);
  looks.now().process.has_ended_cleanly = true;
  EXPECT_NE(joined(draw(looks, {})).find("ended"), std::string::npos);
}

}  // namespace
}  // namespace ztcp::stat
