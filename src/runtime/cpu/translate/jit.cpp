#include "runtime/cpu/translate/jit.h"

#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/RegAllocRegistry.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/LEB128.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include "runtime/cpu/run/guarded_memory.h"
#include "runtime/cpu/run/runtime_helpers.h"
#include "runtime/cpu/translate/build_id.h"
#include "runtime/cpu/translate/translator.h"

/// LLVM's own, not a copy of this library.
extern template llvm::MachinePassRegistry<llvm::FunctionPass* (*)()>
    llvm::RegisterRegAllocBase<llvm::RegisterRegAlloc>::Registry;

namespace braid::cpu {
namespace {

template <class T>
T check(llvm::Expected<T> value) {
  if (!value) throw_internal("cpu", llvm::toString(value.takeError()));
  return static_cast<T&&>(*value);
}

void check(llvm::Error error) {
  if (error) throw_internal("cpu", llvm::toString(std::move(error)));
}

std::string variable_symbol(std::size_t index) { return "ptx.variable." + std::to_string(index); }
constexpr const char* kKernelSymbol = "ptx.kernel";
constexpr const char* kInfoSymbol = "ptx.info";

std::string switched_off(const CpuTricks& tricks) {
  std::string names;
#define BRAID_CPU_TRICK(name) names += tricks.name ? "" : ", without " #name;
  BRAID_CPU_TRICKS(BRAID_CPU_TRICK)
#undef BRAID_CPU_TRICK
  return names;
}

/// The feature level by what was detected; names of processors say less.
std::string host_cpu(const llvm::StringMap<bool>& features) {
  const auto has = [&](const char* name) { return features.lookup(name); };
  if (has("avx512f") && has("avx512bw") && has("avx512vl") && has("avx512dq") && has("avx512cd")) {
    return "x86-64-v4";
  }
  if (has("avx2") && has("fma") && has("bmi2") && has("f16c")) return "x86-64-v3";
  return "x86-64-v2";
}

}  // namespace

const char* llvm_version() { return LLVM_VERSION_STRING; }

struct Jit::State {
  std::string cpu;
  std::string features;
  HostCode host;
  std::unique_ptr<llvm::orc::LLJIT> lljit;
  llvm::orc::JITDylib* helpers = nullptr;
  std::string failure;         ///< why the code that is being linked cannot be
  bool out_of_memory = false;  ///< that is why

  /// LLVM tells the session why it fails, and its caller only that it does.
  void take(llvm::Error error) {
    llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase& info) {
      failure += (failure.empty() ? "" : "; ") + info.message();
      out_of_memory = out_of_memory || info.convertToErrorCode() == std::errc::not_enough_memory;
    });
  }

  /// The address of a linked symbol.
  llvm::orc::ExecutorAddr find(llvm::orc::JITDylib& library, const char* symbol) {
    llvm::Expected<llvm::orc::ExecutorAddr> found = lljit->lookup(library, symbol);
    if (found) return *found;
    take(found.takeError());
    if (!out_of_memory) throw_internal("cpu", failure);
    throw_environment("cpu", "no room for the code of a kernel: " + mapping_error(ENOMEM));
  }

  [[nodiscard]] std::unique_ptr<llvm::TargetMachine> target_machine() const {
    const std::string triple = llvm::sys::getProcessTriple();
    std::string error;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
    if (target == nullptr) throw_environment("cpu", error);
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
    options.EmitStackSizeSection = true;  // for frame_bytes()
    std::unique_ptr<llvm::TargetMachine> machine(
        target->createTargetMachine(triple, cpu, features, options, llvm::Reloc::PIC_,
                                    llvm::CodeModel::Small, llvm::CodeGenOptLevel::Less, true));
    if (machine == nullptr) throw_environment("cpu", "LLVM has no code generator for this host");
    return machine;
  }
};

