
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "codegen/protocol.h"
#include "ir/mutation.h"
#include "ir/numel.h"
#include "lowering/plan/collective_step.h"
#include "lowering/plan/expect.h"
#include "lowering/plan/hazards.h"
#include "lowering/plan/lifetimes.h"
#include "lowering/plan/program.h"
#include "lowering/plan/residency.h"
#include "lowering/plan/variants.h"

// verify(Program): checks a plan against its own rules, computed anew from the steps. It first
// checks that every index is in range, so that the rest may rely on it. Each variant is checked by
// itself.
namespace braid {
namespace {

constexpr int kMaxStreams = 64;
constexpr std::int64_t kArenaAlignment = std::int64_t{2} << 20U;

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program) {}

  void run() {
    check_arenas();
    for (const Buffer& b : program_.buffers) check_buffer(b);
    check_slices();
    for (std::size_t s = 0; s < program_.steps.size(); ++s) check_step(s);
    for (const auto* tensors : {&program_.inputs, &program_.outputs}) {
      for (const ProgramTensor& tensor : *tensors) check_tensor(tensor);
    }
    const StepOrder order(program_.steps);
    check_residency(program_, order);
    check_closing_barriers(order);
    check_lifetimes(order);
    check_hazards(program_);
  }

  /// An arena is no larger than its contents, rounded up.
  void check_sizes() const {
    std::vector<std::int64_t> ends(program_.arenas.size(), 0);
    for (const Buffer& b : program_.buffers) {
      std::int64_t& end = ends[b.arena];
      end = std::max(end, b.offset + b.bytes);
    }
    for (std::size_t a = 0; a < ends.size(); ++a) {
      const Arena& arena = program_.arenas[a];
      const auto name = [&arena] { return arena.name(); };
      expect(arena.bytes - ends[a] < kArenaAlignment, "arena {} has {} bytes and ends at {}", name,
             arena.bytes, ends[a]);
    }
  }

 private:
  const Buffer& buffer(int id) const { return program_.buffers[id]; }
  const Step& step(int s) const { return program_.steps[s]; }
  const Arena& arena_of(const Buffer& b) const { return program_.arenas[b.arena]; }
  // As functions, for expect.
  static auto name_of(const Arena& arena) {
    return [&arena] { return arena.name(); };
  }
  static auto text_of(const TensorType& type) {
    return [&type] { return type.str(); };
  }
  template <class List>
  static bool in_range(int id, const List& list) {
    return id >= 0 && static_cast<std::size_t>(id) < list.size();
  }

  void check_arenas() const {
    std::set<std::string> names;
    for (const Arena& arena : program_.arenas) {
      expect(names.insert(arena.name()).second, "there are two arenas {}", name_of(arena));
      expect(arena.bytes >= 0, "arena {} has {} bytes", name_of(arena), arena.bytes);
      if (arena.kind != ArenaKind::kSymmetric) continue;
      expect(program_.groups.contains(arena.group), "arena {} is of no group", name_of(arena));
      expect(arena.bytes >= protocol::kHeadBytes, "arena {} of {} bytes has no room for its head",
             name_of(arena), arena.bytes);
    }
  }

  void check_buffer(const Buffer& b) const {
    expect(in_range(b.arena, program_.arenas), "buffer '{}' lies in no arena", b.name);
    const Arena& arena = arena_of(b);
    expect(b.offset >= 0 && b.bytes >= 0 && b.offset <= arena.bytes &&
               b.bytes <= arena.bytes - b.offset,
           "buffer '{}' at {} with {} bytes leaves arena {} of {} bytes", b.name, b.offset, b.bytes,
           name_of(arena), arena.bytes);
    expect(b.offset % 256 == 0, "buffer '{}' at {} is not aligned to 256 bytes", b.name, b.offset);
    const Expr size = static_cast<std::int64_t>(dtype_size(b.type.dtype));
    const std::int64_t bytes = (numel(b.type.shape) * size).max(program_.symbols);
    expect(b.bytes == bytes, "buffer '{}' has {} bytes; expected {} for {}", b.name, b.bytes, bytes,
           text_of(b.type));
    expect(arena.kind != ArenaKind::kSymmetric || b.offset >= protocol::kHeadBytes,
           "buffer '{}' lies in the head of {}", b.name, name_of(arena));
  }

