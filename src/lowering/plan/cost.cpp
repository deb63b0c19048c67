#include "lowering/plan/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "braid/error.h"
#include "ir/collective.h"
#include "ir/op_registry.h"
#include "ir/views.h"

namespace braid {
namespace {

/// Alpha and beta of an algorithm, for n ranks and S bytes per rank:
///   t = base + barriers * barrier + hops * 2(n-1) + bytes / (share * link rate)
///   bytes = S * (peers * (n-1) + slices * (n-1)/n + whole + slice / n)
struct CollectiveModel {
  std::string_view algorithm;
  double base_ns;
  double hop_ns;
  int barriers;
  double peers, slices, whole, slice;
  double share;  ///< of the link's rate that it reaches
};
constexpr CollectiveModel kCollectives[] = {
    {"one_shot", 0, 0, 1, 1, 0, 0, 0, 0.8},
    {"two_shot", 0, 0, 2, 0, 2, 0, 0, 0.8},
    // Stores of 8 bytes: NCCL counts on 88 GB/s of payload of an A100's 300, its LL protocol.
    {"ll", 0, 0, 0, 2, 0, 0, 0, 0.6},
    // NCCL counts on 480 GB/s of 8 H100, and 1000 of 8 B200, for 2(n-1)/n S.
    {"multimem", 0, 0, 2, 0, 0, 1, 1, 0.69},
    {"in_kernel", 0, 0, 1, 1, 0, 0, 0, 0.8},
    {"ring", 8400, 3400, 0, 0, 2, 0, 0, 0.92},
};

double type_bytes(const TensorType& type, const Bindings& bindings) {
  double bytes = static_cast<double>(dtype_size(type.dtype));
  for (const Dim& dim : type.shape) bytes *= static_cast<double>(dim.evaluate(bindings));
  return bytes;
}

std::vector<TensorType> types_of(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<TensorType> types;
  types.reserve(values.size());
  for (ValueId value : values) types.push_back(graph.type(value));
  return types;
}

/// Operations of one node, in nanoseconds of the unit that does them.
double arithmetic_ns(const Graph& graph, const Node& node, const Bindings& bindings,
                     const DeviceModel& device) {
  const auto inputs = types_of(graph, node.inputs);
  const auto outputs = types_of(graph, node.outputs);
  const bool matrix_unit =
      node.op->op_class == OpClass::kMatmul && dtype_size(outputs[0].dtype) == 2;
  const double tflops = matrix_unit ? device.f16_tflops : device.f32_tflops;
  return node.op->flops(inputs, outputs, bindings) / (tflops * 1e3);
}

const CollectiveModel& collective_model(std::string_view algorithm) {
  for (const CollectiveModel& model : kCollectives) {
    if (model.algorithm == algorithm) return model;
  }
  throw_invalid("", fmt::format("unknown collective algorithm '{}'; expected one_shot, two_shot, "
                                "ll, multimem, in_kernel or ring",
                                algorithm));
}

/// An all-reduce by its algorithm. Of the others each algorithm moves the same bytes, once around
/// a ring or straight from their owners: those of the result, or of the operand in a reduction,
/// which are not this rank's own.
double collective_node_ns(const Graph& graph, const Node& node, const Bindings& bindings,
                          const DeviceModel& device) {
  const Group& group = graph.groups().find(*node.attr<std::string>("group"))->second;
  const std::string& given = *node.attr<std::string>("algorithm");
  const bool rings = given.empty() || given == kByCommunicator;
  const std::string_view algorithm = rings ? "ring" : std::string_view(given);
  const CollectiveModel& model = collective_model(algorithm);
  double ns = 0;
  for (std::size_t i = 0; i < node.outputs.size() && group.size > 1; ++i) {
    const TensorType& operand = graph.type(node.inputs[i]);
    const double operand_bytes = type_bytes(operand, bindings);
    const Collective form = collective_of(graph, node.op_name(), node.attrs, operand);
    if (form.reduce && !form.scatter_dim) {
      ns += collective_ns(algorithm, group.size, static_cast<std::int64_t>(operand_bytes), device);
      continue;
    }
    const double bytes =
        form.reduce ? operand_bytes : type_bytes(graph.type(node.outputs[i]), bindings);
    const auto n = static_cast<double>(group.size);
    const double moved = form.src ? bytes : bytes * (n - 1) / n;
    ns += model.base_ns + model.barriers * device.barrier_ns + model.hop_ns * (n - 1) +
          moved / (model.share * device.nvlink_gbs);
  }
  return ns;
}

/// A body: its collective, then the slowest of its traffic, its arithmetic and what goes on beside.
double kernel_ns(const Graph& graph, const Node& node, const Graph& body, const Bindings& bindings,
                 const DeviceModel& device) {
  double bytes = 0;
  double arithmetic = 0;
  double collective = 0;
  double beside = 0;  // of a collective that goes on while others are multiplied
  for (ValueId value : node.inputs) bytes += type_bytes(graph.type(value), bindings);
  for (ValueId value : node.outputs) bytes += type_bytes(graph.type(value), bindings);
  for (const Node& inner : body.nodes()) {
    if (inner.op->op_class == OpClass::kCollective) {
      (is_in_kernel(inner) ? beside : collective) +=
          collective_node_ns(body, inner, bindings, device);
    } else {
      arithmetic += arithmetic_ns(body, inner, bindings, device);
    }
  }
  return device.launch_ns + collective + std::max({beside, arithmetic, bytes / device.hbm_gbs});
}

}  // namespace

double collective_ns(std::string_view algorithm, std::int64_t world, std::int64_t bytes,
                     const DeviceModel& device) {
  const CollectiveModel& model = collective_model(algorithm);
  if (world <= 1) return 0;
  const auto n = static_cast<double>(world);
  const double moved =
      static_cast<double>(bytes) *
      (model.peers * (n - 1) + model.slices * (n - 1) / n + model.whole + model.slice / n);
  return model.base_ns + model.barriers * device.barrier_ns + model.hop_ns * 2 * (n - 1) +
         moved / (model.share * device.nvlink_gbs);
}

double node_ns(const Graph& graph, const Node& node, const Bindings& bindings,
               const DeviceModel& device) {
  if (auto hint = node.hints.find("runtime_ns"); hint != node.hints.end()) return hint->second;
  switch (node.op->op_class) {
    case OpClass::kWait:
    case OpClass::kChunk:
      return 0;
    case OpClass::kPeerCopy:
      return device.launch_ns + type_bytes(graph.type(node.inputs[0]), bindings) /
                                    (collective_model("one_shot").share * device.nvlink_gbs);
    case OpClass::kView:
      if (names_bytes(node.op_name())) return 0;
      break;
    case OpClass::kCollective:
      return device.launch_ns + collective_node_ns(graph, node, bindings, device);
    case OpClass::kKernel:
      return kernel_ns(graph, node, **node.attr<std::shared_ptr<const Graph>>("body"), bindings,
                       device);
    default:
      break;
  }
  double bytes = 0;
  for (ValueId value : node.inputs) bytes += type_bytes(graph.type(value), bindings);
  for (ValueId value : node.outputs) bytes += type_bytes(graph.type(value), bindings);
  return device.launch_ns +
         std::max(arithmetic_ns(graph, node, bindings, device), bytes / device.hbm_gbs);
}

double memory_ns(double bytes, std::int64_t blocks, const DeviceModel& device) {
  constexpr double kBlockShare = 2;
  const double share = static_cast<double>(blocks) * kBlockShare / device.sms;
  return bytes / (device.hbm_gbs * std::min(1.0, share));
}

KernelEstimate estimate_kernel(const KernelCounts& counts, const DeviceModel& device) {
  if (counts.launches == 0) return {device.launch_ns, "launch"};
  // Of one multiprocessor, per clock: four schedulers issue, shared memory serves a wavefront, and
  // L2 sends 5120 bytes to 108 of them (NVIDIA A100 whitepaper).
  constexpr double kIssues = 4;
  constexpr double kSectorBytes = 32;
  constexpr double kL2Bytes = 5120.0 / 108;
  const auto each = [&](std::uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(counts.launches);
  };
  const auto blocks = static_cast<std::int64_t>(counts.blocks / counts.launches);
  const double clocks =
      static_cast<double>(std::clamp<std::int64_t>(blocks, 1, device.sms)) * device.ghz;
  const Counts& c = counts.total;
  const std::pair<double, std::string_view> units[] = {
      {memory_ns(each(counts.minimum_bytes), std::max<std::int64_t>(blocks, 1), device), "memory"},
      {each(c.global_sectors) * kSectorBytes / (kL2Bytes * clocks), "L2"},
      {each(c.peer_bytes) / device.nvlink_gbs, "NVLink"},
      {each(c.shared_wavefronts) / clocks, "shared memory"},
      {each(c.total_instructions()) / (kIssues * clocks), "issue"},
      {each(c.mma_flops) / (device.f16_tflops * 1e3 * clocks / (device.sms * device.ghz)),
       "matrix unit"}};
  const auto& slowest = *std::max_element(std::begin(units), std::end(units));
  return {device.launch_ns + slowest.first,
          slowest.first < device.launch_ns ? "launch" : slowest.second};
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
