#include "runtime/inspection_json.h"

#include <string>
#include <string_view>

#include "ir/mapped.h"
#include "lowering/plan/kernel_estimate.h"

namespace braid {
namespace {

constexpr NamedCount kNamedCounts[] = {
    {"lanes", &Counts::lanes},
    {"global_requests", &Counts::global_requests},
    {"global_sectors", &Counts::global_sectors},
    {"global_bytes", &Counts::global_bytes},
    {"peer_bytes", &Counts::peer_bytes},
    {"global_wavefronts", &Counts::global_wavefronts},
    {"shared_requests", &Counts::shared_requests},
    {"shared_wavefronts", &Counts::shared_wavefronts},
    {"bank_conflicts", &Counts::bank_conflicts},
    {"issued_shared_requests", &Counts::issued_shared_requests},
    {"issued_shared_wavefronts", &Counts::issued_shared_wavefronts},
    {"atomics", &Counts::atomics},
    {"branches", &Counts::branches},
    {"divergent_branches", &Counts::divergent_branches},
    {"barriers", &Counts::barriers},
    {"mma_flops", &Counts::mma_flops}};

Json counts_object(const Counts& counts) {
  Json instructions = Json::object();
  for (std::size_t i = 0; i < kInstructionClasses; ++i) {
    instructions.set(std::string(instruction_class_name(static_cast<InstructionClass>(i))),
                     counts.instructions[i]);
  }
  Json object = Json::object({{"instructions", instructions}});
  for (const NamedCount& count : kNamedCounts) {
    object.set(std::string(count.name), counts.*count.field);
  }
  return object;
}

std::uint32_t registers_of(const KernelCounts& kernel) {
  return kernel.registers == 0 ? kAssumedRegisters : kernel.registers;
}

}  // namespace

std::span<const NamedCount> named_counts() { return kNamedCounts; }

Json findings_json(const std::vector<Finding>& findings) {
  const auto place = [](Dim3 at) { return Json::array({at.x, at.y, at.z}); };
  return mapped(findings, [&](const Finding& f) {
    return Json::object({{"kind", f.kind},
                         {"message", f.message},
                         {"rank", f.rank},
                         {"kernel", f.kernel},
                         {"block", place(f.block)},
                         {"thread", place(f.thread)},
                         {"ptx_line", f.ptx_line},
                         {"cuda_line", f.cuda_line},
                         {"inlined", f.inlined},
                         {"cuda_file", f.cuda_file},
                         {"ptx_file", f.ptx_file},
                         {"buffer", f.buffer},
                         {"offset", f.offset},
                         {"other", f.other},
                         {"text", f.text()}});
  });
}

Json counts_json(const KernelCounts& kernel, const DeviceModel& device) {
  const KernelEstimate estimate = estimate_kernel(kernel, device);
  Json units = Json::object();
  for (const UnitTime& unit : estimate.units) units.set(std::string(unit.unit), unit.ns);
  return Json::object({{"kernel", kernel.kernel},
                       {"launches", kernel.launches},
                       {"blocks", kernel.blocks},
                       {"blocks_run", kernel.blocks_run},
                       {"counts", counts_object(kernel.total)},
                       {"minimum_bytes", kernel.minimum_bytes},
                       {"estimate", Json::object({{"device", device.name},
                                                  {"ns", estimate.ns},
                                                  {"launch_ns", device.launch_ns},
                                                  {"memory_bytes", estimate.memory_bytes},
                                                  {"registers", registers_of(kernel)},
                                                  {"registers_assumed", kernel.registers == 0},
                                                  {"blocks_at_once", estimate.occupancy.blocks},
                                                  {"blocks_limiter", estimate.occupancy.limiter},
                                                  {"waves", estimate.waves},
                                                  {"limiter", estimate.limiter},
                                                  {"unit_ns", std::move(units)}})}});
}

Json counts_json(const std::vector<KernelCounts>& kernels, const DeviceModel& device) {
  Json list = Json::array();
  for (const KernelCounts& kernel : kernels) {
    Json entry = counts_json(kernel, device);
    entry.set("lines", mapped(kernel.lines, [](const LineCounts& line) {
                return Json::object({{"ptx_line", line.ptx_line},
                                     {"cuda_line", line.cuda_line},
                                     {"instruction", line.instruction},
                                     {"counts", counts_object(line.counts)}});
              }));
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace braid
