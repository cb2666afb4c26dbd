/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * NCCL's tuner in the plugin's library, called as NCCL calls it: over sockets it chooses channels;
 * where it is switched off, or NCCL has taken another network, it changes nothing.
 *
 *   tuner PLUGIN on|off|old      old: a table of NCCL before 2.24
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

/* Channels for an all-reduce of two hosts, with costs as in NCCL's model of a ring. */
static int ask(const Tuner* tuner, size_t bytes, bool* keeps_ll) {
  float costs[kAlgorithms][kProtocols];
  for (int a = 0; a < kAlgorithms; ++a)
    for (int p = 0; p < kProtocols; ++p) costs[a][p] = -1.0f;
  costs[NCCL_ALGO_RING][NCCL_PROTO_LL] = 20.0f;
  costs[NCCL_ALGO_RING][NCCL_PROTO_SIMPLE] = 50.0f;
  int channels = kOwnChannels;
  float** table = (float**)costs;
  switch (tuner->version) {
    case 3:
      REQUIRE_OK(((const ncclTuner_v3_t*)tuner->table)
                     ->getCollInfo(tuner->context, ncclFuncAllReduce, bytes, 1, table, kAlgorithms,
                                   kProtocols, &channels));
      break;
    case 4:
      REQUIRE_OK(((const ncclTuner_v4_t*)tuner->table)
                     ->getCollInfo(tuner->context, ncclFuncAllReduce, bytes, 1, table, kAlgorithms,
                                   kProtocols, 0, &channels));
      break;
    default:
      REQUIRE_OK(((const ncclTuner_v5_t*)tuner->table)
                     ->getCollInfo(tuner->context, ncclFuncAllReduce, bytes, 1, table, kAlgorithms,
                                   kProtocols, 0, &channels));
  }
  *keeps_ll = costs[NCCL_ALGO_RING][NCCL_PROTO_LL] == 20.0f;
  REQUIRE(costs[NCCL_ALGO_RING][NCCL_PROTO_SIMPLE] == 50.0f, "a cost was changed");
  return channels;
}

static void require_untouched(const Tuner* tuner) {
  bool keeps_ll = false;
  REQUIRE(ask(tuner, kHalfMib, &keeps_ll) == kOwnChannels, "channels were chosen");
  REQUIRE(keeps_ll, "LL was barred");
}

int main(int argc, char** argv) {
  REQUIRE(argc == 3, "usage: tuner PLUGIN on|off|old");
  const bool is_on = strcmp(argv[2], "on") == 0;
  const bool is_old = strcmp(argv[2], "old") == 0;
  setenv("ZTCP_TRANSPORT", "sockets", 1);
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  setenv("ZTCP_TUNER", is_old ? "on" : argv[2], 1);
  void* library = load_plugin(argv[1]);

  /* NCCL has taken another network: ours was never initialised. */
  for (int version = kFirstTuner; version <= kLastTuner; ++version) {
    Tuner tuner = open_tuner(library, version);
    begin(&tuner, 2, 2);
    require_untouched(&tuner);
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
    if (is_on) {
      bool keeps_ll = false;
      REQUIRE(ask(&tuner, kHalfMib, &keeps_ll) == 4, "not four channels");
      REQUIRE(!keeps_ll, "LL was not barred");
      REQUIRE(ask(&tuner, 8, &keeps_ll) == 1 && keeps_ll, "not one channel, by LL");
    } else {
      require_untouched(&tuner);
    }
    end(&tuner);
    /* All ranks on one host. */
    begin(&tuner, 2, 1);
    require_untouched(&tuner);
    end(&tuner);
  }
  REQUIRE_OK(net_finalize(&net));
  return 0;
}
