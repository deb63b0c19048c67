// Attention over pages against the reference: ragged batches, windows, heads that share keys, and
// pages in any order; rows that keep their bits in every batch and chunking; and operands that say
// what cannot be.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "braid/error.h"
#include "findings.h"
#include "ir/groups.h"
#include "run/graph_builder.h"
#include "run/run_graph.h"

namespace braid {
namespace {

using testing::GraphBuilder;

constexpr DType kBF16 = DType::kBF16, kF16 = DType::kF16, kI32 = DType::kI32;
const Dim kT = Dim::symbol("T");
const Dim kS = Dim::symbol("S");
constexpr std::int64_t kMostSequences = 6;
constexpr std::int64_t kMostKeys = 256;  ///< of a sequence, but in long forms

struct Form {
  const char* name;
  DType dtype = kBF16;
  std::int64_t heads = 4, key_heads = 2;
  std::int64_t width = 32, value_width = 32;
  std::int64_t page = 32;
  Attrs attrs = {};
  std::int64_t most_tokens = 200;
  bool sinks = false;
  bool decodes = false;  ///< one token of each sequence, by its type
  std::int64_t most_keys = kMostKeys;
  std::optional<DType> cache = {};  ///< 8-bit floats, with scales
  std::vector<Bucket> buckets = {};
  [[nodiscard]] std::int64_t most_pages() const { return most_keys / page; }
  [[nodiscard]] std::int64_t pages() const { return kMostSequences * most_pages() + 1; }
};
void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

Graph graph_of(const Form& form) {
  GraphBuilder b(form.most_tokens);
  b.graph().add_symbol("S", {1, kMostSequences});
  const Dim tokens = form.decodes ? kS : kT;
  const auto cache = [&](const char* name, std::int64_t width) {
    return b.in(form.cache.value_or(form.dtype), {form.pages(), form.page, form.key_heads, width},
                name);
  };
  const ValueId q = b.in(form.dtype, {tokens, form.heads, form.width}, "q");
  const ValueId k = cache("k", form.width), v = cache("v", form.value_width);
  const ValueId table = b.in(kI32, {kS, form.most_pages()}, "table");
  const ValueId lengths = b.in(kI32, {kS}, "lengths");
  const ValueId starts = b.in(kI32, {kS + 1}, "starts");
  std::vector<ValueId> inputs{q, k, v, table, lengths, starts};
  if (form.sinks) inputs.push_back(b.in(DType::kF32, {form.heads}, "sinks"));
  if (form.cache) {
    inputs.push_back(b.in(DType::kF32, {}, "k_scale"));
    inputs.push_back(b.in(DType::kF32, {1}, "v_scale"));
  }
  const ValueId y = b.node("paged_attention", inputs, form.attrs, "y").outputs[0];
  const Graph graph = b.take({b.op("silu", {y}), y});
  SymbolTable symbols = graph.symbols();
  symbols.at("T").buckets = form.buckets;
  return with_tables(graph, symbols, {});
}

/// The last `queries` of `keys` positions, whose pages are those of sequence `cache`.
struct Sequence {
  std::int64_t queries, keys;
  std::int64_t cache = -1;  ///< left out: the sequence's place in the batch
};
using Batch = std::vector<Sequence>;

/// Pages in no order; those that hold no key that is seen have a number that no page has.
std::int64_t page_number(const Form& form, const Sequence& s, std::int64_t slot) {
  std::int64_t first = 0;
  if (const auto window = form.attrs.find("window"); window != form.attrs.end()) {
    first = s.keys - s.queries + 1 - std::get<std::int64_t>(window->second);
  }
  const bool is_seen = s.queries > 0 && slot * form.page < s.keys && (slot + 1) * form.page > first;
  return is_seen ? (s.cache * form.most_pages() + slot) * 5 % form.pages() : -7;
}

Bindings bindings_of(const Batch& batch) {
  std::int64_t tokens = 0;
  for (const Sequence& s : batch) tokens += s.queries;
  return {{"T", std::max<std::int64_t>(1, tokens)}, {"S", std::ssize(batch)}};
}

/// The query of a token depends on its sequence and position alone.
RankTensors inputs_of(const Form& form, const Graph& graph, Batch batch) {
  for (std::size_t s = 0; s < batch.size(); ++s) {
    if (batch[s].cache < 0) batch[s].cache = static_cast<std::int64_t>(s);
  }
  RankTensors inputs = random_inputs(graph, bindings_of(batch), 11);
  std::vector<std::int64_t> table, lengths, starts{0};
  // Queries are such numbers, too.
  const HostTensor keys =
      HostTensor::from_doubles(form.dtype, inputs[0][1].shape, inputs[0][1].to_doubles());
  const std::size_t row =
      static_cast<std::size_t>(form.heads * form.width) * dtype_size(form.dtype);
  std::vector<std::byte> queries;
  for (const Sequence& s : batch) {
    for (std::int64_t slot = 0; slot < form.most_pages(); ++slot) {
      table.push_back(page_number(form, s, slot));
    }
    lengths.push_back(s.keys);
    starts.push_back(starts.back() + s.queries);
    for (std::int64_t at = s.keys - s.queries; at < s.keys; ++at) {
      const auto from = static_cast<std::size_t>(s.cache * 977 + at * 64) * dtype_size(form.dtype);
      queries.insert(queries.end(), keys.data.begin() + static_cast<std::ptrdiff_t>(from),
                     keys.data.begin() + static_cast<std::ptrdiff_t>(from + row));
    }
  }
  inputs[0][0].data = queries;
  const auto set = [&](std::size_t i, const std::vector<std::int64_t>& values) {
    inputs[0][i] = HostTensor::from_integers(kI32, inputs[0][i].shape, values);
  };
  set(3, table);
  set(4, lengths);
  set(5, starts);
  return inputs;
}

struct Compiled {
  explicit Compiled(const Form& of, Checks checks = kCheckNothing, const PassConfig& passes = {})
      : form(of),
        graph(graph_of(of)),
        world(World::open([&] {
          if (checks == kCheckNothing) return testing::world_options(1);
          WorldOptions options = testing::cpu_world_options(1);
          options.sanitize = checks;
          return options;
        }())),
        executable(Executable::compile(graph, world, passes)) {}

