#include "lowering/plan/hazards.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lowering/plan/expect.h"
#include "lowering/plan/in_place.h"
#include "lowering/plan/lifetimes.h"
#include "lowering/plan/step_order.h"

namespace braid {
namespace {

/// Simulates the steps in the order of issue, two runs one after the other, on a map of what each
/// arena's bytes hold and who has used them since. Times count steps over both runs.
class Hazards {
 public:
  explicit Hazards(const Program& program)
      : program_(program),
        order_(program.steps),
        barriers_(barriers_of(program)),
        count_(program.steps.size()),
        chunks_(program.buffers.size(), 0),
        bytes_(program.arenas.size()) {
    for (const Buffer& b : program.buffers) {
      if (!b.slice) continue;
      chunks_[b.slice->of] = program.groups.find(b.slice->group)->second.size;
    }
  }

  void run() {
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      if (program_.buffers[b].kind != BufferKind::kTensor) reserve(b);
    }
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const std::size_t arena = program_.buffers[b].arena;
      if (program_.arenas[arena].kind == ArenaKind::kState && !program_.buffers[b].slice &&
          program_.buffers[b].kind == BufferKind::kTensor) {
        write(b, kHost);
      }
    }
    for (const ProgramTensor& tensor : program_.inputs) write(tensor.buffer, kHost);
    for (int time = 0; time < 2 * count_; ++time) step(time);
    for (const ProgramTensor& tensor : program_.outputs) {
      read({tensor.buffer, /*write=*/false, /*remote=*/false}, 2 * count_);
    }
  }

 private:
  static constexpr int kHost = -1;  ///< before all steps

  /// One use of bytes by a step.
  struct Use {
    int time;
    int buffer;             ///< -1: the bytes it left are no buffer's value
    int part;               ///< part of that buffer: Access::part
    bool by_peers = false;  ///< a write by copies of peers, complete once all ranks have met
    /// Two different parts of one buffer never overlap. Where they lie depends on the rank.
    [[nodiscard]] bool meets(int other, int other_part) const {
      return buffer != other || part == other_part || part == Access::kWhole ||
             other_part == Access::kWhole;
    }
  };
  /// Bytes from a segment's key to its end. Where the parts of a buffer are written one by one,
  /// uses of the old bytes are kept until the whole is written.
  struct Segment {
    std::int64_t end = 0;
    int buffer = -1;        ///< the buffer whose value, or parts of it, they hold; -1: none
    bool reserved = false;  ///< flags or scratch
    std::vector<Use> writers, readers, remote_readers;
  };
  using Segments = std::map<std::int64_t, Segment>;

  const Buffer& buffer(int id) const { return program_.buffers[id]; }
  const Step& step_at(int time) const { return program_.steps[time % count_]; }
  auto name(int time) const {
    return [this, time]() -> std::string {
      if (time == kHost || time >= 2 * count_) return "the caller";
      return fmt::format("step {} '{}'{}", time % count_, step_at(time).name,
                         time < count_ ? "" : " of the next run");
    };
  }

  /// Whether step `a` has ended before step `b` begins.
  bool before(int a, int b) const {
    if (a == kHost || b >= 2 * count_ || a / count_ != b / count_) return a < b;
    return order_.before(a % count_, b % count_);
  }

  /// Whether all ranks of the group have finished `a` before any of them begins `b`: they meet in
  /// between, or at the end of `a` itself.
  bool separated(const std::string& group, int a, int b) const {
    if (a == kHost) return true;
    const Step& step = step_at(a);
    if (step.closing_barrier && comm_group(program_, step) == group && before(a, b)) return true;
    const auto found = barriers_.find(group);
    if (found == barriers_.end()) return false;
    for (int run = a / count_; run < 2; ++run) {
      const std::vector<int>& barriers = found->second;
      auto barrier = std::ranges::upper_bound(barriers, a - run * count_);
      for (; barrier != barriers.end(); ++barrier) {
        const int time = run * count_ + *barrier;
        if (time >= b) return false;
        if (before(a, time) && before(time, b)) return true;
      }
    }
    return false;
  }

