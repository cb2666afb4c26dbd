// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/unit/tools/ztcp_setup/journal_stories.h"

#include <algorithm>
#include <stdexcept>

#include "config/machine/port_set.h"
#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tests/unit/tools/ztcp_setup/fake_paths.h"

namespace ztcp::setup::test {
namespace {

constexpr const char* kNicC = "0000:86:00.0";
constexpr const char* kMaps = "/sys/module/vfio_iommu_type1/parameters/dma_entry_limit";
constexpr const char* kRunFolder = "/usr/local/tfabric/tools/run";

using Tell = std::function<void(FakeHost&)>;
using When = FakeHost::When;

// The stored journals are older than the kinds for AF_XDP.
bool is_of_af_xdp(const Resource& resource) {
  const auto* mount = std::get_if<resource::Mount>(&resource.what);
  return std::holds_alternative<resource::ReservedPorts>(resource.what) ||
         std::holds_alternative<resource::XdpProgram>(resource.what) ||
         (mount != nullptr && mount->type == "bpf");
}

Resources story_resources() {
  Resources resources = all_resources();
  std::erase_if(resources, is_of_af_xdp);
  const auto before_nics =
      std::find_if(resources.begin(), resources.end(), [](const Resource& resource) {
        return std::holds_alternative<resource::Driver>(resource.what);
      });
  resources.insert(
      before_nics,
      {{"mappings", resource::Value{kMaps, "1048576"}},
       {"a folder of alice's", resource::Folder{"/srv/ztcp", 0750, "alice", "ztcp"}},
       {"a folder below others", resource::Folder{"/srv/new/ztcp", 0755, "", ""}},
       {"a file for the group", resource::File{"/etc/ztcp.key", "\x80key", 0640, "ztcp"}}});
  const auto config =
      std::find_if(resources.begin(), resources.end(),
                   [](const Resource& resource) { return resource.why == "config"; });
  Resources third = nic_resources(kNicC);
  resources.insert(config, third.begin(), third.end());
  return resources;
}

Resources without(Resources resources, const std::string& key_end) {
  std::erase_if(resources,
                [&](const Resource& resource) { return key_of(resource).ends_with(key_end); });
  return resources;
}

void set_up_whole(FakeHost& host) { set_up(host, story_resources()); }

// Class B: no IOMMU, and vfio must be told to accept that.
Resources class_b_resources() {
  Resources resources = story_resources();
  const auto module =
      std::find_if(resources.begin(), resources.end(), [](const Resource& resource) {
        return std::holds_alternative<resource::Module>(resource.what);
      });
  resources.insert(module + 1, {"vfio without an IOMMU", resource::Value{kNoIommu, "Y"}});
  return resources;
}
void set_up_class_b(FakeHost& host) {
  for (auto& [pci, nic] : host.state.nics) nic.group.clear();
  set_up(host, class_b_resources());
}

// Kills `run` at the change of that name, or at the last such change.
Tell killed(const Tell& run, const std::string& change, When when, bool last = false) {
  return [=](FakeHost& host) {
    FakeHost whole = host;
    run(whole);
    std::size_t found = 0;
    for (std::size_t i = host.log.size(); i < whole.log.size(); ++i)
      if (whole.log[i] == change && (last || found == 0)) found = i + 1;
    if (found == 0) throw std::logic_error("no such change: " + change);
    host.kill_at(found - host.log.size(), when);
    try {
      run(host);
    } catch (const Killed&) {
    }
    host.kill_at(0, when);
  };
}

// Continues after a complete set-up.
Tell since(const Tell& more) {
  return [=](FakeHost& host) {
    set_up_whole(host);
    more(host);
  };
}

std::vector<JournalStory> whole_set_ups() {
  return {
      {"whole", set_up_whole},
      {"class-b", set_up_class_b},
      {"held-in-part",
       [](FakeHost& host) {
         host.add_folder("/dev/hugepages1G");
         host.state.mounts["/dev/hugepages1G"] = "hugetlbfs rw,pagesize=1024M,mode=1770";
         host.state.modules.insert("vfio-pci");
         host.state.enabled.insert("ztcp-setup.service");
         host.state.values[kPages0] = "64";
         host.state.boot["/boot/vmlinuz-1"] += " iommu=pt";
         host.add_file("/etc/ztcp.key", "\x80key", {0640, 0, 990});
         set_up_whole(host);
       }},
      {"fewer-pages-than-wanted",
       [](FakeHost& host) {
         host.state.values[kPages0] = "2";
         host.state.largest_pages = 12;
         set_up_whole(host);
       }},
      {"prepared-for-a-boot",
       [](FakeHost& host) {
         Resources resources = story_resources();
         resources.resize(3);
         set_up(host, resources, Scope::kMore);
       }},
      {"fewer-nics-and-pages", since([](FakeHost& host) {
         Resources resources = without(story_resources(), kNicB);
         for (Resource& resource : resources)
           if (auto* value = std::get_if<resource::Value>(&resource.what); value && value->at_least)
             value->value = "8";
         set_up(host, resources);
       })},
      {"a-nic-more",
       [](FakeHost& host) {
         set_up(host, without(story_resources(), kNicB));
         Resources more = nic_resources(kNicB);
         more.push_back({"config", resource::File{kConfig, "schema = 1\n# more\n", 0644, ""}});
         set_up(host, more, Scope::kMore);
       }},
      {"booted-and-set-up-again", since([](FakeHost& host) {
         host.boot();
         auto journal = Journal::open(host);
         apply_after_boot(host, *journal, {});
       })},
      {"refused-by-vfio",
       [](FakeHost& host) {
         host.bind_fails = true;
         set_up_whole(host);
         host.bind_fails = false;
       }},
  };
}

std::vector<JournalStory> killed_runs() {
  const auto device = [](const char* name) {
    return std::string("/sys/bus/pci/devices/") + kNicA + "/" + name;
  };
  const Tell undone = [](FakeHost& host) { undo(host); };
  const auto undo_killed = [&](const std::string& change, When when) {
    return since(killed(undone, change, when));
  };
  const std::string journal = "create /var/lib/ztcp/.journal.json.ztcp-new";
  const std::string pages = std::string("write ") + kPages0;
  return {
      {"killed-in-the-first-journal", killed(set_up_whole, journal, When::kHalfWay)},
      {"killed-in-the-last-journal", killed(set_up_whole, journal, When::kHalfWay, true)},
      {"killed-in-a-file",
       killed(set_up_whole, "create /etc/default/grub.d/.50-ztcp.cfg.ztcp-new", When::kHalfWay)},
      {"killed-before-a-notice", killed(set_up_whole, "run update-grub", When::kBefore)},
      {"killed-at-boot-arguments",
       killed(set_up_whole, "run grubby --update-kernel=ALL --args=iommu=pt hugepages=20",
              When::kAfter)},
      {"killed-at-pages", killed(set_up_whole, pages + " 20", When::kAfter)},
      {"killed-before-a-mount", killed(set_up_whole, "mount /dev/hugepages1G", When::kBefore)},
      {"killed-at-a-module", killed(set_up_whole, "run modprobe vfio-pci", When::kAfter)},
      {"killed-in-a-folder", killed(set_up_whole, "mkdir /usr/local/tfabric/tools", When::kAfter)},
      {"killed-with-a-nic-down", killed(set_up_whole, "link ens1f0 down", When::kAfter)},
      {"killed-with-a-nic-without-driver",
       killed(set_up_whole, "write " + device("driver/unbind") + " " + kNicA, When::kAfter)},
      {"killed-before-access", killed(set_up_whole, "chown /dev/vfio/12", When::kBefore)},
      {"killed-before-a-unit",
       killed(set_up_whole, "run systemctl enable ztcp-setup.service", When::kBefore)},
      {"class-b-killed-at-a-value",
       killed(set_up_class_b, std::string("write ") + kNoIommu + " Y", When::kAfter)},
      {"undo-killed-in-a-journal", undo_killed(journal, When::kHalfWay)},
      {"undo-killed-at-a-file", undo_killed("remove " + std::string(kConfig), When::kAfter)},
      {"undo-killed-at-a-driver",
       undo_killed("write " + device("driver_override") + " ", When::kAfter)},
      {"undo-killed-in-a-network",
       undo_killed("add ip address add 10.77.1.5/24 dev ens1f0", When::kAfter)},
      {"undo-killed-at-a-mount", undo_killed("umount /dev/hugepages1G", When::kAfter)},
      {"undo-killed-before-a-notice", undo_killed("run systemctl daemon-reload", When::kBefore)},
  };
}

// Machines after a power failure, and with changes by others.
std::vector<JournalStory> changed_machines() {
  return {
      {"no-power-with-a-nic-taken",
       [](FakeHost& host) {
         killed(set_up_whole, "chown /dev/vfio/12", When::kAfter)(host);
         host.boot();
       }},
      {"booted-and-not-set-up-again", since([](FakeHost& host) { host.boot(); })},
      {"files-edited", since([](FakeHost& host) {
         host.add_file(kConfig, "schema = 1\n# mine\n");
         host.add_file(kLimits, "# mine\n");
         host.add_file(std::string(kRunFolder) + "/0000:3b:00.0.lock", "", {0666, 1000, 990});
         host.add_file("/srv/new/ztcp/mine.lock", "", {0644, 1000, 1000});
       })},
      {"more-pages-by-others", since([](FakeHost& host) { host.state.values[kPages0] = "30"; })},
      {"another-card-at-the-address", since([](FakeHost& host) {
         host.boot();
         host.state.nics.at(kNicA).id = "8086:1572";
       })},
      {"another-nic-of-the-same-kind", since([](FakeHost& host) {
         InterfaceState& pristine = host.state.nics.at(kNicB).pristine;
         pristine.mac = pristine.permanent_mac = "52:54:00:00:0c:02";
         host.boot();
       })},
      {"a-nic-that-is-gone", since([](FakeHost& host) {
         host.state.nics.erase(kNicB);
         host.state.nodes.erase("/dev/vfio/13");
       })},
      {"a-nic-given-to-another-kernel-driver", since([](FakeHost& host) {
         host.state.modules.insert("igb_uio");
         host.state.nics.at(kNicB).driver = "igb_uio";
         host.state.nodes.erase("/dev/vfio/13");
       })},
      {"a-kernel-installed-since", since([](FakeHost& host) {
         host.state.boot["/boot/vmlinuz-2"] = host.state.boot_of_new_kernels;
         host.state.boot["/boot/vmlinuz-1"] = "ro hugepages=20";  // And one edited.
       })},
      {"a-vlan-of-that-name", since([](FakeHost& host) {
         InterfaceState stranger;
         stranger.name = "ens1f0.7";
         stranger.kind = "vlan";
         stranger.info = "0600010007000000";
         stranger.mac = stranger.permanent_mac = "52:54:00:00:00:99";
         host.state.links[stranger.name] = stranger;
       })},
  };
}

}  // namespace

FakeHost story_machine() {
  FakeHost host = bare_machine();
  host.state.values.erase(config::kReservedPorts);
  host.state.values[kMaps] = "65535";
  host.add_folder("/srv");
  host.add_folder("/srv/ztcp", {0700, 0, 0});
  // One without a driver.
  FakeHost::Nic third = nic(kNicC, "14", "ens3f0", "52:54:00:00:00:03");
  third.driver.clear();
  host.add_nic(third, {});
  // State of the first NIC beside addresses: a lease, a bond, sysctls, VLANs on a VLAN.
  InterfaceState& link = host.state.links.at("ens1f0");
  link.master = "bond0";
  link.addresses.push_back(
      {"ip address add 10.80.0.5/16 dev ens1f0 valid_lft 3600", "0a0b0c", 1764000000});
  for (const char* name : {"proxy_arp", "rp_filter"}) {
    const std::string path = std::string("/proc/sys/net/ipv4/conf/ens1f0/") + name;
    host.state.values[path] = "2";
    host.state.nics.at(kNicA).pristine.sysctls.emplace_back(path, "0\n");
  }
  InterfaceState upper;
  upper.name = "ens1f0.7.8";
  upper.kind = "vlan";
  upper.info = "0600010008000000";
  upper.mac = link.mac;
  upper.permanent_mac = link.permanent_mac;
  upper.mtu_bytes = 1400;
  upper.alias = "on top";
  upper.up = true;
  upper.addresses = {item("address add 10.79.1.5/24 dev ens1f0.7.8")};
  upper.routes = {item("route add 10.98.0.0/16 via 10.79.1.1")};
  InterfaceState only_name;
  only_name.name = upper.name;
  host.state.links.at("ens1f0.7").children = {only_name};
  host.state.links[upper.name] = upper;
  return host;
}

std::vector<JournalStory> journal_stories() {
  std::vector<JournalStory> stories = whole_set_ups();
  for (JournalStory& story : stories) story.untouched = true;
  for (auto more : {killed_runs(), changed_machines()})
    stories.insert(stories.end(), more.begin(), more.end());
  return stories;
}

}  // namespace ztcp::setup::test
