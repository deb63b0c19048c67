"""Exported models against PyTorch: logits of prompts, and tokens that are decoded through the cache."""

import pathlib
import tempfile
import unittest

import models
import numpy as np
import torch

import braid

STEPS = 32
PROMPTS = [3, 1, 33, 18]  # tokens of each
LIMITS = {"f32": 1e-5, "bf16": 8e-3}


def error_of(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


class Exported(unittest.TestCase):
    def check(self, name, ranks, dtype, **more):
        """The model decodes what PyTorch finds most likely, in f32 of the same weights. All steps are
        given PyTorch's tokens, so that one that is almost as likely does not change the rest."""
        model = models.make(name, **more)
        if dtype == "bf16":
            for parameter in model.parameters():
                parameter.copy_(parameter.bfloat16())
        with tempfile.TemporaryDirectory() as folder:
            braid.export(
                model, folder, tp=ranks, dtype=dtype, max_tokens=96, max_sequences=4, pages=64
            )
            exported = braid.Model(folder, device="cpu")
        prompts = [torch.randint(160, (count,)).tolist() for count in PROMPTS]
        sequences = exported.sequences(prompts)
        errors = []
        for step in range(STEPS):
            expected = models.last_logits(model, [s.tokens for s in sequences]).numpy()
            found = exported.step(sequences)
            errors.append(error_of(found, expected))
            self.assertLessEqual(errors[-1], LIMITS[dtype], f"{name}, step {step}")
            for sequence, row, own in zip(sequences, expected, found):
                second, best = np.sort(row)[-2:]
                if best - second > LIMITS[dtype] * np.linalg.norm(row):
                    self.assertEqual(own.argmax(), row.argmax(), f"{name}, step {step}")
                sequence.tokens.append(int(row.argmax()))
        print(f"{name}, {ranks} ranks, {dtype}: error {max(errors):.1e}", flush=True)

    def test_llama(self):
        for ranks in (1, 2):
            for dtype in LIMITS:
                with self.subTest(ranks=ranks, dtype=dtype):
                    self.check("Llama", ranks, dtype)


if __name__ == "__main__":
    unittest.main()