  RankTensors run(const Batch& batch) {
    return testing::run_once(executable, graph, bindings_of(batch), inputs_of(form, graph, batch));
  }
  ::testing::AssertionResult matches(const Batch& batch) {
    const RankTensors inputs = inputs_of(form, graph, batch);
    const Bindings bindings = bindings_of(batch);
    return testing::same_as_reference(graph, testing::run_once(executable, graph, bindings, inputs),
                                      evaluate(graph, inputs, bindings));
  }

  Form form;
  Graph graph;
  World world;
  Executable executable;
};

const Attrs kWindow = {{"window", std::int64_t{19}}};
const Attrs kOwnAlone = {{"window", std::int64_t{1}}};
const Attrs kCapped = {{"softcap", 0.7}, {"scale", 0.3}, {"window", std::int64_t{1} << 40U}};
const Attrs kCappedWindow = {{"softcap", 0.7}, {"window", std::int64_t{40}}};
const Attrs kAll = {{"causal", false}};
constexpr std::int64_t kFull = kMostKeys;

class PagedAttention : public ::testing::TestWithParam<Form> {};

TEST_P(PagedAttention, EqualsTheReference) {
  Compiled compiled(GetParam());
  ASSERT_EQ(compiled.executable.kernels().size(), 1U);
  EXPECT_EQ(compiled.executable.kernels()[0].template_name, "paged_attention");
  const std::vector<Batch> decoding{{{1, 1}}, {{1, 33}, {1, 1}, {1, kFull}, {1, 65}}};
  const std::vector<Batch> mixed{{{7, 7}},                                     // prefill alone
                                 {{1, 40}, {65, 70}, {1, kFull}, {3, 3}},      // with decode
                                 {{0, 0}, {2, 50}, {0, 9}, {30, 90}, {0, 0}},  // some have none
                                 {{5, 64, 0}, {1, 50, 0}, {1, 60, 1}}};        // shared pages
  for (const Batch& batch : decoding) EXPECT_TRUE(compiled.matches(batch)) << batch.size();
  if (GetParam().decodes) return;
  for (const Batch& batch : mixed) EXPECT_TRUE(compiled.matches(batch)) << batch.size();
}

INSTANTIATE_TEST_SUITE_P(
    Forms, PagedAttention,
    ::testing::Values(
        Form{.name = "grouped"},
        Form{.name = "small_pages", .dtype = kF16, .heads = 4, .key_heads = 1, .page = 16},
        Form{.name = "large_pages",
             .heads = 3,
             .key_heads = 3,
             .width = 80,
             .value_width = 40,
             .page = 256},
        Form{.name = "window", .width = 128, .value_width = 16, .page = 16, .attrs = kWindow},
        Form{.name = "own_key_alone", .page = 128, .attrs = kOwnAlone},
        Form{.name = "capped", .dtype = kF16, .attrs = kCapped},
        Form{.name = "all_keys", .page = 64, .attrs = kAll},
        Form{.name = "sinks", .dtype = kF16, .sinks = true},
        Form{.name = "sinks_and_window", .heads = 2, .attrs = kCappedWindow, .sinks = true},
        Form{.name = "three_to_one", .heads = 6, .decodes = true},
        Form{.name = "8_bits", .page = 16, .sinks = true, .cache = DType::kF8E4M3},
        Form{.name = "8_bits_and_window",
             .dtype = kF16,
             .width = 80,
             .value_width = 72,
             .attrs = kCappedWindow,
             .cache = DType::kF8E5M2},
        Form{.name = "8_bits_and_f32", .dtype = DType::kF32, .cache = DType::kF8E4M3}),
    [](const auto& info) { return info.param.name; });

/// The bytes of a token of the result.
std::vector<std::byte> token_of(const HostTensor& y, std::int64_t token) {
  const auto row = static_cast<std::ptrdiff_t>(y.data.size()) / y.shape[0];
  return {y.data.begin() + token * row, y.data.begin() + (token + 1) * row};
}

// By itself, among others, in a chunk of any size, and in tiles of any height.
TEST(PagedAttentionRows, KeepTheirBits) {
  for (Form form : {Form{.name = "", .dtype = DType::kF32, .heads = 8, .width = 16},
                    Form{.name = "", .heads = 8, .attrs = kWindow}}) {
    Compiled large(form);
    form.most_tokens = 2;
    Compiled small(form);
    form.most_tokens = 200;
    form.decodes = true;
    Compiled decode(form);
    constexpr std::int64_t kKeys = 150;
    const HostTensor whole = large.run({{kKeys, kKeys, 2}})[0][1];
    const HostTensor cut = large.run({{1, 77, 1}, {83, 83, 2}, {3, 9, 0}})[0][1];
    const HostTensor rest = large.run({{67, kKeys, 2}, {11, 40, 3}})[0][1];
    for (std::int64_t token = 0; token < kKeys; ++token) {
      const HostTensor& chunk = token < 83 ? cut : rest;
      ASSERT_EQ(token_of(chunk, token < 83 ? 1 + token : token - 83), token_of(whole, token))
          << token;
    }
    for (const std::int64_t token : {0, 1, 31, 32, 63, 64, 65, 100, 128, 149}) {
      const Sequence own{1, token + 1, 2};
      EXPECT_EQ(token_of(small.run({own})[0][1], 0), token_of(whole, token)) << token;
      const HostTensor beside = decode.run({{1, 200, 1}, own, {1, 5, 0}})[0][1];
      EXPECT_EQ(token_of(beside, 1), token_of(whole, token)) << token;
    }
  }
}

TEST(PagedAttentionKernel, RunsCleanUnderTheSanitizer) {
  for (const Form& form :
       {Form{.name = "", .page = 16, .attrs = kWindow}, Form{.name = "", .width = 16},
        Form{.name = "", .page = 64, .cache = DType::kF8E4M3}}) {
    Compiled compiled(form, kCheckAll);
    EXPECT_TRUE(compiled.matches({{1, 40}, {33, 70}, {1, kFull}, {0, 0}, {3, 3}}));
    const auto findings = found_by(compiled.world.device());
    EXPECT_TRUE(findings.empty()) << findings[0].text();
  }
}

// A query that sees one key gives its value, whichever it is, at every place in a word.
TEST(PagedAttentionKernel, CastsEveryElementOf8Bits) {
  constexpr std::int64_t kWidth = 256;
  for (const DType cache : {DType::kF8E4M3, DType::kF8E5M2}) {
    for (const DType dtype : {kBF16, kF16, DType::kF32}) {
      Compiled compiled({.name = "",
                         .dtype = dtype,
                         .heads = 1,
                         .key_heads = 1,
                         .width = 16,
                         .value_width = kWidth,
                         .page = 16,
                         .cache = cache});
      const Batch batch(4, Sequence{1, 1});
      RankTensors inputs = inputs_of(compiled.form, compiled.graph, batch);
      std::ranges::fill(inputs[0][0].data, std::byte{0});  // a weight is 1
      HostTensor all{cache, {4 * kWidth}, {}};
      for (std::int64_t i = 0; i < 4 * kWidth; ++i) {
        all.data.push_back(static_cast<std::byte>((i + i / kWidth) % 256));
        const std::int64_t page = page_number(compiled.form, {1, 1, i / kWidth}, 0);
        inputs[0][2].data[static_cast<std::size_t>((page * 16 * kWidth) + (i % kWidth))] =
            all.data.back();
      }
      inputs[0][7] = HostTensor::from_doubles(DType::kF32, {1}, std::vector<double>{1});
      const std::vector<double> found =
          testing::run_once(compiled.executable, compiled.graph, bindings_of(batch), inputs)[0][1]
              .to_doubles();
      const std::vector<double> expected = all.to_doubles();
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i])))
            << dtype_name(cache) << " " << dtype_name(dtype) << " " << i << ": " << found[i];
      }
    }
  }
}

