#include "lowering/plan/hazards.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lowering/plan/expect.h"
#include "lowering/plan/lifetimes.h"
#include "lowering/plan/step_order.h"

namespace braid {
namespace {

/// Steps are played in the order of issue, two runs after each other, on a map of what each arena's
/// bytes hold and who has used them since. Times count steps over both runs.
class Hazards {
 public:
  explicit Hazards(const Program& program)
      : program_(program),
        order_(program.steps),
        barriers_(barriers_of(program)),
        count_(static_cast<int>(program.steps.size())),
        bytes_(program.arenas.size()) {}

  void run() {
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      if (program_.buffers[b].kind != BufferKind::kTensor) reserve(static_cast<int>(b));
    }
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const auto arena = static_cast<std::size_t>(program_.buffers[b].arena);
      if (program_.arenas[arena].kind == ArenaKind::kState) write(static_cast<int>(b), kHost);
    }
    for (const ProgramTensor& tensor : program_.inputs) write(tensor.buffer, kHost);
    for (int time = 0; time < 2 * count_; ++time) step(time);
    for (const ProgramTensor& tensor : program_.outputs) read(tensor.buffer, 2 * count_);
  }

 private:
  static constexpr int kHost = -1;  ///< before all steps

  /// Bytes from a segment's key to its end.
  struct Segment {
    std::int64_t end = 0;
    int buffer = -1;  ///< whose value they hold; -1: nobody's
    int writer = kHost;
    bool by_peers = false;  ///< the writer is a copy of peers: there once all ranks have met
    bool reserved = false;  ///< flags and scratch
    std::vector<int> readers, remote_readers;
  };
  using Segments = std::map<std::int64_t, Segment>;

  const Buffer& buffer(int id) const { return program_.buffers[static_cast<std::size_t>(id)]; }
  const Step& step_at(int time) const {
    return program_.steps[static_cast<std::size_t>(time % count_)];
  }
  auto name(int time) const {
    return [this, time]() -> std::string {
      if (time == kHost || time >= 2 * count_) return "the caller";
      return fmt::format("step {} '{}'{}", time % count_, step_at(time).name,
                         time < count_ ? "" : " of the next run");
    };
  }

  /// Whether what happened at `a` has ended before `b` begins.
  bool before(int a, int b) const {
    if (a == kHost || b >= 2 * count_ || a / count_ != b / count_) return a < b;
    return order_.before(a % count_, b % count_);
  }

  /// Whether all ranks of the group have done with `a` before any of them begins with `b`: they
  /// meet in between, or at the end of `a` itself.
  bool separated(const std::string& group, int a, int b) const {
    if (a == kHost) return true;
    const Step& step = step_at(a);
    if (step.closing_barrier && comm_group(program_, step) == group && before(a, b)) return true;
    const auto found = barriers_.find(group);
    if (found == barriers_.end()) return false;
    for (int run = a / count_; run < 2; ++run) {
      const std::vector<int>& barriers = found->second;
      auto barrier = std::upper_bound(barriers.begin(), barriers.end(), a - run * count_);
      for (; barrier != barriers.end(); ++barrier) {
        const int time = run * count_ + *barrier;
        if (time >= b) return false;
        if (before(a, time) && before(time, b)) return true;
      }
    }
    return false;
  }

  /// Cuts the segments so that some make up [from, to) exactly, and calls `visit` on each; bytes
  /// that nobody used yet are a segment, too.
  template <class Visit>
  void each(int id, const Visit& visit) {
    Segments& segments = bytes_[static_cast<std::size_t>(buffer(id).arena)];
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
    // A kernel waits for its peers by itself, and has what they read and write as operands, too.
    const bool copy = step_at(time).kind == Step::Kind::kCopy;
    for (const Access& access : all) {
      if (access.write) continue;
      if (!access.remote) read(access.buffer, time);
      if (access.remote && copy) read_remotely(access.buffer, time);
    }
    for (const Access& access : all) {
      if (access.remote && access.write) write_remotely(access.buffer, time);
    }
    for (const Access& access : all) {
      if (access.write && (!access.remote || copy)) write(access, time);
    }
    for (const Access& access : all) {
      if (!access.remote || access.write || copy) continue;
      each(access.buffer, [&](Segment& segment) { add(segment.remote_readers, time); });
    }
  }

