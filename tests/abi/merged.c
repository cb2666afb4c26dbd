/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * NICs that NCCL merges into one device, as it does for the ports of one card: makeVDevice, the
 * device's properties, and messages over it; and a plugin that is loaded again starts without
 * merged devices.
 *
 *   merged PLUGIN VERSION
 */
#include <string.h>
#include <unistd.h>

#include "tests/abi/driver.h"

enum { kBytes = 1 << 20, kMerged = 2 };

static void look_at(const Net* net) {
  Properties parts[2];
  Properties merged;
  REQUIRE_OK(net_properties(net, 0, &parts[0]));
  REQUIRE_OK(net_properties(net, 1, &parts[1]));
  REQUIRE_OK(net_properties(net, kMerged, &merged));
  REQUIRE(strcmp(merged.name, "ztcp1+ztcp0") == 0, "%s", merged.name);
  REQUIRE(merged.ndevs == 2 && merged.devs[0] == 1 && merged.devs[1] == 0, "of %d: %d and %d",
          merged.ndevs, merged.devs[0], merged.devs[1]);
  REQUIRE(parts[1].ndevs == 1 && parts[1].devs[0] == 1, "a NIC alone is itself");
  REQUIRE(merged.speed == parts[0].speed + parts[1].speed, "%d Mb/s", merged.speed);
  REQUIRE(merged.ptr_support == (parts[0].ptr_support & parts[1].ptr_support), "pointers %d",
          merged.ptr_support);
  if (net->version >= kFirstWithRails) {
    REQUIRE(parts[0].rail == 0 && parts[1].rail == 1, "rails %d and %d", parts[0].rail,
            parts[1].rail);
    REQUIRE(merged.rail == NCCL_NET_ID_UNDEF, "a device of two rails is of rail %d", merged.rail);
  }
}

static void exchange(const Net* net, size_t size) {
  unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];
  void* listener = NULL;
  REQUIRE_OK(net_listen(net, kMerged, handle, &listener));
  void* sender = connect_until_done(net, kMerged, handle);
  void* receiver = accept_until_done(net, listener);
  unsigned char* from = malloc(kBytes);
  unsigned char* to = calloc(1, kBytes);
  for (size_t i = 0; i < size; ++i) from[i] = (unsigned char)(i * 7 + i / 251);
  void* from_mh = NULL;
  void* to_mh = NULL;
  REQUIRE_OK(net_reg_mr(net, sender, from, kBytes, NCCL_PTR_HOST, &from_mh));
  REQUIRE_OK(net_reg_mr(net, receiver, to, kBytes, NCCL_PTR_HOST, &to_mh));
  void* receive = NULL;
  void* send = NULL;
  int got = -1;
  REQUIRE_OK(net_irecv(net, receiver, 1, to, kBytes, to_mh, &receive));
  while (send == NULL) REQUIRE_OK(net_isend(net, sender, from, size, from_mh, &send));
  wait_for(net, receive, &got);
  wait_for(net, send, NULL);
  REQUIRE(got == (int)size && memcmp(from, to, size) == 0, "%d of %zu bytes", got, size);
  REQUIRE_OK(net_dereg_mr(net, sender, from_mh));
  REQUIRE_OK(net_dereg_mr(net, receiver, to_mh));
  REQUIRE_OK(net_close_send(net, sender));
  REQUIRE_OK(net_close_recv(net, receiver));
  REQUIRE_OK(net_close_listen(net, listener));
  free(from);
  free(to);
}

int main(int argc, char** argv) {
  REQUIRE(argc == 3, "usage: merged PLUGIN VERSION");
  alarm(100);
  Net net = open_table(load_plugin(argv[1]), atoi(argv[2]));
  for (int load = 0; load < 2; ++load) {
    REQUIRE_OK(net_init(&net));
    int count = 0;
    REQUIRE_OK(net_devices(&net, &count));
    REQUIRE(count == kMerged, "%d devices", count);
    int made = -1;
    const int parts[] = {1, 0};
    REQUIRE_OK(net_make_vdevice(&net, 2, parts, &made));
    REQUIRE(made == kMerged, "device %d", made);
    REQUIRE_OK(net_devices(&net, &count));
    REQUIRE(count == kMerged + 1, "%d devices", count);
    look_at(&net);
    exchange(&net, 8);
    exchange(&net, kBytes);
    const int none[] = {0, 7};
    REQUIRE(net_make_vdevice(&net, 2, none, &made) != ncclSuccess,
            "a merge with a missing device succeeded");
    const int again[] = {0, kMerged};
    REQUIRE(made == kMerged, "the output was written on failure");
    /* A host that asks for every NIC gets a device for each of those that can't be merged. */
    const int shown_alone = net.version < kFirstWithContext;
    REQUIRE((net_make_vdevice(&net, 2, again, &made) == ncclSuccess) == shown_alone,
            "of a merged one");
    REQUIRE_OK(net_make_vdevice(&net, 1, parts, &made));
    REQUIRE_OK(net_devices(&net, &count));
    REQUIRE(made == count - 1 && count == kMerged + 2 + 2 * shown_alone, "%d devices", count);
    REQUIRE_OK(net_finalize(&net));
  }
  return 0;
}