constexpr std::int64_t kLong = 2100;

// One token of each sequence goes over segments of keys side by side, which are joined.
TEST(PagedAttentionParts, EqualTheReferenceAndKeepTheirBits) {
  const Batch batch{{1, 1}, {1, 513}, {1, kLong}, {1, 512}, {1, 1300}};
  for (Form form :
       {Form{.name = "", .width = 16}, Form{.name = "", .dtype = kF16, .heads = 8, .sinks = true},
        Form{.name = "", .sinks = true, .cache = DType::kF8E4M3},
        Form{.name = "",
        .width = 80,
        .value_width = 72,
        .page = 16,
        .attrs = {{"window", std::int64_t{700}}, {"softcap", 2.0}}}}) {
    form.decodes = true;
    form.most_keys = kLong / form.page * form.page + form.page;
    Compiled compiled(form);
    EXPECT_THAT(compiled.executable.kernels(), ::testing::SizeIs(2));
    EXPECT_TRUE(compiled.matches(batch));
    EXPECT_TRUE(compiled.matches({{2, 1200}, {0, 0}}));
    const HostTensor all = compiled.run(batch)[0][1];
    for (std::size_t s = 0; s < batch.size(); ++s) {
      Sequence alone = batch[s];
      alone.cache = static_cast<std::int64_t>(s);
      EXPECT_EQ(token_of(compiled.run({alone})[0][1], 0),
                token_of(all, static_cast<std::int64_t>(s)))
          << s;
    }
  }
}

