#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "braid/error.h"
#include "braid/matrix_sums.h"
#include "ir/non_copyable.h"
#include "runtime/cpu/ptx/ptx.h"
#include "runtime/cpu/ptx/source_map.h"
#include "runtime/cpu/run/warp_context.h"
#include "runtime/cpu_tricks.h"
#include "runtime/object_cache.h"

namespace llvm {
class Module;
namespace orc {
class JITDylib;
}
}  // namespace llvm

namespace braid::cpu {

/// The version of LLVM, e.g. "19.1.7".
const char* llvm_version();

struct Kernel {
  WarpFunction run = nullptr;
  KernelInfo info;
  std::uint64_t frame_bytes = 0;  ///< of the stack that `run` itself takes
};

/// Parsed PTX with its calls inlined, its variables placed and its parameters laid out.
class Program {
 public:
  /// Throws braid::Error for errors outside of functions and variables (see ptx::parse).
  explicit Program(std::string text);

  struct Parameter {
    std::uint32_t offset;
    std::uint32_t size;
  };
  struct Entry {
    std::string name;
    int function;
    std::vector<Parameter> parameters;
    std::uint32_t parameter_bytes = 0;
    std::uint32_t shared_align = 1;     ///< alignment of its shared memory
    bool generic_shared = false;        ///< it uses generic addresses of shared memory
    std::uint32_t reserved_shared = 0;  ///< the last bytes of its own shared memory: begin as zeros
    /// The number of instructions, if a warp runs each at most once; else 0.
    std::uint32_t straight_length = 0;
    bool needs_general = false;  ///< its declared block shape has warps that are not full rows
    std::optional<Error> error;  ///< why it cannot run
  };

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::shared_ptr<const SourceMap>& source_map() const { return source_map_; }
  [[nodiscard]] const ptx::Module& module() const { return module_; }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  /// Offsets of variables: in the globals block, in parameters, in shared or local memory; private
  /// ones per entry.
  [[nodiscard]] const std::vector<std::int64_t>& offsets() const { return offsets_; }
  [[nodiscard]] std::uint64_t globals_bytes() const { return globals_bytes_; }
  [[nodiscard]] std::uint32_t local_bytes(int entry) const { return local_bytes_[entry]; }
  [[nodiscard]] std::uint32_t shared_bytes(int entry) const { return shared_bytes_[entry]; }

 private:
  void place(Entry& entry);

  std::string text_;
  ptx::Module module_;
  std::shared_ptr<const SourceMap> source_map_;
  std::vector<Entry> entries_;
  std::vector<std::int64_t> offsets_;
  std::uint64_t globals_bytes_ = 0;
  std::uint32_t module_shared_bytes_ = 0;
  std::vector<std::uint32_t> local_bytes_;
  std::vector<std::uint32_t> shared_bytes_;
};

/// Compiles programs to host objects, kept in memory and in the cache, and links them. Cache
/// entries belong to the build that made them: see build_id().
class Jit : NonCopyable {
 public:
  Jit(const ObjectCache* cache, Instrumentation instrumentation, MatrixSums sums, CpuTricks tricks);
  ~Jit();

  /// A linked copy of one variant of an entry; unloaded on destruction.
  class Linked : NonCopyable {
   public:
    Linked(Jit& jit, llvm::orc::JITDylib& library) : jit_(jit), library_(library) {}
    ~Linked();
    [[nodiscard]] const Kernel& kernel() const { return kernel_; }

   private:
    friend class Jit;
    Jit& jit_;
    llvm::orc::JITDylib& library_;
    Kernel kernel_;
  };

  /// Writes the function of a kernel into a module and verifies it. Throws the entry's error, or
  /// one for unsupported features.
  static void translate(llvm::Module& out, const Program& program, std::size_t entry, bool aligned,
                        Instrumentation instrumentation, HostCode host = {},
                        MatrixSums sums = MatrixSums::kRounded, CpuTricks tricks = {});

  /// `aligned` selects the variant for blocks whose x extent is a multiple of 32; `globals` is the
  /// address of the program's global variables. Throws like translate().
  std::unique_ptr<Linked> load(const Program& program, std::size_t entry, bool aligned,
                               std::uint8_t* globals);

  /// Name and features of the host processor, for people.
  [[nodiscard]] const std::string& host() const { return host_; }

 private:
  struct State;
  std::string compile(const Program& program, std::size_t entry, bool aligned);
  std::string object_for(const Program& program, std::size_t entry, bool aligned);

  const ObjectCache* cache_;
  std::string build_;
  Instrumentation instrumentation_;
  MatrixSums sums_;
  CpuTricks tricks_;
  std::string host_;
  std::unique_ptr<State> state_;
  std::mutex mutex_;
  std::map<std::string, std::string> objects_;
  int next_library_ = 0;
};

}  // namespace braid::cpu
