// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The functions of rdma-core that DPDK's mlx5 driver calls, each with the version under which
// rdma-core exports it since it has it. A test compares the list with the driver's object, so that
// another release of DPDK that calls others fails there.
//
// VERBS is libibverbs's, MLX5 libmlx5's. LATER: releases of rdma-core that ztcp supports lack it
// (Ubuntu 22.04 has 39). Each of them makes an object, so that a null pointer says that it failed,
// or destroys an object that one of them makes.
#pragma once

#define ZTCP_RDMA_CORE_CALLS(VERBS, MLX5, LATER)                \
  VERBS(ibv_create_comp_channel, "IBVERBS_1.0")                 \
  VERBS(ibv_destroy_comp_channel, "IBVERBS_1.0")                \
  VERBS(ibv_ack_async_event, "IBVERBS_1.1")                     \
  VERBS(ibv_ack_cq_events, "IBVERBS_1.1")                       \
  VERBS(ibv_alloc_pd, "IBVERBS_1.1")                            \
  VERBS(ibv_close_device, "IBVERBS_1.1")                        \
  VERBS(ibv_create_cq, "IBVERBS_1.1")                           \
  VERBS(ibv_create_qp, "IBVERBS_1.1")                           \
  VERBS(ibv_dealloc_pd, "IBVERBS_1.1")                          \
  VERBS(ibv_dereg_mr, "IBVERBS_1.1")                            \
  VERBS(ibv_destroy_cq, "IBVERBS_1.1")                          \
  VERBS(ibv_destroy_qp, "IBVERBS_1.1")                          \
  VERBS(ibv_fork_init, "IBVERBS_1.1")                           \
  VERBS(ibv_free_device_list, "IBVERBS_1.1")                    \
  VERBS(ibv_get_async_event, "IBVERBS_1.1")                     \
  VERBS(ibv_get_cq_event, "IBVERBS_1.1")                        \
  VERBS(ibv_get_device_list, "IBVERBS_1.1")                     \
  VERBS(ibv_get_device_name, "IBVERBS_1.1")                     \
  VERBS(ibv_modify_qp, "IBVERBS_1.1")                           \
  VERBS(ibv_open_device, "IBVERBS_1.1")                         \
  VERBS(ibv_port_state_str, "IBVERBS_1.1")                      \
  VERBS(ibv_query_device, "IBVERBS_1.1")                        \
  VERBS(ibv_query_port, "IBVERBS_1.1")                          \
  VERBS(ibv_reg_mr_iova2, "IBVERBS_1.8")                        \
  VERBS(ibv_import_device, "IBVERBS_1.10")                      \
  VERBS(ibv_import_pd, "IBVERBS_1.10")                          \
  VERBS(ibv_unimport_pd, "IBVERBS_1.10")                        \
  VERBS(ibv_is_fork_initialized, "IBVERBS_1.13")                \
  MLX5(mlx5dv_query_device, "MLX5_1.0")                         \
  MLX5(mlx5dv_create_cq, "MLX5_1.1")                            \
  MLX5(mlx5dv_init_obj, "MLX5_1.2")                             \
  MLX5(mlx5dv_set_context_attr, "MLX5_1.2")                     \
  MLX5(mlx5dv_create_qp, "MLX5_1.3")                            \
  MLX5(mlx5dv_create_wq, "MLX5_1.3")                            \
  MLX5(mlx5dv_create_flow, "MLX5_1.6")                          \
  MLX5(mlx5dv_create_flow_matcher, "MLX5_1.6")                  \
  MLX5(mlx5dv_destroy_flow_matcher, "MLX5_1.6")                 \
  MLX5(mlx5dv_create_flow_action_modify_header, "MLX5_1.7")     \
  MLX5(mlx5dv_create_flow_action_packet_reformat, "MLX5_1.7")   \
  MLX5(mlx5dv_devx_alloc_uar, "MLX5_1.7")                       \
  MLX5(mlx5dv_devx_free_uar, "MLX5_1.7")                        \
  MLX5(mlx5dv_devx_general_cmd, "MLX5_1.7")                     \
  MLX5(mlx5dv_devx_obj_create, "MLX5_1.7")                      \
  MLX5(mlx5dv_devx_obj_destroy, "MLX5_1.7")                     \
  MLX5(mlx5dv_devx_obj_modify, "MLX5_1.7")                      \
  MLX5(mlx5dv_devx_obj_query, "MLX5_1.7")                       \
  MLX5(mlx5dv_devx_query_eqn, "MLX5_1.7")                       \
  MLX5(mlx5dv_devx_umem_dereg, "MLX5_1.7")                      \
  MLX5(mlx5dv_devx_umem_reg, "MLX5_1.7")                        \
  MLX5(mlx5dv_open_device, "MLX5_1.7")                          \
  MLX5(mlx5dv_devx_qp_query, "MLX5_1.8")                        \
  MLX5(mlx5dv_devx_wq_query, "MLX5_1.8")                        \
  MLX5(mlx5dv_devx_create_cmd_comp, "MLX5_1.9")                 \
  MLX5(mlx5dv_devx_destroy_cmd_comp, "MLX5_1.9")                \
  MLX5(mlx5dv_devx_get_async_cmd_comp, "MLX5_1.9")              \
  MLX5(mlx5dv_devx_obj_query_async, "MLX5_1.9")                 \
  MLX5(mlx5dv_dr_action_create_dest_ibv_qp, "MLX5_1.10")        \
  MLX5(mlx5dv_dr_action_create_dest_table, "MLX5_1.10")         \
  MLX5(mlx5dv_dr_action_create_drop, "MLX5_1.10")               \
  MLX5(mlx5dv_dr_action_create_flow_counter, "MLX5_1.10")       \
  MLX5(mlx5dv_dr_action_create_modify_header, "MLX5_1.10")      \
  MLX5(mlx5dv_dr_action_create_packet_reformat, "MLX5_1.10")    \
  MLX5(mlx5dv_dr_action_create_tag, "MLX5_1.10")                \
  MLX5(mlx5dv_dr_action_destroy, "MLX5_1.10")                   \
  MLX5(mlx5dv_dr_domain_create, "MLX5_1.10")                    \
  MLX5(mlx5dv_dr_domain_destroy, "MLX5_1.10")                   \
  MLX5(mlx5dv_dr_domain_sync, "MLX5_1.10")                      \
  MLX5(mlx5dv_dr_matcher_create, "MLX5_1.10")                   \
  MLX5(mlx5dv_dr_matcher_destroy, "MLX5_1.10")                  \
  MLX5(mlx5dv_dr_rule_create, "MLX5_1.10")                      \
  MLX5(mlx5dv_dr_rule_destroy, "MLX5_1.10")                     \
  MLX5(mlx5dv_dr_table_create, "MLX5_1.10")                     \
  MLX5(mlx5dv_dr_table_destroy, "MLX5_1.10")                    \
  MLX5(mlx5dv_devx_create_event_channel, "MLX5_1.11")           \
  MLX5(mlx5dv_devx_destroy_event_channel, "MLX5_1.11")          \
  MLX5(mlx5dv_devx_get_event, "MLX5_1.11")                      \
  MLX5(mlx5dv_devx_subscribe_devx_event, "MLX5_1.11")           \
  MLX5(mlx5dv_devx_subscribe_devx_event_fd, "MLX5_1.11")        \
  MLX5(mlx5dv_alloc_var, "MLX5_1.12")                           \
  MLX5(mlx5dv_dr_action_create_flow_meter, "MLX5_1.12")         \
  MLX5(mlx5dv_dr_action_modify_flow_meter, "MLX5_1.12")         \
  MLX5(mlx5dv_dump_dr_domain, "MLX5_1.12")                      \
  MLX5(mlx5dv_dump_dr_rule, "MLX5_1.12")                        \
  MLX5(mlx5dv_free_var, "MLX5_1.12")                            \
  MLX5(mlx5dv_pp_alloc, "MLX5_1.13")                            \
  MLX5(mlx5dv_pp_free, "MLX5_1.13")                             \
  MLX5(mlx5dv_dr_action_create_default_miss, "MLX5_1.14")       \
  MLX5(mlx5dv_dr_domain_set_reclaim_device_memory, "MLX5_1.14") \
  MLX5(mlx5dv_dr_action_create_dest_devx_tir, "MLX5_1.15")      \
  MLX5(mlx5dv_dr_action_create_dest_array, "MLX5_1.16")         \
  MLX5(mlx5dv_dr_action_create_flow_sampler, "MLX5_1.16")       \
  MLX5(mlx5dv_dr_action_create_aso, "MLX5_1.17")                \
  MLX5(mlx5dv_dr_action_create_pop_vlan, "MLX5_1.17")           \
  MLX5(mlx5dv_dr_action_create_push_vlan, "MLX5_1.17")          \
  MLX5(_mlx5dv_query_port, "MLX5_1.19")                         \
  MLX5(mlx5dv_dr_domain_allow_duplicate_rules, "MLX5_1.20")     \
  LATER(mlx5dv_dr_action_create_dest_ib_port, "MLX5_1.21")      \
  LATER(mlx5dv_create_steering_anchor, "MLX5_1.24")             \
  LATER(mlx5dv_destroy_steering_anchor, "MLX5_1.24")            \
  LATER(mlx5dv_dr_action_create_dest_root_table, "MLX5_1.24")
