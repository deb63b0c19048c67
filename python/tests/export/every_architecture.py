"""Tries every architecture of transformers that has a tensor-parallel plan, with small random weights:
every_architecture.py [--ranks N] [--dtype f32|bf16] [--part K/N] [NAME...]. Prints a line for each: the error of its
logits beside PyTorch's, of prompts and of tokens behind them, or why there are none. What has pictures or sounds as well is given text."""

import argparse
import collections
import resource
import signal
import sys
import tempfile
import warnings

import braid
import models
import torch
from transformers import CONFIG_MAPPING
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

SECONDS, MEMORY = 90, 8 << 30
LIMITS = {"f32": 1e-5, "bf16": 3e-2}
STEPS = 3  # a prompt, and tokens behind it
PROMPTS = [[5, 6, 7], [8], list(range(10, 43))]
# What configs call sizes, with small ones.
SIZES = {
    **models.SIZES,
    "hidden_size": 128, "hidden_dim": 128, "d_model": 128, "n_embd": 128, "rotary_dim": 16,
    "global_head_dim": 16, "intermediate_size": 96, "ffn_hidden_size": 96, "n_layer": 2, "n_layers": 2,
    "num_layers": 2, "n_head": 8, "n_heads": 8, "moe_intermediate_size": 48, "num_experts": 4,
    "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "sliding_window": 20,
    "n_shared_experts": 1, "shared_expert_intermediate_size": 48, "q_lora_rank": 32, "kv_lora_rank": 32,
    "qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "v_head_dim": 16, "first_k_dense_replace": 1,
    "n_group": 1, "topk_group": 1, "moe_layer_start_index": 1, "vocab_size_per_layer_input": 160,
    "hidden_size_per_layer_input": 16, "num_kv_shared_layers": 0, "moe_num_experts": 4, "moe_k": 2,
}  # fmt: skip
# What some have beside them, in the config of text, ...
MORE = {
    "bailing_hybrid": {"n_group": 1, "num_experts_per_token": 2},
    "cohere_compass": {
        "layer_types": ["sliding_attention", "full_attention"],
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]},
            "full_attention": None,
        },
    },
    "deepseek_ocr2": {"mlp_layer_types": ["dense", "sparse"]},
    "diffusion_gemma": {"top_k_experts": 2, "moe_intermediate_size": 48},
    "ernie4_5_vl_moe": {
        "moe_intermediate_size": [48, 48],
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [3, 3, 2]},
    },
    "kimi_linear": {"num_local_experts": 4, "num_experts_per_token": 2},
    "mistral4": {"head_dim": 32},
    "esmc": {"num_key_value_heads": 8},
    "glm5_next": {"qk_rope_head_dim": 0},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    "lfm3": {"layer_types": ["conv", "full_attention"]},
    "unlimited_ocr": {"num_key_value_heads": 8},
}  # fmt: skip
# ... and in the config around it.
AROUND = {
    "granite4_vision": {"deepstack_layer_map": [[0, 0]], "downsample_rate": "1/2"},
    "granite_docling": {"vision_config": {"out_hidden_size": 128, "num_hidden_layers": 1}},
    "muse_spark": {"vision_config": {}},
}  # fmt: skip
# What has pictures or sounds is not run, so that only its memory counts.
OTHERS = ("depth", "num_hidden_layers", "num_layers", "n_layers", "layers", "encoder_layers")


def packages():
    """The types of configs of each package that has one with a plan."""
    result = collections.defaultdict(dict)
    for name in CONFIG_MAPPING_NAMES:
        kind = CONFIG_MAPPING[name]
        result[kind.__module__.split(".")[-2]][name] = kind
    return {
        package: kinds
        for package, kinds in sorted(result.items())
        if any(getattr(kind, "base_model_tp_plan", None) for kind in kinds.values())
    }


def chosen(kinds):
    """The config and the name of the model: of text alone where there is one."""
    for name, kind in kinds.items():
        mapping = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        if name in mapping and kind.base_model_tp_plan and not kind.sub_configs:
            return kind, mapping[name]
    for mapping in (
        modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    ):
        for name, kind in kinds.items():
            if name in mapping:
                return kind, mapping[name]
    for name, kind in kinds.items():
        if kind.base_model_tp_plan and name in modeling_auto.MODEL_MAPPING_NAMES:
            return kind, modeling_auto.MODEL_MAPPING_NAMES[name]
    raise LookupError("has no model that writes text")


def small(config, package, is_text=True):
    """A small config like one that there is, and of what it consists of."""
    known = config.to_dict()
    if is_text:
        given = {key: value for key, value in SIZES.items() if key in known}
        if "kv_lora_rank" in known:
            given["num_key_value_heads"] = given["num_attention_heads"]
        for key, value in known.items():
            if isinstance(value, list) and len(value) == known.get("num_hidden_layers"):
                given[key] = _of_each(value)  # it has an entry for each layer
        if "num_attention_heads" in known:
            given |= MORE.get(package, {})
    else:
        given = {key: 1 for key in OTHERS if isinstance(known.get(key), int)}
    for key in type(config).sub_configs:
        part = getattr(config, key, None)
        if part is not None:
            is_own = any(word in key for word in ("text", "thinker", "language"))
            given[key] = small(part, package, is_text and is_own)
    if is_text and "num_attention_heads" not in known:
        given |= AROUND.get(package, {})
    if is_text and "rope_parameters" not in given:
        given |= _ropes({**known, **given})
    return type(config)(**given)


