// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/fake_host.h"
#include "tools/ztcp_setup/check/checks.h"

namespace ztcp::setup {
namespace {

using config::Severity;
using testing::HasSubstr;

config::Nic some_nic(const char* address = "10.0.0.5/24") {
  config::Nic nic;
  nic.name = "ztcp0";
  nic.driver = config::NicDriver::kSocket;
  nic.interface = "eth1";
  nic.address = *parse_ip_prefix(address);
  return nic;
}

// A base chain for input with these rules ("[expressions]" each).
std::string ruleset(const std::string& policy, std::initializer_list<std::string> rules,
                    const std::string& family = "inet") {
  const std::string where = "\"family\": \"" + family + "\", \"table\": \"filter\", ";
  std::string text = R"({"nftables": [{"metainfo": {"version": "1.0.6"}}, {"chain": {)" + where +
                     R"("name": "input", "type": "filter", "hook": "input", "policy": ")" + policy +
                     "\"}}";
  for (const std::string& rule : rules)
    text += ", {\"rule\": {" + where + "\"chain\": \"input\", \"expr\": " + rule + "}}";
  return text + "]}";
}

std::string dport(const std::string& ports) {
  return R"([{"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, )"
         R"("right": )" +
         ports + R"(}}, {"accept": null}])";
}
const std::string kEstablished =
    R"([{"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": "established"}}, )"
    R"({"accept": null}])";
const std::string kByInterface =
    R"([{"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": "eth1"}}, )"
    R"({"accept": null}])";
const std::string kByNetwork =
    R"([{"match": {"op": "==", "left": {"payload": {"protocol": "ip", "field": "saddr"}}, )"
    R"("right": {"prefix": {"addr": "10.0.0.0", "len": 24}}}}, {"accept": null}])";
const std::string kRejectAll = R"([{"reject": {"type": "icmpx", "expr": "admin-prohibited"}}])";
const std::string kJump = R"([{"jump": {"target": "more"}}])";

Severity severity(const std::string& text, const config::Nic& nic = some_nic()) {
  return judge_ruleset(text, nic).severity;
}

TEST(Firewall, AChainThatRefusesByDefaultIsNamedWithTheRuleThatMendsIt) {
  const config::Check check =
      judge_ruleset(ruleset("drop", {kEstablished, dport("22")}), some_nic());
  EXPECT_EQ(check.severity, Severity::kWarning);
  EXPECT_THAT(check.problem.what, HasSubstr("chain inet filter input"));
  EXPECT_EQ(check.problem.mend,
            "sudo nft insert rule inet filter input tcp dport 7472-7535 accept");
}

TEST(Firewall, ARuleThatAcceptsThePortsIsEnough) {
  for (const std::string& rule :
       {dport(R"({"range": [7472, 7535]})"), dport(R"({"range": [1024, 65535]})"),
        dport(R"({"set": [22, {"range": [7000, 8000]}]})"), kByInterface, kByNetwork})
    EXPECT_EQ(severity(ruleset("drop", {kEstablished, rule})), Severity::kGood) << rule;
  for (const std::string& rule : {dport(R"({"range": [7472, 7500]})"), dport("7472"),
                                  dport(R"("@ports")"), dport(R"({"range": ["a", 1]})")})
    EXPECT_EQ(severity(ruleset("drop", {rule})), Severity::kWarning) << rule;
}

TEST(Firewall, ADropInTheLastRuleCountsAsRefusing) {
  EXPECT_EQ(severity(ruleset("accept", {kEstablished, kRejectAll})), Severity::kWarning);
  EXPECT_EQ(severity(ruleset("accept", {kByInterface, kRejectAll})), Severity::kGood);
  config::Nic labelled = some_nic();
  labelled.interface = "eth1:2";
  EXPECT_EQ(severity(ruleset("accept", {kByInterface, kRejectAll}), labelled), Severity::kGood);
  EXPECT_EQ(severity(ruleset("accept", {kRejectAll, kByInterface})), Severity::kWarning);
  EXPECT_EQ(severity(ruleset("accept", {kEstablished})), Severity::kGood);
}

TEST(Firewall, ChainsWithJumpsAreNotJudged) {
  EXPECT_EQ(severity(ruleset("drop", {kJump})), Severity::kGood);
}

TEST(Firewall, ChainsOfTheOtherAddressFamilyAreIgnored) {
  EXPECT_EQ(severity(ruleset("drop", {}, "ip6")), Severity::kGood);
  EXPECT_EQ(severity(ruleset("drop", {}, "ip")), Severity::kWarning);
  EXPECT_EQ(severity(ruleset("drop", {}, "ip6"), some_nic("2001:db8::5/64")), Severity::kWarning);
}

TEST(Firewall, UnreadableRulesAreNotJudged) {
  for (const char* text : {"", "Operation not permitted", "[]", "{}", R"({"nftables": [{"chain")"})
    EXPECT_THAT(judge_ruleset(text, some_nic()).problem.what, HasSubstr("not readable")) << text;
  for (const char* text : {R"({"nftables": []})", R"({"nftables": [{}, 7, {"chain": {}}]})"})
    EXPECT_EQ(severity(text), Severity::kGood) << text;
}

TEST(Firewall, RdmaDevicesUseTheInterfaceOfTheirAddress) {
  test::FakeHost host(
      "pci path=pci0000:00/0000:00:05.0 id=1af4:1000 class=020000 numa=0 driver=virtio-pci\n"
      "net path=pci0000:00/0000:00:05.0 name=eth1 mac=0a:00:00:00:00:05 mtu=1500 speed=-1\n"
      "address if=eth1 ip=10.0.0.5/24\n");
  host.programs.insert("nft");
  config::Fabric fabric;
  fabric.nics = {some_nic()};
  fabric.nics[0].driver = config::NicDriver::kVerbs;
  fabric.nics[0].interface.clear();
  const auto severity_of = [&](const std::string& rules) {
    host.answers["nft --json list ruleset"] = rules;
    const auto checks = check_firewall(fabric, host);
    return checks.size() == 1 ? checks[0].severity : Severity::kFault;
  };
  EXPECT_EQ(severity_of(ruleset("drop", {kByInterface})), Severity::kGood);
  EXPECT_EQ(severity_of(ruleset("drop", {kEstablished})), Severity::kWarning);
}

}  // namespace
}  // namespace ztcp::setup