  /// Splits segments so that they cover [from, to) exactly, and calls `visit` on each. Bytes that
  /// were never used are a segment too.
  template <class Visit>
  void each(int id, const Visit& visit) {
    Segments& segments = bytes_[buffer(id).arena];
    std::int64_t at = buffer(id).offset;
    const std::int64_t to = at + buffer(id).bytes;
    cut(segments, at);
    cut(segments, to);
    while (at < to) {
      auto it = segments.lower_bound(at);
      if (it == segments.end() || it->first > at) {
        Segment fresh;
        fresh.end = it == segments.end() ? to : std::min(to, it->first);
        it = segments.emplace_hint(it, at, std::move(fresh));
      }
      visit(it->second);
      at = it->second.end;
    }
  }
  static void cut(Segments& segments, std::int64_t at) {
    auto it = segments.upper_bound(at);
    if (it == segments.begin()) return;
    --it;
    if (it->first == at || it->second.end <= at) return;
    Segment rest = it->second;
    it->second.end = at;
    segments.emplace(at, std::move(rest));
  }

  void reserve(int id) {
    each(id, [&](Segment& segment) {
      expect(!segment.reserved, "the words of '{}' are another step's, too", buffer(id).name);
      segment.reserved = true;
    });
  }

  void step(int time) {
    const std::vector<Access> all = accesses(program_, step_at(time));
    // A kernel waits for its peers itself, and lists what they read and write among its operands.
    const bool copy = step_at(time).kind == Step::Kind::kCopy;
    for (const Access& access : all) {
      if (access.write) continue;
      if (!access.remote) read(access, time);
      if (access.remote && copy) read_remotely(access, time);
    }
    for (const Access& access : all) {
      if (access.remote && access.write) write_remotely(access.buffer, time);
    }
    for (const Access& access : all) {
      if (access.write && (!access.remote || copy)) write(access, time);
    }
    for (const Access& access : all) {
      if (!access.remote || access.write || copy) continue;
      each(access.buffer, [&](Segment& segment) { add(segment.remote_readers, access, time); });
    }
  }

  /// Whether the write is complete on this rank when step `time` begins.
  bool is_there(const Use& writer, int id, int time) const {
    return writer.by_peers ? separated(group_of(id), writer.time, time) : before(writer.time, time);
  }

  /// Whether the part has been written completely, possibly chunk by chunk.
  bool has(const Segment& segment, const Access& access) const {
    if (segment.buffer != access.buffer) return false;
    std::int64_t parts = 0;
    for (const Use& writer : segment.writers) {
      if (writer.buffer != access.buffer) continue;
      if (writer.part == Access::kWhole || writer.part == access.part) return true;
      ++parts;
    }
    return access.part == Access::kWhole && parts == chunks_[access.buffer];
  }

  void read(const Access& access, int time) {
    const int id = access.buffer;
    each(id, [&](Segment& segment) {
      expect(!segment.reserved, "{} reads '{}', which overlaps words of a step", name(time),
             buffer(id).name);
      expect(segment.buffer >= 0, "{} reads '{}', which nobody has written, or whose value is gone",
             name(time), buffer(id).name);
      expect(segment.buffer == id, "{} reads '{}', whose bytes hold '{}' by then", name(time),
             buffer(id).name, buffer(segment.buffer).name);
      expect(has(segment, access), "{} reads '{}', of which nobody has written a chunk", name(time),
             buffer(id).name);
      for (const Use& writer : segment.writers) {
        expect(!writer.meets(id, access.part) || is_there(writer, id, time),
               "{} reads '{}' while {} may still write it", name(time), buffer(id).name,
               name(writer.time));
      }
      add(segment.readers, access, time);
    });
  }

  /// A copy from a peer's memory. The peer's value is there since the group's last barrier. All
  /// ranks do the same, so the part checked is the one of this rank's buffer that some peer reads.
  void read_remotely(const Access& access, int time) {
    const int id = access.buffer;
    each(id, [&](Segment& segment) {
      expect(!segment.reserved && has(segment, access),
             "{} reads '{}' of a peer, whose bytes do not hold it by then", name(time),
             buffer(id).name);
      for (const Use& writer : segment.writers) {
        expect(!writer.meets(id, access.part) || separated(group_of(id), writer.time, time),
               "{} reads '{}' of a peer where {} may not be done: no barrier of '{}' between",
               name(time), buffer(id).name, name(writer.time), group_of(id));
      }
      add(segment.remote_readers, access, time);
    });
  }

  /// A later reader replaces earlier ones of the same bytes that it follows.
  void add(std::vector<Use>& readers, const Access& access, int time) const {
    std::erase_if(readers, [&](const Use& reader) {
      const bool same = reader.buffer == access.buffer && reader.part == access.part;
      return same && (reader.time == time || before(reader.time, time));
    });
    readers.push_back({time, access.buffer, access.part});
  }

