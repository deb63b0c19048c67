#pragma once

#include <map>
#include <string>
#include <vector>

#include "lowering/pass.h"
#include "lowering/plan/program.h"

namespace braid {

/// Collects the steps of a program on the streams that the schedule chose (schedule/streams.h), and
/// adds the events and barriers that they need.
class PlanSteps {
 public:
  PlanSteps(Program& program, const PassContext& context) : program_(program), context_(context) {}

  /// Appends a step on the compute stream.
  void push(Step step);
  void copy(std::string name, int source, int destination);
  /// Appends a copy with a source_peer on its stream, behind a barrier of the ranks that wrote the
  /// source; returns its event.
  int copy_from_peer(Step step);
  /// Appends a communicator's step on its stream, behind all steps so far; returns its event. All
  /// use one stream, so their order is the same on all ranks.
  int collective(Step step);
  /// Makes the compute stream's next step wait for the event.
  void await(const std::string& name, int event);
  /// Called after the last step: drops redundant events and adds the barriers that end a run.
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
  std::map<std::size_t, int> written_at_;  ///< for each buffer that is no slice: its last writer so
                                           ///< far
  std::vector<int> stream_of_;             ///< for each event
  /// Events of one stream that the compute stream waits for: the next, and the last so far.
  struct Awaited {
    int next = -1, last = -1;
    std::string name;
  };
  std::map<int, Awaited> awaited_;                    ///< by stream
  std::map<std::string, int, std::less<>> met_at_;    ///< for each group: the step before its last
                                                      ///< barrier
  std::map<std::string, int, std::less<>> barriers_;  ///< for each group: its kernel
};

}  // namespace braid