  /// Each slice is an equal chunk of its buffer and lies inside it.
  void check_slices() const {
    std::map<int, std::string_view> groups;
    for (const Buffer& b : program_.buffers) {
      if (!b.slice) continue;
      const Slice& slice = *b.slice;
      expect(in_range(slice.of, program_.buffers) && !buffer(slice.of).slice &&
                 buffer(slice.of).kind == BufferKind::kTensor && b.kind == BufferKind::kTensor,
             "'{}' is a slice of buffer {}; expected a tensor that is no slice", b.name, slice.of);
      const Buffer& whole = buffer(slice.of);
      const auto group = program_.groups.find(slice.group);
      expect(group != program_.groups.end() &&
                 groups.emplace(slice.of, slice.group).first->second == slice.group,
             "'{}' is a slice of '{}' by group '{}'; expected one that is there, and the same for "
             "all slices",
             b.name, whole.name, slice.group);
      const std::int64_t chunks = group->second.size;
      expect(slice.shift >= 0 && slice.shift < chunks,
             "'{}' is the slice of the rank {} after its own; expected 0 to {}", b.name,
             slice.shift, chunks - 1);
      Shape all = byte_shape(b.type);
      all.emplace_back(chunks);
      expect(same_numel(all, byte_shape(whole.type)),
             "'{}', {}, is no chunk of '{}', {}, of which there are {}", b.name, text_of(b.type),
             whole.name, text_of(whole.type), chunks);
      expect(b.arena == whole.arena && b.offset == whole.offset, "slice '{}' lies outside of '{}'",
             b.name, whole.name);
    }
  }

  void check_step(int s) {
    const Step& st = step(s);
    expect(st.stream >= 0 && st.stream < kMaxStreams, "step {} is on stream {}; expected 0 to {}",
           s, st.stream, kMaxStreams - 1);
    const bool launches = st.kind == Step::Kind::kLaunch || st.kind == Step::Kind::kBarrier;
    expect(launches == (st.kernel >= 0), "step {} launches no kernel", s);
    for (const auto* ids : {&st.inputs, &st.outputs}) {
      for (int id : *ids) check_operand(id, s);
    }
    switch (st.kind) {
      case Step::Kind::kCopy:
        check_operand(st.source, s);
        check_operand(st.destination, s);
        expect(buffer(st.source).bytes == buffer(st.destination).bytes,
               "step {} copies '{}' to '{}', which differ in size", s, buffer(st.source).name,
               buffer(st.destination).name);
        check_peer(st.source, st.source_peer, s);
        check_peer(st.destination, st.destination_peer, s);
        expect(!st.destination_peer || !buffer(st.destination).slice,
               "step {} copies to '{}' of a peer, a slice; expected a whole buffer", s,
               buffer(st.destination).name);
        return;
      case Step::Kind::kEventRecord:
        expect(st.event >= 0 && in_range(st.event, program_.steps),
               "step {} records event {}; expected fewer events than steps", s, st.event);
        recorded_.insert(st.event);
        return;
      case Step::Kind::kEventWait:
        expect(recorded_.contains(st.event),
               "step {} waits for event {}, which no step before it records", s, st.event);
        return;
      case Step::Kind::kCollective:
        return check_collective(s);
      case Step::Kind::kLaunch:
      case Step::Kind::kBarrier:
        return check_launch(s);
    }
  }

  void check_peer(int id, const std::optional<Step::Peer>& peer, int s) const {
    if (!peer) return;
    const Arena& arena = arena_of(buffer(id));
    const std::optional<Slice>& slice = buffer(id).slice;
    expect(!slice || slice->group == peer->group,
           "step {} copies '{}' of a peer in '{}', a slice by another group", s, buffer(id).name,
           peer->group);
    expect(arena.kind == ArenaKind::kSymmetric && arena.group == peer->group,
           "step {} copies '{}' of a peer in '{}', but it lies in arena {}", s, buffer(id).name,
           peer->group, name_of(arena));
    expect(peer->shift >= -program_.world && peer->shift <= program_.world,
           "step {} copies from or to the rank {} after its own in a world of {}", s, peer->shift,
           program_.world);
  }

