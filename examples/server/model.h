#pragma once

#include <braid/executable.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace server {

/// What a model can take, from the manifest of its folder and the options of the server.
struct Limits {
  std::int64_t max_tokens = 0;     ///< of one run
  std::int64_t max_sequences = 0;  ///< of one run
  std::int64_t context = 0;        ///< tokens of a sequence
  std::int64_t page_size = 0;      ///< tokens of a page of the cache
  std::int64_t pages = 0;          ///< of the cache
  std::int64_t vocabulary = 0;
  std::vector<std::int32_t> end_of_text;  ///< tokens that end a text
};

struct ModelOptions {
  std::filesystem::path folder;  ///< as `python -m braid.export` writes it (docs/python.md)
  braid::DeviceKind device = braid::DeviceKind::kAny;
  std::int64_t pages = 0;       ///< 0: as many as the manifest says
  std::int64_t max_tokens = 0;  ///< of one run; 0: as many as the manifest says
};

/// The inputs of one run, in the graph's layout (docs/python.md). Every sequence has tokens.
struct Batch {
  std::vector<std::int32_t> tokens, positions, slots, lengths, starts{0};
  std::vector<std::int32_t> page_table;  ///< [sequences, Model::table_width()]
};

/// An exported model on all its ranks, which are threads of this process. One thread may use it at
/// a time.
class Model {
 public:
  /// Compiles the graph and reads the weights. Throws std::exception with one line that says what
  /// is wrong with the folder.
  explicit Model(const ModelOptions& options);

  [[nodiscard]] const Limits& limits() const { return limits_; }
  [[nodiscard]] std::int64_t table_width() const { return table_width_; }

  /// Runs once and returns the logits of each sequence's last token, [sequences, vocabulary].
  /// Throws braid::Error where the run failed; the caches of its sequences are lost then.
  [[nodiscard]] std::vector<double> run(const Batch& batch);

 private:
  using Sizes = std::pair<std::int64_t, std::int64_t>;  // tokens, sequences
  struct PlanUse {
    braid::Executable::Plan plan;
    std::uint64_t last_run = 0;
  };

  /// Binds an input or output to memory of the largest run.
  void place(int rank, const std::string& name, const braid::TensorType& type);
  const braid::Executable::Plan& plan(const Sizes& sizes);
  void enqueue(const Batch& batch, const braid::Executable::Plan& chosen,
               braid::HostTensor* logits);

  Limits limits_;
  std::int64_t table_width_ = 0;
  std::unique_ptr<braid::World> world_;
  std::unique_ptr<braid::Executable> executable_;
  braid::DType logits_dtype_ = braid::DType::kF32;
  /// Of each rank: inputs and outputs of the largest run, by name, and the stream that fills them.
  std::vector<std::map<std::string, std::unique_ptr<braid::Memory>, std::less<>>> memory_;
  std::vector<std::unique_ptr<braid::Stream>> streams_;
  std::map<Sizes, PlanUse> plans_;
  std::uint64_t runs_ = 0;
};

}  // namespace server
