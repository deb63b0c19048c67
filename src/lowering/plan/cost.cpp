#include "lowering/plan/cost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "braid/error.h"
#include "codegen/kernel/rough_time.h"
#include "ir/attention.h"
#include "ir/collective.h"
#include "ir/fail.h"
#include "ir/groups.h"
#include "ir/mutation.h"
#include "ir/op_registry.h"
#include "ir/views.h"
#include "lowering/fuse/kernel_body.h"
#include "lowering/micro_pipeline/pipeline_cost.h"

namespace braid {
namespace {

/// The alpha-beta model of an algorithm, for n ranks and S bytes per rank:
///   t = base + barriers * barrier + hops * 2(n-1) + bytes / (share * link rate)
///   bytes = S * (peers * (n-1) + slices * (n-1)/n + whole + slice / n)
struct CollectiveModel {
  Algorithm algorithm;
  double base_ns;
  double hop_ns;
  int barriers;
  double peers, slices, whole, slice;
  double share;  ///< share of the link's rate that it reaches
};
/// Ordered by algorithm.
constexpr CollectiveModel kCollectives[] = {
    {Algorithm::kOneShot, 0, 0, 1, 1, 0, 0, 0, 0.8},
    {Algorithm::kTwoShot, 0, 0, 2, 0, 2, 0, 0, 0.8},
    // Stores of 8 bytes: NCCL assumes 88 GB/s of payload of an A100's 300 for its LL protocol.
    {Algorithm::kPackets, 0, 0, 0, 2, 0, 0, 0, 0.6},
    // NCCL assumes 480 GB/s of 8 H100, and 1000 of 8 B200, for 2(n-1)/n S.
    {Algorithm::kMultimem, 0, 0, 2, 0, 0, 1, 1, 0.69},
    {Algorithm::kInKernel, 0, 0, 1, 1, 0, 0, 0, 0.8},
    // NCCL's protocols LL, LL128 and Simple, with the constants of its tuning model
    // (graph/tuning.cc).
    {Algorithm::kByCommunicator, 6600, 600, 0, 0, 2, 0, 0, 0.3},
    {Algorithm::kByCommunicator, 14000, 1900, 0, 0, 2, 0, 0, 0.86},
    {Algorithm::kByCommunicator, 8400, 3400, 0, 0, 2, 0, 0, 0.92},
    // A barrier before the first copy and after the last; a copy starts as slowly as a kernel.
    {Algorithm::kByCopies, 0, 2500, 2, 1, 0, 0, 0, 0.85},
};

double type_bytes(const TensorType& type, const Bindings& bindings) {
  double bytes = static_cast<double>(dtype_size(type.dtype));
  for (const Dim& dim : type.shape) bytes *= static_cast<double>(dim.evaluate(bindings));
  return bytes;
}

/// The arithmetic rate of a node other than a matmul. An opaque matmul is declared as such and has
/// the dtype of its result; it gets the full sustained rate of the matrix units, which is twice as
/// high for 8-bit operands as for 16-bit ones.
double tflops_of(const Graph& graph, const Node& node, const DeviceModel& device) {
  const auto* kind =
      node.op->op_class == OpClass::kOpaque ? node.attr<std::string>("kind") : nullptr;
  if (kind == nullptr || *kind != "gemm") return device.f32_tflops;
  const std::size_t bytes = dtype_size(graph.type(node.outputs[0]).dtype);
  if (bytes > 2) return device.f32_tflops;
  return (bytes == 1 ? 2 : 1) * architecture(device.sm).matrix_share * device.f16_tflops;
}

/// The time of a node's operations on the unit that does them, in nanoseconds.
double arithmetic_ns(const Graph& graph, const Node& node, const Bindings& bindings,
                     const DeviceModel& device) {
  return node_flops(graph, node, bindings) / (tflops_of(graph, node, device) * 1e3);
}

/// The protocols of an algorithm; most have one. Without one it is a communicator's ring.
std::span<const CollectiveModel> collective_models(Algorithm algorithm) {
  if (algorithm == Algorithm::kNone) algorithm = Algorithm::kByCommunicator;
  const auto is_it = [&](const CollectiveModel& model) { return model.algorithm == algorithm; };
  const auto* const first = std::ranges::find_if(kCollectives, is_it);
  return {first, std::find_if_not(first, std::end(kCollectives), is_it)};
}

/// The time of the fastest protocol.
template <class MovedBytes>
double least_ns(std::span<const CollectiveModel> models, const DeviceModel& device, double hops,
                const MovedBytes& moved_bytes) {
  double least = std::numeric_limits<double>::infinity();
  for (const CollectiveModel& model : models) {
    least =
        std::min(least, model.base_ns + model.barriers * device.barrier_ns + model.hop_ns * hops +
                            moved_bytes(model) / (model.share * device.nvlink_gbs));
  }
  return least;
}

/// Bytes of the pages that a row of a paged attention's table has room for, in all sequences; 0 for
/// an operand that has no pages.
double page_bytes(const Graph& body, const Node& node, ValueId input, const Bindings& bindings) {
  if (node.op->op_class != OpClass::kAttention || !attention_of(body, node).paged ||
      (input != node.inputs[1] && input != node.inputs[2])) {
    return 0;
  }
  const auto extent = [&](ValueId of, std::size_t dim) {
    return static_cast<double>(body.type(of).shape[dim].evaluate(bindings));
  };
  const ValueId table = node.inputs[kPageTable];
  return type_bytes(body.type(input), bindings) / extent(input, 0) * extent(table, 0) *
         extent(table, 1);
}

/// Bytes that a body reads: of a table that it only looks rows up in, these rows; of an operand
/// that it only takes parts of, these parts; of pages no more than a table has room for.
double bytes_read(const Graph& body, const Bindings& bindings) {
  const std::vector<std::vector<NodeId>> users = body.users();
  const std::vector<Update> updates = updates_of(body);
  double bytes = 0;
  for (std::size_t i = 0; i < body.inputs().size(); ++i) {
    if (std::ranges::find(updates, i, &Update::operand) != updates.end()) continue;
    const ValueId input = body.input_values()[i];
    const auto& readers = users[input];
    double some = 0;
    bool takes_some = !readers.empty();
    for (NodeId reader : readers) {
      const Node& node = body.node(reader);
      const bool looks_up = takes_indices(node) && node.inputs[0] == input;
      const double pages = page_bytes(body, node, input, bindings);
      takes_some = takes_some && (looks_up || pages > 0 || node.op->view == View::kPart);
      some += pages;
      for (ValueId part : node.outputs) {
        if (pages == 0) some += type_bytes(body.type(part), bindings);
      }
    }
    const double whole = type_bytes(body.type(input), bindings);
    bytes += takes_some ? std::min(whole, some) : whole;
  }
  return bytes;
}

/// Some multiprocessors copy a panel of rows at a time while the others multiply. The last rows
/// that arrive still have to be multiplied.
double beside_gather_ns(const KernelSpec& spec, const Node& gather, double gather_ns,
                        double matmul_ns, const Bindings& bindings, const DeviceModel& device) {
  constexpr double kBlockGbs = 44;  // rate of one multiprocessor over NVLink, from NCCL 2.28's
                                    // model
  const Graph& body = *spec.body;
  const auto copy_blocks = static_cast<double>(spec.config.at(std::string(kCopyBlocksSetting)));
  const auto panel_rows = static_cast<double>(spec.config.at("BLOCK_M"));
  const auto ranks = static_cast<double>(group_of(body, gather).size);
  const TensorType& shard = body.type(gather.inputs[0]);
  const double rows = static_cast<double>(shard.shape[0].evaluate(bindings));
  const double panels = std::ceil(rows / panel_rows) * (ranks - 1);
  const double panel_bytes = type_bytes(shard, bindings) * std::min(1.0, panel_rows / rows);
  const double copied_ns = std::ceil(panels / copy_blocks) * panel_bytes / kBlockGbs;
  return std::max(matmul_ns,
                  std::max(gather_ns, device.barrier_ns + copied_ns) + matmul_ns / ranks);
}

/// Tiles are sent while others are multiplied, except this rank's own, which come last; then there
/// is a barrier, and what arrived is added up.
double beside_scatter_ns(const Graph& body, const Node& scatter, double scatter_ns,
                         double matmul_ns, const Bindings& bindings, const DeviceModel& device) {
  const double sum_ns = traffic_ns(type_bytes(body.type(scatter.inputs[0]), bindings) +
                                       type_bytes(body.type(scatter.outputs[0]), bindings),
                                   device);
  const double sent_ns = std::max(0.0, scatter_ns - device.barrier_ns);
  return std::max(matmul_ns, sent_ns) + device.barrier_ns + sum_ns;
}

/// The time of a node as a kernel of its own. Only matmuls ask for a configuration. How the
/// operands of one lie in memory is part of its kernel: movements in front of it, which cost
/// nothing there.
double lone_kernel_ns(const Graph& graph, const Node& node, const Bindings& bindings,
                      const DeviceModel& device) {
  const OpClass c = node.op->op_class;
  const bool multiplies = c == OpClass::kMatmul || c == OpClass::kAttention;
  std::vector<ValueId> inputs;
  std::vector<NodeId> nodes;
  const auto add_once = [](auto& to, auto id) {
    if (std::ranges::find(to, id) == to.end()) to.push_back(id);
  };
  const auto take = [&](ValueId value, const auto& self) -> void {
    const NodeId producer = graph.value(value).producer;
    const bool moves =
        c == OpClass::kMatmul && producer >= 0 && graph.node(producer).op->view == View::kPermute;
    if (!moves) return add_once(inputs, value);
    self(graph.node(producer).inputs[0], self);
    add_once(nodes, producer);
  };
  for (const ValueId input : node.inputs) take(input, take);
  nodes.push_back(graph.value(node.outputs[0]).producer);
  const auto body = make_body(graph, nodes, inputs, node.outputs);
  return kernel_ns(
      {body, multiplies ? default_config(*body, Target::parse(device.name)) : Config{}}, bindings,
      device);
}

}  // namespace

namespace {

/// A copy within the rank's own memory.
double own_copy_ns(double bytes, const DeviceModel& device) {
  return traffic_ns(2 * bytes, device);
}

}  // namespace

double collective_node_ns(const Graph& graph, const Node& node, Algorithm algorithm,
                          const Bindings& bindings, const DeviceModel& device) {
  const Group& group = group_of(graph, node);
  const std::span<const CollectiveModel> models = collective_models(algorithm);
  double ns = 0;
  for (std::size_t i = 0; i < node.outputs.size() && group.size > 1; ++i) {
    const TensorType& operand = graph.type(node.inputs[i]);
    const double operand_bytes = type_bytes(operand, bindings);
    const Collective form = collective_of(graph, node, operand);
    if (form.reduce && !form.scatter_dim) {
      ns += collective_ns(algorithm, group.size, static_cast<std::int64_t>(operand_bytes), device);
      continue;
    }
    const double bytes =
        form.reduce ? operand_bytes : type_bytes(graph.type(node.outputs[i]), bindings);
    const auto n = static_cast<double>(group.size);
    const double moved = form.src ? bytes : bytes * (n - 1) / n;
    ns += least_ns(models, device, n - 1, [&](const CollectiveModel&) { return moved; });
    if (algorithm == Algorithm::kByCopies) ns += own_copy_ns(bytes / n, device);
  }
  return ns;
}

double collective_ns(Algorithm algorithm, std::int64_t world, std::int64_t bytes,
                     const DeviceModel& device) {
  const std::span<const CollectiveModel> models = collective_models(algorithm);
  if (world <= 1) return 0;
  const auto n = static_cast<double>(world);
  return least_ns(models, device, 2 * (n - 1), [&](const CollectiveModel& model) {
    return static_cast<double>(bytes) *
           (model.peers * (n - 1) + model.slices * (n - 1) / n + model.whole + model.slice / n);
  });
}

double barriers_ns(Algorithm algorithm, const DeviceModel& device) {
  return collective_models(algorithm)[0].barriers * device.barrier_ns;
}

double node_ns(const Graph& graph, const Node& node, const Bindings& bindings,
               const DeviceModel& device) {
  if (auto hint = node.hints.find("runtime_ns"); hint != node.hints.end()) return hint->second;
  switch (node.op->op_class) {
    case OpClass::kWait:
    case OpClass::kChunk:
      return 0;
    case OpClass::kPeerCopy: {
      const double bytes = type_bytes(graph.type(node.outputs[0]), bindings);
      const double rate = collective_models(Algorithm::kByCopies)[0].share * device.nvlink_gbs;
      const bool own = *node.attr<std::int64_t>("shift") == 0;
      return device.launch_ns + (own ? own_copy_ns(bytes, device) : bytes / rate);
    }
    case OpClass::kView:
      if (names_bytes(node.op_name())) return 0;
      break;
    case OpClass::kCollective:
      return device.launch_ns +
             collective_node_ns(graph, node, algorithm_of(node), bindings, device);
    case OpClass::kFusedMatmul:
      return estimate_fused(graph, node, bindings, device).least_ns();
    case OpClass::kKernel:
      check_kernel(node);  // a user's kernel may lack what its cost depends on
      return kernel_ns(spec_of(node), bindings, device);
    default:
      break;
  }
  return lone_kernel_ns(graph, node, bindings, device);
}

namespace {

/// Without the launch. `resident`: as one of joined kernels.
double work_ns(const KernelSpec& spec, const Bindings& bindings, const DeviceModel& device,
               bool resident) {
  const Graph& body = *spec.body;
  double bytes = bytes_read(body, bindings);
  for (ValueId value : body.outputs()) {
    const Node* update = update_of(body, value);
    bytes += type_bytes(body.type(update == nullptr ? value : update->inputs.back()), bindings);
  }
  const double multiplied = rough_ns(spec, bindings, Target::parse(device.name), resident);
  double arithmetic = 0;
  double before = 0;  // time of the collective's prologue
  const Node* beside = nullptr;
  for (const Node& inner : body.nodes()) {
    if (inner.op->op_class == OpClass::kMatmul || inner.op->op_class == OpClass::kAttention) {
      continue;
    }
    if (inner.op->op_class != OpClass::kCollective) {
      arithmetic += arithmetic_ns(body, inner, bindings, device);
    } else if (is_in_kernel(inner) && inner.op->collective != CollectiveKind::kAllReduce) {
      beside = &inner;
    } else {
      before += node_ns(body, inner, bindings, device) - device.launch_ns;
      // Its own traffic is included in its time.
      for (const ValueId value : inner.inputs) {
        if (body.value(value).producer < 0) bytes -= type_bytes(body.type(value), bindings);
      }
      for (const ValueId value : inner.outputs) bytes -= type_bytes(body.type(value), bindings);
    }
  }
  const double work = std::max({multiplied, arithmetic, traffic_ns(std::max(0.0, bytes), device)});
  if (beside == nullptr) return before + work;
  const double collective = node_ns(body, *beside, bindings, device) - device.launch_ns;
  return gathers_in_kernel(*beside)
             ? beside_gather_ns(spec, *beside, collective, work, bindings, device)
             : beside_scatter_ns(body, *beside, collective, work, bindings, device);
}

}  // namespace

double kernel_ns(const KernelSpec& spec, const Bindings& bindings, const DeviceModel& device) {
  // Blocks of a grid meet in 1.4 us on a V100 (Zhang et al., Synchronization Methods in Nvidia
  // GPUs, 2020: one block on each multiprocessor).
  constexpr double kMeetNs = 1400;
  if (!is_joined(*spec.body)) return device.launch_ns + work_ns(spec, bindings, device, false);
  double ns = device.launch_ns - kMeetNs;
  for (const Node& node : spec.body->nodes()) {
    ns += kMeetNs + work_ns(spec_of(node), bindings, device, true);
  }
  return ns;
}

double traffic_ns(double bytes, const DeviceModel& device) {
  return bytes / (kMemoryShare * device.hbm_gbs);
}

double memory_ns(double bytes, std::int64_t blocks, double in_flight, const DeviceModel& device) {
  // Latency of a busy memory: an H100 needs about 2.3 MB in flight for its full rate.
  constexpr double kLatencyNs = 700;
  return std::max(traffic_ns(bytes, device),
                  bytes * kLatencyNs / (static_cast<double>(blocks) * in_flight));
}

Bindings max_bindings(const SymbolTable& symbols) {
  Bindings bindings;
  for (const auto& [name, symbol] : symbols) {
    bindings.emplace(name, symbol.max / symbol.multiple_of * symbol.multiple_of);
  }
  return bindings;
}

std::int64_t max_bytes(const TensorType& type, const SymbolTable& symbols) {
  auto bytes = static_cast<std::int64_t>(dtype_size(type.dtype));
  for (const Dim& dim : type.shape) bytes *= dim.max(symbols);
  return bytes;
}

}  // namespace braid