  void check_collective(int s) const {
    const Step& st = step(s);
    expect(st.inputs.size() == 1 && st.outputs.size() == 1,
           "step {} is no collective of one operand", s);
    const Collective form = collective_of(program_, st);
    const TensorType result{st.operand.dtype,
                            form.result_shape(st.operand.shape, program_.symbols)};
    check_type(s, st.inputs[0], st.operand);
    check_type(s, st.outputs[0], result);
  }

  void check_launch(int s) {
    const Step& st = step(s);
    expect(in_range(st.kernel, program_.kernels), "step {} launches no kernel", s);
    const ProgramKernel& k = program_.kernels[st.kernel];
    check_operands(s, st.inputs, *k.spec.body, k.spec.body->input_values());
    check_operands(s, st.outputs, *k.spec.body, k.spec.body->outputs());
    for (const Update& update : updates_of(*k.spec.body)) {
      expect(only_updates(program_, st, st.outputs[update.result]) &&
                 st.inputs[update.operand] == st.outputs[update.result],
             "step {} updates '{}' elsewhere, or reads it", s,
             buffer(st.inputs[update.operand]).name);
    }
    const std::string& group = k.needs.comm_group;
    check_words(s, st.flags, BufferKind::kFlags, 4 * k.needs.flag_words, group);
    check_words(s, st.scratch, BufferKind::kScratch, k.needs.scratch_bytes, group);
    if (st.kind == Step::Kind::kBarrier) {
      expect(!group.empty() && st.inputs.empty() && st.outputs.empty(),
             "step {} is no barrier: its kernel has operands, or waits for nobody", s);
    }
    const auto& params = k.needs.params;
    expect(!st.closing_barrier || std::ranges::any_of(params, is_closing),
           "step {} has a closing barrier, which its kernel does not know", s);
    for (const auto* ids : {&st.inputs, &st.outputs}) {
      for (const int id : *ids) check_sliced_operand(id, s, !group.empty());
    }
    for (const Access& access : accesses(program_, st)) {
      const Arena& arena = arena_of(buffer(access.buffer));
      expect(!access.remote || (arena.kind == ArenaKind::kSymmetric && arena.group == group),
             "step {} {} '{}' remotely, which lies in arena {}", s,
             access.write ? "writes" : "reads", buffer(access.buffer).name, name_of(arena));
    }
  }

  /// Kernels address buffers shared with peers by offset, so these must not be slices.
  void check_sliced_operand(int id, int s, bool communicates) const {
    const Buffer& b = buffer(id);
    if (!b.slice) return;
    expect(
        !communicates || arena_of(b).kind != ArenaKind::kSymmetric,
        "step {} communicates and has the slice '{}' of symmetric memory; expected whole buffers",
        s, b.name);
    expect(has_aligned_chunks(b.type, program_.symbols),
           "step {} launches a kernel on '{}', a slice of {}; expected chunks of a multiple of {} "
           "bytes",
           s, b.name, text_of(b.type), kSliceAlignment);
  }

  static bool is_closing(const KernelParam& param) {
    return param.kind == KernelParam::Kind::kClosing;
  }

  static Shape byte_shape(const TensorType& type) {
    Shape shape = type.shape;
    shape.emplace_back(static_cast<std::int64_t>(dtype_size(type.dtype)));
    return shape;
  }

  void check_operands(int s, const std::vector<int>& ids, const Graph& body,
                      const std::vector<ValueId>& values) const {
    expect(ids.size() == values.size(), "step {} has {} operands where its kernel has {}", s,
           ids.size(), values.size());
    for (std::size_t i = 0; i < ids.size(); ++i) check_type(s, ids[i], body.type(values[i]));
  }