namespace {

/// The stack bytes of an object's functions, summed: section .stack_sizes has for each its address
/// and its size in ULEB128.
std::uint64_t frame_bytes(const std::string& object) {
  std::uint64_t bytes = 0;
  const auto file = check(llvm::object::ObjectFile::createObjectFile({object, "ptx.o"}));
  for (const llvm::object::SectionRef& section : file->sections()) {
    if (check(section.getName()) != ".stack_sizes") continue;
    const llvm::StringRef contents = check(section.getContents());
    for (const std::uint8_t* at = contents.bytes_begin(); at < contents.bytes_end();) {
      at += sizeof(std::uint64_t);
      unsigned length = 0;
      bytes += llvm::decodeULEB128(at, &length, contents.bytes_end());
      at += length;
    }
  }
  return bytes;
}

/// The time of register allocation grows with the square of what a block spills: blocks with more
/// vectors than this may take minutes. LLVM's unoptimized code generation is linear.
constexpr std::ptrdiff_t kManyVectors = 8192;

bool has_long_block(const llvm::Module& module) {
  return std::ranges::any_of(module, [](const llvm::Function& function) {
    return std::ranges::any_of(function, [](const llvm::BasicBlock& block) {
      return std::ranges::count_if(block, [](const llvm::Instruction& instruction) {
               return instruction.getType()->isVectorTy();
             }) > kManyVectors;
    });
  });
}

/// LLVM asks for an allocator without saying for what: this thread generates code unoptimized.
thread_local bool tls_unoptimized = false;

llvm::FunctionPass* create_register_allocator() {
  return tls_unoptimized ? llvm::createFastRegisterAllocator()
                         : llvm::createBasicRegisterAllocator();
}

/// LLVM offers these choices only on its command line. Domain reassignment takes minutes on kernels
/// with thousands of narrow accesses, and gains nothing on ours. Our blocks are straight and keep
/// in memory what lives across them: splitting live ranges and reordering instructions take a
/// fifth of the translation and gain nothing either. Nor does a second search for equal
/// instructions, which keeps values for so long that they are spilled, or one for patterns of
/// machine instructions.
void choose_passes() {
  auto& options = llvm::cl::getRegisteredOptions();
  const auto choose = [&](const char* name, const char* value) {
    const auto found = options.find(name);
    if (found != options.end()) found->second->addOccurrence(0, found->first(), value);
  };
  choose("disable-x86-domain-reassignment", "true");
  choose("enable-misched", "false");
  choose("disable-machine-cse", "true");
  choose("x86-machine-combiner", "false");
  llvm::RegisterRegAlloc::setDefault(create_register_allocator);
}

/// Turns fatal errors of LLVM into exceptions for the requesting caller.
void throw_where_llvm_gives_up() {
  llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { throw std::bad_alloc(); });
  llvm::install_fatal_error_handler([](void*, const char* reason, bool) {
    throw_internal("cpu", std::string("LLVM: ") + reason);
  });
}

}  // namespace