const PassConfig kInvariant{.options = {{"invariant-attention", "true"}}};

// A token has the same bits in decode, alone and among others, as in a prompt or any chunk of one,
// in tiles of any height.
TEST(InvariantAttention, GivesATokenOfAPromptTheBitsOfDecode) {
  constexpr std::int64_t kKeys = 1200;
  for (Form form : {Form{.name = "", .dtype = DType::kF32, .heads = 2, .key_heads = 1, .width = 16},
                    Form{.name = "", .heads = 2, .key_heads = 1, .width = 16, .sinks = true},
                    Form{.name = "", .heads = 2, .width = 16, .cache = DType::kF8E4M3},
                    Form{.name = "",
                    .dtype = kF16,
                    .heads = 2,
                    .key_heads = 1,
                    .width = 16,
                    .value_width = 72,
                    .page = 16,
                    .attrs = {{"window", std::int64_t{700}}, {"softcap", 2.0}}}}) {
    form.most_tokens = kKeys;
    form.most_keys = kLong / form.page * form.page + form.page;
    Compiled prompt(form, kCheckNothing, kInvariant);
    EXPECT_THAT(prompt.executable.kernels(), ::testing::SizeIs(1));
    form.most_tokens = 3;
    Compiled small(form, kCheckNothing, kInvariant);
    form.decodes = true;
    Compiled decode(form, kCheckNothing, kInvariant);
    EXPECT_THAT(decode.executable.kernels(), ::testing::SizeIs(2));
    EXPECT_TRUE(prompt.matches({{1, 700}, {30, 1100}, {0, 0}, {600, 600}}));
    const HostTensor whole = prompt.run({{kKeys, kKeys, 2}})[0][1];
    const HostTensor cut = prompt.run({{1, 77, 1}, {590, 590, 2}, {3, 9, 0}})[0][1];
    const HostTensor rest = prompt.run({{610, kKeys, 2}, {11, 40, 3}})[0][1];
    for (std::int64_t token = 0; token < kKeys; ++token) {
      const HostTensor& chunk = token < 590 ? cut : rest;
      ASSERT_EQ(token_of(chunk, token < 590 ? 1 + token : token - 590), token_of(whole, token))
          << token;
    }
    for (const std::int64_t token : {0, 1, 100, 511, 512, 513, 700, 1023, 1024, 1100, 1199}) {
      const Sequence own{1, token + 1, 2};
      EXPECT_EQ(token_of(small.run({{1, 1500, 1}, own})[0][1], 1), token_of(whole, token)) << token;
      EXPECT_EQ(token_of(decode.run({own})[0][1], 0), token_of(whole, token)) << token;
      const HostTensor beside = decode.run({{1, 2000, 1}, own, {1, 5, 0}})[0][1];
      EXPECT_EQ(token_of(beside, 1), token_of(whole, token)) << token;
    }
  }
}

