#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "braid/error.h"
#include "codegen/protocol.h"
#include "lowering/plan/program.h"

// verify(Program): a plan against its own rules, worked out anew from the steps.
namespace braid {
namespace {

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program) {}

  void run() {
    check_buffers();
    for (std::size_t s = 0; s < program_.steps.size(); ++s) check_step(static_cast<int>(s));
    check_closing_barriers();
    for (std::size_t s = 0; s < program_.steps.size(); ++s) check_uses(static_cast<int>(s));
    check_overlaps();
    for (const auto* tensors : {&program_.inputs, &program_.outputs}) {
      for (const ProgramTensor& tensor : *tensors) check_tensor(tensor);
    }
  }

 private:
  template <class... Args>
  void expect(bool good, fmt::format_string<Args...> format, Args&&... args) const {
    if (!good) throw_internal("program", fmt::format(format, std::forward<Args>(args)...));
  }
  const Buffer& buffer(int id) const { return program_.buffers[static_cast<std::size_t>(id)]; }
  const Step& step(int s) const { return program_.steps[static_cast<std::size_t>(s)]; }
  const ProgramKernel& kernel(const Step& s) const {
    return program_.kernels[static_cast<std::size_t>(s.kernel)];
  }
  template <class List>
  static bool in_range(int id, const List& list) {
    return id >= 0 && static_cast<std::size_t>(id) < list.size();
  }

  void check_buffers() const {
    for (const Buffer& b : program_.buffers) {
      expect(in_range(b.arena, program_.arenas), "buffer '{}' lies in no arena", b.name);
      const Arena& arena = program_.arenas[static_cast<std::size_t>(b.arena)];
      expect(b.offset >= 0 && b.bytes >= 0 && b.offset + b.bytes <= arena.bytes,
             "buffer '{}' at {} with {} bytes leaves arena {} of {} bytes", b.name, b.offset,
             b.bytes, arena.name(), arena.bytes);
      expect(arena.kind != ArenaKind::kSymmetric || b.offset >= protocol::kHeadBytes,
             "buffer '{}' lies in the head of {}", b.name, arena.name());
      expect(b.first_step <= b.last_step, "buffer '{}' lives from step {} to step {}", b.name,
             b.first_step, b.last_step);
    }
  }

  void check_step(int s) {
    const Step& st = step(s);
    if (st.kind == Step::Kind::kCopy) {
      expect(in_range(st.source, program_.buffers) && in_range(st.destination, program_.buffers),
             "step {} copies from or to no buffer", s);
      expect(buffer(st.source).bytes == buffer(st.destination).bytes,
             "step {} copies '{}' to '{}', which differ in size", s, buffer(st.source).name,
             buffer(st.destination).name);
      return;
    }
    expect(in_range(st.kernel, program_.kernels), "step {} launches no kernel", s);
    const ProgramKernel& k = kernel(st);
    expect(st.inputs.size() == k.spec.body->inputs().size() &&
               st.outputs.size() == k.spec.body->outputs().size(),
           "step {} has {} inputs and {} outputs, unlike its kernel", s, st.inputs.size(),
           st.outputs.size());
    for (const auto* ids : {&st.inputs, &st.outputs}) {
      for (int id : *ids) {
        expect(in_range(id, program_.buffers) && buffer(id).kind == BufferKind::kTensor,
               "step {} uses no buffer", s);
      }
    }
    const std::string& group = k.needs.comm_group;
    check_words(s, st.flags, BufferKind::kFlags, 4 * k.needs.flag_words, group);
    check_words(s, st.scratch, BufferKind::kScratch, k.needs.scratch_bytes, group);
    if (!group.empty()) waiting_[group].push_back(s);
  }

  /// A step has the words that its kernel asks for, and has them alone.
  void check_words(int s, int id, BufferKind kind, std::int64_t bytes, const std::string& group) {
    const char* what = kind == BufferKind::kFlags ? "flags" : "scratch";
    expect((bytes == 0) == (id < 0), "step {} has {} for nothing, or none", s, what);
    if (id < 0) return;
    expect(in_range(id, program_.buffers) && buffer(id).kind == kind,
           "step {} has no {} in buffer {}", s, what, id);
    const Arena& arena = program_.arenas[static_cast<std::size_t>(buffer(id).arena)];
    expect(buffer(id).bytes >= bytes && arena.kind == ArenaKind::kSymmetric && arena.group == group,
           "step {} needs {} bytes of {} in the arena of '{}', but '{}' has {} in {}", s, bytes,
           what, group, buffer(id).name, buffer(id).bytes, arena.name());
    expect(owned_.insert(id).second, "step {} shares its {} '{}'", s, what, buffer(id).name);
    check_use(id, 0, static_cast<int>(program_.steps.size()) - 1, s);
  }