  /// Whether the value is complete, on this rank, when step `time` begins.
  bool is_there(const Segment& segment, int id, int time) const {
    return segment.by_peers ? separated(group_of(id), segment.writer, time)
                            : before(segment.writer, time);
  }

  void read(int id, int time) {
    each(id, [&](Segment& segment) {
      expect(!segment.reserved, "{} reads '{}', which overlaps words of a step", name(time),
             buffer(id).name);
      expect(segment.buffer >= 0, "{} reads '{}', which nobody has written, or whose value is gone",
             name(time), buffer(id).name);
      expect(segment.buffer == id, "{} reads '{}', whose bytes hold '{}' by then", name(time),
             buffer(id).name, buffer(segment.buffer).name);
      expect(is_there(segment, id, time), "{} reads '{}' while {} may still write it", name(time),
             buffer(id).name, name(segment.writer));
      add(segment.readers, time);
    });
  }

  /// A copy from a peer's memory: the peer has its value since the group's last barrier.
  void read_remotely(int id, int time) {
    each(id, [&](Segment& segment) {
      expect(!segment.reserved && segment.buffer == id,
             "{} reads '{}' of a peer, whose bytes do not hold it by then", name(time),
             buffer(id).name);
      expect(separated(group_of(id), segment.writer, time),
             "{} reads '{}' of a peer where {} may not be done: no barrier of '{}' between",
             name(time), buffer(id).name, name(segment.writer), group_of(id));
      add(segment.remote_readers, time);
    });
  }

  /// Later readers stand for those that they follow.
  void add(std::vector<int>& readers, int time) const {
    std::erase_if(readers, [&](int reader) { return reader == time || before(reader, time); });
    readers.push_back(time);
  }

  void write(int id, int time) { write({id, /*write=*/true, /*remote=*/false}, time); }
  void write(const Access& access, int time) {
    const int id = access.buffer;
    Segment whole;
    each(id, [&](Segment& segment) {
      expect(!segment.reserved, "{} writes '{}', which overlaps words of a step", name(time),
             buffer(id).name);
      expect(is_there(segment, id, time) || segment.writer == time || time == kHost,
             "{} writes '{}' while {} may still write there", name(time), buffer(id).name,
             name(segment.writer));
      for (const int reader : segment.readers) {
        const bool own =
            reader == time && (access.clobbers || step_at(time).kind == Step::Kind::kCopy);
        expect(own || before(reader, time), "{} writes '{}' while {} may still read there",
               name(time), buffer(id).name, name(reader));
      }
      const std::string& group = group_of(id);
      for (const int reader : segment.remote_readers) {
        expect(separated(group, reader, time),
               "{} writes '{}' where peers may still read for {}: no barrier of '{}' between",
               name(time), buffer(id).name, name(reader), group);
      }
    });
    if (buffer(id).bytes == 0) return;
    // All of it holds one value now.
    Segments& segments = bytes_[static_cast<std::size_t>(buffer(id).arena)];
    const std::int64_t from = buffer(id).offset;
    const std::int64_t to = from + buffer(id).bytes;
    segments.erase(segments.lower_bound(from), segments.lower_bound(to));
    whole.end = to;
    whole.buffer = access.clobbers ? -1 : id;
    whole.writer = time;
    whole.by_peers = access.remote;
    segments.emplace(from, std::move(whole));
  }

  const std::string& group_of(int id) const {
    return program_.arenas[static_cast<std::size_t>(buffer(id).arena)].group;
  }

  /// A peer may be a whole barrier ahead of this rank: all that this rank, or others, do with the
  /// bytes must be over at the group's last barrier.
  void write_remotely(int id, int time) {
    const std::string& group = group_of(id);
    each(id, [&](Segment& segment) {
      std::vector<int> users = segment.readers;
      users.insert(users.end(), segment.remote_readers.begin(), segment.remote_readers.end());
      if (segment.buffer >= 0) users.push_back(segment.writer);
      for (const int user : users) {
        expect(separated(group, user, time),
               "peers write '{}' for {} where {} may not be done: no barrier of '{}' between",
               buffer(id).name, name(time), name(user), group);
      }
    });
  }

  const Program& program_;
  StepOrder order_;
  Barriers barriers_;
  int count_;
  std::vector<Segments> bytes_;  ///< of each arena
};

}  // namespace

void check_hazards(const Program& program) { Hazards(program).run(); }

}  // namespace braid
