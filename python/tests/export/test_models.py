"""Exported models against PyTorch: logits of prompts, and tokens that are decoded through the cache."""

import collections
import json
import pathlib
import tempfile
import unittest

import braid
import models
import numpy as np
import torch
import transformers

STEPS = {"f32": 32, "bf16": 4}
PROMPTS = [3, 1, 33, 18]  # tokens of each
LIMITS = {"f32": 1e-5, "bf16": 8e-3}
# Of a graph: rms norms and rotary embeddings. DeepSeek's rotary embedding takes neighbours apart,
# which braid has no op for.
FOUND = {
    "Llama": (5, 4), "Qwen3": (9, 4), "Mistral": (5, 4), "Phi3": (5, 4), "Olmo2": (9, 4),
    "Glm": (5, 4), "Gemma3": (13, 4), "Mixtral": (5, 4), "Qwen3Moe": (9, 4), "GptOss": (5, 4),
    "DeepseekV3": (9, 0),
}  # fmt: skip


class AllLogits(transformers.LlamaForCausalLM):
    """Returns the logits of all tokens, whatever is to be kept."""

    def forward(self, input_ids, logits_to_keep=0, **others):
        del logits_to_keep
        return super().forward(input_ids, **others)


def error_of(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


class Exported(unittest.TestCase):
    def check(self, name, ranks, dtype, steps=None, max_sequences=4):
        """The logits are those of PyTorch in f32 with the same weights, and in f32 the tokens, too. All
        steps are given PyTorch's tokens, so that one that is almost as likely does not change the
        rest. In bf16 a router may choose another expert that is almost as good: there are few steps."""
        model = models.make(name)
        if dtype == "bf16":
            for parameter in model.parameters():
                parameter.copy_(parameter.bfloat16())
        with tempfile.TemporaryDirectory() as folder:
            braid.export(
                model, folder, tp=ranks, dtype=dtype,
                max_tokens=96, max_sequences=max_sequences, pages=64,
            )  # fmt: skip
            graph = json.loads((pathlib.Path(folder) / "graph.json").read_text())
            exported = braid.Model(folder, device="cpu")
        if name in FOUND:
            ops = collections.Counter(node["op"] for node in graph["nodes"])
            self.assertEqual((ops["rms_norm"], ops["rotary_embedding"]), FOUND[name])
            self.assertEqual(ops["rsqrt"], 0)
        sequences = exported.sequences([torch.randint(160, (n,)).tolist() for n in PROMPTS])
        errors = []
        for step in range(steps or STEPS[dtype]):
            expected = models.last_logits(model, [s.tokens for s in sequences]).numpy()
            found = exported.step(sequences)
            errors.append(error_of(found, expected))
            for sequence, row, own in zip(sequences, expected, found):
                second, best = np.sort(row)[-2:]
                if dtype == "f32" and best - second > LIMITS[dtype] * np.linalg.norm(row):
                    self.assertEqual(own.argmax(), row.argmax(), f"step {step}")
                sequence.tokens.append(int(row.argmax()))
        print(f"{name}, {ranks} ranks, {dtype}: error {max(errors):.1e}", flush=True)
        self.assertLessEqual(max(errors), LIMITS[dtype])

    def test_what_only_some_models_have(self):
        for name in models.OTHERS:
            with self.subTest(name):
                # A plan of Dory's has no part of what it multiplies the parts of queries by. As many
                # sequences as tokens: all runs have the same kernels.
                self.check(name, 1 if name == "Dory" else 2, "f32", steps=3, max_sequences=96)

    def test_of_a_model_that_returns_all_logits_the_last_ones_are_taken(self):
        model = AllLogits(models.make("Llama", num_hidden_layers=1).config).eval()
        with tempfile.TemporaryDirectory() as folder:
            braid.export(model, folder, tp=2, max_tokens=16, max_sequences=4, pages=16)
            exported = braid.Model(folder, device="cpu")
        prompts = [[3, 4, 5], [6], [7, 8]]
        found = exported.step(exported.sequences(prompts))
        expected = models.last_logits(model, prompts).numpy()
        self.assertEqual(found.shape, expected.shape)
        self.assertLess(error_of(found, expected), 1e-5)

    def test_runs_of_few_sequences(self):
        model = models.make("Llama", num_hidden_layers=1)
        for count, tokens in ((1, 16), (2, 5), (3, 16), (1, 1)):
            with self.subTest(count=count, tokens=tokens), tempfile.TemporaryDirectory() as folder:
                braid.export(model, folder, max_tokens=tokens, max_sequences=count, pages=16)
                graph = json.loads((pathlib.Path(folder) / "graph.json").read_text())
                self.assertEqual([graph["symbols"][s]["max"] for s in "TS"], [tokens, count])
                exported = braid.Model(folder, device="cpu")
                sequences = exported.sequences([[3, 4, 5][:tokens], [6], [7]][:count])
                for _ in range(3):
                    expected = models.last_logits(model, [s.tokens for s in sequences]).numpy()
                    self.assertLess(error_of(exported.step(sequences), expected), 1e-5)
                    for sequence, row in zip(sequences, expected):
                        sequence.tokens.append(int(row.argmax()))

    def test_of_experts_gate_and_up_are_cut_each(self):
        model = models.make("Mixtral", hidden_act="gelu")  # no op has experts with it
        keys = [key for key in model.tp_plan if key.endswith("experts.gate_up_proj")]
        self.assertEqual(len(keys), 1)
        with tempfile.TemporaryDirectory() as folder:
            braid.export(
                model, folder, tp=2, plan={**model.tp_plan, keys[0]: "colwise"},
                max_tokens=8, max_sequences=4, pages=16,
            )  # fmt: skip
            exported = braid.Model(folder, device="cpu")
        found = exported.step(exported.sequences([[3, 4, 5]]))
        self.assertLess(error_of(found, models.last_logits(model, [[3, 4, 5]]).numpy()), 1e-5)

    def test_what_needs_the_parts_of_all_ranks_is_refused(self):
        model = models.make("Llama")
        forward = model.model.layers[1].mlp.act_fn.forward
        model.model.layers[1].mlp.act_fn.forward = lambda x: forward(x) - (x + 1).mean(-1, keepdim=True)
        with tempfile.TemporaryDirectory() as folder:
            braid.export(model, folder, max_tokens=8, max_sequences=4)
            with self.assertRaisesRegex(braid.CannotExport, "mean along a dim of which the plan gives"):
                braid.export(model, folder, tp=2, max_tokens=8, max_sequences=4)

    def test_sparse_attention_is_exported_where_it_picks_all_keys(self):
        model = models.make("DeepseekV32", index_topk=48)
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(braid.InvalidArgument, "^context: found 49; expected at most 48"):
                braid.export(model, folder, context=49)
            with self.assertWarnsRegex(braid.export.Remark, "picks 48 keys .* 48 tokens, not 256"):
                braid.export(model, folder, max_tokens=64, max_sequences=4)
            manifest = json.loads((pathlib.Path(folder) / "manifest.json").read_text())
        self.assertEqual(manifest["context"], 48)

    def test_an_operand_of_attention_that_is_not_known_is_refused(self):
        model = models.make("Llama")
        for layer in model.model.layers:
            attention = layer.self_attn
            attention.register_forward_pre_hook(
                lambda _, given, named: (given, named | {"position_bias": torch.zeros(1)}),
                with_kwargs=True,
            )
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(braid.CannotExport, "attention with the operand position_bias"):
                braid.export(model, folder)

    def test_a_token_has_the_same_bits_in_a_prompt_and_in_decode(self):
        # Of keys there are three segments. Steps of few tokens run them side by side, others do not.
        tokens = torch.randint(160, (1100,)).tolist()
        model = models.make("Llama", max_position_embeddings=1104)
        with tempfile.TemporaryDirectory() as folder:
            braid.export(model, folder, max_tokens=610, max_sequences=4, pages=4 * 69)
            exported = braid.Model(folder, device="cpu")
            exported.executable.save(folder)
            program = (pathlib.Path(folder) / "program.json").read_text()
        self.assertIn("paged_attention_parts", program)
        self.assertIn("paged_attention_in_parts", program)

        def last(chunks, beside):
            """The logits of the last token, in runs of these numbers of tokens, beside others."""
            own, *others = exported.sequences([[], *([] for _ in beside)])
            for count in chunks:
                own.tokens = tokens[: len(own.tokens) + count]
                for other, length in zip(others, beside):
                    other.tokens, other.cached = tokens[:length], length - 1
                row = exported.step([*others, own])[-1]
            self.assertEqual(len(own.tokens), len(tokens))
            return row

        whole = last([600, 500], [])
        self.assertLess(error_of(whole, models.last_logits(model, [tokens]).numpy()[0]), 1e-5)
        for chunks, beside in (([600, 499, 1], [1, 700]), ([4, 590, 505, 1], []), ([597, 501, 2], [7])):
            np.testing.assert_array_equal(last(chunks, beside), whole)


def _add_tests():
    for name in models.MODELS:
        for ranks, dtype in ((1, "f32"), (2, "f32"), (4, "f32"), (1, "bf16"), (2, "bf16")):

            def test(self, name=name, ranks=ranks, dtype=dtype):
                self.check(name, ranks, dtype)

            setattr(Exported, f"test_{name}_{ranks}_{dtype}", test)


_add_tests()


if __name__ == "__main__":
    unittest.main()
