"""Makes a model folder for vLLM: a small Llama's config.json and a tokenizer, both from nothing but this
file and Python's own help texts. Weights are vLLM's dummies, so the answers mean nothing; what they cost
is real. The size makes tokens come one by one: at a smaller one the API process falls behind the engine,
and several tokens leave in one write.

    vllm-model.py FOLDER
"""

import collections
import json
import pathlib
import pydoc_data.topics
import re
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 4096
WORDS = 200
OFTEN = 500
SPECIAL = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}
CHAT = "{{ bos_token }}{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\\n' }}{% endfor %}assistant:"


def tokenizer():
    made = Tokenizer(models.BPE(unk_token=SPECIAL["unk_token"]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = list(pydoc_data.topics.topics.values())
    # The load generator makes prompts of words that are one token each, at a text's begin and behind a space.
    words = collections.Counter(re.findall(r"\b[a-z]{5}\b", "\n".join(texts))).most_common(WORDS)
    texts += [(word + "\n") * OFTEN + f" {word}" * OFTEN for word, _ in words]
    made.train_from_iterator(texts, trainer)
    if made.get_vocab_size() != VOCABULARY:
        sys.exit(f"the help texts of this Python give {made.get_vocab_size()} tokens, not {VOCABULARY}")
    return made


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer().save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": CHAT, **SPECIAL}
    for name, content in [("config.json", LLAMA), ("tokenizer_config.json", settings)]:
        (folder / name).write_text(json.dumps(content, indent=1) + "\n")


main(pathlib.Path(sys.argv[1]))