def _ropes(sizes):
    """Parameters of rotary embeddings whose sections fit the width of a head, where they are none."""
    ropes, heads = sizes.get("rope_parameters"), sizes.get("num_attention_heads")
    if not ropes or not heads or any(isinstance(each, dict) for each in ropes.values()):
        return {}
    sections = ropes.get("mrope_section", [1, 1, 1])
    width = sizes.get("qk_rope_head_dim") or sizes.get("head_dim") or sizes["hidden_size"] // heads
    half = int(width * ropes.get("partial_rotary_factor", 1)) // 2
    parts = [half * each // sum(sections) for each in sections]
    parts[0] += half - sum(parts)
    return {"rope_parameters": {**ropes, "mrope_section": parts}}


def _of_each(entries):
    """Two entries, of kinds different ones where there are."""
    if all(isinstance(each, int) for each in entries) and not set(entries) <= {0, 1}:
        return entries[:2]
    kinds = list(dict.fromkeys(entries))
    return [kinds[0], kinds[-1]]


def as_module(model, ranks):
    """The outcome of what has no cache: some tokens of one text, in one run."""
    ids = torch.randint(3, 160, (1, 9), generator=torch.Generator().manual_seed(1))
    model.config.use_cache = model.config.get_text_config().use_cache = False
    try:
        with torch.no_grad():
            expected = model(input_ids=ids).to_tuple()[0]
    except Exception as error:  # pylint: disable=broad-except
        return "fails in PyTorch", f"{type(error).__name__}: {error}"
    try:
        with tempfile.TemporaryDirectory() as folder:
            braid.export(model, folder, inputs={"input_ids": ids}, tp=ranks)
            try:
                outputs = braid.load_exported(folder, "cpu").run({"input_ids": ids.numpy()})
                found = torch.from_numpy(next(iter(outputs.values()))[0]).float()
                error = ((found - expected).norm() / expected.norm()).item()
            except Exception as error:  # pylint: disable=broad-except
                return "does not run", f"{type(error).__name__}: {error}"
    except braid.Error as error:
        return "refused", str(error)
    except Exception as error:  # pylint: disable=broad-except
        return "not traced", f"{type(error).__name__}: {error}"
    return ("equal as a module" if error <= LIMITS["f32"] else "differs"), f"error {error:.1e}"


def outcome(package, kinds, ranks, dtype):
    """Of the model with a cache, else of the model as a module."""
    result = served(package, kinds, ranks, dtype)
    if dtype != "f32" or result[0] in ("equal", "differs", "not built", "does not run"):
        return result
    kind, name = chosen(kinds)
    found = as_module(models.build(name, small(kind(), package)), ranks)
    if found[0] == "equal as a module":
        return found[0], f"{found[1]}; with a cache: {result[1]}"
    return result[0], f"{result[1][:200]}\nas a module: {found[0]}: {found[1]}"


def served(package, kinds, ranks, dtype):
    try:
        kind, name = chosen(kinds)
        model = models.build(name, small(kind(), package))
        if dtype == "bf16":
            for parameter in model.parameters():
                parameter.copy_(parameter.bfloat16())
    except Exception as error:  # pylint: disable=broad-except
        return "not built", f"{type(error).__name__}: {error}"
    texts = [list(prompt) for prompt in PROMPTS]
    expected = []
    try:
        for _ in range(STEPS):
            expected.append(models.last_logits(model, texts))
            for text, row in zip(texts, expected[-1]):
                text.append(int(row.argmax()))
    except Exception as error:  # pylint: disable=broad-except
        return "fails in PyTorch", f"{type(error).__name__}: {error}"
    try:
        with tempfile.TemporaryDirectory() as folder:
            braid.export(
                model, folder, tp=ranks, dtype=dtype, max_tokens=64, max_sequences=64, pages=64
            )
            try:
                exported = braid.Model(folder, device="cpu")
                sequences = exported.sequences(PROMPTS)
                found = []
                for _ in range(STEPS):
                    found.append(torch.tensor(exported.step(sequences)))
                    for sequence, text in zip(sequences, texts):
                        sequence.tokens.append(text[len(sequence.tokens)])
                error = max(((a - b).norm() / b.norm()).item() for a, b in zip(found, expected))
            except Exception as error:  # pylint: disable=broad-except
                return "does not run", f"{type(error).__name__}: {error}"
    except braid.Error as error:
        return "refused", str(error)
    except Exception as error:  # pylint: disable=broad-except
        return "not traced", f"{type(error).__name__}: {error}"
    return ("equal" if error <= LIMITS[dtype] else "differs"), f"error {error:.1e}"


def _late(*_):
    raise TimeoutError(f"more than {SECONDS} s of this process")


def part(text):
    """Every N-th package, from the K-th on."""
    first, step = map(int, text.split("/"))
    return slice(first, None, step)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--dtype", choices=LIMITS, default="f32")
    parser.add_argument("--part", type=part, default=slice(None))
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, _late)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))  # a large model fails, not others
    counts = collections.Counter()
    for name, kinds in list(packages().items())[options.part]:
        if options.names and name not in options.names:
            continue
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # whatever else this machine does
        what, text = outcome(name, kinds, options.ranks, options.dtype)
        signal.setitimer(signal.ITIMER_PROF, 0)
        counts[what] += 1
        text = " | ".join(line.strip() for line in text.splitlines()[:4])
        print(f"{name}: {what}: {text[:400]}", flush=True)
    print(", ".join(f"{count} {what}" for what, count in counts.most_common()))
    sys.exit(1 if counts["differs"] else 0)


if __name__ == "__main__":
    main()
