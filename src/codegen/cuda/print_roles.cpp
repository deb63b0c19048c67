// Roles, rings, bulk copies of tensors and asynchronous products.

#include "codegen/cuda/printer.h"
#include "codegen/tile/fragments.h"
#include "codegen/tile/walk.h"

namespace braid::tile {
namespace {

constexpr int kPanelBytes = SharedLayout::kPanels;
constexpr int kMostRowsOfCopy = 256;

/// Elements in a row of a panel.
int panel_columns(const Inst& shared) {
  return kPanelBytes / static_cast<int>(dtype_size(shared.dtype));
}

}  // namespace

/// One chain of conditions on the warp, for registers change hands between groups of warps. Before
/// it all threads see the mbarriers.
void Printer::roles(std::span<const Id> ids) {
  preamble_.mbarriers();
  const int computing = p_.at(ids[0]).warps;
  out_.line("if (threadIdx.x == 0) {");
  for_each_inst(p_, [&](Id id) {
    const Inst& ring = p_.at(id);
    if (ring.op != Op::kAllocRing) return;
    out_.line(fmt::format("for (int i = 0; i < {}; ++i) {{", ring.stages));
    out_.line(fmt::format("init_mbarrier(shared + {} + 8 * i, 1);", ring.shared_offset));
    out_.line(fmt::format("init_mbarrier(shared + {} + 8 * i, {});",
                          ring.shared_offset + 8 * ring.stages, computing / kWarpsOfGroup));
    out_.line("}");
  });
  out_.line("asm volatile(\"fence.mbarrier_init.release.cluster;\" ::: \"memory\");");
  out_.line("}");
  out_.line("__syncthreads();");
  const int threads = block_threads(p_);
  int first = 0;
  for (const Id id : ids) {
    const Inst& role = p_.at(id);
    const bool last = id == ids.back();
    out_.line(first == 0 ? fmt::format("if (warp < {}) {{", role.warps)
              : last     ? "} else {"
                         : fmt::format("}} else if (warp < {}) {{", first + role.warps));
    // What a launch gives a thread, by the bounds of the kernel.
    const int share = kRegisters / threads / 8 * 8;
    if (role.index != 0) {
      out_.line(fmt::format("asm volatile(\"setmaxnreg.{}.sync.aligned.u32 {};\");",
                            role.index < share ? "dec" : "inc", role.index));
    }
    const bool one = first > 0;
    if (one) out_.line(fmt::format("if (threadIdx.x == {}) {{", 32 * first));
    role_threads_ = 32 * role.warps;
    block(role.body);
    if (one) {
      out_.line("}");
    } else if (pushes_) {
      out_.line("if (threadIdx.x == 0) await_pushes_read();");
    }
    first += role.warps;
  }
  out_.line("}");
}

std::string Printer::mbarrier(Id ring, Id step, bool empty) {
  const Inst& inst = p_.at(ring);
  return fmt::format("shared + {} + (unsigned){} % {} * 8",
                     inst.shared_offset + (empty ? 8 * inst.stages : 0), ref(step), inst.stages);
}

void Printer::ring(Id id) {
  const Inst& inst = p_.at(id);
  const Inst& of = p_.at(inst.args[0]);
  const auto wait = [&](bool empty) {
    out_.line(fmt::format("await_phase({}, (unsigned){} / {} & 1{});",
                          mbarrier(inst.args[0], inst.args[1], empty), ref(inst.args[1]), of.stages,
                          empty ? " ^ 1" : ""));
  };
  switch (inst.op) {
    case Op::kAcquire:
      wait(true);
      out_.line(fmt::format("arrive_expecting({}, {});",
                            mbarrier(inst.args[0], inst.args[1], false), inst.index));
      break;
    case Op::kAwait:
      wait(false);
      break;
    default:  // one thread of each group of warps, as its products have ended together
      out_.line(fmt::format("if (threadIdx.x % {} == 0{}) arrive({});", 32 * kWarpsOfGroup,
                            inst.args.size() > 2 ? " && " + ref(inst.args[2]) : "",
                            mbarrier(inst.args[0], inst.args[1], true)));
      break;
  }
}

void Printer::copy_tile(Id id) {
  const Inst& inst = p_.at(id);
  const Inst& shared = p_.at(inst.args[2]);
  const std::string copy = preamble_.copy_tile(static_cast<int>(inst.args.size()) - 4);
  std::string outer;
  for (std::size_t i = 6; i < inst.args.size(); ++i) {
    outer += fmt::format(", (int){}", ref(inst.args[i]));
  }
  const std::string to = slot_address(
      inst.args[2], fmt::format("((unsigned){} % {})", ref(inst.args[1]), shared.stages));
  const std::string full = mbarrier(inst.args[0], inst.args[1], false);
  const int cols = panel_columns(shared);
  for (int col = 0; col < shared.type.cols; col += cols) {
    for (int row = 0; row < shared.type.rows; row += kMostRowsOfCopy) {
      const int offset = col / cols * shared.type.rows * kPanelBytes + row * kPanelBytes;
      out_.line(fmt::format("{}({} + {}, {}, {}, (int){} + {}, (int){} + {}{});", copy, to, offset,
                            ref(inst.args[3]), full, ref(inst.args[5]), col, ref(inst.args[4]), row,
                            outer));
    }
  }
}

void Printer::async_dot(Id id) {
  const Inst& inst = p_.at(id);
  if (p_.at(inst.args[2]).op == Op::kUndefined) declare(inst.args[2]);
  preamble_.products();
  const Inst& a = p_.at(inst.args[0]);
  const Inst& b = p_.at(inst.args[1]);
  const int k = inst.trans_a ? a.type.rows : a.type.cols;
  const auto [along_rows, along_cols] = group_grid(inst.type.rows, p_.num_warps);
  const int rows = inst.type.rows / along_rows;
  const int cols = inst.type.cols / along_cols;
  const bool in_registers = a.type.kind != Kind::kShared;
  const std::string product =
      in_registers ? preamble_.wgmma_from_registers(inst.dtype, cols, !inst.trans_b)
                   : preamble_.wgmma(a.dtype, inst.dtype, cols, inst.trans_a, !inst.trans_b);
  // An operand's tile lies as [outer, K] or as [K, outer], in panels; `outer` is where a group's
  // part of it begins. Descriptors count in 16 bytes.
  struct Operand {
    int leading;        ///< bytes from one panel along the result to the next
    std::string first;  ///< of this group, bytes
    int of_rows;        ///< bytes for 64 rows of the result more
  };
  const auto operand = [&](const Inst& tile, bool along_k_first, int extent,
                           const std::string& group) {
    const int panel = tile.type.rows * kPanelBytes;
    // Rows of 128 bytes, or columns in panels.
    const int each = along_k_first ? extent * kPanelBytes : extent / panel_columns(tile) * panel;
    const int of_64 = along_k_first ? 64 * kPanelBytes : 64 / panel_columns(tile) * panel;
    return Operand{along_k_first ? 16 : panel,
                   group.empty() ? "" : fmt::format(" + {} * {}", group, each), of_64};
  };
  out_.line("{");
  std::string row_group, col_group;
  if (along_rows * along_cols > 1) {
    out_.line("const unsigned group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);");
    if (along_rows > 1) row_group = fmt::format("(group % {})", along_rows);
    if (along_cols > 1) col_group = fmt::format("(group / {})", along_rows);
  }
  const Operand of_b = operand(b, inst.trans_b, cols, col_group);
  const auto descriptor = [&](char letter, Id tile, const Operand& of) {
    out_.line(fmt::format("const unsigned long long {} = descriptor({}{}, {});", letter,
                          slot_address(tile, ref(inst.args[3])), of.first, of.leading));
  };
  Operand of_a{};
  const int words = k / 4;  // of 64 rows, in a thread
  if (in_registers) {
    // All of them before the fence, behind which threads leave them alone.
    const int all = rows / 64 * words;
    out_.line(fmt::format("unsigned a[{}];", all));
    out_.line("#pragma unroll");
    out_.line(fmt::format("for (int w = 0; w < {}; ++w) a[w] = {}({} + 2 * w);", all,
                          preamble_.pack(inst.dtype), storage(inst.args[0])));
    each(all, 1, [](std::string_view w) {
      return fmt::format("asm volatile(\"\" : \"+r\"(a[{}]) :: \"memory\");", w);
    });
    if (p_.at(inst.args[2]).op != Op::kUndefined) hold(id);
  } else {
    of_a = operand(a, !inst.trans_a, rows, row_group);
    descriptor('a', inst.args[0], of_a);
  }
  descriptor('b', inst.args[1], of_b);
  out_.line("wgmma_fence();");
  // Along K: 32 bytes within a row of a panel, then the next panel; or 16 rows.
  const auto along_k = [&](const Inst& tile, bool k_first, int at) {
    if (!k_first) return at * kPanelBytes;
    const int bytes = at * static_cast<int>(dtype_size(tile.dtype));
    return bytes / kPanelBytes * tile.type.rows * kPanelBytes + bytes % kPanelBytes;
  };
  const int registers = cols / 2;
  for (int at = 0; at < k; at += units::kWgmma.multiplies->step(inst.dtype)) {
    for (int row = 0; row < rows; row += 64) {
      const int of_first = in_registers
                               ? row / 64 * words + at / 4
                               : (along_k(a, !inst.trans_a, at) + row / 64 * of_a.of_rows) / 16;
      out_.line(fmt::format("{}({} + {}, a + {}, b + {}, {});", product, storage(id),
                            row / 64 * registers, of_first, along_k(b, inst.trans_b, at) / 16,
                            at > 0 ? "true" : ref(inst.args[4])));
    }
  }
  out_.line("wgmma_commit();");
  out_.line("}");
}

/// Makes the sums before whatever follows it.
void Printer::hold(Id id) {
  each(registers(id), 1, [&](std::string_view i) {
    return fmt::format("asm volatile(\"\" : \"+f\"({}[{}]) :: \"memory\");", storage(id), i);
  });
}

/// Compilers must neither move what reads the sums ahead of the wait, nor copy them before it.
void Printer::settled(Id id) {
  hold(id);
  out_.line(preamble_.wgmma_wait(0) + "();");
  hold(id);
}

/// Part by part: once the copies have read the part before, the threads put theirs in its place,
/// and one of them sends it.
void Printer::push_tile(Id id) {
  const Inst& inst = p_.at(id);
  const Inst& shared = p_.at(inst.args[0]);
  const std::string push = preamble_.push_tile();
  pushes_ = true;
  const int parts = p_.at(inst.args[4]).type.cols / shared.type.cols;
  const int count = layout(inst.layout).registers() / parts;
  const std::string value = storage(inst.args[4]);
  const std::string address = slot_address(inst.args[0], "0");
  const std::string meet =
      fmt::format("asm volatile(\"bar.sync 1, {};\" ::: \"memory\");", role_threads_);
  for (int part = 0; part < parts; ++part) {
    const int first = part * count;
    out_.line("if (threadIdx.x == 0) await_pushes_read();");
    out_.line(meet);
    if (inst.whole) {
      const std::string stmatrix = preamble_.stmatrix();
      const std::string pack = preamble_.pack(inst.dtype);
      each(count / 8, 1, [&](std::string_view i) {
        const auto word = [&](int w) {
          return fmt::format("{}({} + {} + {} * 8)", pack, value, first + 2 * w, i);
        };
        return fmt::format("{}({} + {}, {}, {}, {}, {});", stmatrix, address,
                           offset(inst.addresses[0], i), word(0), word(1), word(2), word(3));
      });
    } else {
      const std::string store = preamble_.store(inst.dtype, inst.width);
      const std::string to = slot_pointer(inst.args[0], "0");
      each(count, inst.width, [&](std::string_view i) {
        return fmt::format("{}({} + {}, {} + {} + {}, true);", store, to,
                           offset(inst.addresses[0], i), value, first, i);
      });
    }
    out_.line("fence_async();");
    out_.line(meet);
    out_.line("if (threadIdx.x == 0) {");
    const int cols = panel_columns(shared);
    for (int col = 0; col < shared.type.cols; col += cols) {
      for (int row = 0; row < shared.type.rows; row += kMostRowsOfCopy) {
        out_.line(
            fmt::format("{}({}, {} + {}, (int){} + {}, (int){} + {});", push, ref(inst.args[1]),
                        address, col / cols * shared.type.rows * kPanelBytes + row * kPanelBytes,
                        ref(inst.args[3]), part * shared.type.cols + col, ref(inst.args[2]), row));
      }
    }
    out_.line("commit_pushes();");
    out_.line("}");
  }
}

}  // namespace braid::tile