Jit::Jit(const ObjectCache* cache, Instrumentation instrumentation, MatrixSums sums,
         CpuTricks tricks)
    : cache_(cache),
      build_(build_id()),
      instrumentation_(instrumentation),
      sums_(sums),
      tricks_(tricks),
      state_(std::make_unique<State>()) {
  // Without one, what another build made could not be told from ours.
  if (build_.empty()) cache_ = nullptr;
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  [[maybe_unused]] static const bool kOnce = (choose_passes(), throw_where_llvm_gives_up(), true);
  const llvm::StringMap<bool> detected = llvm::sys::getHostCPUFeatures();
  std::vector<std::string> names;
  for (const auto& feature : detected) {
    if (feature.second) names.push_back("+" + feature.first().str());
  }
  std::ranges::sort(names);
  for (const std::string& name : names) {
    state_->features += (state_->features.empty() ? "" : ",") + name;
  }
  state_->cpu = host_cpu(detected);
  state_->host.scales = state_->cpu == "x86-64-v4";
  state_->host.rounds_to_bfloat = state_->cpu == "x86-64-v4" && detected.lookup("avx512bf16");
  host_ = llvm::sys::getHostCPUName().str() + " (" + state_->cpu + ")";
  state_->lljit = check(llvm::orc::LLJITBuilder().create());
  state_->lljit->getExecutionSession().setErrorReporter(
      [this](llvm::Error error) { state_->take(std::move(error)); });
  state_->helpers = &check(state_->lljit->createJITDylib("braid.helpers"));
  llvm::orc::SymbolMap symbols;
  const auto define = [&](const std::string& name, void* address) {
    symbols[state_->lljit->mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(address),
                                                     llvm::JITSymbolFlags::Exported};
  };
  for (const auto& helpers :
       {math_helpers(), memory_helpers(), mma_helpers(), matrix_helpers(), wgmma_helpers(),
        tensor_memory_helpers(), tensor_multiply_helpers(), control_helpers(), multimem_helpers(),
        mbarrier_helpers(), bulk_helpers(), count_helpers()}) {
    for (const RuntimeHelper& helper : helpers) define(helper_symbol(helper.name), helper.address);
  }
  // LLVM calls these by itself.
  define("memset", reinterpret_cast<void*>(&std::memset));
  define("memcpy", reinterpret_cast<void*>(&std::memcpy));
  define("memmove", reinterpret_cast<void*>(&std::memmove));
  check(state_->helpers->define(llvm::orc::absoluteSymbols(std::move(symbols))));
}

Jit::~Jit() = default;

Jit::Linked::~Linked() {
  const std::lock_guard lock(jit_.mutex_);
  llvm::consumeError(jit_.state_->lljit->getExecutionSession().removeJITDylib(library_));
}

void Jit::translate(llvm::Module& out, const Program& program, std::size_t entry, bool aligned,
                    Instrumentation instrumentation, HostCode host, MatrixSums sums,
                    CpuTricks tricks) {
  const Program::Entry& kernel = program.entries()[entry];
  if (kernel.error) throw Error(*kernel.error);
  Layout layout;
  layout.offsets = program.offsets();
  layout.globals.resize(layout.offsets.size());
  for (std::size_t v = 0; v < layout.offsets.size(); ++v) {
    const ptx::Space space = program.module().variables[v].space;
    if (space != ptx::Space::kGlobal && space != ptx::Space::kConst) continue;
    layout.globals[v] =
        new llvm::GlobalVariable(out, llvm::Type::getInt8Ty(out.getContext()), false,
                                 llvm::GlobalValue::ExternalLinkage, nullptr, variable_symbol(v));
  }
  layout.local_bytes = program.local_bytes(static_cast<int>(entry));
  layout.shared_bytes = program.shared_bytes(static_cast<int>(entry));
  for (std::size_t v = 0; v < layout.offsets.size(); ++v) {
    if (program.module().variables[v].dynamic) layout.offsets[v] = layout.shared_bytes;
  }
  const auto& function = program.module().functions[kernel.function];
  Translator translator(
      out, {program.module(), function, layout, aligned, instrumentation, host, sums, tricks});
  const KernelInfo info = translator.run(kKernelSymbol);
  const std::uint32_t words[] = {info.register_bytes, info.local_bytes, info.shared_bytes,
                                 info.waits};
  auto* data = llvm::ConstantDataArray::get(out.getContext(), words);
  new llvm::GlobalVariable(out, data->getType(), true, llvm::GlobalValue::ExternalLinkage, data,
                           kInfoSymbol);
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(out, &problems))
    throw_internal("cpu", "bad code was generated: " + problem);
}

