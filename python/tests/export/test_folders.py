"""Folders in the Hub's layout, and what is said of those that cannot be exported."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import braid
import models
import torch
from braid import safetensors
from safetensors.torch import load_file, save_file

SMALL = {"max_tokens": 32, "max_sequences": 4, "pages": 32}


def content(folder):
    """The files of an exported folder, but what comes from the model's own."""
    return {
        path.name: path.read_bytes()
        for path in sorted(pathlib.Path(folder).iterdir())
        if path.suffix == ".safetensors" or path.name in ("graph.json", "manifest.json")
    }


def of_4_bits(matrices):
    """Matrices [experts, in, out] as near ones of mxfp4, with what a checkpoint has of these: blocks and
    exponents."""
    rows = matrices.mT.unflatten(-1, (-1, 32))
    exponents = rows.abs().amax(-1, keepdim=True).log2().floor() - 2
    values = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    near = ((rows / exponents.exp2()).abs()[..., None] - values).abs().argmin(-1)
    numbers = (values[near] * rows.sign() * exponents.exp2()).flatten(-2).mT
    codes = near + 8 * (rows < 0)
    blocks = (codes[..., ::2] + 16 * codes[..., 1::2]).to(torch.uint8)
    return numbers, blocks, (exponents[..., 0] + 127).to(torch.uint8)