  void write(int id, int time) { write({id, /*write=*/true, /*remote=*/false}, time); }
  void write(const Access& access, int time) {
    each(access.buffer, [&](const Segment& segment) { check_write(segment, access, time); });
    const Use use{time, access.clobbers ? -1 : access.buffer, access.part, access.remote};
    access.part == Access::kWhole ? put_whole(access.buffer, use) : put_part(access.buffer, use);
  }

  void check_write(const Segment& segment, const Access& access, int time) const {
    const int id = access.buffer;
    expect(!segment.reserved, "{} writes '{}', which overlaps words of a step", name(time),
           buffer(id).name);
    for (const Use& writer : segment.writers) {
      if (!writer.meets(id, access.part) || writer.time == time || time == kHost) continue;
      expect(is_there(writer, id, time), "{} writes '{}' while {} may still write there",
             name(time), buffer(id).name, name(writer.time));
    }
    for (const Use& reader : segment.readers) {
      if (!reader.meets(id, access.part)) continue;
      const bool own =
          reader.time == time && (access.clobbers || step_at(time).kind == Step::Kind::kCopy ||
                                  is_in_place(access, reader, time));
      expect(own || before(reader.time, time), "{} writes '{}' while {} may still read there",
             name(time), buffer(id).name, name(reader.time));
    }
    const std::string& group = group_of(id);
    for (const Use& reader : segment.remote_readers) {
      expect(!reader.meets(id, access.part) || separated(group, reader.time, time),
             "{} writes '{}' where peers may still read for {}: no barrier of '{}' between",
             name(time), buffer(id).name, name(reader.time), group);
    }
  }

  /// Whether the kernel writes where the reader's buffer lies, at exactly the same place, and has
  /// read it before.
  bool is_in_place(const Access& access, const Use& reader, int time) const {
    const Step& step = step_at(time);
    if (step.kernel < 0 || reader.buffer < 0 || access.remote ||
        buffer(access.buffer).offset != buffer(reader.buffer).offset) {
      return false;
    }
    if (access.buffer == reader.buffer) return only_updates(program_, step, access.buffer);
    const ProgramKernel& kernel = program_.kernels[step.kernel];
    return allows_in_place(kernel.spec, kernel.needs) &&
           could_take_place(program_, step, access.buffer, reader.buffer);
  }

  /// Marks all bytes of the buffer as holding one value.
  void put_whole(int id, const Use& use) {
    if (buffer(id).bytes == 0) return;
    Segments& segments = bytes_[buffer(id).arena];
    const std::int64_t from = buffer(id).offset;
    const std::int64_t to = from + buffer(id).bytes;
    segments.erase(segments.lower_bound(from), segments.lower_bound(to));
    Segment whole;
    whole.end = to;
    whole.buffer = use.buffer;
    whole.writers = {use};
    segments.emplace(from, std::move(whole));
  }

  /// Marks one part; the others stay as they are.
  void put_part(int id, const Use& use) {
    each(id, [&](Segment& segment) {
      for (auto* uses : {&segment.writers, &segment.readers, &segment.remote_readers}) {
        std::erase_if(*uses, [&](const Use& earlier) {
          return earlier.buffer == id && earlier.part == use.part;
        });
      }
      segment.buffer = id;
      segment.writers.push_back(use);
    });
  }

  const std::string& group_of(int id) const { return program_.arenas[buffer(id).arena].group; }

  /// A write by a peer. It may be a whole barrier ahead of this rank, so all uses of the bytes, on
  /// this and other ranks, must be over at the group's last barrier.
  void write_remotely(int id, int time) {
    const std::string& group = group_of(id);
    each(id, [&](Segment& segment) {
      for (const auto* uses : {&segment.readers, &segment.remote_readers, &segment.writers}) {
        for (const Use& user : *uses) {
          expect(separated(group, user.time, time),
                 "peers write '{}' for {} where {} may not be done: no barrier of '{}' between",
                 buffer(id).name, name(time), name(user.time), group);
        }
      }
    });
  }

  const Program& program_;
  StepOrder order_;
  Barriers barriers_;
  int count_;
  std::vector<std::int64_t> chunks_;  ///< for each buffer: the number of chunks that its slices cut
                                      ///< it into
  std::vector<Segments> bytes_;       ///< for each arena
};

}  // namespace

void check_hazards(const Program& program) { Hazards(program).run(); }

}  // namespace braid