std::string Jit::compile(const Program& program, std::size_t entry, bool aligned) {
  llvm::LLVMContext context;
  // Names would be kept in tables, and a value whose name found no memory could not be freed.
  context.setDiscardValueNames(true);
  llvm::Module out("ptx", context);
  const auto machine = state_->target_machine();
  out.setTargetTriple(machine->getTargetTriple().str());
  out.setDataLayout(machine->createDataLayout());
  out.setPICLevel(llvm::PICLevel::BigPIC);
  translate(out, program, entry, aligned, instrumentation_, state_->host, sums_, tricks_);

  llvm::PassBuilder builder(machine.get());
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::SimplifyCFGPass());
  for (llvm::Function& function : out) {
    if (!function.isDeclaration()) passes.run(function, functions);
  }
  // Code that is checked spends its time in the sanitizer.
  tls_unoptimized = instrumentation_.checks || has_long_block(out);
  if (tls_unoptimized) {
    machine->setOptLevel(llvm::CodeGenOptLevel::None);
    machine->setO0WantsFastISel(false);  // it would not know most vectors
    machine->setFastISel(false);
  }
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emit;
  if (machine->addPassesToEmitFile(emit, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    throw_environment("cpu", "LLVM cannot write objects for this host");
  }
  emit.run(out);
  return std::string(object.begin(), object.end());
}

std::string Jit::object_for(const Program& program, std::size_t entry, bool aligned) {
  const std::string key =
      "braid-cpu-object\nbuild " + build_ + "\nllvm " LLVM_VERSION_STRING "\ncpu " + state_->cpu +
      "\nfeatures " + state_->features + "\nvariant " + (aligned ? "aligned" : "general") +
      (instrumentation_.checks ? ", checked" : "") + (instrumentation_.counts ? ", counted" : "") +
      (sums_ == MatrixSums::kHopper ? ", hopper sums" : "") + switched_off(tricks_) + "\nentry " +
      program.entries()[entry].name + "\nptx\n" + program.text();
  const auto it = objects_.find(key);
  if (it != objects_.end()) return it->second;
  const auto make = [&] { return compile(program, entry, aligned); };
  std::string object = cache_ == nullptr ? make() : cache_->get_or_make(key, make);
  objects_.emplace(key, object);
  return object;
}

std::unique_ptr<Jit::Linked> Jit::load(const Program& program, std::size_t entry, bool aligned,
                                       std::uint8_t* globals) {
  const std::lock_guard lock(mutex_);
  const std::string object = object_for(program, entry, aligned);
  llvm::orc::LLJIT& lljit = *state_->lljit;
  auto& library = check(lljit.createJITDylib("ptx." + std::to_string(next_library_++)));
  library.addToLinkOrder(*state_->helpers);
  struct Unload {
    llvm::orc::LLJIT& jit;
    llvm::orc::JITDylib* library;
    ~Unload() {
      if (library != nullptr) {
        llvm::consumeError(jit.getExecutionSession().removeJITDylib(*library));
      }
    }
  } unload{lljit, &library};
  llvm::orc::SymbolMap symbols;
  for (std::size_t v = 0; v < program.module().variables.size(); ++v) {
    const ptx::Space space = program.module().variables[v].space;
    if (space != ptx::Space::kGlobal && space != ptx::Space::kConst) continue;
    symbols[lljit.mangleAndIntern(variable_symbol(v))] = {
        llvm::orc::ExecutorAddr::fromPtr(globals + program.offsets()[v]),
        llvm::JITSymbolFlags::Exported};
  }
  if (!symbols.empty()) check(library.define(llvm::orc::absoluteSymbols(std::move(symbols))));
  check(lljit.addObjectFile(library, llvm::MemoryBuffer::getMemBufferCopy(object, "ptx.o")));
  Kernel kernel;
  state_->failure.clear();
  state_->out_of_memory = false;
  kernel.run = state_->find(library, kKernelSymbol).toPtr<WarpFunction>();
  kernel.info = *state_->find(library, kInfoSymbol).toPtr<const KernelInfo*>();
  kernel.frame_bytes = frame_bytes(object);
  unload.library = nullptr;
  auto linked = std::make_unique<Linked>(*this, library);
  linked->kernel_ = kernel;
  return linked;
}

}  // namespace braid::cpu
