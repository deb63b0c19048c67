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


def error_of(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


class Exported(unittest.TestCase):
    def check(self, name, ranks, dtype):
        """The logits are those of PyTorch in f32 with the same weights, and in f32 the tokens, too. All
        steps are given PyTorch's tokens, so that one that is almost as likely does not change the
        rest. In bf16 a router may choose another expert that is almost as good: there are few steps."""
        model = models.make(name)
        if dtype == "bf16":
            for parameter in model.parameters():
                parameter.copy_(parameter.bfloat16())
        with tempfile.TemporaryDirectory() as folder:
            braid.export(
                model, folder, tp=ranks, dtype=dtype, max_tokens=96, max_sequences=4, pages=64
            )
            graph = json.loads((pathlib.Path(folder) / "graph.json").read_text())
            exported = braid.Model(folder, device="cpu")
        ops = collections.Counter(node["op"] for node in graph["nodes"])
        self.assertEqual((ops["rms_norm"], ops["rotary_embedding"]), FOUND[name])
        self.assertEqual(ops["rsqrt"], 0)
        sequences = exported.sequences([torch.randint(160, (n,)).tolist() for n in PROMPTS])
        errors = []
        for step in range(STEPS[dtype]):
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


def _add_tests():
    for name in models.MODELS:
        for ranks, dtype in ((1, "f32"), (2, "f32"), (4, "f32"), (1, "bf16"), (2, "bf16")):

            def test(self, name=name, ranks=ranks, dtype=dtype):
                self.check(name, ranks, dtype)

            setattr(Exported, f"test_{name}_{ranks}_{dtype}", test)


_add_tests()


if __name__ == "__main__":
    unittest.main()