  void check_closing_barriers() const {
    for (const auto& [group, steps] : waiting_) {
      expect(step(steps.back()).closing_barrier,
             "step {} is the last that reads remotely in '{}' and has no closing barrier",
             steps.back(), group);
    }
  }

  void check_use(int id, int from, int to, int s) const {
    const Buffer& b = buffer(id);
    expect(b.first_step <= from && b.last_step >= to,
           "step {} needs buffer '{}' until step {}, but it lives from {} to {}", s, b.name, to,
           b.first_step, b.last_step);
  }

  void check_uses(int s) const {
    const Step& st = step(s);
    if (st.kind == Step::Kind::kCopy) {
      check_use(st.source, s, s, s);
      check_use(st.destination, s, s, s);
      return;
    }
    for (int id : st.inputs) check_use(id, s, s, s);
    for (int id : st.outputs) check_use(id, s, s, s);
    const std::string& group = kernel(st).needs.comm_group;
    if (group.empty()) return;
    const std::vector<int>& steps = waiting_.find(group)->second;
    const auto next = std::upper_bound(steps.begin(), steps.end(), s);
    for (int id : remote_buffers(kernel(st).spec, st)) {
      const Arena& arena = program_.arenas[static_cast<std::size_t>(buffer(id).arena)];
      expect(arena.kind == ArenaKind::kSymmetric && arena.group == group,
             "step {} reads '{}' remotely, which lies in arena {}", s, buffer(id).name,
             arena.name());
      check_use(id, s, next == steps.end() ? s : *next, s);
    }
  }

  /// Sweeps over the steps with the live buffers of each arena in order of their offsets.
  void check_overlaps() const {
    struct Event {
      int step;
      bool starts;
      int buffer;
      bool operator<(const Event& other) const {
        return std::tie(step, starts, buffer) < std::tie(other.step, other.starts, other.buffer);
      }
    };
    std::vector<Event> events;
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& b = program_.buffers[i];
      if (b.bytes == 0) continue;
      events.push_back({b.first_step, true, static_cast<int>(i)});
      events.push_back({b.last_step + 1, false, static_cast<int>(i)});
    }
    std::sort(events.begin(), events.end());
    std::map<std::pair<int, std::int64_t>, int> live;  // (arena, offset) -> buffer
    for (const Event& event : events) {
      const Buffer& b = buffer(event.buffer);
      const std::pair key{b.arena, b.offset};
      if (!event.starts) {
        live.erase(key);
        continue;
      }
      auto after = live.lower_bound(key);
      auto clash = [&](int other) {
        const Buffer& o = buffer(other);
        expect(
            o.arena != b.arena || o.offset + o.bytes <= b.offset || b.offset + b.bytes <= o.offset,
            "buffers '{}' and '{}' overlap at step {}", b.name, o.name, event.step);
      };
      if (after != live.end()) clash(after->second);
      if (after != live.begin()) clash(std::prev(after)->second);
      live.emplace(key, event.buffer);
    }
  }

  void check_tensor(const ProgramTensor& tensor) const {
    expect(in_range(tensor.buffer, program_.buffers), "tensor '{}' has no buffer", tensor.name);
    const Buffer& b = buffer(tensor.buffer);
    const ArenaKind kind = program_.arenas[static_cast<std::size_t>(b.arena)].kind;
    expect(kind == ArenaKind::kIo || kind == ArenaKind::kParameters,
           "tensor '{}' is out of the caller's reach", tensor.name);
  }

  const Program& program_;
  std::map<std::string, std::vector<int>, std::less<>> waiting_;  ///< group -> steps that wait
  std::set<int> owned_;                                           ///< flags and scratch
};

}  // namespace

void verify(const Program& program) { Verifier(program).run(); }

}  // namespace braid
