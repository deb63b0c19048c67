// Roles, rings, bulk copies of tensors and asynchronous products.

#include "codegen/cuda/printer.h"
#include "codegen/tile/fragments.h"
#include "codegen/tile/walk.h"

namespace braid::tile {
namespace {

constexpr int kPanelBytes = SharedLayout::kPanels;
constexpr int kMostRowsOfCopy = 256;
constexpr int kUnit = 16;  ///< bytes that descriptors count

/// Elements in a row of a panel.
int panel_columns(const Inst& shared) {
  return kPanelBytes / static_cast<int>(dtype_size(shared.dtype));
}

}  // namespace

template <class Body>
void Printer::each_sums(const Body& body) {
  for_each_inst(p_, [&](Id id) {
    if (p_.at(id).op == Op::kAllocSums) body(id);
  });
}

/// A slot is full by one arrival. What empties it is that of the thread that multiplies; or, where
/// the first role reads it, of each warp that loads sums, or each group that multiplies.
void Printer::init_rings(int computing) {
  std::set<Id> of_first;
  for_each_inst(
      p_, p_.at(*std::ranges::find(p_.body, Op::kRole, [&](Id id) { return p_.at(id).op; })).body,
      [&](Id id) {
        if (p_.at(id).op == Op::kRelease) of_first.insert(p_.at(id).args[0]);
      });
  for_each_inst(p_, [&](Id id) {
    const Inst& ring = p_.at(id);
    if (ring.op != Op::kAllocRing) return;
    const int readers = !of_first.contains(id) ? 1
                        : has_sums_            ? computing
                                               : computing / kWarpsOfGroup;
    out_.line(fmt::format("for (int i = 0; i < {}; ++i) {{", ring.stages));
    out_.line(fmt::format("init_mbarrier(shared + {} + 8 * i, 1);", ring.shared_offset));
    out_.line(fmt::format("init_mbarrier(shared + {} + 8 * i, {});",
                          ring.shared_offset + 8 * ring.stages, readers));
    out_.line("}");
  });
}

/// One chain of conditions on the warp, for registers change hands between groups of warps. Before
/// it all threads see the mbarriers, and where sums are.
void Printer::roles(std::span<const Id> ids) {
  preamble_.mbarriers();
  const int computing = p_.at(ids[0]).warps;
  each_sums([&](Id) { has_sums_ = true; });
  out_.line("if (threadIdx.x == 0) {");
  init_rings(computing);
  out_.line("asm volatile(\"fence.mbarrier_init.release.cluster;\" ::: \"memory\");");
  out_.line("}");
  if (has_sums_) {
    preamble_.products_in_sums();
    out_.line("if (warp == 0) {");
    each_sums([&](Id id) {
      out_.line(fmt::format("alloc_sums(shared + {}, {});", p_.at(id).shared_offset,
                            columns_of_sums(p_.at(id))));
    });
    out_.line("}");
    out_.line("before_meeting();");
  }
  out_.line("__syncthreads();");
  if (has_sums_) out_.line("after_meeting();");
  each_sums([&](Id id) {
    out_.line(fmt::format("const unsigned {} = *(const unsigned*)(smem + {});", name(id),
                          p_.at(id).shared_offset));
  });
  const int threads = block_threads(p_);
  int first = 0;
  for (const Id id : ids) {
    const Inst& role = p_.at(id);
    const bool last = id == ids.back();
    out_.line(first == 0 ? fmt::format("if (warp < {}) {{", role.warps)
              : last     ? "} else {"
                         : fmt::format("}} else if (warp < {}) {{", first + role.warps));
    // What a launch gives a thread, by the bounds of the kernel.
    const int share = registers_at_launch(threads);
    if (role.index != 0) {
      out_.line(fmt::format("asm volatile(\"setmaxnreg.{}.sync.aligned.u32 {};\");",
                            role.index < share ? "dec" : "inc", role.index));
    }
    one_thread_ = first > 0;
    if (one_thread_) out_.line(fmt::format("if (threadIdx.x == {}) {{", 32 * first));
    role_threads_ = 32 * role.warps;
    block(role.body);
    if (one_thread_) {
      out_.line("}");
    } else if (pushes_) {
      out_.line("if (threadIdx.x == 0) await_pushes_read();");
    }
    first += role.warps;
  }
  out_.line("}");
  if (!has_sums_) return;
  if (leaves_) out_.line("free:");
  out_.line("before_meeting();");
  out_.line("__syncthreads();");
  out_.line("after_meeting();");
  out_.line("if (warp == 0) {");
  each_sums([&](Id id) {
    out_.line(fmt::format("free_sums({}, {});", name(id), columns_of_sums(p_.at(id))));
  });
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
  const auto at = [&](bool empty) { return mbarrier(inst.args[0], inst.args[1], empty); };
  const std::string predicate = inst.args.size() > 2 ? ref(inst.args[2]) : "";
  const auto arrive = [&](int threads) {
    out_.line(fmt::format("if (threadIdx.x % {} == 0{}) arrive({});", threads,
                          predicate.empty() ? "" : " && " + predicate, at(true)));
  };
  switch (inst.op) {
    case Op::kAcquire:
      wait(true);
      if (inst.index == 0) {
        out_.line("after_meeting();");
      } else {
        out_.line(fmt::format("arrive_expecting({}, {});", at(false), inst.index));
      }
      break;
    case Op::kAwait:
      wait(false);
      if (has_sums_) out_.line("after_meeting();");
      break;
    case Op::kPublish:
      out_.line(fmt::format("commit_products({});", at(false)));
      break;
    default:
      if (one_thread_) {
        out_.line(fmt::format("{}commit_products({});",
                              predicate.empty() ? "" : fmt::format("if ({}) ", predicate),
                              at(true)));
      } else if (has_sums_) {  // one thread of each warp, all of which have loaded theirs
        out_.line("before_meeting();");
        out_.line("__syncwarp();");
        arrive(32);
      } else {  // one thread of each group of warps, as its products have ended together
        arrive(32 * kWarpsOfGroup);
      }
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

/// A tile lies as [outer, K] or as [K, outer], in panels.
struct Printer::Panels {
  int rows, cols;   ///< of the tile
  int element;      ///< bytes
  bool along_rows;  ///< it lies as [outer, K]
  int bytes() const { return rows * kPanelBytes; }
  int columns() const { return kPanelBytes / element; }
  /// From one panel along the result to the next; for descriptors.
  int leading() const { return along_rows ? 16 : bytes(); }
  /// So many rows, or columns, of the result further.
  int outer(int extent) const {
    return along_rows ? extent * kPanelBytes : extent / columns() * bytes();
  }
  /// Along K: within a row of a panel, then the next panel; or rows.
  int inner(int at) const {
    if (!along_rows) return at * kPanelBytes;
    return at * element / kPanelBytes * bytes() + at * element % kPanelBytes;
  }
};

Printer::Panels Printer::panels(Id tile, bool k_first) const {
  const Inst& inst = p_.at(tile);
  return {inst.type.rows, inst.type.cols, static_cast<int>(dtype_size(inst.dtype)), k_first};
}

void Printer::async_dot(Id id) {
  const Inst& inst = p_.at(id);
  if (p_.at(inst.args[2]).op == Op::kUndefined) declare(inst.args[2]);
  preamble_.products();
  const Inst& a = p_.at(inst.args[0]);
  const int k = inst.trans_a ? a.type.rows : a.type.cols;
  const auto [along_rows, along_cols] = group_grid(inst.type.rows, p_.num_warps);
  const int rows = inst.type.rows / along_rows;
  const int cols = inst.type.cols / along_cols;
  const bool in_registers = a.type.kind != Kind::kShared;
  const std::string product =
      in_registers ? preamble_.wgmma_from_registers(inst.dtype, cols, !inst.trans_b)
                   : preamble_.wgmma(a.dtype, inst.dtype, cols, inst.trans_a, !inst.trans_b);
  out_.line("{");
  std::string row_group, col_group;
  if (along_rows * along_cols > 1) {
    out_.line("const unsigned group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);");
    if (along_rows > 1) row_group = fmt::format("(group % {})", along_rows);
    if (along_cols > 1) col_group = fmt::format("(group / {})", along_rows);
  }
  const Panels of_b = panels(inst.args[1], inst.trans_b);
  const Panels of_a = panels(inst.args[0], !inst.trans_a);
  const auto descriptor = [&](char letter, Id tile, const Panels& of, const std::string& group,
                              int extent) {
    out_.line(fmt::format("const unsigned long long {} = descriptor({}{}, {});", letter,
                          slot_address(tile, ref(inst.args[3])),
                          group.empty() ? "" : fmt::format(" + {} * {}", group, of.outer(extent)),
                          of.leading()));
  };
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
    descriptor('a', inst.args[0], of_a, row_group, rows);
  }
  descriptor('b', inst.args[1], of_b, col_group, cols);
  out_.line("wgmma_fence();");
  const int registers = cols / 2;
  for (int at = 0; at < k; at += units::kWgmma.multiplies->step(inst.dtype)) {
    for (int row = 0; row < rows; row += 64) {
      const int of_first =
          in_registers ? row / 64 * words + at / 4 : (of_a.inner(at) + of_a.outer(row)) / kUnit;
      out_.line(fmt::format("{}({} + {}, a + {}, b + {}, {});", product, storage(id),
                            row / 64 * registers, of_first, of_b.inner(at) / kUnit,
                            at > 0 ? "true" : ref(inst.args[4])));
    }
  }
  out_.line("wgmma_commit();");
  out_.line("}");
}

/// By the role's one thread: 128 rows at a time, all columns.
void Printer::dot_to_sums(Id id) {
  const Inst& inst = p_.at(id);
  const Inst& sums = p_.at(inst.args[2]);
  const DType dtype_a = p_.at(inst.args[0]).dtype;
  const Panels a = panels(inst.args[0], !inst.trans_a);
  const Panels b = panels(inst.args[1], inst.trans_b);
  const int k = inst.trans_a ? a.rows : a.cols;
  const std::string product =
      preamble_.product_in_sums(dtype_a, inst.dtype, sums.type.cols, inst.trans_a, !inst.trans_b);
  out_.line("{");
  const auto descriptor = [&](char letter, Id tile, const Panels& of) {
    out_.line(fmt::format("const unsigned long long {} = descriptor({}, {});", letter,
                          slot_address(tile, ref(inst.args[3])), of.leading()));
  };
  descriptor('a', inst.args[0], a);
  descriptor('b', inst.args[1], b);
  out_.line(fmt::format("const unsigned to = {};", slot_of_sums(inst.args[2], inst.args[4])));
  for (int at = 0; at < k; at += units::kTcgen05.multiplies->step(inst.dtype)) {
    for (int row = 0; row < sums.type.rows; row += kRowsOfSums) {
      out_.line(fmt::format("{}(to + {}, a + {}, b + {}, {});", product,
                            row / kRowsOfSums * sums.type.cols,
                            (a.inner(at) + a.outer(row)) / kUnit, b.inner(at) / kUnit,
                            at > 0 ? "true" : ref(inst.args[5])));
    }
  }
  out_.line("}");
}

/// The first column of a slot, in lane 0.
std::string Printer::slot_of_sums(Id sums, Id slot) {
  const Inst& alloc = p_.at(sums);
  return fmt::format("{} + (unsigned){} * {}", name(sums), ref(slot),
                     columns_of_sums(alloc) / alloc.stages);
}

/// A warp reads the 32 lanes that are its own.
void Printer::load_sums(Id id) {
  const Inst& inst = p_.at(id);
  const auto [along_rows, along_cols] = group_grid(inst.type.rows, p_.num_warps, kRowsOfSums);
  const int rows = inst.type.rows / along_rows;
  const int columns = p_.at(inst.args[0]).type.cols;
  declare(id);
  out_.line("{");
  std::string first = slot_of_sums(inst.args[0], inst.args[1]);
  if (along_rows * along_cols > 1) {
    const int apart = along_rows > 1 ? rows / kRowsOfSums * columns : kColumnsOfLoad;
    first += fmt::format(" + warp / {} * {}", kWarpsOfGroup, apart);
  }
  out_.line(
      fmt::format("const unsigned from = {} + (warp % {} * 32 << 16);", first, kWarpsOfGroup));
  const std::string load = preamble_.load_sums(kColumnsOfLoad);
  int at = 0;
  for (int row = 0; row < rows; row += kRowsOfSums) {
    for (int col = 0; col < inst.type.cols; col += kColumnsOfLoad * along_cols) {
      out_.line(fmt::format("{}({} + {}, from + {});", load, name(id), at,
                            row / kRowsOfSums * columns + inst.index + col));
      at += kColumnsOfLoad;
    }
  }
  out_.line("await_sums();");
  out_.line("}");
  hold(id);
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