// A bucket of few tokens lets segments run side by side, with the bits of the other one. Tiles are
// as for one token of each sequence, and yet a run may have a prompt.
TEST(InvariantAttention, GivesARowTheSameBitsInEveryBucket) {
  constexpr std::int64_t kKeys = 1100;
  const Attrs window{{"window", std::int64_t{700}}};
  for (Form form : {Form{.name = "", .heads = 4, .key_heads = 1, .width = 16, .sinks = true},
                    Form{.name = "", .heads = 2, .width = 16, .attrs = window}}) {
    form.most_tokens = kKeys;
    form.most_keys = kLong / form.page * form.page + form.page;
    Compiled whole(form, kCheckNothing, kInvariant);
    form.buckets = {{kMostSequences}};
    Compiled buckets(form, kCheckNothing, kInvariant);
    EXPECT_THAT(buckets.executable.kernels(), ::testing::SizeIs(3));
    for (const Batch& few : {Batch{{6, kKeys, 2}}, Batch{{1, 900, 1}, {4, kKeys, 2}, {1, 3, 0}},
                             Batch{{1, kLong, 0}, {1, 1, 1}, {1, 600, 2}}, Batch{{6, 6, 3}}}) {
      EXPECT_TRUE(buckets.matches(few));
      EXPECT_EQ(buckets.run(few)[0][1].data, whole.run(few)[0][1].data);
    }
  }
}

