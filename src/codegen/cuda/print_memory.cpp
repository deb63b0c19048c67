// Prints loads, stores, packets and fills of shared memory.

#include <fmt/ranges.h>

#include "codegen/cuda/printer.h"

namespace braid::tile {

std::string Printer::first_copy(const Inst& inst) {
  std::string text;
  if (inst.lanes != 0) text = fmt::format("(lane & {}) == 0", inst.lanes);
  if (inst.warps != 0) {
    text += fmt::format("{}(warp & {}) == 0", text.empty() ? "" : " && ", inst.warps);
  }
  return text;
}

std::string Printer::beside(std::string_view reg, int distance) {
  return distance == 0 ? std::string(reg) : fmt::format("({} + {})", reg, distance);
}

std::string Printer::slot(Id tile, const std::string& number) {
  const Inst& inst = p_.at(tile);
  const int bytes = inst.type.rows * inst.type.cols * static_cast<int>(dtype_size(inst.dtype));
  std::string at = fmt::format("{}", inst.shared_offset);
  if (number != "0") at += fmt::format(" + (int){} * {}", number, bytes);
  return at;
}

std::string Printer::slot_pointer(Id tile, const std::string& number) {
  preamble_.shared();
  return fmt::format("({}*)(smem + {})", memory_type(p_.at(tile).dtype), slot(tile, number));
}

std::string Printer::slot_address(Id tile, const std::string& number) {
  preamble_.shared_address();
  return fmt::format("shared + {}", slot(tile, number));
}

void Printer::load(Id id) {
  const Inst& inst = p_.at(id);
  const Id mask = inst.args.size() > 2 ? inst.args[2] : kNone;
  const std::string load = preamble_.load(inst.dtype, inst.width);
  declare(id);
  each(registers(id), inst.width, [&](std::string_view i) {
    const Element at{inst.layout, i};
    return fmt::format("{}({} + {}, (const {}*){} + {}, {});", load, name(id), i,
                       memory_type(inst.dtype), ref(inst.args[0]), ref(inst.args[1], at),
                       mask == kNone ? "true" : ref(mask, at));
  });
}

void Printer::load_scalar(Id id) {
  const Inst& inst = p_.at(id);
  out_.line(fmt::format("{} {};", c_type(inst.type.kind), name(id)));
  out_.line(fmt::format("{}(&{}, (const {}*){} + {}, {});", preamble_.load(inst.dtype, 1), name(id),
                        memory_type(inst.dtype), ref(inst.args[0]), ref(inst.args[1]),
                        inst.args.size() > 2 ? ref(inst.args[2]) : "true"));
}

void Printer::store(Id id) {
  const Inst& inst = p_.at(id);
  const std::string store = preamble_.store(inst.dtype, inst.width);
  each(layout(inst.layout).registers(), inst.width, [&](std::string_view i) {
    return fmt::format("{}(({}*){} + {}, {} + {}, {});", store, memory_type(inst.dtype),
                       ref(inst.args[0]), ref(inst.args[1], Element{inst.layout, i}),
                       storage(inst.args[2]), i, stored(inst, i));
  });
}

std::string Printer::stored(const Inst& inst, std::string_view reg) {
  std::string ok = first_copy(inst);
  if (inst.args.size() > 3) {
    ok += (ok.empty() ? "" : " && ") + ref(inst.args[3], Element{inst.layout, reg});
  }
  return ok.empty() ? "true" : ok;
}

// Loads the packets of all of them, and repeats missing ones, before any is used: in sequence each
// would cost a full memory latency.
void Printer::ll_loads(std::span<const Id> ids) {
  need_packets();
  const auto each_packet = [&](const auto& statement) {
    for (const Id id : ids) {
      const Inst& inst = p_.at(id);
      each(registers(id), inst.width, [&](std::string_view i) {
        std::vector<std::string> ok;
        for (int e = 0; e < inst.width; ++e) {
          const std::string reg = beside(i, e);
          ok.push_back(inst.args.size() > 3 ? ref(inst.args[3], Element{inst.layout, reg})
                                            : "true");
        }
        const auto of_packets = [&](const std::string& elements) {
          return inst.width == 1 ? elements : fmt::format("{} / {}", elements, inst.width);
        };
        return statement(id, i, fmt::format("w{}[{}]", id, of_packets(std::string(i))),
                         of_packets(ref(inst.args[1], Element{inst.layout, i})), ok);
      });
    }
  };
  using Ok = std::vector<std::string>;
  for (const Id id : ids) {
    declare(id);
    out_.line(
        fmt::format("unsigned long long w{}[{}] = {{}};", id, registers(id) / p_.at(id).width));
  }
  const std::string start = fmt::format("start{}", ids[0]);
  out_.line(fmt::format("unsigned long long {} = 0;", start));
  out_.line("for (bool more = true; more;) {");
  each_packet(
      [&](Id id, std::string_view, const std::string& packet, const std::string& at, const Ok& ok) {
        return fmt::format("poll_packet({}, comm, {}, {}, {});", packet, ref(p_.at(id).args[0]), at,
                           fmt::join(ok, " || "));
      });
  out_.line("Missing missing = {};");
  each_packet(
      [&](Id id, std::string_view, const std::string& packet, const std::string& at, const Ok& ok) {
        return fmt::format("find_missing(missing, comm, {}, {}, {}, {});", packet, at,
                           ref(p_.at(id).args[2]), fmt::join(ok, " || "));
      });
  out_.line(fmt::format("more = wait_more(comm, peers, missing, {}, lost);", start));
  out_.line("}");
  each_packet([&](Id id, std::string_view i, const std::string& packet, const std::string&,
                  const Ok& ok) {
    const Inst& inst = p_.at(id);
    return fmt::format("{}({} + {}, (unsigned){}, {});", preamble_.unpack(inst.dtype, inst.width),
                       name(id), i, packet, fmt::join(ok, ", "));
  });
}

void Printer::ll_store(Id id) {
  const Inst& inst = p_.at(id);
  need_packets();
  if (inst.barrier) vote();
  const std::string store = preamble_.ll_store(inst.dtype, inst.width);
  each(layout(inst.layout).registers(), inst.width, [&](std::string_view i) {
    // A packet is sent if any of its elements exists.
    std::vector<std::string> any;
    any.reserve(static_cast<std::size_t>(inst.width));
    for (int e = 0; e < inst.width; ++e) any.push_back(stored(inst, beside(i, e)));
    return fmt::format("{}(comm, {}, {}, {} + {}, {});", store, ref(inst.args[0]),
                       ref(inst.args[1], Element{inst.layout, i}), storage(inst.args[2]), i,
                       fmt::join(any, " || "));
  });
}

void Printer::multimem(Id id) {
  const Inst& inst = p_.at(id);
  const bool stores = inst.op == Op::kMultimemStore;
  const MultimemAccess how{inst.dtype, inst.width, inst.whole, p_.world};
  const std::string access =
      stores ? preamble_.multimem_store(how) : preamble_.multimem_reduce(how);
  if (!stores) declare(id);
  each(layout(inst.layout).registers(), inst.width, [&](std::string_view i) {
    std::vector<std::string> ok;
    for (int e = 0; e < (inst.whole ? 1 : inst.width); ++e) {
      const std::string reg = beside(i, e);
      if (stores) {
        ok.push_back(stored(inst, reg));
      } else {
        ok.push_back(inst.args.size() > 2 ? ref(inst.args[2], Element{inst.layout, reg}) : "true");
      }
    }
    return fmt::format("{}({} + {}, {}{}, {}, {});", access,
                       stores ? storage(inst.args[2]) : name(id), i,
                       inst.whole ? "" : "peers, multicast, ", ref(inst.args[0]),
                       ref(inst.args[1], Element{inst.layout, i}), fmt::join(ok, ", "));
  });
}

void Printer::copy_to_shared(Id id) {
  const Inst& inst = p_.at(id);
  const Id mask = inst.args[4];
  const int bytes = inst.width * static_cast<int>(dtype_size(inst.dtype));
  const std::string copy = preamble_.copy(*unit_of(p_, inst), bytes);
  const std::string first = first_copy(inst);
  const std::string to = slot_address(inst.args[0], ref(inst.args[1]));
  const int end = inst.last == 0 ? layout(inst.layout).registers() : inst.last * inst.width;
  each(
      inst.first * inst.width, end, inst.width,
      [&](std::string_view i) {
        const Element at{inst.layout, i};
        std::string ok = ref(inst.args[5]);
        if (mask != kNone) ok += " && " + ref(mask, at);
        return fmt::format("{}{}({} + {}, (const {}*){} + {}, {});",
                           first.empty() ? "" : fmt::format("if ({}) ", first), copy, to,
                           offset(inst.addresses[0], i), memory_type(inst.dtype), ref(inst.args[2]),
                           ref(inst.args[3], at), ok);
      },
      inst.unroll);
}

void Printer::load_shared(Id id) {
  const Inst& inst = p_.at(id);
  const std::string load = preamble_.load(inst.dtype, inst.width);
  const std::string from = slot_pointer(inst.args[0], ref(inst.args[1]));
  declare(id);
  each(registers(id), inst.width, [&](std::string_view i) {
    return fmt::format("{}({} + {}, {} + {}, true);", load, name(id), i, from,
                       offset(inst.addresses[0], i));
  });
}

void Printer::store_to_shared(Id id) {
  const Inst& inst = p_.at(id);
  const std::string store = preamble_.store(inst.dtype, inst.width);
  const std::string first = first_copy(inst);
  const std::string to = slot_pointer(inst.args[0], ref(inst.args[1]));
  each(layout(inst.layout).registers(), inst.width, [&](std::string_view i) {
    return fmt::format("{}({} + {}, {} + {}, {});", store, to, offset(inst.addresses[0], i),
                       storage(inst.args[2]), i, first.empty() ? "true" : first);
  });
}

void Printer::cast_in_shared(Id id) {
  const Inst& inst = p_.at(id);
  const std::string cast = preamble_.cast(p_.at(inst.args[2]).dtype, inst.dtype, inst.width);
  const std::string first = first_copy(inst);
  const std::string to = slot_pointer(inst.args[0], ref(inst.args[1]));
  const std::string from = slot_pointer(inst.args[2], ref(inst.args[3]));
  each(layout(inst.layout).registers(), inst.width, [&](std::string_view i) {
    return fmt::format("{}({} + {}, {} + {}, {});", cast, to, offset(inst.addresses[0], i), from,
                       offset(inst.addresses[1], i), first.empty() ? "true" : first);
  });
}

}  // namespace braid::tile