  void check_type(int s, int id, const TensorType& type) const {
    const TensorType& own = buffer(id).type;
    // A view may name the same bytes with another dtype.
    expect(same_numel(byte_shape(type), byte_shape(own)), "step {} takes '{}', {}, for {}", s,
           buffer(id).name, text_of(own), text_of(type));
  }

  void check_operand(int id, int s) const {
    expect(in_range(id, program_.buffers) && buffer(id).kind == BufferKind::kTensor,
           "step {} uses no buffer", s);
  }

  /// A step has the words that its kernel asks for, and shares them with no other step.
  void check_words(int s, int id, BufferKind kind, std::int64_t bytes, const std::string& group) {
    const char* what = kind == BufferKind::kFlags ? "flags" : "scratch";
    expect((bytes == 0) == (id < 0), "step {} has {} for nothing, or none", s, what);
    if (id < 0) return;
    expect(in_range(id, program_.buffers) && buffer(id).kind == kind,
           "step {} has no {} in buffer {}", s, what, id);
    const Arena& arena = arena_of(buffer(id));
    const ArenaKind kind_of_arena = group.empty() ? ArenaKind::kState : ArenaKind::kSymmetric;
    expect(buffer(id).bytes >= bytes && arena.kind == kind_of_arena && arena.group == group,
           "step {} needs {} bytes of {} in the arena of '{}', but '{}' has {} in {}", s, bytes,
           what, group, buffer(id).name, buffer(id).bytes, name_of(arena));
    expect(owned_.insert(id).second, "step {} shares its {} '{}'", s, what, buffer(id).name);
  }

  void check_tensor(const ProgramTensor& tensor) const {
    expect(in_range(tensor.buffer, program_.buffers) && !buffer(tensor.buffer).slice,
           "tensor '{}' has no buffer of its own", tensor.name);
    const Buffer& b = buffer(tensor.buffer);
    const ArenaKind kind = arena_of(b).kind;
    expect(kind == ArenaKind::kIo || kind == ArenaKind::kParameters || kind == ArenaKind::kState,
           "tensor '{}' is out of the caller's reach", tensor.name);
    expect(same_numel(byte_shape(b.type), byte_shape(tensor.type)),
           "tensor '{}' is {}, its buffer {}", tensor.name, text_of(tensor.type), text_of(b.type));
  }

  /// All ranks meet once more after the last remote access of each kind.
  void check_closing_barriers(const StepOrder& order) const {
    const Barriers barriers = barriers_of(program_);
    for (int s = 0; s < static_cast<int>(program_.steps.size()); ++s) {
      if (step(s).closing_barrier) continue;
      for (const Access& access : accesses(program_, step(s))) {
        if (!access.remote) continue;
        const std::string& group = arena_of(buffer(access.buffer)).group;
        const auto found = barriers.find(group);
        const bool met =
            found != barriers.end() &&
            std::any_of(std::ranges::upper_bound(found->second, s), found->second.end(),
                        [&](int later) { return order.before(s, later); });
        expect(
            met,
            "step {} is the last that reads or writes remotely in '{}' and has no closing barrier",
            s, group);
      }
    }
  }

  void check_lifetimes(const StepOrder& order) const {
    const std::vector<StepRange> ranges = lifetimes(program_, order);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const Buffer& b = program_.buffers[i];
      expect(ranges[i] == StepRange{b.first_step, b.last_step},
             "buffer '{}' lives from step {} to step {}; expected {} to {}", b.name, b.first_step,
             b.last_step, ranges[i].first, ranges[i].last);
    }
  }

  const Program& program_;
  std::set<int> owned_;     ///< flags and scratch already owned
  std::set<int> recorded_;  ///< events recorded so far
};

}  // namespace

void verify(const Program& program) {
  if (program.variants.empty()) {
    Verifier(program).run();
  } else {
    check_lists(program);
    std::vector<Program> parts;
    for (const Variant& variant : program.variants) {
      parts.push_back(part_of(program, variant));
      Verifier(parts.back()).run();
    }
    check_apart(parts);
  }
  Verifier(program).check_sizes();
}

}  // namespace braid
