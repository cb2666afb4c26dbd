/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * NCCL's tuner in the plugin's library, called as NCCL calls it: over sockets it chooses channels;
 * where it is switched off, or NCCL has taken another network, it changes nothing. Only where
 * CollNet is on, it keeps NCCL from it for all-gather and reduce-scatter.
 *
 *   tuner PLUGIN on|off|old|collnet|collnet-on
 *                                old: a table of NCCL before 2.24
 *                                collnet: off, with CollNet
 *                                collnet-on: on, with CollNet, which is offered by size
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "plugin/abi/nccl_tuner.h"
#include "tests/abi/driver.h"

enum { kAlgorithms = 7, kProtocols = 3, kFirstTuner = 3, kLastTuner = 5 };
enum { kOwnChannels = 0, kFirstWithTuner = 9 };

static const size_t kHalfMib = 512 << 10;

typedef struct {
  int version;
  const void* table;
  void* context;
} Tuner;

static Tuner open_tuner(void* library, int version) {
  char symbol[32];
  snprintf(symbol, sizeof symbol, "ncclTunerPlugin_v%d", version);
  Tuner tuner = {version, dlsym(library, symbol), NULL};
  REQUIRE(tuner.table != NULL, "no %s", symbol);
  const char* name = *(const char* const*)tuner.table;
  REQUIRE(strcmp(name, "ztcp") == 0, "%s is called %s", symbol, name);
  return tuner;
}

static void begin(Tuner* tuner, size_t ranks, size_t hosts) {
  tuner->context = &tuner->context; /* Garbage: each init must set it. */
  switch (tuner->version) {
    case 3:
      REQUIRE_OK(((const ncclTuner_v3_t*)tuner->table)->init(ranks, hosts, NULL, &tuner->context));
      break;
    case 4:
      REQUIRE_OK(((const ncclTuner_v4_t*)tuner->table)->init(ranks, hosts, NULL, &tuner->context));
      break;
    default:
      REQUIRE_OK(((const ncclTuner_v5_t*)tuner->table)
                     ->init(&tuner->context, 7, ranks, hosts, NULL, NULL, NULL));
  }
}

static void end(const Tuner* tuner) {
  switch (tuner->version) {
    case 3:
      REQUIRE_OK(((const ncclTuner_v3_t*)tuner->table)->destroy(tuner->context));
      break;
    case 4:
      REQUIRE_OK(((const ncclTuner_v4_t*)tuner->table)->destroy(tuner->context));
      break;
    default:
      REQUIRE_OK(((const ncclTuner_v5_t*)tuner->table)->finalize(tuner->context));
  }
}

typedef struct {
  float costs[kAlgorithms][kProtocols];
  int channels;
} Answer;

/* For two hosts, with costs as in NCCL's model of a ring, and CollNet last. */
static Answer ask(const Tuner* tuner, ncclFunc_t collective, size_t bytes) {
  Answer answer = {.channels = kOwnChannels};
  for (int a = 0; a < kAlgorithms; ++a)
    for (int p = 0; p < kProtocols; ++p) answer.costs[a][p] = -1.0f;
  answer.costs[NCCL_ALGO_RING][NCCL_PROTO_LL] = 20.0f;
  answer.costs[NCCL_ALGO_COLLNET_DIRECT][NCCL_PROTO_SIMPLE] = 60.0f;
  answer.costs[NCCL_ALGO_COLLNET_CHAIN][NCCL_PROTO_SIMPLE] = 60.0f;
  answer.costs[NCCL_ALGO_RING][NCCL_PROTO_SIMPLE] = 50.0f;
  float** table = (float**)answer.costs;
  switch (tuner->version) {
    case 3:
      REQUIRE_OK(((const ncclTuner_v3_t*)tuner->table)
                     ->getCollInfo(tuner->context, collective, bytes, 1, table, kAlgorithms,
                                   kProtocols, &answer.channels));
      break;
    case 4:
      REQUIRE_OK(((const ncclTuner_v4_t*)tuner->table)
                     ->getCollInfo(tuner->context, collective, bytes, 1, table, kAlgorithms,
                                   kProtocols, 0, &answer.channels));
      break;
    default:
      REQUIRE_OK(((const ncclTuner_v5_t*)tuner->table)
                     ->getCollInfo(tuner->context, collective, bytes, 1, table, kAlgorithms,
                                   kProtocols, 0, &answer.channels));
  }
  REQUIRE(answer.costs[NCCL_ALGO_RING][NCCL_PROTO_SIMPLE] == 50.0f, "a cost was changed");
  return answer;
}

