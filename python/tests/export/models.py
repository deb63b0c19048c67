"""Small models of transformers with random weights, and what PyTorch computes of them."""

import torch
import transformers

torch.set_num_threads(1)  # small models are quicker so
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

SIZES = {
    "vocab_size": 160,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 16,
    "max_position_embeddings": 256,
    "initializer_range": 0.05,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
# What each has beside the sizes above. Windows are shorter than the longest prompt.
MODELS = {
    "Llama": {},
    "Qwen3": {},
    "Mistral": {"sliding_window": 20},
    "Phi3": {"sliding_window": 20},
    "Olmo2": {},
    "Glm": {},
    "Gemma3": {"sliding_window": 20, "layer_types": ["sliding_attention", "full_attention"]},
    "Mixtral": {"num_local_experts": 4},
    "Qwen3Moe": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48},
    "GptOss": {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 20},
    "DeepseekV3": {
        "num_key_value_heads": 8, "q_lora_rank": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 16, "v_head_dim": 16, "n_routed_experts": 8, "n_group": 2, "topk_group": 1,
        "num_experts_per_tok": 2, "moe_intermediate_size": 48, "first_k_dense_replace": 1,
    },
}  # fmt: skip
_LATENT = {
    "num_hidden_layers": 1, "num_key_value_heads": 8, "q_lora_rank": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 16, "v_head_dim": 16, "n_routed_experts": 4, "moe_intermediate_size": 48,
    "num_experts_per_tok": 2, "first_k_dense_replace": 0, "n_group": 1, "topk_group": 1,
}  # fmt: skip
# Each stands for what it has and those above have not.
OTHERS = {
    # A convolution along the tokens, whose last ones are in a cache of their own.
    "Lfm2": {"layer_types": ["conv", "full_attention"], "conv_bias": True},
    "DeepseekV2": _LATENT,  # complex numbers
    # Places of tokens as an arange, masks of chunks, and experts that all tokens go through.
    "Llama4": {
        "intermediate_size_mlp": 96, "num_local_experts": 4, "no_rope_layers": [1, 0], "floor_scale": 8,
        "interleave_moe_layer_step": 2,
    },
    # Experts in a loop, of which some hand on what they get.
    "LongcatFlash": {
        **_LATENT, "num_layers": 1, "num_hidden_layers": 2, "zero_expert_num": 2, "moe_topk": 3,
        "ffn_hidden_size": 96, "expert_ffn_hidden_size": 48, "hidden_act": "gelu",
    },
    "DeepseekV32": {
        **_LATENT, "first_k_dense_replace": 1, "index_topk": 256, "index_n_heads": 2,
        "index_head_dim": 32,
    },
    "Dory": {"num_hidden_layers": 1},  # layers that are gone through twice
    "NemotronH": {  # experts without a gate
        "layers_block_type": ["attention", "moe"], "n_routed_experts": 4, "moe_intermediate_size": 48,
        "num_experts_per_tok": 2, "moe_shared_expert_intermediate_size": 48,
    },
}  # fmt: skip
_CONFIGS = {"Gemma3": "Gemma3TextConfig", "Llama4": "Llama4TextConfig"}
# How much larger than random the embeddings are, 8 where nothing else is said: OLMo 2 norms what a
# layer adds, which is large then.
_STREAMS = {"Olmo2": 64}


def make(name, **more):
    config = getattr(transformers, _CONFIGS.get(name, f"{name}Config"))
    config = config(**{**SIZES, **(MODELS | OTHERS)[name], **more})
    return build(f"{name}ForCausalLM", config, _STREAMS.get(name, 8))


def build(name, config, stream=8):
    """A model in f32. Norms get weights that are not all equal, and embeddings are large beside what a
    layer adds, as in trained models: else the roundings of bf16 would grow from layer to layer."""
    torch.manual_seed(1)
    config._attn_implementation = "eager"
    model = getattr(transformers, name)(config).eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
        if parameter.ndim == 1:
            parameter += 0.3 * torch.randn_like(parameter)
    model.get_input_embeddings().weight.mul_(stream)
    return model


def last_logits(model, sequences):
    """Of the last token of each sequence, by a whole forward pass for each."""
    with torch.no_grad():
        results = [model(torch.tensor([tokens]), use_cache=False) for tokens in sequences]
        return torch.stack([result.logits[0, -1] for result in results])
