// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <nlohmann/json.hpp>

#include "config/file/fields.h"
#include "tools/ztcp_setup/plan/iommu.h"
#include "tools/ztcp_setup/report/report.h"
#include "tools/ztcp_setup/report/without_secrets.h"

namespace ztcp::setup {
namespace {

using Json = nlohmann::ordered_json;

const char* json_word(config::Severity severity) {
  switch (severity) {
    case config::Severity::kGood:
      return "ok";
    case config::Severity::kWarning:
      return "warning";
    case config::Severity::kFault:
      break;
  }
  return "fault";
}

Json json_of(const config::Problem& problem) {
  return {{"where", problem.where}, {"what", problem.what}, {"mend", problem.mend}};
}

Json json_of(const config::RdmaPort& port, const std::string& gid) {
  return {{"device", port.device},
          {"port", port.port},
          {"link_layer", port.network()},
          {"state", port.state},
          {"speed_mbps", port.speed_mbps},
          {"interface", port.interface},
          {"pci", port.pci},
          {"gid", gid}};
}

Json json_of(const config::HostNic& nic) {
  Json json{{"pci", nic.pci},
            {"id", nic.id},
            {"interface", nic.interface},
            {"driver", nic.driver},
            {"mac", to_string(nic.mac)},
            {"mtu_bytes", nic.mtu_bytes},
            {"speed_mbps", nic.speed_mbps},
            {"numa_node", nic.numa_node},
            {"address", nullptr},
            {"address_interface", nic.address_interface},
            {"vlan_id", nic.vlan_id},
            {"gateway", nullptr},
            {"leased_s", nullptr},
            {"iommu_group", nic.iommu_group},
            {"usable", nic.unfit.empty()},
            {"unfit", nic.unfit}};
  if (nic.rdma) json["rdma"] = json_of(*nic.rdma, nic.gid);
  if (nic.address) json["address"] = to_string(*nic.address);
  if (nic.gateway) json["gateway"] = config::gateway_text(*nic.gateway);
  if (nic.valid_s != config::InterfaceAddress::kForever) json["leased_s"] = nic.valid_s;
  return json;
}

Json pairs_json(const Plan& plan) {
  Json pairs = Json::array();
  for (const config::Pair& pair : plan.pairs) {
    Json one{{"device", plan.fabric_nic(pair).name},
             {"gpu", nullptr},
             {"nic", plan.verbs ? plan.fabric_nic(pair).device : plan.topology.nics[pair.nic].pci},
             {"reason", pair.reason}};
    if (pair.gpu) one["gpu"] = plan.topology.gpus[*pair.gpu].pci;
    pairs.push_back(one);
  }
  return pairs;
}

// Indented for readers, and for readable differences of stored copies. Interface names and words of
// the command line may contain invalid UTF-8.
std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string to_json(const config::Problem& problem, ExitCode code) {
  Json json{{"exit_code", code}, {"problems", Json::array()}};
  json["problems"].push_back(json_of(problem));
  return text_of(json);
}

std::string to_json(const Plan& plan, const std::vector<Preview>& changes, const char* mode) {
  Json json{{"mode", mode}, {"exit_code", exit_code(plan)}};
  json["gpus"] = Json::array();
  for (const config::Gpu& gpu : plan.topology.gpus)
    json["gpus"].push_back(
        {{"pci", gpu.pci}, {"model", gpu.model}, {"uuid", gpu.uuid}, {"numa_node", gpu.numa_node}});
  json["nics"] = Json::array();
  for (const config::HostNic& nic : plan.topology.nics) json["nics"].push_back(json_of(nic));
  // Ports of RDMA devices, with every transport.
  json["rdma"] = Json::array();
  for (const config::HostNic& nic : plan.topology.rdma)
    json["rdma"].push_back(json_of(*nic.rdma, nic.gid));
  json["pairs"] = Json::array();
  if (plan.fabric) {
    json["transport"] = {{"name", "ustack"}};
    if (plan.sockets)
      json["transport"] = {{"name", name_of(plan.sockets->over)},
                           {"why", plan.sockets->why},
                           {"faster_way", plan.sockets->faster_way}};
    if (plan.verbs)
      json["transport"] = {{"name", "verbs"},
                           {"why", plan.verbs->why},
                           {"gpu_direct", config::to_string(plan.verbs->gpu_direct)}};
    json["pairs"] = pairs_json(plan);
    const HostClassFacts facts = facts_of(plan.fabric->host.host_class);
    json["host_class"] = {{"letter", std::string(1, facts.letter)},
                          {"name", config::name_of(plan.fabric->host.host_class)},
                          {"meaning", facts.meaning}};
    if (plan.is_over_dpdk())
      json["hugepages"] = {{"total_mib", plan.hugepage_mib()},
                           {"per_gpu_mib", plan.fabric->hugepages.per_process_mib},
                           {"spare_mib", plan.spare_mib},
                           {"page_kib", plan.fabric->hugepages.page_kib},
                           {"nodes", Json::array()}};
    for (const NodePages& node : plan.pages)  // Empty if no NIC is taken.
      json["hugepages"]["nodes"].push_back(
          {{"node", node.node}, {"want_pages", node.want}, {"have_pages", node.have}});
  }
  json["changes"] = Json::array();
  for (const Preview& change : changes)
    json["changes"].push_back({{"what", change.what},
                               {"before", without_secrets(change.have)},
                               {"after", without_secrets(change.want)},
                               {"command", change.command}});
  json["problems"] = Json::array();
  for (const config::Check& note : plan.notes) {
    Json problem{{"name", note.name}, {"severity", json_word(note.severity)}};
    problem.update(json_of(note.problem));
    json["problems"].push_back(problem);
  }
  return text_of(json);
}

std::string to_json(const CheckReport& report) {
  Json json{{"mode", "check"},
            {"exit_code", exit_code(report)},
            {"version", report.version},
            {"config", report.config_path},
            {"digest", nullptr}};
  if (!report.digest.empty()) json["digest"] = report.digest;
  json["problems"] = Json::array();
  for (const config::Problem& problem : report.load_problems)
    json["problems"].push_back(json_of(problem));
  json["checks"] = Json::array();
  for (const config::Check& check : report.checks) {
    Json one{{"name", check.name}, {"severity", json_word(check.severity)}};
    one.update(json_of(check.problem));
    json["checks"].push_back(one);
  }
  return text_of(json);
}

std::string to_json(const config::Fabric& local, LocalTopology topology) {
  Json json{{"mode", "local"},
            {"exit_code", kExitGood},
            {"result", "setup successfully"},
            {"config", local.path},
            {"topology", topology == LocalTopology::kMesh ? "mesh" : "switch"}};
  json["nics"] = Json::array();
  for (const config::Nic& nic : local.nics)
    json["nics"].push_back({{"name", nic.name},
                            {"address", to_string(nic.address)},
                            {"mac", to_string(nic.mac)},
                            {"mtu_bytes", nic.mtu_bytes},
                            {"memif_socket", nic.memif_socket},
                            {"memif_role", config::name_of(nic.memif_role)},
                            {"queues", nic.queues}});
  json["next"] = next_commands(local, topology);
  return text_of(json);
}

}  // namespace ztcp::setup
