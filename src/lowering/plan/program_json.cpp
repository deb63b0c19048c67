#include "lowering/plan/program.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include "codegen/device_model.h"
#include "ir/json_writer.h"
#include "lowering/plan/kind_names.h"

namespace braid {
namespace {

std::string_view step_kind(Step::Kind kind) { return kStepNames[static_cast<std::size_t>(kind)]; }

/// Writes the program's JSON, with one line per buffer, step, parameter and tensor.
class Writer {
 public:
  explicit Writer(const Program& program) : program_(program) {}

  std::string write(bool with_hash) {
    put("{{\"braid_program\": 1,\n \"name\": {},\n", json_string(program_.name));
    put(" \"target\": {}, \"world\": {}, \"ranks_per_device\": {},\n",
        json_string(program_.target.str()), program_.world, program_.ranks_per_device);
    if (!program_.batch_invariant) put(" \"batch_invariant\": false,\n");
    device(device_model(program_.target));
    list("symbols", program_.symbols, '{', [&](const auto& entry) { symbol(entry); });
    list("groups", program_.groups, '{',
         [&](const auto& entry) { group(entry.first, entry.second); });
    list("arenas", program_.arenas, '[', [&](const Arena& arena) {
      put("{{\"name\": {}, \"bytes\": {}}}", json_string(arena.name()), arena.bytes);
    });
    list("buffers", program_.buffers, '[', [&](const Buffer& b) { buffer(b); });
    list("kernels", program_.kernels, '[', [&](const ProgramKernel& k) { kernel(k); });
    list("steps", program_.steps, '[', [&](const Step& s) { step(s); });
    list("inputs", program_.inputs, '[', [&](const ProgramTensor& t) {
      put("{{\"name\": {}, \"buffer\": {}, \"dtype\": \"{}\", \"shape\": {}, \"kind\": \"{}\", "
          "\"per_rank\": {}}}",
          json_string(t.name), t.buffer, dtype_name(t.type.dtype), json_shape(t.type.shape),
          kInputNames[static_cast<std::size_t>(t.kind)], t.per_rank);
    });
    list("outputs", program_.outputs, '[', [&](const ProgramTensor& t) {
      put("{{\"name\": {}, \"buffer\": {}, \"dtype\": \"{}\", \"shape\": {}}}", json_string(t.name),
          t.buffer, dtype_name(t.type.dtype), json_shape(t.type.shape));
    });
    if (!program_.variants.empty()) {
      list("variants", program_.variants, '[', [&](const Variant& v) { variant(v); });
    }
    out_.resize(out_.size() - 2);  // drops the comma after the last list
    if (with_hash) put(",\n \"hash\": {}", json_string(program_.hash));
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  /// Writes ` "name": [`, each entry on a line of its own, and `],`.
  template <class Entries, class Write>
  void list(std::string_view name, const Entries& entries, char open, Write write) {
    put(" \"{}\": {}", name, open);
    const char* separator = "\n  ";
    for (const auto& entry : entries) {
      out_ += separator;
      write(entry);
      separator = ",\n  ";
    }
    put("{},\n", open == '{' ? '}' : ']');
  }

  template <class Ints>
  void ints(const Ints& values) {
    put("[{}]", fmt::join(values, ", "));
  }

  void symbol(const SymbolTable::value_type& entry) {
    put("{}: {{\"min\": {}, \"max\": {}, \"multiple_of\": {}}}", json_string(entry.first),
        entry.second.min, entry.second.max, entry.second.multiple_of);
  }

  /// Writes how many entries of each list are the variant's own.
  void variant(const Variant& v) {
    out_ += "{\"symbols\": {";
    for (const auto& entry : v.symbols) {
      if (entry.first != v.symbols.begin()->first) out_ += ", ";
      symbol(entry);
    }
    put("}}, \"buffers\": {}, \"kernels\": {}, \"steps\": {}}}", v.buffers.size(), v.kernels.size(),
        v.steps.size());
  }

  void group(const std::string& name, const Group& g) {
    put("{}: {{\"size\": {}, \"symmetric\": {}, \"ranks\": [", json_string(name), g.size,
        g.symmetric);
    for (std::size_t i = 0; i < g.ranks.size(); ++i) {
      if (i > 0) out_ += ", ";
      ints(g.ranks[i]);
    }
    out_ += "]}";
  }

  /// The device that the plan was made for: ranks with another device would plan otherwise.
  void device(const DeviceModel& d) {
    put(" \"device\": {{\"name\": {}, \"multiprocessors\": {}, \"shared_kib\": {}, \"memory_gbs\": "
        "{}, \"f32_tflops\": {}, \"f16_tflops\": {}, \"link_gbs\": {}, \"ghz\": {}, \"launch_ns\": "
        "{}, \"barrier_ns\": {}}},\n",
        json_string(d.name), d.sms, d.shared_kib, d.hbm_gbs, d.f32_tflops, d.f16_tflops,
        d.nvlink_gbs, d.ghz, d.launch_ns, d.barrier_ns);
  }

  void buffer(const Buffer& b) {
    if (b.slice) {
      put("{{\"name\": {}, \"dtype\": \"{}\", \"shape\": {}, \"slice\": {{\"of\": {}, \"group\": "
          "{}, \"shift\": {}}}}}",
          json_string(b.name), dtype_name(b.type.dtype), json_shape(b.type.shape), b.slice->of,
          json_string(b.slice->group), b.slice->shift);
      return;
    }
    put("{{\"name\": {}, \"kind\": \"{}\", \"dtype\": \"{}\", \"shape\": {}, \"arena\": {}, "
        "\"offset\": {}, \"bytes\": {}, \"first_step\": {}, \"last_step\": {}}}",
        json_string(b.name), name_of(b.kind), dtype_name(b.type.dtype), json_shape(b.type.shape),
        b.arena, b.offset, b.bytes, b.first_step, b.last_step);
  }

  void kernel(const ProgramKernel& k) {
    put("{{\"template\": {}, \"config\": {}, \"grid\": {}, \"threads\": {}, \"shared_bytes\": {}, "
        "\"comm_group\": {}, \"flag_words\": {}, \"scratch_bytes\": {},\n   ",
        json_string(k.needs.template_name), json_attribute(AttrValue(k.spec.config)),
        json_string(k.needs.grid.str()), k.needs.threads, k.needs.shared_bytes,
        json_string(k.needs.comm_group), k.needs.flag_words, k.needs.scratch_bytes);
    attributes(k.needs.attributes);
    out_ += "\"remote\": [";
    for (std::size_t i = 0; i < k.needs.remote.size(); ++i) {
      const RemoteAccess& access = k.needs.remote[i];
      put("{}{{\"{}\": {}, \"write\": {}}}", i == 0 ? "" : ", ", access.output ? "output" : "input",
          access.index, access.write);
    }
    if (!k.needs.clobbered.empty()) {
      out_ += "], \"clobbered\": [";
      for (std::size_t i = 0; i < k.needs.clobbered.size(); ++i) {
        const Clobbered& operand = k.needs.clobbered[i];
        put("{}{{\"{}\": {}}}", i == 0 ? "" : ", ", operand.output ? "output" : "input",
            operand.index);
      }
    }
    out_ += "],\n   \"params\": [";
    const char* separator = "\n    ";
    for (const KernelParam& p : k.needs.params) {
      put("{}{{\"kind\": \"{}\", \"index\": {}, \"expr\": {}, \"group\": {}", separator,
          param_name(p.kind), p.index, json_string(p.expr.str()), json_string(p.group));
      if (p.kind == KernelParam::Kind::kBytes) {
        put(", \"size\": {}, \"alignment\": {}", p.size, p.alignment);
      }
      if (p.is_map()) {
        put(", \"dtype\": \"{}\", \"box\": {}, \"rows\": {}, \"columns\": {}",
            dtype_name(p.map.dtype), p.map.box, json_string(p.map.rows.str()),
            json_string(p.map.columns.str()));
        if (p.map.row_stride != Expr(0)) {
          put(", \"row_stride\": {}", json_string(p.map.row_stride.str()));
        }
        for (std::size_t i = 0; i < p.map.outer.size(); ++i) {
          const auto& [extent, stride] = p.map.outer[i];
          put("{}[{}, {}]{}", i == 0 ? ", \"outer\": [" : ", ", json_string(extent.str()),
              json_string(stride.str()), i + 1 == p.map.outer.size() ? "]" : "");
        }
      }
      out_ += '}';
      separator = ",\n    ";
    }
    put("],\n   \"body\": {}}}", to_json(*k.spec.body));
  }

  /// Written only if set, so that other plans keep their text and their hash.
  void attributes(const LaunchAttributes& asked) {
    if (asked == LaunchAttributes{}) return;
    const Dim3 cluster = asked.cluster;
    put("\"attributes\": {{\"cluster\": [{}, {}, {}], \"programmatic\": {}}}, ", cluster.x,
        cluster.y, cluster.z, asked.programmatic);
  }

  void peer(std::string_view key, const std::optional<Step::Peer>& peer) {
    if (!peer) return;
    put(", \"{}\": {{\"group\": {}, \"shift\": {}}}", key, json_string(peer->group), peer->shift);
  }

  void step(const Step& s) {
    put("{{\"name\": {}, \"stream\": {}, ", json_string(s.name), s.stream);
    if (s.kind == Step::Kind::kCopy) {
      put("\"kind\": \"copy\", \"source\": {}, \"destination\": {}", s.source, s.destination);
      peer("source_peer", s.source_peer);
      peer("destination_peer", s.destination_peer);
      out_ += '}';
      return;
    }
    if (s.kind == Step::Kind::kEventRecord || s.kind == Step::Kind::kEventWait) {
      put("\"kind\": \"{}\", \"event\": {}}}", step_kind(s.kind), s.event);
      return;
    }
    put("\"kind\": \"{}\", ", step_kind(s.kind));
    if (s.kind == Step::Kind::kCollective) {
      put("\"op\": {}, \"group\": {}, \"reduce_op\": {}, \"dtype\": \"{}\", \"shape\": {}, ",
          json_string(s.op), json_string(s.group), json_string(s.reduce_op),
          dtype_name(s.operand.dtype), json_shape(s.operand.shape));
      if (s.src >= 0) put("\"src\": {}, ", s.src);
      if (!s.splits.empty()) put("\"splits\": [{}], ", fmt::join(s.splits, ", "));
    } else {
      put("\"kernel\": {}, ", s.kernel);
    }
    out_ += "\"inputs\": ";
    ints(s.inputs);
    out_ += ", \"outputs\": ";
    ints(s.outputs);
    if (!s.indexed.empty()) put(", \"indexed\": {}", json_attribute(AttrValue(s.indexed)));
    if (s.flags >= 0) put(", \"flags\": {}, \"closing_barrier\": {}", s.flags, s.closing_barrier);
    if (s.scratch >= 0) put(", \"scratch\": {}", s.scratch);
    out_ += '}';
  }

  const Program& program_;
  std::string out_;
};

}  // namespace

std::string to_json(const Program& program, bool with_hash) {
  return Writer(program).write(with_hash);
}

std::string hash_of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string hash_of(const Program& program) {
  return hash_of(std::string_view(to_json(program, /*with_hash=*/false)));
}

}  // namespace braid