TEST(InvariantAttention, RunsCleanUnderTheSanitizer) {
  Compiled compiled({.name = "", .width = 16, .most_tokens = 600, .most_keys = kLong}, kCheckAll,
                    kInvariant);
  EXPECT_TRUE(compiled.matches({{1, 600}, {30, 1030}, {1, 1}, {0, 0}}));
  const auto findings = found_by(compiled.world.device());
  EXPECT_TRUE(findings.empty()) << findings[0].text();
}

TEST(PagedAttentionParts, RunCleanUnderTheSanitizer) {
  Compiled compiled({.name = "", .width = 16, .decodes = true, .most_keys = kLong}, kCheckAll);
  EXPECT_TRUE(compiled.matches({{1, 1}, {1, 600}, {1, 2000}}));
  const auto findings = found_by(compiled.world.device());
  EXPECT_TRUE(findings.empty()) << findings[0].text();
}

// Nothing outside of a tensor is touched, the reference says the same, and the next run is well.
TEST(PagedAttentionKernel, NamesWhatIsOutOfRangeOrOrder) {
  struct Bad {
    std::size_t input;
    std::size_t at;
    std::int64_t value;
    std::int64_t index, most;  ///< as the error says
  };
  const Batch good{{1, 40}, {33, 70}, {6, 6}};
  for (const std::int64_t page : {16, 64}) {  // several pages in a tile of keys, or one
    // Sequences that overlap write the same tokens.
    Compiled compiled({.name = "", .width = 16, .page = page}, kCheckBounds);
    const Bindings bindings = bindings_of(good);
    const Form& form = compiled.form;
    const std::size_t slot = static_cast<std::size_t>(form.most_pages());
    for (const Bad& bad :
         {Bad{3, 0, form.pages(), form.pages(), form.pages() - 1},
          Bad{3, slot, -1, -1, form.pages() - 1},
          Bad{4, 1, kMostKeys + 1, kMostKeys + 1, kMostKeys}, Bad{4, 0, -1, -1, kMostKeys},
          Bad{4, 1, 32, 33, 32}, Bad{5, 0, 1, 1, 0}, Bad{5, 3, 41, 41, 40}, Bad{5, 3, 39, 1, 0},
          Bad{5, 1, 36, -2, 40}, Bad{5, 1, 1 << 30, 1 << 30, 40}}) {
      RankTensors inputs = inputs_of(form, compiled.graph, good);
      HostTensor& tensor = inputs[0][bad.input];
      std::vector<std::int64_t> values = tensor.to_integers();
      values[bad.at] = bad.value;
      tensor = HostTensor::from_integers(kI32, tensor.shape, values);
      // More queries than keys are said of the queries.
      const std::size_t said = bad.index == 33 ? 5 : bad.input;
      const std::string expected = fmt::format(
          "y/inputs/{}: rank 0: index {} is out of range; expected an integer from 0 "
          "to {}",
          said, bad.index, bad.most);
      EXPECT_EQ(testing::error_of([&] { (void)evaluate(compiled.graph, inputs, bindings); }),
                expected);
      compiled.executable.prepare(bindings);
      testing::set_inputs(compiled.executable, compiled.graph, inputs);
      compiled.executable.run();
      EXPECT_EQ(testing::error_of([&] { compiled.executable.synchronize(); }), expected);
    }
    EXPECT_TRUE(compiled.matches(good));
    const auto findings = found_by(compiled.world.device());
    EXPECT_TRUE(findings.empty()) << findings[0].text();
  }
}

}  // namespace
}  // namespace braid