class Folders(unittest.TestCase):
    def setUp(self):
        self._directory = tempfile.TemporaryDirectory()
        self.addCleanup(self._directory.cleanup)
        self.root = pathlib.Path(self._directory.name)
        self.saved, self.out = self.root / "saved", self.root / "out"

    def save(self, name="Llama", **more):
        model = models.make(name, **more)
        model.save_pretrained(self.saved, max_shard_size="50KB")
        return model

    def command(self, *options):
        sizes = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
        return subprocess.run(
            [sys.executable, "-m", "braid.export", self.saved, "-o", self.out, *sizes, *options],
            capture_output=True, text=True,
        )  # fmt: skip

    def refused(self, error=braid.InvalidArgument, **options):
        with self.assertRaises(error) as raised:
            braid.export(self.saved, self.out, **{**SMALL, **options})
        return str(raised.exception)

    def test_a_folder_gives_what_the_model_in_memory_gives(self):
        # Mixtral's weights are joined as they are loaded.
        for name in ("Llama", "Mixtral"):
            with self.subTest(name):
                model = self.save(name)
                braid.export(model, self.root / "of_model", tp=2, dtype="bf16", **SMALL)
                done = self.command("--tp", "2", "--dtype", "bf16")
                self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
                self.assertEqual(content(self.out), content(self.root / "of_model"))
                self.assertTrue((self.out / "config.json").is_file())

    def test_a_chat_template_of_another_form_is_a_remark(self):
        self.save()
        template = self.saved / "chat_template.jinja"
        template.write_text("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}")
        (self.saved / "tokenizer.model").write_bytes(b"pieces")
        done = self.command()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual((self.out / "tokenizer.model").read_bytes(), b"pieces")
        chat = json.loads((self.out / "manifest.json").read_text())["chat"]
        self.assertIn(["user", "assistant", "<assistant>"], chat["between"])
        template.write_text("{{ messages | length }}")
        done = self.command()
        self.assertEqual(
            (done.returncode, done.stderr),
            (0, "braid.export: remark: the folder is without its chat template: it does not write each "
                "content once, in order\n"),
        )  # fmt: skip
        self.assertNotIn("chat", json.loads((self.out / "manifest.json").read_text()))

    def test_latent_attention_is_expanded_with_a_remark(self):
        self.save("DeepseekV3")
        done = self.command("--tp", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        # 8 heads, with keys of 32 elements and values of 16, on each rank: the plan leaves them whole.
        self.assertIn(
            "braid.export: remark: DeepseekV3ForCausalLM: its latent attention is exported expanded: a "
            "layer's cache holds 384 elements for each token on each rank, not 48\n",
            done.stderr,
        )

    def test_tied_weights_are_written_once(self):
        model = self.save(tie_word_embeddings=True)
        braid.export(self.saved, self.out, tp=2, **SMALL)
        names = safetensors.read(self.out / "rank1.safetensors")
        names |= safetensors.read(self.out / "shared.safetensors")
        self.assertIn("model.embed_tokens.weight", names)
        self.assertNotIn("lm_head.weight", names)
        prompts = [[5, 6, 7], [8]]
        exported = braid.Model(self.out, device="cpu")
        for prompt, found in zip(prompts, exported.generate(prompts, 4)):
            tokens = list(prompt)
            for _ in range(4):
                tokens.append(models.last_logits(model, [tokens])[0].argmax().item())
            self.assertEqual(found, tokens[len(prompt) :])

    def test_ranks_share_what_they_do_not_divide(self):
        model = self.save(num_key_value_heads=2, vocab_size=161)
        braid.export(self.saved, self.out, tp=4, **SMALL)
        shared = safetensors.read(self.out / "shared.safetensors")
        self.assertEqual(shared["lm_head.weight"].shape, (161, 64))
        exported = braid.Model(self.out, device="cpu")
        found = torch.tensor(exported.step(exported.sequences([[3, 4, 5], [6]])))
        expected = models.last_logits(model, [[3, 4, 5], [6]])
        self.assertLess(((found - expected).norm() / expected.norm()).item(), 1e-5)

    def test_experts_in_mxfp4_stay_packed(self):
        model = models.make("GptOss", num_hidden_layers=1, layer_types=["full_attention"])
        model.save_pretrained(self.saved)
        path = self.saved / "model.safetensors"
        weights = load_file(path)
        for name in [key for key in weights if key.endswith(("gate_up_proj", "down_proj"))]:
            numbers, blocks, scales = of_4_bits(weights.pop(name))
            model.get_parameter(name).copy_(numbers)
            weights[f"{name}_blocks"], weights[f"{name}_scales"] = blocks, scales
        save_file(weights, path, {"format": "pt"})
        config = json.loads((self.saved / "config.json").read_text())
        config["quantization_config"] = {"quant_method": "mxfp4"}
        (self.saved / "config.json").write_text(json.dumps(config))
        prompts = [[3, 4, 5, 80, 7], [6], [9, 9]]
        expected = models.last_logits(model, prompts)
        sizes = {"gate_up_proj": ([4, 192, 8], [4, 192, 2]), "down_proj": ([4, 64, 12], [4, 64, 3])}
        for dtype, limit in (("f32", 1e-5), ("bf16", 2e-2)):
            with self.subTest(dtype):
                braid.export(self.saved, self.out, dtype=dtype, **SMALL)
                graph = json.loads((self.out / "graph.json").read_text())
                inputs = {each["name"]: (each["dtype"], each["shape"]) for each in graph["inputs"]}
                for name, (words, scales) in sizes.items():
                    name = f"model.layers.0.mlp.experts.{name}"
                    self.assertNotIn(name, inputs)
                    self.assertEqual(inputs[f"{name}_blocks"], ("i32", words))
                    of = "bf16" if dtype == "bf16" else "f32"
                    self.assertEqual(inputs[f"{name}_scales"], (of, scales))
                exported = braid.Model(self.out, device="cpu")
                found = torch.tensor(exported.step(exported.sequences(prompts)))
                self.assertLess(((found - expected).norm() / expected.norm()).item(), limit)

    def test_what_cannot_be_exported_is_named_all_at_once(self):
        class Pool(torch.nn.Module):
            def forward(self, x):
                return torch.erfinv(x)

        model = models.make("Llama")
        for layer in model.model.layers:
            layer.mlp.act_fn = Pool()
        with self.assertRaisesRegex(braid.CannotExport, "^2 ops cannot be exported:") as raised:
            braid.export(model, self.out, **SMALL)
        for layer in (0, 1):
            self.assertRegex(
                str(raised.exception),
                rf"model.layers.{layer}.mlp.act_fn: erfinv; /.*test_folders.py:\d+: ",
            )

    def test_an_activation_that_pytorch_decomposes(self):
        model = self.save(hidden_act="mish")
        braid.export(self.saved, self.out, **SMALL)
        exported = braid.Model(self.out, device="cpu")
        found = torch.tensor(exported.step(exported.sequences([[3, 4, 5], [6]])))
        expected = models.last_logits(model, [[3, 4, 5], [6]])
        self.assertLess(((found - expected).norm() / expected.norm()).item(), 1e-5)

    def test_what_would_mix_sequences_is_refused(self):
        class Mixing(torch.nn.Module):
            def forward(self, x):
                return x + x.cumsum(1)

        model = models.make("Llama")
        model.model.norm = Mixing()
        text = "model.norm: cumsum along the tokens, which belong to several sequences; .*x.cumsum"
        with self.assertRaisesRegex(braid.CannotExport, text):
            braid.export(model, self.out, **SMALL)

    def test_a_convolution_that_sees_later_tokens_is_refused(self):
        class Later(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = torch.nn.Conv1d(64, 64, 3, padding=1, groups=64)

            def forward(self, x):
                return self.conv(x.mT).mT

        model = models.make("Llama")
        model.model.norm = Later()
        text = "model.norm.conv: a convolution along the tokens that sees later ones or other channels"
        with self.assertRaisesRegex(braid.CannotExport, text):
            braid.export(model, self.out, **SMALL)

    def test_a_layer_that_looks_at_its_mask_is_refused(self):
        class Looking(torch.nn.Module):
            def forward(self, x, attention_mask=None, **_):
                return x + attention_mask[..., 0]

        model = models.make("Llama")
        model.model.layers[1] = Looking()
        text = "^LlamaForCausalLM: the model takes elements of its attention's mask; expected one that"
        with self.assertRaisesRegex(braid.CannotExport, text):
            braid.export(model, self.out, **SMALL)

    def test_ranks_that_the_plan_does_not_fit_are_refused(self):
        self.save()
        text = self.refused(tp=3)
        self.assertRegex(text, "^LlamaForCausalLM: cannot be split over 3 ranks:\n")
        self.assertIn("model.layers.1.self_attn.q_proj: 8 parts; expected a multiple of 3", text)
        done = self.command("--tp", "3")
        self.assertEqual(done.returncode, 2)
        self.assertIn("braid.export: error: LlamaForCausalLM: cannot be split", done.stderr)

    def test_pickles_are_refused(self):
        model = self.save()
        for path in self.saved.glob("model*"):
            path.unlink()
        torch.save(model.state_dict(), self.saved / "pytorch_model.bin")
        self.assertRegex(self.refused(), "has no model.safetensors .*pytorch_model.bin.*pickles")

    def test_weights_that_do_not_fit_are_refused(self):
        models.make("Llama").save_pretrained(self.saved)
        path = self.saved / "model.safetensors"
        weights = load_file(path)
        key = "model.layers.0.mlp.up_proj.weight"
        save_file({**weights, key: weights[key][1:].clone()}, path)
        self.assertRegex(self.refused(), rf"{key} is \[95, 64\]; expected \[96, 64\]")
        del weights[key]
        save_file(weights, path)
        self.assertRegex(self.refused(), f"the weights lack {key}, and 0 more")

    def test_a_folder_without_config_is_refused(self):
        self.saved.mkdir()
        self.assertRegex(self.refused(), "has no config.json")
        self.assertRegex(
            self.refused(dtype="f8"), "^dtype: found f8; expected one of f32, f16, bf16"
        )

    def test_numbers_that_mean_nothing_are_refused(self):
        for name in ("tp", "max_tokens", "max_sequences", "context", "pages"):
            text = self.refused(**{name: 0})
            self.assertEqual(text, f"{name}: found 0; expected a number from 1 on")
        text = self.refused(page_size=7)
        self.assertEqual(text, "page_size: found 7; expected one of 16, 32, 64, 128, 256")


if __name__ == "__main__":
    unittest.main()
