#pragma once

#include <map>
#include <string>
#include <vector>

#include "lowering/pass.h"
#include "lowering/plan/program.h"

namespace braid {

/// The steps of a program in the making, on the streams that the schedule says
/// (schedule/streams.h), with the events and barriers that they need.
class PlanSteps {
 public:
  PlanSteps(Program& program, const PassContext& context) : program_(program), context_(context) {}

  /// On the compute stream.
  void push(Step step);
  void copy(std::string name, int source, int destination);
  /// A copy with a source_peer on its stream, once all ranks have written the source; its event.
  int copy_from_peer(Step step);
  /// A step of a communicator on its stream, once all that was pushed so far is done; its event.
  /// All are on one stream, so that their order is the same on all ranks.
  int collective(Step step);
  /// The compute stream's next step follows the event.
  void await(const std::string& name, int event);
  /// When all steps are there: leaves out events that others stand for, and adds the barriers with
  /// which a run ends.
  void finish();

 private:
  void append(Step step);
  int record(const std::string& name, int stream);
  void meet(const std::string& group, int source, int stream);
  void add_barrier(const std::string& name, const std::string& group, int stream);
  void drop_unused_events();
  void drop_unused_streams();
  void add_closing_barriers();
  [[nodiscard]] int count() const { return static_cast<int>(program_.steps.size()); }
  [[nodiscard]] std::size_t whole(int buffer) const;

  Program& program_;
  const PassContext& context_;
  std::map<std::size_t, int> written_at_;  ///< buffers that are no slices: the last step so far
  std::vector<int> stream_of_;             ///< of each event
  /// Events of one stream that the compute stream waits for: the next one, and the last so far.
  struct Awaited {
    int next = -1, last = -1;
    std::string name;
  };
  std::map<int, Awaited> awaited_;                  ///< by their stream
  std::map<std::string, int, std::less<>> met_at_;  ///< groups: the step before their last barrier
  std::map<std::string, int, std::less<>> barriers_;  ///< groups: the kernel
};

}  // namespace braid