static bool keeps_ll(const Answer* answer) {
  return answer->costs[NCCL_ALGO_RING][NCCL_PROTO_LL] == 20.0f;
}
static bool keeps_collnet(const Answer* answer) {
  return answer->costs[NCCL_ALGO_COLLNET_DIRECT][NCCL_PROTO_SIMPLE] == 60.0f;
}

static void require_untouched(const Tuner* tuner, ncclFunc_t collective) {
  const Answer answer = ask(tuner, collective, kHalfMib);
  REQUIRE(answer.channels == kOwnChannels, "channels were chosen");
  REQUIRE(keeps_ll(&answer), "LL was barred");
  REQUIRE(keeps_collnet(&answer), "CollNet was barred");
}

static void require_no_collnet(const Tuner* tuner, ncclFunc_t collective) {
  const Answer answer = ask(tuner, collective, kHalfMib);
  REQUIRE(answer.channels == kOwnChannels, "channels were chosen");
  REQUIRE(keeps_ll(&answer), "LL was barred");
  REQUIRE(!keeps_collnet(&answer), "CollNet was not barred");
}

/* The speed of lo is unknown, so NCCL is told 10 Gb/s. */
static void require_collnet_by_size(const Tuner* tuner) {
  const Answer offered = ask(tuner, ncclFuncAllReduce, 64 << 10);
  REQUIRE(offered.costs[NCCL_ALGO_COLLNET_CHAIN][NCCL_PROTO_SIMPLE] == 0.0f, "not offered");
  const Answer slower = ask(tuner, ncclFuncAllReduce, 256 << 10);
  REQUIRE(slower.costs[NCCL_ALGO_COLLNET_CHAIN][NCCL_PROTO_SIMPLE] == -1.0f, "offered");
}

static void require_tuned(const Tuner* tuner) {
  const Answer large = ask(tuner, ncclFuncAllReduce, kHalfMib);
  REQUIRE(large.channels == 4, "not four channels");
  REQUIRE(!keeps_ll(&large), "LL was not barred");
  const Answer small = ask(tuner, ncclFuncAllReduce, 8);
  REQUIRE(small.channels == 1 && keeps_ll(&small), "not one channel, by LL");
}

int main(int argc, char** argv) {
  REQUIRE(argc == 3, "usage: tuner PLUGIN on|off|old|collnet|collnet-on");
  const bool is_by_size = strcmp(argv[2], "collnet-on") == 0;
  const bool is_on = strcmp(argv[2], "on") == 0 || is_by_size;
  const bool is_old = strcmp(argv[2], "old") == 0;
  setenv("ZTCP_TRANSPORT", "sockets", 1);
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  const bool has_collnet = strcmp(argv[2], "collnet") == 0 || is_by_size;
  setenv("ZTCP_TUNER", is_old || is_on ? "on" : "off", 1);
  setenv("ZTCP_COLLNET", has_collnet ? "1" : "0", 1);
  setenv("ZTCP_COLLNET_WIRE", "bf16", 1);
  void* library = load_plugin(argv[1]);

  /* NCCL has taken another network: ours was never initialised. */
  for (int version = kFirstTuner; version <= kLastTuner; ++version) {
    Tuner tuner = open_tuner(library, version);
    begin(&tuner, 2, 2);
    require_untouched(&tuner, ncclFuncAllReduce);
    end(&tuner);
  }

  Net net = open_table(library, is_old ? kFirstWithTuner - 1 : kFirstWithTuner);
  REQUIRE_OK(net_init(&net));
  REQUIRE(log_has(is_on    ? "ZTCP_TUNER=off on all hosts leaves them to NCCL"
                  : is_old ? "NCCL before 2.24: NCCL chooses its channels"
                           : "ZTCP_TUNER=off: NCCL chooses its channels"),
          "the log does not report it");
  for (int version = kFirstTuner; version <= kLastTuner; ++version) {
    Tuner tuner = open_tuner(library, version);
    begin(&tuner, 2, 2);
    if (is_by_size)
      require_collnet_by_size(&tuner);
    else if (is_on)
      require_tuned(&tuner);
    else
      require_untouched(&tuner, ncclFuncAllReduce);
    if (has_collnet && !is_by_size) {
      require_no_collnet(&tuner, ncclFuncAllGather);
      require_no_collnet(&tuner, ncclFuncReduceScatter);
    }
    end(&tuner);
    /* All ranks on one host. */
    begin(&tuner, 2, 1);
    require_untouched(&tuner, ncclFuncAllReduce);
    require_untouched(&tuner, ncclFuncAllGather);
    end(&tuner);
  }
  REQUIRE_OK(net_finalize(&net));
  return 0;
}
